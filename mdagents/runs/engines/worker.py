"""A worker of a cluster: takes part in runs, with models and connections of its own.

It knows nothing of what carries its messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import platform
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import mdagents
from mdagents.agents.case import make_case_id
from mdagents.agents.feed import Event
from mdagents.datasets.questions import SourceQuestion
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.collector import spare_the_collector
from mdagents.runs.engines.claims import Found
from mdagents.runs.engines.engine import Outcome, Places, Recorded, Task, Work
from mdagents.runs.engines.local import local_engine
from mdagents.runs.engines.messages import (
    Decided,
    Ended,
    Greeting,
    Message,
    Opening,
    Orders,
    Postponed,
    Report,
    Returned,
    RunOrders,
    Start,
    Summaries,
    Told,
    packed,
    unpacked,
)
from mdagents.runs.engines.runner import Runner
from mdagents.runs.engines.shares import EndpointState, Share
from mdagents.runs.models import make_runtime
from mdagents.runs.solver import Solver
from mdagents.teams.own_method import name_of
from mdagents_llm.chat import ChatReply
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment, parse_environment
from mdagents_llm.endpoints import Endpoints
from mdagents_llm.errors import BenchError, ConfigError, LimitExceeded, ProviderError
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.layers.gate import Connections
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.model_configs import LOCAL

if TYPE_CHECKING:
    from exaid_core.trace.traces import Trace

_PACKAGES = ("exaid_core", "mdagents_llm", "mdagents")
_SOURCES = (".py", ".txt", ".yaml")
_OF_A_PERIOD_IF_URGENT = 0.25
_PERIODS_WITHOUT_NEWS = 2


def home() -> str:
    """Return the folder that this program is in."""
    return str(Path(mdagents.__file__).parents[1])


@cache
def code_digest() -> str:
    """Return the SHA-256 of this program's source code and prompts."""
    digest = hashlib.sha256()
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None, "they are what runs"
        for root in spec.submodule_search_locations or ():
            for path in sorted(Path(root).rglob("*")):
                if path.suffix in _SOURCES:
                    digest.update(str(path.relative_to(root)).encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()


class Worker:
    """Takes part in the runs that its driver tells it of.

    Args:
        start: See there, as bytes.
    """

    def __init__(self, start: bytes) -> None:
        made: Start = unpacked(start)
        # Weights of a local model are where this machine has them.
        own = {name: value for name, value in os.environ.items() if name == "MDAGENTS_CACHE_DIR"}
        cache_dir = parse_environment(own).cache_dir
        self._environment = replace(made.environment, cache_dir=cache_dir)
        self._outbox = Outbox()
        self._replies = RemoteReplies(self._outbox)
        self._endpoints: Endpoints | None = None
        self._shared: dict[str, int] = {}  # endpoint -> calls that all workers may make at once
        self._places: dict[str, Places] = {}
        self._runs: dict[int, _PartOfRun] = {}

    async def greet(self) -> bytes:
        """Return who this is."""
        return packed(Greeting(code_digest(), mdagents.__version__, platform.node(), home()))

    async def exchange(self, message: bytes) -> bytes:
        """Obey orders, and report when something has happened, or after a while."""
        orders: Orders = unpacked(message)
        self._replies.found(orders.found)
        for number, of_run in orders.runs.items():
            if of_run.opening is not None:
                self._runs[number] = self._take_part(number, of_run.opening)
            self._runs[number].obey(of_run)
        for endpoint, share in orders.shares.items():
            self._use(endpoint, share)
        await self._outbox.until_due(orders.period)
        return packed(self._report())

    async def close(self) -> None:
        """End all runs, and close all connections."""
        for part in self._runs.values():
            await part.stop()
        if self._endpoints is not None:
            await self._endpoints.aclose()

    def _take_part(self, number: int, opening: Opening) -> _PartOfRun:
        config, environment = opening.config, self._environment
        if self._endpoints is None:
            self._endpoints = Endpoints(make_runtime(config, environment, Ledger(), Clock()))
        places = self._places.setdefault(opening.endpoint, Places(opening.places))
        tell = partial(self._outbox.tell, number)
        part = _PartOfRun(opening, environment, self._endpoints, self._replies, places, tell)
        part.begin(on_open=self._wait_for_shares)
        return part

    def _wait_for_shares(self) -> None:
        """Let no call out at an endpoint that others use, too, before there is a share of it."""
        for name, connections in self._connections():
            if name not in self._shared and not _is_own(name):
                self._shared[name] = connections.limit
                connections.share(0, connections.limit)

    def _use(self, endpoint: str, share: Share) -> None:
        for name, connections in self._connections():
            if name == endpoint:
                connections.share(share.limit, share.of)
                if share.cooling:
                    connections.cool_down(share.cooling)

    def _connections(self) -> Iterator[tuple[str, Connections]]:
        if self._endpoints is not None:
            yield from self._endpoints.connections.items()

    def _report(self) -> Report:
        report = self._outbox.emptied()
        states = {name: self._state(name, c) for name, c in self._connections()}
        report.endpoints = {name: states[name] for name in self._shared}
        report.own_endpoints = {n: state for n, state in states.items() if n not in self._shared}
        return report

    def _state(self, name: str, connections: Connections) -> EndpointState:
        return EndpointState(
            most=self._shared.get(name, connections.limit),
            in_flight=connections.in_flight,
            waiting=connections.waiting,
            cooling=connections.cooling(),
            storms=connections.storms,
        )


def _is_own(endpoint: str) -> bool:
    """Return whether an endpoint is a server of this worker: a local model."""
    return endpoint.startswith(f"{LOCAL}/")


class Outbox:
    """What the driver is to be told next."""

    def __init__(self) -> None:
        self._messages: list[tuple[int, Message]] = []
        self._kept: list[tuple[str, ChatReply | ProviderError]] = []
        self._released: list[str] = []
        self._lookups: list[tuple[int, str]] = []
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()

    def tell(self, run: int, message: Message) -> None:
        """Tell what has happened in a run."""
        self._messages.append((run, message))
        self._news.set()
        if isinstance(message, Ended):
            self._urgent.set()

    def keep(self, key: str, kept: ChatReply | ProviderError) -> None:
        """Hand over a reply, or an error, to be kept."""
        self._kept.append((key, kept))
        self._news.set()

    def release(self, key: str) -> None:
        """Let others ask."""
        self._released.append(key)
        self._news.set()

    def look_up(self, lookup: int, key: str) -> None:
        """Ask for a kept reply."""
        self._lookups.append((lookup, key))
        self._news.set()
        self._urgent.set()

    async def until_due(self, period: float) -> None:
        """Wait until it is time to report.

        Args:
            period: Seconds between two reports, where nothing is urgent.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PERIODS_WITHOUT_NEWS * period):
                await self._news.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout((1 - _OF_A_PERIOD_IF_URGENT) * period):
                await self._urgent.wait()
        # What is urgent mostly comes with more of it.
        await asyncio.sleep(_OF_A_PERIOD_IF_URGENT * period)

    def emptied(self) -> Report:
        """Return what has gathered, and begin anew."""
        self._news.clear()
        self._urgent.clear()
        report = Report(self._messages, self._kept, self._released, self._lookups)
        self._messages, self._kept, self._released, self._lookups = [], [], [], []
        return report


class RemoteReplies:
    """The kept replies, which the driver of the cluster has; see `Replies`.

    Args:
        outbox: To the driver.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._numbers = count(1)
        self._asking: dict[str, asyncio.Future[None]] = {}
        self._looked_up: dict[int, asyncio.Future[ChatReply | None]] = {}

    async def claim(self, key: str) -> ChatReply | None:
        """See `Replies`."""
        while (asking := self._asking.get(key)) is not None:
            await asyncio.shield(asking)
        loop = asyncio.get_running_loop()
        self._asking[key] = loop.create_future()
        number = next(self._numbers)
        self._looked_up[number] = loop.create_future()
        self._outbox.look_up(number, key)
        try:
            reply = await self._looked_up[number]
        except BaseException:
            self.release(key)
            raise
        finally:
            del self._looked_up[number]
        if reply is not None:
            self._asking.pop(key).set_result(None)
        return reply

    def put(self, key: str, reply: ChatReply) -> None:
        """See `Replies`; it is written when the driver has it."""
        self._outbox.keep(key, reply)

    def put_error(self, key: str, error: ProviderError) -> None:
        """See `Replies`; likewise."""
        self._outbox.keep(key, error)

    def release(self, key: str) -> None:
        """See `Replies`."""
        self._asking.pop(key).set_result(None)
        self._outbox.release(key)

    def found(self, answers: Iterable[Found]) -> None:
        """Hand over what the driver has found."""
        for number, reply in answers:
            waiting = self._looked_up.get(number)  # none, if it was cancelled
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)


class _PartOfRun:
    """What a worker does in one run; also the desk of its engine.

    Args:
        opening: Of the run.
        environment: Keys and endpoints.
        endpoints: Those of all runs.
        replies: Those of all runs; not used without a cache.
        places: How many questions are under way, in all runs that share an endpoint.
        tell: Tells the driver.
    """

    recorded: Path | None = None  # replays need no cluster

    def __init__(
        self,
        opening: Opening,
        environment: Environment,
        endpoints: Endpoints,
        replies: RemoteReplies,
        places: Places,
        tell: Callable[[Message], None],
    ) -> None:
        self._opening = opening
        self._environment = environment
        self._endpoints = endpoints
        self._replies = replies
        self._places = places
        self._tell = tell
        self._work = Work(is_complete=False)
        self._sources: dict[ItemKey, SourceQuestion] = {}
        self._over = ""
        self._ends_as: Outcome | None = None
        self._interrupts = 0
        self._runner: Runner | None = None
        self._task: asyncio.Task[None] | None = None
        self._given: list[ItemKey] = []  # decided questions, from before there was a runner
        self.files = _Parcels()
        self.policy = opening.policy
        self.watchers: Sequence[Callable[[ItemKey, Event], None]] = (self._happened,)

    def begin(self, on_open: Callable[[], None]) -> None:
        """Begin; `on_open` is called as soon as its endpoints are known."""
        self._task = asyncio.get_running_loop().create_task(self._take_part(on_open))

    def obey(self, orders: RunOrders) -> None:
        """Do what the driver says; tell what cannot be done, as the run has ended here."""
        has_ended = self._task is None or self._task.done()
        for item, source in orders.leases:
            if has_ended:
                self._tell(Returned(item.key))
            else:
                self._sources[item.key] = source
        if not has_ended:
            self._work.add(item for item, _ in orders.leases)
        for key, trace, log in orders.traces:
            if has_ended:
                self._tell(Postponed(key))
                continue
            self.files.give(make_case_id(*key), trace, log)
            if self._runner is None:
                self._given.append(key)
            else:
                self._runner.take_up(key, attempt=1)
        self._over, self._ends_as = orders.over, orders.ends_as
        if self._ends_as is not None or orders.interrupts:
            self._work.cut()
        elif orders.is_complete:
            self._work.complete()
        if self._runner is not None:
            self._hurry(self._runner, orders.interrupts - self._interrupts)
        self._interrupts = orders.interrupts

    async def stop(self) -> None:
        """End it now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def booked(self, row: CallRow) -> None:
        """See `Desk`."""
        self._tell(row)

    def decided(self, record: SampleRecord) -> Recorded:
        """See `Desk`; the driver knows which answer to the question this is."""
        key = record.question_id, record.epoch
        self._sources.pop(key, None)
        files, case_id = self.files, record.case_id
        self._tell(Decided(record, files.traces.pop(case_id, None), files.logs.pop(case_id, None)))
        return Recorded(attempt=1)

    def summarised(self, made: CaseSummaries) -> None:
        """See `Desk`."""
        self._tell(Summaries(made, self.files.logs.pop(made.case_id, None)))

    def restarted(self, item: ItemKey) -> None:
        """See `Desk`; the driver alone knows of it."""

    async def _take_part(self, on_open: Callable[[], None]) -> None:
        try:
            self._tell(Ended(await self._answer(on_open)))
        except BenchError as error:
            self._tell(Ended(error=error))
        except Exception:  # noqa: BLE001 - an error of the program is shown by the driver
            self._tell(Ended(fault=traceback.format_exc()))

    async def _answer(self, on_open: Callable[[], None]) -> Outcome:
        opening, ledger = self._opening, Ledger()
        config = opening.config
        task = Task(
            config=config,
            specs=opening.specs,
            solver=_solver(opening),
            name=opening.name,
            model=opening.model,
            revision=opening.revision,
            load=lambda item: self._sources[item.key],
            check_spent=self._check_spent,
        )
        runtime = make_runtime(
            config,
            self._environment,
            ledger,
            Clock(),
            replies=None if config.cache is CacheMode.OFF else self._replies,
            on_wait=self._tell,
            may_send=self._check_spent,
        )
        async with local_engine(task, runtime, self._endpoints, self._postpone, on_open) as engine:
            with ledger.subscribed(self.booked):
                runner = self._runner = engine.answering(self)
                spare_the_collector()
                for key in self._given:
                    runner.take_up(key, attempt=1)
                self._hurry(runner, self._interrupts)
                return await runner.work_through(self._work, self._places)

    def _hurry(self, runner: Runner, interrupts: int) -> None:
        if self._ends_as is not None:
            runner.end(self._ends_as)
        for _ in range(interrupts):
            runner.interrupt()

    def _postpone(self, item: ItemKey, attempt: int) -> None:
        self._tell(Postponed(item))

    def _happened(self, item: ItemKey, event: Event) -> None:
        self._tell(Told(item, event))

    def _check_spent(self) -> None:
        if self._over:
            raise LimitExceeded(self._over)


class _Parcels:
    """The files of cases, as bytes on their way; see `CaseFiles`."""

    def __init__(self) -> None:
        self.traces: dict[str, bytes] = {}
        """To the driver; likewise the next."""
        self.logs: dict[str, bytes] = {}
        self._given: dict[str, tuple[bytes, bytes | None]] = {}

    def give(self, case_id: str, trace: bytes, log: bytes | None) -> None:
        """Keep what the driver has of a case that was decided elsewhere."""
        self._given[case_id] = trace, log

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """See `CaseFiles`."""
        self.traces[case_id] = content

    def keep_log(self, case_id: str, content: bytes) -> None:
        """See `CaseFiles`."""
        self.logs[case_id] = content

    def log(self, case_id: str) -> bytes | None:
        """See `CaseFiles`."""
        return self._given.pop(case_id)[1]

    def content(self, case_id: str) -> bytes:
        """See `CaseFiles`."""
        return self._given[case_id][0]

    def trace(self, case_id: str) -> Trace:
        """See `CaseFiles`."""
        from exaid_core.trace.traces import read_trace

        return read_trace(Path(f"{case_id}.trace.jsonl.gz"), self.content(case_id))


def _solver(opening: Opening) -> Solver:
    """Return what answers the questions of a run.

    Raises:
        ConfigError: A method of the user's own cannot be used here.
    """
    config = opening.config
    if opening.exemplars is not None:
        return Solver(config, exemplars=opening.exemplars)
    if opening.own_source is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name_of(config.method)}.py"
            path.write_bytes(opening.own_source)
            solver = Solver(config.model_copy(update={"method": str(path)}))
    else:
        solver = Solver(config)
    method = solver.method
    if method is not None and method.source_sha256 != opening.source_sha256:
        raise ConfigError(
            f"--method {config.method} is not the same code on {platform.node()}; install the same "
            "on every machine, or give it as one file.py"
        )
    return solver
