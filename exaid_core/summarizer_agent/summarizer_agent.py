"""Writes a summary of new text, in six bounded fields."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from exaid_core.echoes import empty_fields
from exaid_core.model_call import Caller, added
from exaid_core.prompts import PROMPTS
from exaid_core.schema.agent_summary import (
    LIMITS,
    PLACEHOLDER,
    AgentSummary,
    SummaryDraft,
    excess,
    says_nothing,
)
from exaid_core.segments import Said, block
from exaid_core.summarizer_agent.choices import form_of_choices
from exaid_core.trace.run_records import LlmUsage, SummaryFailure
from mdagents_llm.chat import ChatMessage, ChatModel
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import BenchError, ErrorKind, ProviderError
from mdagents_llm.llm_registry import get_llm

NO_SUMMARY = "No summaries yet."
"""Takes the place of the latest summary before the first."""


class SummaryError(BenchError):
    """The model gave no summary."""


@dataclass(frozen=True, slots=True)
class Written:
    """A summary, or the attempt at one."""

    summary: AgentSummary | None
    """Within its limits; without provenance and checks. None if the model gave no summary."""
    error: str
    """Why there is no summary, on one line."""
    failure: SummaryFailure | None
    prompt: str
    """The text of the prompt."""
    usage: LlmUsage
    """Of the call, and of its repair."""
    latency_ms: int
    is_too_long: bool = False
    """Whether the prompt did not fit into the model's context."""
    cause: Exception | None = None
    """The exception with which the call failed, if there was one."""

    @property
    def is_about_text(self) -> bool:
        """Whether there is no summary because of the text, as far as one can tell."""
        is_refused = (
            isinstance(self.cause, ProviderError) and self.cause.kind is ErrorKind.BAD_REQUEST
        )
        return self.failure is SummaryFailure.SCHEMA_VALIDATION_ERROR or is_refused


class SummarizerAgent:
    """Asks a model for a summary and enforces its limits.

    Args:
        llm: The model that writes; None: that of the role registry.
        case_id: Books the calls under this case.
        monotonic: Clock in seconds.
        timeout: Seconds for a call; see `ExaidConfig.call_timeout`.
    """

    def __init__(
        self,
        llm: ChatModel | None = None,
        *,
        case_id: str = "",
        monotonic: Callable[[], float] = time.perf_counter,
        timeout: float | None = None,
    ) -> None:
        model = get_llm(LLMRole.SUMMARIZER) if llm is None else llm
        self._is_small = getattr(model, "is_small", False)
        self._caller = Caller(model, LLMRole.SUMMARIZER, case_id, monotonic, timeout)

    async def summarize(
        self, summary_history: Sequence[str], latest_summary: str, new_buffer: str
    ) -> AgentSummary:
        """Summarise text, given the earlier summaries.

        Args:
            summary_history: Earlier summaries, oldest first, without the latest.
            latest_summary: The latest, or `NO_SUMMARY`.
            new_buffer: The new text.

        Raises:
            SummaryError: The model gave no summary.
        """
        written = await self.write(summary_history, latest_summary, [Said("", new_buffer)])
        if written.summary is None:
            raise SummaryError(written.error)
        return written.summary

    async def write(self, history: Sequence[str], latest: str, said: Sequence[Said]) -> Written:
        """Summarise what agents said. A field that is too long is repaired by one call, then cut.

        A field that reports nothing of it (see `empty_fields`) becomes the placeholder. A reply
        that says nothing in any field is no summary.
        """
        messages = _prompt(history, latest, said)
        form = form_of_choices(said) if self._is_small else SummaryDraft
        asked = await self._caller.ask(messages, form)
        usage, latency = asked.usage, asked.latency_ms
        user = messages[-1].content
        draft = asked.reply
        if draft is not None and (too_long := excess(draft)):
            again = await self._caller.ask((*messages, *_repair(draft, too_long)), SummaryDraft)
            usage, latency = added(usage, again.usage), latency + again.latency_ms
            if again.reply is not None and sum(excess(again.reply).values()) <= sum(
                too_long.values()
            ):
                draft = again.reply
        emptied: tuple[str, ...] = ()
        if draft is not None:
            texts = [*history, latest, *(f"{one.agent_id}\n{one.text}" for one in said)]
            emptied = empty_fields(
                {name: getattr(draft, name) for name in LIMITS},
                said="\n".join(texts),
                prompt=messages[0].content,
            )
            draft = draft.model_copy(update=dict.fromkeys(emptied, PLACEHOLDER))
        is_empty = draft is not None and says_nothing(draft)
        if draft is None or is_empty:
            kind = SummaryFailure.UNEXPECTED_ERROR
            if asked.is_malformed or is_empty:
                kind = SummaryFailure.SCHEMA_VALIDATION_ERROR
            error = asked.error or "the summary says nothing"
            if emptied:
                error = "the summary says nothing that an agent said"
            return Written(None, error, kind, user, usage, latency, asked.is_too_long, asked.cause)
        summary = AgentSummary.from_draft(draft).model_copy(update={"emptied_fields": emptied})
        cut = SummaryFailure.LENGTH_LIMIT_VIOLATION if summary.truncated_fields else None
        return Written(summary, "", cut, user, usage, latency)


def _prompt(history: Sequence[str], latest: str, said: Iterable[Said]) -> tuple[ChatMessage, ...]:
    user = PROMPTS.render(
        "summary_user",
        history="\n".join(history) or "(none)",
        latest=latest,
        new=block(said),
    )
    return (
        ChatMessage("system", PROMPTS.render("summary_system")),
        ChatMessage("user", user),
    )


def _repair(draft: SummaryDraft, too_long: dict[str, int]) -> tuple[ChatMessage, ChatMessage]:
    named = ", ".join(f"{name} by {characters} characters" for name, characters in too_long.items())
    return (
        ChatMessage("assistant", draft.model_dump_json()),
        ChatMessage("user", PROMPTS.render("summary_repair", excess=named)),
    )
