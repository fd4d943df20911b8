"""Answers requests by a provider's batches: those that come at about the same time go together.

A batch takes minutes to a day, so every step must survive the end of this process: what is
submitted is written down before and after (`Journal`), and a request that is in a batch already
waits for that one. A batch that was submitted in the moment of a kill is looked for at the provider
before anything is submitted again.

Providers take so many requests, or tokens, into their queue and no more. Where that is full,
smaller batches follow each other.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeGuard

from infra.chat import ChatReply, ChatRequest, OnText, StopReason
from infra.clock import Clock, ms_of
from infra.errors import EndpointDown, ErrorKind, ProviderError
from infra.json_schema import reply_schema
from infra.layers.batch_calls import LONGEST_POLL, BatchCalls
from infra.layers.batch_journal import Batch, Journal
from infra.layers.retry import RetryPolicy
from infra.ledger import CallRow
from infra.wire import BatchApi, Line

MOST_AT_ONCE = 500
"""Questions of a wave, unless the user says otherwise."""
LINGER = 1.0
"""Seconds without a further request after which those that wait are submitted."""
_MOST_REQUESTS = 10_000
_AROUND_A_PROMPT = 600  # bytes at most of a request, beside its messages and its schema
_GONE = 404


@dataclass(frozen=True, slots=True)
class Batching:
    """How requests are batched; shared by the models of a run."""

    journal: Journal
    say: Callable[[str], None] = lambda line: None
    """Shows a line of progress."""
    linger: float = LINGER
    """Seconds; see there."""


@dataclass(slots=True)
class _Waiting:
    request: ChatRequest
    done: asyncio.Future[tuple[Batch, Line | None]]


class Batched:
    """A model whose requests are answered by batches. Each reply, or error, has its row.

    Args:
        api: The batches of the model.
        batching: Where they are written down, and how long they are gathered.
        name: The model as `provider/name`, for people.
        identity: The model with its address, for the journal.
        key: Under what the reply to a request is known, at most 64 letters and digits.
        row: Makes the row of a request.
        book: Takes the rows.
        clock: For times.
        policy: How patiently a call at the endpoint is made again.
        sleep: Awaited for each pause, in seconds.
        may_send: Raises LimitExceeded when nothing may be sent any more.
    """

    def __init__(
        self,
        api: BatchApi,
        batching: Batching,
        *,
        name: str,
        identity: str,
        key: Callable[[ChatRequest], str],
        row: Callable[..., CallRow],
        book: Callable[[CallRow], None],
        clock: Clock,
        policy: RetryPolicy,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        may_send: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._calls = BatchCalls(
            api, name=name, clock=clock, policy=policy, sleep=sleep, say=batching.say
        )
        self._journal = batching.journal
        self._say = batching.say
        self._linger = batching.linger
        self._name = name
        self._identity = identity
        self._key = key
        self._row = row
        self._book = book
        self._clock = clock
        self._policy = policy
        self._sleep = sleep
        self._may_send = may_send
        self._batches: list[Batch] | None = None
        self._open: dict[str, deque[Batch]] = {}  # key -> the batches that it is in, oldest first
        self._lines: dict[str, dict[str, Line]] = {}  # tag -> lines of a batch that has ended
        self._queue: dict[str, _Waiting] = {}  # what goes into the next batch
        self._asked: dict[str, _Waiting] = {}  # what is in a batch and waited for
        self._followed: set[str] = set()  # tags
        self._at_work: set[asyncio.Task[None]] = set()  # one for each batch
        self._gathering: asyncio.Task[None] | None = None
        self._came = 0.0
        self._room: int | None = None  # requests; None: the provider's queue was never full
        self._full_since: float | None = None
        self._refusals = 0  # in a row

    @property
    def waiting(self) -> int:
        """Requests that wait for a batch."""
        return len(self._queue) + len(self._asked)

    @property
    def under_way(self) -> list[Batch]:
        """Batches that the provider works on."""
        batches = self._batches or []
        return [one for one in batches if one.id and not (one.is_collected or one.is_over)]

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; the text comes at once, when its batch has ended."""
        key, began = self._key(request), self._clock.monotonic()
        try:
            batch, line = await self._line(key, request)
        except ProviderError as error:
            self._note(request, self._clock.timestamp(), None, error.kind.value)
            own = copy(error)  # all that waited get the same
            own.queued = self._clock.monotonic() - began
            raise own from None
        try:
            if line is None:
                message = f"the batch {batch.id} ended before this request"
                raise ProviderError(message, kind=ErrorKind.UNANSWERED)
            reply = replace(self._api.read(line, request), batched=True)
        except ProviderError as error:
            error.queued = self._clock.monotonic() - began
            self._hand_over(batch, key, is_spent=True)
            self._note(request, batch.submitted_at, None, error.kind.value)
            raise
        self._hand_over(batch, key, is_spent=reply.stop_reason is StopReason.LENGTH)
        self._note(request, batch.submitted_at, reply)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    async def cancel(self) -> list[str]:
        """Let the provider work on nothing further; return the ids of batches that go on."""
        return await self._calls.cancel(self.under_way)

    async def aclose(self) -> None:
        """Stop gathering and asking how batches stand; they go on at the provider."""
        tasks = [*self._at_work, *([self._gathering] if self._gathering else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- what a request waits for ---------------------------------------------------------------

    async def _line(self, key: str, request: ChatRequest) -> tuple[Batch, Line | None]:
        self._recall()
        if (batch := self._batch_of(key)) is not None:
            if batch.tag in self._lines:
                return batch, self._lines[batch.tag].get(key)
            if batch.tag not in self._followed:
                self._followed.add(batch.tag)
                self._do(self._follow(batch))
        waiting = _Waiting(request, asyncio.get_running_loop().create_future())
        if batch is not None:
            self._asked[key] = waiting
        else:
            self._may_send()
            self._came = self._clock.monotonic()
            self._put_in_line({key: waiting})
        try:
            return await waiting.done
        finally:
            self._queue.pop(key, None)
            self._asked.pop(key, None)

    def _batch_of(self, key: str) -> Batch | None:
        batches = self._open.get(key)
        return batches[0] if batches else None

    def _recall(self) -> None:
        """Take up the batches of earlier processes, once."""
        if self._batches is not None:
            return
        self._batches = []
        for batch in self._journal.batches():
            if batch.model == self._identity and not batch.is_over:
                self._calls.know(batch)
                self._take_up(batch)

    def _take_up(self, batch: Batch) -> None:
        assert self._batches is not None
        self._batches.append(batch)
        for key in batch.keys:
            if key not in batch.spent:
                self._open.setdefault(key, deque()).append(batch)

    def _hand_over(self, batch: Batch, key: str, *, is_spent: bool) -> None:
        """Note that a request has what its batch had for it."""
        self._open[key].remove(batch)
        self._lines[batch.tag].pop(key, None)
        if is_spent:
            batch.spent.add(key)
            self._journal.spend(batch, key)

    def _note(
        self, request: ChatRequest, since: str, reply: ChatReply | None, failure: str = ""
    ) -> None:
        latency = max(0.0, self._clock.now().timestamp() - ms_of(since) / 1000)
        self._book(self._row(request, reply, started_at=since, latency=latency, failure=failure))

    def _do(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    # -- gathering and submitting ---------------------------------------------------------------

    def _put_in_line(self, waiting: Mapping[str, _Waiting]) -> None:
        """Let requests go into the next batch."""
        self._queue.update(waiting)
        if self._queue and self._gathering is None:
            self._gathering = asyncio.ensure_future(self._gather())

    async def _gather(self) -> None:
        """Wait until nobody asks any more, and submit what is wanted."""
        while self._queue:
            while self._clock.monotonic() - self._came < self._linger:
                await self._sleep(self._linger / 4)
            while self._room is not None and self._at_work:
                await asyncio.wait(self._at_work)
            if part := self._next_part():
                self._asked |= part
                self._do(self._submit(part))
        self._gathering = None

    def _next_part(self) -> dict[str, _Waiting]:
        """Take from what waits as much as goes into one batch."""
        part: dict[str, _Waiting] = {}
        most, size = min(_MOST_REQUESTS, self._room or _MOST_REQUESTS), 0
        for key, one in self._queue.items():
            size += _bytes_of(one.request)
            if part and (size > self._api.most_bytes or len(part) >= most):
                break
            part[key] = one
        for key in part:
            del self._queue[key]
        return part

    async def _submit(self, part: dict[str, _Waiting]) -> None:
        tag, now = uuid.uuid4().hex, self._clock.timestamp()
        batch = Batch(tag, self._identity, now, tuple(part))
        try:
            self._journal.begin(batch)
            await self._calls.submit(batch, {key: one.request for key, one in part.items()})
            self._followed.add(tag)
            self._take_up(batch)
            self._journal.submitted(batch)
            self._say(f"{self._calls.called(batch)}: submitted as {batch.id}")
        except Exception as error:  # noqa: BLE001 - it is raised where the requests are waited for
            if _means_full(error):
                await self._try_later(batch, part, error)
            else:
                self._fail(part, error)
            return
        await self._follow(batch)

    async def _try_later(
        self, batch: Batch, waiting: Mapping[str, _Waiting], error: ProviderError
    ) -> None:
        """Let the requests of a batch, for which the provider's queue had no room, go into others.

        Behind other batches of ours their end makes room; else the next ones are half as large.
        """
        self._end(batch)
        now = self._clock.monotonic()
        if len(self._at_work) > 1:
            self._room = self._room or len(batch.keys)
            self._say(f"{self._calls.called(batch)}: not taken before others have ended ({error})")
        else:
            self._room = max(1, len(batch.keys) // 2)
            self._full_since = now if self._full_since is None else self._full_since
            if now - self._full_since > self._policy.timeout:
                down = EndpointDown(
                    f"{self._name} has no room for a batch: {error}; the same command goes on"
                )
                self._fail(waiting, down)
                return
            pause = min(LONGEST_POLL, self._policy.base * 2 ** min(self._refusals, 20))
            self._refusals += 1
            self._say(f"{self._calls.called(batch)}: not taken, next with {self._room} ({error})")
            await self._sleep(pause)
        still = {key: one for key, one in waiting.items() if key in self._asked}
        for key in still:
            del self._asked[key]
        self._put_in_line(still)

    def _has_room(self) -> None:
        """Note that the provider's queue took a batch."""
        self._full_since, self._refusals = None, 0
        if self._room is not None:
            more = self._room + max(1, self._room // 4)
            self._room = None if more > _MOST_REQUESTS else more

    # -- following ------------------------------------------------------------------------------

    async def _follow(self, batch: Batch) -> None:
        """Wait until a batch has ended, and give its lines to those who wait for them."""
        try:
            if not batch.id:
                if not await self._calls.find(batch):
                    self._give_up(batch)
                    return
                self._journal.submitted(batch)
            if (problem := await self._calls.until_it_ends(batch)) is not None:
                await self._was_refused(batch, problem)
                return
            lines = await self._calls.lines(batch)
            batch.is_collected = True
            self._journal.collected(batch)
        except Exception as error:  # noqa: BLE001 - it is raised where the requests are waited for
            if isinstance(error, ProviderError) and error.status == _GONE:
                self._give_up(batch)  # the provider keeps batches for some weeks only
            else:
                self._fail(self._of(batch), error)  # the batch goes on
            return
        finally:
            self._followed.discard(batch.tag)
        if lines and lines.keys().isdisjoint(batch.keys):
            self._give_up(batch)  # it was found by its time and size, and is another's
            return
        self._has_room()
        answered = sum(key in lines for key in batch.keys)
        self._say(f"{self._calls.called(batch)}: done, {answered} answered")
        self._lines[batch.tag] = dict(lines)
        for key, one in self._of(batch).items():
            if not one.done.done():
                one.done.set_result((batch, lines.get(key)))

    async def _was_refused(self, batch: Batch, problem: ProviderError) -> None:
        waiting = self._of(batch)
        if _means_full(problem):
            await self._try_later(batch, waiting, problem)
        else:
            self._end(batch)
            self._fail(waiting, problem)

    def _of(self, batch: Batch) -> dict[str, _Waiting]:
        """Return what waits for a batch."""
        return {
            key: self._asked[key]
            for key in batch.keys
            if key in self._asked and self._batch_of(key) is batch
        }

    def _give_up(self, batch: Batch) -> None:
        """Let the requests of a batch that is not there go into another one."""
        waiting = self._of(batch)
        self._end(batch)
        for key in waiting:
            del self._asked[key]
        self._put_in_line(waiting)

    def _end(self, batch: Batch) -> None:
        batch.is_over = True
        for key in batch.keys:
            if batch in self._open.get(key, ()):
                self._open[key].remove(batch)
        self._journal.end(batch)

    @staticmethod
    def _fail(waiting: Mapping[str, _Waiting], error: Exception) -> None:
        for one in waiting.values():
            if not one.done.done():
                one.done.set_exception(error)


def _means_full(error: Exception) -> TypeGuard[ProviderError]:
    return isinstance(error, ProviderError) and error.kind is ErrorKind.RATE_LIMIT


def _bytes_of(request: ChatRequest) -> int:
    """Return about how much a request takes in a batch, as JSON."""
    schema = "" if request.schema is None else json.dumps(reply_schema(request.schema))
    said = sum(len(json.dumps(message.content)) for message in request.messages)
    return said + len(schema) + _AROUND_A_PROMPT
