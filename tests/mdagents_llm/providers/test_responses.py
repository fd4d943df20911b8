"""What endpoints really send by the Responses API, and which API a model is asked by.

Each shape is served over HTTP and asked for through all layers that a run has. Bodies are facts of
the public reports that they name; the texts in them are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mdagents.runs.config import RunConfig
from mdagents.runs.models import choose_models
from mdagents_llm.chat import ChatReply
from mdagents_llm.endpoints import Runtime
from mdagents_llm.errors import ConfigError
from mdagents_llm.ledger import CallRow
from mdagents_llm.model_configs import load_model_configs
from tests.mdagents_llm.providers.shapes import (
    ANSWER,
    ANSWERED,
    DOWN,
    REFUSED,
    RETRIED,
    UNREADABLE,
    Opinion,
    completion,
    delta,
    stream,
    what_comes,
)
from tests.mdagents_llm.providers.shapes import Shape as AnyShape

Shape = partial(AnyShape, "responses")
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 120,
}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": '{"answer": "A"}'}],
    "content": [{"type": "reasoning_text", "text": '{"answer": "A"}'}],
}


def message(text: str = ANSWER, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]} | more


def response(*output: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "status": "completed", "model": "m", "error": None,
        "incomplete_details": None, "output": list(output), "usage": USAGE,
    } | more  # fmt: skip


def incomplete(reason: str | None, *output: Any, **more: Any) -> dict[str, Any]:
    details = None if reason is None else {"reason": reason}
    return response(*output, status="incomplete", incomplete_details=details, **more)


def text(piece: str, index: int = 0, kind: str = "delta") -> dict[str, Any]:
    name = "delta" if kind == "delta" else "text"
    place = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
    return {"type": f"response.output_text.{kind}", **place, name: piece}


def item(kind: str, of: Any, index: int = 0) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": of}


def last(of: dict[str, Any] | None = None, kind: str = "completed") -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": response(message()) if of is None else of}


def events(*given: Any, done: bool = False) -> str:
    started = {"type": "response.created", "response": response(status="in_progress", usage=None)}
    return stream(started, *given, done=done)


def error(words: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": words, "type": "invalid_request_error", "code": None, **more}}


PIECES = (text('{"answer": '), text('"B"}'))
FAILED = {"code": "server_error", "message": "An error occurred while processing your request."}
STREAMED = partial(Shape, streams=True)
SHAPES = {
    # Whole replies.
    "hidden reasoning is never text": Shape(
        ANSWERED, response(REASONING, message()), "openai-python#2546"
    ),
    "nothing but reasoning, at the limit": Shape(
        UNREADABLE, incomplete("max_output_tokens", REASONING), "openai-python#2546, litellm#26087"
    ),
    "incomplete without a reason": Shape(
        UNREADABLE, incomplete(None, message('{"answer": ')), "litellm#40833, vllm#24561"
    ),
    "whole by its text, incomplete by its status": Shape(
        UNREADABLE, incomplete("max_output_tokens", message()), "experiential#46"
    ),
    "withheld in the middle": Shape(
        REFUSED, incomplete("content_filter", message('{"ans')), "litellm#37710"
    ),
    "a refusal as a part": Shape(
        REFUSED,
        response(message(content=[{"type": "refusal", "refusal": "I cannot help with that."}])),
        "OpenAI's guide to structured outputs",
    ),
    "failed with status 200": Shape(
        RETRIED, response(status="failed", error=FAILED, usage=None), "openai-agents-python#3106"
    ),
    "failed without an error": Shape(
        RETRIED, response(status="failed", usage=None), "openai-agents-python#3106"
    ),
    "failed for its prompt": Shape(
        REFUSED,
        response(status="failed", error={"code": "bio_policy", "message": "No."}, usage=None),
        "ResponseError of the SDK",
    ),
    "still in progress": Shape(
        RETRIED, response(status="in_progress"), "ResponseStatus of the SDK"
    ),
    "cancelled": Shape(RETRIED, response(status="cancelled"), "ResponseStatus of the SDK"),
    "without annotations, ids and status": Shape(
        ANSWERED,
        {
            "model": "m",
            "output": [{"role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}],
            "usage": {"input_tokens": 100, "output_tokens": 20},
        },
        "lmstudio-bug-tracker#1089",
    ),
    "the same message twice": Shape(
        ANSWERED, response(REASONING, message(), message()), "effect#6178, pipecat#4852"
    ),
    "a remark before the answer": Shape(
        ANSWERED,
        response(message('{"answer": "A"}', phase="commentary"), message(phase="final_answer")),
        "openai-python#3861, langchain4j#6451",
    ),
    "nothing but a remark": Shape(
        UNREADABLE, response(message('{"answer": "A"}', phase="commentary")), "openai-python#3861"
    ),
    "a chat completion in its place": Shape(RETRIED, completion(), "semantic-router#542"),
    "a function call in place of text": Shape(
        ANSWERED,
        response({"type": "function_call", "name": "f", "call_id": "c", "arguments": ANSWER}),
        "ours, after tool calls of chat completions",
    ),
    "reasoning beside the output": Shape(
        ANSWERED,
        response(
            message(),
            usage={
                **USAGE,
                "output_tokens_details": {"reasoning_tokens": 317},
                "total_tokens": 437,
            },
        ),
        "vercel/ai#12425",
    ),
    "details of usage null": Shape(
        ANSWERED,
        response(
            message(),
            usage={**USAGE, "input_tokens_details": None, "output_tokens_details": None},
        ),
        "ours, after vllm#24561",
    ),
    "negative usage": Shape(
        ANSWERED, response(message(), usage={**USAGE, "input_tokens": -5}), "found by attack"
    ),
    "a text that is null": Shape(
        ANSWERED,
        response(message(content=[{"type": "output_text", "text": None}]), message()),
        "openai-python#3011",
    ),
    "a message without content": Shape(
        ANSWERED, response(message(content=None), message()), "openai-python#3840"
    ),
    "output that is null": Shape(UNREADABLE, response(output=None), "openai-python#3325"),
    "a status that is null": Shape(
        ANSWERED, response(message(status=None), status=None), "vllm-project/agentic-api#77"
    ),
    "nothing, and nothing counted": Shape(
        UNREADABLE, response(usage=dict.fromkeys(USAGE, 0)), "vllm#24184"
    ),
    "no output": Shape(RETRIED, {"id": "resp_1", "object": "response"}, "ours"),
    # Errors.
    "a filter's 400": Shape(
        REFUSED,
        error("The prompt was filtered by the content management policy.", code="content_filter"),
        "helm#3327",
        400,
    ),
    "a schema that is not taken": Shape(
        ANSWERED,
        error(
            "Invalid parameter: 'text.format' of type 'json_schema' is not supported with model x.",
            param="text.format",
        ),
        "models.dev#910",
        400,
        then=True,
    ),
    "a temperature that is not taken": Shape(
        ANSWERED,
        error("Unsupported parameter: 'temperature' is not supported with this model."),
        "inspect_ai#2267",
        400,
        then=True,
    ),
    "a limit that is not taken": Shape(
        ANSWERED,
        {"detail": "Unsupported parameter: max_output_tokens"},
        "sub2api#3954",
        400,
        then=True,
    ),
    "a wrong form that is called invalid_prompt": Shape(
        "bad_request",
        {
            "error": {"code": "invalid_prompt", "message": "Invalid Responses API request"},
            "metadata": {"raw": [{"path": ["store"], "message": "Invalid input: expected false"}]},
        },
        "litellm#30851",
        400,
    ),
    "an unknown model": Shape(
        DOWN, error("The model `x` does not exist", code="model_not_found"), "OpenAI", 404
    ),
    "no such address": Shape(DOWN, {"detail": "Not Found"}, "azure-sdk-for-net#50924", 404),
    "no such address, with status 200": Shape(
        DOWN,
        {"error": "Unexpected endpoint or method. (POST /v1/responses)"},
        "lmstudio-bug-tracker#618",
    ),
    "an old version of Azure's API": Shape(
        DOWN,
        error("Azure OpenAI Responses API is enabled only for api-version 2025-03-01-preview"),
        "aider#4029",
        400,
    ),
    # Streams.
    "a stream": STREAMED(ANSWERED, events(*PIECES, last()), "OpenAI"),
    "a stream that nobody asked for": Shape(ANSWERED, events(*PIECES, last()), "litellm#29396"),
    "whole for a stream": STREAMED(ANSWERED, response(message()), "vault-operator#73"),
    "the end has no output": STREAMED(
        ANSWERED, events(*PIECES, last(response())), "new-api#4362, open-webui#27800"
    ),
    "only finished items": STREAMED(
        ANSWERED,
        events(item("done", REASONING), item("done", message(), 1), last(response())),
        "picoclaw#2581",
    ),
    "only finished texts": STREAMED(
        ANSWERED, events(text(ANSWER, kind="done"), last(response())), "mlx-node#45"
    ),
    "only the end": STREAMED(ANSWERED, events(last()), "TanStack/ai#937"),
    "the end by another name": STREAMED(
        ANSWERED, events(*PIECES, last(kind="done"), done=True), "OpenRouter's documentation"
    ),
    "the same message twice, streamed": STREAMED(
        ANSWERED,
        events(*PIECES, text(ANSWER, 1), last(response(message(), message()))),
        "pipecat#4852",
    ),
    "a remark before the answer, streamed": STREAMED(
        ANSWERED,
        events(
            item("added", message("", phase="commentary")),
            text("Let me see."),
            item("added", message("", phase="final_answer"), 1),
            text(ANSWER, 1),
            last(response(message("Let me see.", phase="commentary"), message())),
        ),
        "koog#1976",
    ),
    "reasoning, streamed": STREAMED(
        ANSWERED,
        events(
            {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "Hm."},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."},
            text(ANSWER, 1),
            last(),
        ),
        "vercel/ai#10491",
    ),
    "failed at the end": STREAMED(
        RETRIED,
        events(*PIECES, last(response(status="failed", error=FAILED), "failed")),
        "langchain#39041, agent-framework-go#546",
    ),
    "incomplete at the end": STREAMED(
        UNREADABLE,
        events(*PIECES, last(incomplete("max_output_tokens", message()), "incomplete")),
        "openai-agents-python#3106",
    ),
    "withheld at the end": STREAMED(
        REFUSED,
        events(PIECES[0], last(incomplete("content_filter"), "incomplete")),
        "litellm#37710",
    ),
    "a refusal, streamed": STREAMED(
        REFUSED,
        events(
            {"type": "response.refusal.delta", "output_index": 0, "delta": "I cannot."},
            last(response(message(content=[{"type": "refusal", "refusal": "I cannot."}]))),
        ),
        "ResponseRefusalDeltaEvent of the SDK",
    ),
    "an error event": STREAMED(
        RETRIED,
        events(*PIECES, {"type": "error", "code": "internal_error", "message": "It broke."}),
        "Floway#330",
    ),
    "an error event with an object": STREAMED(
        RETRIED,
        events(PIECES[0], {"type": "error", "error": {"code": "server_error", "message": "No."}}),
        "Floway#330",
    ),
    "an error by another name": STREAMED(
        RETRIED, events({"type": "response.error", "message": "It broke."}), "new-api#3142"
    ),
    "a rate limit in a stream": STREAMED(
        RETRIED,
        events({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down."}),
        "openai-go#497",
    ),
    "no credit in a stream": STREAMED(
        DOWN,
        events({"type": "error", "code": "insufficient_quota", "message": "No credit."}),
        "openai-go#497",
    ),
    "broken off": STREAMED(RETRIED, events(*PIECES), "9router#1648"),
    "broken off with the mark of an end": STREAMED(
        RETRIED, events(*PIECES, done=True), "Bamboo-agent#405"
    ),
    "kept alive": STREAMED(
        ANSWERED,
        events({"type": "keepalive", "sequence_number": 2}, *PIECES, last()),
        "openai-node#1964, openai-java#776",
    ),
    "kept alive by another name": STREAMED(
        ANSWERED,
        events({"type": "response.keep_alive"}, *PIECES, last()),
        "OpenRouter python-sdk#266",
    ),
    "an event without its response": STREAMED(
        ANSWERED, events({"type": "response.in_progress"}, *PIECES, last()), "OmniRoute#14330"
    ),
    "a price after the end": STREAMED(
        ANSWERED, events(*PIECES, last(), {"type": "ping", "cost": "0.01"}), "Aether#774"
    ),
    "texts without parts or items": STREAMED(
        ANSWERED,
        events(
            *({"type": "response.output_text.delta", "delta": one["delta"]} for one in PIECES),
            last(response()),
        ),
        "openclaw#134788",
    ),
    "chunks of a chat completion": STREAMED(
        RETRIED, stream(delta(ANSWER), delta(finish="stop")), "semantic-router#542"
    ),
}


@pytest.mark.parametrize("name", SHAPES)
async def test_what_endpoints_really_send(
    name: str, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    shape = SHAPES[name]
    comes, what, asked = await what_comes(shape, make_runtime, response(message()))
    assert comes == shape.comes, str(what)
    if comes == ANSWERED:
        assert isinstance(what, ChatReply)
        assert isinstance(what.parsed, Opinion)
        assert what.parsed.answer == "B"
        assert what.usage.total_tokens > 0
        assert len(asked) == 1 + shape.then
    if comes == REFUSED:
        assert len(asked) == 1
        assert [row.outcome for row in rows] == ["refused"]
    if comes == DOWN:
        assert len(asked) == 1
    assert all(one["store"] is False and "seed" not in one for one in asked)


@pytest.mark.parametrize("name", ["no such address", "no such address, with status 200"])
async def test_an_endpoint_without_the_api_is_one_line(
    name: str, make_runtime: Callable[..., Runtime]
) -> None:
    _, line, _ = await what_comes(SHAPES[name], make_runtime)
    assert "--api chat" in str(line)


async def test_an_unknown_model_is_not_about_the_api(make_runtime: Callable[..., Runtime]) -> None:
    _, line, _ = await what_comes(SHAPES["an unknown model"], make_runtime)
    assert "--api" not in str(line)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        # pgadmin4#9795, n8n#18352
        (404, "This model is only supported in v1/responses and not in v1/chat/completions."),
        # ThunderAI#570
        (
            404,
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
        ),
        (400, "This model is only available through the Responses API."),
    ],
)
async def test_a_model_without_chat_completions_is_one_line(
    status: int, words: str, make_runtime: Callable[..., Runtime]
) -> None:
    shape = AnyShape("openai", DOWN, error(words, param="model"), "see above", status)
    comes, line, asked = await what_comes(shape, make_runtime)
    assert comes == DOWN
    assert "--api responses" in str(line)
    assert len(asked) == 1


async def test_tokens_of_each_kind(make_runtime: Callable[..., Runtime]) -> None:
    usage = {
        "input_tokens": 2000,
        "input_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 512},
        "output_tokens": 300,
        "output_tokens_details": {"reasoning_tokens": 256},
        "total_tokens": 2300,
    }
    whole = response(message(), usage=usage, service_tier="priority")
    _, reply, _ = await what_comes(Shape(ANSWERED, whole, ""), make_runtime)
    assert isinstance(reply, ChatReply)
    _, streamed, _ = await what_comes(
        STREAMED(ANSWERED, events(*PIECES, last(whole)), ""), make_runtime
    )
    assert isinstance(streamed, ChatReply)
    assert reply.service_tier == streamed.service_tier == "priority"
    assert reply.usage.as_dict() == {
        "input_tokens": 2000,
        "output_tokens": 300,
        "cached_input_tokens": 1024,
        "reasoning_tokens": 256,
        "cache_write_tokens": 512,
    }


async def test_a_reply_at_its_limit_is_cut_off_whatever_its_status(
    make_runtime: Callable[..., Runtime],
) -> None:
    # omlx#2817: truncated while thinking, and "completed"
    usage = {**USAGE, "output_tokens": 100_000, "total_tokens": 100_100}
    shape = Shape(UNREADABLE, response(REASONING, message(content=[]), usage=usage), "")
    comes, _, asked = await what_comes(shape, make_runtime)
    assert comes == UNREADABLE
    limits = [one["max_output_tokens"] for one in asked]
    assert limits[1] > limits[0], "asked once more with a larger limit"


@pytest.mark.parametrize(
    ("model", "api"),
    [
        ("gpt-5-pro", "responses"),
        ("gpt-5.5-pro-2026-04-23", "responses"),
        ("o3-pro", "responses"),
        ("gpt-5.3-codex", "responses"),
        ("gpt-5", "chat"),
        ("o3", "chat"),
        ("gpt-4o-mini", "chat"),
    ],
)
def test_models_that_have_no_other_api(model: str, api: str) -> None:
    assert load_model_configs().info("openai", model).api == api


def apis(environment: Any, **settings: Any) -> dict[str, str]:
    specs = choose_models(RunConfig(**settings), environment)
    return {role: spec.api for role, spec in specs.items()}


def test_an_api_is_chosen_for_all_or_by_role(make_runtime: Callable[..., Runtime]) -> None:
    environment = make_runtime().environment
    assert set(apis(environment, model="gpt-5").values()) == {""}
    assert set(apis(environment, model="gpt-5", api="responses").values()) == {"responses"}
    chosen = apis(environment, model="gpt-5", api="expert=responses,decision=auto")
    assert (chosen["expert"], chosen["decision"], chosen["router"]) == ("responses", "", "")
    assert set(apis(environment, model="gpt-5-pro", api="responses").values()) == {""}
    assert set(apis(environment, model="gpt-5-pro", api="chat").values()) == {"chat"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "gpt-5", "api": "respones"}, "did you mean 'responses'"),
        ({"model": "gpt-5", "api": "exprt=chat"}, "did you mean 'expert'"),
        ({"model": "claude-haiku-4-5", "api": "responses"}, "has only one API"),
    ],
)
def test_a_wrong_choice_is_one_line(
    settings: dict[str, str], words: str, make_runtime: Callable[..., Runtime]
) -> None:
    environment = make_runtime().environment
    with pytest.raises(ConfigError, match=words):
        apis(environment, **settings)


def test_the_api_is_part_of_a_model_only_where_it_is_not_the_usual_one(
    make_runtime: Callable[..., Runtime],
) -> None:
    environment = make_runtime().environment

    def identity(**settings: Any) -> str:
        return choose_models(RunConfig(**settings), environment)["expert"].identity

    assert identity(model="gpt-5") == identity(model="gpt-5", api="chat")
    assert identity(model="gpt-5", api="responses").endswith(" api=responses")
    assert identity(model="gpt-5-pro") == identity(model="gpt-5-pro", api="responses")
