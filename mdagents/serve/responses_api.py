"""Answers in the form of `/v1/responses`, whole and as a stream of events."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from mdagents.records.sample import SampleRecord
from mdagents.serve.errors import ApiError
from mdagents.serve.replies import content_of, event
from mdagents.serve.requests import Ask
from mdagents.serve.service import details_of


class ResponsesWire:
    """Writes one response: a reasoning item with the debate in brief, then the message.

    Args:
        ask: What the client asks.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        one = uuid.uuid4().hex
        self._id, self._thinking, self._message = f"resp_{one}", f"rs_{one}", f"msg_{one}"
        self._created = int(time.time())
        self._number = 0
        self._lines: list[str] = []

    def whole(self, record: SampleRecord, lines: Sequence[str]) -> dict[str, object]:
        """Return the body of a response that is not streamed."""
        return self._response(
            "completed",
            output=[
                self._reasoning_item("\n".join(lines)),
                self._message_item(content_of(self._ask, record)),
            ],
            usage=_usage(record),
            mdagents=details_of(record, self._ask),
        )

    def begin(self) -> list[bytes]:
        """Return the events before the first thought."""
        started = self._response("in_progress", output=[])
        item = {"id": self._thinking, "type": "reasoning", "summary": [], "status": "in_progress"}
        return [
            self._event("response.created", response=started),
            self._event("response.in_progress", response=started),
            self._event("response.output_item.added", output_index=0, item=item),
            self._thought_event("part.added", part={"type": "summary_text", "text": ""}),
        ]

    def thought(self, line: str) -> list[bytes]:
        """Return the event for a line of the debate in brief."""
        self._lines.append(f"{line}\n")
        return [self._thought_event("text.delta", delta=f"{line}\n")]

    def finish(self, record: SampleRecord) -> list[bytes]:
        """Return the events that end the thoughts, the answer, and the end."""
        thoughts, content = "".join(self._lines), content_of(self._ask, record)
        reasoning, message = self._reasoning_item(thoughts), self._message_item(content)
        started = {**message, "content": [], "status": "in_progress"}
        summary = {"type": "summary_text", "text": thoughts}
        done = self._response(
            "completed",
            output=[reasoning, message],
            usage=_usage(record),
            mdagents=details_of(record, self._ask),
        )
        return [
            self._thought_event("text.done", text=thoughts),
            self._thought_event("part.done", part=summary),
            self._event("response.output_item.done", output_index=0, item=reasoning),
            self._event("response.output_item.added", output_index=1, item=started),
            self._text_event("content_part.added", part=_part("")),
            self._text_event("output_text.delta", delta=content, logprobs=[]),
            self._text_event("output_text.done", text=content, logprobs=[]),
            self._text_event("content_part.done", part=_part(content)),
            self._event("response.output_item.done", output_index=1, item=message),
            self._event("response.completed", response=done),
        ]

    def fail(self, error: ApiError) -> list[bytes]:
        """Return the error as an event, for which the SDKs raise, and the failed response."""
        stated = error.body()["error"]
        told = {"code": error.code, "message": error.message, "param": error.param}
        failed = self._response("failed", output=[], error={"code": "server_error", **told})
        return [
            self._event("error", **told, error=stated),
            self._event("response.failed", response=failed),
        ]

    def _response(self, status: str, **more: object) -> dict[str, object]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._ask.model,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "store": False,
            "usage": None,
            **more,
        }

    def _reasoning_item(self, text: str) -> dict[str, object]:
        summary = [{"type": "summary_text", "text": text}]
        return {
            "id": self._thinking, "type": "reasoning", "summary": summary, "status": "completed",
        }  # fmt: skip

    def _message_item(self, text: str) -> dict[str, object]:
        return {
            "id": self._message,
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [_part(text)],
        }

    def _thought_event(self, what: str, **more: object) -> bytes:
        kind = f"response.reasoning_summary_{what}"
        return self._event(kind, item_id=self._thinking, output_index=0, summary_index=0, **more)

    def _text_event(self, what: str, **more: object) -> bytes:
        kind = f"response.{what}"
        return self._event(kind, item_id=self._message, output_index=1, content_index=0, **more)

    def _event(self, kind: str, **fields: object) -> bytes:
        data = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return event(data, kind)


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(record: SampleRecord) -> dict[str, object]:
    """Return the usage: the sum over the team's rows in the ledger."""
    used = record.token_usage
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {
            "cached_tokens": used.cached_input_tokens,
            "cache_write_tokens": used.cache_write_tokens,
        },
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.total_tokens,
    }
