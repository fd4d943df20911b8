"""The Responses API through the `openai` SDK: OpenAI, Azure, xAI, and other servers with it.

https://developers.openai.com/api/reference/resources/responses

A response is converted to the equivalent chat completion, so that both APIs share the rules for
usage, refusals, errors and hidden reasoning. Nothing is stored at the endpoint, and no seed is
sent, since the API has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from openai.types.responses.response_create_params import ResponseCreateParamsBase

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.json_schema import without_string_lengths
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers import typed_calls
from mdagents_llm.providers.checks import (
    at_its_limit,
    reported,
    reported_cost,
    served_model,
    served_tier,
)
from mdagents_llm.providers.error_body import ErrorInReplyError, raise_error_in
from mdagents_llm.providers.filters import is_filters
from mdagents_llm.providers.openai_chat import (
    Chunks,
    OpenAIChat,
    check_object,
    made,
    system_of,
    text_of,
)
from mdagents_llm.providers.picture_body import data_uri, detail_of
from mdagents_llm.providers.refused import STREAM, Refused

_LIMIT = "max_output_tokens"
_SUMMARY = "summary"  # field for a reasoning summary, the only form in which OpenAI shows reasoning
_SETTING = f"reasoning.{_SUMMARY}"
"""Name of the reasoning summary setting in errors."""
_LEAST = 16  # tokens; OpenAI refuses a smaller limit
_LAST_EVENTS = {
    "response.completed": "completed",
    "response.done": "completed",  # OpenRouter
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""Event that ends a stream -> status of its response, used if the response has none."""
_REASONING_DELTAS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_VISIBLE = ("content", "refusal", "arguments")
_NO_ROUTE = (404, 405, 501)


class OpenAIResponses(OpenAIChat):
    """One model behind the Responses API of an endpoint, with the arguments of `OpenAIChat`."""

    path = "/responses"
    _kind = "response"
    _fields = frozenset({*ResponseCreateParamsBase.__annotations__, STREAM})
    _of_schema = frozenset(["text"])
    _elsewhere = re.compile(
        r"(?i)unexpected endpoint"  # LM Studio, with status 200
        r"|not (supported|available|enabled|implemented).{0,40}\bresponses\b"
        r"|\bresponses( api)?\b.{0,20} (not|n't|only) (supported|available|enabled|implemented)"
        r"|(does not|doesn't) support.{0,30}\bresponses\b"
        r"|responses api is enabled only"  # Azure, for an API version that is too old
    )
    _other_api = "--api chat asks it by chat completions"

    def body(self, request: ChatRequest, *, whole: bool = False) -> dict[str, object]:
        """Return the request body for the endpoint, with the arguments of `SdkChat.body`."""
        info, refused = self._info, Refused() if whole else self._refused
        settings: dict[str, object] = {_LIMIT: self._limit(request), "store": False}
        if info.takes_temperature:
            settings["temperature"] = request.temperature
        if reasoning := _reasoning(info, refused):
            settings["reasoning"] = reasoning
        body: dict[str, object] = {
            "model": self._model,
            # With a `type`, vLLM before June 2026 refuses the text of an assistant.
            "input": [
                {"role": m.role, "content": _content(m)} for m in refused.taken(request.messages)
            ],
            **{name: value for name, value in settings.items() if name not in refused},
        }
        if request.schema is not None:
            schema = without_string_lengths(request.schema)
            name = request.schema.__name__
            form = {"type": "json_schema", "name": name, "schema": schema, "strict": True}
            body["text"] = {"format": form}
        return body

    def reply(self, raw: Any, request: ChatRequest) -> ChatReply:
        """Return a response as a reply, with the arguments of `SdkChat.reply`."""
        raise_error_in(raw, "output")
        message, finish = _message(raw["output"] or ()), _finish(raw, "completed")
        served = served_model(raw.get("model"), self._model)
        tokens = reported(self._tokens, raw.get("usage"))
        cost = reported_cost(raw.get("usage"))
        reply = made(message, finish, tokens, served, request, raw=raw, cost_usd=cost)
        reply = replace(reply, service_tier=served_tier(raw.get("service_tier")))
        return at_its_limit(reply, self._limit(request))

    @property
    def _create(self) -> typed_calls.Create:
        return self._client.responses.create

    def _streamed(self, body: Mapping[str, object]) -> dict[str, object]:
        return {**body, STREAM: True}

    def _chunks(self, on_text: OnText | None = None) -> Chunks:
        return _Events(self._model, on_text)

    def _whole(self, chunks: Chunks, request: ChatRequest) -> ChatReply:
        if chunks.finish is None:
            message = f"{self._host} ended the stream before the reply was complete"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY)
        return super()._whole(chunks, request)

    def _limit(self, request: ChatRequest) -> int:
        return max(_LEAST, self._info.limit(request))

    def _refusable(self, body: Mapping[str, Any]) -> list[str]:
        settings = ("temperature", "store", "reasoning", _LIMIT, STREAM)
        summary = [_SETTING] if _SUMMARY in body.get("reasoning", {}) else []
        sent = [name for name in settings if name in body]
        return [*summary, *sent, *system_of(body.get("input"))]

    def _is_elsewhere(self, status: int | None, words: str) -> bool:
        if self._elsewhere.search(words):
            return status is None or status < 500 or status in _NO_ROUTE
        return status in _NO_ROUTE and "model" not in words.lower()


def _content(message: ChatMessage) -> object:
    """Return the content of a message: its text, or a list of parts if it has pictures."""
    if not message.pictures:
        return message.content
    return [
        {"type": "input_text", "text": part}
        if isinstance(part, str)
        else {"type": "input_image", "image_url": data_uri(part), **detail_of(part)}
        for part in message.parts()
    ]


class _Events(Chunks):
    """Accumulates the events of a streamed response."""

    def __init__(self, model: str, on_text: OnText | None = None) -> None:
        super().__init__(model, on_text)
        self._items: list[Any] = []
        self._comments: set[object] = set()  # indexes of messages that are not part of the answer
        self._written: set[tuple[object, object]] = set()  # indexes of texts that came in deltas

    def take(self, chunk: Any) -> None:
        """Add a parsed event."""
        if chunk is None:  # keep-alive
            return
        raise_error_in(chunk, "type")
        check_object(chunk)
        kind = str(chunk.get("type"))
        response = chunk.get("response")
        if isinstance(response, dict):
            self.model = served_model(response.get("model") or self.model, self._asked)
            self.service_tier = served_tier(response.get("service_tier")) or self.service_tier
        if kind == "response.error":
            raise ErrorInReplyError(chunk)
        if kind in _LAST_EVENTS:
            self._finish(response or {}, _LAST_EVENTS[kind])
        elif "output_item" in kind:
            self._take_item(chunk, is_done=kind.endswith(".done"))
        else:
            self._take_text(kind, chunk)

    def _take_item(self, event: Mapping[str, Any], *, is_done: bool) -> None:
        item = event["item"]
        if _is_comment(item):
            self._comments.add(event.get("output_index"))
        if is_done:
            self._items.append(item)

    def _take_text(self, kind: str, event: Mapping[str, Any]) -> None:
        place = (event.get("output_index"), event.get("content_index"))
        if place[0] in self._comments:
            return
        if kind in _REASONING_DELTAS:
            self._add({"reasoning": event["delta"]})
        elif kind == "response.output_text.delta":
            self._written.add(place)
            self._add({"content": event["delta"]})
        elif kind == "response.output_text.done" and place not in self._written:
            self._add({"content": event["text"]})
        elif kind == "response.refusal.delta":
            self._add({"refusal": event["delta"]})
        elif kind == "response.function_call_arguments.done":
            self._add({"function_call": {"arguments": event["arguments"]}})

    def _finish(self, response: Mapping[str, Any], status: str) -> None:
        """Add the final response, whose text takes precedence if it has any."""
        self.usage = response.get("usage")
        self.finish = _finish(response, status)
        self.extent.has_ended = True
        for output in (response.get("output") or (), self._items):
            message = _message(output)
            if any(message[name] for name in _VISIBLE):
                self._pieces = {name: [text] for name, text in message.items()}
                return


def _message(output: Iterable[Any]) -> dict[str, str]:
    """Return the output items of a response as the message of a chat completion."""
    parts: dict[str, list[str]] = {name: [] for name in (*_VISIBLE, "reasoning")}
    for item in output:
        check_object(item)
        content = item.get("content") or ()
        match item.get("type", "message"):
            case "message" if not _is_comment(item):
                text = text_of(content or "")
                if text not in parts["content"]:  # OpenAI sends some messages twice
                    parts["content"].append(text)
                parts["refusal"] += [
                    part.get("refusal") or ""
                    for part in content
                    if isinstance(part, dict) and part.get("type") == "refusal"
                ]
            case "function_call":
                parts["arguments"].append(item.get("arguments") or "")
            case "reasoning":
                written = content if isinstance(content, list) else ()
                texts = [*written, *(item.get("summary") or ())]
                parts["reasoning"] += [str(one.get("text") or "") for one in texts]
    return {name: "".join(texts) for name, texts in parts.items()}


def _is_comment(item: Mapping[str, Any]) -> bool:
    """Return whether a message is intermediate commentary, not part of the answer."""
    return item.get("phase") not in (None, "final_answer")


def _finish(response: Mapping[str, Any], usual: str) -> str:
    """Return the finish reason that a chat completion would have.

    Args:
        response: Parsed response.
        usual: Status to use if the response has none.

    Raises:
        ErrorInReplyError: The response failed.
    """
    status = response.get("status") or usual
    if status == "failed":
        raise ErrorInReplyError(response.get("error") or {"message": "the response failed"})
    if status == "incomplete":
        reason = (response.get("incomplete_details") or {}).get("reason") or ""
        return "content_filter" if is_filters(str(reason)) else "length"
    return "stop" if status == "completed" else f"error: {status}"


def _reasoning(info: ModelInfo, refused: Refused) -> dict[str, object]:
    """Return the `reasoning` field with the user's effort and summary settings; empty if none.

    https://developers.openai.com/api/docs/guides/reasoning; the number of tokens is OpenRouter's.
    """
    thinking = info.thinking
    field: dict[str, object] = {"effort": thinking.effort} if thinking.effort else {}
    if not field and thinking.tokens is not None and info.reasoning_field == "reasoning":
        field = {"max_tokens": thinking.tokens}
    if thinking.is_shown and _SETTING not in refused:
        field[_SUMMARY] = "auto"
    return field
