"""Chat completions through the `openai` SDK: OpenAI, Azure, embedded model, compatible servers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

import openai
from openai import AsyncOpenAI
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from pydantic import BaseModel

from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.json_schema import without_string_lengths
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers import typed_calls
from mdagents_llm.providers.checks import (
    at_its_limit,
    checked_count,
    checked_usage,
    completed_usage,
    merged_usage,
    reported,
    reported_cost,
    served_model,
    served_tier,
)
from mdagents_llm.providers.error_body import ErrorInReplyError, has_error, raise_error_in
from mdagents_llm.providers.event_stream import DONE, Extent
from mdagents_llm.providers.filters import is_filters
from mdagents_llm.providers.finish_reasons import first_word, is_cut, weightier
from mdagents_llm.providers.picture_body import content_of
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.refusals import SYSTEM
from mdagents_llm.providers.refused import STREAM, Refused
from mdagents_llm.providers.sdk_chat import SdkChat
from mdagents_llm.providers.streamed_text import ShownText, is_replay, joined
from mdagents_llm.reasoning_tags import IN_TAGS, split_reasoning
from mdagents_llm.text import well_formed

_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Names of the token limit of a reply; if a model refuses one, the other is sent."""
_STREAM_OPTIONS = "stream_options"
_BROKEN_OFF = frozenset(
    [
        "abort",
        "aborted",
        "insufficient_system_resource",
        "engine_overloaded",
        "failed",
        "cancelled",
        "canceled",
        "time_limit",
        "timeout",
        "interrupted",
        "not_finished",
        "function_call_filter",
    ]
)
"""Finish reasons of an aborted reply, besides errors and what is malformed: OpenRouter, Mistral,
vLLM, DeepSeek, watsonx, Z.ai, …"""
_REASONING = ("reasoning_content", "reasoning")
"""Fields with hidden reasoning: the first of DeepSeek, vLLM and others, the second of OpenRouter
and newer vLLM."""
_NAMES = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "input_tokens_details": "prompt_tokens_details",
    "output_tokens_details": "completion_tokens_details",
}
"""Name of a count in the Responses API, and at some servers -> its name in a chat completion."""
_EFFORT = ("reasoning_effort", "reasoning")

SchemaFields = Callable[[type[BaseModel]], Mapping[str, object]]
"""Function that returns the body fields that request a schema from an endpoint."""


def response_format(schema: type[BaseModel]) -> Mapping[str, object]:
    """Return the body fields that request a schema from OpenAI.

    https://platform.openai.com/docs/guides/structured-outputs
    """
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


class OpenAIChat(SdkChat):
    """One model behind an OpenAI-compatible endpoint.

    Args:
        client: SDK client of the endpoint, with SDK retries off.
        model: The endpoint's name for the model.
        info: Properties of the model.
        schema_fields: Function that returns the body fields that request a schema.
        settings: Environment variables, for `typed_calls.wanted`.
        pool: Connections for calls that do not go through the typed methods of the SDK; None for
            those of the client.
    """

    path = "/chat/completions"
    _sdk: ClassVar[ModuleType] = openai
    _kind = "chat completion"
    _fields = frozenset({*CompletionCreateParamsBase.__annotations__, "stream"})
    _of_schema = frozenset(["response_format", "grammar"])
    _elsewhere = re.compile(
        r"(?i)(only (supported|available) (in|with|through|via)|use) (the )?"
        r"(/?v1/responses|responses api)|not a chat model|chatcompletion operation does not work"
    )
    """Wordings by which an endpoint says that a model supports only the other API."""
    _other_api = "--api responses asks it by the Responses API"
    _client: AsyncOpenAI

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        info: ModelInfo,
        *,
        schema_fields: SchemaFields = response_format,
        settings: Mapping[str, str] = MappingProxyType({}),
        pool: Pool | None = None,
    ) -> None:
        super().__init__(client, model, info, settings=settings, pool=pool)
        self._schema_fields = schema_fields

    def body(self, request: ChatRequest, *, whole: bool = False) -> dict[str, object]:
        """Return the request body for the endpoint, with the arguments of `SdkChat.body`."""
        info, refused = self._info, Refused() if whole else self._refused
        messages = refused.taken(request.messages)
        limit: str = info.max_tokens_field
        settings: dict[str, object] = {
            _LIMITS[limit] if limit in refused else limit: self._limit(request)
        }
        if info.takes_temperature:
            settings["temperature"] = request.temperature
        if request.seed is not None and info.takes_seed:
            settings[info.seed_field] = request.seed
        settings |= _thinking(info)
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": content_of(m)} for m in messages],
            **{name: value for name, value in settings.items() if name not in refused},
        }
        if request.schema is not None:
            body.update(self._schema_fields(request.schema))
        return body

    def reply(self, raw: Any, request: ChatRequest) -> ChatReply:
        """Return a chat completion as a reply, with the arguments of `SdkChat.reply`."""
        raise_error_in(raw, "choices")
        tokens = reported(self._tokens, raw.get("usage"))
        # A body without choices is an empty reply if tokens were used, which are recorded.
        choices: list[Any] = raw["choices"]
        empty = {"finish_reason": "stop" if tokens.total_tokens else None}
        choice: Any = choices[0] if len(choices) else empty
        _raise_error_of(choice)
        message = choice.get("message") or choice.get("delta") or {"content": choice.get("text")}
        check_object(message)
        served = served_model(raw.get("model"), self._model)
        finish, cost = choice.get("finish_reason"), reported_cost(raw.get("usage"))
        finish = _told(finish, choice) if finish else finish
        reply = made(message, finish, tokens, served, request, raw=raw, cost_usd=cost)
        reply = replace(reply, service_tier=served_tier(raw.get("service_tier")))
        return at_its_limit(reply, self._limit(request))

    async def _read_events(
        self, events: AsyncIterator[object], request: ChatRequest, on_text: OnText
    ) -> ChatReply:
        chunks = self._chunks(on_text)
        with self._paid(lambda: chunks.usage, lambda: chunks.has_begun):
            async for event in self._until_end(events, chunks.extent):
                chunks.add(event)
            return self._whole(chunks, request)

    def _tokens(self, usage: Any) -> TokenUsage:
        return usage_of(usage)

    @property
    def _create(self) -> typed_calls.Create:
        return self._client.chat.completions.create

    def _streamed(self, body: Mapping[str, object]) -> dict[str, object]:
        if _STREAM_OPTIONS in self._refused:
            return {**body, STREAM: True}
        return {**body, STREAM: True, _STREAM_OPTIONS: {"include_usage": True}}

    def _chunks(self, on_text: OnText | None = None) -> Chunks:
        return Chunks(self._model, on_text)

    def _whole(self, chunks: Any, request: ChatRequest) -> ChatReply:
        tokens = reported(self._tokens, chunks.usage)
        has_ended = chunks.is_done if chunks.message else tokens.total_tokens > 0
        if chunks.finish is None and not has_ended:
            message = f"{self._host} ended the stream before the reply was complete"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY)
        finish, cost = chunks.finish or "stop", reported_cost(chunks.usage)
        reply = made(chunks.message, finish, tokens, chunks.model, request, cost_usd=cost)
        reply = replace(reply, service_tier=chunks.service_tier)
        chunks.shown.end(reply.text)
        return at_its_limit(reply, self._limit(request))

    def _limit(self, request: ChatRequest) -> int:
        return self._info.limit(request)

    def _advised(self, failure: ProviderError, status: int | None, words: str) -> ProviderError:
        if not self._is_elsewhere(status, words):
            return failure
        message = f"{failure}; {self._other_api}"
        return ProviderError(message, kind=ErrorKind.MODEL_NOT_FOUND, status=status)

    def _refusable(self, body: Mapping[str, Any]) -> list[str]:
        settings = ("temperature", self._info.seed_field, _STREAM_OPTIONS, STREAM)
        sent = [name for name in (*settings, *_LIMITS, *_EFFORT) if name in body]
        return [*sent, *system_of(body.get("messages"))]

    def _is_elsewhere(self, status: int | None, words: str) -> bool:
        """Return whether an error means that the model supports only the other API."""
        return status in (400, 404) and self._elsewhere.search(words) is not None


class Chunks:
    """Accumulates the chunks of a streamed reply.

    Args:
        model: Name of the requested model.
        on_text: Callback for the visible text as it arrives; None for no callback.
    """

    def __init__(self, model: str, on_text: OnText | None = None) -> None:
        self._asked = model
        self.model = model
        self.service_tier = ""
        self.shown = ShownText(on_text)
        self._has_deltas = False
        self._pieces: dict[str, list[str]] = {}
        self.finish: str | None = None
        self._pieces_at_finish = 0
        self.usage: Any = None
        self.extent = Extent()
        self.is_done = False
        """Whether the end marker was received."""

    @property
    def has_begun(self) -> bool:
        """Whether any text was received, also of reasoning."""
        return bool(self._pieces)

    @property
    def message(self) -> dict[str, str]:
        """Message in the form of a whole reply; empty until the first text."""
        return {name: joined(pieces) for name, pieces in self._pieces.items()}

    def add(self, event: object) -> None:
        """Add a parsed event, or note the end marker."""
        if event == DONE:
            self.is_done = True
        else:
            self.take(event)

    def take(self, chunk: Any) -> None:
        """Add a parsed chunk."""
        if chunk is None:  # keep-alive
            return
        if isinstance(chunk, dict):  # an error may report tokens as well
            of_groq = chunk.get("x_groq")
            usage = of_groq.get("usage") if isinstance(of_groq, dict) else None
            self.usage = merged_usage(self.usage, chunk.get("usage") or usage)
            if self.has_begun and chunk.get("error") and not has_error(chunk, "usage"):
                chunk = {**chunk, "error": None}  # of empty fields, in the last chunk as in others
        raise_error_in(chunk, "choices")
        check_object(chunk)
        self.model = served_model(chunk.get("model") or self.model, self._asked)
        self.service_tier = served_tier(chunk.get("service_tier")) or self.service_tier
        number: object = None
        for place, choice in enumerate(chunk.get("choices") or ()):
            # From chunk to chunk, it counts tokens at some servers (TGI#1648, foundry-local#263).
            if place == 0:
                number = choice.get("index")
            elif choice.get("index") != number:
                continue  # another choice, for which nobody asked
            self.usage = merged_usage(self.usage, choice.get("usage"))  # Moonshot
            _raise_error_of(choice)
            if delta := choice.get("delta"):
                self._has_deltas = True
            elif (delta := choice.get("message")) and self._has_deltas and _says(delta):
                self._pieces = {}  # a whole message after its parts
            delta, finish = delta or {"content": choice.get("text")}, choice.get("finish_reason")
            self._add(delta, is_last=bool(finish) and self.finish is None)
            if finish:
                finish = _told(finish, choice)
                is_same = self._pieces_at_finish == self.extent.pieces
                self.finish = weightier(finish, self.finish) if is_same else finish
                self._pieces_at_finish = self.extent.pieces
            self.extent.note(finish)

    def _add(self, delta: Mapping[str, Any], *, is_last: bool = False) -> None:
        text = text_of(delta.get("content"))
        if is_last and text and is_replay(text, self._pieces.get("content", ())):
            text = ""
        if refusal := delta.get("refusal"):
            self._append("refusal", refusal)
        for name in _REASONING:
            if piece := _thoughts(delta.get(name)):
                self._append(name, piece)
        if text:
            self._append("content", text)
        if arguments := _arguments(delta):
            self._append("arguments", arguments)
        self.shown.add(text)

    def _append(self, name: str, piece: str) -> None:
        self.extent.pieces += name not in _REASONING
        self._pieces.setdefault(name, []).append(piece)


def system_of(messages: Any) -> list[str]:
    """Return `SYSTEM` in a list if the messages of a body have that role; else an empty list."""
    return [SYSTEM] if any(one["role"] == SYSTEM for one in messages or ()) else []


def check_object(value: object) -> None:
    """Check that a part of a reply is an object.

    Raises:
        TypeError: The part is not an object.
    """
    if not isinstance(value, dict):
        raise TypeError("a part of the reply is not an object")


def _told(finish: Any, choice: Mapping[str, Any]) -> Any:
    """Return the finish reason of a choice; OpenRouter may call the model's own one `stop`."""
    return weightier(finish, choice.get("native_finish_reason"))


def _says(message: Mapping[str, Any]) -> bool:
    names = ("content", "refusal", "arguments", "tool_calls", "function_call")
    return any(message.get(name) for name in names)


def _raise_error_of(choice: Mapping[str, Any]) -> None:
    contents = ("message", "delta", "text")
    if choice.get("error") and all(has_error(choice, content) for content in contents):
        raise ErrorInReplyError(choice)  # OpenRouter: the model aborted


def made(
    message: Mapping[str, Any],
    finish: object,
    tokens: TokenUsage,
    model: str,
    request: ChatRequest,
    *,
    raw: Mapping[str, object] | None = None,
    cost_usd: float | None = None,
) -> ChatReply:
    """Return a reply built from its parts.

    If a schema was requested, the arguments of a tool call in place of text are the reply. A whole
    reply with text may lack its finish reason, also at OpenAI and Azure
    (https://github.com/openai/openai-openapi/pull/20).

    Args:
        message: Message in the form of a whole reply.
        finish: Finish reason; None without one.
        tokens: Reported token usage; zero without one.
        model: Name of the model that replied.
        request: Request that was sent.
        raw: Whole body; None for a stream.
        cost_usd: Reported cost in USD; None without one.

    Raises:
        ValueError: There is neither text nor a finish reason.
        ProviderError: The endpoint broke the reply off.
    """
    refusal = message.get("refusal") or ""
    if not isinstance(refusal, str):
        raise TypeError("the refusal is not a text")
    text, hidden = split_reasoning(text_of(message.get("content")))
    thoughts = {name: _thoughts(message.get(name)) for name in _REASONING}
    fields = [name for name in _REASONING if thoughts[name]]
    note = f"its text was in {fields[0]}" if fields else ""
    note = IN_TAGS if hidden else note
    arguments = message.get("arguments") or _arguments(message)
    if not text.strip() and request.schema is not None:
        text = arguments
    text = well_formed(text or refusal)
    reasoning = hidden + "".join(thoughts[name] for name in fields[:1])
    written = text + reasoning
    if finish is None and not text:
        raise ValueError("the reply ends without a finish reason")
    usage, is_estimated = completed_usage(tokens, request, written, model)
    return ChatReply(
        text=text,
        usage=usage,
        stop_reason=_stop_reason(finish or "stop", refusal),
        model=model,
        raw=raw,
        usage_estimated=is_estimated,
        cost_usd=cost_usd,
        reasoning=well_formed(reasoning),
        note="" if text else note,
    )


def text_of(content: Any) -> str:
    """Return the text of a message's content, a string or a list of parts, without reasoning."""
    if isinstance(content, list):
        return "".join(map(text_of, content))
    if isinstance(content, dict):
        kind = content.get("type", "text")
        if kind not in ("text", "output_text"):
            return ""
        content = content["text"]
    if not isinstance(content, str | None):
        raise TypeError("the text is not a text")
    return content or ""


def _thoughts(value: Any) -> str:
    """Return the text of a field with hidden reasoning: a string, a list of parts, or a part."""
    if isinstance(value, list):
        return "".join(map(_thoughts, value))
    if isinstance(value, dict):
        names = ("text", "thinking", "content", "summary")
        value = next((value[name] for name in names if value.get(name)), "")
        return _thoughts(value)
    return value if isinstance(value, str) else ""


def _arguments(message: Mapping[str, Any]) -> str:
    """Return the arguments of the tool calls of a message, as JSON text."""
    if not (message.get("tool_calls") or message.get("function_call")):
        return ""
    calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
    calls.append(message.get("function_call") or {})
    given = [call.get("arguments") or "" for call in calls]
    return "".join(one if isinstance(one, str) else json.dumps(one) for one in given)


def _thinking(info: ModelInfo) -> dict[str, object]:
    """Return the body field with the user's reasoning settings; empty if there are none.

    OpenAI: https://platform.openai.com/docs/guides/reasoning; OpenRouter, which takes a number of
    tokens: https://openrouter.ai/docs/use-cases/reasoning-tokens.
    """
    thinking = info.thinking
    if info.reasoning_field == "reasoning":
        if thinking.effort:
            return {"reasoning": {"effort": thinking.effort}}
        return {} if thinking.tokens is None else {"reasoning": {"max_tokens": thinking.tokens}}
    return {"reasoning_effort": thinking.effort} if thinking.effort else {}


def usage_of(usage: Any) -> TokenUsage:
    """Return the token usage that a chat completion or a response reports."""
    if "input_tokens" in usage:
        named = {name: usage[given] for given, name in _NAMES.items() if given in usage}
        usage = merged_usage(named, usage)
    of_input, of_output = (
        details if isinstance(details := usage.get(f"{name}_tokens_details"), dict) else {}
        for name in ("prompt", "completion")
    )
    prompt, total = usage["prompt_tokens"], usage.get("total_tokens")
    read, created = (usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
    # Moonshot and DeepSeek name them elsewhere, and LiteLLM as Anthropic does.
    elsewhere = usage.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    cached = of_input.get("cached_tokens") or elsewhere or read
    in_details = of_input.get("cache_write_tokens") or of_input.get("cache_creation_tokens")
    written = in_details or created
    within = of_output.get("reasoning_tokens")
    beside = 0 if within else usage.get("reasoning_tokens") or 0
    reasoning = within or beside
    outside = 0
    if total is not None and "completion_tokens" in usage:
        more = total - prompt - usage["completion_tokens"]
        outside = _cached_in_total(more, reasoning, cached, written)
    with suppress(ValueError):  # malformed
        in_cache = checked_count(read) + checked_count(created)
        if in_cache > prompt + outside:  # the prompt excludes them, and the total too
            outside = in_cache
    if outside:  # else `true` would become a number
        prompt += outside
    if prompt == 0 and total is not None and "completion_tokens" in usage:
        more = total - usage["completion_tokens"]
        prompt = 0 if more == reasoning else max(0, more - beside)  # only the total has it
    completion = usage.get("completion_tokens", 0 if total is None else total - prompt)
    if total is None and reasoning > completion:
        total = prompt + completion + reasoning
    if total is not None and total > prompt + completion:
        # xAI, and Google's compatible endpoint, count reasoning tokens only in the total.
        reasoning = reasoning or total - prompt - completion
        completion = total - prompt
    if isinstance(reasoning, int | float) and isinstance(completion, int | float):
        if reasoning == beside > completion:  # Perplexity counts it in no other number
            completion += beside
        reasoning = min(reasoning, completion)  # if the total leaves no room for it
    try:
        return checked_usage(prompt, completion, cached, reasoning, written)
    except ValueError:
        return checked_usage(prompt, completion)  # only the details are malformed


def _cached_in_total(more: object, reasoning: object, read: object, written: object) -> int:
    """Return the cached tokens that the prompt excludes, as Anthropic's does, but the total has.

    A gateway may exclude both kinds, or only one. Reasoning may be beside the completion as well.

    Args:
        more: Tokens of the total beyond those of prompt and completion.
        reasoning: Tokens of hidden reasoning.
        read: Tokens read from the cache.
        written: Tokens written to it.
    """
    try:
        more, reasoning, read, written = map(checked_count, (more, reasoning, read, written))
    except ValueError:  # malformed
        return 0
    parts = (read + written, written, read) if more != reasoning else ()
    return next((part for part in parts if part and more - part in (0, reasoning)), 0)


def _stop_reason(finish: object, refusal: object) -> StopReason:
    if isinstance(finish, dict):  # SGLang's own API
        finish = finish.get("type")
    if refusal or is_filters(str(finish)):
        return StopReason.REFUSAL
    first = first_word(finish)
    is_error = first.startswith(("error", "malformed_")) or first.endswith("_error")
    if is_error or first in _BROKEN_OFF:
        message = f"the endpoint broke the reply off (finish reason {finish})"
        raise ProviderError(message, kind=ErrorKind.SERVER)
    return StopReason.LENGTH if is_cut(first) else StopReason.STOP
