"""The observers of a case: the trace file, EXAID and its log, and the watchers of the run.

No observer may change or delay an answer: its errors are only noted with the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from exaid_core.policy import TriggerPolicy
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.events import EventKind, TraceEvent
from mdagents.agents.case import make_case_id
from mdagents.agents.events import Event, ExaidStep, Observer, Summarised
from mdagents.records.case_files import CaseFiles
from mdagents.records.folder import case_files
from mdagents.records.sample import ExaidRecord, Watched
from mdagents.records.summaries import ItemKey
from mdagents.runs.budget import Budget, Limited
from mdagents.runs.engines.engine import Watch
from mdagents.settings import TeamRole
from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import Clock
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.files.in_thread import InThread
from mdagents_llm.finishing import finished

# Modules that only EXAID needs, or only the end of a case, are imported where they are used, so as
# not to delay the first request of a run.
if TYPE_CHECKING:
    from exaid_core.exaid import EXAID, RoomFor
    from exaid_core.health import Failure
    from exaid_core.recording import Progress, Recording
    from exaid_core.run_log import RunLog
    from exaid_core.schema.agent_summary import AgentSummary
    from exaid_core.trace.run_records import BufferDecision, SummaryEvent
    from exaid_core.trace.traces import Trace

_STAFFING = frozenset({TeamRole.ROUTER.value, TeamRole.RECRUITER.value})
"""Ids of the agents that choose a team. Their words are in the trace, but not clinical: EXAID does
not summarize them."""

_OF_A_DECISION = {
    "decision_id",
    "decision",
    "trigger",
    "covered",
    "filter_results",
    "trigger_mismatch",
}


@dataclass(frozen=True, slots=True)
class ExaidModels:
    """The models of EXAID."""

    summarizer: ChatModel
    buffer_agent: ChatModel
    room: RoomFor
    """Waits for a connection that EXAID may use."""


@dataclass(frozen=True, slots=True)
class RunObservers:
    """Settings and resources that the observers of all cases of a run share."""

    files: CaseFiles
    """Storage for traces and logs."""
    run_name: str
    model: str
    """Model of the experts, for the header of a trace."""
    revision: str | None
    """Git revision of this program; None when it is unknown."""
    clock: Clock
    watchers: Sequence[Watch]
    """Callbacks for the events of each case; they return at once."""
    policy: TriggerPolicy | None
    """Trigger policy of EXAID; None: EXAID is off."""
    models: ExaidModels | None
    budget: Budget = field(default_factory=Budget)
    """Budget of the run, which EXAID's calls use as well."""
    disk: InThread = field(default_factory=InThread)
    """Thread that writes the traces and logs."""
    recorded: Path | None = None
    """Folder of the run whose replies and EXAID steps are replayed; None: this is not a replay."""
    tells_steps: bool = False
    """Whether watchers are notified of each decision of EXAID and each attempt at a summary."""

    def open(self, item: ItemKey) -> CaseObservers:
        """Start to observe a case."""
        return CaseObservers(self, item)

    def reopen(self, item: ItemKey) -> CaseObservers:
        """Reopen, from its trace, a case that was decided before EXAID had finished."""
        return CaseObservers(self, item, is_kept=True)

    @property
    def mas_run_id(self) -> str:
        """The run's id in traces and run logs."""
        return f"mas_{sha256(self.run_name.encode()).hexdigest()[:12]}"


class CaseObservers:
    """Observers of one case.

    Args:
        run: Settings and resources that the observers of all cases share.
        item: Question of the case.
        is_kept: Whether the case is decided and its trace is on disk.
    """

    def __init__(self, run: RunObservers, item: ItemKey, *, is_kept: bool = False) -> None:
        self._run = run
        self._case_id = make_case_id(*item)
        self._is_kept = is_kept
        self._is_restored = not is_kept
        self._has_trace = is_kept
        self._told = [0]  # summaries; in a list, for functions that do not refer to this object
        self._errors: list[str] = []
        self._created_at = run.clock.timestamp()
        self.bus = TraceBus(run.clock.ms, partial(_note, self._errors))
        self._events: list[TraceEvent] = []
        self._recording: Recording | None = None
        self.bus.subscribe(self._events.append)
        self.tell: Observer = partial(
            _tell,
            [partial(watch, item) for watch in run.watchers],
            run.clock.ms,
            partial(_note, self._errors),
        )
        """Notifies the watchers of an event in the case, and notes their errors."""
        self.bus.subscribe(partial(_tell_words, self.tell))
        self.has_exaid = run.policy is not None and run.models is not None
        """Whether the run has EXAID watch its cases, even if EXAID could not start here."""
        self.exaid = self._start_exaid()
        if self.exaid is not None:
            # A replay follows the cached replies as streamed, so that the summaries are equal.
            listener = (
                partial(_tell_clinical, self.exaid.on_event) if run.recorded is None else _ignore
            )
            self.bus.subscribe(listener, wants_text=run.policy is not TriggerPolicy.TURN_END)

    @property
    def error(self) -> str | None:
        """Errors so far, on one line; None without any."""
        return "; ".join(dict.fromkeys(self._errors)) or None

    def note(self, error: Exception | str) -> None:
        """Record an error of an observer."""
        _note(self._errors, error)

    async def keep_trace(self) -> None:
        """Save the trace of a decided case and EXAID's log so far, from which to resume."""
        try:
            await self._keep_trace()
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self.note(error)

    async def _keep_trace(self) -> None:
        if self.exaid is None and self._run.files.are_quick:
            self._has_trace = _try(self._errors, self._write_trace)
            return
        if self.exaid is not None and self._run.recorded is not None:
            self._recording = self._read_recording(self._run.recorded)
        written = [self._run.disk.call(partial(_try, self._errors, self._write_trace))]
        if self.exaid is not None and self._run.recorded is None:
            written.append(self._write_log(self.exaid))
            self._rewrite_log(self.exaid)
        self._has_trace, *_ = await finished(asyncio.gather(*written))

    def _rewrite_log(self, exaid: EXAID) -> None:
        """Write EXAID's log with each further summary, so that none is paid for again."""
        write = partial(_write_log, self._run, self._created_at, exaid.log, self._errors)
        exaid.subscribe(partial(_on_summary, write))

    @property
    def can_be_suspended(self) -> bool:
        """Whether the trace is on disk, so that EXAID can be resumed from it."""
        return self._has_trace

    @property
    def is_restored(self) -> bool:
        """Whether the earlier results of EXAID for this case are loaded."""
        return self._is_restored

    def is_kept_from_finishing(self) -> bool:
        """Return whether a limit of the run keeps EXAID from text that it has left."""
        if self.exaid is None or not self._run.budget.is_exhausted:
            return False
        return bool(self.exaid.tail_loss())

    async def abandon(self) -> None:
        """Stop EXAID at once, without writing its log."""
        if self.exaid is not None:
            await self.exaid.stop()

    async def suspend(self) -> None:
        """Stop EXAID after its decision in progress."""
        if self.exaid is not None:
            await self.exaid.stop(after_decision=True)

    async def summarise_rest(self) -> None:
        """Let EXAID finish with a decided case."""
        exaid = self.exaid
        if exaid is None:
            return
        try:
            if self._is_kept and self._run.recorded is not None:
                self._recording = self._read_recording(self._run.recorded)
            if self._is_kept and self._run.recorded is None:
                trace, progress = await asyncio.to_thread(self._read_progress)
                self._rewrite_log(exaid)
                made = progress.summaries if progress else ()
                self._told[0] = sum(event.schema_ok for event in made)
                self._is_restored = True  # `take_trace` first restores the earlier results
                await exaid.take_trace(filter(_is_clinical, trace.events), progress)
            elif self._recording is not None:
                await exaid.replay(self._recording)
            elif self._run.recorded is None:
                await exaid.close()
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self.note(error)

    async def outcome(self, *, is_complete: bool = True) -> tuple[ExaidRecord, Watched, int]:
        """Write EXAID's log; return its record, its coverage and the number of alerts.

        Args:
            is_complete: Whether EXAID has finished; if not, its failed calls may still succeed.
        """
        exaid = self.exaid
        if exaid is None:
            lost = 1.0 if self.has_exaid else 0.0
            return ExaidRecord(), Watched(tail_loss=lost, error=self.error), 0
        try:
            if self._is_restored:  # else the saved log holds more
                await self._write_log(exaid)
            watched = self._coverage(exaid, is_complete=is_complete)
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self.note(error)
            watched = Watched(tail_loss=1.0, error=self.error)
        done = [event for event in exaid.log.summaries if event.schema_ok]
        record = ExaidRecord(
            summaries=[
                {"event_id": event.event_id, **summary.model_dump(mode="json")}
                for event, summary in zip(done, exaid.summaries, strict=True)
            ],
            decisions=[
                {
                    **decision.model_dump(mode="json", include=_OF_A_DECISION),
                    "failed": decision.failure_mode is not None,
                }
                for decision in exaid.log.decisions
            ],
        )
        return record, watched, exaid.alerts

    def _coverage(self, exaid: EXAID, *, is_complete: bool) -> Watched:
        failed = [event.schema_error for event in exaid.log.summaries if not event.schema_ok]
        if is_complete and failed and exaid.tail_loss():
            self.note(f"no summary: {failed[-1]}")
        was_heard = exaid.log.flushes or not self._errors
        return Watched(
            tail_loss=round(exaid.tail_loss(), 4) if was_heard else 1.0,
            missed_alerts=exaid.missed_alerts(),
            error=self.error,
        )

    def _read_recording(self, folder: Path) -> Recording | None:
        from exaid_core.recording import read_recording
        from exaid_core.trace.traces import said_in

        try:
            recording = read_recording(*case_files(folder, self._case_id))
            said = {(turn.agent_id, turn.text) for turn in recording.trace.turns}
            if not said.issuperset(said_in(self._events)):
                raise ConfigError("the recorded trace is not of these replies")
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self.note(error)
            return None
        self._events = list(recording.trace.events)
        return recording

    def _read_progress(self) -> tuple[Trace, Progress | None]:
        """Return the trace of a decided case and EXAID's progress; None without progress."""
        from exaid_core.recording import read_progress
        from exaid_core.trace.files import RecordError

        trace = self._run.files.trace(self._case_id)
        log = self._run.files.log(self._case_id)
        try:
            name = case_files(Path(), self._case_id)[1]
            return trace, None if log is None else read_progress(trace, name, log)
        except RecordError:  # of an earlier answer, or damaged: EXAID starts over
            return trace, None

    def _start_exaid(self) -> EXAID | None:
        try:
            return self._make_exaid()
        except BenchError:  # a setting, which is the same for all questions
            raise
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self.note(error)
            return None

    def _make_exaid(self) -> EXAID | None:
        run = self._run
        if run.policy is None or run.models is None:
            return None
        from exaid_core.config import ExaidConfig
        from exaid_core.exaid import EXAID

        exaid = EXAID(
            buffer_llm=Limited(run.models.buffer_agent, run.budget),
            summarizer_llm=Limited(run.models.summarizer, run.budget),
            # The run has its own time limits for the calls of all roles.
            config=ExaidConfig(policy=run.policy, call_timeout=None),
            case_id=self._case_id,
            now_ms=run.clock.ms,
            monotonic=run.clock.monotonic,
            on_summary=partial(_tell_summary, self.tell, self._told),
            on_error=partial(_note_breakage, self._errors),
            room=run.models.room,
        )
        if run.tells_steps:
            exaid.log.watch(partial(_tell_step, self.tell))
        return exaid

    def _write_trace(self) -> None:
        from exaid_core.trace.files import packed
        from exaid_core.trace.traces import trace_lines

        revision = self._run.revision or "unknown"
        lines = trace_lines(
            self._events,
            case_id=self._case_id,
            mas_run_id=self._run.mas_run_id,
            mac_commit=revision,
            model=self._run.model,
            created_at=self._created_at,
            exaid_commit=revision,
        )
        self._run.files.keep_trace(self._case_id, packed(lines))
        self._events.clear()

    def _write_log(self, exaid: EXAID) -> asyncio.Future[bool]:
        return _write_log(self._run, self._created_at, exaid.log, self._errors)


# These are functions, not methods: an observer that its own bus refers to would be freed only by
# the garbage collector, together with all the text of its case.


def _note(errors: list[str], error: Exception | str) -> None:
    errors.append(" ".join(str(error).split()) or type(error).__name__)


def _try(errors: list[str], write: Callable[[], None]) -> bool:
    """Call `write`, or note why it failed; return whether it succeeded."""
    try:
        write()
    except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
        _note(errors, error)
        return False
    return True


def _write_log(
    run: RunObservers, created_at: str, log: RunLog, errors: list[str]
) -> asyncio.Future[bool]:
    """Write EXAID's log as of now in the thread; return whether that will have succeeded."""
    lines = log.lines(
        created_at=created_at,
        mas_run_id=run.mas_run_id,
        eval_run_id=f"eval-live-{run.mas_run_id.removeprefix('mas_')}",
    )
    return run.disk.call(partial(_try, errors, partial(_pack_log, run.files, log.case_id, lines)))


def _pack_log(files: CaseFiles, case_id: str, lines: Iterable[bytes]) -> None:
    from exaid_core.trace.files import packed

    files.keep_log(case_id, packed(lines))


def _on_summary(write: Callable[[], object], summary: AgentSummary) -> None:
    write()


def _note_breakage(errors: list[str], failure: Failure) -> None:
    if failure.source == "subscriber":  # failures of models are in EXAID's log
        _note(errors, failure.message)


def _tell(
    observers: list[Callable[[Event, int], None]],
    now_ms: Callable[[], int],
    note: Callable[[Exception], None],
    event: Event,
) -> None:
    at_ms = now_ms()
    for observer in tuple(observers):
        try:
            observer(event, at_ms)
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            observers.remove(observer)
            note(error)


def _tell_words(tell: Observer, event: TraceEvent) -> None:
    if event.kind is EventKind.DELTA:
        tell(event)


def _is_clinical(event: TraceEvent) -> bool:
    return event.agent_id not in _STAFFING


def _tell_clinical(tell: Callable[[TraceEvent], None], event: TraceEvent) -> None:
    if _is_clinical(event):
        tell(event)


def _tell_step(
    tell: Observer, record: BufferDecision | SummaryEvent, agents: tuple[str, ...]
) -> None:
    tell(ExaidStep(record, agents))


def _tell_summary(tell: Observer, told: list[int], summary: AgentSummary) -> None:
    told[0] += 1
    tell(Summarised(told[0], summary))


def _ignore(event: TraceEvent) -> None:
    pass
