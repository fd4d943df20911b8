"""OpenAI's batches: upload of a file of requests, download of a file of replies within a day.

https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import openai
from openai import AsyncOpenAI

from mdagents_llm.chat import ChatReply, ChatRequest
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.batch_results import results_by_key
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.filters import WithheldError
from mdagents_llm.providers.http_errors import status_error
from mdagents_llm.providers.openai_chat import OpenAIChat
from mdagents_llm.providers.picture_body import plain
from mdagents_llm.wire import BatchState, Line

if TYPE_CHECKING:
    from openai.types import BatchError

_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_TAG = "mdagents"
_BAD_REQUEST = 400
_STATUS = {"token_limit_exceeded": 429, "model_not_found": 404}
"""Error code of a refused batch -> HTTP status that a single call would get. The codes mean too
many tokens in other batches, and an unknown model."""
_SOME = 100  # latest batches that are searched for one of ours
_NOT_FOUND = (404, 405)
_NEVER_TRIED = frozenset({"batch_expired", "batch_cancelled"})


class OpenAIBatches:
    """The `BatchApi` of one model of an OpenAI-compatible endpoint.

    Args:
        client: SDK client of the endpoint, with SDK retries off.
        chat: Model that converts requests and replies.
    """

    keeps_names = True
    most_bytes = 150_000_000
    """Maximum bytes of a batch; the API takes 200 MB."""

    def __init__(self, client: AsyncOpenAI, chat: OpenAIChat) -> None:
        self._client = client
        self._chat = chat

    async def submit(self, tag: str, requests: Mapping[str, ChatRequest]) -> str:
        """Submit requests by key under the name `tag`, and return the ID of the batch."""
        # Batches support both APIs; the SDK's type of `url` is narrower than `str`.
        url: Any = f"/v1{self._chat.path}"
        lines = (
            {"custom_id": key, "method": "POST", "url": url, "body": self._chat.body(request)}
            for key, request in requests.items()
        )
        content = "".join(f"{json.dumps(plain(line))}\n" for line in lines).encode()
        with self._chat.errors(), _without_batches():
            file = await self._client.files.create(file=(f"{tag}.jsonl", content), purpose="batch")
            batch = await self._client.batches.create(
                input_file_id=file.id,
                endpoint=url,
                completion_window="24h",
                metadata={_TAG: tag},
            )
        return batch.id

    async def find(self, tag: str, requests: int, since: float) -> tuple[str, ...]:
        """Return the IDs of the batches with a tag."""
        with self._chat.errors():
            page = await self._client.batches.list(limit=_SOME)
        return tuple(one.id for one in page.data if (one.metadata or {}).get(_TAG) == tag)

    async def state(self, batch: str) -> BatchState:
        """Return the progress of a batch."""
        with self._chat.errors():
            found = await self._client.batches.retrieve(batch)
        if found.status == "failed":
            problems = (found.errors.data if found.errors else None) or []
            return BatchState(has_ended=True, said=found.status, problem=self._problem(problems))
        counts = found.request_counts
        answered = counts.completed + counts.failed if counts else None
        return BatchState(found.status in _ENDED, found.status, answered)

    async def lines(self, batch: str, keys: Sequence[str]) -> Mapping[str, Line]:
        """Return the results of a batch that has ended, by the keys of its requests."""
        lines: dict[str, Line] = {}
        with self._chat.errors():
            found = await self._client.batches.retrieve(batch)
            for file in (found.output_file_id, found.error_file_id):
                if file:
                    path = f"/files/{file}/content"
                    content = await self._client.get(path, cast_to=httpx2.Response)
                    lines = results_by_key(content.text, self.is_answered) | lines
        has_replies = found.request_counts is not None and found.request_counts.completed > 0
        is_late = found.status == "completed" and has_replies and not found.output_file_id
        if is_late and len(lines) < len(keys):
            # Asking again would pay for the replies twice.
            message = f"the batch {batch} is completed, but its file of replies is not there yet"
            raise ProviderError(message, kind=ErrorKind.SERVER)
        return lines

    def is_answered(self, line: Line) -> bool:
        """Return whether a result contains a reply."""
        response = line.get("response")
        return isinstance(response, dict) and response.get("status_code") == httpx2.codes.OK

    async def cancel(self, batch: str) -> None:
        """Cancel the remaining requests of a batch."""
        with self._chat.errors():
            await self._client.batches.cancel(batch)

    def read(self, line: Line, request: ChatRequest) -> ChatReply:
        """Return the reply that a result contains."""
        content: Any = line
        try:
            with self._chat.errors():
                failed = content.get("error") or {}
                if failed.get("code") in _NEVER_TRIED:
                    said = masked_line(str(failed.get("message") or failed["code"]))
                    raise ProviderError(said, kind=ErrorKind.UNANSWERED)
                response = content["response"]
                status, body = response["status_code"], response["body"]
                if status == httpx2.codes.OK:
                    return self._chat.read(body, request)
            # OpenAI writes status 0 and an empty body for a request that it failed to carry out.
            raise self._chat.failure(status or None, body, self._chat.body(request, whole=True))
        except WithheldError as withheld:
            return self._chat.refusal(withheld.usage)

    def _problem(self, problems: Sequence[BatchError]) -> ProviderError:
        """Return the error of a refused batch, of the kind that a single call would have had."""
        codes = [one.code or "" for one in problems]
        status = next((_STATUS[code] for code in codes if code in _STATUS), _BAD_REQUEST)
        said = masked_line("; ".join(f"{one.code}: {one.message}" for one in problems[:3]))
        kind = status_error(self._client.base_url.host, status, said).kind
        return ProviderError(f"the batch was refused: {said or 'no reason given'}", kind=kind)


@contextmanager
def _without_batches() -> Iterator[None]:
    """Convert the error of a server without a batch API to one that explains it."""
    try:
        yield
    except openai.APIStatusError as error:
        if error.status_code not in _NOT_FOUND:
            raise
        raise ProviderError(
            f"{error.status_code}: the endpoint takes no batches; leave --batch out",
            kind=ErrorKind.MODEL_NOT_FOUND,
            status=error.status_code,
        ) from None
