"""The transcript of a sample: a tree of spans, as the flat list of events that Inspect keeps."""

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
from mdagents_llm.ledger import CallRow, Totals

_STOP_REASONS: dict[str, StopReason] = {
    "ok": "stop", "truncated": "max_tokens", "refused": "content_filter",
}  # fmt: skip
_MESSAGES: dict[str, type[ChatMessageSystem | ChatMessageUser | ChatMessageAssistant]] = {
    "system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant,
}  # fmt: skip
_CONFIG = GenerateConfig()
_ID_LENGTH = 22  # as long as the short UUIDs that Inspect makes


def stable_id(*parts: str) -> str:
    """Return an id that depends on nothing but `parts`."""
    return sha256("\0".join(parts).encode()).hexdigest()[:_ID_LENGTH]


def time_of(ms: int) -> datetime:
    """Return the time `ms` after the beginning of 1970 UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, and what happened in it."""

    name: str
    type: str
    """`agent` for what Inspect shows as the work of an agent."""
    timestamp: datetime
    completed: datetime
    items: Sequence[Span | Event] = ()
    description: str = ""


def around(name: str, kind: str, items: Sequence[Span | Event], at: datetime) -> Span:
    """Return a span that covers its contents; an empty one is `at` a time."""
    start = min((item.timestamp for item in items), default=at)
    return Span(name, kind, start, max(map(_end, items), default=start), items)


def _end(item: Span | Event) -> datetime:
    completed = item.completed if isinstance(item, Span | ModelEvent) else None
    return completed or item.timestamp


def flat(spans: Sequence[Span], sample_id: str) -> list[Event]:
    """Return the events of a sample: each span in one piece, whatever else happened meanwhile.

    Args:
        spans: At the top.
        sample_id: Of the sample; ids of events and spans are made from it.
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


def model_call(call: CallRow, said: str, within: tuple[int, int] | None) -> ModelEvent:
    """Return the event of a model call.

    Args:
        call: Its row.
        said: The published text of the reply, where the row does not hold it.
        within: Start and end, in ms since 1970 UTC, of the turn or the trace that a kept reply
            belongs to: it takes no time, and in a replay its own time is later than the trace, and
            is then kept in `metadata` alone.
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
        text = said if call.reply is None else call.reply
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
        input=_prompt(call.prompt or ()),
        tools=[],
        tool_choice="none",
        config=_CONFIG,
        output=output,
        cache="read" if call.cached else None,
        error=None if call.replied else call.outcome,
        metadata=about,
    )


def answer(
    model: str, text: str, stop_reason: StopReason = "stop", reasoning: str = ""
) -> ModelOutput:
    """Return a model's output that is one text, behind its hidden reasoning."""
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


def _prompt(texts: Sequence[str]) -> list[ChatMessage]:
    """Give the ledger's texts their roles: system, user, and two more after a re-ask."""
    later = islice(cycle(("user", "assistant")), len(texts))
    roles = later if len(texts) == 1 else chain(("system",), later)
    return [
        _MESSAGES[role](id=stable_id("message", role, text), content=text)
        for role, text in zip(roles, texts, strict=False)
    ]
