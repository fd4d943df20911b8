"""One run from its configuration to its files: opens its resources, runs, and closes everything."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mdagents.display import Display, Snapshot, make_display
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.records.batches import BATCHES_FILE, BatchFile
from mdagents.records.manifest import RunManifest
from mdagents.records.store import RunStore, writable
from mdagents.runs.banner import forecast_price, show_banner
from mdagents.runs.budget import Budget
from mdagents.runs.config import RunConfig
from mdagents.runs.engines.engine import Answering, Engine, Places, Task
from mdagents.runs.engines.local import local_engine
from mdagents.runs.flags.output_flags import OtelTraces
from mdagents.runs.models import check_models, make_runtime
from mdagents.runs.plan import Plan
from mdagents.runs.recorder import RunRecorder
from mdagents.runs.result import RunResult
from mdagents.runs.signals import STOPPING, STOPPING_BATCHES, Stops
from mdagents.runs.spans import wants_text
from mdagents.settings import Outcome, Status, TeamRole
from mdagents_llm.clock import Clock, epoch_ms
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import Endpoints
from mdagents_llm.errors import BenchError, ConfigError, NothingRecorded
from mdagents_llm.layers.cache import NOTHING_RECORDED, CacheMode
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.ledger import Ledger
from mdagents_llm.terminal.printing import print_line
from mdagents_llm.text import counted

if TYPE_CHECKING:
    from mdagents.runs.engines.cluster import Cluster, Hire
    from mdagents.telemetry.run_spans import RunSpans
    from mdagents.view.subprocess_view import RunView

CACHE_FILE = Path(".cache") / "replies.sqlite"
"""Cached replies of all runs, below the output folder."""


@dataclass(slots=True)
class Shared:
    """Resources that concurrent runs share."""

    endpoints: Endpoints
    replies: ReplyStore | None
    """Reply cache; None: no cache."""
    cluster: Cluster | None
    """Cluster that answers the questions; None: this process does."""
    budget: Budget
    """Budget of all runs together."""
    stops: Stops
    _places: dict[str, Places] = field(default_factory=dict)

    def places(self, endpoint: str, count: int) -> Places:
        """Return the places of an endpoint.

        Args:
            endpoint: Name of the endpoint.
            count: Number of places, used at the first call for the endpoint.
        """
        return self._places.setdefault(endpoint, Places(count))


async def carry_out(
    plan: Plan,
    environment: Environment,
    clock: Clock,
    *,
    display: str = "none",
    show_interaction_table: bool = False,
    on_ready: Callable[[], None] = lambda: None,
    on_all_begun: Callable[[], None] = lambda: None,
    stops_on_signals: bool = False,
    view: RunView | None = None,
    shared: Shared | None = None,
    held: ExitStack | None = None,
) -> RunResult:
    """Run a plan to its end, or resume a run that an earlier process started.

    Args:
        plan: Plan of the run.
        environment: API keys and endpoints.
        clock: Clock for all times.
        display: One of `settings.DISPLAYS`, on stderr.
        show_interaction_table: Whether the display shows who wrote to whom in a debate.
        on_ready: Called once, when everything that the questions need is loaded.
        on_all_begun: Called when the last question has started.
        stops_on_signals: Whether the first signal lets questions in progress finish and the second
            stops at once; with `shared`, its `stops` receive the signals.
        view: Live view, started before the first question; the caller ends it.
        shared: Resources shared with concurrent runs; None: the run opens its own.
        held: Holds the run's lock until it is closed, so that its files can be read; None: the lock
            is released at the end.

    Raises:
        ConfigError: A setting, an API key or a file is not valid; nothing was written.
        StorageError: The disk is full.
        NothingRecorded: A replay has no cached replies.
    """
    config = plan.config
    if (finished := plan.finished) is not None:
        folder = config.output_dir / finished.name
        array_path = config.output_dir / f"{finished.name}.json"
        return RunResult(finished, folder, array_path, Outcome.FINISHED, already_finished=True)
    check_models(config, environment, plan.specs)
    if config.otel:
        import mdagents.telemetry.session  # noqa: F401 - says which package is missing
    with writable(config.output_dir):
        config.output_dir.mkdir(parents=True, exist_ok=True)
        if not os.access(config.output_dir, os.W_OK):  # before the cache in it raises the same
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    ledger = Ledger()
    shown = make_display(
        display,
        len(plan.items),
        with_summaries=config.exaid_policy is not None,
        in_batches=config.batch,
    )
    if shared is not None:
        plan = replace(plan, study_budget=shared.budget)
    task = plan.task()
    first = STOPPING_BATCHES if config.batch else STOPPING
    stops = Stops(shown.say, first) if shared is None else shared.stops
    if stops_on_signals and config.is_distributed:
        stops.listen()  # Ray must not be stopped in the middle of its start
    async with (
        _spans(plan, environment, shown) as spans,
        _engine(plan, task, environment, ledger, clock, shown, stops, shared) as engine,
    ):
        on_ready()
        feed = config.output_dir / plan.manifest.name / LIVE_FILE
        live = LiveFeed(feed, epoch_ms, shown.say)
        with _store(plan, clock) as store, shown, live:
            if held is not None:
                held.enter_context(store.locked())
            recorder = RunRecorder(
                plan, store, shown, live, spans, show_interaction_table=show_interaction_table
            )
            kept = [(item, store.attempts(item)) for item in store.unsummarised if recorder.policy]
            answering = engine.answering(recorder, kept)
            price = "" if display == "none" else await forecast_price(plan, store, environment)
            show_banner(shown, store, plan, len(kept), price)
            if view is not None:
                line = view.start(plan.manifest.name)
                shown.say(line)
                print_line(line if display == "none" else "")  # it holds the token of the view
            if config.exaid_policy is not None and recorder.policy is None:
                shown.say("NOTE: no recorded run for EXAID to follow, so it is left out")
            stops.at_each(answering.interrupt)
            if stops_on_signals:
                stops.listen()
            places = Places(engine.places)
            if shared is not None:
                places = shared.places(plan.endpoint, places.count)
            showing = asyncio.ensure_future(
                _show(shown, live, view, store, engine, answering, clock)
            )
            writing = asyncio.ensure_future(live.keep_writing())
            try:
                with ledger.subscribed(recorder.booked):
                    result = await _execute(
                        plan, store, answering, places, on_all_begun, clock, stops
                    )
                if spans is not None:
                    totals, failed = store.manifest.totals, result.error is not None
                    spans.finish(
                        "error" if failed else result.outcome.value,
                        totals.correct / totals.scored if totals.scored else None,
                    )
                return result
            finally:
                showing.cancel()
                writing.cancel()
                if store.manifest.finished:
                    live.remove()


@asynccontextmanager
async def _spans(
    plan: Plan, environment: Environment, shown: Display
) -> AsyncIterator[RunSpans | None]:
    """Make the spans of a run for OpenTelemetry and send them; yields None without `--otel`.

    Raises:
        ConfigError: A package is missing, or a standard variable cannot be used.
    """
    config = plan.config
    if not config.otel:
        yield None
        return
    from mdagents.telemetry.run_spans import RunFacts
    from mdagents.telemetry.session import run_spans  # an extra that most runs do without

    facts = RunFacts(
        name=plan.manifest.name,
        dataset=plan.manifest.dataset,
        method=config.method_name,
        model=plan.manifest.models[TeamRole.EXPERT.value],
        questions=len(plan.items),
        version=plan.manifest.version,
    )
    async with run_spans(
        facts,
        environment.variables,
        shown.say,
        with_text=wants_text(config, environment.variables),
        per_question=config.otel_traces is OtelTraces.QUESTION,
    ) as spans:
        yield spans


@asynccontextmanager
async def _engine(
    plan: Plan,
    task: Task,
    environment: Environment,
    ledger: Ledger,
    clock: Clock,
    shown: Display,
    stops: Stops,
    shared: Shared | None,
) -> AsyncIterator[Engine]:
    """Open the engine of a run, with the reply cache of all runs if it is used."""
    config = plan.config
    async with contextlib.AsyncExitStack() as opened:
        if shared is None:
            replies = opened.enter_context(kept_replies(config.cache, config.output_dir))
            cluster = await opened.enter_async_context(
                open_cluster(config, environment, clock, replies, stops)
            )
        else:
            replies, cluster = shared.replies, shared.cluster
        if cluster is not None:
            from mdagents.runs.engines.distributed import DistributedEngine

            yield DistributedEngine(task, cluster, shown.waiting)
            return
        batching = None
        if config.batch:
            from mdagents_llm.layers.batch import Batching  # most runs send no batches

            journal = BatchFile(config.output_dir / plan.manifest.name / BATCHES_FILE)
            opened.callback(journal.close)
            batching = Batching(journal, stops.say)
        runtime = make_runtime(
            config,
            environment,
            ledger,
            clock,
            replies=replies,
            replay=replies if config.cache is CacheMode.ONLY else None,
            on_wait=shown.waiting,
            may_send=task.budget.check_if_limited,
            batching=batching,
        )
        endpoints = shared.endpoints if shared is not None else None
        engine = await opened.enter_async_context(local_engine(task, runtime, endpoints))
        try:
            yield engine
        finally:
            print_line(await engine.leave_batches(cancel=len(stops.signals) > 1))


@asynccontextmanager
async def open_cluster(
    config: RunConfig,
    environment: Environment,
    clock: Clock,
    replies: ReplyStore | None,
    stops: Stops,
) -> AsyncIterator[Cluster | None]:
    """Start the workers of a configuration; yields None if this process answers the questions.

    Args:
        config: Configuration of the run.
        environment: API keys and endpoints.
        clock: Clock for all times.
        replies: Reply cache; None: no cache.
        stops: Stop signals, which end the wait for a worker; Ray replaces their handlers briefly.

    Raises:
        ConfigError: The cluster does not exist, or Ray is not installed.
        ClusterError: Workers cannot be started, or cannot be used.
    """
    if not config.is_distributed:
        yield None
        return
    # Most runs have no workers, and Ray is an extra.
    from mdagents.runs.engines.cluster import Cluster
    from mdagents.runs.engines.process_workers import start_process

    async with contextlib.AsyncExitStack() as opened:
        hire: Hire = partial(start_process, environment)
        size = config.local_processes
        if config.ray_address:
            from mdagents.runs.engines.ray_workers import ray_workers

            hire, size = await opened.enter_async_context(
                ray_workers(config.ray_address, config.processes, environment)
            )
            stops.listen_again()
        cluster = Cluster(hire, size, replies, clock, stops.say)
        stops.at_each(cluster.interrupt)
        async with cluster:
            yield cluster


@contextmanager
def kept_replies(mode: CacheMode, output_dir: Path) -> Iterator[ReplyStore | None]:
    """Open the reply cache of all runs below a folder; yields None without a cache.

    Raises:
        NothingRecorded: A replay has no cached replies.
    """
    if mode is CacheMode.OFF:
        yield None
        return
    with closing(ReplyStore(output_dir / CACHE_FILE)) as replies:
        if mode is CacheMode.ONLY and replies.is_empty():
            raise NothingRecorded(NOTHING_RECORDED)
        yield replies


@contextmanager
def _store(plan: Plan, clock: Clock) -> Iterator[RunStore]:
    """Open the files of a run."""
    store = RunStore(
        plan.config.output_dir,
        plan.manifest,
        clock.now(),
        fresh=plan.config.fresh,
        again=plan.again,
        with_exaid=plan.config.exaid_policy is not None,
        private=plan.config.log_prompts or plan.config.keep_reasoning,
    )
    with closing(store):
        yield store


async def _execute(
    plan: Plan,
    store: RunStore,
    answering: Answering,
    places: Places,
    on_all_begun: Callable[[], None],
    clock: Clock,
    stops: Stops,
) -> RunResult:
    """Answer the remaining questions, and write the results however the run ends."""
    outcome, error = Outcome.INTERRUPTED, None
    try:
        todo = [item for item in plan.items if item.key not in store.done]
        outcome = await answering.run(todo, places, on_all_begun)
    except ConfigError:
        raise
    except BenchError as stopped:
        error = stopped
    finally:
        error = error or store.error
        causes = Counter[str]()
        try:
            causes = store.recount()
        except BenchError as unread:
            error = error or unread
        if outcome is Outcome.FINISHED and store.manifest.totals.could_not_work:
            outcome = Outcome.COULD_NOT_WORK
        finished = outcome is Outcome.FINISHED and error is None
        cause = max(causes, key=causes.__getitem__, default="")
        reason = _reason(outcome, error, store.manifest, plan.config.epochs, cause)
        try:
            store.finish(finished=finished, ended_at=clock.timestamp(), reason=reason)
        except BenchError as unwritten:
            error = error or unwritten
    return RunResult(
        store.manifest,
        store.folder,
        store.array_path,
        outcome,
        error=error,
        signal=stops.signals[0] if stops.signals else None,
        epochs=plan.config.epochs,
        reason=reason,
    )


def _reason(
    outcome: Outcome, error: BenchError | None, manifest: RunManifest, epochs: int, cause: str
) -> str:
    """Return the reason why a run stopped; empty when it is finished.

    Args:
        outcome: Outcome of the run.
        error: Error that ended the run early; None without one.
        manifest: Manifest of the run.
        epochs: Number of times each question is asked.
        cause: Error in which most of the questions ended.
    """
    if error is not None:
        return f"stopped: {error}"
    totals = manifest.totals
    match outcome:
        case Outcome.FINISHED:
            return ""
        case Outcome.LIMIT:
            return "stopped at a limit of the run"
        case Outcome.TOO_MANY_ERRORS:
            return "stopped: more api errors than --fail-on-error allows"
        case Outcome.COULD_NOT_WORK:
            errors = totals.status_counts.get(Status.API_ERROR, 0)
            asked = counted(totals.scored, "question")
            if not errors:
                return f"stopped: none of {asked} got a reply"
            return f"stopped: {errors} of {asked} ended in api_error ({cause})"
        case Outcome.INTERRUPTED:
            planned = len(manifest.item_ids) * epochs
            return f"interrupted with {totals.done} of {counted(planned, 'question')} done"


async def _show(
    display: Display,
    live: LiveFeed,
    view: RunView | None,
    store: RunStore,
    engine: Engine,
    answering: Answering,
    clock: Clock,
) -> None:
    """Keep display and live feed up to date between finished questions."""
    while True:
        load = engine.load
        snapshot = Snapshot(
            totals=store.manifest.totals,
            spent=store.manifest.spent,
            under_way=load.under_way,
            allowed=load.allowed,
            queued=load.queued,
            summarising=answering.summarising,
            cooling=load.cooling,
            in_batches=load.in_batches,
            now=clock.monotonic(),
        )
        display.refresh(snapshot)
        live.refresh(snapshot)
        if view is not None and (trouble := view.trouble()):
            display.say(trouble)
        await asyncio.sleep(display.period)
