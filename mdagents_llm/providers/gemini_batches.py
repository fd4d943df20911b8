"""Gemini's batches: requests in one body, replies in the finished batch, within a day.

https://ai.google.dev/gemini-api/docs/batch-mode
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.genai import types
from google.genai.batches import AsyncBatches
from google.genai.errors import APIError

from mdagents_llm.chat import ChatReply, ChatRequest
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.filters import WithheldError
from mdagents_llm.providers.gemini import GeminiChat
from mdagents_llm.providers.picture_body import any_picture
from mdagents_llm.text import well_formed
from mdagents_llm.wire import BatchState, Line

_KEY = "key"
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})
_SOME = 100  # latest batches that are searched for one of ours
_HTTP = {3: 400, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
"""google.rpc.Code -> HTTP status; the error of a result has either."""
_LOWEST_HTTP = 400


class GeminiBatches:
    """The `BatchApi` of one Gemini model.

    Args:
        batches: SDK object for batch calls.
        chat: Model that converts requests and replies.
        model: Google's name for the model.
    """

    keeps_names = True
    most_bytes = 15_000_000
    """Maximum bytes of a batch; the API takes 20 MB in one body, and larger batches only through
    its file storage."""

    def __init__(self, batches: AsyncBatches, chat: GeminiChat, model: str) -> None:
        self._batches = batches
        self._chat = chat
        self._model = model

    async def submit(self, tag: str, requests: Mapping[str, ChatRequest]) -> str:
        """Submit requests by key under the name `tag`, and return the ID of the batch."""
        lines = []
        for key, request in requests.items():
            contents, config = self._chat.asked(request)
            lines.append(
                types.InlinedRequest(contents=list(contents), metadata={_KEY: key}, config=config)
            )
        with self._chat.errors():
            job = await self._batches.create(
                model=self._model,
                src=lines,
                config=types.CreateBatchJobConfig(display_name=tag),
            )
            if not job.name:
                raise ValueError("a batch without a name")
            return job.name

    async def find(self, tag: str, requests: int, since: float) -> tuple[str, ...]:
        """Return the IDs of the batches with a tag."""
        with self._chat.errors():
            pager = await self._batches.list(config=types.ListBatchJobsConfig(page_size=_SOME))
            return tuple(job.name for job in pager.page if job.display_name == tag and job.name)

    async def state(self, batch: str) -> BatchState:
        """Return the progress of a batch; the API does not report how many requests are done."""
        with self._chat.errors():
            job = await self._batches.get(name=batch)
        said = job.state.value.removeprefix("JOB_STATE_") if job.state else "UNKNOWN"
        if said == "FAILED":
            why = masked_line(job.error.message or "") if job.error else ""
            problem = ProviderError(f"the batch failed: {why or said}", kind=ErrorKind.SERVER)
            return BatchState(has_ended=True, said=said.lower(), problem=problem)
        return BatchState(said in _ENDED, said.lower())

    async def lines(self, batch: str, keys: Sequence[str]) -> Mapping[str, Line]:
        """Return the results of a batch that has ended, by the keys of its requests.

        Results come in the order of the requests, mostly with their keys.
        """
        with self._chat.errors():
            job = await self._batches.get(name=batch)
        responses = (job.dest.inlined_responses if job.dest else None) or []
        in_order = keys if len(responses) == len(keys) else [""] * len(responses)
        return {
            (one.metadata or {}).get(_KEY, usual): {"response": one}
            for usual, one in zip(in_order, responses, strict=True)
        }

    def is_answered(self, line: Line) -> bool:
        """Return whether a result contains a reply."""
        answered: Any = line["response"]
        return answered.response is not None

    async def cancel(self, batch: str) -> None:
        """Cancel the remaining requests of a batch."""
        with self._chat.errors():
            await self._batches.cancel(name=batch)

    def read(self, line: Line, request: ChatRequest) -> ChatReply:
        """Return the reply that a result contains."""
        answered: Any = line["response"]
        _, config = self._chat.asked(request, whole=True)
        has_pictures = any_picture(request.messages) is not None
        if answered.error is not None:
            code = answered.error.code or _LOWEST_HTTP
            status = code if code >= _LOWEST_HTTP else _HTTP.get(code, 500)
            said = well_formed(answered.error.message or "")
            body = {"error": {"code": status, "message": said, "status": ""}}
            raised = self._chat.failure(APIError(status, body), config, has_pictures)
            if isinstance(raised, WithheldError):
                return self._chat.refusal()
            raise raised
        if answered.response is None:
            raise ProviderError("the batch ended before this request", kind=ErrorKind.UNANSWERED)
        with self._chat.errors(config):
            return self._chat.reply([answered.response], request)
