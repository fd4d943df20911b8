"""What endpoints really send, as quoted in public bug reports among others, and what comes of it.

Each case is served over HTTP and asked for through all layers that a run has. Bodies are facts; the
texts in them are ours.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from aiohttp import web
from pydantic import BaseModel

from mdagents_llm.chat import CallLabels, ChatMessage, ChatReply, ChatRequest, StopReason
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import (
    BenchError,
    EndpointDown,
    ErrorKind,
    ProviderError,
    StructuredOutputError,
)
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.providers.http_errors import status_error
from tests.conftest import SHARED

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
SHAPES = {
    # Errors, by the place of their words.
    "error is a text": Shape(
        "openai",
        ANSWERED,
        {
            "code": "Client specified an invalid argument",
            "error": "Argument not supported on this model: seed",
        },
        "inspect_ai#2267",
        400,
        then=True,
    ),
    "detail is a list": Shape(
        "openai",
        ANSWERED,
        {
            "detail": [
                {
                    "loc": ["body", "seed"],
                    "msg": "Extra inputs are not permitted",
                    "type": "extra_forbidden",
                }
            ]
        },
        "openclaude#739",
        422,
        then=True,
    ),
    "reason inside raw": Shape(
        "openai",
        ANSWERED,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": json.dumps(
                        {
                            "error": {
                                "message": "Unsupported parameter: 'seed' is not supported here.",
                                "param": "seed",
                                "code": "unsupported_parameter",
                            }
                        }
                    )
                },
            }
        },
        "pal-mcp-server#134",
        400,
        then=True,
    ),
    "TGI": Shape(
        "openai", RETRIED, {"error": "Model is overloaded", "error_type": "overloaded"}, "ours", 429
    ),
    "a list with an error": Shape(
        "openai",
        DOWN,
        [
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        "gemini-cli#12823",
        400,
    ),
    "no credit in a 200": Shape(
        "openai",
        DOWN,
        {"error": {"code": 402, "message": "Insufficient credits"}, "user_id": "u"},
        "aider#3550",
    ),
    "rate limit in a 200": Shape(
        "openai",
        RETRIED,
        {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-min"}},
        "ours",
    ),
    "rate limit in a stream": Shape(
        "openai",
        RETRIED,
        stream({"error": {"code": 429, "message": "Provider returned error"}}),
        "OmniRoute#8210",
        streams=True,
    ),
    "wrong key in a stream": Shape(
        "openai",
        DOWN,
        stream({"error": {"message": "No auth credentials found", "code": 401}}),
        "local-operator#223",
        streams=True,
    ),
    "no stream": Shape(
        "openai",
        ANSWERED,
        {
            "error": {
                "message": "Your organization must be verified to stream this model.",
                "param": "stream",
                "code": "unsupported_value",
            }
        },
        "crush#422",
        400,
        streams=True,
        then=True,
    ),
    # Filters.
    "invalid_prompt": Shape(
        "openai",
        REFUSED,
        {"error": {"message": "Invalid prompt: your prompt was flagged", "code": "invalid_prompt"}},
        "pal-mcp-server#178",
        400,
    ),
    "DataInspectionFailed": Shape(
        "openai",
        REFUSED,
        {
            "error": {
                "code": "data_inspection_failed",
                "message": "Input data may contain inappropriate content.",
            }
        },
        "owl#432",
        400,
    ),
    "Content Exists Risk": Shape(
        "openai",
        REFUSED,
        {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}},
        "DeepSeek-V2#30",
        400,
    ),
    "code 1301": Shape(
        "openai",
        REFUSED,
        {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}},
        "langchain4j#1079",
        400,
    ),
    "SAFETY_CHECK_TYPE": Shape(
        "openai",
        REFUSED,
        {
            "code": "The caller does not have permission",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        "llmgateway#1785",
        403,
    ),
    "moderation of OpenRouter": Shape(
        "openai",
        REFUSED,
        {
            "error": {
                "code": 403,
                "message": "Input was flagged",
                "metadata": {"reasons": ["violence"], "flagged_input": "…"},
            }
        },
        "OpenRouter: Errors",
        403,
    ),
    "finish sensitive": Shape(
        "openai", REFUSED, completion({"content": ""}, "sensitive"), "dify#7559"
    ),
    "finish guardrail_intervened": Shape(
        "openai", REFUSED, completion({"content": ""}, "guardrail_intervened"), "ours"
    ),
    "filter in a stream": Shape(
        "openai",
        REFUSED,
        stream(delta("{"), delta(None, "content_filter")),
        "Azure: content filtering",
        streams=True,
    ),
    "Claude blocked": Shape(
        "anthropic",
        REFUSED,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Output blocked by content filtering policy",
            },
        },
        "claude-code#55789",
        400,
    ),
    "Gemini blocks the prompt": Shape(
        "gemini",
        REFUSED,
        {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
        },
        "ours",
    ),
    "a key without access": Shape(
        "openai",
        DOWN,
        {"error": {"message": "The caller does not have permission"}},
        "a control",
        403,
    ),
    # Replies.
    "parts with thinking": Shape(
        "openai",
        ANSWERED,
        completion(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": ANSWER},
                ]
            }
        ),
        "integration_openai#408",
    ),
    "parts in a stream": Shape(
        "openai",
        ANSWERED,
        stream(
            delta([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]),
            delta([{"type": "text", "text": ANSWER}]),
            delta(None, "stop", usage=USAGE),
        ),
        "agent-framework#6978",
        streams=True,
    ),
    "usage chunk without choices": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER), delta(None, "stop"), {"model": "m", "usage": USAGE}),
        "pi#1671",
        streams=True,
    ),
    "choices null": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER, "stop"), {"choices": None, "usage": USAGE}),
        "pydantic-ai#5165",
        streams=True,
    ),
    "data null": Shape(
        "openai",
        ANSWERED,
        stream("null", delta(ANSWER, "stop"), {"choices": [], "usage": USAGE}),
        "hermes-agent#80822",
        streams=True,
    ),
    "delta null": Shape(
        "openai",
        ANSWERED,
        stream(
            {"choices": [{"delta": None, "finish_reason": None}]},
            delta(ANSWER, "stop", usage=USAGE),
        ),
        "eneo#126",
        streams=True,
    ),
    "JSON for a stream": Shape("openai", ANSWERED, completion(), "tinyagents#56", streams=True),
    "a stream that nobody asked for": Shape(
        "openai", ANSWERED, stream(delta(ANSWER, "stop", usage=USAGE)), "unsloth#6570"
    ),
    "no finish before DONE": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER), {"choices": [], "usage": USAGE}),
        "ollama#4357",
        streams=True,
    ),
    "a tool call": Shape(
        "openai",
        ANSWERED,
        completion(
            {"content": None, "tool_calls": [{"function": {"name": "json", "arguments": ANSWER}}]},
            "tool_calls",
        ),
        "ours",
    ),
    "the same object twice": Shape(
        "openai", ANSWERED, completion({"content": f"{ANSWER}\n{ANSWER}"}), "ours"
    ),
    "<think> before the text": Shape(
        "openai",
        ANSWERED,
        completion({"content": f'<think>{{"answer": "A"}}</think>{ANSWER}'}),
        "ours",
    ),
    "<think> over chunks": Shape(
        "openai",
        ANSWERED,
        stream(
            delta("<thi"),
            delta('nk>{"answer": "A"}</'),
            delta(f"think>{ANSWER}", "stop", usage=USAGE),
        ),
        "ours",
        streams=True,
    ),
    "all text in reasoning_content": Shape(
        "openai",
        UNREADABLE,
        completion({"content": None, "reasoning_content": ANSWER}),
        "vllm#16182",
    ),
    "a broken reply": Shape("openai", RETRIED, completion({"content": "{"}, "error"), "ours"),
    # Usage.
    "no usage": Shape(
        "openai",
        ANSWERED,
        {k: v for k, v in completion().items() if k != "usage"},
        "koboldcpp#2480",
    ),
    "negative usage": Shape(
        "openai",
        ANSWERED,
        completion(usage={"prompt_tokens": 1151, "completion_tokens": -35, "total_tokens": 1116}),
        "async-openai#404",
    ),
    "more reasoning than completion": Shape(
        "openai",
        ANSWERED,
        completion(
            usage={
                "prompt_tokens": 951,
                "completion_tokens": 6000,
                "total_tokens": 6952,
                "completion_tokens_details": {"reasoning_tokens": 6001},
            }
        ),
        "vercel/ai#18614",
    ),
    "usage true": Shape(
        "openai", ANSWERED, completion(usage={**USAGE, "prompt_tokens": True}), "found by attack"
    ),
    "absurd usage": Shape(
        "openai", ANSWERED, completion(usage={**USAGE, "prompt_tokens": 10**30}), "found by attack"
    ),
    "more cached than sent": Shape(
        "openai",
        ANSWERED,
        completion(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 999}}),
        "found by attack",
    ),
    "usage of null": Shape(
        "openai", ANSWERED, completion(usage=dict.fromkeys(USAGE)), "found by attack"
    ),
    "no completion tokens": Shape(
        "openai",
        ANSWERED,
        completion(usage={"prompt_tokens": 1066, "total_tokens": 1103}),
        "MCP-Bridge#48",
    ),
    "two choices in one chunk": Shape(
        "openai",
        ANSWERED,
        stream(
            {
                "choices": [
                    {"index": 0, "delta": {"content": ANSWER}, "finish_reason": "stop"},
                    {"index": 1, "delta": {"content": '{"answer": "A"}'}},
                ],
                "usage": USAGE,
            }
        ),
        "found by attack",
        streams=True,
    ),
    "several parts in one chunk": Shape(
        "openai",
        ANSWERED,
        stream(
            {
                "choices": [
                    {"index": 0, "delta": {"content": ANSWER[:6]}},
                    {"index": 0, "delta": {"content": ANSWER[6:]}, "finish_reason": "stop"},
                ],
                "usage": USAGE,
            }
        ),
        "envoyproxy/ai-gateway#1487",
        streams=True,
    ),
    "an index that counts tokens": Shape(
        "openai",
        ANSWERED,
        stream(
            {"choices": [{"index": 1, "delta": {"content": ANSWER[:6]}, "finish_reason": None}]},
            {"choices": [{"index": 2, "delta": {"content": ANSWER[6:]}, "finish_reason": None}]},
            {"choices": [{"index": 3, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
        ),
        "text-generation-inference#1648, foundry-local#263",
        streams=True,
    ),
    "no finish reason": Shape("openai", ANSWERED, completion(finish=None), "openai-openapi#20"),
    "thoughts in the total": Shape(
        "openai", ANSWERED, completion(usage={**USAGE, "total_tokens": 525}), "any-llm#1290"
    ),
    "a model that is a list": Shape("openai", ANSWERED, completion(model=["x"]), "found by attack"),
    "a model with half a character": Shape(
        "openai", ANSWERED, completion(model="a\ud800"), "found by attack"
    ),
    # Tried after the code was written, as quoted.
    "context size in a 500": Shape(
        "openai",
        "context_length",
        {
            "error": {
                "code": 500,
                "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 1407,
                "n_ctx": 256,
            }
        },
        "llama.cpp#15780",
        500,
    ),
    "context size in a 500, without a type": Shape(
        "openai",
        "context_length",
        {
            "error": {
                "code": 500,
                "message": "Context size has been exceeded.",
                "type": "server_error",
            }
        },
        "llama.cpp#19774",
        500,
    ),
    "context size in a 200": Shape(
        "openai",
        "context_length",
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error",
            }
        },
        "textgen#7257",
    ),
    "prompt and completion": Shape(
        "openai",
        "context_length",
        {
            "error": {
                "message": "This model's maximum context length is 131072 tokens. However, "
                "you requested 131134 tokens (122942 in the messages, 8192 in the completion).",
                "type": "invalid_request_error",
                "code": "invalid_request_error",
            }
        },
        "fast-agent#621",
        400,
    ),
    "no room for a reply": Shape(
        "openai",
        "context_length",
        {
            "object": "error",
            "message": "max_tokens must be at least 1, got -186.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "vllm#4667",
        400,
    ),
    "a limit of a worker in a stream": Shape(
        "openai",
        RETRIED,
        stream(
            {
                "id": "x",
                "choices": [],
                "error": {
                    "code": 502,
                    "message": "Worker local total request limit reached (33/32)",
                },
            }
        ),
        "OmniRoute#8210",
        streams=True,
    ),
    "an error beside a finish reason": Shape(
        "openai",
        RETRIED,
        stream(
            delta("{"),
            delta(
                None,
                "error",
                error={
                    "code": 502,
                    "message": "Provider disconnected",
                    "metadata": {"error_type": "provider_unavailable"},
                },
            ),
        ),
        "local-operator#223",
        streams=True,
    ),
    "a finish reason by another name": Shape(
        "openai",
        ANSWERED,
        stream(
            {
                "model": "m",
                "choices": [
                    {"delta": {"content": ANSWER}, "finish_reason": None, "finishReason": "stop"}
                ],
                "usage": USAGE,
            }
        ),
        "llmcord#84",
        streams=True,
    ),
    "finish reasons that are empty": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER[:4], ""), delta(ANSWER[4:], ""), delta("", "stop", usage=USAGE)),
        "ollama#4357",
        streams=True,
    ),
    "Claude overloaded in a stream": Shape(
        "anthropic",
        RETRIED,
        'event: error\ndata: {"type":"error","error":{"details":null,"type":"overloaded_error",'
        '"message":"Overloaded"}}\n\n',
        "gpt-cli#71",
        streams=True,
        headers={"content-type": "text/event-stream"},
    ),
    "Gemini without content and usage": Shape(
        "gemini",
        UNREADABLE,
        {"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}], "promptFeedback": {}},
        "generative-ai-docs#235",
    ),
    "Gemini stops without parts": Shape(
        "gemini",
        UNREADABLE,
        {
            "candidates": [{"content": {"role": "model"}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 11280, "totalTokenCount": 11280},
            "modelVersion": "gemini-2.5-pro",
        },
        "deprecated-generative-ai-python#744",
    ),
    # Errors that are told by their words alone.
    **{
        f"{comes}: {words[:40]}": Shape(wire, comes, {"error": {"message": words}}, source, status)
        for comes, status, wire, words, source in (
            (
                RETRIED,
                400,
                "openai",
                "Too many tokens, please wait before trying again.",
                "opencode#39621",
            ),
            (
                RETRIED,
                500,
                "openai",
                "Tokens per minute limit exceeded - too many tokens processed.",
                "continue#9800",
            ),
            (
                DOWN,
                429,
                "openai",
                "Rate limit exceeded: free-models-per-day. Add 10 credits",
                "cline#5301",
            ),
            (
                DOWN,
                429,
                "openai",
                "you have reached your session usage limit, upgrade",
                "continue#11444",
            ),
            (DOWN, 429, "openai", "Weekly/Monthly Limit Exhausted.", "openclaw#33813"),
            (DOWN, 429, "openai", "已达到 5 小时的使用上限。", "dirge#818"),
            (
                DOWN,
                400,
                "openai",
                "Budget has been exceeded! Current cost: 26.075, Max budget: 0.25",
                "litellm#22726",
            ),
            (
                DOWN,
                400,
                "openai",
                "No models loaded. Please load a model in the developer page",
                "openhuman#4181",
            ),
            (
                DOWN,
                400,
                "openai",
                'Failed to load model "gpt-oss-20b". Error: Error loading model.',
                "continue#10150",
            ),
            (
                DOWN,
                400,
                "openai",
                "Unsupported model x, please use models API to get a list of supported models",
                "bedrock-access-gateway#103",
            ),
            (DOWN, 503, "openai", "当前分组 default 下对于模型  无可用渠道", "one-api#2340"),
            (
                DOWN,
                400,
                "openai",
                "The chatCompletion operation does not work with the specified model",
                "vscode#277663",
            ),
            (DOWN, 400, "anthropic", "This organization has been disabled.", "claude-code#72457"),
            (
                DOWN,
                400,
                "gemini",
                "User location is not supported for the API use.",
                "gemini-cli#24641",
            ),
            (
                "context_length",
                400,
                "openai",
                "This model's maximum prompt length is 131072",
                "cline#3120",
            ),
            (
                "context_length",
                400,
                "openai",
                "prompt token count of 93854 exceeds the limit of 90000",
                "copilot-more#35",
            ),
        )
    },
    "an error within a value": Shape(
        "openai",
        "context_length",
        stream(
            {
                "error": {
                    "message": "Stream error occurred",
                    "value": {"error_message": "This model's maximum context length is 40960"},
                }
            }
        ),
        "vercel/ai#18303",
        streams=True,
    ),
    "the error is the text": Shape(
        "openai",
        RETRIED,
        completion({"content": "Too many tokens, please wait."}, "error_finish"),
        "billion-context-pi#169",
    ),
    "a setting refused with status 500": Shape(
        "openai",
        ANSWERED,
        {"error": {"message": "ollama does not support parameters: {'seed': 1}"}},
        "litellm#3923",
        500,
        then=True,
    ),
    "a schema refused by the name of the setting": Shape(
        "openai",
        ANSWERED,
        {"error": {"message": "Invalid input", "param": "response_format"}},
        "command-code#685",
        400,
        then=True,
    ),
    "a schema refused as a feature": Shape(
        "openai",
        ANSWERED,
        {"error": {"message": "some-model does not support feature: structured-outputs"}},
        "MinusPod#628",
        400,
        then=True,
    ),
    **{
        f"only streams: {words[:40]}": Shape(
            "openai", ANSWERED, {"error": {"message": words}}, source, 400, then=True
        )
        for words, source in (
            (
                "This model only support stream mode, please enable the stream parameter",
                "ragflow#5912",
            ),
            (
                "parameter.enable_thinking must be set to false for non-streaming calls",
                "ragflow#8972",
            ),
            ("enable thinking can not be support when `stream=False`.", "claude-code-router#948"),
        )
    },
    **{
        f"only streams, and no stream either: {wire}": Shape(
            wire, "bad_request", {"error": {"message": "It only supports streams"}}, "ours", 400
        )
        for wire in SPECS
    },
    # What follows or surrounds the text.
    "a whole message after its parts": Shape(
        "openai",
        ANSWERED,
        stream(
            delta(ANSWER[:4]),
            delta(ANSWER[4:]),
            {
                "object": "chat.completion",
                "choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}],
                "usage": USAGE,
            },
        ),
        "GoModel#1068",
        streams=True,
    ),
    "an empty message after the parts": Shape(
        "openai",
        ANSWERED,
        stream(
            delta(ANSWER),
            {
                "choices": [
                    {
                        "delta": {},
                        "message": {"role": "assistant", "content": ""},
                        "finish_reason": "stop",
                    }
                ],
                "usage": USAGE,
                "x_groq": "abc",
            },
        ),
        "ours",
        streams=True,
    ),
    "a constrained channel of gpt-oss": Shape(
        "openai",
        ANSWERED,
        completion(
            {
                "content": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                f"<|channel|>final <|constrain|>json<|message|>{ANSWER}"
            }
        ),
        "ours",
    ),
    "channels of gpt-oss": Shape(
        "openai",
        ANSWERED,
        completion(
            {
                "content": '<|channel|>analysis<|message|>{"answer": "A"}?<|end|><|start|>assistant'
                f"<|channel|>final<|message|>{ANSWER}<|return|>"
            }
        ),
        "mlx-lm#1867",
    ),
    "usage of Groq": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER), delta(None, "stop", x_groq={"id": "r", "usage": USAGE})),
        "vercel/ai#8723",
        streams=True,
    ),
    "a loop that was ended": Shape(
        "openai", UNREADABLE, completion({"content": ANSWER[:-1]}, "repetition"), "litellm#27101"
    ),
    "a refusal that is a number": Shape(
        "openai", RETRIED, completion({"content": ANSWER, "refusal": 5}), "ours"
    ),
}


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
    shape: Shape, make_runtime: Callable[..., Runtime], whole: Any = None, **variables: str
) -> tuple[str, ChatReply | BenchError, list[Any]]:
    """Return (what comes of a shape, the reply or the error, requests)."""
    provider, name, path = SPECS[shape.wire]
    api: Literal["", "responses"] = "responses" if shape.wire == "responses" else ""
    async with served(shape, whole or completion()) as (address, asked):
        keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "test-key")
        registry = ModelRegistry(make_runtime(environment=Environment(keys | variables)))
        model = registry.model(ModelSpec(provider, name, f"{address}{path}", api=api))
        shown: list[str | None] = []
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


NOT_COUNTED = {
    "no usage", "negative usage", "usage true", "absurd usage", "usage of null",
}  # fmt: skip
"""Shapes without a usable token usage."""


@pytest.mark.parametrize("name", SHAPES)
async def test_what_endpoints_really_send(
    name: str, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    shape = SHAPES[name]
    comes, what, asked = await what_comes(shape, make_runtime)
    assert comes == shape.comes, str(what)
    if comes == ANSWERED:
        assert isinstance(what, ChatReply)
        assert isinstance(what.parsed, Opinion)
        assert what.parsed.answer == "B"
        assert what.usage.total_tokens > 0
        assert what.usage_estimated == (name in NOT_COUNTED)
        assert len(asked) == 1 + shape.then
    if comes == REFUSED:
        assert len(asked) == 1
        assert [row.outcome for row in rows] == ["refused"]
    if comes == DOWN:
        assert len(asked) == 1
    assert all(row.model.isprintable() for row in rows)
    assert all(row.usage.input_tokens >= 0 for row in rows)


@pytest.mark.parametrize(
    "name",
    [name for name, shape in SHAPES.items() if shape.comes in (REFUSED, RETRIED, DOWN)],
)
async def test_errors_mean_the_same_by_the_typed_way_of_an_sdk(
    name: str, make_runtime: Callable[..., Runtime]
) -> None:
    comes, what, _ = await what_comes(SHAPES[name], make_runtime, LLM_TYPED_CALLS="1")
    assert comes == SHAPES[name].comes, str(what)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached. Please try again in 14.036s. Visit …", 14.036),  # codex#10055
        ("Rate limit is exceeded. Try again in 17 seconds.", 17),  # codex#3764
        ("on requests per day (RPD): Limit 200. Please try again in 7m12s.", 432),  # codex#797
        ("Please try again in 9m38.016s.", 578.016),  # continue#10920
        ("Please retry after 45 seconds", 45),  # paperless-gpt#814
        ("Please retry after 86400 seconds.", 86_400),  # TinyLLM#17
        ("Your quota will reset after 5h59m59s.", 21_599),  # claude-relay-service#746
        ("Please try again in 300ms.", 0.3),
        ("Please try again later, in 5 steps.", None),
        ("Try again in a minute.", None),
        (f"Try again in {'9' * 400} seconds", None),
        ("Try again in 5 \u017f", None),
    ],
)
def test_a_wait_in_words(words: str, seconds: float | None) -> None:
    found = status_error("host", 429, words).retry_after
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        # llama.cpp#20761: the reply follows the place.
        (500, "Failed to parse input at pos 0: if high, retry in 2 hours", ErrorKind.SERVER),
        (500, "Failed to parse input at pos 0: Metformin once-per-day", ErrorKind.SERVER),
        (504, "upstream request timeout: stream reset after 900s", ErrorKind.SERVER),
        (500, "GPU memory usage limit exceeded", ErrorKind.SERVER),
        (400, "max_tokens exceeds the token usage limit", ErrorKind.BAD_REQUEST),
        (400, "Unsupported model parameter: top_k", ErrorKind.BAD_REQUEST),
        (400, "maximum context length 8192, HR 40 per minute", ErrorKind.CONTEXT_LENGTH),
    ],
)
def test_words_that_look_like_a_limit(status: int, words: str, kind: ErrorKind) -> None:
    error = status_error("host", status, words)
    assert (error.kind, error.retry_after) == (kind, None)


async def test_thoughts_that_are_only_in_the_total_are_output(
    make_runtime: Callable[..., Runtime],
) -> None:
    _, reply, _ = await what_comes(SHAPES["thoughts in the total"], make_runtime)
    assert isinstance(reply, ChatReply)
    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (425, 405)


async def test_a_reply_without_text_says_where_the_text_was(
    make_runtime: Callable[..., Runtime],
) -> None:
    _, error, _ = await what_comes(SHAPES["all text in reasoning_content"], make_runtime)
    assert "reasoning_content" in str(error)


PUBLISHED = SHARED / "endpoint_shapes" / "shapes.jsonl"
COMES = {
    "err_string_seed": ANSWERED, "detail_schema": ANSWERED, "or_wrapped_temp": ANSWERED,
    "xai_bio_first": ANSWERED, "invalid_prompt": REFUSED, "azure_filter": REFUSED,
    "list_content": ANSWERED, "list_content-stream": ANSWERED, "or_200_402": DOWN,
    "no_choices_key-stream": ANSWERED, "stream_unverified-stream": ANSWERED,
    "gemini_compat": ANSWERED, "no_usage": ANSWERED, "vllm_reasoning": UNREADABLE,
    "json_fence": ANSWERED, "html503": RETRIED, "an_blockedstream-stream": REFUSED,
    "an_529": RETRIED, "ge_tail_safety-stream": REFUSED, "ge_max": UNREADABLE,
}  # fmt: skip


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the shared data are not there")
@pytest.mark.parametrize("name", COMES)
async def test_the_shared_shapes(name: str, make_runtime: Callable[..., Runtime]) -> None:
    cases = map(json.loads, PUBLISHED.read_text("utf-8").splitlines())
    case = next(case for case in cases if case["id"] == name)
    shape = Shape(
        case["wire"], COMES[name], case["body"], case["source"], case["status"], case["stream"],
        then=case["status"] == 400 and COMES[name] == ANSWERED, headers=case["headers"],
    )  # fmt: skip
    comes, what, _ = await what_comes(shape, make_runtime)
    assert comes == shape.comes, str(what)
