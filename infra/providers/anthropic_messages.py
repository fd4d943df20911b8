"""Claude over the `anthropic` SDK: the Messages API.

A schema is the input of a tool that the model is held to, or, for models that cannot be held to
one, that of its output. Where a prompt begins like others (`ChatMessage.shared`), a mark tells the
API to keep that beginning in its prompt cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
from anthropic import AsyncAnthropic, AsyncStream

from infra.chat import (
    ChatMessage,
    ChatReply,
    ChatRequest,
    OnText,
    StopReason,
    TokenUsage,
)
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

_PATH = "/v1/messages"
_MOST_MARKS = 4  # of one request, by the API's reference
_KEEP = {"type": "ephemeral"}  # for 5 minutes, anew with each use
_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded"})
_STOP = frozenset({"end_turn", "stop_sequence", "tool_use"})
_EAGERLY = "eager_input_streaming"
_WITH_BUDGET = re.compile(r"claude-3|-4-[0-5](?!\d)|-4(?:-\d{8})?$")
_LEAST_BUDGET = 1024  # tokens
_FIRST_ERROR = 400  # HTTP status
_OVERLOADED = "overloaded_error"


class AnthropicChat:
    """One model of Anthropic's.

    Args:
        client: Of the endpoint, with SDK retries off.
        model: The endpoint's name for it.
        info: Properties of the model.
    """

    def __init__(self, client: AsyncAnthropic, model: str, info: ModelInfo) -> None:
        self._client = client
        self._model = model
        self._info = info
        self._refused = Refused()
        self._host = client.base_url.host
        port = client.base_url.port
        self._place = self._host if port is None else f"{self._host}:{port}"

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; streams when `on_text` is given."""
        body = self.body(request)
        with self.errors(body):
            if on_text is None:
                response = await self._client.post(_PATH, body=body, cast_to=httpx2.Response)
                return self.reply(json.loads(response.content))
            return await self._stream(body, on_text)

    @contextmanager
    def errors(self, body: Mapping[str, object] | None = None) -> Iterator[None]:
        """Turn what the SDK raises within the context into `ProviderError`.

        Args:
            body: What was sent; None: no request for a reply.
        """
        try:
            yield
        except anthropic.APIStatusError as error:
            raise self.failure(
                error.status_code,
                error.type or "",
                error.api_message or error.message,
                body,
                retry_after=retry_after_seconds(error.response.headers),
            ) from None
        except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
            timed_out = isinstance(error, anthropic.APITimeoutError)
            raise connection_error(self._host, self._place, error, timed_out=timed_out) from None
        except OTHER_SHAPES as error:
            message = f"{self._host} sent a body that is not a message ({type(error).__name__})"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY) from None

    def body(self, request: ChatRequest, *, whole: bool = False) -> dict[str, object]:
        """Return a request as the API takes it.

        Args:
            request: What is asked.
            whole: With what the model has refused, too: an earlier batch may have sent it.
        """
        info = self._info
        system, turns = _marked(request.messages)
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": info.limit(request),
            "messages": turns,
        }
        if system:
            body["system"] = system
        if info.takes_temperature and (whole or "temperature" not in self._refused):
            body["temperature"] = request.temperature
        refused = Refused() if whole else self._refused
        wanted = _thinking(self._model, info)
        asked = {name: value for name, value in wanted.items() if name not in refused}
        thinks = asked.get("thinking", {}).get("type") in ("adaptive", "enabled")
        if thinks:  # only with a temperature of 1, the default
            body.pop("temperature", None)
        if "thinking" in asked:
            body["thinking"] = asked["thinking"]
        output = {"effort": asked["effort"]} if "effort" in asked else {}
        if output:
            body["output_config"] = output
        if request.schema is None:
            return body
        schema = without_string_lengths(request.schema)
        if not info.forced_tool or thinks:  # one that thinks cannot be held to a tool
            # The API knows a part of JSON schema here; the rest becomes words, checked later.
            shape = {"type": "json_schema", "schema": anthropic.transform_schema(schema)}
            return body | {"output_config": {**output, "format": shape}}
        name = request.schema.__name__
        return body | {
            "tools": [{"name": name, "description": "Give the reply.", "input_schema": schema}],
            "tool_choice": {"type": "tool", "name": name, "disable_parallel_tool_use": True},
        }

    def reply(self, raw: Mapping[str, Any]) -> ChatReply:
        """Return a message of the API as a reply.

        Raises:
            ValueError: It is none; so do KeyError, TypeError and AttributeError.
        """
        text = "".join(_said(block) for block in raw["content"])
        return ChatReply(
            text=well_formed(text),
            usage=_usage(raw["usage"]),
            stop_reason=_stop_reason(raw["stop_reason"]),
            model=raw.get("model") or self._model,
            raw=raw,
        )

    async def _stream(self, body: dict[str, object], on_text: OnText) -> ChatReply:
        stream = await self._client.post(
            _PATH,
            body={**self._eagerly(body), "stream": True},
            cast_to=object,
            stream=True,
            stream_cls=AsyncStream[object],
        )
        texts: list[str] = []
        usage: dict[str, Any] = {}
        stop, model = None, self._model
        async with stream:
            async for event in stream:
                if not isinstance(event, dict):
                    raise TypeError("an event of the stream is not an object")
                match event["type"]:
                    case "message_start":
                        model = event["message"].get("model") or model
                        usage |= event["message"]["usage"]
                    case "content_block_delta":
                        delta = event["delta"]
                        if text := delta.get("text") or delta.get("partial_json"):
                            texts.append(text)
                            on_text(text)
                    case "message_delta":
                        stop = event["delta"].get("stop_reason") or stop
                        counts = event.get("usage") or {}
                        usage |= {name: n for name, n in counts.items() if n is not None}
        if stop is None:
            message = f"{self._host} ended the stream before the reply was complete"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY)
        return ChatReply(
            text=well_formed("".join(texts)),
            usage=_usage(usage),
            stop_reason=_stop_reason(stop),
            model=model,
        )

    def _eagerly(self, body: dict[str, object]) -> dict[str, object]:
        """Let the input of a tool come as it is written, and not field by field."""
        tools = body.get("tools")
        if not isinstance(tools, list) or _EAGERLY in self._refused:
            return body
        return body | {"tools": [{**tool, _EAGERLY: True} for tool in tools]}

    def failure(
        self,
        status: int,
        kind: str,
        message: str,
        body: Mapping[str, object] | None = None,
        *,
        retry_after: float | None = None,
    ) -> ProviderError:
        """Return what an error of the endpoint means.

        Args:
            status: HTTP status; below 400 for an error inside a stream.
            kind: The endpoint's name for it, such as `overloaded_error`.
            message: The endpoint's words.
            body: What was sent; None: no request for a reply.
            retry_after: Seconds that the endpoint asked to wait.

        Raises:
            ProviderError: `setting_refused`, see `Refused`.
        """
        said = without_key(message, self._client.api_key or "")
        if status < _FIRST_ERROR:
            what = ErrorKind.OVERLOADED if kind == _OVERLOADED else ErrorKind.SERVER
            return ProviderError(f"{self._host} broke the stream off: {one_line(said)}", kind=what)
        body = body or {}
        sent = [name for name in ("temperature",) if name in body]
        sent += [name for name in _thinking(self._model, self._info) if body]
        sent += [_EAGERLY] if "tools" in body else []
        self._refused.raise_for(sent, self._host, status, said)
        return status_error(
            self._host,
            status,
            said,
            code=kind,
            retry_after=retry_after,
            asked_with_schema="tools" in body or "output_config" in body,
        )


def _thinking(model: str, info: ModelInfo) -> dict[str, Any]:
    """Return `thinking` and `effort` as a model takes them, if the user says how much to think.

    Up to 4.5 models are told a budget, from 4.6 on an effort:
    https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking.
    """
    effort, budget = info.thinking.effort, info.thinking.budget
    if budget is None:
        return {}
    if not budget:
        return {"thinking": {"type": "disabled"}}
    if _WITH_BUDGET.search(model):
        return {"thinking": {"type": "enabled", "budget_tokens": max(budget, _LEAST_BUDGET)}}
    level = {"effort": "low" if effort == "minimal" else effort} if effort else {}
    return {"thinking": {"type": "adaptive"}, **level}


def _marked(messages: tuple[ChatMessage, ...]) -> tuple[str, list[dict[str, object]]]:
    """Return (system prompt, turns), with a mark at the end of each beginning that is shared."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    turns = [message for message in messages if message.role != "system"]
    marks = [(at, end) for at, message in enumerate(turns) for end in message.shared]
    kept = set(marks[:_MOST_MARKS])
    return system, [
        {
            "role": message.role,
            "content": list(_blocks(message, [end for at, end in kept if at == number])),
        }
        for number, message in enumerate(turns)
    ]


def _blocks(message: ChatMessage, ends: list[int]) -> Iterator[dict[str, object]]:
    """Cut a message where marks belong; the texts of its blocks together are its content."""
    marks = sorted(end for end in ends if 0 < end <= len(message.content))
    cuts = sorted({0, *marks, len(message.content)})
    for start, end in pairwise(cuts):
        block: dict[str, object] = {"type": "text", "text": message.content[start:end]}
        yield {**block, "cache_control": _KEEP} if end in marks else block
    if len(cuts) == 1:
        yield {"type": "text", "text": message.content}


def _said(block: Mapping[str, Any]) -> str:
    """Return what a block says: its text, or the input of the tool as JSON."""
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return json.dumps(block["input"], ensure_ascii=False)
    return ""  # thinking


def _usage(usage: Mapping[str, Any]) -> TokenUsage:
    """Return the tokens of a reply; Anthropic counts input without what its cache had or took."""
    read = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    details = usage.get("output_tokens_details") or {}
    counts = (
        usage["input_tokens"] + read + written,
        usage["output_tokens"],
        read,
        details.get("thinking_tokens") or 0,
        written,
    )
    if not all(isinstance(count, int) for count in counts):
        raise ValueError("a token count is not a number")
    return TokenUsage(*counts)


def _stop_reason(reason: str | None) -> StopReason:
    if reason in _LENGTH:
        return StopReason.LENGTH
    if reason == "refusal":
        return StopReason.REFUSAL
    if reason in _STOP:
        return StopReason.STOP
    raise ValueError("the reply ends without a known reason")
