"""OpenAI's Responses API, as OpenAI itself serves it.

Shapes follow `openai.types.responses` of the SDK; errors are those of chat completions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from tests.fake_provider.openai_api import OpenAIApi, checked_detail, native_schema
from tests.fake_provider.seen_pictures import SeenPicture, picture_of_uri

_CREATED = 1_790_000_000
_LEAST = 16  # tokens of a reply
_REASONS = {Finish.LENGTH: "max_output_tokens", Finish.BLOCKED: "content_filter"}


class ResponsesApi:
    """Reads and writes `POST /v1/responses`."""

    refusal_text = OpenAIApi.refusal_text
    names_events = True

    def read(self, index: int, call: str, body: Mapping[str, Any]) -> SeenRequest:
        if not isinstance(body.get("model"), str):
            raise BadRequestError("you must provide a model parameter")
        for name in ("messages", "response_format", "seed", "max_tokens", "reasoning_effort"):
            if name in body:
                raise BadRequestError(f"Unknown parameter: '{name}'.")
        limit = positive(body.get("max_output_tokens"))
        if limit is not None and limit < _LEAST:
            raise BadRequestError("Invalid 'max_output_tokens': integer below minimum value.")
        said = body.get("input")
        if not isinstance(said, list) or not said:
            raise BadRequestError("'input' must be a list that is not empty")
        messages, pictures = said_in((message["content"] for message in said), _part)
        format_ = (body.get("text") or {}).get("format") or {"type": "text"}
        if format_.get("type") == "json_schema":
            format_ = {"type": "json_schema", "json_schema": format_}
        native = native_schema(format_)
        return SeenRequest(
            index=index,
            model=body["model"],
            roles=tuple(message["role"] for message in said),
            messages=messages,
            body=body,
            schema=native or schema_in_text("\n".join(messages)),
            native_schema=native is not None,
            streamed=bool(body.get("stream")),
            include_usage=True,
            max_tokens=limit,
            seed=None,
            pictures=pictures,
        )

    def refusal_of(self, message: str, status: int) -> ErrorReply:
        return OpenAIApi().refusal_of(message, status)

    def error(self, fault: Fault, plan: FaultPlan, request: SeenRequest) -> ErrorReply | None:
        error = OpenAIApi().error(fault, plan, request)
        if error is not None and fault is Fault.SCHEMA_UNSUPPORTED:
            details = error.body["error"]
            details["param"] = "text.format"
            details["message"] = details["message"].replace("response_format", "text.format")
        return error

    def reply(self, request: SeenRequest, answer: Answer) -> dict[str, Any]:
        return _response(request, answer, _items(request, answer))

    def events(
        self, request: SeenRequest, answer: Answer, pieces: Sequence[str]
    ) -> Iterator[tuple[bytes, str]]:
        number = 0

        def made(kind: str, **fields: Any) -> bytes:
            nonlocal number
            number += 1
            return event({"type": kind, "sequence_number": number, **fields}, kind)

        items = _items(request, answer)
        started = _response(request, answer, []) | {"status": "in_progress", "usage": None}
        yield made("response.created", response=started), ""
        yield made("response.in_progress", response=started), ""
        for index, item in enumerate(items):
            at = {"output_index": index, "item_id": item["id"], "content_index": 0}
            begun = {**item, "status": "in_progress", "content": []}
            yield made("response.output_item.added", output_index=index, item=begun), ""
            if item["type"] == "reasoning":
                yield made("response.reasoning_summary_text.delta", **at, delta="Thinking."), ""
            else:
                (part,) = item["content"]
                name = "refusal" if part["type"] == "refusal" else "text"
                kind = "refusal" if part["type"] == "refusal" else "output_text"
                yield made("response.content_part.added", **at, part={**part, name: ""}), ""
                for piece in pieces:
                    yield made(f"response.{kind}.delta", **at, delta=piece), piece
                yield made(f"response.{kind}.done", **at, **{name: part[name]}), ""
                yield made("response.content_part.done", **at, part=part), ""
            yield made("response.output_item.done", output_index=index, item=item), ""
        whole = _response(request, answer, items)
        yield made(f"response.{whole['status']}", response=whole), ""


def _part(part: Mapping[str, Any]) -> str | SeenPicture:
    match part:
        case {"type": "input_text", "text": str(text)} if text:
            return text
        case {"type": "input_image", "image_url": str(uri)}:
            return picture_of_uri(uri, checked_detail(part.get("detail")))
    raise BadRequestError(f"Invalid content part: {str(part)[:80]}")


def _items(request: SeenRequest, answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.usage.reasoning:
        summary = [{"type": "summary_text", "text": "Thinking."}]
        items.append({"type": "reasoning", "id": f"rs_{request.index:08d}", "summary": summary})
    part: dict[str, Any] = {"type": "output_text", "text": answer.text, "annotations": []}
    if answer.finish is Finish.REFUSAL:
        part = {"type": "refusal", "refusal": answer.text}
    is_silent = answer.finish in (Finish.EMPTY, Finish.BLOCKED)
    if not is_silent and (answer.text or not items):
        items.append(
            {
                "type": "message",
                "id": f"msg_{request.index:08d}",
                "status": "incomplete" if answer.finish is Finish.LENGTH else "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    return items


def _response(
    request: SeenRequest, answer: Answer, items: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    reason = _REASONS.get(answer.finish)
    return {
        "id": f"resp_{request.index:08d}",
        "object": "response",
        "created_at": _CREATED,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": answer.model,
        "output": list(items),
        "parallel_tool_calls": True,
        "store": request.body.get("store", True),
        "text": request.body.get("text") or {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(answer.usage),
        "metadata": {},
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
