"""Answers requests by a provider's batches: those that come at about the same time go together.

A batch takes minutes to a day, so every step must survive the end of this process: what is
submitted is written down before and after (`Journal`), and a request that is in a batch already
waits for that one. A batch that was submitted in the moment of a kill is looked for at the provider
before anything is submitted again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from infra.chat import ChatReply, ChatRequest, OnText, StopReason
from infra.clock import Clock, ms_of
from infra.errors import EndpointDown, ErrorKind, ProviderError
from infra.layers.retry import RetryPolicy
from infra.ledger import CallRow
from infra.wire import BatchApi, Line

MOST_AT_ONCE = 500
"""Questions of a wave, unless the user says otherwise."""
LINGER = 1.0
"""Seconds without a further request after which those that wait are submitted."""
_FIRST_POLL = 1.0  # seconds after submission
_LONGEST_POLL = 60.0
_SLOWER = 1.5
_MOST_REQUESTS = 10_000
_LOST_REPLY = frozenset(
    {ErrorKind.CONNECTION, ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.BAD_BODY}
)
"""Errors after which a batch may have been made all the same."""
_GONE = 404

T = TypeVar("T")


@dataclass(slots=True)
class Batch:
    """One batch: what was, or is about to be, submitted."""

    tag: str
    """Our name for it."""
    model: str
    """Which model: `provider/name` and its address."""
    submitted_at: str
    """ISO 8601, UTC."""
    keys: tuple[str, ...]
    """Of its requests, in their order."""
    id: str = ""
    """The provider's name for it; empty until that is known."""
    spent: set[str] = field(default_factory=set)
    """Keys of requests that got an error, or half a reply: those are asked again elsewhere."""
    is_collected: bool = False
    """Whether its replies have been fetched; they can be again."""
    is_over: bool = False
    """Whether nothing further can be had from it."""


class Journal(Protocol):
    """Where batches are written down."""

    def batches(self) -> Iterable[Batch]:
        """Return those of earlier processes, oldest first."""
        ...

    def begin(self, batch: Batch) -> None:
        """Write down that a batch is about to be submitted; on the disk when this returns.

        Raises:
            StorageError: It cannot be written.
        """

    def submitted(self, batch: Batch) -> None:
        """Write down its id, likewise."""

    def spend(self, batch: Batch, key: str) -> None:
        """Write down that one of its requests will be asked again, likewise."""

    def collected(self, batch: Batch) -> None:
        """Write down that its replies have been fetched, likewise."""

    def end(self, batch: Batch) -> None:
        """Write down that it is over, likewise."""


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
        self._batching = batching
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
        self._tasks: set[asyncio.Task[None]] = set()
        self._gathering: asyncio.Task[None] | None = None
        self._came = 0.0
        self._has_replied = False

    @property
    def waiting(self) -> int:
        """Requests that wait for a batch."""
        return len(self._queue) + len(self._asked)

    @property
    def under_way(self) -> list[Batch]:
        """Batches that the provider works on."""
        batches = self._batches or []
        return [one for one in batches if one.id and not one.is_over and one.tag not in self._lines]

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; the text comes at once, when its batch has ended."""
        key, began = self._key(request), self._clock.monotonic()
        try:
            batch, line = await self._line(key, request)
        except ProviderError as error:
            self._note(request, self._clock.timestamp(), None, error.kind.value)
            raise copy(error) from None  # all that waited get the same
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
        left = []
        for batch in self.under_way:
            try:
                await self._api.cancel(batch.id)
            except ProviderError:
                left.append(batch.id)
        return left

    async def aclose(self) -> None:
        """Stop gathering and asking how batches stand; they go on at the provider."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
            self._queue[key] = waiting
            self._came = self._clock.monotonic()
            if self._gathering is None:
                self._gathering = self._do(self._gather())
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
        for batch in self._batching.journal.batches():
            if batch.model == self._identity and not batch.is_over:
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
            self._batching.journal.spend(batch, key)

    def _note(
        self, request: ChatRequest, since: str, reply: ChatReply | None, failure: str = ""
    ) -> None:
        latency = max(0.0, self._clock.now().timestamp() - ms_of(since) / 1000)
        self._book(self._row(request, reply, started_at=since, latency=latency, failure=failure))

    def _do(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- gathering and submitting ---------------------------------------------------------------

    async def _gather(self) -> None:
        """Wait until nobody asks any more, and submit what is wanted."""
        while self._clock.monotonic() - self._came < self._batching.linger:
            await self._sleep(self._batching.linger / 4)
        self._gathering = None
        waiting, self._queue = self._queue, {}
        for part in self._parts(waiting):
            self._asked |= part
            self._do(self._submit(part))

    def _parts(self, waiting: dict[str, _Waiting]) -> Iterable[dict[str, _Waiting]]:
        """Cut what waits into batches that are not too large."""
        part: dict[str, _Waiting] = {}
        size = 0
        for key, one in waiting.items():
            length = sum(len(message.content.encode()) for message in one.request.messages)
            if part and (size + length > self._api.most_bytes or len(part) >= _MOST_REQUESTS):
                yield part
                part, size = {}, 0
            part[key] = one
            size += length
        if part:
            yield part

    async def _submit(self, part: dict[str, _Waiting]) -> None:
        tag, now = uuid.uuid4().hex, self._clock.timestamp()
        batch = Batch(tag, self._identity, now, tuple(part))
        requests = {key: one.request for key, one in part.items()}
        try:
            self._batching.journal.begin(batch)
            batch.id = await self._patiently(lambda: self._create(batch, requests))
            self._followed.add(tag)
            self._take_up(batch)
            self._batching.journal.submitted(batch)
            self._batching.say(f"{self._called(batch)}: submitted as {batch.id}")
        except Exception as error:  # noqa: BLE001 - it is raised where the requests are waited for
            self._fail(part, error)
            return
        await self._follow(batch)

    async def _create(self, batch: Batch, requests: Mapping[str, ChatRequest]) -> str:
        """Submit a batch, unless an attempt whose reply was lost has done so."""
        try:
            return await self._api.submit(batch.tag, requests)
        except ProviderError as error:
            if error.kind in _LOST_REPLY and (found := await self._found(batch)):
                return found
            raise

    async def _found(self, batch: Batch) -> str:
        """Return the id of a batch whose submission had no reply; empty if there is none."""
        since = ms_of(batch.submitted_at) / 1000
        ids = await self._api.find(batch.tag, len(batch.keys), since)
        known = {one.id for one in self._batches or []}
        return next((one for one in ids if one not in known), "")

    # -- following ------------------------------------------------------------------------------

    async def _follow(self, batch: Batch) -> None:
        """Wait until a batch has ended, and give its lines to those who wait for them."""
        try:
            if not batch.id:
                batch.id = await self._patiently(lambda: self._found(batch))
                if not batch.id:
                    self._give_up(batch)
                    return
                self._batching.journal.submitted(batch)
            if (problem := await self._until_it_ends(batch)) is not None:
                waiting = self._of(batch)
                self._end(batch)
                self._fail(waiting, problem)
                return
            lines = await self._patiently(lambda: self._api.lines(batch.id, batch.keys))
            self._batching.journal.collected(batch)
        except Exception as error:  # noqa: BLE001 - it is raised where the requests are waited for
            if isinstance(error, ProviderError) and error.status == _GONE:
                self._give_up(batch)  # the provider keeps batches for some weeks only
            else:
                self._fail(self._of(batch), error)  # the batch goes on
            return
        finally:
            self._followed.discard(batch.tag)
        answered = sum(key in lines for key in batch.keys)
        self._batching.say(f"{self._called(batch)}: done, {answered} answered")
        self._lines[batch.tag] = dict(lines)
        for key, one in self._of(batch).items():
            if not one.done.done():
                one.done.set_result((batch, lines.get(key)))

    async def _until_it_ends(self, batch: Batch) -> ProviderError | None:
        """Return why the batch was not worked on at all; None if it was."""
        pause, told = _FIRST_POLL, ""
        began = ms_of(batch.submitted_at) / 1000
        while True:
            state = await self._patiently(lambda: self._api.state(batch.id))
            if state.has_ended:
                return state.problem
            minutes = (self._clock.now().timestamp() - began) / 60
            count = "" if state.answered is None else f", {state.answered} done"
            if (said := f"{state.said}{count}") != told:
                told = said
                self._batching.say(f"{self._called(batch)}: {said} after {minutes:.0f} min")
            await self._sleep(pause)
            pause = min(_LONGEST_POLL, pause * _SLOWER)

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
        for key, one in waiting.items():
            del self._asked[key]
            self._queue[key] = one
        if self._queue and self._gathering is None:
            self._gathering = self._do(self._gather())

    def _end(self, batch: Batch) -> None:
        batch.is_over = True
        for key in batch.keys:
            if batch in self._open.get(key, ()):
                self._open[key].remove(batch)
        self._batching.journal.end(batch)

    @staticmethod
    def _fail(waiting: Mapping[str, _Waiting], error: Exception) -> None:
        for one in waiting.values():
            if not one.done.done():
                one.done.set_exception(error)

    def _called(self, batch: Batch) -> str:
        return f"batch of {len(batch.keys)} calls at {self._name}"

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call at the endpoint again as long as that may help.

        Raises:
            EndpointDown: It did not help.
        """
        began, failures = self._clock.monotonic(), 0
        while True:
            try:
                result = await call()
            except ProviderError as error:
                failures += 1
                seconds = self._clock.monotonic() - began
                gives_up = not self._has_replied and failures > self._policy.max_retries
                if not error.retryable:
                    raise
                if gives_up or seconds > self._policy.timeout:
                    raise EndpointDown(f"{self._name} is out of reach: {error}") from error
                backoff = min(_LONGEST_POLL, self._policy.base * 2 ** min(failures, 20))
                await self._sleep(backoff if error.retry_after is None else error.retry_after)
            else:
                self._has_replied = True
                return result
