"""OpenAI's chat completions as llama.cpp, Groq and OpenAI itself serve them.

Shapes follow `openai.types.chat` of the SDK; error codes are those that the API documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mdagents_llm.json_schema import JsonSchema
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
from tests.fake_provider.seen_pictures import SeenPicture, picture_of_uri

_CREATED = 1_790_000_000
_CONTEXT_WINDOW = 8192
_FINISH_REASONS = {
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.REFUSAL: "stop",
    Finish.BLOCKED: "content_filter",
}
_INVALID = "invalid_request_error"
_WRONG_KEY = (401, _INVALID, "invalid_api_key", None, "Incorrect API key provided.")
_ERRORS: dict[Fault, tuple[int, str, str | None, str | None, str]] = {
    Fault.RATE_LIMIT:
        (429, "requests", "rate_limit_exceeded", None, "Rate limit reached for {model}."),
    Fault.QUOTA:
        (429, "insufficient_quota", "insufficient_quota", None,
         "You exceeded your current quota, please check your plan and billing details."),
    Fault.UNAUTHORIZED: _WRONG_KEY,
    Fault.API_KEY_INVALID: _WRONG_KEY,
    Fault.MODEL_NOT_FOUND:
        (404, _INVALID, "model_not_found", "model",
         "The model `{model}` does not exist or you do not have access to it."),
    Fault.SCHEMA_UNSUPPORTED:
        (400, _INVALID, None, "response_format",
         "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
         "model."),
    Fault.SEED_REFUSED:
        (400, _INVALID, "unsupported_parameter", None,
         "Unsupported parameter: '{seed_field}' is not supported with this model."),
    Fault.TEMPERATURE_REFUSED:
        (400, _INVALID, "unsupported_value", "temperature",
         "Unsupported value: 'temperature' does not support this value with this model. Only the "
         "default (1) value is supported."),
    Fault.IMAGES_REFUSED:
        (400, _INVALID, None, "messages.[1].content.[0].type",
         "Invalid content type. image_url is only supported by certain models."),
    Fault.BAD_IMAGE:
        (400, _INVALID, "image_parse_error", None,
         "You uploaded an unsupported image. Please make sure your image is valid."),
    Fault.CONTEXT_LENGTH:
        (400, _INVALID, "context_length_exceeded", "messages",
         f"This model's maximum context length is {_CONTEXT_WINDOW} tokens. However, your messages "
         "resulted in {tokens} tokens."),
    Fault.SERVER_ERROR:
        (500, "server_error", None, None,
         "The server had an error while processing your request. Sorry about that!"),
    Fault.STREAM_ERROR: (500, "server_error", None, None, "The server had an error."),
    Fault.UNAVAILABLE:
        (503, "server_error", None, None,
         "The engine is currently overloaded, please try again later."),
    Fault.OVERLOADED: (529, "overloaded_error", None, None, "Overloaded"),
}  # fmt: skip
"""Status, type, code, param and message."""


class OpenAIApi:
    """Reads and writes `POST /v1/chat/completions`."""

    refusal_text = "I'm sorry, but I can't help with that request."
    names_events = False

    def read(self, index: int, call: str, body: Mapping[str, Any]) -> SeenRequest:
        if not isinstance(body.get("model"), str):
            raise BadRequestError("you must provide a model parameter")
        said = body.get("messages")
        if not isinstance(said, list) or not said:
            raise BadRequestError("'messages' must be a list that is not empty")
        messages, pictures = said_in((message["content"] for message in said), _part)
        native = native_schema(body.get("response_format") or {"type": "text"})
        return SeenRequest(
            index=index,
            model=body["model"],
            roles=tuple(message["role"] for message in said),
            messages=messages,
            body=body,
            schema=native or schema_in_text("\n".join(messages)),
            native_schema=native is not None,
            streamed=bool(body.get("stream")),
            include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
            max_tokens=positive(body.get("max_completion_tokens", body.get("max_tokens"))),
            seed=body.get("seed"),
            pictures=pictures,
        )

    def refusal_of(self, message: str, status: int) -> ErrorReply:
        return ErrorReply(status, _error_body(message, _INVALID, None, None))

    def error(self, fault: Fault, plan: FaultPlan, request: SeenRequest) -> ErrorReply | None:
        if fault not in _ERRORS:
            return None
        status, kind, code, param, message = _ERRORS[fault]
        # A prompt that really is too long says its own size.
        tokens = max(request.input_tokens, _CONTEXT_WINDOW + 1)
        seed_field = "random_seed" if "random_seed" in request.body else "seed"
        text = message.format(model=request.model, tokens=tokens, seed_field=seed_field)
        wait = plan.retry_after if fault is Fault.RATE_LIMIT else None
        return ErrorReply(status, _error_body(text, kind, code, param), wait)

    def reply(self, request: SeenRequest, answer: Answer) -> dict[str, Any]:
        choices: list[dict[str, Any]] = []
        if answer.finish is not Finish.EMPTY:
            refused = answer.finish is Finish.REFUSAL
            silent = refused or answer.finish is Finish.BLOCKED
            choices.append(
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": None if silent else answer.text,
                        "refusal": answer.text if refused else None,
                    },
                    "logprobs": None,
                    "finish_reason": _FINISH_REASONS[answer.finish],
                }
            )
        return {
            **_envelope(request, answer, "chat.completion"),
            "choices": choices,
            "usage": _usage_body(answer.usage),
        }

    def events(
        self, request: SeenRequest, answer: Answer, pieces: Sequence[str]
    ) -> Iterator[tuple[bytes, str]]:
        envelope = _envelope(request, answer, "chat.completion.chunk")
        if request.include_usage:
            envelope["usage"] = None

        def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return event({**envelope, "choices": [choice]})

        if answer.finish is not Finish.EMPTY:
            said_in = "refusal" if answer.finish is Finish.REFUSAL else "content"
            yield chunk({"role": "assistant", "content": "", "refusal": None}), ""
            if answer.finish is not Finish.BLOCKED:
                for piece in pieces:
                    yield chunk({said_in: piece}), piece
            yield chunk({}, _FINISH_REASONS[answer.finish]), ""
        if request.include_usage:
            yield event({**envelope, "choices": [], "usage": _usage_body(answer.usage)}), ""
        yield event("[DONE]"), ""


def _part(part: Mapping[str, Any]) -> str | SeenPicture:
    match part:
        case {"type": "text", "text": str(text)} if text:
            return text
        case {"type": "image_url", "image_url": dict(image)} if image.keys() <= {"url", "detail"}:
            return picture_of_uri(image["url"], checked_detail(image.get("detail")))
    raise BadRequestError(f"Invalid content part: {str(part)[:80]}")


def checked_detail(detail: Any) -> Any:
    """Return the detail of an image, if OpenAI knows it."""
    if detail not in (None, "auto", "low", "high", "original"):
        raise BadRequestError(f"Invalid value: '{detail}'. Supported values are: 'low', 'high'.")
    return detail


def native_schema(response_format: Mapping[str, Any]) -> JsonSchema | None:
    """Return the schema that a request asks for by its own field."""
    match response_format:
        case {"type": "text"}:
            return None
        case {"type": "json_schema", "json_schema": {"name": str(), "schema": dict(schema)}}:
            return schema
    raise BadRequestError(f"Invalid 'response_format': {response_format!r}")


def _error_body(message: str, kind: str, code: str | None, param: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _envelope(request: SeenRequest, answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.index:08d}",
        "object": kind,
        "created": _CREATED,
        "model": answer.model,
        "system_fingerprint": "fp_tests",
    }


def _usage_body(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
