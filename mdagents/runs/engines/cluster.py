"""The driver's side of a cluster: workers that come and go, and the resources they share.

This module does not depend on the transport of its messages.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import count
from types import TracebackType
from typing import Protocol

import mdagents
from mdagents.agents.case import first_of
from mdagents.runs.engines.claims import Claims
from mdagents.runs.engines.engine import Load
from mdagents.runs.engines.messages import (
    Greeting,
    Message,
    Orders,
    Report,
    RunOrders,
    packed,
    unpacked,
)
from mdagents.runs.engines.shares import EndpointState, Share, Shares
from mdagents.runs.engines.worker import code_digest, home
from mdagents_llm.clock import Clock
from mdagents_llm.errors import BenchError, ClusterError
from mdagents_llm.layers.reply_store import ReplyStore

_PERIOD = 0.1  # seconds between two reports of a worker
_PERIOD_PER_WORKER = 0.004  # seconds, so that a driver with many workers has time for each
_BETWEEN_DIVISIONS = 1.0  # seconds
_MESSAGES_AT_ONCE = 50  # before yielding to other tasks
_PATIENCE = 10.0  # seconds before the user sees why nothing happens
_NO_ROOM = "waiting for the first worker: no CPU is free yet"
_LONGEST_SILENCE = 300.0  # seconds before a silent worker counts as dead: it hangs or is cut off
_MOST_FALSE_STARTS = 3  # workers in a row that die before their first report


class WorkerLost(Exception):  # noqa: N818 - as Ray and others call it
    """A worker died.

    Args:
        why: Reason, on one line.
        by_itself: Whether the question it was answering may be to blame; False if its whole machine
            was lost.
    """

    def __init__(self, why: str, *, by_itself: bool) -> None:
        super().__init__(why)
        self.by_itself = by_itself


class Post(Protocol):
    """Connection of the driver to one worker."""

    async def greet(self) -> bytes:
        """Return the worker's packed `Greeting`.

        Raises:
            WorkerLost: The worker died.
            ClusterError: The cluster is gone or cannot be used.
        """
        ...

    async def exchange(self, message: bytes) -> bytes:
        """Send packed `Orders` and return the packed `Report`.

        Raises:
            WorkerLost: The worker died.
            ClusterError: The cluster is gone or cannot be used.
        """
        ...

    async def close(self) -> None:
        """Stop the worker if it is still alive."""


Hire = Callable[[], Awaitable[Post]]
"""Starts a worker. Raises WorkerLost or ClusterError."""


class PartTaker(Protocol):
    """A run in which workers take part."""

    def orders(self, worker: int) -> RunOrders | None:
        """Return a worker's next orders; None: it is not part of the run and is not needed."""
        ...

    def take(self, worker: int, message: Message) -> None:
        """Record a message of a worker.

        Raises:
            StorageError: The message cannot be written.
        """

    async def synced(self) -> None:
        """Wait until everything that was taken survives a power failure.

        Raises:
            StorageError: The disk does not take it.
        """

    def lost(self, worker: int, *, by_itself: bool) -> None:
        """Reclaim the leases and traces of a worker that died.

        Raises:
            StorageError: The change cannot be written.
        """

    def fail(self, error: BaseException) -> None:
        """End the run with an error."""


class Cluster:
    """Starts workers and exchanges messages with each until it dies.

    Args:
        hire: Starts a worker.
        size: Number of workers at a time; a worker that dies is replaced.
        replies: Cached replies; None: no cache.
        clock: Clock for all times.
        say: Shows a line to the user.
    """

    def __init__(
        self,
        hire: Hire,
        size: int,
        replies: ReplyStore | None,
        clock: Clock,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.size = size
        self._say = say
        self._hire = hire
        self._clock = clock
        self._claims = None if replies is None else Claims(replies)
        self._shares: defaultdict[str, Shares] = defaultdict(Shares)
        self._states: dict[int, dict[str, EndpointState]] = {}
        self._divided_at = float("-inf")
        self._numbers, self._run_numbers = count(1), count(1)
        self._runs: dict[int, PartTaker] = {}
        self._attending: list[asyncio.Task[None]] = []
        self._is_there = asyncio.Event()
        self._false_starts = 0
        self._error: BaseException | None = None

    async def __aenter__(self) -> Cluster:
        """Wait for the first worker.

        Raises:
            ClusterError: No worker can be started.
        """
        loop = asyncio.get_running_loop()
        self._attending = [loop.create_task(self._attend()) for _ in range(self.size)]
        patience = loop.call_later(_PATIENCE, self._say, _NO_ROOM)
        try:
            await self._is_there.wait()
        except BaseException:
            await self._end()
            raise
        finally:
            patience.cancel()
        if self._error is not None:
            await self._end()
            raise self._error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    @property
    def at_work(self) -> int:
        """Number of workers that are alive."""
        return len(self._states)

    @property
    def load(self) -> Load:
        """Load of all workers together."""
        states = [state for of_worker in self._states.values() for state in of_worker.values()]
        most = {
            name: s.most for of_worker in self._states.values() for name, s in of_worker.items()
        }
        return Load(
            under_way=sum(state.in_flight for state in states),
            allowed=sum(most.values()),
            queued=sum(state.waiting for state in states),
            cooling=max([state.cooling for state in states], default=0.0),
        )

    def interrupt(self) -> None:
        """Stop waiting for the first worker."""
        self._is_there.set()

    def add(self, run: PartTaker) -> int:
        """Let workers take part in a run, and return its number.

        Raises:
            ClusterError: The cluster is gone.
        """
        if self._error is not None:
            raise self._error
        number = next(self._run_numbers)
        self._runs[number] = run
        return number

    def remove(self, number: int) -> None:
        """Stop sending orders for a run."""
        del self._runs[number]

    async def _end(self) -> None:
        for task in self._attending:
            task.cancel()
        await asyncio.gather(*self._attending, return_exceptions=True)

    async def _attend(self) -> None:
        """Keep one worker alive, replacing it whenever it dies."""
        try:
            while True:
                await self._have_one()
        except Exception as error:  # noqa: BLE001 - whoever waits for a worker is told
            self._error = first_of(error)
            self._is_there.set()
            for run in tuple(self._runs.values()):
                run.fail(self._error)

    async def _have_one(self) -> None:
        number = next(self._numbers)
        try:
            post = await self._hire()
            try:
                self._check(unpacked(await post.greet()))
                self._states[number] = {}
                self._is_there.set()
                await self._converse(number, post)
            finally:
                await post.close()
        except WorkerLost as lost:
            self._lost(number, by_itself=lost.by_itself)
            self._false_starts += 1
            if self._false_starts >= _MOST_FALSE_STARTS:
                raise ClusterError(f"workers die as soon as they are started: {lost}") from lost

    @staticmethod
    def _check(greeting: Greeting) -> None:
        if greeting.code != code_digest():
            raise ClusterError(
                f"the program that workers find on {greeting.host} ({greeting.folder}, version "
                f"{greeting.version}) is another one than this ({home()}, {mdagents.__version__}); "
                "install the same on every machine; if this one was changed during the run, repeat "
                "the command"
            )

    async def _converse(self, number: int, post: Post) -> None:
        while True:
            orders = packed(self._orders(number))
            try:
                async with asyncio.timeout(_LONGEST_SILENCE):
                    report: Report = unpacked(await post.exchange(orders))
            except TimeoutError:
                why = f"it has not answered for {_LONGEST_SILENCE:g} s"
                raise WorkerLost(why, by_itself=True) from None
            self._false_starts = 0
            await self._take(number, report)

    def _orders(self, worker: int) -> Orders:
        now = self._clock.monotonic()
        if now - self._divided_at >= _BETWEEN_DIVISIONS:
            self._divided_at = now
            for shares in self._shares.values():
                shares.divide()
        orders = Orders(
            period=max(_PERIOD, _PERIOD_PER_WORKER * self.size),
            shares={name: self._share(name, worker, now) for name in self._known(worker)},
            found=[] if self._claims is None else self._claims.found(worker),
        )
        for number, run in tuple(self._runs.items()):
            try:
                of_run = run.orders(worker)
            except BenchError as error:
                run.fail(error)
                continue
            if of_run is not None:
                orders.runs[number] = of_run
        return orders

    def _known(self, worker: int) -> list[str]:
        """Return the endpoints that a worker shares with others."""
        return [name for name, shares in self._shares.items() if worker in shares]

    def _share(self, endpoint: str, worker: int, now: float) -> Share:
        return self._shares[endpoint].of(worker, now)

    async def _take(self, worker: int, report: Report) -> None:
        now = self._clock.monotonic()
        self._states[worker] = {**report.endpoints, **report.own_endpoints}
        for name, state in report.endpoints.items():
            self._shares[name].told(worker, state, now)
        self._take_replies(worker, report)
        for place, (number, message) in enumerate(report.messages, start=1):
            run = self._runs.get(number)
            if run is not None:  # else it was given up
                try:
                    run.take(worker, message)
                except BenchError as error:
                    run.fail(error)
            if place % _MESSAGES_AT_ONCE == 0:
                await asyncio.sleep(0)
        for number in {number for number, _ in report.messages} & self._runs.keys():
            run = self._runs[number]
            try:
                await run.synced()
            except BenchError as error:
                run.fail(error)

    def _take_replies(self, worker: int, report: Report) -> None:
        if self._claims is None:
            return
        try:
            for key, kept in report.kept:
                self._claims.keep(key, kept)
        except BenchError as error:
            for run in tuple(self._runs.values()):
                run.fail(error)
        for key in report.released:
            self._claims.release(worker, key)
        for lookup, key in report.lookups:
            self._claims.look_up(worker, lookup, key)

    def _lost(self, worker: int, *, by_itself: bool) -> None:
        self._states.pop(worker, None)
        for shares in self._shares.values():
            shares.leave(worker)
        if self._claims is not None:
            self._claims.lost(worker)
        for run in tuple(self._runs.values()):
            try:
                run.lost(worker, by_itself=by_itself)
            except BenchError as error:
                run.fail(error)
