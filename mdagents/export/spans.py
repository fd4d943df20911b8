"""Transcript of a sample: a tree of spans, flattened to the list of events that Inspect stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, cycle, islice

from inspect_ai.event import Event, ModelEvent, SpanBeginEvent, SpanEndEvent
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    StopReason,
)

from mdagents.export.ledger import asked, model_usage
from mdagents_llm.clock import timestamp_of
from mdagents_llm.ledger import UNUSABLE, CallRow, Totals

_STOP_REASONS: dict[str, StopReason] = {
    "ok": "stop", "truncated": "max_tokens", "refused": "content_filter",
    UNUSABLE: "unknown",
}  # fmt: skip
_MESSAGES: dict[str, type[ChatMessageSystem | ChatMessageUser | ChatMessageAssistant]] = {
    "system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant,
}  # fmt: skip
_CONFIG = GenerateConfig()
_ID_LENGTH = 22  # length of the short UUIDs that Inspect makes


def stable_id(*parts: str) -> str:
    """Return an id that depends only on `parts`."""
    return sha256("\0".join(parts).encode()).hexdigest()[:_ID_LENGTH]


def time_of(ms: int) -> datetime:
    """Return the UTC time `ms` milliseconds after 1970."""
    return datetime.fromtimestamp(ms / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """A named period with the spans and events in it."""

    name: str
    type: str
    """Type of the span for Inspect, which shows `agent` as the work of an agent."""
    timestamp: datetime
    completed: datetime
    items: Sequence[Span | Event] = ()
    description: str = ""


def around(name: str, kind: str, items: Sequence[Span | Event], at: datetime) -> Span:
    """Return a span that covers its items; without items, it is at the time `at`."""
    start = min((item.timestamp for item in items), default=at)
    return Span(name, kind, start, max(map(_end, items), default=start), items)


def _end(item: Span | Event) -> datetime:
    completed = item.completed if isinstance(item, Span | ModelEvent) else None
    return completed or item.timestamp


def flat(spans: Sequence[Span], sample_id: str) -> list[Event]:
    """Return the events of a sample; each span is contiguous, even if others overlap it.

    Args:
        spans: Top-level spans.
        sample_id: Id of the sample, from which the ids of events and spans are derived.
    """
    start = min(span.timestamp for span in spans)
    events: list[Event] = []

    def add(event: Event, span_id: str) -> None:
        event.uuid = stable_id(sample_id, "event", str(len(events)))
        event.span_id = span_id
        event.working_start = max(0.0, (event.timestamp - start).total_seconds())
        events.append(event)

    def walk(span: Span, parent_id: str | None) -> None:
        id_ = stable_id(sample_id, "span", str(len(events)))
        about = {"description": span.description} if span.description else None
        begin = SpanBeginEvent(
            id=id_, parent_id=parent_id, type=span.type, name=span.name, metadata=about,
            timestamp=span.timestamp,
        )  # fmt: skip
        add(begin, id_)
        for item in span.items:
            if isinstance(item, Span):
                walk(item, id_)
            else:
                add(item, id_)
        add(SpanEndEvent(id=id_, timestamp=span.completed), id_)

    for span in spans:
        walk(span, None)
    return events


def model_call(
    call: CallRow,
    said: str,
    within: tuple[int, int] | None,
    pictures: Sequence[Content] = (),
) -> ModelEvent:
    """Return the event of a model call.

    Args:
        call: Ledger row of the call.
        said: Published text of the reply, used if the row does not hold the reply.
        within: Start and end, in ms since 1970 UTC, of the turn or trace of a cached reply. The
            event is moved into this period and takes no time; in a replay, the original time is
            later than the trace and is kept in `metadata`.
        pictures: Pictures in the prompt.
    """
    start, end = call.started_ms, call.ended_ms
    if call.cached and within is not None:
        start = end = min(max(start, within[0]), within[1])
    about: dict[str, object] = {
        "phase": call.phase,
        "agent": call.agent,
        "outcome": call.outcome,
        "attempt": call.attempt,
        "waited": call.waited,
    }
    if start != call.started_ms:
        about["replayed_at"] = timestamp_of(call.started_ms)
    if call.replied:
        text = said if call.reply is None and call.is_usable else call.reply or ""
        output = answer(call.model, text, _STOP_REASONS[call.outcome], call.reasoning or "")
        output.usage = model_usage(Totals.of(call))
    else:
        output = ModelOutput(model=call.model or call.model_requested)
    output.time = call.latency
    return ModelEvent(
        timestamp=time_of(start),
        completed=time_of(end),
        working_time=call.latency,
        model=asked(call),
        role=call.role,
        input=_prompt(call.prompt or (), pictures),
        tools=[],
        tool_choice="none",
        config=_CONFIG,
        output=output,
        cache="read" if call.cached else None,
        error=None if call.is_usable else call.outcome,
        metadata=about,
    )


def answer(
    model: str, text: str, stop_reason: StopReason = "stop", reasoning: str = ""
) -> ModelOutput:
    """Return the output of a model: one text, preceded by its hidden reasoning if any."""
    parts: list[Content] = [ContentReasoning(reasoning=reasoning), ContentText(text=text)]
    said = ChatMessageAssistant(
        id=stable_id("message", "assistant", text),
        content=parts if reasoning else text,
        source="generate",
        model=model,
    )
    return ModelOutput(
        model=model, choices=[ChatCompletionChoice(message=said, stop_reason=stop_reason)]
    )


def _prompt(texts: Sequence[str], pictures: Sequence[Content]) -> list[ChatMessage]:
    """Return the ledger's prompt texts as messages: system and user, and two more after a re-ask.

    A single text is a user message. The first user message has the pictures.
    """
    later = islice(cycle(("user", "assistant")), len(texts))
    roles = list(later if len(texts) == 1 else chain(("system",), later))
    messages: list[ChatMessage] = []
    for role, text in zip(roles, texts, strict=False):
        if role == "user" and pictures:
            messages.append(shown(text, pictures))
            pictures = ()
        else:
            messages.append(_MESSAGES[role](id=stable_id("message", role, text), content=text))
    return messages


def shown(text: str, pictures: Sequence[Content]) -> ChatMessageUser:
    """Return a user message with pictures before its text."""
    parts = [part.model_dump_json() for part in pictures]
    return ChatMessageUser(
        id=stable_id("message", "user", *parts, text),
        content=[*pictures, ContentText(text=text)],
    )
