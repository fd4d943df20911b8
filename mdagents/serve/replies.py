"""What both APIs say of an answer: its text, its usage, and JSON for the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from mdagents.records.sample import SampleRecord
from mdagents.serve.errors import ApiError
from mdagents.serve.requests import Ask


class Wire(Protocol):
    """Writes the answer to one request in the form of an API."""

    def whole(self, record: SampleRecord, lines: Sequence[str]) -> dict[str, object]:
        """Return the body of a response that is not streamed.

        Args:
            record: Record of the answered question.
            lines: The debate in brief.
        """
        ...

    def begin(self) -> list[bytes]:
        """Return the first events of a stream."""
        ...

    def thought(self, line: str) -> list[bytes]:
        """Return the events for a line of the debate in brief."""
        ...

    def finish(self, record: SampleRecord) -> list[bytes]:
        """Return the last events of a stream, with the answer."""
        ...

    def fail(self, error: ApiError) -> list[bytes]:
        """Return the last events of a stream that ends without an answer."""
        ...


def content_of(ask: Ask, record: SampleRecord) -> str:
    """Return the text of the answer in the form that the client asked for.

    Raises:
        ApiError: The client's schema requires something that the team did not state.
    """
    assert record.predicted is not None, "the question was answered"
    letter = ask.marks[record.predicted]
    analysis = _analysis(record)
    text = record.options[record.predicted]
    if ask.filling is None:
        return ask.form.write(letter, text, analysis, ask.stop)
    return json.dumps(ask.filling.fill(letter, text, analysis, record.confidence))


def _analysis(record: SampleRecord) -> str:
    """Return the reasons of a team; of a majority vote, its votes."""
    said = (record.response or {}).get("analysis", "").strip()
    votes = ", ".join(f"{letter} {count}" for letter, count in record.votes.items())
    return said or (f"Votes: {votes}" if votes else "")


def json_bytes(value: object) -> bytes:
    """Return a value as compact JSON, in ASCII: half a surrogate pair of a model is escaped."""
    return json.dumps(value, separators=(",", ":")).encode()


def event(data: object, name: str = "") -> bytes:
    """Return a server-sent event.

    Args:
        data: Content, written as JSON; `[DONE]` as it is.
        name: Name of the event; empty for none.
    """
    content = b"[DONE]" if data == "[DONE]" else json_bytes(data)
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + content + b"\n\n"
