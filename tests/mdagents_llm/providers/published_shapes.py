"""Shapes of replies and errors, as quoted in public bug reports among others.

Bodies are facts; the texts in them are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.mdagents_llm.providers.shapes import (
    ANSWER,
    ANSWERED,
    DOWN,
    REFUSED,
    RETRIED,
    SPECS,
    UNREADABLE,
    USAGE,
    Shape,
    completion,
    delta,
    stream,
)


def status_of(code: int, words: str) -> dict[str, Any]:
    return {"base_resp": {"status_code": code, "status_msg": words}}


def minimax(code: int, words: str) -> dict[str, Any]:
    usage = {"total_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0}
    return {"id": "x", "model": "m", "choices": None, "usage": usage} | status_of(code, words)


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
    **{
        f"a stream that broke off after {len(begun)} chunks: {words[:40]}": Shape(
            "openai",
            RETRIED,
            stream(*begun, {"error": {"message": words, "type": "server_error"}}),
            source,
            streams=True,
        )
        for begun in ((), (delta('{"an'),))
        for words, source in (
            ("Stream error: unexpected EOF", "maple-proxy#47"),
            ("stream disconnected before completion: unknown", "after CLIProxyAPI#3153"),
            ("Provider disconnected during streaming", "macprovider#186"),
            ("unexpected end of stream", "pi-extensions#1324"),
            ("An unexpected error occurred during streaming", "ours"),
            ("An unknown error occurred while reasoning", "ours"),
            ("Stream ended unexpectedly", "ours"),
        )
    },
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
    "finish content-filter": Shape(
        "openai", REFUSED, completion({"content": ""}, "content-filter"), "ours"
    ),
    **{
        f"a guardrail blocks: {words[:40]}": Shape(
            "openai", REFUSED, {"error": {"message": words, "code": str(status)}}, source, status
        )
        for status, words, source in (
            (
                500,
                "Bedrock guardrail failed: I cannot respond to requests with PII",
                "litellm#18261",
            ),
            (400, "Violated guardrail policy", "litellm#13321"),
            (
                400,
                "Guardrail raised an exception, Guardrail: ours, Message: Denied",
                "litellm#24347",
            ),
            (446, "The guardrail checks defined in the config failed.", "Portkey: Guardrails"),
            (400, "Content blocked by guardrail version 3", "ours"),
            (
                400,
                "An error occurred (ValidationException) when calling the Converse operation: "
                "Output blocked by content filtering policy",
                "ours",
            ),
            (400, "Request blocked by input guardrail 'demo'", "databricks/ucode#66"),
            (498, "Your request violates our usage guidelines", "cohere-developer-experience#189"),
            (421, "Content moderation: the input was blocked", "MiMo: Error Codes"),
            (400, "Content policy violation: the prompt describes a patient who timed out", "ours"),
            (400, "Content_filter: text mentions service unavailable", "ours"),
            (400, "Content filter blocked the words 'server disconnected'", "ours"),
            (400, "Output blocked by guardrail id abc: config missing field", "ours"),
            (400, "Guardrail failed: medication not found in the approved list", "ours"),
            (400, "Guardrail 'my-guard' blocked the prompt: source not found", "ours"),
            (400, "Content policy: the model is not allowed to answer", "ours"),
            (403, "Content not allowed by guardrail 'x'", "ours"),
            (403, "Content restricted by guardrail 'x'", "ours"),
            (403, "The model is restricted by guardrail from answering this", "ours"),
            (400, "Moderation API returned error: input was flagged", "ours"),
            (403, "Guardrail server returned 403: blocked by policy", "ours"),
            (400, "Guardrail service returned an error: PII detected", "ours"),
            (400, "Guardrail 'pii' not configured to allow medical content", "ours"),
            (400, "Guardrails: output validation failed. Max retries exceeded.", "ours"),
        )
    },
    **{
        f"a guardrail is down: {words[:40]}": Shape(
            "openai", comes, {"error": {"message": words, "code": str(status)}}, source, status
        )
        for comes, status, words, source in (
            (
                RETRIED,
                500,
                "Generic Guardrail API failed: All connection attempts failed",
                "litellm#31286",
            ),
            (
                RETRIED,
                500,
                "Bedrock guardrail failed: Client error '400 Bad Request' for url 'https://x'",
                "litellm#20395",
            ),
            (DOWN, 403, "Bedrock guardrail request failed", "litellm#18383"),
            (RETRIED, 500, "Content safety service unavailable", "ours"),
            (RETRIED, 500, "Content filter timed out", "ours"),
            (RETRIED, 500, "Request blocked: moderation service timed out", "ours"),
            (RETRIED, 500, "Blocked, as we could not connect to the content filter", "ours"),
            (RETRIED, 500, "Guardrail: connection refused", "ours"),
            (
                "bad_request",
                400,
                "The guardrail identifier or version provided in the request does not exist.",
                "strands-agents/harness-sdk#713",
            ),
            ("bad_request", 400, "The provided guardrail identifier is invalid.", "openclaw#58588"),
            (RETRIED, 500, "Output guardrail 'demo' failed to evaluate: x", "databricks/ucode#66"),
            (DOWN, 403, "Budget limit exceeded", "OpenRouter: Errors"),
            (DOWN, 403, "Guardrail budget limit exceeded", "after OpenRouter: Errors"),
            ("bad_request", 400, "Token budget limit exceeded.", "ours"),  # one long prompt
            (
                DOWN,
                403,
                "Your team does not have permission to modify guardrails.",
                "litellm#4810",
            ),
            (DOWN, 403, "Key restricted by guardrail: model not allowed", "ours"),
            (RETRIED, 500, "Moderation endpoint returned 429", "after anything-llm#251"),
            (RETRIED, 400, "Stream error: unexpected EOF", "after maple-proxy#47"),
            (RETRIED, 400, "An unexpected error occurred during streaming", "ours"),
            (RETRIED, 500, "Moderation API returned HTTP status 503", "ours"),
            (RETRIED, 500, "Guardrail rate limit exceeded", "ours"),
            (RETRIED, 500, "Presidio guardrail: Max retries exceeded with url: /analyze", "ours"),
            ("bad_request", 400, "Guardrail 'my-guard' not found", "ours"),
            ("bad_request", 400, "Moderation model omni-moderation-latest not found", "ours"),
            ("bad_request", 400, "Content filter policy 'strict' was not found", "ours"),
            (
                RETRIED,
                500,
                "Bedrock guardrail: An error occurred (ServiceUnavailableException)",
                "ours",
            ),
        )
    },
    "filter in a stream": Shape(
        "openai",
        REFUSED,
        stream(delta("{"), delta(None, "content_filter")),
        "Azure: content filtering",
        streams=True,
    ),
    "a limit of a minute that is called a quota": Shape(
        "openai",
        RETRIED,
        {
            "error": {
                "message": "You exceeded your current quota, please check your plan and billing "
                "details. For details, see: "
                "https://help.aliyun.com/zh/model-studio/error-code#token-limit",
                "type": "insufficient_quota",
                "code": "insufficient_quota",
            }
        },
        "opencode#23722",
        429,
    ),
    "no credit for a model": Shape(
        "anthropic",
        DOWN,
        {
            "type": "error",
            "error": {
                "type": "rate_limit_error",
                "message": "Usage credits are required for this model.",
                "details": {"error_code": "credits_required"},
            },
        },
        "hermes-agent#109553",
        429,
    ),
    "a model that GitHub does not know": Shape(
        "openai",
        DOWN,
        {"error": {"code": "unknown_model", "message": "Unknown model: x"}},
        "gh-models#65",
        400,
    ),
    **{
        f"a model that is not served: {code}": Shape(
            "openai", DOWN, {"error": {"code": code, "message": "It cannot be called"}}, source, 400
        )
        for code, source in (
            ("model_not_available", "puter#3168"),
            ("dedicated_endpoint_not_running", "puter#3168"),
            ("unavailable_model", "ours"),
        )
    },
    "a temperature beside thinking": Shape(
        "openai",
        ANSWERED,
        {
            "error": {
                "message": "`temperature` may only be set to 1 when thinking is enabled or in "
                "adaptive mode. Please consult the documentation"
            }
        },
        "one-hub#529",
        400,
        then=True,
    ),
    "a request above the tokens of a minute": Shape(
        "openai",
        "context_length",
        {
            "error": {
                "message": "Request too large for gpt-4o in organization org-x on tokens per min "
                "(TPM): Limit 30000, Requested 31538. The input or output tokens must be reduced "
                "in order to run successfully.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        "shell_gpt#653",
        429,
    ),
    "a limit of a minute without a pause": Shape(
        "openai",
        RETRIED,
        {
            "message": "Tokens per minute limit exceeded - too many tokens processed.",
            "type": "too_many_tokens_error",
            "param": "quota",
            "code": "token_quota_exceeded",
        },
        "benchmark-radar#171",
        429,
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
    # MiniMax's status, which is 0 for success.
    **{
        f"MiniMax {name}": Shape(
            "openai", comes, stream(body) if streams else body, source, streams=streams
        )
        for name, comes, streams, body, source in (
            ("balance", DOWN, False, minimax(1008, "insufficient balance"), "cherry-studio#11287"),
            ("balance in a stream", DOWN, True, minimax(1008, "insufficient balance"), "the same"),
            ("wrong key", DOWN, False, minimax(2049, "invalid api key"), "MiniMax-01#37"),
            ("no key", DOWN, False, minimax(1004, "login fail"), "ironclaw#1742"),
            ("rate", RETRIED, False, minimax(1002, "rate limit exceeded(RPM)"), "GoModel#640"),
            ("error", RETRIED, False, minimax(1000, "unknown error"), "MiniMax-M3#6"),
            ("parameter", "bad_request", False, minimax(2013, "invalid params"), "GoModel#640"),
            ("filter", REFUSED, False, minimax(1026, "input new_sensitive"), "GoModel#640"),
            ("filter in a stream", REFUSED, True, minimax(1027, "output new_sensitive"), "ours"),
            ("success", ANSWERED, False, completion(**status_of(0, "success")), "ours"),
        )
    },
    "MiniMax success without choices": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER, "stop", usage=USAGE), minimax(0, "success")),
        "ours",
        streams=True,
    ),
    "an error code beside a text": Shape(
        "openai",
        RETRIED,
        stream(delta(), {"choices": None, "error_code": 500, "text": "minimax-api: error"}),
        "Langchain-Chatchat#2607",
        streams=True,
    ),
    "a status of nginx": Shape(
        "openai", RETRIED, {"error": {"message": "client closed request"}}, "ours", 499
    ),
    "too early": Shape("openai", RETRIED, {"error": {"message": "too early"}}, "ours", 425),
    "a wrong address": Shape("openai", DOWN, {"detail": "Method Not Allowed"}, "vllm#7463", 405),
    "a wrong address without words": Shape("openai", DOWN, "", "open-webui#15124", 405),
    "a wrong address in a 200": Shape(
        "openai",
        DOWN,
        {"error": "Unexpected endpoint or method. (POST /chat/completions)"},
        "LM Studio",
    ),
    "a firewall that blocks a question": Shape(
        "openai", "bad_request", {"message": "Sorry, your request has been blocked"}, "ours", 405
    ),
    "a firewall that blocks what is not allowed": Shape(
        "openai",
        "bad_request",
        {"message": "Your request was blocked: it may contain content that is not allowed"},
        "ours",
        405,
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
            (
                DOWN,
                429,
                "openai",
                "you (x) have reached your weekly usage limit, upgrade for higher limits",
                "hermes-agent#68832",
            ),
            (
                DOWN,
                429,
                "openai",
                "you've reached your hourly usage limit, please wait or upgrade to continue",
                "continue#9235",
            ),
            (
                DOWN,
                429,
                "openai",
                "You are using a Trial key, which is limited to 1000 API calls / month.",
                "OmniRoute#12252",
            ),
            (
                RETRIED,
                429,
                "openai",
                "You are using a Trial key, which is limited to 20 API calls / minute.",
                "ours",
            ),
            (
                DOWN,
                429,
                "openai",
                "Too many tokens per day, please wait before trying again.",
                "Ivy-Tendril#1756",
            ),
            (
                DOWN,
                429,
                "anthropic",
                "Number of request tokens has exceeded your daily rate limit",
                "cofounder#40",
            ),
            (
                DOWN,
                429,
                "openai",
                'VertexAIException - { "quotaId": "GenerateRequestsPerDayPerProjectPerModel" }',
                "litellm#9035",
            ),
            (
                DOWN,
                429,
                "gemini",
                "free_tier_requests, limit: 0, model: x\nPlease retry in 45.578569677s.",
                "continue#9570",
            ),
            (DOWN, 400, "openai", "ExceededBudget: End User=x over budget.", "OpenCRE#1102"),
            (
                RETRIED,
                429,
                "openai",
                "Requests per minute limit exceeded - too many requests sent.",
                "grammar-nazi-bot#958",
            ),
            (
                DOWN,
                400,
                "anthropic",
                "Access to Anthropic models is not allowed from unsupported countries, regions, or "
                "territories.",
                "claude-code#2656",
            ),
            (
                DOWN,
                400,
                "gemini",
                "Project `1` is not allowed to use Publisher Model `projects/x/models/y`",
                "uni-api#41",
            ),
            (
                "context_length",
                400,
                "openai",
                "Input length 203743 exceeds the maximum length 202752",
                "dify#32221",
            ),
            ("context_length", 500, "openai", "input length too long", "Roo-Code#1767"),
            ("context_length", 400, "openai", "Prompt exceeds max length", "ours"),
            *(
                (RETRIED, 429, "openai", words, "ours")
                for words in (
                    "Rate limit exceeded. Upgrade to a monthly plan for higher limits.",
                    "Too many requests. See https://example.com/docs/daily-limits for details.",
                    "Limit: 20 / minute. Monthly quota unaffected.",
                    "Rate limit exceeded: 5 requests per 10 seconds, up to 1000 per day.",
                    "请求过于频繁，今日已调用100次，请稍后重试",
                    "x-ratelimit: limit: 0, remaining: 0",
                )
            ),
            (DOWN, 429, "openai", "今日免费额度已用完", "ours"),
            ("bad_request", 400, "openai", "Input validation: stop sequence too long", "ours"),
            ("context_length", 400, "openai", "Messages too long for requested model", "ours"),
            (
                "context_length",
                400,
                "openai",
                "Your request exceeded model token limit: 262144 (requested: 566084)",
                "kimi-cli#2011",
            ),
            (
                "context_length",
                400,
                "openai",
                "Input length 877338 exceeds the maximum allowed input length of 639968 tokens",
                "ours",
            ),
            ("context_length", 400, "openai", "The user message is too long.", "ours"),
            ("bad_request", 400, "openai", "max_tokens 9 exceeds the model token limit", "ours"),
            ("bad_request", 400, "openai", "Validation: the stop message is too long", "ours"),
            (
                RETRIED,
                400,
                "openai",
                "Function id '1b': DEGRADED function cannot be invoked",
                "freellmapi#522",
            ),
            (DOWN, 429, "gemini", "Your prepayment credits are depleted.", "dyad#3626"),
            (
                DOWN,
                410,
                "openai",
                "The model 'foo' has reached its end of life on 2026-09-01",
                "NemoClaw#11902",
            ),
            (DOWN, 400, "openai", "Model not found: foo", "ours"),
            (DOWN, 400, "openai", "The model 'foo' does not exist", "ours"),
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
                DOWN,
                400,
                "anthropic",
                "You have reached your specified API usage limits. You will regain access on "
                "2026-12-01 at 00:00 UTC.",
                "claude-code#2127",
            ),
            (
                DOWN,
                412,
                "openai",
                "Account x is suspended, possibly due to reaching the monthly spending limit",
                "pollinations#12136",
            ),
            (
                DOWN,
                429,
                "openai",
                "you have used up your daily free allocation of 10,000 neurons",
                "OmniRoute#6980",
            ),
            (
                DOWN,
                429,
                "anthropic",
                "usage limit exceeded, 5-hour usage limit reached for Token Plan Starter (2056)",
                "MiniMax-M2.7#36",
            ),
            (RETRIED, 429, "openai", "TPM usage limit reached", "ours"),
            (DOWN, 429, "openai", "Usage limit reached, try again in 3 hours", "ours"),
            *(
                ("bad_request", 400, "openai", words, "ours")
                for words in (
                    "not supported model parameter: temperature",
                    "top_k is a not supported model option",
                    "not supported model input: x",
                )
            ),
            (DOWN, 400, "openai", "Organization has been restricted.", "one-api#1764"),
            (DOWN, 403, "openai", "Insufficient account balance", "sub2api#890"),
            (DOWN, 400, "openai", "The provided model identifier is invalid.", "Roo-Code#9182"),
            (DOWN, 400, "openai", "Model does not exist. Please check it.", "new-api#2734"),
            (DOWN, 400, "openai", "[1211][模型不存在，请检查模型代码。][x]", "nexu#855"),
            (DOWN, 400, "openai", "Invalid model name passed in model=foo.", "litellm#9663"),
            (
                DOWN,
                400,
                "openai",
                "Invocation of model ID x with on-demand throughput isn’t supported.",
                "opencode#396",
            ),
            (DOWN, 400, "openai", "Not supported model mimo-v2.5-pro-ultraspeed", "houston#1398"),
            (DOWN, 429, "openai", "billing_not_active: please check your billing", "litellm#2743"),
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
            (
                "parameter.enable_thinking必须设置为false才能进行非流式调用",
                "spring-ai-alibaba#867",
            ),
            ("该模型仅支持流式调用", "ours"),
            ("Non-streaming is not supported", "ours"),
        )
    },
    **{
        f"not that value: {words[:40]}": Shape(
            "openai", ANSWERED, {"message": words}, source, 422, then=True
        )
        for words, source in (
            ("Invalid params: temperature must be in range (0, +inf)", "gigachain#237"),
            ("temperature: Input should be greater than 0", "ours"),
            ("Temperature must be between 0.01 and 1", "ours"),
            ("Parameter `seed` is not implemented", "ours"),
        )
    },
    **{
        f"a quota that is none, with status {status}": Shape(
            "openai",
            RETRIED,
            {
                "error": {
                    "message": "当前分组上游负载已饱和，请稍后再试",
                    "code": "insufficient_quota",
                }
            },
            "BettaFish#579",
            status,
        )
        for status in (429, 500)
    },
    "a quota of a day by its id": Shape(
        "gemini",
        DOWN,
        [
            {
                "error": {
                    "code": 429,
                    "message": "Quota exceeded for x",
                    "details": [
                        {
                            "reason": "RATE_LIMIT_EXCEEDED",
                            "metadata": {"quota_limit": "Gemini25ProRequestsPerDayPerUserPerTier"},
                        }
                    ],
                }
            }
        ],
        "gemini-cli#10513",
        429,
    ),
    "an account's own limit": Shape(
        "openai",
        DOWN,
        {"error": {"code": "SetLimitExceeded", "message": "You have reached the limit"}},
        "MineContext#328",
        429,
    ),
    "a grammar that is not implemented": Shape(
        "openai",
        ANSWERED,
        {"error": {"message": 'Grammar error: Unimplemented keys: ["propertyNames"]'}},
        "club-3090#45",
        500,
        then=True,
    ),
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


def _events(*events: Mapping[str, object], between: str = "\n\n") -> str:
    """Return named events, as the Responses API and Anthropic send them."""
    texts = (f"event: {event['type']}\ndata: {json.dumps(event)}" for event in events)
    return between.join(texts) + between


def _block(**start: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": 0, "content_block": start}


def _piece(text: str) -> dict[str, object]:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def _message_delta(reason: str = "end_turn") -> dict[str, object]:
    usage = {"output_tokens": 5}
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


EVENT_STREAM = {"content-type": "text/event-stream"}
START: dict[str, object] = {
    "type": "message_start",
    "message": {"model": "m", "usage": {"input_tokens": 10, "output_tokens": 1}},
}
EMPTY = _block(type="text", text="")
STOP: dict[str, object] = {"type": "message_stop"}
MESSAGE = {
    "type": "message",
    "model": "m",
    "content": [{"type": "text", "text": None}, {"type": "text", "text": ANSWER}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
RESPONSE = {
    "model": "m",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}],
    "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
}
GEMINI = {
    "candidates": [{"content": {"parts": [{"text": ANSWER}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20},
    "modelVersion": "g",
}
BAD_KEY = {"error": {"message": "Invalid API Key", "type": "invalid_request_error", "code": 401}}
GOOGLE_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
    }
}
LAST = delta(ANSWER, "stop", usage=USAGE)
SO_FAR = (ANSWER[:5], ANSWER[:11], ANSWER)
REASONED = {"choices": [{"delta": {"reasoning_content": [{"type": "text", "text": "hm"}]}}]}
SIGNED = {"choices": [{"delta": {"reasoning_content": {"signature": "abc"}}}]}

FRAMES = {
    # Streams with events that no blank line ends.
    "no blank line at the end: chat": Shape(
        "openai",
        ANSWERED,
        f"data: {json.dumps(LAST)}\n",
        "openai-node#2725",
        streams=True,
    ),
    "no blank line at the end: responses": Shape(
        "responses",
        ANSWERED,
        _events({"type": "response.completed", "response": RESPONSE}).rstrip(),
        "pi#9047",
        streams=True,
    ),
    "no blank line at the end: anthropic": Shape(
        "anthropic",
        ANSWERED,
        _events(START, EMPTY, _piece(ANSWER), _message_delta()).rstrip(),
        "opencode#40454",
        streams=True,
    ),
    "one line break between events: chat": Shape(
        "openai",
        ANSWERED,
        stream(delta(ANSWER[:4]), delta(ANSWER[4:], "stop", usage=USAGE)).replace("\n\n", "\n"),
        "rexxars/eventsource-parser#31",
        streams=True,
    ),
    **{
        f"Claude's {reason}, then a stop": Shape(
            "anthropic",
            comes,
            _events(START, EMPTY, _piece('{"answ'), _message_delta(reason), _message_delta(), STOP),
            "ours",
            streams=True,
        )
        for reason, comes in (("refusal", REFUSED), ("max_tokens", UNREADABLE))
    },
    "names and data apart": Shape(
        "anthropic",
        ANSWERED,
        _events(START, EMPTY, _piece(ANSWER), _message_delta(), STOP).replace("\ndata", "\n\ndata"),
        "pi#8430",
        streams=True,
    ),
    "one line break between events: anthropic": Shape(
        "anthropic",
        ANSWERED,
        _events(START, EMPTY, _piece(ANSWER), _message_delta(), STOP, between="\n"),
        "ours",
        streams=True,
    ),
    # JSON as the body of an event stream.
    "an error as an event stream": Shape(
        "openai", DOWN, BAD_KEY, "gemini-balance#347", streams=True, headers=EVENT_STREAM
    ),
    "an error in front of the end": Shape(
        "openai",
        DOWN,
        json.dumps(BAD_KEY) + "\n\ndata: [DONE]\n\n",
        "lemonade#3448",
        streams=True,
        headers=EVENT_STREAM,
    ),
    "an error without a field among the events": Shape(
        "openai",
        DOWN,
        stream(delta("x"), done=False) + json.dumps(BAD_KEY, indent=1) + "\n\ndata: [DONE]\n\n",
        "lemonade#3448",
        streams=True,
    ),
    "an error as an event stream: anthropic": Shape(
        "anthropic",
        DOWN,
        {"type": "error", "error": {"type": "authentication_error", "message": "invalid key"}},
        "ours",
        streams=True,
        headers=EVENT_STREAM,
    ),
    "an error as an event stream: gemini": Shape(
        "gemini", DOWN, [GOOGLE_KEY], "ours", streams=True, headers=EVENT_STREAM
    ),
    **{
        f"a whole reply as an event stream: {wire}": Shape(
            wire, ANSWERED, body, "9router#3301", streams=True, headers=EVENT_STREAM
        )
        for wire, body in (
            ("openai", completion()),
            ("responses", RESPONSE),
            ("anthropic", MESSAGE),
            ("gemini", GEMINI),
        )
    },
    # Streams that nobody asked for.
    **{
        f"an unrequested stream: {wire}": Shape(wire, ANSWERED, body, source)
        for wire, body, source in (
            ("openai", ": keep-alive\n\n" + stream(LAST), "ours"),
            (
                "responses",
                _events({"type": "response.completed", "response": RESPONSE}),
                "ours",
            ),
            (
                "anthropic",
                _events(START, EMPTY, _piece(ANSWER), _message_delta(), STOP),
                "sub2api#867",
            ),
            (
                "gemini",
                stream(
                    {"candidates": [{"content": {"parts": [{"text": ANSWER[:4]}]}}]},
                    GEMINI
                    | {
                        "candidates": [
                            {"content": {"parts": [{"text": ANSWER[4:]}]}, "finishReason": "STOP"}
                        ]
                    },
                ),
                "llm-gemini#97",
            ),
        )
    },
    "a whole reply in front of the end": Shape(
        "openai", ANSWERED, json.dumps(completion()) + "\ndata: [DONE]\n\n", "9router#3492"
    ),
    "a line separator in the text of an unrequested stream": Shape(
        "openai",
        ANSWERED,
        "data: " + json.dumps(delta(ANSWER[:-1] + "\u2028}", "stop"), ensure_ascii=False),
        "codex-lb#1010",
    ),
    # Streams of Gemini that are not Google's.
    **{
        f"gemini: {name}": Shape(
            "gemini", ANSWERED, body, source, streams=True, headers=EVENT_STREAM
        )
        for name, body, source in (
            ("a comment", f": keep-alive\n\ndata: {json.dumps(GEMINI)}\n\n", "bifrost#6804"),
            ("no space", f"data:{json.dumps(GEMINI)}\n\n", "python-genai#2584"),
            ("names", f"event: message\ndata: {json.dumps(GEMINI)}\n\n", "ours"),
            ("an end marker", stream(GEMINI), "ours"),
            ("lists", stream([GEMINI]), "bifrost#5188"),
        )
    },
    "an error in a 200: gemini": Shape("gemini", DOWN, GOOGLE_KEY, "ours"),
    "an error that is a text: gemini": Shape("gemini", RETRIED, {"error": "overloaded"}, "ours"),
    # Nothing.
    "only the end marker": Shape("openai", RETRIED, stream(), "lemonade#3448", streams=True),
    "a role and the end marker": Shape(
        "openai",
        RETRIED,
        stream({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
        "9router#3051",
        streams=True,
    ),
    "no choices and no usage": Shape(
        "openai", RETRIED, {"id": "x", "model": "m", "choices": []}, "kortix-ai/suna#4099"
    ),
    "no choices and a usage of zero": Shape(
        "openai",
        RETRIED,
        {"choices": [], "usage": dict.fromkeys(USAGE, 0)},
        "kortix-ai/suna#4352",
    ),
    # Text where the protocol has none, or of another type.
    "the first text in the start of a block": Shape(
        "anthropic",
        ANSWERED,
        _events(
            START,
            _block(type="text", text=ANSWER[:4]),
            _piece(ANSWER[4:]),
            _message_delta(),
            STOP,
        ),
        "pi#7283",
        streams=True,
    ),
    "the text in the start of a block, repeated": Shape(
        "anthropic",
        ANSWERED,
        _events(
            START,
            _block(type="text", text=ANSWER[:4]),
            _piece(ANSWER[:4]),
            _piece(ANSWER[4:]),
            _message_delta(),
            STOP,
        ),
        "ours",
        streams=True,
    ),
    "a start of a block whose text is a list": Shape(
        "anthropic",
        ANSWERED,
        _events(START, _block(type="text", text=["x"]), _piece(ANSWER), _message_delta(), STOP),
        "ours",
        streams=True,
    ),
    "the last event cut off: message": Shape(
        "anthropic",
        ANSWERED,
        _events(START, EMPTY, _piece(ANSWER), _message_delta()) + 'event: message_stop\ndata: {"ty',
        "ours",
        streams=True,
    ),
    "the input of a tool in the start of a block": Shape(
        "anthropic",
        ANSWERED,
        _events(
            START,
            _block(type="tool_use", name="Opinion", input={"answer": "B"}),
            _message_delta("tool_use"),
            STOP,
        ),
        "pi#7283",
        streams=True,
    ),
    "the input of a tool in the start of a block and in pieces": Shape(
        "anthropic",
        ANSWERED,
        _events(
            START,
            _block(type="tool_use", name="Opinion", input={"answer": "A"}),
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": ANSWER},
            },
            _message_delta("tool_use"),
            STOP,
        ),
        "ours",
        streams=True,
    ),
    "a text of null": Shape("anthropic", ANSWERED, MESSAGE, "ours"),
    "reasoning as parts": Shape(
        "openai", ANSWERED, stream(REASONED, LAST), "hermes-agent#104711", streams=True
    ),
    "reasoning as an object": Shape(
        "openai", ANSWERED, stream(SIGNED, LAST), "envoyproxy/ai-gateway#2318", streams=True
    ),
    # Streams of texts so far.
    **{
        f"texts so far: {name}": Shape(wire, ANSWERED, body, source, streams=True)
        for name, wire, body, source in (
            (
                "chat",
                "openai",
                stream(*map(delta, SO_FAR), delta(finish="stop", usage=USAGE)),
                "qwen-code#3896",
            ),
            (
                "arguments",
                "openai",
                stream(
                    *(
                        delta() | {"choices": [{"delta": {"tool_calls": [{"function": call}]}}]}
                        for call in ({"arguments": text} for text in SO_FAR)
                    ),
                    delta(finish="tool_calls", usage=USAGE),
                ),
                "hermes-agent#35718",
            ),
            (
                "anthropic",
                "anthropic",
                _events(START, EMPTY, *map(_piece, SO_FAR), _message_delta(), STOP),
                "ours",
            ),
            (
                "input",
                "anthropic",
                _events(
                    START,
                    _block(type="tool_use", name="Opinion", input={}),
                    *(
                        {"type": "content_block_delta", "delta": {"partial_json": text}}
                        for text in SO_FAR
                    ),
                    _message_delta("tool_use"),
                    STOP,
                ),
                "ours",
            ),
            (
                "gemini",
                "gemini",
                stream(
                    *(
                        GEMINI
                        | {
                            "candidates": [
                                {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
                            ]
                        }
                        for text in SO_FAR
                    ),
                    done=False,
                ),
                "ours",
            ),
        )
    },
    # Reasoning in the text.
    "a draft in a channel of Gemma": Shape(
        "openai",
        ANSWERED,
        completion({"content": f'<|channel>thought\n{{"answer": "A"}}?\n<channel|>{ANSWER}'}),
        "hermes-agent#67632",
    ),
    "a draft in a thought that is never closed": Shape(
        "openai",
        UNREADABLE,
        completion({"content": '<unused94>thought\nMaybe {"answer": "A"}. But'}),
        "ollama#15754",
    ),
}
"""Shapes of another framing or type than the protocol's, which the typed ways of the SDKs do not
read."""
