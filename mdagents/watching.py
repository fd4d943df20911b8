"""Who watches the turns of a case: the trace file, EXAID and its log, the display.

Nobody who watches may change or delay an answer: what goes wrong here is a line in the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from exaid_core.policy import TriggerPolicy
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.events import EventKind, TraceEvent
from infra.chat import ChatModel
from infra.clock import Clock
from infra.errors import ConfigError
from mdagents.display import Display
from mdagents.limits import Limited
from mdagents.records import ExaidRecord, Watched
from mdagents.run_store import case_files

# What is needed only with EXAID, or when a case is over, is imported there: the first request of a
# run should not have to wait for it.
if TYPE_CHECKING:
    from exaid_core.exaid import EXAID
    from exaid_core.schema.agent_summary import AgentSummary

DRAIN = 30.0
"""Seconds that EXAID may go on after the decision on its case."""

_MOST_AT_ONCE = 2_000  # events of a trace that are written in about 10 ms

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


@dataclass(frozen=True, slots=True)
class Watching:
    """What the watchers of all cases of a run have in common."""

    folder: Path
    """Of the run."""
    run_name: str
    model: str
    """Of the experts, for the head of a trace."""
    revision: str | None
    """Of this program."""
    clock: Clock
    display: Display
    policy: TriggerPolicy | None
    """None: EXAID is off."""
    models: ExaidModels | None
    check_run: Callable[[], None] = lambda: None
    """Raises LimitExceeded when a limit of the run is reached."""
    recorded: Path | None = None
    """Folder of the run whose recorded replies are replayed; EXAID then takes its steps."""

    def open(self, case_id: str) -> Watch:
        """Start to watch a case."""
        return Watch(self, case_id)

    @property
    def mas_run_id(self) -> str:
        """The run's id in traces and run logs."""
        return f"mas_{sha256(self.run_name.encode()).hexdigest()[:12]}"


class Watch:
    """The watchers of one case.

    Args:
        run: What they have in common with those of other cases.
        case_id: Of the case.
    """

    def __init__(self, run: Watching, case_id: str) -> None:
        self._run = run
        self._case_id = case_id
        self._errors: list[str] = []
        started_ms = int(run.clock.now().timestamp() * 1000)
        started = run.clock.monotonic()
        self._now_ms = lambda: started_ms + int(1000 * (run.clock.monotonic() - started))
        self._created_at = run.clock.timestamp()
        self.bus = TraceBus(self._now_ms, self._note)
        self._events: list[TraceEvent] = []
        self.bus.subscribe(self._events.append)
        self.bus.subscribe(self._show)
        self.exaid = self._make_exaid()
        if self.exaid is not None:
            # A replay hears the kept replies as they were streamed, so that they say the same.
            listener = self.exaid.on_event if run.recorded is None else _ignore
            self.bus.subscribe(listener, wants_text=run.policy is not TriggerPolicy.TURN_END)
        self._cut = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None

    def cut(self) -> None:
        """Let EXAID stop at once, without its last summary."""
        self._cut.set()

    async def close(self) -> tuple[ExaidRecord, Watched]:
        """Let EXAID finish within `DRAIN` seconds, write the files, and say what came of it."""
        if self.exaid is not None:
            if self._run.recorded is None:
                await self._drain(self.exaid)
            else:
                await self._replay(self.exaid, self._run.recorded)
        # A thread of its own pays for large files only.
        if len(self._events) > _MOST_AT_ONCE:
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._try_to_write))
            await asyncio.shield(self._writing)
        else:
            self._try_to_write()
        return self._outcome()

    async def abandon(self) -> None:
        """The case will have no record: leave no files, and those of an earlier attempt alone."""
        await self._stop_exaid()

    async def close_at_once(self) -> tuple[ExaidRecord, Watched]:
        """The same without waiting for a model, when the run is being stopped."""
        await self._stop_exaid()
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        else:
            self._try_to_write()
        return self._outcome()

    async def _stop_exaid(self) -> None:
        if self.exaid is not None:
            try:
                await self.exaid.close(0)
            except Exception as error:  # noqa: BLE001 - a watcher must not disturb the run
                self._note(error)

    async def _drain(self, exaid: EXAID) -> None:
        closing = asyncio.ensure_future(exaid.close(DRAIN))
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait({closing, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cut.cancel()
            closing.cancel()
            (ended,) = await asyncio.gather(closing, return_exceptions=True)
        if isinstance(ended, Exception):
            self._note(ended)

    async def _replay(self, exaid: EXAID, folder: Path) -> None:
        from exaid_core.recording import read_recording
        from exaid_core.trace.traces import said_in

        try:
            recording = read_recording(*case_files(folder, self._case_id))
            said = {(turn.agent_id, turn.text) for turn in recording.trace.turns}
            if not said.issuperset(said_in(self._events)):
                raise ConfigError("the recorded trace is not of these replies")
            await exaid.replay(recording)
            self._events = list(recording.trace.events)
        except Exception as error:  # noqa: BLE001 - a watcher must not disturb the run
            self._note(error)

    def _outcome(self) -> tuple[ExaidRecord, Watched]:
        error = "; ".join(dict.fromkeys(self._errors)) or None
        exaid = self.exaid
        if exaid is None:
            return ExaidRecord(), Watched(error=error)
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
        watched = Watched(
            tail_loss=round(exaid.tail_loss(), 4),
            missed_alerts=exaid.missed_alerts(),
            error=error,
        )
        return record, watched

    def _make_exaid(self) -> EXAID | None:
        run = self._run
        if run.policy is None or run.models is None:
            return None
        from exaid_core.config import ExaidConfig
        from exaid_core.exaid import EXAID

        return EXAID(
            buffer_llm=Limited(run.models.buffer_agent, run.check_run),
            summarizer_llm=Limited(run.models.summarizer, run.check_run),
            config=ExaidConfig(policy=run.policy),
            case_id=self._case_id,
            now_ms=self._now_ms,
            monotonic=run.clock.monotonic,
            on_summary=self._show_summary,
        )

    def _show(self, event: TraceEvent) -> None:
        if event.kind is EventKind.START:
            self._run.display.speaking(self._case_id, event.agent_id)

    def _show_summary(self, summary: AgentSummary) -> None:
        self._run.display.summary(self._case_id, summary)

    def _try_to_write(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001 - a watcher must not disturb the run
            self._note(error)

    def _write(self) -> None:
        from exaid_core.trace.files import write_gz
        from exaid_core.trace.traces import write_trace

        run, case_id = self._run, self._case_id
        revision = run.revision or "unknown"
        trace_path, log_path = case_files(run.folder, case_id)
        write_trace(
            trace_path,
            self._events,
            case_id=case_id,
            mas_run_id=run.mas_run_id,
            mac_commit=revision,
            model=run.model,
            created_at=self._created_at,
            exaid_commit=revision,
        )
        if self.exaid is not None:
            lines = self.exaid.log.lines(
                created_at=self._created_at,
                mas_run_id=run.mas_run_id,
                eval_run_id=f"eval-live-{run.mas_run_id.removeprefix('mas_')}",
            )
            write_gz(log_path, lines)

    def _note(self, error: Exception) -> None:
        self._errors.append(" ".join(str(error).split()) or type(error).__name__)


def _ignore(event: TraceEvent) -> None:
    pass
