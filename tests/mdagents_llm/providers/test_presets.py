"""The providers of `model_configs.yaml`: found by name and key, and content with what they take."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import BaseModel, Field

from mdagents_llm.chat import ChatMessage, ChatRequest
from mdagents_llm.config import Environment, parse_environment
from mdagents_llm.endpoints import ModelSpec, Runtime, check_reachable
from mdagents_llm.errors import ConfigError, ErrorKind
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelChooser, ModelRegistry
from mdagents_llm.model_configs import ProviderInfo, load_model_configs
from mdagents_llm.providers.http_errors import status_error
from mdagents_llm.providers.refusals import is_refused
from tests.fake_provider import FakeProvider
from tests.mdagents_llm.providers.test_provider_contract import REQUEST, Choice

CONFIGS = load_model_configs()
COMPATIBLE = [name for name, info in CONFIGS.providers.items() if info.wire == "openai"]


def spec_of(name: str, provider: FakeProvider) -> ModelSpec:
    model = CONFIGS.providers[name].default_model or "some-model"
    return ModelSpec(name, model, provider.openai_base_url)


@pytest.mark.parametrize("name", COMPATIBLE)
async def test_a_server_that_refuses_schemas_seeds_and_temperatures_still_answers(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], rows: list[CallRow], name: str
) -> None:
    for refusal in ("400_schema_unsupported", "400_seed", "400_temperature"):
        provider.fail_next(refusal)
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        model = registry.model(spec_of(name, provider))
        for _ in range(2):
            reply = await model.generate(replace(REQUEST, schema=Choice))
            assert isinstance(reply.parsed, Choice)
    info = CONFIGS.info(name, CONFIGS.providers[name].default_model)
    first, last = provider.calls[0].body, provider.calls[-1].body
    assert ("response_format" in first) == info.native_schema
    assert (info.seed_field in first) == info.takes_seed
    assert not {"response_format", info.seed_field, "temperature"} & last.keys()
    refused = [row.outcome for row in rows if row.outcome != "ok"]
    assert refused == ["schema_unsupported"] * info.native_schema + ["setting_refused"] * (
        info.takes_seed + info.takes_temperature
    )


async def test_a_model_that_wants_the_other_name_for_the_limit_gets_it(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    asked: list[set[str]] = []

    async def pick(http: web.Request) -> web.Response:
        body = json.loads(await http.text())
        asked.append(body.keys() & {"max_tokens", "max_completion_tokens", "stream_options"})
        words = "Unsupported parameter: '{}' is not supported. Use 'max_completion_tokens' instead."
        for name in ("max_tokens", "stream_options"):
            if name in body:
                error = {"message": words.format(name), "code": "unsupported_parameter"}
                return web.json_response({"error": error}, status=400)
        chunk = {"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        return web.Response(
            text=f"data: {json.dumps({**chunk, 'usage': usage})}\n\n",
            content_type="text/event-stream",
        )

    async with (
        _serving("/v1/chat/completions", pick) as url,
        aclosing(ModelRegistry(make_runtime())) as registry,
    ):
        model = registry.model(ModelSpec("openai", "new-model", f"{url}/v1"))
        reply = await model.generate(REQUEST, lambda _: None)
    assert reply.text == "yes"
    assert asked == [
        {"max_tokens", "stream_options"}, {"max_completion_tokens", "stream_options"},
        {"max_completion_tokens"},
    ]  # fmt: skip
    assert [row.outcome for row in rows] == ["setting_refused", "setting_refused", "ok"]


@pytest.mark.parametrize(
    ("setting", "status", "message", "expected"),
    [
        ("seed", 422, "body.seed: Extra inputs are not permitted", True),
        ("temperature", 400, "`temperature` is deprecated for this model.", True),
        ("temperature", 400, "property 'temperature' is unsupported", True),
        ("temperature", 400, "temperature: range: 0..1", False),
        ("temperature", 400, "temperature must be at most 1 for this model", False),
        ("max_tokens", 400, "max_tokens is too large: this model supports at most 4096", False),
        ("seed", 500, "seed is not supported", False),
        ("seed", 400, "reseeding is not supported", False),
        ("seed", 422, "'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'", True),
        ("seed", 400, "Extra inputs are not permitted, field: 'seed', value: 1", True),
        ("seed", 400, "Unknown name \"seed\" at 'generation_config': Cannot find field.", True),
        ("temperature", 400, "Unsupported value: 'temperature' does not support 0.7", True),
        ("temperature", 400, "Unknown parameter: 'seed'. Supported are: model, temperature", False),
        ("temperature", 400, "a schema is not supported: {'messages': 'temperature'}", False),
        ("seed", 400, "schema not allowed " + "x" * 90 + " seed", False),
    ],
)
def test_a_refused_setting_is_told_from_a_refused_value(
    setting: str, status: int, message: str, expected: bool
) -> None:
    assert is_refused(setting, status, message) is expected


def test_what_an_error_is_about_goes_before_its_words() -> None:
    words = "Unsupported parameter: 'seed'; temperature is not supported either"
    assert is_refused("seed", 400, words, "seed")
    assert not is_refused("temperature", 400, words, "seed")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Model Not Exist", ErrorKind.MODEL_NOT_FOUND),
        ("gpt-9 is not a valid model ID", ErrorKind.MODEL_NOT_FOUND),
        ("Invalid model: mistral-huge", ErrorKind.MODEL_NOT_FOUND),
        ("the shape is wrong: {'input': 'api key of a context window'}", ErrorKind.BAD_REQUEST),
    ],
)
def test_words_of_an_error_400(words: str, kind: ErrorKind) -> None:
    assert status_error("x", 400, words).kind is kind


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic/claude-haiku-4-5"),
        ({"OPENROUTER_API_KEY": "k"}, "openrouter/openai/gpt-4o-mini"),
        ({"XAI_API_KEY": "k", "XAI_MODEL": "grok-9"}, "xai/grok-9"),
        ({"AZURE_OPENAI_API_KEY": "k"}, "local/smollm2-135m-instruct"),  # no deployment is named
        ({"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_DEPLOYMENT": "ours"}, "azure/ours"),
        (
            {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p"},
            "google/gemini-2.5-flash-lite",
        ),
        (
            {"GOOGLE_GENAI_USE_VERTEXAI": "on", "GOOGLE_CLOUD_PROJECT": "p"},
            "google/gemini-2.5-flash-lite",
        ),
        (
            {"GOOGLE_GENAI_USE_VERTEXAI": "no", "GOOGLE_CLOUD_PROJECT": "p"},
            "local/smollm2-135m-instruct",
        ),
    ],
)
def test_auto_finds_them(variables: dict[str, str], expected: str) -> None:
    assert str(ModelChooser(parse_environment(variables), CONFIGS).parse("auto")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("claude-opus-4-8", "anthropic/claude-opus-4-8"),
        ("vllm/Qwen/Qwen3-8B", "vllm/Qwen/Qwen3-8B"),
        ("openrouter/anthropic/claude-haiku-4.5", "openrouter/anthropic/claude-haiku-4.5"),
    ],
)
def test_a_name_finds_them(text: str, expected: str) -> None:
    assert str(ModelChooser(Environment(), CONFIGS).parse(text)) == expected


def test_a_provider_that_names_no_key_needs_none() -> None:
    configs = replace(CONFIGS, providers={"ours": ProviderInfo("openai", "http://127.0.0.1:1/v1")})
    check_reachable(ModelSpec("ours", "ward-7b"), Environment(), configs)


def test_a_server_of_ones_own_has_no_usual_model() -> None:
    with pytest.raises(ConfigError, match=r"^ollama has no default model: write ollama/NAME"):
        ModelChooser(Environment(), CONFIGS).parse("ollama")


@pytest.mark.parametrize("end", ["", "/", "/openai", "/openai/v1", "/openai/deployments/ours/"])
async def test_azure_is_found_by_any_part_of_its_address(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], end: str
) -> None:
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        address = f"http://127.0.0.1:{provider.port}{end}"
        reply = await registry.model(ModelSpec("azure", "ours", address)).generate(REQUEST)
    assert reply.text


class Graded(BaseModel):
    """A reply with limits that a schema for output does not have."""

    answer: Literal["A", "B"]
    confidence: float = Field(ge=0, le=1)
    reasons: list[str] = Field(min_length=2, max_length=3)


async def test_a_schema_for_output_has_what_the_api_knows(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], rows: list[CallRow]
) -> None:
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        spec = ModelSpec("anthropic", "claude-opus-5", provider.anthropic_base_url)
        reply = await registry.model(spec).generate(replace(REQUEST, schema=Graded))
    assert isinstance(reply.parsed, Graded)
    assert "output_config" in provider.calls[0].body
    assert {row.outcome for row in rows} <= {"ok"}, "no schema was refused"


def test_azure_without_an_address_says_what_to_set(make_runtime: Callable[..., Runtime]) -> None:
    registry = ModelRegistry(make_runtime(environment=Environment({"AZURE_OPENAI_API_KEY": "k"})))
    with pytest.raises(ConfigError, match="put AZURE_OPENAI_ENDPOINT=https://NAME"):
        registry.model(ModelSpec("azure", "ours"))


async def test_vertex_ai_is_called_by_a_project_with_the_credentials_of_its_service_account(
    provider: FakeProvider,
    make_runtime: Callable[..., Runtime],
    rows: list[CallRow],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def token(http: web.Request) -> web.Response:
        asked.append((await http.post())["grant_type"])
        return web.json_response({"access_token": "t", "expires_in": 3600, "token_type": "Bearer"})

    async with _serving("/token", token) as url:
        file = tmp_path / "account.json"
        file.write_text(json.dumps(_service_account(f"{url}/token")))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        variables = {
            "GOOGLE_GENAI_USE_VERTEXAI": "1",
            "GOOGLE_CLOUD_PROJECT": "our-project",
            "GOOGLE_CLOUD_LOCATION": "europe-west4",
        }
        runtime = make_runtime(environment=Environment(variables))
        async with aclosing(ModelRegistry(runtime)) as registry:
            spec = ModelSpec("google", "gemini-2.5-flash-lite", provider.gemini_base_url)
            reply = await registry.model(spec).generate(REQUEST)
    assert reply.text
    assert [row.outcome for row in rows] == ["ok"]
    assert asked == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


def test_vertex_ai_without_credentials_says_what_to_do(
    make_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")
    variables = {"GOOGLE_GENAI_USE_VERTEXAI": "1", "GOOGLE_CLOUD_PROJECT": "p"}
    registry = ModelRegistry(make_runtime(environment=Environment(variables)))
    with pytest.raises(ConfigError, match=r"^Vertex AI needs credentials.*nowhere\.json") as caught:
        registry.model(ModelSpec("google", "gemini-2.5-flash-lite"))
    assert "\n" not in str(caught.value)


async def test_marks_keep_what_prompts_share_and_change_no_word_of_them(
    provider: FakeProvider, make_runtime: Callable[..., Runtime]
) -> None:
    parts = ("exemplars\n\n", "question\n\n", "debate\n\n", "task")
    ends = (len(parts[0]), len("".join(parts[:2])), len("".join(parts[:3])))
    prompt = ChatMessage("user", "".join(parts), shared=ends)
    request = ChatRequest(messages=(ChatMessage("system", "s"), prompt), max_tokens=50)
    async with aclosing(ModelRegistry(make_runtime())) as registry:
        spec = ModelSpec("anthropic", "claude-haiku-4-5", provider.anthropic_base_url)
        await registry.model(spec).generate(request)
    (call,) = provider.calls
    assert call.messages == ("s", "".join(parts))
    blocks = call.body["messages"][0]["content"]
    assert [block["text"] for block in blocks] == list(parts)
    assert ["cache_control" in block for block in blocks] == [True, True, True, False]


def _service_account(token_uri: str) -> dict[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    return {
        "type": "service_account",
        "project_id": "our-project",
        "private_key_id": "1",
        "private_key": text,
        "client_email": "runner@our-project.test",
        "client_id": "1",
        "token_uri": token_uri,
    }


@asynccontextmanager
async def _serving(
    path: str, handler: Callable[[web.Request], Awaitable[web.Response]]
) -> AsyncIterator[str]:
    """Serve one address of this machine within the block."""
    app = web.Application()
    app.router.add_post(path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
