"""The driver's side of a cluster: workers that come and go, and what they share.

It knows nothing of what carries its messages.
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
from mdagents_llm.layers.cache import ReplyStore

_PERIOD = 0.1  # seconds between two reports of a worker
_PERIOD_PER_WORKER = 0.004  # seconds, so that a driver of many workers has time for each
_BETWEEN_DIVISIONS = 1.0  # seconds
_MESSAGES_AT_ONCE = 50  # before others have their turn
_PATIENCE = 10.0  # seconds until the user is told why nothing happens
_NO_ROOM = "waiting for the first worker: the cluster has no free CPU yet"
_LONGEST_SILENCE = 300.0  # seconds, after which a worker counts as dead: it hangs, or is cut off
_MOST_FALSE_STARTS = 3  # workers in a row that die before their first report


class WorkerLost(Exception):  # noqa: N818 - as Ray and others call it
    """A worker is no more.

    Args:
        why: On one line.
        by_itself: Whether what it was doing may be to blame; not, if its whole machine was lost.
    """

    def __init__(self, why: str, *, by_itself: bool) -> None:
        super().__init__(why)
        self.by_itself = by_itself


class Post(Protocol):
    """A worker as its driver reaches it."""

    async def greet(self) -> bytes:
        """See `Worker.greet`.

        Raises:
            WorkerLost: It is no more.
            ClusterError: The cluster is gone, or cannot be used.
        """
        ...

    async def exchange(self, message: bytes) -> bytes:
        """See `Worker.exchange`; raises as `greet` does."""
        ...

    async def close(self) -> None:
        """End the worker, if it still is."""


class PartTaker(Protocol):
    """A run in which workers take part."""

    def orders(self, worker: int) -> RunOrders | None:
        """Return what a worker is to do next in it; None: it takes no part and need not."""
        ...

    def take(self, worker: int, message: Message) -> None:
        """Take down what a worker tells of it.

        Raises:
            StorageError: It cannot be written.
        """

    def lost(self, worker: int, *, by_itself: bool) -> None:
        """Give to others what a worker had; likewise."""

    def fail(self, error: BaseException) -> None:
        """End it with an error."""


class Cluster:
    """Hires workers, and talks to each as long as it lives.

    Args:
        hire: Starts a worker. Raises WorkerLost or ClusterError.
        size: Workers at a time; who dies is replaced.
        replies: The kept replies; None: no cache.
        clock: For all times.
        say: Shows a line.
    """

    def __init__(
        self,
        hire: Callable[[], Awaitable[Post]],
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
            ClusterError: There will be none.
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
        """Workers that are there now."""
        return len(self._states)

    @property
    def load(self) -> Load:
        """How busy all of them are."""
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
        """Wait for no worker any more."""
        self._is_there.set()

    def add(self, run: PartTaker) -> int:
        """Let workers take part in a run; return its number.

        Raises:
            ClusterError: The cluster is gone.
        """
        if self._error is not None:
            raise self._error
        number = next(self._run_numbers)
        self._runs[number] = run
        return number

    def remove(self, number: int) -> None:
        """Tell no worker of a run any more."""
        del self._runs[number]

    async def _end(self) -> None:
        for task in self._attending:
            task.cancel()
        await asyncio.gather(*self._attending, return_exceptions=True)

    async def _attend(self) -> None:
        """Have a worker at all times."""
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
                "install the same on every machine, or start this one in its own folder"
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
