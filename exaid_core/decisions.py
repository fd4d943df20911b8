"""Decides on segments, and summarises them when that is due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exaid_core.buffer_agent.buffer_agent import BufferAgent, Judgement, TriggerReason
from exaid_core.config import JUDGED, ExaidConfig
from exaid_core.history import History
from exaid_core.run_log import RunLog
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.segments import Segment
from exaid_core.summarizer_agent.summarizer_agent import NO_SUMMARY, SummarizerAgent


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
    on_summary: Callable[[AgentSummary], None] | None
    """Called with each summary as soon as it is there."""
    pace: float = 0.0
    """Seconds that the last judgement took."""

    async def consider(
        self, segments: list[Segment], unasked: TriggerReason | None, *, is_cut: bool = False
    ) -> AgentSummary | None:
        """Decide on segments, and summarise if that is due.

        Args:
            segments: The new segments.
            unasked: Why the buffer agent is not asked, under a policy that has one.
            is_cut: Whether to end before the summary, as the recorded run did.
        """
        if self.config.policy not in JUDGED:
            self.buffer_agent.hold(segments)
            return await self.summarise()
        if unasked is None:
            told = [*self.history.past().values()]
            judgement = await self.buffer_agent.judge(segments, told)
        else:
            self.buffer_agent.hold(segments)
            judgement = Judgement(unasked)
        if judgement.asked is not None:
            self.pace = judgement.asked.latency_ms / 1000
        self.log.decided(judgement, segments)
        return await self.summarise() if judgement.triggers and not is_cut else None

    async def summarise(self) -> AgentSummary | None:
        """Summarise what is in the buffer; it stays there if that fails."""
        segments = self.buffer_agent.take()
        if not segments:
            return None
        past = self.history.past()
        *earlier, latest = past.values() or [NO_SUMMARY]
        try:
            written = await self.summarizer_agent.write(earlier, latest, segments)
            draft = written.summary
            summary = None if draft is None else self.history.checked(draft, segments)
            event_id = self.log.summarised(written, summary, segments, list(past))
        except BaseException:
            self.buffer_agent.put_back(segments)
            raise
        if summary is None:
            self.buffer_agent.put_back(segments)
            return None
        self.history.add(summary, event_id)
        if self.on_summary is not None:
            self.on_summary(summary)
        return summary
