"""Buffers the text that has no summary yet, and decides when it is worth one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

from exaid_core.checks.alerts import find_alert
from exaid_core.config import ExaidConfig
from exaid_core.ctu import fitting
from exaid_core.model_call import Asked, Caller
from exaid_core.policy import TriggerPolicy
from exaid_core.prompts import PROMPTS
from exaid_core.segments import Segment, block, size
from mdagents_llm.chat import ChatMessage, ChatModel
from mdagents_llm.clock import epoch_ms
from mdagents_llm.config import LLMRole
from mdagents_llm.llm_registry import get_llm


class BufferAnalysis(BaseModel):
    """The model's judgment of the newest segments."""

    reasoning: str = Field(json_schema_extra={"maxLength": 120})
    """Why, in a few words."""
    stream_state: Literal["SAME_TOPIC_CONTINUING", "TOPIC_SHIFT", "CRITICAL_ALERT"]
    """Whether the topic continues or has shifted, or there is danger to life."""
    is_relevant: bool
    """Whether it matters to a clinician."""
    is_novel: bool
    """Whether the latest summaries do not contain it."""
    final_trigger: bool
    """The model's own conclusion; only logged when it differs from the computed one."""


class TriggerReason(StrEnum):
    """Why a summary is due; `NONE` if none is due."""

    NONE = "none"
    TOPIC_SHIFT = "topic_shift"
    CRITICAL_ALERT = "critical_alert"
    """The model reports a danger to life."""
    LEXICAL_ALERT = "lexical_alert"
    """The words of the text report a danger to life, whatever the model's judgment."""
    BUFFER_FULL = "buffer_full"
    BUFFER_OLD = "buffer_old"
    FIRST_TEXT = "first_text"
    """No summary exists yet; the model was not asked."""
    BEHIND = "behind"
    """The text has waited too long to be judged first; the model was not asked."""
    BACKED_OFF = "backed_off"
    """A summary is due, but the summarizer keeps failing and is in backoff."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """The decision about the newest segments."""

    reason: TriggerReason
    asked: Asked[BufferAnalysis] | None = None
    """Outcome of the model call; None if the model was not asked, because a summary was due anyway
    or because the model keeps failing."""
    mismatch: bool = False
    """Whether the model's own `final_trigger` contradicts its other judgments."""

    @property
    def triggers(self) -> bool:
        """Whether a summary is due."""
        return self.reason not in (TriggerReason.NONE, TriggerReason.BACKED_OFF)


@dataclass(frozen=True, slots=True)
class TraceData:
    """Statistics of an agent's traces."""

    count: int
    """Number of segments that the agent has sent so far."""


class BufferAgent:
    """An ordered buffer of the segments of a case, and the model that judges new ones.

    Args:
        llm: Model that judges; None uses the one from the role registry.
        config: Size and age limits, and whether novelty is judged.
        case_id: Case to which the calls are booked.
        monotonic: Clock in seconds.
        now_ms: Clock in ms since 1970 UTC, for text that comes through `addsegment`.
    """

    def __init__(
        self,
        llm: ChatModel | None = None,
        config: ExaidConfig | None = None,
        *,
        case_id: str = "",
        monotonic: Callable[[], float] = time.perf_counter,
        now_ms: Callable[[], int] = epoch_ms,
    ) -> None:
        self.llm = get_llm(LLMRole.BUFFER_AGENT) if llm is None else llm
        """Model that judges."""
        self._config = config or ExaidConfig()
        timeout = self._config.call_timeout
        self._caller = Caller(self.llm, LLMRole.BUFFER_AGENT, case_id, monotonic, timeout)
        self._now_ms = now_ms
        self._held: list[Segment] = []
        self._counts: Counter[str] = Counter()
        self._analyses: dict[str, BufferAnalysis | None] = {}
        self.said = 0
        """Total CTU of all segments so far."""

    async def addsegment(
        self, agent_id: str, segment: str, previous_summaries: Sequence[str]
    ) -> bool:
        """Add a segment to the buffer and return whether a summary is due.

        Args:
            agent_id: Agent that wrote the segment.
            segment: Text of the segment.
            previous_summaries: Summaries against which novelty is judged, the latest last.
        """
        alert = find_alert(segment)
        alerts = () if alert is None else (alert,)
        new = Segment(agent_id, segment, (), self._now_ms(), self._counts.total(), alerts)
        return (await self.judge([new], previous_summaries)).triggers

    async def judge(self, new: list[Segment], previous_summaries: Sequence[str]) -> Judgment:
        """Add segments to the buffer and judge them together, in one call.

        If the model fails, the rules for words, size and age still decide.
        """
        newest_first = (segment.text for segment in reversed(self._held))
        shown = fitting(newest_first, self._config.context_ctu)
        waiting = self._held[len(self._held) - shown :]
        self.hold(new)
        asked = await self._caller.ask(
            self._prompt(waiting, new, previous_summaries), BufferAnalysis
        )
        analysis = asked.reply
        self._analyses |= {segment.agent_id: analysis for segment in new}
        by_model = self._by_model(analysis) if analysis else TriggerReason.NONE
        by_rule = self.due()
        reason = by_rule if by_model is TriggerReason.NONE else by_model
        if by_rule is TriggerReason.LEXICAL_ALERT:
            reason = by_rule
        mismatch = analysis is not None and analysis.final_trigger is (
            by_model is TriggerReason.NONE
        )
        return Judgment(reason, asked, mismatch)

    def hold(self, new: list[Segment]) -> None:
        """Add segments to the buffer without judging them."""
        self._held += new
        self.said += size(new)
        self._counts.update(segment.agent_id for segment in new)

    def take(self) -> list[Segment]:
        """Empty the buffer and return its segments, to be summarized."""
        taken, self._held = self._held, []
        return taken

    def put_back(self, segments: list[Segment]) -> None:
        """Return segments that could not be summarized to the front of the buffer."""
        self._held = segments + self._held

    def held(self) -> tuple[Segment, ...]:
        """Return the segments in the buffer."""
        return tuple(self._held)

    @property
    def buffer(self) -> list[str]:
        """Segments in the buffer, as `peek` returns them."""
        return self.peek()

    @property
    def base_llm(self) -> ChatModel:
        """Model that judges: a reply is checked against `BufferAnalysis` by the caller of `llm`."""
        return self.llm

    @property
    def flag_prompt(self) -> tuple[ChatMessage, ChatMessage]:
        """System and user prompt with a `$name` for what differs between calls."""
        return (
            ChatMessage("system", PROMPTS.text("buffer_system")),
            ChatMessage("user", PROMPTS.text("buffer_user")),
        )

    def peek(self) -> list[str]:
        """Return the segments in the buffer as `| agent | text`."""
        return [segment.tagged for segment in self._held]

    def flush(self) -> list[str]:
        """Empty the buffer and return its segments as `| agent | text`."""
        return [segment.tagged for segment in self.take()]

    @property
    def traces(self) -> dict[str, TraceData]:
        """Trace statistics by agent id, for each agent that has sent a segment."""
        return {agent_id: TraceData(number) for agent_id, number in self._counts.items()}

    def get_trace_count(self, agent_id: str) -> int:
        """Return the number of segments that an agent has sent so far."""
        return self._counts[agent_id]

    def get_last_analysis(self, agent_id: str) -> BufferAnalysis | None:
        """Return the model's latest judgment of an agent's text.

        Returns:
            The judgment; None if the model failed, or was never asked about the agent.
        """
        return self._analyses.get(agent_id)

    def _prompt(
        self, waiting: list[Segment], new: list[Segment], previous_summaries: Sequence[str]
    ) -> tuple[ChatMessage, ...]:
        user = PROMPTS.render(
            "buffer_user",
            summaries="\n".join(previous_summaries) or "No summaries yet.",
            waiting=block(waiting),
            new=block(new),
        )
        return (
            ChatMessage("system", PROMPTS.render("buffer_system")),
            ChatMessage("user", user),
        )

    def _by_model(self, analysis: BufferAnalysis) -> TriggerReason:
        is_novel = analysis.is_novel or self._config.policy is TriggerPolicy.NO_NOVELTY
        if not analysis.is_relevant:
            return TriggerReason.NONE
        if analysis.stream_state == "CRITICAL_ALERT":
            return TriggerReason.CRITICAL_ALERT
        if analysis.stream_state == "TOPIC_SHIFT" and is_novel:
            return TriggerReason.TOPIC_SHIFT
        return TriggerReason.NONE

    def due(self, new: Sequence[Segment] = ()) -> TriggerReason:
        """Return why the words, size or age of the buffer plus `new` make a summary due."""
        held = [*self._held, *new]
        if any(segment.is_alert for segment in held):  # including one whose summary failed
            return TriggerReason.LEXICAL_ALERT
        if size(held) > self._config.max_buffer_ctu:
            return TriggerReason.BUFFER_FULL
        age = held[-1].at_ms - held[0].at_ms if held else 0
        if age > 1000 * self._config.max_buffer_age:
            return TriggerReason.BUFFER_OLD
        return TriggerReason.NONE
