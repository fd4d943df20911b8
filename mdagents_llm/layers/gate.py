"""The gate of an endpoint: limits concurrent calls and rates, and schedules waiting calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.transit import in_transit
from mdagents_llm.picture_tokens import prompt_tokens

_OVERLOAD = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED})
_WINDOW = 30  # latest replies that count; in a window of 10, 5 can be a 429 by chance
_STORM = _WINDOW // 2  # overload errors in the window from which all calls are slowed down
_COOL_DOWN = 1.0  # seconds, if the endpoint does not name a pause
_BURST = 1.0  # seconds of a rate limit that may be used up at once


_TEAM_IN_A_ROW = 4  # team calls admitted for each background call

_Turn = asyncio.Future[None]

Urgency = Callable[[], tuple[float, ...]]
"""Function that returns the current urgency of a background call; the smallest goes first."""


class Rate:
    """A limit per minute, enforced by the generic cell rate algorithm (ITU-T I.371).

    Args:
        per_minute: Number of requests or tokens per minute.
    """

    def __init__(self, per_minute: float) -> None:
        self._per_minute = per_minute
        self._seconds_each = 60.0 / per_minute
        self._paid_until = float("-inf")

    def share(self, part: float, now: float) -> None:
        """Use only a fraction of the limit from now on.

        Earlier requests still count, and unused capacity cannot be caught up on: the shares of
        several processes never add up to more than the limit, however often they change.

        Args:
            part: Fraction of the limit, above 0 and up to 1.
            now: Current time in seconds.
        """
        owed = max(0.0, self._paid_until - _BURST - now) / self._seconds_each
        self._seconds_each = 60.0 / (self._per_minute * part)
        self._paid_until = now + _BURST + owed * self._seconds_each

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(0.0, self._paid_until - _BURST - now)

    def use(self, amount: float, now: float) -> None:
        """Count `amount` as sent; a negative amount corrects an overcount."""
        self._paid_until = max(self._paid_until, now) + amount * self._seconds_each


class Connections:
    """The connections of one endpoint, shared by all its models.

    The number of allowed concurrent calls starts at the limit. Only if at least half of the last 30
    replies were 429 or overload, the endpoint cools down for all calls and the number is halved, at
    most once per round trip and never below a quarter of the limit; each success lets it grow again
    (additive increase, multiplicative decrease). A single 429 delays only its own call, in `Retry`.

    Background calls, for which nobody waits, get every fifth connection that becomes free while
    team calls also wait, as long as they hold no more than a fifth of the connections, however long
    they take; if no team call waits, they get every connection. If all calls share one machine,
    even a call on an idle connection slows down the others: then background calls get only every
    fifth connection while a team call is in progress.

    Args:
        limit: Maximum number of concurrent calls.
        monotonic: Clock in seconds.
        share_one_machine: Whether calls slow each other down, as on the slots of an embedded model.
        requests_per_minute: Maximum requests per minute; None for no limit.
        tokens_per_minute: Maximum input and output tokens per minute; None for no limit.
    """

    def __init__(
        self,
        limit: int,
        monotonic: Callable[[], float],
        *,
        share_one_machine: bool = False,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.limit = limit
        self.in_flight = 0
        self.storms = 0
        """Number of times that the limit was halved because of overload."""
        self._part = 1.0
        self._allowed = float(limit)
        self._monotonic = monotonic
        self._requests = Rate(requests_per_minute) if requests_per_minute else None
        self._tokens = Rate(tokens_per_minute) if tokens_per_minute else None
        self._team: dict[_Turn, None] = {}  # in order of arrival
        self._background: dict[_Turn, Urgency | None] = {}
        self._background_in_flight = 0
        self._share_one_machine = share_one_machine
        self._team_in_a_row = 0
        self._recent: deque[bool] = deque(maxlen=_WINDOW)
        self._halved_at = float("-inf")
        self._cool_until = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    @property
    def allowed(self) -> int:
        """Number of concurrent calls currently allowed."""
        return int(self._allowed)

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a connection."""
        return len(self._team) + len(self._background)

    @property
    def waiting_of_team(self) -> int:
        """Number of team calls that wait for a connection."""
        return len(self._team)

    def cooling(self) -> float:
        """Return the remaining seconds of the endpoint's cool-down for all calls, 0 or more."""
        return max(0.0, self._cool_until - self._monotonic())

    def cool_down(self, seconds: float) -> None:
        """Admit no calls for `seconds`, because the endpoint asked another process to wait."""
        self._cool_until = max(self._cool_until, self._monotonic() + seconds)

    def share(self, limit: int, of: int) -> None:
        """Use only this process's share of the endpoint's limits.

        Args:
            limit: Maximum number of concurrent calls; 0 admits none while running calls finish.
            of: Maximum for all processes together; rates per minute are shared in proportion.
        """
        if limit and limit / of != self._part:
            self._part = limit / of
            for rate in filter(None, (self._requests, self._tokens)):
                rate.share(self._part, self._monotonic())
        is_unhindered = self._allowed >= self.limit
        self._allowed = float(limit) if is_unhindered else min(self._allowed, float(limit))
        self.limit = limit
        if self._team or self._background:
            self._admit()

    def pause(self) -> float:
        """Return the seconds for which a cool-down or a rate limit blocks new calls."""
        now = self._monotonic()
        rates = [rate.wait(now) for rate in (self._requests, self._tokens) if rate is not None]
        return max([self.cooling(), *rates])

    async def acquire(self, *, background: bool, urgency: Urgency | None = None) -> None:
        """Wait for a connection, which the caller returns with `release` or `give_back`.

        Args:
            background: Whether nobody waits for the call.
            urgency: Urgency of a background call, read whenever one is admitted; None goes before
                all others. Team calls, and background calls of equal urgency, are served in order
                of arrival.
        """
        turn: _Turn = asyncio.get_running_loop().create_future()
        if background:
            self._background[turn] = urgency
        else:
            self._team[turn] = None
        self._admit()
        try:
            await turn
        except BaseException:
            self._background.pop(turn, None)
            self._team.pop(turn, None)
            if turn.done() and not turn.cancelled():  # admitted and cancelled at the same time
                self.give_back(background=background)
            raise

    def reserve(self, urgency: Urgency) -> Reservation:
        """Reserve a connection for the next background call within the context.

        The call can then be composed just before it is sent, not before it is queued.

        Args:
            urgency: Urgency of the call, as for `acquire`.
        """
        return Reservation(self, urgency)

    def release(self, *, background: bool) -> None:
        """Return a connection after a call."""
        self.in_flight -= 1
        self._background_in_flight -= background
        self._admit()

    def give_back(self, *, background: bool) -> None:
        """Return an unused connection, without counting it toward the request rate."""
        if self._requests is not None:
            self._requests.use(-1, self._monotonic())
        self.release(background=background)

    def count(self, tokens: int) -> None:
        """Count the estimated tokens of a call toward the limit per minute."""
        if self._tokens is not None:
            self._tokens.use(tokens, self._monotonic())

    def correct(self, estimated: int, used: int) -> None:
        """Replace an estimated number of tokens by the endpoint's count."""
        if self._tokens is not None:
            self._tokens.use(used - estimated, self._monotonic())

    def note(self, error: ProviderError | None, started: float) -> None:
        """Adapt the limit to a reply or an error of the endpoint.

        Args:
            error: Error of the endpoint; None for a reply.
            started: Time at which the call was admitted, on this clock.
        """
        now = self._monotonic()
        if error is None:
            self._allowed = min(float(self.limit), self._allowed + 1 / max(1.0, self._allowed))
        if started < self._halved_at:
            return  # sent before the limit was halved, so it says nothing about the new limit
        overloaded = error is not None and error.kind in _OVERLOAD
        self._recent.append(overloaded)
        if overloaded and sum(self._recent) >= _STORM:
            self._recent.clear()
            self._halved_at = now
            self._allowed = max(min(1.0, self.limit), self.limit // 4, self._allowed / 2)
            self.storms += 1
            asked_for = error.retry_after if error is not None else None
            self._cool_until = now + (_COOL_DOWN if asked_for is None else asked_for)

    def _admit(self) -> None:
        """Admit waiting calls while there is room; if a pause blocks them, set a timer."""
        while self.in_flight < self.allowed:
            turn = self._next()
            if turn is None:
                return
            pause = self.pause()
            if pause > 0:
                self._come_back_in(pause)
                return
            if turn in self._team:
                del self._team[turn]
                self._team_in_a_row += 1
            else:
                del self._background[turn]
                self._background_in_flight += 1
                self._team_in_a_row = 0
            self.in_flight += 1
            if self._requests is not None:
                self._requests.use(1, self._monotonic())
            turn.set_result(None)

    def _next(self) -> _Turn | None:
        """Return the call that is next in turn; cancelled calls are skipped."""
        team = next((turn for turn in self._team if not turn.done()), None)
        is_team_at_work = self._share_one_machine and self.in_flight > self._background_in_flight
        if team is not None or is_team_at_work:
            is_their_turn = self._team_in_a_row >= _TEAM_IN_A_ROW
            share = max(1, self.limit // (_TEAM_IN_A_ROW + 1))
            if not is_their_turn or self._background_in_flight >= share:
                return team
        waiting = (turn for turn in self._background if not turn.done())
        return min(waiting, key=self._urgency, default=team)

    def _urgency(self, turn: _Turn) -> tuple[float, ...]:
        urgency = self._background[turn]
        return () if urgency is None else urgency()

    def _come_back_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._admit)


_reserved: ContextVar[Reservation | None] = ContextVar("_reserved", default=None)


def carry_reservation(context: Context) -> None:
    """Carry the reservation of the current context over to the context in which a call is made."""
    context.run(_reserved.set, _reserved.get())


class Reservation:
    """A connection that is acquired before the call that will use it is composed.

    The first background call within the context takes it over; later ones wait as usual. It is
    returned unused if no call is made, or if the call goes to another endpoint.

    Args:
        connections: Connections of the endpoint.
        urgency: Urgency of the call, as for `Connections.acquire`.
    """

    def __init__(self, connections: Connections, urgency: Urgency) -> None:
        self._connections = connections
        self._urgency = urgency
        self._is_held = False

    async def __aenter__(self) -> None:
        await self._connections.acquire(background=True, urgency=self._urgency)
        self._is_held = True
        self._token = _reserved.set(self)

    async def __aexit__(self, *exception: object) -> None:
        _reserved.reset(self._token)
        self._give_back()

    def take_over(self, connections: Connections) -> bool:
        """Return whether the calling request gets the reserved connection of `connections`."""
        if self._is_held and connections is self._connections:
            self._is_held = False
            return True
        self._give_back()
        return False

    def _give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._connections.give_back(background=True)


class Gate:
    """Layer that holds back a call until its endpoint has room for it.

    Without a limit to check or a hedge, the connection is returned as soon as the whole reply has
    arrived, before it is booked: the next call is sent while the reply is still being processed.

    Args:
        inner: Model to call.
        connections: Connections of the endpoint.
        monotonic: Clock in seconds, the same as for `connections`.
        may_send: Function that raises when nothing more may be sent; called when a call gets its
            connection, since a limit may be reached while the call is queued. None for no limit.
        model: Name of the model, for the size of pictures in tokens.
    """

    def __init__(
        self,
        inner: ChatModel,
        connections: Connections,
        monotonic: Callable[[], float],
        *,
        may_send: Callable[[], None] | None = None,
        model: str = "",
    ) -> None:
        self._inner = inner
        self._model = model
        self._may_send = may_send
        self._connections = connections
        self._monotonic = monotonic

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request as soon as it has a connection and the rate allows it."""
        connections, sent = self._connections, in_transit(request)
        background = request.labels.background
        estimate = int(prompt_tokens(request.messages, self._model))
        queued = self._monotonic()
        reservation = _reserved.get() if background else None
        if reservation is None or not reservation.take_over(connections):
            await connections.acquire(background=background)
        try:
            if self._may_send is not None:
                self._may_send()
        except BaseException:
            connections.give_back(background=background)
            raise
        connections.count(estimate)
        started = self._monotonic()
        is_held = True

        def give_back(reply: ChatReply) -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                connections.note(None, started)
                connections.correct(estimate, reply.usage.total_tokens)
                connections.release(background=background)

        try:
            if sent.on_sent is not None:
                sent.on_sent()
            waited = sent.waited + started - queued
            # A hedge that waits would take the connection, and its call is paid for in vain.
            is_hedged = sent.on_sent is not None
            on_reply = give_back if self._may_send is None and not is_hedged else None
            sent = in_transit(sent, waited=waited, on_reply=on_reply)
            reply = await self._inner.generate(sent, on_text)
            give_back(reply)
        except ProviderError as error:
            error.queued = started - queued
            connections.note(error, started)
            connections.correct(estimate, 0)
            raise
        else:
            return reply
        finally:
            if is_held:
                connections.release(background=background)
