"""What endpoints send, served over HTTP and asked for through all layers that a run has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web
from pydantic import BaseModel

from mdagents_llm.chat import CallLabels, ChatMessage, ChatReply, ChatRequest, StopReason
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import (
    BenchError,
    EndpointDown,
    ProviderError,
    StructuredOutputError,
)
from mdagents_llm.llm_registry import ModelRegistry

ANSWER = '{"answer": "B"}'
SPECS = {
    "openai": ("openai", "some-model", "/v1"),
    "anthropic": ("anthropic", "claude-haiku-4-5", ""),
    "gemini": ("google", "gemini-2.5-flash", ""),
    "responses": ("openai", "some-model", "/v1"),
}
DOWN = "the run ends"
REFUSED, ANSWERED, RETRIED, UNREADABLE = "refused", "answered", "retried", "unreadable"


class Opinion(BaseModel):
    answer: Literal["A", "B"]


REQUEST = ChatRequest(
    (ChatMessage("user", "Which one?"),),
    200,
    seed=1,
    schema=Opinion,
    labels=CallLabels("case", "phase", "agent", "expert"),
)


@dataclass(frozen=True)
class Shape:
    """A case.

    Attributes:
        wire: A key of `SPECS`.
        comes: What comes of it.
        body: JSON, or the text of the body.
        source: The public report that quotes it; "ours" where a form was made up after these.
        status: HTTP status.
        streams: Whether the text is asked for as it is written.
        then: Whether whole replies follow, as the same call is made again without a setting.
    """

    wire: str
    comes: str
    body: Any
    source: str
    status: int = 200
    streams: bool = False
    then: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def completion(message: Any = None, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    choice = {"index": 0, "message": message or {"content": ANSWER}, "finish_reason": finish}
    return {"id": "x", "model": "m", "choices": [choice], "usage": usage} | more


def stream(*chunks: Any, done: bool = True) -> str:
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])])


def delta(content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "choices": [{"delta": {"content": content}, "finish_reason": finish}],
    } | more


USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@asynccontextmanager
async def served(shape: Shape, whole: Any) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serve a shape; `whole` is the reply that follows where one does."""
    asked: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.json())
        body, status = shape.body, shape.status
        if shape.then and len(asked) > 1:
            body, status = whole, 200
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "text/event-stream" if text.startswith(("data:", "event:")) else "application/json"
        headers = dict(shape.headers) or {"content-type": kind}
        return web.Response(body=text.encode(), status=status, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def what_comes(
    shape: Shape,
    make_runtime: Callable[..., Runtime],
    whole: Any = None,
    shown: list[str | None] | None = None,
    **variables: str,
) -> tuple[str, ChatReply | BenchError, list[Any]]:
    """Return (what comes of a shape, the reply or the error, requests).

    The text of a stream is added to `shown` as it arrives.
    """
    provider, name, path = SPECS[shape.wire]
    api: Literal["", "responses"] = "responses" if shape.wire == "responses" else ""
    async with served(shape, whole or completion()) as (address, asked):
        keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "test-key")
        registry = ModelRegistry(make_runtime(environment=Environment(keys | variables)))
        model = registry.model(ModelSpec(provider, name, f"{address}{path}", api=api))
        shown = [] if shown is None else shown
        try:
            reply = await model.generate(REQUEST, shown.append if shape.streams else None)
        except EndpointDown as error:
            return DOWN, error, asked
        except ProviderError as error:
            return RETRIED if error.retryable else error.kind.value, error, asked
        except StructuredOutputError as error:
            is_refused = error.stop_reason is StopReason.REFUSAL
            return REFUSED if is_refused else UNREADABLE, error, asked
        finally:
            await registry.aclose()
    last = (
        "".join(text or "" for text in shown[len(shown) - shown[::-1].index(None) :])
        if (None in shown)
        else "".join(text or "" for text in shown)
    )
    assert not shape.streams or last == reply.text
    return ANSWERED, reply, asked
