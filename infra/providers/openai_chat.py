"""Chat completions over the `openai` SDK: OpenAI, Azure, the embedded model, compatible servers.

The SDK sends, pools and names errors; its typed layer is left out, since building and checking
its models costs more than the rest of a call together. It sends by aiohttp, whose pool does not
look at every connection for every request as that of httpcore2 does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI, AsyncStream
from pydantic import BaseModel

from infra.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from infra.errors import ErrorKind, ProviderError
from infra.files.text import well_formed
from infra.json_schema import without_string_lengths
from infra.model_configs import ModelInfo
from infra.providers.http_errors import (
    OTHER_SHAPES,
    connection_error,
    one_line,
    retry_after_seconds,
    status_error,
    without_key,
)
from infra.providers.refused import Refused

_PATH = "/chat/completions"
_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names for the limit of a reply; a model that refuses one takes the other."""
_STREAM_OPTIONS = "stream_options"
_LENGTH = frozenset({"length", "model_length"})  # the latter is Mistral's
_BROKEN_OFF = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons of a reply that is not whole: of OpenRouter and Mistral, vLLM, DeepSeek."""
_EFFORT = ("reasoning_effort", "reasoning")
_OF_SCHEMA = ("response_format", "grammar")
"""Body fields of which one asks for a schema."""

SchemaFields = Callable[[type[BaseModel]], Mapping[str, object]]
"""Returns the body fields that ask an endpoint for a schema."""


def response_format(schema: type[BaseModel]) -> Mapping[str, object]:
    """Ask as OpenAI's guide does: https://platform.openai.com/docs/guides/structured-outputs."""
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": schema.__name__,
                "schema": without_string_lengths(schema),
                "strict": True,
            },
        }
    }


class OpenAIChat:
    """One model behind an OpenAI-compatible endpoint.

    Args:
        client: Of the endpoint, with SDK retries off.
        model: The endpoint's name for it.
        info: Properties of the model.
        schema_fields: How this endpoint is asked for a schema.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        info: ModelInfo,
        *,
        schema_fields: SchemaFields = response_format,
    ) -> None:
        self._client = client
        self._model = model
        self._info = info
        self._schema_fields = schema_fields
        self._refused = Refused()
        self._host = client.base_url.host
        port = client.base_url.port
        self._place = self._host if port is None else f"{self._host}:{port}"

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; streams when `on_text` is given."""
        body = self.body(request)
        try:
            with self.errors(body):
                if on_text is None:
                    response = await self._client.post(_PATH, body=body, cast_to=httpx2.Response)
                    return self.reply(json.loads(response.content))
                return await self._stream(body, on_text)
        except _WithheldError:
            return self._refusal()

    @contextmanager
    def errors(self, body: Mapping[str, object] | None = None) -> Iterator[None]:
        """Turn what the SDK raises within the context into `ProviderError`.

        Args:
            body: What was sent; None: no request for a reply.
        """
        try:
            yield
        except openai.APIStatusError as error:
            raise self._failure(
                error.status_code,
                error.body,
                body,
                message=error.message,
                retry_after=retry_after_seconds(error.response.headers),
            ) from None
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            timed_out = isinstance(error, openai.APITimeoutError)
            raise connection_error(self._host, self._place, error, timed_out=timed_out) from None
        except openai.APIError as error:  # an error event inside a stream
            message = f"{self._host} broke the stream off: {one_line(error.message)}"
            raise ProviderError(message, kind=ErrorKind.SERVER) from None
        except OTHER_SHAPES as error:
            kind = type(error).__name__
            message = f"{self._host} sent a body that is not a chat completion ({kind})"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY) from None

    def body(self, request: ChatRequest, *, whole: bool = False) -> dict[str, object]:
        """Return a request as the endpoint takes it.

        Args:
            request: What is asked.
            whole: With what the model has refused, too: an earlier batch may have sent it.
        """
        info, refused = self._info, Refused() if whole else self._refused
        limit: str = info.max_tokens_field
        settings: dict[str, object] = {
            _LIMITS[limit] if limit in refused else limit: info.limit(request)
        }
        if info.takes_temperature:
            settings["temperature"] = request.temperature
        if request.seed is not None and info.takes_seed:
            settings[info.seed_field] = request.seed
        settings |= _thinking(info)
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            **{name: value for name, value in settings.items() if name not in refused},
        }
        if request.schema is not None:
            body.update(self._schema_fields(request.schema))
        return body

    def reply(self, raw: Mapping[str, Any]) -> ChatReply:
        """Return a chat completion as a reply.

        Raises:
            ValueError: It is none; so do the other errors of `OTHER_SHAPES`.
        """
        # No choice at all is an empty reply, booked since its tokens were used.
        choices: list[Any] = raw["choices"]
        choice: Any = choices[0] if len(choices) else {"finish_reason": "stop"}
        message = choice.get("message") or {}
        return ChatReply(
            text=well_formed(message.get("content") or message.get("refusal") or ""),
            usage=_usage(raw.get("usage")),
            stop_reason=_stop_reason(choice["finish_reason"], message.get("refusal")),
            model=raw.get("model") or self._model,
            raw=raw,
        )

    async def _stream(self, body: dict[str, object], on_text: OnText) -> ChatReply:
        body["stream"] = True
        if _STREAM_OPTIONS not in self._refused:
            body[_STREAM_OPTIONS] = {"include_usage": True}
        stream = await self._client.post(
            _PATH,
            body=body,
            cast_to=object,
            stream=True,
            stream_cls=AsyncStream[object],
        )
        texts: list[str] = []
        refusal, finish, usage, model = "", None, None, self._model
        async with stream:
            async for chunk in stream:
                if not isinstance(chunk, dict):
                    raise TypeError("a chunk of the stream is not an object")
                model = chunk.get("model") or model
                usage = chunk.get("usage") or usage
                for choice in chunk["choices"]:
                    delta = choice.get("delta") or {}
                    refusal += delta.get("refusal") or ""
                    finish = choice.get("finish_reason") or finish
                    if text := delta.get("content"):
                        texts.append(text)
                        on_text(text)
        if finish is None and texts:
            message = f"{self._host} ended the stream before the reply was complete"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY)
        return ChatReply(
            text=well_formed("".join(texts) or refusal),
            usage=_usage(usage),
            stop_reason=_stop_reason(finish or "stop", refusal),
            model=model,
        )

    def refusal_or_raise(self, status: int, error: object, body: Mapping[str, object]) -> ChatReply:
        """Return the refusal that an error of the endpoint is; see `errors`.

        Args:
            status: HTTP status.
            error: The endpoint's own account of it.
            body: What was sent.

        Raises:
            ProviderError: It is none.
        """
        try:
            raise self._failure(status, error, body)
        except _WithheldError:
            return self._refusal()

    def _refusal(self) -> ChatReply:
        return ChatReply("", TokenUsage(), StopReason.REFUSAL, self._model)

    def _failure(
        self,
        status: int,
        error: object,
        body: Mapping[str, object] | None = None,
        *,
        message: str = "",
        retry_after: float | None = None,
    ) -> Exception:
        details = error if isinstance(error, dict) else {}
        code = f"{details.get('code') or ''} {details.get('type') or ''}"
        if "content_filter" in code or "content_policy" in code:
            return _WithheldError()
        own = details.get("message")
        said = without_key(own if isinstance(own, str) else message, self._client.api_key)
        body = body or {}
        refusable = ("temperature", self._info.seed_field, _STREAM_OPTIONS, *_LIMITS, *_EFFORT)
        sent = [name for name in refusable if name in body]
        about = details.get("param")
        about = about.rpartition(".")[2] if isinstance(about, str) else ""
        self._refused.raise_for(sent, self._host, status, said, about)
        with_schema = not body.keys().isdisjoint(_OF_SCHEMA)
        return status_error(
            self._host,
            status,
            said,
            code=code,
            retry_after=retry_after,
            asked_with_schema=with_schema,
        )


class _WithheldError(Exception):
    """The endpoint's filter withheld the reply."""


def _thinking(info: ModelInfo) -> dict[str, object]:
    """Return the field that says how much to think, if the user does.

    OpenAI: https://platform.openai.com/docs/guides/reasoning; OpenRouter, which takes a number of
    tokens: https://openrouter.ai/docs/use-cases/reasoning-tokens.
    """
    thinking = info.thinking
    if info.reasoning_field == "reasoning":
        if thinking.effort:
            return {"reasoning": {"effort": thinking.effort}}
        return {} if thinking.tokens is None else {"reasoning": {"max_tokens": thinking.tokens}}
    return {"reasoning_effort": thinking.effort} if thinking.effort else {}


def _usage(usage: Any) -> TokenUsage:
    if not usage:
        raise ValueError("the reply has no token usage")
    of_input = usage.get("prompt_tokens_details") or {}
    of_output = usage.get("completion_tokens_details") or {}
    counts = (
        usage["prompt_tokens"],
        usage["completion_tokens"],
        of_input.get("cached_tokens") or 0,
        of_output.get("reasoning_tokens") or 0,
        of_input.get("cache_write_tokens") or 0,
    )
    if not all(isinstance(count, int) for count in counts):
        raise ValueError("a token count is not a number")
    prompt, completion, cached, reasoning, written = counts
    if reasoning and usage.get("total_tokens") == prompt + completion + reasoning:
        completion += reasoning  # xAI counts reasoning beside the completion
    return TokenUsage(prompt, completion, cached, reasoning, written)


def _stop_reason(finish: str | None, refusal: str | None) -> StopReason:
    if finish is None:
        raise ValueError("the reply ends without a finish reason")
    if refusal or finish == "content_filter":
        return StopReason.REFUSAL
    if finish in _BROKEN_OFF:
        message = f"the endpoint broke the reply off (finish reason {finish})"
        raise ProviderError(message, kind=ErrorKind.SERVER)
    return StopReason.LENGTH if finish in _LENGTH else StopReason.STOP
