"""Claude through the `anthropic` SDK: the Messages API.

A schema is sent as the input of a tool that the model is forced to call, or as the output format
for models that cannot be forced. Where a prompt shares a prefix with others
(`ChatMessage.shared`), a breakpoint makes the API keep that prefix in its prompt cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import anthropic
import httpx2
from anthropic import AsyncAnthropic
from anthropic.types.message_create_params import MessageCreateParamsBase

from mdagents_llm.chat import (
    ChatMessage,
    ChatReply,
    ChatRequest,
    OnText,
    StopReason,
    TokenUsage,
)
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.json_schema import without_string_lengths
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers import typed_calls
from mdagents_llm.providers.checks import (
    at_its_limit,
    checked_count,
    checked_usage,
    completed_usage,
    reported,
    served_model,
)
from mdagents_llm.providers.error_body import ErrorBody, raise_error_in
from mdagents_llm.providers.event_stream import DONE, Extent
from mdagents_llm.providers.filters import is_filters
from mdagents_llm.providers.finish_reasons import weightier
from mdagents_llm.providers.picture_body import PictureText
from mdagents_llm.providers.refused import STREAM, Refused
from mdagents_llm.providers.sdk_chat import SdkChat
from mdagents_llm.providers.streamed_text import ShownText, joined
from mdagents_llm.reasoning_tags import IN_TAGS, split_leading_reasoning
from mdagents_llm.text import well_formed

_MOST_MARKS = 4  # cache breakpoints of one request, by the API's reference
_KEEP = {"type": "ephemeral"}  # kept for 5 minutes, renewed with each use
_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded", "length"})
_STOP = frozenset({"end_turn", "stop_sequence", "tool_use", "stop", "tool_calls"})
"""Stop reasons of the API, and OpenAI's finish reasons, which gateways pass on."""
_INPUT = "input_tokens"
_OF_THE_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_EAGERLY = "eager_input_streaming"
_WITH_BUDGET = re.compile(r"claude-3|-4-[0-5](?!\d)|-4(?:-\d{8})?$")
_LEAST_BUDGET = 1024  # tokens
STATUS = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "billing_error": 402,
}
"""Error type of the API -> HTTP status, which streams and batch results lack."""


class AnthropicChat(SdkChat):
    """One Anthropic model, with the arguments of `SdkChat`."""

    path = "/v1/messages"
    _sdk: ClassVar[ModuleType] = anthropic
    _kind = "message"
    _fields = frozenset({*MessageCreateParamsBase.__annotations__, "stream"})
    _of_schema = frozenset(["tools", "output_config"])
    _client: AsyncAnthropic

    def body(self, request: ChatRequest, *, whole: bool = False) -> dict[str, object]:
        """Return the request body for the API, with the arguments of `SdkChat.body`."""
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
        if thinks:  # thinking requires a temperature of 1, the default
            body.pop("temperature", None)
        if "thinking" in asked:
            body |= _with_budget(asked["thinking"], info.limit(request), request.max_tokens)
        output = {"effort": asked["effort"]} if "effort" in asked else {}
        if output:
            body["output_config"] = output
        if request.schema is None:
            return body
        schema = without_string_lengths(request.schema)
        if not info.forced_tool or thinks:  # a model that thinks cannot be forced to call a tool
            # The API supports a subset of JSON Schema here; the rest becomes prose, checked later.
            shape = {"type": "json_schema", "schema": anthropic.transform_schema(schema)}
            return body | {"output_config": {**output, "format": shape}}
        name = request.schema.__name__
        return body | {
            "tools": [{"name": name, "description": "Give the reply.", "input_schema": schema}],
            "tool_choice": {"type": "tool", "name": name, "disable_parallel_tool_use": True},
        }

    def reply(self, raw: Any, request: ChatRequest) -> ChatReply:
        """Return a message of the API as a reply, with the arguments of `SdkChat.reply`."""
        raise_error_in(raw, "content")
        parts = _Parts(
            "".join(map(_text_of, raw["content"])),
            "".join(map(_input_of, raw["content"])),
            "".join(str(one.get("thinking") or "") for one in raw["content"]),
        )
        stop, model = raw["stop_reason"], served_model(raw.get("model"), self._model)
        return self._made(parts, stop, raw.get("usage"), model, request, raw=raw)

    def _made(
        self,
        parts: _Parts,
        stop: str | None,
        usage: Any,
        model: str,
        request: ChatRequest,
        *,
        raw: Mapping[str, object] | None = None,
    ) -> ChatReply:
        """Return a reply built from its parts.

        Args:
            parts: Content of the message.
            stop: Stop reason.
            usage: Reported usage; None or empty without one.
            model: Name of the model that replied.
            request: Request that was sent.
            raw: Whole body; None for a stream.

        Raises:
            ValueError: The stop reason is unknown.
        """
        visible, hidden = split_leading_reasoning(parts.text)
        text = visible + parts.input
        tokens = reported(self._tokens, usage)
        written = parts.text + parts.input
        counted, is_estimated = completed_usage(tokens, request, written, self._model)
        reply = ChatReply(
            text=well_formed(text),
            usage=counted,
            stop_reason=_stop_reason(stop),
            model=model,
            raw=raw,
            usage_estimated=is_estimated,
            reasoning=well_formed(hidden + parts.thoughts),
            note=IN_TAGS if hidden and not text else "",
        )
        return at_its_limit(reply, self._info.limit(request))

    def _tokens(self, usage: Any) -> TokenUsage:
        # Input tokens are counted without those read from or written to the cache.
        read, written = (usage.get(name) or 0 for name in _OF_THE_CACHE)
        details = usage.get("output_tokens_details") or {}
        prompt = sum(map(checked_count, (usage[_INPUT], read, written)))
        reasoning = details.get("thinking_tokens") or 0
        return checked_usage(prompt, usage["output_tokens"], read, reasoning, written)

    @property
    def _create(self) -> typed_calls.Create:
        return self._client.messages.create

    def _streamed(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return a body that asks for a stream, with tool input as it is written."""
        tools = body.get("tools")
        if not isinstance(tools, list) or _EAGERLY in self._refused:
            return {**body, STREAM: True}
        return {**body, "tools": [{**tool, _EAGERLY: True} for tool in tools], STREAM: True}

    async def _read_events(
        self, events: AsyncIterator[object], request: ChatRequest, on_text: OnText
    ) -> ChatReply:
        usage: dict[str, Any] = {}
        blocks = _Blocks(on_text)
        with self._paid(lambda: usage, lambda: blocks.has_begun):
            return await self._add_up(events, usage, request, blocks)

    async def _add_up(
        self,
        events: AsyncIterator[object],
        usage: dict[str, Any],
        request: ChatRequest,
        blocks: _Blocks,
    ) -> ChatReply:
        """Return the reply of a stream; `usage` and `blocks` are filled in by its events."""
        stop, has_ended, model = None, False, self._model
        pieces = 0  # at the last stop reason
        async for event in self._until_end(events, blocks.extent):
            if event == DONE:  # of gateways
                continue
            if not isinstance(event, dict) or event.get("type", "error") == "error":
                raise_error_in(event, "content")
            if not isinstance(event, dict):
                raise TypeError("an event of the stream is not an object")
            match event["type"]:
                case "message_start":
                    model = served_model(event["message"].get("model"), self._model)
                    usage |= event["message"].get("usage") or {}
                case "content_block_start":
                    blocks.start(event)
                case "content_block_delta":
                    blocks.add(event)
                case "message_delta":
                    if later := event["delta"].get("stop_reason"):
                        is_same = pieces == blocks.extent.pieces
                        stop = weightier(later, stop) if is_same else later
                        pieces = blocks.extent.pieces
                    blocks.extent.has_ended = stop is not None
                    _merge(usage, event.get("usage") or {})
                case "message_stop":
                    has_ended = True
        parts = blocks.parts()
        if stop is None and not (has_ended and (parts.text or parts.input)):
            message = f"{self._host} ended the stream before the reply was complete"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY)
        reply = self._made(parts, stop or "stop", usage, model, request)
        blocks.shown.end(reply.text)
        return reply

    def _refusable(self, body: Mapping[str, Any]) -> list[str]:
        sent = [name for name in ("temperature", STREAM) if name in body]
        sent += [name for name in _thinking(self._model, self._info) if body]
        return sent + ([_EAGERLY] if "tools" in body else [])

    def _status(self, status: int | None, said: ErrorBody) -> int | None:
        if status is not None and status >= httpx2.codes.BAD_REQUEST:
            return status
        named = (STATUS[code] for code in said.code.split() if code in STATUS)
        return said.status or next(named, None)


class _Parts(NamedTuple):
    """Content of a message, by kinds of blocks."""

    text: str
    input: str
    """Input of its tool, as JSON."""
    thoughts: str


class _Blocks:
    """Accumulates the content blocks of a streamed message.

    The API starts a block empty. A gateway may start it with the first text, or all of it
    (https://github.com/earendil-works/pi/issues/7283), and repeat that as the first delta.
    """

    def __init__(self, on_text: OnText) -> None:
        self.shown = ShownText(on_text)
        self.extent = Extent()
        self._texts: list[str] = []
        self._inputs: list[str] = []
        self._thoughts: list[str] = []
        self._starts: dict[object, str] = {}  # index of a block without a delta -> its first text
        self._whole: dict[object, str] = {}  # index of a block without a delta -> its tool's input

    @property
    def has_begun(self) -> bool:
        """Whether any text was received, also of reasoning or of a tool's input."""
        return any((*self._texts, *self._inputs, *self._thoughts, *self._whole.values()))

    def start(self, event: Mapping[str, Any]) -> None:
        """Add the start of a block."""
        block = event.get("content_block") or {}
        if block.get("type") == "tool_use" and block.get("input"):
            self._whole[event.get("index")] = _input_of(block)
        if isinstance(text := block.get("text"), str):
            self._starts[event.get("index")] = text
            self._add_text(text)
        self._thoughts.append(str(block.get("thinking") or ""))

    def add(self, event: Mapping[str, Any]) -> None:
        """Add a piece of a block."""
        delta = event["delta"]
        text = delta.get("text")
        if text and text != self._starts.pop(event.get("index"), None):
            self._add_text(text)
        if piece := delta.get("partial_json"):
            self._whole.pop(event.get("index"), None)
            self._add_input(piece)
        self._thoughts.append(str(delta.get("thinking") or ""))

    def parts(self) -> _Parts:
        """Return the content of the message, whose stream has ended."""
        for given in self._whole.values():
            self._add_input(given)
        return _Parts(joined(self._texts), joined(self._inputs), joined(self._thoughts))

    def _add_text(self, text: str) -> None:
        self.extent.pieces += 1
        self._texts.append(text)
        self.shown.add(text)

    def _add_input(self, piece: str) -> None:
        self.extent.pieces += 1
        self._inputs.append(piece)
        self.shown.add_input(piece)


def _merge(usage: dict[str, Any], later: Mapping[str, Any]) -> None:
    """Add a later report of the usage of a stream, in which some servers repeat the input as 0.

    Others report the whole prompt first, and only later which part the cache has, maybe all of it
    (https://github.com/maximhq/bifrost/issues/5510).
    """
    is_split = False
    with suppress(ValueError):  # malformed
        parts = [checked_count(later.get(name) or 0) for name in (_INPUT, *_OF_THE_CACHE)]
        is_split = sum(parts) == usage.get(_INPUT)
    usage |= {
        name: n
        for name, n in later.items()
        if n or not usage.get(name) or (is_split and name == _INPUT)
    }


def _with_budget(thinking: dict[str, Any], limit: int, of_text: int) -> dict[str, object]:
    """Return `thinking` and `max_tokens`; the API accepts only a budget below the limit.

    Args:
        thinking: Requested value of `thinking`.
        limit: Token limit of the whole reply.
        of_text: Token limit of the visible text.
    """
    if "budget_tokens" not in thinking:
        return {"thinking": thinking, "max_tokens": limit}
    budget = max(_LEAST_BUDGET, min(thinking["budget_tokens"], limit - of_text))
    least = limit if limit > budget else budget + of_text
    return {"thinking": {**thinking, "budget_tokens": budget}, "max_tokens": least}


def _thinking(model: str, info: ModelInfo) -> dict[str, Any]:
    """Return `thinking` and `effort` for a model; empty without reasoning settings by the user.

    Models up to 4.5 take a budget, those from 4.6 on an effort:
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
    shown = {"display": "summarized"} if info.thinking.is_shown else {}
    return {"thinking": {"type": "adaptive", **shown}, **level}


def _marked(messages: tuple[ChatMessage, ...]) -> tuple[str, list[dict[str, object]]]:
    """Return (system prompt, turns), with a cache breakpoint at the end of each shared prefix."""
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
    """Split a message at its cache breakpoints and its pictures.

    The texts, without the labels of pictures, concatenate to its content. Images are Base64:
    https://platform.claude.com/docs/en/build-with-claude/vision
    """
    marks = sorted(end for end in ends if 0 < end <= len(message.content))
    at = min(message.pictures_at, len(message.content)) if message.pictures else 0
    cuts = sorted({0, *marks, at, len(message.content)})
    for start, end in pairwise(cuts):
        if start == at:
            yield from _images(message)
        block: dict[str, object] = {"type": "text", "text": message.content[start:end]}
        yield {**block, "cache_control": _KEEP} if end in marks else block
    if at == len(message.content):
        yield from _images(message)
    if len(cuts) == 1 and not message.pictures:
        yield {"type": "text", "text": message.content}


def _images(message: ChatMessage) -> Iterator[dict[str, object]]:
    for picture in message.pictures:
        if picture.label:
            yield {"type": "text", "text": f"{picture.label}:"}
        data = PictureText("", picture)
        source = {"type": "base64", "media_type": picture.media_type, "data": data}
        yield {"type": "image", "source": source}


def _text_of(block: Mapping[str, Any]) -> str:
    return str(block["text"] or "") if block["type"] == "text" else ""


def _input_of(block: Mapping[str, Any]) -> str:
    """Return the input of the tool of a content block as JSON; empty for other blocks."""
    is_tool = block["type"] == "tool_use"
    return json.dumps(block["input"], ensure_ascii=False) if is_tool else ""


def _stop_reason(reason: str | None) -> StopReason:
    if reason in _LENGTH:
        return StopReason.LENGTH
    if reason in _STOP:
        return StopReason.STOP
    if is_filters(str(reason)):
        return StopReason.REFUSAL
    raise ValueError("the reply ends without a known reason")
