"""A worker of a cluster: takes part in runs, with its own models and connections.

This module does not depend on the transport of its messages.
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
from mdagents.agents.events import Event, Started
from mdagents.datasets.questions import Question
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.runs.budget import Budget
from mdagents.runs.engines.claims import Found
from mdagents.runs.engines.engine import Item, Places, Recorded, Task, Watch, Work
from mdagents.runs.engines.local import local_engine
from mdagents.runs.engines.messages import (
    Decided,
    Ended,
    Greeting,
    Lease,
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
from mdagents.runs.memory import settle_memory
from mdagents.runs.models import make_runtime
from mdagents.runs.solver import Solver
from mdagents.settings import Outcome
from mdagents.teams.names import name_of
from mdagents_llm.chat import ChatReply
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment, parse_environment
from mdagents_llm.endpoints import Endpoints
from mdagents_llm.errors import BenchError, ConfigError, ProviderError
from mdagents_llm.files.matching import matching
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.layers.gate import Connections
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.model_configs import LOCAL
from mdagents_llm.pictures import Picture

if TYPE_CHECKING:
    from exaid_core.trace.traces import Trace

_PACKAGES = ("exaid_core", "mdagents_llm", "mdagents")
_SOURCES = (".py", ".txt", ".yaml")
_OF_A_PERIOD_IF_URGENT = 0.25
_PERIODS_WITHOUT_NEWS = 2


def home() -> str:
    """Return the folder of this program."""
    return str(Path(mdagents.__file__).parents[1])


@cache
def code_digest() -> str:
    """Return the SHA-256 of this program's source code and prompts."""
    digest = hashlib.sha256()
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None, "they are what runs"
        for root in spec.submodule_search_locations or ():
            for path in matching(Path(root), "**/*"):
                if path.suffix in _SOURCES:
                    digest.update(str(path.relative_to(root)).encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()


class Worker:
    """Takes part in the runs for which its driver sends orders.

    Args:
        start: A pickled `Start` message.
    """

    def __init__(self, start: bytes) -> None:
        made: Start = unpacked(start)
        # Each machine has its own folder for the weights of local models.
        own = {name: value for name, value in os.environ.items() if name == "MDAGENTS_CACHE_DIR"}
        cache_dir = parse_environment(own).cache_dir
        self._environment = replace(made.environment, cache_dir=cache_dir)
        self._outbox = Outbox()
        self._replies = RemoteReplies(self._outbox)
        self._endpoints: Endpoints | None = None
        self._shared: dict[str, int] = {}  # endpoint -> maximum calls in progress of all workers
        self._places: dict[str, Places] = {}
        self._runs: dict[int, _PartOfRun] = {}

    async def greet(self) -> bytes:
        """Return the worker's packed `Greeting`."""
        return packed(Greeting(code_digest(), mdagents.__version__, platform.node(), home()))

    async def exchange(self, message: bytes) -> bytes:
        """Obey packed orders, and return a packed report when something has happened or is due."""
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
        """End all runs and close all connections."""
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
        """Hold back all calls to a shared endpoint until this worker has a share of it."""
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
    """Return whether an endpoint is a server of this worker, that is, a local model."""
    return endpoint.startswith(f"{LOCAL}/")


class Outbox:
    """Collects the news for the next report to the driver."""

    def __init__(self) -> None:
        self._messages: list[tuple[int, Message]] = []
        self._kept: list[tuple[str, ChatReply | ProviderError]] = []
        self._released: list[str] = []
        self._lookups: list[tuple[int, str]] = []
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()

    def tell(self, run: int, message: Message) -> None:
        """Add a message about a run."""
        self._messages.append((run, message))
        self._news.set()
        if isinstance(message, Ended):
            self._urgent.set()

    def keep(self, key: str, kept: ChatReply | ProviderError) -> None:
        """Add a reply, or an error, for the driver to cache."""
        self._kept.append((key, kept))
        self._news.set()

    def release(self, key: str) -> None:
        """Release the claim on a key, so that others can send the request."""
        self._released.append(key)
        self._news.set()

    def look_up(self, lookup: int, key: str) -> None:
        """Look up a cached reply at the driver."""
        self._lookups.append((lookup, key))
        self._news.set()
        self._urgent.set()

    async def until_due(self, period: float) -> None:
        """Wait until a report is due.

        Args:
            period: Seconds between two reports when nothing is urgent.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PERIODS_WITHOUT_NEWS * period):
                await self._news.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout((1 - _OF_A_PERIOD_IF_URGENT) * period):
                await self._urgent.wait()
        # Urgent news mostly comes in groups.
        await asyncio.sleep(_OF_A_PERIOD_IF_URGENT * period)

    def emptied(self) -> Report:
        """Return the collected news, and start an empty report."""
        self._news.clear()
        self._urgent.clear()
        report = Report(self._messages, self._kept, self._released, self._lookups)
        self._messages, self._kept, self._released, self._lookups = [], [], [], []
        return report


class RemoteReplies:
    """The reply cache, which is at the driver of the cluster; implements `Replies`.

    Args:
        outbox: Outbox for messages to the driver.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._numbers = count(1)
        self._asking: dict[str, asyncio.Future[None]] = {}
        self._looked_up: dict[int, asyncio.Future[ChatReply | None]] = {}

    async def claim(self, key: str) -> ChatReply | None:
        """Return a cached reply; None: the caller sends the request and then releases the key."""
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
        """Cache a reply; it is written when the driver receives it."""
        self._outbox.keep(key, reply)

    def put_error(self, key: str, error: ProviderError) -> None:
        """Cache the error in which a request ended; it is written when the driver receives it."""
        self._outbox.keep(key, error)

    def release(self, key: str) -> None:
        """Release the claim on a key."""
        self._asking.pop(key).set_result(None)
        self._outbox.release(key)

    def found(self, answers: Iterable[Found]) -> None:
        """Pass on the driver's answers to lookups."""
        for number, reply in answers:
            waiting = self._looked_up.get(number)  # None if the lookup was cancelled
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)


class _PartOfRun:
    """A worker's part in one run; also the `Recorder` of its engine.

    Args:
        opening: Description of the run.
        environment: API keys and endpoints.
        endpoints: Endpoints of all runs of the worker.
        replies: Reply cache of all runs of the worker; not used when the cache is off.
        places: Limit on the questions in progress, across all runs that share an endpoint.
        tell: Sends a message to the driver.
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
        self._leases: dict[ItemKey, Lease] = {}
        self._budget = Budget()
        self._replied: set[str] = set()
        self._ends_as: Outcome | None = None
        self._interrupts = 0
        self._runner: Runner | None = None
        self._task: asyncio.Task[None] | None = None
        self._given: list[ItemKey] = []  # decided questions that arrived before the runner existed
        self.files = _Parcels()
        self.policy = opening.policy
        self.watchers: Sequence[Watch] = (self._happened,)

    def begin(self, on_open: Callable[[], None]) -> None:
        """Start; `on_open` is called as soon as the endpoints are known."""
        self._task = asyncio.get_running_loop().create_task(self._take_part(on_open))

    def obey(self, orders: RunOrders) -> None:
        """Obey the driver's orders; return those that come after the run has ended here."""
        has_ended = self._task is None or self._task.done()
        for lease in orders.leases:
            if has_ended:
                self._tell(Returned(lease.item.key))
            else:
                self._leases[lease.item.key] = lease
        if not has_ended:
            self._work.add(lease.item for lease in orders.leases)
        for key, trace, log in orders.traces:
            if has_ended:
                self._tell(Postponed(key))
                continue
            self.files.give(make_case_id(*key), trace, log)
            if self._runner is None:
                self._given.append(key)
            else:
                self._runner.take_up(key, attempt=1)
        self._replied.update(orders.replied)
        self._budget.exhaust(orders.over)
        self._ends_as = orders.ends_as
        if self._ends_as is not None or orders.interrupts:
            self._work.cut()
        elif orders.is_complete:
            self._work.complete()
        if self._runner is not None:
            self._hurry(self._runner, orders.interrupts - self._interrupts)
        self._interrupts = orders.interrupts

    async def stop(self) -> None:
        """Stop the part of the run now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def pictures_of(self, item: Item, question: Question) -> tuple[Picture, ...]:
        """Return the pictures of a question, which the driver has prepared in their order."""
        return tuple(self._leases[item.key].pictures)

    def booked(self, row: CallRow) -> None:
        """Send a ledger row to the driver."""
        self._tell(row)

    def decided(self, record: SampleRecord) -> Recorded:
        """Send a record to the driver, which knows the number of the answer."""
        key = record.question_id, record.epoch
        self._leases.pop(key, None)
        files, case_id = self.files, record.case_id
        self._tell(Decided(record, files.traces.pop(case_id, None), files.logs.pop(case_id, None)))
        return Recorded(attempt=1)

    async def synced(self) -> None:
        """Do nothing: the driver writes the records."""

    def summarised(self, made: CaseSummaries) -> None:
        """Send EXAID's results to the driver."""
        self._tell(Summaries(made, self.files.logs.pop(made.case_id, None)))

    def restarted(self, item: ItemKey) -> None:
        """Do nothing: only the driver restarts questions."""

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
            load=lambda item: self._leases[item.key].source,
            budget=self._budget,
        )
        runtime = make_runtime(
            config,
            self._environment,
            ledger,
            Clock(),
            replies=None if config.cache is CacheMode.OFF else self._replies,
            on_wait=self._tell,
            may_send=self._budget.check if opening.is_limited else None,
        )
        runtime.replied = self._replied
        async with local_engine(task, runtime, self._endpoints, self._postpone, on_open) as engine:
            with ledger.subscribed(self.booked):
                runner = self._runner = engine.answering(self)
                settle_memory()
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

    def _happened(self, item: ItemKey, event: Event, at_ms: int) -> None:
        if isinstance(event, Started):
            event = event.without_content()
        self._tell(Told(item, event, at_ms))


class _Parcels:
    """Files of cases as bytes in transit; implements `CaseFiles`."""

    def __init__(self) -> None:
        self.traces: dict[str, bytes] = {}
        """Case id -> content of its trace, for the driver."""
        self.logs: dict[str, bytes] = {}
        """Case id -> content of EXAID's log, for the driver."""
        self._given: dict[str, tuple[bytes, bytes | None]] = {}

    def give(self, case_id: str, trace: bytes, log: bytes | None) -> None:
        """Store the driver's files of a case that was decided elsewhere."""
        self._given[case_id] = trace, log

    @property
    def are_quick(self) -> bool:
        """Return that nothing waits for a disk."""
        return True

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """Store a trace for the driver."""
        self.traces[case_id] = content

    def keep_log(self, case_id: str, content: bytes) -> None:
        """Store EXAID's log for the driver."""
        self.logs[case_id] = content

    def log(self, case_id: str) -> bytes | None:
        """Return and drop EXAID's log of a case from the driver; None without one."""
        return self._given.pop(case_id)[1]

    def content(self, case_id: str) -> bytes:
        """Return the trace file of a case from the driver."""
        return self._given[case_id][0]

    def trace(self, case_id: str) -> Trace:
        """Return the trace of a case from the driver."""
        from exaid_core.trace.traces import read_trace

        return read_trace(Path(f"{case_id}.trace.jsonl.gz"), self.content(case_id))


def _solver(opening: Opening) -> Solver:
    """Return the solver of a run.

    Raises:
        ConfigError: A user-defined method cannot be used here.
    """
    config = opening.config
    if opening.own_source is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name_of(config.method)}.py"
            path.write_bytes(opening.own_source)
            own = config.model_copy(update={"method": str(path)})
            solver = Solver(own, exemplars=opening.exemplars)
    else:
        solver = Solver(config, exemplars=opening.exemplars)
    method = solver.method
    if method is not None and (
        method.source_sha256 != opening.source_sha256
        # A module that only one side lists is installed on the other, or fails to import there.
        or any(opening.modules.get(name, found) != found for name, found in method.modules.items())
    ):
        raise ConfigError(
            f"--method {config.method} is not the same code on {platform.node()}; install the same "
            "on every machine, or give it as one file.py"
        )
    return solver
