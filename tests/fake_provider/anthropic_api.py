"""Anthropic's messages.

Shapes follow `anthropic.types` of the SDK; error types are those that the API documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from tests.fake_provider.chat_api import (
    Answer,
    BadRequestError,
    ErrorReply,
    Finish,
    SeenRequest,
    Usage,
    event,
    positive,
    said_in,
    schema_in_text,
)
from tests.fake_provider.faults import Fault, FaultPlan
from tests.fake_provider.seen_pictures import SeenPicture, picture_of

_CONTEXT_WINDOW = 200_000
_MOST_MARKS = 4
_FIELDS = frozenset(
    {
        "cache_control", "max_tokens", "messages", "metadata", "model", "output_config",
        "service_tier", "stop_sequences", "stream", "system", "temperature", "thinking",
        "tool_choice", "tools", "top_k", "top_p",
    }
)  # fmt: skip
_NOT_IN_OUTPUT = frozenset({"minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern"})
_STOP_REASONS = {
    Finish.STOP: "end_turn",
    Finish.EMPTY: "end_turn",
    Finish.LENGTH: "max_tokens",
    Finish.REFUSAL: "refusal",
    Finish.BLOCKED: "refusal",
}
_INVALID = "invalid_request_error"
_WRONG_KEY = (401, "authentication_error", "invalid x-api-key")
_ERRORS: dict[Fault, tuple[int, str, str]] = {
    Fault.RATE_LIMIT:
        (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    Fault.QUOTA:
        (400, _INVALID, "Your credit balance is too low to access the Anthropic API. Please go to "
         "Plans & Billing to upgrade or purchase credits."),
    Fault.UNAUTHORIZED: _WRONG_KEY,
    Fault.API_KEY_INVALID: _WRONG_KEY,
    Fault.MODEL_NOT_FOUND: (404, "not_found_error", "model: {model}"),
    Fault.SCHEMA_UNSUPPORTED: (400, _INVALID, "{schema_field} is not supported by this model"),
    Fault.TEMPERATURE_REFUSED: (400, _INVALID, "`temperature` is deprecated for this model."),
    Fault.IMAGES_REFUSED:
        (400, _INVALID, "messages.0.content.0: '{model}' does not support image inputs."),
    Fault.BAD_IMAGE: (400, _INVALID, "Could not process image"),
    Fault.CONTEXT_LENGTH:
        (400, _INVALID, f"prompt is too long: {{tokens}} tokens > {_CONTEXT_WINDOW} maximum"),
    Fault.SERVER_ERROR: (500, "api_error", "Internal server error"),
    Fault.STREAM_ERROR: (500, "api_error", "Internal server error"),
    Fault.UNAVAILABLE: (503, "api_error", "Service unavailable"),
    Fault.OVERLOADED: (529, "overloaded_error", "Overloaded"),
}  # fmt: skip
"""Status, type and message."""


class AnthropicApi:
    """Reads and writes `POST /v1/messages`."""

    refusal_text = ""
    names_events = True

    def read(self, index: int, call: str, body: Mapping[str, Any]) -> SeenRequest:
        for name in body.keys() - _FIELDS:
            raise BadRequestError(f"{name}: Extra inputs are not permitted")
        if not isinstance(body.get("model"), str) or positive(body.get("max_tokens")) is None:
            raise BadRequestError("model, max_tokens: Field required")
        said = [{"role": "system", "content": body["system"]}] if body.get("system") else []
        said += body["messages"]
        blocks = [_blocks(message["content"]) for message in said]
        messages, pictures = said_in(blocks, _part)
        flat = [block for of_one in blocks for block in of_one]
        lengths = accumulate(len(block.get("text", "")) for block in flat)
        marks = tuple(
            n for block, n in zip(flat, lengths, strict=True) if block.get("cache_control")
        )
        if len(marks) > _MOST_MARKS:
            raise BadRequestError(f"A maximum of {_MOST_MARKS} blocks with cache_control may be "
                                  f"provided. Found {len(marks)}.")  # fmt: skip
        schema = _schema(body)
        return SeenRequest(
            index=index,
            model=body["model"],
            roles=tuple(message["role"] for message in said),
            messages=messages,
            body=body,
            schema=schema or schema_in_text("\n".join(messages)),
            native_schema=schema is not None,
            streamed=bool(body.get("stream")),
            include_usage=True,
            max_tokens=positive(body["max_tokens"]),
            seed=None,
            cache_marks=marks,
            pictures=pictures,
        )

    def refusal_of(self, message: str, status: int) -> ErrorReply:
        return ErrorReply(status, _error_body("api_error" if status >= 500 else _INVALID, message))

    def error(self, fault: Fault, plan: FaultPlan, request: SeenRequest) -> ErrorReply | None:
        if fault not in _ERRORS:
            return None
        status, kind, message = _ERRORS[fault]
        text = message.format(
            model=request.model,
            tokens=max(request.input_tokens, _CONTEXT_WINDOW + 1),
            schema_field="tool_choice: forced tool use"
            if "tools" in request.body
            else "output_config.format: structured outputs",
        )
        wait = plan.retry_after if fault is Fault.RATE_LIMIT else None
        return ErrorReply(status, _error_body(kind, text), wait)

    def reply(self, request: SeenRequest, answer: Answer) -> dict[str, Any]:
        block, reason = _block(request, answer), _STOP_REASONS[answer.finish]
        if block is not None and block["type"] == "tool_use" and answer.finish is Finish.STOP:
            reason = "tool_use"
        return {
            "id": f"msg_{request.index:08d}",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [] if block is None else [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": _usage_body(answer.usage),
        }

    def events(
        self, request: SeenRequest, answer: Answer, pieces: Sequence[str]
    ) -> Iterator[tuple[bytes, str]]:
        whole = self.reply(request, answer)
        begun = whole | {
            "content": [],
            "stop_reason": None,
            "usage": whole["usage"] | {"output_tokens": 1},
        }
        yield _event("message_start", message=begun), ""
        yield _event("ping"), ""
        if whole["content"]:
            (block,) = whole["content"]
            is_tool = block["type"] == "tool_use"
            empty: dict[str, Any] = {"input": {}} if is_tool else {"text": ""}
            yield _event("content_block_start", index=0, content_block=block | empty), ""
            for piece in pieces:
                delta = {"type": "text_delta", "text": piece}
                if is_tool:
                    delta = {"type": "input_json_delta", "partial_json": piece}
                yield _event("content_block_delta", index=0, delta=delta), piece
            yield _event("content_block_stop", index=0), ""
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=ended, usage=whole["usage"]), ""
        yield _event("message_stop"), ""


def _blocks(content: Any) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            raise BadRequestError("messages: text content blocks must contain non-whitespace text")
    return list(blocks)


def _part(block: Mapping[str, Any]) -> str | SeenPicture:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return picture_of(kind, data)
    raise BadRequestError(f"messages: Input tag '{block['type']}' found using 'type' is unknown")


def _schema(body: Mapping[str, Any]) -> dict[str, Any] | None:
    if chosen := body.get("tool_choice"):
        tools = {tool["name"]: tool for tool in body["tools"]}
        if chosen["type"] != "tool" or chosen["name"] not in tools:
            raise BadRequestError("tool_choice: the tool is not among the tools")
        return dict(tools[chosen["name"]]["input_schema"])
    asked = (body.get("output_config") or {}).get("format")
    if asked is None:
        return None
    _check_of_output(asked["schema"])
    return dict(asked["schema"])


def _check_of_output(schema: Any) -> None:
    """Refuse what the API does not know in a schema for output, as against one for a tool."""
    if not isinstance(schema, dict):
        return
    if unknown := schema.keys() & _NOT_IN_OUTPUT:
        raise BadRequestError(
            f"output_config.format.schema: For '{schema.get('type')}' type, property "
            f"'{min(unknown)}' is not supported"
        )
    if schema.get("minItems", 0) > 1:
        raise BadRequestError("output_config.format.schema: minItems above 1 is not supported")
    for inner in (*schema.get("properties", {}).values(), schema.get("items")):
        _check_of_output(inner)


def _block(request: SeenRequest, answer: Answer) -> dict[str, Any] | None:
    """Return what the model says as the API's block; None where it says nothing."""
    if answer.finish not in (Finish.STOP, Finish.LENGTH):
        return None
    if "tool_choice" not in request.body:
        return {"type": "text", "text": answer.text}
    given = _object(answer.text)
    if given is None and answer.finish is Finish.STOP:
        return {"type": "text", "text": answer.text}
    return {
        "type": "tool_use",
        "id": f"toolu_{request.index:08d}",
        "name": request.body["tool_choice"]["name"],
        "input": given or {},  # of an input that was cut off, the SDKs see no field
    }


def _object(text: str) -> dict[str, Any] | None:
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        return None
    return given if isinstance(given, dict) else None


def _usage_body(usage: Usage) -> dict[str, Any]:
    body = {
        "input_tokens": usage.input - usage.cached_input - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached_input,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }
    if usage.reasoning:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return body


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def _error_body(kind: str, message: str) -> dict[str, Any]:
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "request_id": "req_tests"}
