"""The events of a question as info events of Inspect's transcript."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from dataclasses import asdict

from inspect_ai.log import transcript
from pydantic import JsonValue, TypeAdapter

from mdagents.agents.events import DebateMessage, Event, Recruited, Routed, Rung, Summarised

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_KINDS = {Routed: "routed", Recruited: "recruited", Rung: "rung", DebateMessage: "message"}


def observer(context: Context) -> Callable[[Event], None]:
    """Return an observer that adds events to the transcript, in the span of the question.

    Turns are spans, and the words of agents are in the events of their calls.

    Args:
        context: Context of the question.
    """

    def watch(event: Event) -> None:
        if isinstance(event, Summarised):
            summary = event.summary.model_dump(mode="json")
            _tell(context, {"summary": event.number, **summary}, "exaid")
        elif isinstance(event, Routed | Recruited | Rung | DebateMessage):
            _tell(context, {"event": _KINDS[type(event)], **asdict(event)}, "mdagents")

    return watch


def _tell(context: Context, data: dict[str, object], source: str) -> None:
    said = _JSON.validate_json(TypeAdapter(dict[str, object]).dump_json(data))
    context.copy().run(transcript().info, said, source=source)
