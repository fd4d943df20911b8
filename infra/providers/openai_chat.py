"""Chat completions over the `openai` SDK: OpenAI, Groq, the embedded model, any compatible server.

The SDK sends, pools and names errors; its typed layer is left out, since building and checking
its models costs more than the rest of a call together. It sends by aiohttp, whose pool does not
look at every connection for every request as that of httpcore2 does.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
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
    one_line,
    retry_after_seconds,
    status_error,
    without_key,
)

OpenAIClient = AsyncOpenAI
"""The type that `make_client` returns; other modules need not import the SDK."""

_PATH = "/chat/completions"
_LOST = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_CONNECT_TIMEOUT = 10.0  # seconds
_KEEP_ALIVE = 4.0  # seconds; vLLM and other servers on uvicorn hang up after 5
_MAX_CONNECTIONS = 1_000  # `Gate` keeps the real limit
_OPENAI = "https://api.openai.com/"
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")

# json.JSONDecodeError is a ValueError; a body of another shape raises the others.
_OTHER_SHAPES = (ValueError, KeyError, TypeError, IndexError, AttributeError)

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


def make_client(
    base_url: str,
    api_key: str,
    *,
    attempt_timeout: float,
    keep_alive: float = _KEEP_ALIVE,
    many_at_once: bool = True,
) -> AsyncOpenAI:
    """Make a client for one endpoint, shared by all models behind it, that never retries itself.

    Args:
        base_url: Of the endpoint.
        api_key: Its key.
        attempt_timeout: Seconds for one attempt.
        keep_alive: Seconds for which an idle connection may be used again.
        many_at_once: Whether to send by aiohttp. Otherwise httpx2 is used, which may be left open
            at the end.
    """
    # The SDK reads these from the environment and would send them to endpoints other than OpenAI.
    # (`omit` works as a value here, although the SDK's type says str.)
    omitted: Any = dict.fromkeys(_ACCOUNT_HEADERS, openai.omit)
    limits = httpx2.Limits(
        max_connections=_MAX_CONNECTIONS,
        max_keepalive_connections=_MAX_CONNECTIONS,
        keepalive_expiry=keep_alive,
    )
    timeout = httpx2.Timeout(attempt_timeout, connect=_CONNECT_TIMEOUT)
    return AsyncOpenAI(
        base_url=base_url,
        api_key=api_key,
        max_retries=0,
        default_headers=None if base_url.startswith(_OPENAI) else omitted,
        timeout=timeout,
        http_client=openai.DefaultAioHttpClient(timeout=timeout, limits=limits)
        if many_at_once
        else None,
    )


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
        self._host = client.base_url.host
        port = client.base_url.port
        self._place = self._host if port is None else f"{self._host}:{port}"

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; streams when `on_text` is given."""
        body = self._body(request)
        try:
            if on_text is None:
                return await self._complete(body)
            return await self._stream(body, on_text)
        except openai.APIStatusError as error:
            return self._refused_or_raise(error, asked_with_schema=request.schema is not None)
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            if _is_unreachable(error):
                message = f"{self._place} cannot be reached: {_why_unreachable(error)}"
                raise ProviderError(message, kind=ErrorKind.UNREACHABLE) from None
            if _is_timeout(error):
                message = f"{self._host} did not answer in time"
                raise ProviderError(message, kind=ErrorKind.TIMEOUT) from None
            message = f"connection to {self._host} failed: {_cause(error)}"
            raise ProviderError(message, kind=ErrorKind.CONNECTION) from None
        except openai.APIError as error:  # an error event inside a stream
            message = f"{self._host} broke the stream off: {one_line(error.message)}"
            raise ProviderError(message, kind=ErrorKind.SERVER) from None
        except _OTHER_SHAPES as error:
            message = f"{self._host} sent a body that is not a chat completion ({_name(error)})"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY) from None

    def _body(self, request: ChatRequest) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            self._info.max_tokens_field: request.max_tokens + self._info.reasoning_headroom,
        }
        if self._info.takes_temperature:
            body["temperature"] = request.temperature
        if request.seed is not None and self._info.takes_seed:
            body["seed"] = request.seed
        if request.schema is not None:
            body.update(self._schema_fields(request.schema))
        return body

    async def _complete(self, body: dict[str, object]) -> ChatReply:
        response = await self._client.post(_PATH, body=body, cast_to=httpx2.Response)
        raw: dict[str, Any] = json.loads(response.content)
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
        stream = await self._client.post(
            _PATH,
            body={**body, "stream": True, "stream_options": {"include_usage": True}},
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

    def _refused_or_raise(
        self, error: openai.APIStatusError, *, asked_with_schema: bool
    ) -> ChatReply:
        details = error.body if isinstance(error.body, dict) else {}
        code = f"{details.get('code') or ''} {details.get('type') or ''}"
        message = details.get("message")
        if "content_filter" in code or "content_policy" in code:
            return ChatReply("", TokenUsage(), StopReason.REFUSAL, self._model)
        raise status_error(
            self._host,
            error.status_code,
            without_key(
                message if isinstance(message, str) else error.message, self._client.api_key
            ),
            code=code,
            retry_after=retry_after_seconds(error.response.headers),
            asked_with_schema=asked_with_schema,
        ) from None


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
    )
    if not all(isinstance(count, int) for count in counts):
        raise ValueError("a token count is not a number")
    return TokenUsage(*counts)


def _stop_reason(finish: str | None, refusal: str | None) -> StopReason:
    if finish is None:
        raise ValueError("the reply ends without a finish reason")
    if refusal or finish == "content_filter":
        return StopReason.REFUSAL
    return StopReason.LENGTH if finish == "length" else StopReason.STOP


def _is_unreachable(error: Exception) -> bool:
    raised = error.__cause__
    if not isinstance(raised, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        return False
    # The aiohttp transport raises this also for a connection that was made and then lost.
    return getattr(raised.__cause__, "errno", None) not in _LOST


def _why_unreachable(error: Exception) -> str:
    raised = error.__cause__
    inner = raised.__cause__ if raised is not None else None
    inner = getattr(inner, "os_error", inner)  # of aiohttp, whose own message is long
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno > 0:
        return os.strerror(inner.errno)
    return (isinstance(inner, OSError) and inner.strerror) or _cause(error)


def _is_timeout(error: Exception) -> bool:
    # The aiohttp transport also reports a reset connection as a timeout; its cause is not one.
    raised = error.__cause__
    return isinstance(error, openai.APITimeoutError) and (
        raised is None or isinstance(raised.__cause__, TimeoutError)
    )


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return one_line(str(cause)) or _name(cause)


def _name(error: BaseException) -> str:
    return type(error).__name__
