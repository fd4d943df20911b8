"""Chat completions over the `openai` SDK: OpenAI, Azure, the embedded model, compatible servers.

The SDK sends, pools and names errors; its typed layer is left out, since building and checking
its models costs more than the rest of a call together. It sends by aiohttp, whose pool does not
look at every connection for every request as that of httpcore2 does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import openai
from openai import AsyncAzureOpenAI, AsyncOpenAI, AsyncStream
from pydantic import BaseModel

from infra.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from infra.errors import ConfigError, ErrorKind, ProviderError
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
from infra.providers.wire import Endpoint

_PATH = "/chat/completions"
_CONNECT_TIMEOUT = 10.0  # seconds
_KEEP_ALIVE = 4.0  # seconds; vLLM and other servers on uvicorn hang up after 5
_MAX_CONNECTIONS = 1_000  # `Gate` keeps the real limit
_OPENAI = "https://api.openai.com/"
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")
_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names for the limit of a reply; a model that refuses one takes the other."""
_STREAM_OPTIONS = "stream_options"
_AZURE_VERSION = ("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")

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


class OpenAIClient:
    """The connection to one OpenAI-compatible endpoint; see `Client`.

    Args:
        endpoint: Its address and key.
        keep_alive: Seconds for which an idle connection may be used again.
    """

    def __init__(self, endpoint: Endpoint, *, keep_alive: float = _KEEP_ALIVE) -> None:
        self._client = self._connect(endpoint, keep_alive)

    def model(
        self, name: str, info: ModelInfo, schema_fields: SchemaFields = response_format
    ) -> ChatModel:
        """Return a model of the endpoint, and how it is asked for a schema."""
        return OpenAIChat(self._client, name, info, schema_fields=schema_fields)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _connect(self, endpoint: Endpoint, keep_alive: float) -> AsyncOpenAI:
        is_openai = endpoint.base_url.startswith(_OPENAI)
        return AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            default_headers=None if is_openai else _without_account(),
            **_sending(endpoint, keep_alive),
        )


class AzureClient(OpenAIClient):
    """The connection to a resource of Azure OpenAI, whose models are named by their deployment.

    With an API version the deployment stands in the address, as Azure's dated API has it; without
    one the resource is spoken to by its versionless API, `/openai/v1`.
    """

    def _connect(self, endpoint: Endpoint, keep_alive: float) -> AsyncOpenAI:
        resource = endpoint.base_url.rstrip("/").removesuffix("/openai/v1")
        if not resource:
            raise ConfigError(
                "azure has no address: put AZURE_OPENAI_ENDPOINT=https://NAME.openai.azure.com "
                "into .env or the environment"
            )
        named = (endpoint.settings.get(variable, "") for variable in _AZURE_VERSION)
        version = next(filter(None, named), "")
        if not version:
            return super()._connect(replace(endpoint, base_url=f"{resource}/openai/v1"), keep_alive)
        return AsyncAzureOpenAI(
            azure_endpoint=resource,
            api_version=version,
            api_key=endpoint.api_key,
            default_headers=_without_account(),
            **_sending(endpoint, keep_alive),
        )


def _without_account() -> Any:
    # The SDK reads these from the environment and would send them to endpoints other than OpenAI.
    # (`omit` works as a value here, although the SDK's type says str.)
    return dict.fromkeys(_ACCOUNT_HEADERS, openai.omit)


def _sending(endpoint: Endpoint, keep_alive: float) -> dict[str, Any]:
    """Return how an SDK's client sends: no retries of its own, and by aiohttp where many do."""
    limits = httpx2.Limits(
        max_connections=_MAX_CONNECTIONS,
        max_keepalive_connections=_MAX_CONNECTIONS,
        keepalive_expiry=keep_alive,
    )
    timeout = httpx2.Timeout(endpoint.attempt_timeout, connect=_CONNECT_TIMEOUT)
    # What is not closed at the end is sent by httpx2, which may be left open.
    many = endpoint.many_at_once
    client = openai.DefaultAioHttpClient(timeout=timeout, limits=limits) if many else None
    return {"max_retries": 0, "timeout": timeout, "http_client": client}


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
        body = self._body(request)
        try:
            if on_text is None:
                return await self._complete(body)
            return await self._stream(body, on_text)
        except openai.APIStatusError as error:
            return self._refusal_or_raise(error, body, asked_with_schema=request.schema is not None)
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

    def _body(self, request: ChatRequest) -> dict[str, object]:
        info = self._info
        limit: str = info.max_tokens_field
        settings: dict[str, object] = {
            _LIMITS[limit] if limit in self._refused else limit: (
                request.max_tokens + info.reasoning_headroom
            )
        }
        if info.takes_temperature:
            settings["temperature"] = request.temperature
        if request.seed is not None and info.takes_seed:
            settings[info.seed_field] = request.seed
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            **{name: value for name, value in settings.items() if name not in self._refused},
        }
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

    def _refusal_or_raise(
        self, error: openai.APIStatusError, body: Mapping[str, object], *, asked_with_schema: bool
    ) -> ChatReply:
        details = error.body if isinstance(error.body, dict) else {}
        code = f"{details.get('code') or ''} {details.get('type') or ''}"
        message = details.get("message")
        if "content_filter" in code or "content_policy" in code:
            return ChatReply("", TokenUsage(), StopReason.REFUSAL, self._model)
        said = without_key(
            message if isinstance(message, str) else error.message, self._client.api_key
        )
        refusable = ("temperature", self._info.seed_field, _STREAM_OPTIONS, *_LIMITS)
        sent = [name for name in refusable if name in body]
        self._refused.raise_for(sent, self._host, error.status_code, said)
        raise status_error(
            self._host,
            error.status_code,
            said,
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
        of_input.get("cache_write_tokens") or 0,
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
