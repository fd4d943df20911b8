"""Batch calls at an endpoint, with retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from mdagents_llm.chat import ChatRequest
from mdagents_llm.clock import Clock, ms_of
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.layers.batch_journal import Batch
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.wire import BatchApi, Line

LONGEST_POLL = 60.0
"""Maximum seconds between two polls of a batch."""
CANCELLING = 10.0
"""Timeout in seconds of a call that cancels a batch, since the user waits for it."""
NOT_FOUND = 404
"""HTTP status of a call about a batch that the endpoint does not know."""
_FIRST_POLL = 1.0  # seconds after submission
_SLOWER = 1.5
_LOST_REPLY = frozenset(
    {ErrorKind.CONNECTION, ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.BAD_BODY}
)
"""Errors after which a batch may have been created nevertheless."""
_TELLING = 2  # consecutive failures after which a line reports them

T = TypeVar("T")


class BatchCalls:
    """Batch calls of one model, with retries that outlast a transient failure of the endpoint.

    Args:
        api: Batch API of the model.
        name: Name of the model, for messages.
        clock: Clock for timestamps and durations.
        policy: Retry policy.
        sleep: Function awaited for each pause, in seconds.
        say: Function that shows a line of progress.
        known: IDs of our own batches, over all runs of the process.
    """

    def __init__(
        self,
        api: BatchApi,
        *,
        name: str,
        clock: Clock,
        policy: RetryPolicy,
        sleep: Callable[[float], Awaitable[None]],
        say: Callable[[str], None],
        known: set[str],
    ) -> None:
        self._api = api
        self._name = name
        self._clock = clock
        self._policy = policy
        self._sleep = sleep
        self._say = say
        self._known = known
        self._finding = asyncio.Lock()
        self._has_replied = False

    def know(self, batch: Batch) -> None:
        """Note the ID of a batch as taken, so that a search does not assign it to another batch."""
        if batch.id:
            self._known.add(batch.id)

    async def submit(self, batch: Batch, requests: Mapping[str, ChatRequest]) -> None:
        """Submit requests, unless an attempt with a lost reply has done so, and set the batch's ID.

        Raises:
            ProviderError: The endpoint refused. `rate_limit` means that its queue is full.
        """
        may_be_there = False

        async def once() -> None:
            nonlocal may_be_there
            if may_be_there and await self._is_found(batch):
                return
            try:
                batch.id = await self._api.submit(batch.tag, requests)
            except ProviderError as error:
                may_be_there = error.kind in _LOST_REPLY
                raise
            self.know(batch)

        await self._patiently(once, queue_may_be_full=True)

    async def find(self, batch: Batch) -> bool:
        """Search for a batch whose submission had no reply; set its ID and return True if found.

        A batch that was found before and turned out to be another client's is not found again.
        """
        return await self._patiently(lambda: self._is_found(batch))

    async def _is_found(self, batch: Batch) -> bool:
        async with self._finding:  # two similar batches must not both take the same ID
            since = ms_of(batch.submitted_at) / 1000
            ids = await self._api.find(batch.tag, len(batch.keys), since)
            batch.id = next((one for one in ids if one not in self._known), "")
            batch.is_found = bool(batch.id)
            self.know(batch)
            return batch.is_found

    async def until_it_ends(self, batch: Batch) -> ProviderError | None:
        """Wait for the end of a batch; return the error if it failed as a whole, else None.

        Raises:
            ProviderError: A call failed; status 404 means that the batch does not exist.
        """
        pause, told = _FIRST_POLL, ""
        began = ms_of(batch.submitted_at) / 1000
        while True:
            state = await self._patiently(lambda: self._api.state(batch.id), is_there=True)
            if state.has_ended:
                return state.problem
            minutes = (self._clock.now().timestamp() - began) / 60
            count = "" if state.answered is None else f", {state.answered} done"
            if (said := f"{state.said}{count}") != told:
                told = said
                self._say(f"{self.called(batch)}: {said} after {minutes:.0f} min")
            await self._sleep(pause)
            pause = min(LONGEST_POLL, pause * _SLOWER)

    async def lines(self, batch: Batch) -> Mapping[str, Line]:
        """Return the results of a batch that has ended, by the keys of its requests.

        Raises:
            ProviderError: A call failed; status 404 means that the batch does not exist.
        """
        return await self._patiently(lambda: self._api.lines(batch.id, batch.keys), is_there=True)

    async def cancel(self, batches: Sequence[Batch]) -> list[str]:
        """Cancel batches, and return the IDs of those that continue.

        A batch that may belong to another client is not cancelled.
        """
        cancelled = await asyncio.gather(*(self._is_cancelled(batch) for batch in batches))
        return [batch.id for batch, done in zip(batches, cancelled, strict=True) if not done]

    async def _is_cancelled(self, batch: Batch) -> bool:
        if batch.is_found and not self._api.keeps_names:
            return False
        try:
            async with asyncio.timeout(CANCELLING):
                await self._api.cancel(batch.id)
        except (ProviderError, TimeoutError):
            return False
        return True

    def called(self, batch: Batch) -> str:
        """Return a description of a batch for messages."""
        return f"batch of {len(batch.keys)} calls at {self._name}"

    async def _patiently(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        queue_may_be_full: bool = False,
        is_there: bool = False,
    ) -> T:
        """Make a call, and retry it as long as that may help.

        Args:
            call: Call at the endpoint.
            queue_may_be_full: Whether a rate limit without a pause, or one that persists, is left
                to the caller.
            is_there: Whether the call is about a batch that the endpoint has created, so that "no
                such batch" may be transient.

        Raises:
            ProviderError: A retry cannot help.
            EndpointDown: The retries did not help.
        """
        began, failures, most = self._clock.monotonic(), 0, self._policy.max_retries
        while True:
            try:
                result = await call()
            except ProviderError as error:
                failures += 1
                is_limit = error.kind is ErrorKind.RATE_LIMIT
                if queue_may_be_full and is_limit and (not error.retry_after or failures > most):
                    raise
                is_missing = is_there and error.status == NOT_FOUND and failures <= most
                if not (error.retryable or is_missing):
                    raise
                seconds = self._clock.monotonic() - began
                gives_up = not self._has_replied and not is_limit and failures > most
                if gives_up or seconds > self._policy.timeout:
                    raise EndpointDown(f"{self._name} is out of reach: {error}") from error
                if failures == _TELLING:
                    self._say(f"{self._name} says nothing of its batches ({error}); asked again")
                backoff = min(LONGEST_POLL, self._policy.base * 2 ** min(failures, 20))
                await self._sleep(max(backoff, error.retry_after or 0.0))
            else:
                self._has_replied = True
                return result
