"""Answers in the form of `/v1/chat/completions`, whole and as a stream of chunks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import mdagents
from mdagents.records.sample import SampleRecord
from mdagents.serve.errors import ApiError
from mdagents.serve.replies import content_of, event
from mdagents.serve.requests import Ask
from mdagents.serve.service import details_of


class ChatWire:
    """Writes one chat completion.

    The debate in brief is in `reasoning_content` and in `reasoning`: clients read one of them.

    Args:
        ask: What the client asks.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def whole(self, record: SampleRecord, lines: Sequence[str]) -> dict[str, object]:
        """Return the body of a response that is not streamed."""
        thoughts = "\n".join(lines)
        message = {
            "role": "assistant",
            "content": content_of(self._ask, record),
            "refusal": None,
            "reasoning_content": thoughts,
            "reasoning": thoughts,
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(record),
            "mdagents": details_of(record, self._ask),
        }

    def begin(self) -> list[bytes]:
        """Return the first chunk."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def thought(self, line: str) -> list[bytes]:
        """Return the chunk for a line of the debate in brief."""
        return [self._chunk({"reasoning_content": f"{line}\n", "reasoning": f"{line}\n"})]

    def finish(self, record: SampleRecord) -> list[bytes]:
        """Return the chunks of the answer, the usage if it was asked for, and the end."""
        details = {"mdagents": details_of(record, self._ask)}
        chunks = [
            self._chunk({"content": content_of(self._ask, record)}),
            self._chunk({}, "stop", **details),
        ]
        if self._ask.include_usage:
            head = self._head("chat.completion.chunk")
            chunks.append(event({**head, "choices": [], "usage": _usage(record)}))
        return [*chunks, event("[DONE]")]

    def fail(self, error: ApiError) -> list[bytes]:
        """Return the error as an event, for which the SDKs raise; the status is sent already."""
        return [event(error.body())]

    def _head(self, kind: str) -> dict[str, object]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._ask.model,
            "system_fingerprint": f"mdagents-{mdagents.__version__}",
        }

    def _chunk(
        self, delta: dict[str, object], finish_reason: str | None = None, **more: object
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._ask.include_usage else {}
        head = self._head("chat.completion.chunk")
        return event({**head, "choices": [choice], **usage, **more})


def _usage(record: SampleRecord) -> dict[str, object]:
    """Return the usage: the sum over the team's rows in the ledger."""
    used = record.token_usage
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.total_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }
