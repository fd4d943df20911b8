"""Answers requests through a provider's batches; requests made at about the same time share one.

A batch takes minutes to a day, so every step must survive the end of this process: a submission is
recorded before and after (`Journal`), and a request that is already in a batch waits for that one.
If the process was killed during a submission, the batch is searched for at the provider before
anything is submitted again.

Providers limit the requests or tokens in their queue. If the queue is full, smaller batches are
submitted one after another.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace

from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason
from mdagents_llm.clock import Clock, ms_of
from mdagents_llm.errors import BenchError, EndpointDown, ErrorKind, ProviderError
from mdagents_llm.json_schema import reply_schema
from mdagents_llm.layers.batch_calls import CANCELLING, LONGEST_POLL, NOT_FOUND, BatchCalls
from mdagents_llm.layers.batch_journal import Batch, Journal
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.layers.transit import in_transit
from mdagents_llm.ledger import CallRow
from mdagents_llm.wire import BatchApi, Line

LINGER = 1.0
"""Seconds without a new request after which the waiting ones are submitted."""
_MOST_REQUESTS = 10_000
_AROUND_A_PROMPT = 600  # maximum bytes of a request besides its messages and its schema
_KEPT = 172_800.0  # seconds for which every provider keeps a batch: its day, and one more
_OF_THE_WAY = frozenset({ErrorKind.SETTING_REFUSED, ErrorKind.SCHEMA_UNSUPPORTED})
"""Errors after which the request is sent again in another form."""


@dataclass(frozen=True, slots=True)
class Batching:
    """Batch settings that the models of a run share."""

    journal: Journal
    say: Callable[[str], None] = lambda line: None
    """Function that shows a line of progress."""
    linger: float = LINGER
    """Seconds without a new request after which the waiting ones are submitted."""


@dataclass(slots=True)
class _Waiting:
    request: ChatRequest
    done: asyncio.Future[tuple[Batch, Line | None]]


class Batched:
    """A model whose requests go in batches. Each reply or error has its ledger row.

    Args:
        api: Batch API of the model.
        batching: Journal of the batches, and how long requests are gathered.
        name: Model as `provider/name`, for messages.
        identity: Model with its base URL, for the journal.
        key: Function that returns the key of a request, at most 64 letters and digits.
        row: Function that creates the ledger row of a request.
        book: Function that records a row.
        clock: Clock for timestamps and durations.
        policy: Retry policy for calls at the endpoint.
        known: IDs of our own batches, over all runs of the process.
        sleep: Function awaited for each pause, in seconds.
        may_send: Function that raises LimitExceeded when nothing more may be sent; None for no
            limit.
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
        known: set[str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        may_send: Callable[[], None] | None = None,
    ) -> None:
        clock = clock.of_system()  # a lost submission is found by the time of the endpoint
        self._api = api
        self._calls = BatchCalls(
            api, name=name, clock=clock, policy=policy, sleep=sleep, say=batching.say, known=known
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
        self._recalled: set[Batch] = set()  # batches of earlier processes
        self._open: dict[str, deque[Batch]] = {}  # key -> batches that contain it, oldest first
        self._lines: dict[str, dict[str, Line]] = {}  # tag -> results of a batch that has ended
        self._queue: dict[str, _Waiting] = {}  # requests for the next batch
        self._asked: dict[str, _Waiting] = {}  # requests in a batch that a caller waits for
        self._followed: set[str] = set()  # tags of batches being polled
        self._at_work: set[asyncio.Task[None]] = set()  # one task per batch
        self._gathering: asyncio.Task[None] | None = None
        self._came = 0.0
        self._room: int | None = None  # maximum requests per batch; None while the queue has room
        self._full_since: float | None = None
        self._refusals = 0  # consecutive

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a batch."""
        return len(self._queue) + len(self._asked)

    def under_way(self) -> list[Batch]:
        """Return the batches that are in progress at the provider."""
        return [one for one in self._all() if one.id and not (one.is_collected or one.is_over)]

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request from a batch; its text arrives in one piece when the batch ends."""
        key, began = self._key(request), self._clock.monotonic()
        while True:
            try:
                batch, line = await self._line(key, request)
            except ProviderError as error:
                self._note(request, self._clock.timestamp(), None, error.kind.value)
                own = copy(error)  # all waiting requests share one error object
                own.queued = self._clock.monotonic() - began
                raise own from None
            try:
                reply = self._read(batch, key, line, request)
            except ProviderError as error:
                error.queued = self._clock.monotonic() - began
                if error.kind is not ErrorKind.UNANSWERED or batch not in self._recalled:
                    raise
                continue  # for example, an earlier process cancelled its batch: send it now
            if on_text is not None and reply.text:
                on_text(reply.text)
            return reply

    def _read(self, batch: Batch, key: str, line: Line | None, request: ChatRequest) -> ChatReply:
        """Return the reply to a request from its batch, and record it in the ledger."""
        is_booked = key in batch.booked
        try:
            if line is None:
                message = f"the batch {batch.id} ended before this request"
                raise ProviderError(message, kind=ErrorKind.UNANSWERED)
            reply = replace(self._api.read(line, request), batched=True, cached=is_booked)
        except ProviderError as error:
            if error.kind in _OF_THE_WAY:
                self._hand_over(batch, key, may_be_read_again=True)
            else:
                self._hand_over(batch, key)
            if not is_booked:
                self._note(request, batch.submitted_at, None, error.kind.value)
            raise
        if reply.stop_reason is StopReason.LENGTH:
            self._hand_over(batch, key, may_be_read_again=True)
        else:
            self._take(batch, key)
        self._note(request, batch.submitted_at, reply)
        return reply

    async def cancel(self) -> tuple[list[str], list[str]]:
        """Cancel all batches in progress.

        Returns:
            (IDs of cancelled batches, IDs of batches that continue).
        """
        await self.aclose()
        for batch in self._all():
            if not (batch.id or batch.is_over):
                with suppress(BenchError, TimeoutError):
                    async with asyncio.timeout(CANCELLING):
                        await self._calls.find(batch)
        batches = self.under_way()
        going_on = await self._calls.cancel(batches)
        return [one.id for one in batches if one.id not in going_on], going_on

    async def aclose(self) -> None:
        """Stop gathering requests and polling batches; the batches continue at the provider."""
        tasks = [*self._at_work, *([self._gathering] if self._gathering else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- waiting for a result -------------------------------------------------------------------

    async def _line(self, key: str, request: ChatRequest) -> tuple[Batch, Line | None]:
        self._all()
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
            if self._may_send is not None:
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

    def _all(self) -> list[Batch]:
        """Return all batches of the run; the first call loads those of earlier processes."""
        if self._batches is None:
            self._batches = []
            for batch in self._journal.batches():
                if batch.model == self._identity and not batch.is_over:
                    self._calls.know(batch)
                    self._recalled.add(batch)
                    self._batches.append(batch)
                    self._take_up(batch)
        return self._batches

    def _take_up(self, batch: Batch) -> None:
        for key in batch.keys:
            if key not in batch.spent:
                self._open.setdefault(key, deque()).append(batch)

    def _take(self, batch: Batch, key: str) -> None:
        """Mark the result of a request in a batch as consumed."""
        self._open[key].remove(batch)
        self._lines[batch.tag].pop(key, None)

    def _hand_over(self, batch: Batch, key: str, *, may_be_read_again: bool = False) -> None:
        """Mark a result as consumed without a complete reply, so that a new request will follow.

        Args:
            batch: Batch with the result.
            key: Key of the request.
            may_be_read_again: Whether a later process may read the result again, to arrive at the
                same follow-up request.
        """
        self._take(batch, key)
        if not may_be_read_again:
            batch.spent.add(key)
            self._journal.spend(batch, key)
        elif key not in batch.booked:
            batch.booked.add(key)
            self._journal.book(batch, key)

    def _note(
        self, request: ChatRequest, since: str, reply: ChatReply | None, failure: str = ""
    ) -> None:
        latency = max(0.0, self._clock.now().timestamp() - ms_of(since) / 1000)
        sent = in_transit(request)
        self._book(
            self._row(
                request,
                reply,
                started_at=since,
                attempt=sent.attempt,
                waited=sent.waited,
                latency=latency,
                failure=failure,
            )
        )

    def _do(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    # -- gathering and submitting ---------------------------------------------------------------

    def _put_in_line(self, waiting: Mapping[str, _Waiting]) -> None:
        """Queue requests for the next batch."""
        self._queue.update(waiting)
        if self._queue and self._gathering is None:
            self._gathering = asyncio.ensure_future(self._gather())

    async def _gather(self) -> None:
        """Wait until no new requests arrive, and submit the queued ones."""
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
        """Take as many requests from the queue as fit into one batch."""
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
            self._all().append(batch)
            await self._calls.submit(batch, {key: one.request for key, one in part.items()})
            self._followed.add(tag)
            self._take_up(batch)
            self._journal.submitted(batch)
            how = "found" if batch.is_found else "submitted"
            self._say(f"{self._calls.called(batch)}: {how} as {batch.id}")
        except Exception as error:  # noqa: BLE001 - it is raised where the requests are waited for
            if isinstance(error, ProviderError) and error.kind is ErrorKind.RATE_LIMIT:
                await self._was_refused(batch, part, error)
            else:
                self._fail(part, error)
        else:
            await self._follow(batch)

    async def _was_refused(
        self, batch: Batch, waiting: Mapping[str, _Waiting], problem: ProviderError
    ) -> None:
        """Requeue the requests of a batch if the provider's queue was full; else fail them."""
        try:
            self._end(batch)
            if problem.kind is ErrorKind.RATE_LIMIT:
                await self._make_room(batch, problem)
        except Exception as error:  # noqa: BLE001 - likewise
            self._fail(waiting, error)
            return
        if problem.kind is ErrorKind.RATE_LIMIT:
            self._put_back(waiting)
        else:
            self._fail(waiting, problem)

    async def _make_room(self, batch: Batch, problem: ProviderError) -> None:
        """Adapt to a full queue of the provider, so that the next batches fit.

        If other batches of ours are in progress, their end makes room; else the next batches are
        half as large.

        Raises:
            EndpointDown: Not even a single request has fit for longer than the policy's timeout.
        """
        size, now = len(batch.keys), self._clock.monotonic()
        if len(self._at_work) > 1:
            self._room = self._room or size
            self._say(
                f"{self._calls.called(batch)}: not taken before others have ended ({problem})"
            )
            return
        self._room = max(1, size // 2)
        self._say(f"{self._calls.called(batch)}: not taken, next with {self._room} ({problem})")
        if size == 1:
            self._full_since = now if self._full_since is None else self._full_since
            if now - self._full_since > self._policy.timeout:
                raise EndpointDown(
                    f"{self._name} has no room for a batch: {problem}; the same command resumes"
                )
        self._refusals += 1
        await self._sleep(min(LONGEST_POLL, self._policy.base * 2 ** min(self._refusals, 20)))

    def _has_room(self) -> None:
        """Note that the provider's queue accepted a batch."""
        self._full_since, self._refusals = None, 0
        if self._room is not None:
            more = self._room + max(1, self._room // 4)
            self._room = None if more > _MOST_REQUESTS else more

    # -- following ------------------------------------------------------------------------------

    async def _follow(self, batch: Batch) -> None:
        """Wait until a batch has ended, and pass its results to the waiting requests."""
        try:
            await self._collect(batch)
        except Exception as error:  # noqa: BLE001 - it is raised where the requests are waited for
            self._fail(self._of(batch), error)
        finally:
            self._followed.discard(batch.tag)

    async def _collect(self, batch: Batch) -> None:
        while True:
            if not batch.id:
                if not await self._calls.find(batch):
                    break
                self._journal.submitted(batch)
            try:
                if (problem := await self._calls.until_it_ends(batch)) is not None:
                    await self._was_refused(batch, self._of(batch), problem)
                    return
                lines = await self._calls.lines(batch)
            except ProviderError as error:
                if error.status != NOT_FOUND:
                    raise
                if self._clock.now().timestamp() - ms_of(batch.submitted_at) / 1000 < _KEPT:
                    raise EndpointDown(
                        f"{self._name} knows no batch {batch.id}, which was submitted at "
                        f"{batch.submitted_at}, perhaps with another key: {error}"
                    ) from error
                break  # providers keep a batch for some days or weeks only
            if lines and lines.keys().isdisjoint(batch.keys):
                batch.id = ""  # it was found by time and size, and belongs to another client
                continue
            batch.is_collected = True
            self._journal.collected(batch)
            self._deal_out(batch, lines)
            return
        self._say(f"{self._calls.called(batch)}: no longer there, submitted again")
        waiting = self._of(batch)
        self._end(batch)
        self._put_back(waiting)

    def _deal_out(self, batch: Batch, lines: Mapping[str, Line]) -> None:
        self._has_room()
        answered = sum(key in lines and self._api.is_answered(lines[key]) for key in batch.keys)
        self._say(f"{self._calls.called(batch)}: ended, {answered} answered")
        self._lines[batch.tag] = dict(lines)
        for key, one in self._of(batch).items():
            if not one.done.done():
                one.done.set_result((batch, lines.get(key)))

    def _of(self, batch: Batch) -> dict[str, _Waiting]:
        """Return the requests that wait for a batch, by their keys."""
        return {
            key: self._asked[key]
            for key in batch.keys
            if key in self._asked and self._batch_of(key) is batch
        }

    def _put_back(self, waiting: Mapping[str, _Waiting]) -> None:
        """Requeue the requests of a batch that was lost or refused."""
        still = {key: one for key, one in waiting.items() if self._asked.get(key) is one}
        for key in still:
            del self._asked[key]
        self._put_in_line(still)

    def _end(self, batch: Batch) -> None:
        self._journal.end(batch)
        batch.is_over = True
        for key in batch.keys:
            if batch in self._open.get(key, ()):
                self._open[key].remove(batch)

    @staticmethod
    def _fail(waiting: Mapping[str, _Waiting], error: Exception) -> None:
        for one in waiting.values():
            if not one.done.done():
                one.done.set_exception(error)


def _bytes_of(request: ChatRequest) -> int:
    """Return the approximate size of a request in a batch, in bytes of JSON."""
    schema = "" if request.schema is None else json.dumps(reply_schema(request.schema))
    said = sum(len(json.dumps(message.content)) for message in request.messages)
    said += sum(len(one.base64) for message in request.messages for one in message.pictures)
    return said + len(schema) + _AROUND_A_PROMPT
