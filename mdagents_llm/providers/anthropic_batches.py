"""Anthropic's message batches: requests in one body, results as JSON lines within a day.

https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from anthropic import AsyncAnthropic

from mdagents_llm.chat import ChatReply, ChatRequest
from mdagents_llm.clock import ms_of
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.anthropic_messages import AnthropicChat
from mdagents_llm.providers.batch_results import results_by_key
from mdagents_llm.providers.filters import WithheldError
from mdagents_llm.providers.picture_body import plain
from mdagents_llm.wire import BatchState, Line

_PATH = "/v1/messages/batches"
_ENDED = "ended"
_SOME = 100  # latest batches that are searched for one of ours
_SKEW = 60.0  # maximum clock skew in seconds


class AnthropicBatches:
    """The `BatchApi` of one Anthropic model.

    Args:
        client: SDK client of the endpoint, with SDK retries off.
        chat: Model that converts requests and replies.
    """

    keeps_names = False
    most_bytes = 200_000_000
    """Maximum bytes of a batch; the API takes 256 MB."""

    def __init__(self, client: AsyncAnthropic, chat: AnthropicChat) -> None:
        self._client = client
        self._chat = chat

    async def submit(self, tag: str, requests: Mapping[str, ChatRequest]) -> str:
        """Submit requests by key, and return the batch's ID; the API has no names for `tag`."""
        lines = [
            {"custom_id": key, "params": self._chat.body(request)}
            for key, request in requests.items()
        ]
        return str((await self._post(_PATH, {"requests": plain(lines)}))["id"])

    async def find(self, tag: str, requests: int, since: float) -> tuple[str, ...]:
        """Return batches of about that time with as many requests; their keys show the owner."""
        found = await self._get(f"{_PATH}?limit={_SOME}")
        with self._chat.errors():
            alike = (
                (ms_of(batch["created_at"]) / 1000, batch["id"])
                for batch in found["data"]
                if sum(batch["request_counts"].values()) == requests
            )
            # The first batch after the submission is the likeliest; but the clocks may differ.
            near = [(made < since, made, name) for made, name in alike if made >= since - _SKEW]
            return tuple(name for _, _, name in sorted(near))

    async def state(self, batch: str) -> BatchState:
        """Return the progress of a batch."""
        found = await self._get(f"{_PATH}/{batch}")
        with self._chat.errors():
            status, counts = found["processing_status"], found["request_counts"]
            # The API updates its counts only when all requests are done.
            answered = None if status != _ENDED else sum(counts.values()) - counts["processing"]
            return BatchState(status == _ENDED, status, answered)

    async def lines(self, batch: str, keys: Sequence[str]) -> Mapping[str, Line]:
        """Return the results of a batch that has ended, by the keys of its requests."""
        with self._chat.errors():
            path = f"{_PATH}/{batch}/results"
            content = await self._client.get(path, cast_to=httpx2.Response)
            return results_by_key(content.text, self.is_answered)

    def is_answered(self, line: Line) -> bool:
        """Return whether a result contains a reply."""
        result = line.get("result")
        return isinstance(result, dict) and result.get("type") == "succeeded"

    async def cancel(self, batch: str) -> None:
        """Cancel the remaining requests of a batch."""
        await self._post(f"{_PATH}/{batch}/cancel", {})

    def read(self, line: Line, request: ChatRequest) -> ChatReply:
        """Return the reply that a result contains."""
        content: Any = line
        body = self._chat.body(request, whole=True)
        try:
            with self._chat.errors(body):
                result = content["result"]
                match result["type"]:
                    case "succeeded":
                        return self._chat.read(result["message"], request)
                    case "errored":
                        raise self._chat.failure(None, result["error"], body)
        except WithheldError as withheld:
            return self._chat.refusal(withheld.usage)
        raise ProviderError(f"the batch ended: {result['type']}", kind=ErrorKind.UNANSWERED)

    async def _post(self, path: str, body: object) -> dict[str, Any]:
        with self._chat.errors():
            response = await self._client.post(path, body=body, cast_to=httpx2.Response)
            return dict(json.loads(response.content))

    async def _get(self, path: str) -> dict[str, Any]:
        with self._chat.errors():
            response = await self._client.get(path, cast_to=httpx2.Response)
            return dict(json.loads(response.content))
