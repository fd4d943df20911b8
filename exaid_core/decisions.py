"""Decides on segments, and summarizes them when a summary is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from exaid_core.buffer_agent.buffer_agent import BufferAgent, Judgment, TriggerReason
from exaid_core.config import JUDGED, ExaidConfig
from exaid_core.health import Monitor
from exaid_core.history import History
from exaid_core.recording import Progress, Step
from exaid_core.run_log import RunLog, summary_of
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.segments import Segment, alerts_in, in_parts, size, windows
from exaid_core.summarizer_agent.summarizer_agent import NO_SUMMARY, SummarizerAgent, Written
from exaid_core.trace.run_records import SummaryEvent
from mdagents_llm.config import LLMRole

_MOST_DOUBLINGS = 20
_SMALLEST_WINDOW = 50  # CTU; a model whose context is smaller cannot summarize anything


class Backoff:
    """Exponential backoff for a model that keeps failing, measured in text instead of time.

    This keeps the cost of failed calls linear in the text. The first failure may be a bad moment.
    From the second consecutive failure on, the next call waits for as much new text as the failed
    call was about; each further failure doubles the wait.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0

    def may_ask(self, said: int) -> bool:
        """Return whether to call the model, given the CTU that the agents have said so far."""
        return said >= self._until

    def succeeded(self) -> None:
        """Reset the backoff after a successful call."""
        self._failures = self._until = 0

    def failed(self, said: int, asked: int) -> None:
        """Record a failed call about `asked` CTU, made when the agents had said `said` CTU."""
        self._failures += 1
        if self._failures > 1:
            self._until = said + asked * 2 ** min(self._failures - 2, _MOST_DOUBLINGS)


@dataclass(slots=True)
class Decisions:
    """The decisions on the text of a case; only one may be in progress at a time.

    A canceled decision leaves each of its segments in the buffer.
    """

    config: ExaidConfig
    buffer_agent: BufferAgent
    """Buffers the segments, and judges them under the policies that require it."""
    summarizer_agent: SummarizerAgent
    log: RunLog
    history: History
    monitor: Monitor
    on_summary: Callable[[AgentSummary], None]
    """Callback for each summary as soon as it is written; never raises."""
    pace: float = 0.0
    """Duration of the last judgment in seconds."""
    _judging: Backoff = field(default_factory=Backoff)
    _writing: Backoff = field(default_factory=Backoff)
    _failed_alerts: set[str] = field(default_factory=set)
    """Alerts in the text of failed summaries since the last success."""
    _refuses: bool = False
    """Whether the last summary failed because of its text."""
    _fits: int | None = None
    """Maximum CTU of text in a prompt; None until the model has refused a prompt as too long."""

    async def consider(
        self, segments: list[Segment], unasked: TriggerReason | None
    ) -> AgentSummary | None:
        """Decide on segments, and summarize if that is due and the summarizer is not in backoff.

        Args:
            segments: New segments.
            unasked: Why the buffer agent is not called; None if it is. Ignored under policies
                without a buffer agent.
        """
        if self.config.policy not in JUDGED:
            self.buffer_agent.hold(segments)
            return await self.summarize() if self._may_summarize(segments) else None
        if unasked is None and not self._judging.may_ask(self.buffer_agent.said):
            unasked = self.buffer_agent.due(segments)
        judgment = await self._judged(segments, unasked)
        if judgment.triggers and not self._may_summarize(segments):
            judgment = replace(judgment, reason=TriggerReason.BACKED_OFF)
        self.log.decided(judgment, segments)
        return await self.summarize() if judgment.triggers else None

    def restore(self, segments: Sequence[Segment], progress: Progress) -> list[Segment]:
        """Restore decisions and summaries that an earlier EXAID made and paid for.

        Args:
            segments: Text of `progress`, as it has just been logged.
            progress: Progress of the earlier EXAID on this text.

        Returns:
            The segments that no decision covers.
        """
        covered = set[int]()
        due: list[Segment] = []
        made: list[tuple[AgentSummary, str]] = []
        for event in progress.summaries:
            if not event.part:
                due = _due_with(event, segments)
            if event.schema_ok:
                covered.update(event.source_seqs or ())
                rest = [one for one in due if not covered.issuperset(one.seqs)]
                made.append((summary_of(event, segments, rest), event.event_id))
        self.log.restore(progress.decisions, progress.summaries)
        for summary, event_id in made:
            self.history.add(summary, event_id)
        decided = {index for decision in progress.decisions for index in decision.covered or ()}
        left = [segment for segment in segments if not covered.issuperset(segment.seqs)]
        self.buffer_agent.hold([one for one in left if one.flush_index in decided])
        return [one for one in left if one.flush_index not in decided]

    async def repeat(self, segments: list[Segment], step: Step) -> None:
        """Replay a recorded decision on segments, with recorded replies of the models."""
        if self.config.policy in JUDGED:
            judgment = await self._judged(segments, step.unasked)
            if step.is_backed_off:
                judgment = replace(judgment, reason=TriggerReason.BACKED_OFF)
            self.log.decided(judgment, segments)
        else:
            self.buffer_agent.hold(segments)
        await self.summarize(step.calls)

    async def summarize(self, most: int | None = None) -> AgentSummary | None:
        """Summarize the buffered text and return the last summary; failed text stays buffered.

        Text that the model refuses as too long is summarized in parts. If the previous summary
        failed because of its text, both halves of the buffer are tried separately.

        Args:
            most: Number of calls after which to stop, as in the recorded run; None summarizes all.
        """
        taken = self.buffer_agent.take()
        # A single text that the model refuses may keep all others from being summarized.
        in_halves = self._refuses
        left = self._windows(taken, size(taken) // 2 if in_halves else None)
        failed = list[Segment]()
        calls, summary = 0, None
        try:
            while left and calls != most:
                is_first_of_several = calls == 0 and (len(left) > 1 or left[0][-1].is_part)
                due = taken if is_first_of_several else None
                written, latest = await self._write(left[0], calls, due)
                calls += 1
                half = size(left[0]) // 2
                if latest is not None:
                    left.popleft()
                    summary = latest
                elif written.is_too_long and half >= _SMALLEST_WINDOW:
                    self._fits = half
                    left = self._windows(segment for group in left for segment in group)
                else:
                    self._tell_of_failure(written, left[0])
                    failed += left.popleft()
                    self._refuses = written.is_about_text
                    if not (in_halves and self._refuses):
                        break
        finally:
            rest = [segment for window in left for segment in window]
            self.buffer_agent.put_back([*failed, *rest])
        if failed:
            self._writing.failed(self.buffer_agent.said, size(failed))
        else:
            self._refuses = False
        return summary

    async def _judged(self, segments: list[Segment], unasked: TriggerReason | None) -> Judgment:
        if unasked is not None:
            self.buffer_agent.hold(segments)
            return Judgment(unasked)
        told = [*self.history.past().values()]
        judgment = await self.buffer_agent.judge(segments, told)
        asked = judgment.asked
        assert asked is not None
        self.pace = asked.latency_ms / 1000
        if asked.reply is None:
            self._judging.failed(self.buffer_agent.said, size(segments))
            self.monitor.call_failed(LLMRole.BUFFER_AGENT.value, asked.error, asked.cause)
        else:
            self._judging.succeeded()
            self.monitor.call_succeeded(LLMRole.BUFFER_AGENT.value)
        return judgment

    def _may_summarize(self, new: list[Segment]) -> bool:
        """Return whether to call the summarizer; new alerts bypass the backoff."""
        is_new = not self._failed_alerts.issuperset(alerts_in(new))
        return is_new or self._writing.may_ask(self.buffer_agent.said)

    async def _write(
        self, window: list[Segment], part: int, due: list[Segment] | None
    ) -> tuple[Written, AgentSummary | None]:
        past = self.history.past()
        *earlier, latest = past.values() or [NO_SUMMARY]
        written = await self.summarizer_agent.write(earlier, latest, window)
        draft = written.summary
        summary = None if draft is None else self.history.checked(draft, window)
        event_id = self.log.summarized(written, summary, window, list(past), part, due)
        if summary is not None:
            self._writing.succeeded()
            self._failed_alerts.clear()
            self.monitor.call_succeeded(LLMRole.SUMMARIZER.value)
            self.history.add(summary, event_id)
            self.on_summary(summary)
        return written, summary

    def _tell_of_failure(self, written: Written, window: list[Segment]) -> None:
        alerts = alerts_in(window)
        self._failed_alerts.update(alerts)
        self.monitor.call_failed(LLMRole.SUMMARIZER.value, written.error, written.cause, alerts)

    def _windows(
        self, segments: Iterable[Segment], budget: int | None = None
    ) -> deque[list[Segment]]:
        """Return the segments in groups, one per prompt, within the model's limit and `budget`."""
        if self._fits is not None:
            fits = self._fits
            segments = [part for segment in segments for part in in_parts(segment, fits)]
            budget = min(fits, budget or fits)
        held = list(segments)
        return deque(windows(held, size(held) if budget is None else budget))


def _due_with(event: SummaryEvent, segments: Sequence[Segment]) -> list[Segment]:
    """Return the text that was due when `event`, the first of one or more calls, was made.

    Text that is too long for one call is summarized in parts, by several calls.
    """
    if event.covered is not None:
        return [one for one in segments if one.flush_index in event.covered]
    seqs = set(event.source_seqs or ())
    return [one for one in segments if seqs.issuperset(one.seqs)]
