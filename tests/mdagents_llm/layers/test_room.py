"""The room that a model gets to think in: more when it needs more, less when more is refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

import pytest

from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError, StructuredOutputError
from mdagents_llm.layers.room import Room
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import HEADROOM, ModelInfo, Thinking, load_model_configs
from mdagents_llm.providers.http_errors import status_error
from tests.fake_provider import FakeProvider
from tests.mdagents_llm.providers.test_provider_contract import REQUEST, Choice

SERVERS = ("vllm", "ollama", "lmstudio", "mistral", "openai")
REFUSALS = (
    # https://github.com/stepfun-ai/Step-Audio-R1/issues/3
    (400, "'max_tokens' or 'max_completion_tokens' is too large: {}. This model's maximum context "
     "length is 6048 tokens and your request has 300 input tokens ({} > 6048 - 300)."),
    # https://github.com/vllm-project/vllm/issues/20409
    (400, "This model's maximum context length is 6048 tokens. However, you requested {} tokens "
     "(568 in the messages, {} in the completion). Please reduce the length of the messages."),
    # https://github.com/vllm-project/vllm/issues/42474
    (400, "This model's maximum context length is 6048 tokens. However, you requested {} output "
     "tokens and your prompt contains at least 300 input tokens"),
    # https://github.com/goruck/home-generative-agent/releases/tag/v3.45.1
    (400, "max_tokens: {} > 6048, which is the maximum allowed number of output tokens"),
    (400, "`max_completion_tokens` must be less than or equal to `6048`"),  # Groq
    (413, "Request too large for model `m` on tokens per minute (TPM): Limit 6048, Requested {}"),
    (422, "`inputs` tokens + `max_new_tokens` must be <= 6048. Given: 300 `inputs` tokens and {}"),
    (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 6048]"),  # DeepSeek
    # https://github.com/aws-samples/bedrock-access-gateway/issues/41
    (400, "An error occurred (ValidationException) when calling the ConverseStream operation: The "
     "maximum tokens you requested exceeds the model limit of 6048. Try again with a maximum "
     "tokens value that is lower than 6048."),
    (402, "This request requires more credits, or fewer max_tokens. You requested up to {} tokens, "
     "but can only afford 6048"),  # OpenRouter
)  # fmt: skip


def spec_of(name: str, provider: FakeProvider) -> ModelSpec:
    return ModelSpec(name, "some-model", provider.openai_base_url)


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("hidden", [3000, 12_000])
async def test_a_model_of_which_nothing_is_known_has_room_to_think(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], name: str, hidden: int
) -> None:
    provider.reasoning_tokens = hidden
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        model = registry.model(spec_of(name, provider))
        for schema in (Choice, None, Choice):
            deltas: list[str | None] = []
            reply = await model.generate(replace(REQUEST, schema=schema), deltas.append)
            assert reply.text
            assert reply.stop_reason is StopReason.STOP
    limits = [call.max_tokens for call in provider.calls]
    usual, larger = REQUEST.max_tokens + HEADROOM, REQUEST.max_tokens + 4 * HEADROOM
    assert limits == ([usual] * 3 if hidden == 3000 else [usual, larger, larger, larger])


async def test_the_reply_has_the_usage_of_both_and_the_ledger_a_row_for_each(
    provider: FakeProvider, make_runtime: Callable[..., Runtime]
) -> None:
    provider.reasoning_tokens = 12_000
    runtime = make_runtime()
    async with aclosing(ModelRegistry(runtime)) as registry:
        reply = await registry.model(spec_of("vllm", provider)).generate(REQUEST)
    assert reply.usage.output_tokens == provider.totals.output
    assert reply.usage.reasoning_tokens == provider.totals.reasoning
    assert reply.attempts == len(provider.calls) == 2


async def test_what_is_still_too_little_names_the_flag(
    provider: FakeProvider,
    make_runtime: Callable[..., Runtime],
    capsys: pytest.CaptureFixture[str],
) -> None:
    provider.reasoning_tokens = 100_000
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        model = registry.model(spec_of("vllm", provider))
        with pytest.raises(StructuredOutputError, match="--reasoning-tokens"):
            await model.generate(replace(REQUEST, schema=Choice))
        assert len(provider.calls) == 2
        reply = await model.generate(REQUEST)
        assert (reply.text, reply.stop_reason) == ("", StopReason.LENGTH)
    assert "--reasoning-tokens" in capsys.readouterr().err


async def test_a_limit_of_the_user_is_not_asked_for_twice_and_is_named(
    provider: FakeProvider,
    make_runtime: Callable[..., Runtime],
    capsys: pytest.CaptureFixture[str],
) -> None:
    provider.reasoning_tokens = 12_000
    spec = replace(spec_of("vllm", provider), thinking=Thinking(max_tokens=500))
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        reply = await registry.model(spec).generate(REQUEST)
    assert (reply.text, reply.stop_reason) == ("", StopReason.LENGTH)
    assert [call.max_tokens for call in provider.calls] == [500]
    assert "before any text; give it more with --max-tokens" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-mini", "gpt-4-turbo", "gpt-5.4", "o3"])
def test_a_model_that_is_known_not_to_think_gets_no_room(name: str) -> None:
    headroom = load_model_configs().info("openai", name).reasoning_headroom
    assert headroom == (HEADROOM if name == "o3" else 0)


class Endpoint:
    """Answers when the limit is at most `most`, else with an error; counts what it was asked."""

    def __init__(self, status: int, words: str, most: int, hidden: int = 0) -> None:
        self._error = status, words
        self._most = most
        self._hidden = hidden
        self.limits: list[int] = []

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        limit = ModelInfo().limit(request)
        self.limits.append(limit)
        if limit > self._most:
            status, words = self._error
            error = status_error("host", status, words.replace("{}", str(limit)))
            if error.kind is ErrorKind.QUOTA:
                raise EndpointDown(f"m is out of reach: {error}") from error
            raise error
        is_cut = limit < self._hidden
        usage = TokenUsage(10, min(limit, self._hidden), reasoning_tokens=min(limit, self._hidden))
        stop = StopReason.LENGTH if is_cut else StopReason.STOP
        return ChatReply("" if is_cut else "yes", usage, stop, "m")


@pytest.mark.parametrize(("status", "words"), REFUSALS)
async def test_a_limit_that_is_refused_is_lowered_and_stays_so(status: int, words: str) -> None:
    endpoint, said = Endpoint(status, words, most=6048), list[str]()
    room = Room(endpoint, ModelInfo(), name="vllm/m", say=said.append)
    request = replace(REQUEST, max_tokens=2200)
    for _ in range(2):
        assert (await room.generate(request)).text == "yes"
    assert endpoint.limits == [2200 + 8192, 2200 + 2048, 2200 + 2048]
    assert said == [
        "NOTE: vllm/m refuses 8,192 tokens for hidden reasoning; it gets 2,048 from now on"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ],
)
async def test_a_prompt_that_is_too_long_is_asked_once(words: str) -> None:
    endpoint = Endpoint(400, words, most=0)
    with pytest.raises(ProviderError):
        await Room(endpoint, ModelInfo(), name="m").generate(REQUEST)
    assert len(endpoint.limits) == 1


async def test_more_room_is_sought_as_far_as_the_endpoint_goes() -> None:
    endpoint = Endpoint(*REFUSALS[0], most=20_000, hidden=12_000)
    room = Room(endpoint, ModelInfo(), name="m", say=lambda line: None)
    for _ in range(2):
        assert (await room.generate(replace(REQUEST, max_tokens=2200))).text == "yes"
    assert endpoint.limits == [10_392, 34_968, 18_584, 18_584]


async def test_an_endpoint_that_has_no_more_room_gives_the_reply_that_it_gave() -> None:
    endpoint = Endpoint(*REFUSALS[0], most=11_000, hidden=12_000)
    reply = await Room(endpoint, ModelInfo(), name="m", say=lambda line: None).generate(
        replace(REQUEST, max_tokens=2200)
    )
    assert reply.stop_reason is StopReason.LENGTH
    assert endpoint.limits == [10_392, 34_968, 18_584]


async def test_a_known_context_bounds_the_room() -> None:
    endpoint = Endpoint(400, "", most=99_999, hidden=50_000)
    room = Room(endpoint, ModelInfo(context=16_384), name="m", say=lambda line: None)
    await room.generate(replace(REQUEST, max_tokens=2200))
    assert endpoint.limits[0] == 10_392
    assert 10_392 < endpoint.limits[1] <= 16_384
