"""The transcript of a sample: a tree of spans, as the flat list of events that Inspect keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from infra.clock import timestamp_of
from mdagents.export.calls import Call
from mdagents.export.ids import JSONObject, stable_id
from mdagents.export.usage import model_usage

_STOP_REASONS = {"ok": "stop", "truncated": "max_tokens", "refused": "content_filter"}
_PROMPT_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a time: any event except the ends of a span."""

    start_ms: int
    end_ms: int
    content: JSONObject
    """The event's own fields, `event` among them."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, and what happened in it."""

    name: str
    kind: str
    """`agent` for what Inspect shows as the work of an agent."""
    start_ms: int
    end_ms: int
    items: Sequence[Span | Event] = ()
    description: str = ""


def around(name: str, kind: str, items: Sequence[Span | Event], start_ms: int) -> Span:
    """Return a span that covers its contents; an empty one begins at `start_ms`."""
    start = min((item.start_ms for item in items), default=start_ms)
    end = max((item.end_ms for item in items), default=start)
    return Span(name, kind, start, end, items)


def flat(spans: Sequence[Span], sample_id: str) -> list[JSONObject]:
    """Return the events of a sample: each span in one piece, whatever else happened meanwhile.

    Args:
        spans: At the top.
        sample_id: Of the sample; ids of events and spans are made from it.
    """
    start_ms = min(span.start_ms for span in spans)
    events: list[JSONObject] = []

    def add(ms: int, span_id: str, content: JSONObject) -> None:
        events.append(
            {
                "uuid": stable_id(sample_id, "event", str(len(events))),
                "span_id": span_id,
                "timestamp": timestamp_of(ms),
                "working_start": max(0, ms - start_ms) / 1000,
                **content,
            }
        )

    def walk(span: Span, parent_id: str | None) -> None:
        span_id = stable_id(sample_id, "span", str(len(events)))
        begin: JSONObject = {"event": "span_begin", "id": span_id}
        begin |= {"type": span.kind, "name": span.name}
        if parent_id:
            begin["parent_id"] = parent_id
        if span.description:
            begin["metadata"] = {"description": span.description}
        add(span.start_ms, span_id, begin)
        for item in span.items:
            if isinstance(item, Span):
                walk(item, span_id)
            else:
                add(item.start_ms, span_id, item.content)
        add(span.end_ms, span_id, {"event": "span_end", "id": span_id})

    for span in spans:
        walk(span, None)
    return events


def instant(ms: int, content: JSONObject) -> Event:
    """Return an event that takes no time."""
    return Event(ms, ms, content)


def info(ms: int, source: str, data: object) -> Event:
    """Return an event to be read. `data` is any JSON; a string is shown as text."""
    return instant(ms, {"event": "info", "source": source, "data": data})


def model_call(call: Call, said: str, within: tuple[int, int] | None) -> Event:
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
    content: JSONObject = {
        "event": "model",
        "model": call.asked,
        "role": call.role,
        "input": _prompt(call.prompt or ()),
        "tools": [],
        "tool_choice": "none",
        "config": {},
        "output": _output(call, said),
        "completed": timestamp_of(end),
        "working_time": call.latency,
        "metadata": {
            "phase": call.phase,
            "agent": call.agent,
            "outcome": call.outcome,
            "attempt": call.attempt,
            "waited": call.waited,
            **({"replayed_at": timestamp_of(call.started_ms)} if start != call.started_ms else {}),
        },
    }
    if call.cached:
        content["cache"] = "read"
    if not call.replied:
        content["error"] = call.outcome
    return Event(start, end, content)


def message(role: str, text: str, **more: object) -> JSONObject:
    """Return a message of a chat."""
    return {"id": stable_id("message", role, text), "role": role, "content": text, **more}


def answer(model: str, text: str, stop_reason: str = "stop") -> JSONObject:
    """Return a model's output: model, choices and completion of Inspect's `ModelOutput`."""
    said = message("assistant", text, source="generate", model=model)
    return {
        "model": model,
        "choices": [{"message": said, "stop_reason": stop_reason}],
        "completion": text,
    }


def _prompt(texts: Sequence[str]) -> list[JSONObject]:
    """Give the ledger's texts their roles: system, user, and two more after a re-ask."""
    return [message(role, text) for role, text in zip(_roles(len(texts)), texts, strict=True)]


def _roles(count: int) -> Iterator[str]:
    if count == 1:
        yield "user"
        return
    for place in range(count):
        yield _PROMPT_ROLES[0] if place == 0 else _PROMPT_ROLES[1 if place % 2 else 2]


def _output(call: Call, said: str) -> JSONObject:
    if not call.replied:
        return {"model": call.model or call.model_requested, "choices": [], "time": call.latency}
    text = said if call.reply is None else call.reply
    return {
        **answer(call.model, text, _STOP_REASONS[call.outcome]),
        "usage": model_usage(call.totals()),
        "time": call.latency,
    }
