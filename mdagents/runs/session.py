"""One run from its configuration to its files: opens what is needed, runs, closes everything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING

from infra.clock import Clock, epoch_ms
from infra.config import Environment, LLMRole, Provider
from infra.endpoints import ModelSpec
from infra.errors import BenchError, ConfigError, NothingRecorded
from infra.files.printing import print_line
from infra.layers.cache import NOTHING_RECORDED, CacheMode, ReplyStore
from infra.layers.gate import Urgency
from infra.ledger import Ledger
from infra.llm_registry import ModelRegistry
from mdagents.agents.feed import Event
from mdagents.display import Display, Snapshot, make_display
from mdagents.display.interaction_table import hierarchy_tree, interaction_table
from mdagents.live import LIVE_FILE, LiveFeed
from mdagents.records.folder import recorded_run
from mdagents.records.manifest import RunManifest
from mdagents.records.sample import CaseSummaries, SampleRecord
from mdagents.records.store import RunStore, writable
from mdagents.records.summaries import ItemKey
from mdagents.runs.config import RunConfig
from mdagents.runs.exaid_queue import ExaidQueue
from mdagents.runs.models import check_models, exaid_roles, make_runtime, models_of_teams
from mdagents.runs.observers import ExaidModels, RunObservers
from mdagents.runs.plan import Plan, make_plan
from mdagents.runs.runner import Outcome, Recorded, Runner
from mdagents.runs.shared import Places, Shared, Stops
from mdagents.runs.solver import roles_at_work
from mdagents.settings import Method, Router, Status, TeamRole

if TYPE_CHECKING:
    from mdagents.view.beside import RunView

CACHE_FILE = Path(".cache") / "replies.sqlite"
"""Cached replies of all runs, below the output folder."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, and where it is."""

    manifest: RunManifest
    folder: Path
    array_path: Path
    outcome: Outcome
    already_finished: bool = False
    """Whether there was nothing left to do, and so no call was made."""
    error: BenchError | None = None
    """What ended the run early; what was finished before is kept."""
    signal: int | None = None
    """The first signal that asked for a stop."""
    epochs: int = 1
    reason: str = ""
    """Why it stopped, as the beginning of a sentence; empty when it is finished."""


async def run(
    config: RunConfig,
    environment: Environment,
    clock: Clock,
    *,
    display: str = "none",
    show_interaction_table: bool = False,
    on_ready: Callable[[], None] = lambda: None,
    stops_on_signals: bool = True,
    view: RunView | None = None,
) -> RunResult:
    """Answer what a configuration asks for, or go on where an earlier process stopped.

    Args:
        config: What is asked for.
        environment: Keys and endpoints.
        clock: For all times.
        display: One of `DISPLAYS`, on stderr.
        show_interaction_table: Whether the display shows who wrote to whom in a debate.
        stops_on_signals: Whether the first SIGINT, SIGTERM or SIGHUP lets questions under way
            finish and the second stops at once; else signals are the caller's.
        on_ready: Called once, when everything that the questions need is loaded.
        view: Started before the first question; the caller ends it.

    Raises:
        ConfigError: A setting, a key or a file is not valid; nothing was written.
        StorageError: The disk is full.
        NothingRecorded: There is nothing to replay.
    """
    return await carry_out(
        make_plan(config, environment, clock),
        environment,
        clock,
        display=display,
        show_interaction_table=show_interaction_table,
        on_ready=on_ready,
        stops_on_signals=stops_on_signals,
        view=view,
    )


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
) -> RunResult:
    """Carry out a plan; see `run`.

    Args:
        plan: What is to be done.
        environment: Keys and endpoints.
        clock: For all times.
        display: See `run`, likewise the others that are not named here.
        show_interaction_table: See `run`.
        on_ready: See `run`.
        on_all_begun: Called when the last question has been begun.
        stops_on_signals: See `run`; with `shared`, its stops hold.
        view: See `run`.
        shared: What it shares with other runs under way; None: nothing.

    Raises:
        ConfigError: See `run`, likewise the other errors.
    """
    config = plan.config
    if (finished := plan.finished) is not None:
        folder = config.output_dir / finished.name
        array_path = config.output_dir / f"{finished.name}.json"
        return RunResult(finished, folder, array_path, Outcome.FINISHED, already_finished=True)
    check_models(config, environment, plan.specs)
    with writable(config.output_dir):
        config.output_dir.mkdir(parents=True, exist_ok=True)
    ledger = Ledger()
    shown = make_display(display, len(plan.items), with_summaries=config.exaid_policy is not None)
    if shared is not None:
        plan = replace(plan, check_all=shared.check_spent)
    async with _registry(plan, environment, ledger, clock, shown, shared) as registry:
        models = models_of_teams(registry, plan.specs)
        exaid_models = _exaid_models(config, registry, plan.specs)
        await registry.prepare()
        if plan.solver.method is not None:
            await plan.solver.method.prepare()
        on_ready()
        live = LiveFeed(config.output_dir / plan.manifest.name / LIVE_FILE, epoch_ms)
        with _store(plan, ledger, clock) as store, shown, live, ledger.subscribed(live.booked):
            watchers = (shown.happened, live.happened)
            observers = _observers(plan, exaid_models, store, watchers, clock)
            kept = [(item, store.attempts[item]) for item in store.unsummarised if observers.policy]
            exaid = ExaidQueue(observers, ledger, _summary_keeper(store, shown), kept)
            record = _recorder(store, shown, show_interaction_table)
            runner = Runner(plan, models, ledger, clock, observers, exaid, record)
            _show_banner(shown, store, plan, len(kept))
            if view is not None:
                line = view.start(plan.manifest.name)
                shown.say(line)
                print_line(line if display == "none" else "")  # nobody could guess the token
            if config.exaid_policy is not None and observers.policy is None:
                shown.say("NOTE: no recorded run for EXAID to follow, so it is left out")
            stops = Stops(shown.say) if shared is None else shared.stops
            stops.tell(runner)
            if stops_on_signals:
                stops.listen()
            workers = _workers(config, registry)
            places = Places(workers)
            if shared is not None:
                places = shared.places(plan.endpoint, workers)
            showing = asyncio.ensure_future(_show(shown, live, view, store, registry, exaid, clock))
            writing = asyncio.ensure_future(live.keep_writing())
            try:
                return await _execute(plan, store, runner, places, on_all_begun, clock, stops)
            finally:
                showing.cancel()
                writing.cancel()
                if store.manifest.finished:
                    live.remove()


@asynccontextmanager
async def _registry(
    plan: Plan,
    environment: Environment,
    ledger: Ledger,
    clock: Clock,
    shown: Display,
    shared: Shared | None,
) -> AsyncIterator[ModelRegistry]:
    """Open what makes the models of a run, with the cached replies of all runs if they are used."""
    with contextlib.ExitStack() as opened:
        if shared is None:
            replies = opened.enter_context(kept_replies(plan.config.cache, plan.config.output_dir))
        else:
            replies = shared.replies
        runtime = make_runtime(
            plan.config,
            environment,
            ledger,
            clock,
            replies=replies,
            on_wait=shown.waiting,
            may_send=plan.check_spent,
        )
        endpoints = shared.endpoints if shared is not None else None
        async with aclosing(ModelRegistry(runtime, endpoints)) as registry:
            yield registry


@contextmanager
def kept_replies(mode: CacheMode, output_dir: Path) -> Iterator[ReplyStore | None]:
    """Open the kept replies of all runs below a folder; None without a cache.

    Raises:
        ConfigError: The file cannot be opened.
        NothingRecorded: There is nothing to replay.
    """
    if mode is CacheMode.OFF:
        yield None
        return
    with closing(ReplyStore(output_dir / CACHE_FILE)) as replies:
        if mode is CacheMode.ONLY and replies.is_empty():
            raise NothingRecorded(NOTHING_RECORDED)
        yield replies


@contextmanager
def _store(plan: Plan, ledger: Ledger, clock: Clock) -> Iterator[RunStore]:
    """Open the files of a run. Rows of the ledger go there; after the end they are dropped."""
    store = RunStore(
        plan.config.output_dir,
        plan.manifest,
        clock.now(),
        fresh=plan.config.fresh,
        again=plan.again,
        with_exaid=plan.config.exaid_policy is not None,
    )
    with closing(store), ledger.subscribed(store.book):
        yield store


def _observers(
    plan: Plan,
    models: ExaidModels | None,
    store: RunStore,
    watchers: Sequence[Callable[[ItemKey, Event], None]],
    clock: Clock,
) -> RunObservers:
    """Return what observes the cases; EXAID is left out of a replay that has none to follow."""
    config, manifest = plan.config, plan.manifest
    policy, recorded = config.exaid_policy, None
    if config.cache is CacheMode.ONLY:
        recorded = recorded_run(config.output_dir, manifest)
        policy = policy if recorded is not None else None
    return RunObservers(
        folder=store.folder,
        run_name=manifest.name,
        model=manifest.models[TeamRole.EXPERT.value],
        revision=manifest.git_revision,
        clock=clock,
        watchers=watchers,
        policy=policy,
        models=models,
        check_run=plan.check_spent,
        recorded=recorded,
    )


async def _execute(
    plan: Plan,
    store: RunStore,
    runner: Runner,
    places: Places,
    on_all_begun: Callable[[], None],
    clock: Clock,
    stops: Stops,
) -> RunResult:
    """Answer what is left, and write the results in whatever way that ends."""
    outcome, error = Outcome.INTERRUPTED, None
    try:
        todo = [item for item in plan.items if item.key not in store.done]
        outcome = await runner.run(todo, places, on_all_begun)
    except ConfigError:
        raise
    except BenchError as stopped:
        error = stopped
    finally:
        error = error or store.error
        causes = store.recount()
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
    """Return why a run stopped; empty when it is finished.

    Args:
        outcome: How it ended.
        error: What ended it early, if anything did.
        manifest: Of the run.
        epochs: How often each question is asked.
        cause: The error in which most of its questions ended.
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
            if not errors:
                return f"stopped: none of {totals.scored} questions got a reply"
            return f"stopped: {errors} of {totals.scored} questions ended in api_error ({cause})"
        case Outcome.INTERRUPTED:
            planned = len(manifest.item_ids) * epochs
            return f"interrupted with {totals.done} of {planned} questions done"


def _exaid_models(
    config: RunConfig, registry: ModelRegistry, specs: Mapping[str, ModelSpec]
) -> ExaidModels | None:
    models = [registry.model(specs[role.value]) for role in exaid_roles(config.exaid_policy)]
    # A policy without a buffer agent makes no calls for it.
    if not models:
        return None
    # Failures are in the records and the last lines of the run: without this, each would be a line
    # on standard error where nobody has set up logging.
    logging.getLogger("exaid_core").addHandler(logging.NullHandler())

    def room(role: LLMRole, urgency: Urgency) -> AbstractAsyncContextManager[None]:
        return registry.room(specs[role.value], urgency)

    return ExaidModels(summarizer=models[0], buffer_agent=models[-1], room=room)


def _workers(config: RunConfig, registry: ModelRegistry) -> int:
    """Return how many questions are under way at a time.

    By default enough to use all connections while calls wait for a retry. An embedded model gets
    one for each slot, so that the prompt cache of a slot is used.
    """
    if config.max_samples:
        return config.max_samples
    limits = registry.connections.items()
    local = f"{Provider.LOCAL}/"
    questions = (c.limit * (1 if name.startswith(local) else 2) for name, c in limits)
    return max(questions, default=1)  # replays have no connections


def _show_banner(display: Display, store: RunStore, plan: Plan, unsummarised: int) -> None:
    config, manifest, finished = plan.config, store.manifest, len(store.done)
    by_model: dict[str, list[str]] = {}
    at_work = {*roles_at_work(config), *(r.value for r in exaid_roles(config.exaid_policy))}
    for role, model in manifest.models.items():
        if role in at_work:
            by_model.setdefault(model, []).append(role)
    models = "; ".join(f"{model} ({', '.join(roles)})" for model, roles in by_model.items())
    epochs = f", {config.epochs} times each" if config.epochs > 1 else ""

    def say(line: str) -> None:
        wrapper = TextWrapper(80, subsequent_indent=" " * 11, break_long_words=False)
        wrapper.break_on_hyphens = False
        display.say(wrapper.fill(line))

    say(f"dataset    {manifest.dataset}: {len(manifest.item_ids)} questions{epochs}")
    say(f"models     {models}")
    levels = ", ".join(config.levels) + " in turn" * (len(config.levels) > 1)
    if config.router is Router.DISAGREEMENT:
        levels = f"{levels} by disagreement below {config.least_agreement:g}"
    teams = f"teams      {levels}, preset {config.preset}"
    answers = teams if config.method is Method.MDAGENTS else f"method     {config.method_name}"
    say(f"{answers}, EXAID {config.exaid}")
    if changes := config.changes_from_default():
        say("changed    " + ", ".join(f"{k}={v}" for k, v in changes.items()))
    display.say(f"output     {store.array_path}")  # a path stays on its line
    if finished:
        say(f"continued  {finished} questions are finished already")
    if unsummarised:
        say(f"EXAID      goes on with {unsummarised} questions decided before")
    if store.kept_as:
        say(f"NOTE: the earlier run of this name was kept as {store.kept_as}")
    if not _is_one_place():  # else they are read once, with the results
        for notice in filter(None, (manifest.dataset_notice, manifest.model_notice)):
            say(f"NOTE: {notice}")


def _is_one_place() -> bool:
    """Return whether stdout and stderr go to one terminal, pipe or file."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # None, closed, or no file of the system
        return False


def _recorder(
    store: RunStore, display: Display, show_interaction_table: bool
) -> Callable[[SampleRecord], Recorded]:
    def record(sample: SampleRecord) -> Recorded:
        store.append(sample)
        display.finished(sample, store.manifest.totals)
        if show_interaction_table and sample.panel:
            tree = hierarchy_tree(sample.panel)
            display.say(f"{sample.question_id}: who reports to whom\n{tree}")
            display.say(interaction_table(sample.panel, sample.interactions))
        return Recorded(
            attempt=store.attempts[sample.question_id, sample.epoch],
            api_errors=store.manifest.totals.status_counts.get(Status.API_ERROR, 0),
        )

    return record


def _summary_keeper(store: RunStore, display: Display) -> Callable[[CaseSummaries], None]:
    def keep(made: CaseSummaries) -> None:
        store.append_summaries(made)
        display.summarised(made)

    return keep


async def _show(
    display: Display,
    live: LiveFeed,
    view: RunView | None,
    store: RunStore,
    registry: ModelRegistry,
    exaid: ExaidQueue,
    clock: Clock,
) -> None:
    """Keep display and live feed up to date between finished questions."""
    while True:
        endpoints = registry.connections.values()
        snapshot = Snapshot(
            totals=store.manifest.totals,
            spent=store.manifest.spent,
            under_way=sum(c.in_flight for c in endpoints),
            allowed=sum(c.allowed for c in endpoints),
            queued=sum(c.waiting for c in endpoints),
            summarising=len(exaid),
            cooling=max([c.cooling() for c in endpoints], default=0.0),
            now=clock.monotonic(),
        )
        display.refresh(snapshot)
        live.refresh(snapshot)
        if view is not None and (trouble := view.trouble()):
            display.say(trouble)
        await asyncio.sleep(display.period)
