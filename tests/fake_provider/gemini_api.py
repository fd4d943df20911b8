"""Gemini's generateContent and streamGenerateContent.

Shapes follow `google.genai.types` of the SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
    tokens_in,
)
from tests.fake_provider.faults import Fault, FaultPlan
from tests.fake_provider.seen_pictures import SeenPicture, picture_of

_CONTEXT_WINDOW = 1_048_576
_FINISH_REASONS = {
    Finish.STOP: "STOP",
    Finish.LENGTH: "MAX_TOKENS",
    Finish.REFUSAL: "SAFETY",
}
_NO_QUOTA = (
    429,
    "RESOURCE_EXHAUSTED",
    "You exceeded your current quota, please check your plan and billing details.",
)
_INTERNAL = (500, "INTERNAL", "An internal error has occurred.")
_OVERLOAD = "The model is overloaded. Please try again later."
_ERRORS: dict[Fault, tuple[int, str, str]] = {
    Fault.RATE_LIMIT: _NO_QUOTA,
    Fault.QUOTA: _NO_QUOTA,
    Fault.UNAUTHORIZED:
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
    Fault.API_KEY_INVALID:
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    Fault.MODEL_NOT_FOUND:
        (404, "NOT_FOUND", "models/{model} is not found for API version v1beta, or is not "
         "supported for generateContent."),
    Fault.SCHEMA_UNSUPPORTED:
        (400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/{model}"),
    Fault.SEED_REFUSED:
        (400, "INVALID_ARGUMENT", "seed is not supported for models/{model}"),
    Fault.TEMPERATURE_REFUSED:
        (400, "INVALID_ARGUMENT", "temperature is not supported for models/{model}"),
    Fault.IMAGES_REFUSED:
        (400, "INVALID_ARGUMENT", "Image input modality is not enabled for models/{model}"),
    Fault.BAD_IMAGE: (400, "INVALID_ARGUMENT", "Unable to process input image. Please retry."),
    Fault.CONTEXT_LENGTH:
        (400, "INVALID_ARGUMENT", "The input token count ({tokens}) exceeds the maximum number of "
         f"tokens allowed ({_CONTEXT_WINDOW})."),
    Fault.SERVER_ERROR: _INTERNAL,
    Fault.STREAM_ERROR: _INTERNAL,
    Fault.UNAVAILABLE: (503, "UNAVAILABLE", _OVERLOAD),
    Fault.OVERLOADED: (529, "UNAVAILABLE", _OVERLOAD),
}  # fmt: skip
"""Code, status and message."""
_RPC = "type.googleapis.com/google.rpc."


class GeminiApi:
    """Reads and writes `POST /v1beta/models/{model}:generateContent` and its stream."""

    refusal_text = ""
    names_events = False

    def read(self, index: int, call: str, body: Mapping[str, Any]) -> SeenRequest:
        model, _, method = call.partition(":")
        contents = body.get("contents")
        if not isinstance(contents, list) or not contents:
            raise BadRequestError("* GenerateContentRequest.contents: contents is not specified")
        config = body.get("generationConfig") or {}
        said = [{"role": "user"} | content for content in contents]
        if system := body.get("systemInstruction"):
            said.insert(0, system | {"role": "system"})
        detail = config.get("mediaResolution")
        messages, pictures = said_in((content["parts"] for content in said), partial(_part, detail))
        native = config.get("responseJsonSchema")
        if native is not None and config.get("responseMimeType") != "application/json":
            raise BadRequestError("a response schema needs response_mime_type application/json")
        return SeenRequest(
            index=index,
            model=model,
            roles=tuple(content["role"] for content in said),
            messages=messages,
            body=body,
            schema=native or schema_in_text("\n".join(messages)),
            native_schema=native is not None,
            streamed=method == "streamGenerateContent",
            include_usage=True,
            max_tokens=positive(config.get("maxOutputTokens")),
            seed=config.get("seed"),
            pictures=pictures,
        )

    def refusal_of(self, message: str, status: int) -> ErrorReply:
        name = "INTERNAL" if status == 500 else "INVALID_ARGUMENT"
        return ErrorReply(status, _error_body(status, name, message, []))

    def error(self, fault: Fault, plan: FaultPlan, request: SeenRequest) -> ErrorReply | None:
        if fault not in _ERRORS:
            return None
        code, status, message = _ERRORS[fault]
        tokens = max(request.input_tokens, _CONTEXT_WINDOW + 1)
        text = message.format(model=request.model, tokens=tokens)
        return ErrorReply(code, _error_body(code, status, text, _details(fault, plan)))

    def reply(self, request: SeenRequest, answer: Answer) -> dict[str, Any]:
        return {
            **_candidates(answer, answer.text, last=True),
            "usageMetadata": _usage_body(answer.usage),
            "modelVersion": answer.model,
            "responseId": f"response-{request.index:08d}",
        }

    def events(
        self, request: SeenRequest, answer: Answer, pieces: Sequence[str]
    ) -> Iterator[tuple[bytes, str]]:
        whole = self.reply(request, answer)
        if answer.finish not in (Finish.STOP, Finish.LENGTH) or not pieces:
            yield event(whole), answer.text
            return
        characters = 0
        for at, piece in enumerate(pieces):
            last = at == len(pieces) - 1
            characters += len(piece)
            # Every chunk tells the usage so far; only the last one's is the reply's.
            so_far = Usage(
                answer.usage.input,
                answer.usage.reasoning + tokens_in(characters),
                answer.usage.cached_input,
                answer.usage.reasoning,
            )
            chunk = {
                **whole,
                **_candidates(answer, piece, last=last),
                "usageMetadata": _usage_body(answer.usage if last else so_far),
            }
            yield event(chunk), piece


def _part(detail: str | None, part: Mapping[str, Any]) -> str | SeenPicture:
    match part:
        case {"text": str(text)}:
            return text
        case {"inlineData": {"mimeType": kind, "data": data}}:
            # Proto JSON takes both alphabets of Base64.
            plain = data.translate(str.maketrans("-_", "+/"))
            return picture_of(kind, plain, detail)
    raise BadRequestError("* GenerateContentRequest.contents: required oneof field 'data'")


def _candidates(answer: Answer, text: str, *, last: bool) -> dict[str, Any]:
    if answer.finish is Finish.EMPTY:
        return {"candidates": []}
    if answer.finish is Finish.BLOCKED:
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    candidate: dict[str, Any] = {"index": 0}
    if answer.finish is not Finish.REFUSAL:
        parts = [{"text": text}] if text else []
        candidate["content"] = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    if last:
        candidate["finishReason"] = _FINISH_REASONS[answer.finish]
    return {"candidates": [candidate]}


def _usage_body(usage: Usage) -> dict[str, int]:
    body = {"promptTokenCount": usage.input, "totalTokenCount": usage.total}
    # Proto JSON leaves out what is zero.
    if usage.visible_output:
        body["candidatesTokenCount"] = usage.visible_output
    if usage.reasoning:
        body["thoughtsTokenCount"] = usage.reasoning
    if usage.cached_input:
        body["cachedContentTokenCount"] = usage.cached_input
    return body


def _details(fault: Fault, plan: FaultPlan) -> list[dict[str, Any]]:
    if fault is Fault.RATE_LIMIT and plan.retry_after is not None:
        return [{"@type": f"{_RPC}RetryInfo", "retryDelay": f"{plan.retry_after:g}s"}]
    if fault is Fault.QUOTA:
        quota = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
        return [{"@type": f"{_RPC}QuotaFailure", "violations": [quota]}]
    if fault is Fault.API_KEY_INVALID:
        reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
        return [{"@type": f"{_RPC}ErrorInfo", **reason}]
    return []


def _error_body(
    code: int, status: str, message: str, details: list[dict[str, Any]]
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = details
    return {"error": error}
