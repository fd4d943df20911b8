"""One run from its configuration to its files: opens what is needed, runs, closes everything."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from infra.clock import Clock
from infra.config import Environment, LLMRole, Provider
from infra.errors import BenchError, ConfigError, NothingRecorded, StorageError
from infra.layers.cache import NOTHING_RECORDED, CacheMode, ReplyStore
from infra.layers.gate import Urgency
from infra.ledger import CallRow, Ledger
from infra.llm_registry import ModelRegistry, ModelSpec
from mdagents.datasets.dataset import open_dataset
from mdagents.display import Display, Snapshot, make_display
from mdagents.display.interaction_table import hierarchy_tree, interaction_table
from mdagents.records.folder import earlier_run, recorded_run
from mdagents.records.manifest import RunManifest
from mdagents.records.sample import SampleRecord
from mdagents.records.store import RunStore, is_full
from mdagents.runs.config import RunConfig
from mdagents.runs.exaid_queue import ExaidQueue
from mdagents.runs.models import check_models, choose_models, exaid_roles, make_runtime
from mdagents.runs.observers import ExaidModels, RunObservers
from mdagents.runs.plan import make_manifest, select
from mdagents.runs.runner import Item, Outcome, Recorded, Runner
from mdagents.runs.solver import Solver
from mdagents.settings import Method, Status, TeamRole

CACHE_FILE = Path(".cache") / "replies.sqlite"
"""Kept replies of all runs, below the output folder."""


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
    cause: str = ""
    """The error in which most of the questions ended, when the run could not work."""


async def run(
    config: RunConfig,
    environment: Environment,
    clock: Clock,
    *,
    display: str = "none",
    show_interaction_table: bool = False,
    on_ready: Callable[[], None] = lambda: None,
    stops_on_signals: bool = True,
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

    Raises:
        ConfigError: A setting, a key or a file is not valid; nothing was written.
        StorageError: The disk is full.
        NothingRecorded: There is nothing to replay.
    """
    policy = config.exaid_policy
    dataset = open_dataset(config.dataset, config.data_dir, config.split)
    entries = select(dataset, config)
    specs = choose_models(config, environment)
    manifest = make_manifest(config, dataset, entries, specs, clock)
    earlier = None if config.fresh else earlier_run(config.output_dir, manifest)
    again = {Status.LIMIT}
    if config.retry_errors or (earlier is not None and earlier.totals.could_not_work):
        again.add(Status.API_ERROR)
    if earlier is not None and _is_complete(earlier, again):
        folder = config.output_dir / earlier.name
        array_path = config.output_dir / f"{earlier.name}.json"
        return RunResult(earlier, folder, array_path, Outcome.FINISHED, already_finished=True)

    solver = Solver(config, dataset)
    check_models(config, environment, specs)
    _make_output_dir(config.output_dir)
    items = [Item(entry, epoch) for epoch in range(1, config.epochs + 1) for entry in entries]
    async with contextlib.AsyncExitStack() as opened:
        books: list[RunStore] = []

        def book(row: CallRow) -> None:
            for opened_store in books:
                opened_store.book(row)

        ledger = Ledger(book)
        shown = make_display(display, len(items), with_summaries=policy is not None)

        def check_run() -> None:
            for opened_store in books:
                spent = opened_store.manifest.spent
                config.limits.check_run(spent.total_tokens, spent.cost_usd)

        registry = ModelRegistry(
            make_runtime(
                config,
                environment,
                ledger,
                clock,
                replies=_replies(config, opened),
                on_wait=shown.waiting,
                may_send=check_run,
            )
        )
        opened.push_async_callback(registry.aclose)
        models = {role: registry.model(specs[role.value]) for role in TeamRole}
        exaid_models = _exaid_models(config, registry, specs)
        await registry.prepare()
        on_ready()

        store = RunStore(
            config.output_dir,
            manifest,
            clock.now(),
            fresh=config.fresh,
            again=again,
            with_exaid=policy is not None,
        )
        opened.callback(store.close)
        books.append(store)
        opened.callback(books.clear)  # a row that comes after the end is dropped
        todo = [item for item in items if item.key not in store.done]
        opened.enter_context(shown)
        is_replay = config.cache is CacheMode.ONLY
        recorded = recorded_run(config.output_dir, manifest) if is_replay else None
        can_watch = policy is not None and (recorded is not None or not is_replay)
        kept = [(item, store.attempts[item]) for item in store.unsummarised if can_watch]
        _show_banner(shown, store, config, len(items) - len(todo), len(kept))
        if policy is not None and not can_watch:
            shown.say("NOTE: no recorded run for EXAID to follow, so it is left out")

        observers = RunObservers(
            folder=store.folder,
            run_name=manifest.name,
            model=manifest.models[TeamRole.EXPERT.value],
            revision=manifest.git_revision,
            clock=clock,
            display=shown,
            policy=policy if can_watch else None,
            models=exaid_models,
            check_run=check_run,
            recorded=recorded,
        )
        exaid = ExaidQueue(observers, ledger, store.append_summaries, kept)
        runner = Runner(
            config,
            dataset,
            solver,
            models,
            ledger,
            clock,
            observers,
            exaid,
            on_record=_recorder(store, shown, show_interaction_table),
            check_run=check_run,
        )
        stops: list[int] = []
        if stops_on_signals:
            _stop_on_signals(runner, shown, stops)
        showing = asyncio.ensure_future(_show(shown, store, registry, exaid, clock))
        opened.callback(showing.cancel)
        workers = config.max_samples or _questions_under_way(registry)
        outcome, error = Outcome.INTERRUPTED, None
        try:
            outcome = await runner.run(todo, workers, planned=len(items))
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
            try:
                store.finish(finished=finished, ended_at=clock.timestamp())
            except BenchError as unwritten:
                error = error or unwritten
        return RunResult(
            store.manifest,
            store.folder,
            store.array_path,
            outcome,
            error=error,
            signal=stops[0] if stops else None,
            epochs=config.epochs,
            cause=max(causes, key=causes.__getitem__, default=""),
        )


def _exaid_models(
    config: RunConfig, registry: ModelRegistry, specs: Mapping[str, ModelSpec]
) -> ExaidModels | None:
    models = [registry.model(specs[role.value]) for role in exaid_roles(config.exaid_policy)]
    # A policy without a buffer agent makes no calls for it.
    if not models:
        return None

    def room(role: LLMRole, urgency: Urgency) -> AbstractAsyncContextManager[None]:
        return registry.room(specs[role.value], urgency)

    return ExaidModels(summarizer=models[0], buffer_agent=models[-1], room=room)


def _is_complete(earlier: RunManifest, again: set[Status]) -> bool:
    return earlier.finished and not any(earlier.totals.status_counts.get(s) for s in again)


def _replies(config: RunConfig, opened: contextlib.AsyncExitStack) -> ReplyStore | None:
    """Open the kept replies of all runs, to be closed with `opened`; None without a cache."""
    if config.cache is CacheMode.OFF:
        return None
    replies = ReplyStore(config.output_dir / CACHE_FILE)
    opened.callback(replies.close)
    if config.cache is CacheMode.ONLY and replies.is_empty():
        raise NothingRecorded(NOTHING_RECORDED)
    return replies


def _make_output_dir(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_full(error):
            raise StorageError(f"cannot write to {path}: {error.strerror}") from error
        raise ConfigError(
            f"cannot write to {path}: {error.strerror}; choose another --output-dir"
        ) from error


def _questions_under_way(registry: ModelRegistry) -> int:
    """Return the default number: enough to use all connections while calls wait for a retry.

    An embedded model gets one for each slot, so that the prompt cache of a slot is used.
    """
    limits = registry.connections.items()
    local = f"{Provider.LOCAL}/"
    questions = (c.limit * (1 if name.startswith(local) else 2) for name, c in limits)
    return max(questions, default=1)  # replays have no connections


def _show_banner(
    display: Display, store: RunStore, config: RunConfig, finished: int, unsummarised: int
) -> None:
    manifest = store.manifest
    by_model: dict[str, list[str]] = {}
    for role, model in manifest.models.items():
        by_model.setdefault(model, []).append(role)
    models = "; ".join(f"{model} ({', '.join(roles)})" for model, roles in by_model.items())
    epochs = f", {config.epochs} times each" if config.epochs > 1 else ""
    display.say(f"dataset    {manifest.dataset}: {len(manifest.item_ids)} questions{epochs}")
    display.say(f"models     {models}")
    teams = f"teams      {config.difficulty}, preset {config.preset}"
    answers = teams if config.method is Method.MDAGENTS else f"baseline   {config.method}"
    display.say(f"{answers}, EXAID {config.exaid}")
    if changes := config.changes_from_default():
        display.say("changed    " + ", ".join(f"{k}={v}" for k, v in changes.items()))
    display.say(f"output     {store.array_path}")
    if finished:
        display.say(f"continued  {finished} questions are finished already")
    if unsummarised:
        display.say(f"EXAID      goes on with {unsummarised} questions decided before")
    if store.kept_as:
        display.say(f"NOTE: the earlier run of this name was kept as {store.kept_as}")
    for notice in filter(None, (manifest.dataset_notice, manifest.model_notice)):
        display.say(f"NOTE: {notice}")


def _recorder(
    store: RunStore, display: Display, show_interaction_table: bool
) -> Callable[[SampleRecord], Recorded]:
    def record(sample: SampleRecord) -> Recorded:
        store.append(sample)
        display.finished(sample, store.manifest.totals)
        if show_interaction_table and sample.panel:
            display.say(f"{sample.question_id}: who defers to whom\n{hierarchy_tree(sample.panel)}")
            display.say(interaction_table(sample.panel, sample.interactions))
        return Recorded(
            attempt=store.attempts[sample.question_id, sample.epoch],
            api_errors=store.manifest.totals.status_counts.get(Status.API_ERROR, 0),
        )

    return record


_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def _stop_on_signals(runner: Runner, display: Display, seen: list[int]) -> None:
    """Let questions under way finish at the first signal, and stop at once at the second."""

    def on_signal(number: int) -> None:
        if not seen:
            display.say("stopping: questions under way get 10 s; a second time stops at once")
        seen.append(number)
        runner.interrupt()

    loop = asyncio.get_running_loop()
    for name in _SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # The parent process may have it ignored: nohup does.
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            continue
        # Windows has no such handlers: there Python's own Ctrl-C stops at once.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, on_signal, number)


async def _show(
    display: Display, store: RunStore, registry: ModelRegistry, exaid: ExaidQueue, clock: Clock
) -> None:
    """Keep the display up to date between finished questions."""
    while True:
        endpoints = registry.connections.values()
        display.refresh(
            Snapshot(
                totals=store.manifest.totals,
                spent=store.manifest.spent,
                under_way=sum(c.in_flight for c in endpoints),
                allowed=sum(c.allowed for c in endpoints),
                queued=sum(c.waiting for c in endpoints),
                summarising=len(exaid),
                cooling=max([c.cooling() for c in endpoints], default=0.0),
                now=clock.monotonic(),
            )
        )
        await asyncio.sleep(display.period)
