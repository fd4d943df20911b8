"""Writes summaries of new text in six fields of limited length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from exaid_core.checks.echoes import empty_fields
from exaid_core.model_call import Caller, added
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.prompts import PROMPTS
from exaid_core.schema.agent_summary import LIMITS, AgentSummary, SummaryDraft, excess, says_nothing
from exaid_core.segments import Said, block
from exaid_core.summarizer_agent.choices import form_of_choices
from exaid_core.trace.run_records import LlmUsage, SummaryFailure
from mdagents_llm.chat import ChatMessage, ChatModel
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import BenchError, ErrorKind, ProviderError
from mdagents_llm.llm_registry import get_llm

NO_SUMMARY = "No summaries yet."
"""Text in place of the latest summary before the first one."""


class SummaryError(BenchError):
    """The model returned no summary."""


@dataclass(frozen=True, slots=True)
class Written:
    """A summary, or a failed attempt at one."""

    summary: AgentSummary | None
    """Summary within its limits, without provenance and checks; None if the attempt failed."""
    error: str
    """Reason for a missing summary, on one line; empty if there is a summary."""
    failure: SummaryFailure | None
    prompt: str
    """Text of the user prompt."""
    usage: LlmUsage
    """Usage of the call and its repair together."""
    latency_ms: int
    is_too_long: bool = False
    """Whether the prompt did not fit into the model's context."""
    cause: Exception | None = None
    """Exception with which the call failed; None without one."""

    @property
    def is_about_text(self) -> bool:
        """Whether the text itself is the probable reason for a missing summary."""
        is_refused = (
            isinstance(self.cause, ProviderError) and self.cause.kind is ErrorKind.BAD_REQUEST
        )
        return self.failure is SummaryFailure.SCHEMA_VALIDATION_ERROR or is_refused


class SummarizerAgent:
    """Requests a summary from a model and enforces its limits.

    Args:
        llm: Model that writes; None uses the one from the role registry.
        case_id: Case to which the calls are booked.
        monotonic: Clock in seconds.
        timeout: Timeout of a call in seconds, as in `ExaidConfig.call_timeout`.
    """

    def __init__(
        self,
        llm: ChatModel | None = None,
        *,
        case_id: str = "",
        monotonic: Callable[[], float] = time.perf_counter,
        timeout: float | None = None,
    ) -> None:
        self.llm = get_llm(LLMRole.SUMMARIZER) if llm is None else llm
        """Model that writes."""
        self._is_small = getattr(self.llm, "is_small", False)
        self._caller = Caller(self.llm, LLMRole.SUMMARIZER, case_id, monotonic, timeout)

    @property
    def summarize_prompt(self) -> tuple[ChatMessage, ChatMessage]:
        """System and user prompt with a `$name` for what differs between calls."""
        return (
            ChatMessage("system", PROMPTS.text("summary_system")),
            ChatMessage("user", PROMPTS.text("summary_user")),
        )

    async def summarize(
        self, summary_history: Sequence[str], latest_summary: str, new_buffer: str
    ) -> AgentSummary:
        """Summarize text, given the earlier summaries.

        Args:
            summary_history: Earlier summaries, oldest first, without the latest.
            latest_summary: Latest summary, or `NO_SUMMARY`.
            new_buffer: New text.

        Raises:
            SummaryError: The model returned no summary.
        """
        written = await self.write(summary_history, latest_summary, [Said("", new_buffer)])
        if written.summary is None:
            raise SummaryError(written.error)
        return written.summary

    async def write(self, history: Sequence[str], latest: str, said: Sequence[Said]) -> Written:
        """Summarize texts of agents, given the earlier summaries.

        Overlong fields are repaired by one more call, then cut. A field that reports nothing of the
        text (see `empty_fields`) is replaced by the placeholder. A reply whose fields are all empty
        counts as a failure.
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
