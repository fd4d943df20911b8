"""A request on its way through the layers, with what has happened to it so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from mdagents_llm.chat import ChatReply, ChatRequest


@dataclass(frozen=True, slots=True)
class Transit(ChatRequest):
    """A request in transit; callers and providers know it as a `ChatRequest`."""

    attempt: int = 1
    """Number of this attempt at the provider, counted from 1; set by `Retry`."""
    waited: float = 0.0
    """Seconds that this request has waited so far (backoff and queue); set by `Retry`, `Gate`."""
    on_sent: Callable[[], None] | None = None
    """Callback that `Gate` calls when the request gets its connection; set by `Hedge`."""
    on_reply: Callable[[ChatReply], None] | None = None
    """Callback that `Attempt` calls when the whole reply has arrived, before it is booked; set by
    `Gate`."""


_CONTENT = tuple(field.name for field in fields(ChatRequest))


def in_transit(request: ChatRequest, **changes: Any) -> Transit:
    """Return a request in transit with `changes`; the same object if nothing changes."""
    if isinstance(request, Transit):
        is_same = all(getattr(request, name) == value for name, value in changes.items())
        return request if is_same else replace(request, **changes)
    return Transit(**{name: getattr(request, name) for name in _CONTENT} | changes)
