"""Decides on segments, and summarises them when that is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from exaid_core.buffer_agent.buffer_agent import BufferAgent, Judgement, TriggerReason
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
_SMALLEST_WINDOW = 50  # CTU; a model into which this does not fit can summarise nothing


class Backoff:
    """How long a model that keeps failing is not asked, in text: so its cost is linear in that.

    The first failure may be a bad moment. From the second in a row on, the next call waits for as
    much new text as the failed one was about, and after each further one for twice as much.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0

    def may_ask(self, said: int) -> bool:
        """Return whether to ask, when the agents have said so many CTU."""
        return said >= self._until

    def succeeded(self) -> None:
        """Ask as usual from now on."""
        self._failures = self._until = 0

    def failed(self, said: int, asked: int) -> None:
        """Note a failed call about `asked` CTU, when the agents had said `said` CTU."""
        self._failures += 1
        if self._failures > 1:
            self._until = said + asked * 2 ** min(self._failures - 2, _MOST_DOUBLINGS)


@dataclass(slots=True)
class Decisions:
    """The decisions on the text of a case, of which only one may be under way at a time.

    A decision that is cancelled leaves each of its segments in the buffer.
    """

    config: ExaidConfig
    buffer_agent: BufferAgent
    """Keeps the segments, and judges them under the policies that ask for it."""
    summarizer_agent: SummarizerAgent
    log: RunLog
    history: History
    monitor: Monitor
    on_summary: Callable[[AgentSummary], None]
    """Called with each summary as soon as it is there; never raises."""
    pace: float = 0.0
    """Seconds that the last judgement took."""
    _judging: Backoff = field(default_factory=Backoff)
    _writing: Backoff = field(default_factory=Backoff)
    _failed_alerts: set[str] = field(default_factory=set)
    """Alerts that the summarizer has been asked about without success."""
    _refuses: bool = False
    """Whether the last summary has failed because of its text."""
    _fits: int | None = None
    """CTU that a prompt may hold, when the model has refused more."""

    async def consider(
        self, segments: list[Segment], unasked: TriggerReason | None
    ) -> AgentSummary | None:
        """Decide on segments, and summarise if that is due and the summarizer is not backed off.

        Args:
            segments: The new segments.
            unasked: Why the buffer agent is not asked, under a policy that has one.
        """
        if self.config.policy not in JUDGED:
            self.buffer_agent.hold(segments)
            return await self.summarise() if self._may_summarise(segments) else None
        if unasked is None and not self._judging.may_ask(self.buffer_agent.said):
            unasked = self.buffer_agent.due(segments)
        judgement = await self._judged(segments, unasked)
        if judgement.triggers and not self._may_summarise(segments):
            judgement = replace(judgement, reason=TriggerReason.BACKED_OFF)
        self.log.decided(judgement, segments)
        return await self.summarise() if judgement.triggers else None

    def restore(self, segments: Sequence[Segment], progress: Progress) -> list[Segment]:
        """Take over decisions and summaries that were made and paid for earlier.

        Args:
            segments: The text of `progress`, as it has just been logged.
            progress: How far an earlier EXAID had come with it.

        Returns:
            The segments on which nothing has been decided.
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
        """Repeat a recorded decision on segments, with recorded replies of the models."""
        if self.config.policy in JUDGED:
            judgement = await self._judged(segments, step.unasked)
            if step.is_backed_off:
                judgement = replace(judgement, reason=TriggerReason.BACKED_OFF)
            self.log.decided(judgement, segments)
        else:
            self.buffer_agent.hold(segments)
        await self.summarise(step.calls)

    async def summarise(self, most: int | None = None) -> AgentSummary | None:
        """Summarise what is in the buffer, and return the last summary; what fails stays there.

        Text that the model refuses as too long is summarised in parts. After a failure that is not
        for lack of an endpoint, both halves of the text are tried.

        Args:
            most: Calls after which to stop, as the recorded run did; None: when all is done.
        """
        taken = self.buffer_agent.take()
        # Maybe a single text that the model refuses keeps all others from a summary.
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

    async def _judged(self, segments: list[Segment], unasked: TriggerReason | None) -> Judgement:
        if unasked is not None:
            self.buffer_agent.hold(segments)
            return Judgement(unasked)
        told = [*self.history.past().values()]
        judgement = await self.buffer_agent.judge(segments, told)
        asked = judgement.asked
        assert asked is not None
        self.pace = asked.latency_ms / 1000
        if asked.reply is None:
            self._judging.failed(self.buffer_agent.said, size(segments))
            self.monitor.call_failed(LLMRole.BUFFER_AGENT.value, asked.error, asked.cause)
        else:
            self._judging.succeeded()
            self.monitor.call_succeeded(LLMRole.BUFFER_AGENT.value)
        return judgement

    def _may_summarise(self, new: list[Segment]) -> bool:
        """Return whether the summarizer is asked; about an alert that is new it always is."""
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
        event_id = self.log.summarised(written, summary, window, list(past), part, due)
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
        """Return the segments in groups, each for one prompt, of what fits or of the budget."""
        if self._fits is not None:
            fits = self._fits
            segments = [part for segment in segments for part in in_parts(segment, fits)]
            budget = min(fits, budget or fits)
        held = list(segments)
        return deque(windows(held, size(held) if budget is None else budget))


def _due_with(event: SummaryEvent, segments: Sequence[Segment]) -> list[Segment]:
    """Return the text that one or more calls are about, of which this is the first.

    A text that is too long for one call is summarized in parts, by several.
    """
    if event.covered is not None:
        return [one for one in segments if one.flush_index in event.covered]
    seqs = set(event.source_seqs or ())
    return [one for one in segments if seqs.issuperset(one.seqs)]
