"""Which model a role gets."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.config import Environment, LLMRole, parse_environment
from mdagents_llm.endpoints import ModelSpec, Runtime, check_reachable
from mdagents_llm.errors import ConfigError, ProviderError
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import ModelChooser, ModelRegistry, get_llm
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.providers.gemini_client import GeminiClient
from mdagents_llm.providers.sending import goes_around_proxies
from mdagents_llm.wire import Endpoint


def chooser(base_url: str = "", **variables: str) -> ModelChooser:
    return ModelChooser(parse_environment(variables), load_model_configs(), base_url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gemini-2.5-flash-lite", "google/gemini-2.5-flash-lite"),
        ("gpt-4o-mini", "openai/gpt-4o-mini"),
        ("o3", "openai/o3"),
        ("llama-3.3-70b-versatile", "groq/llama-3.3-70b-versatile"),
        ("gpt-oss-120b", "groq/openai/gpt-oss-120b"),
        ("groq/openai/gpt-oss-20b", "groq/openai/gpt-oss-20b"),
        ("openai/some-new-model", "openai/some-new-model"),
        ("local", "local/smollm2-135m-instruct"),
        ("local/models/other.gguf", "local/models/other.gguf"),
        ("google", "google/gemini-2.5-flash-lite"),
    ],
)
def test_a_name_finds_its_provider(text: str, expected: str) -> None:
    assert str(chooser().parse(text)) == expected


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, r"or choose the model 'local', which needs none$"),
        ({"GROQ_API_KEY": "k"}, r"choose a model of groq \(there is a key\), or the model 'local'"),
    ],
)
def test_a_missing_key_says_what_would_work(variables: dict[str, str], message: str) -> None:
    environment = parse_environment(variables)
    with pytest.raises(ConfigError, match=message):
        check_reachable(ModelSpec("openai", "gpt-4o"), environment, load_model_configs())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        # Public reports: OpenBMB/ChatDev 312, openai-python 745, screenshot-to-code 130.
        ("openai/gpt-4o", "OPENAI_API_BASE"),
        ("openai/gpt-4o", "OPENAI_API_BASE_URL"),
        ("openai/gpt-4o", "openai_api_base"),
        ("openai/gpt-4o", "OPENAI_BASE_URl"),
        ("openai/gpt-4o", "OPENAI_BASE_URI"),
        ("openai/gpt-4o", "OPENAI_BASEURL"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_URL"),  # LangChain's
        ("google/gemini-2.5-flash", "GEMINI_API_BASE"),  # LiteLLM's
        ("mistral/mistral-small", "MISTRAL_API_BASE"),
    ],
)
def test_a_variable_that_names_an_endpoint_in_vain_is_refused(model: str, name: str) -> None:
    provider, _, model = model.partition("/")
    configs = load_model_configs()
    read = configs.providers[provider].base_url_variable
    variables = {f"{provider.upper()}_API_KEY": "test-key", name: "http://127.0.0.1:8000/v1"}
    spec = ModelSpec(provider, model)
    with pytest.raises(ConfigError, match=f"^{name} in the environment is not read, .* to {read}"):
        check_reachable(spec, parse_environment(variables), configs)
    own = ModelSpec(provider, model, "http://127.0.0.1:8001/v1")
    check_reachable(own, parse_environment(variables), configs)
    variables[read] = own.base_url
    check_reachable(spec, parse_environment(variables), configs)


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        ("openai/gpt-4o", "OPENAI_API_BASE", "https://api.openai.com/v1/"),
        ("openai/gpt-4o", "OPENAI_API_BASE", "https://api.openai.com:443/v1"),
        ("openai/gpt-4o", "OPENAI_API_BASE", "api.openai.com/v1"),
        ("google/g", "GEMINI_BASE_URL", "https://generativelanguage.googleapis.com/v1beta/openai/"),
        ("ollama/some-model", "OLLAMA_API_BASE", "http://localhost:11434"),
        ("vllm/some-model", "VLLM_API_BASE", "http://10.0.0.9:8000/v1"),
        ("openai/gpt-4o", "OPENAI_MODELS", "gpt-4o"),
        ("openai/gpt-4o", "ANTHROPIC_API_URL", "http://127.0.0.1:8000"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_VERTEX_BASE_URL", "http://127.0.0.1:8000"),
        ("xai/grok-4.3", "ZAI_BASE_URL", "http://127.0.0.1:8000"),
        ("vllm/some-model", "LLM_BASE_URL", "http://127.0.0.1:8001"),
        ("ollama/some-model", "OLLAMA_HOST", "0.0.0.0:11434"),
    ],
)
def test_a_variable_of_another_program_is_left_alone(model: str, name: str, value: str) -> None:
    provider, _, model = model.partition("/")
    variables = {f"{provider.upper()}_API_KEY": "test-key", name: value}
    check_reachable(ModelSpec(provider, model), parse_environment(variables), load_model_configs())


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file or directory"), ("no PEM", "it has no certificates")]
)
def test_a_file_without_certificates_is_refused_before_a_call(
    content: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    environment = parse_environment({"OPENAI_API_KEY": "test-key"})
    configs = load_model_configs()
    with pytest.raises(ConfigError, match=rf"SSL_CERT_FILE is .*ca\.pem .*\({why}\)"):
        check_reachable(ModelSpec("openai", "gpt-4o"), environment, configs)
    plain = ModelSpec("openai", "ward-7b", base_url="http://127.0.0.1:8000/v1")
    check_reachable(plain, environment, configs)


def test_a_log_of_keys_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Public report: python/cpython 90480.
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "none" / "log"))
    environment = parse_environment({"OPENAI_API_KEY": "test-key"})
    spec, configs = ModelSpec("openai", "gpt-4o"), load_model_configs()
    with pytest.raises(ConfigError, match=r"^SSLKEYLOGFILE is .*/log .*\(No such file or dir"):
        check_reachable(spec, environment, configs)
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "log"))
    check_reachable(spec, environment, configs)


@pytest.mark.parametrize(
    ("listed", "is_excepted"),
    [
        ("127.0.0.0/8", True),
        ("http://127.0.0.1", True),
        ("http://127.0.0.1:8000", True),
        ("10.0.0.1, 127.0.0.0/8", True),
        ("10.0.0.0/8", False),
        ("https://127.0.0.1", False),
        ("127.0.0.0/99", False),
        ("10.0.0.1,*", True),
        ("all://127.0.0.1", True),
        ("http://127.0.0.1:8001", False),
        ("http://127.0.0.1:port", False),
        ("::1/128", False),
    ],
)
def test_networks_and_urls_are_excepted_from_proxies(
    listed: str, is_excepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As curl, Go and httpx2 read NO_PROXY.
    monkeypatch.setattr("mdagents_llm.endpoints.find_spec", lambda name: None)
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", listed)
    url = "http://127.0.0.1:8000/v1"
    assert goes_around_proxies(Endpoint(url, "", 1.0)) == is_excepted
    with nullcontext() if is_excepted else pytest.raises(ConfigError, match="SOCKS"):
        check_reachable(ModelSpec("openai", "m", url), parse_environment({}), load_model_configs())


@pytest.mark.parametrize(
    ("name", "address", "why"),
    [
        # Public reports: OpenHands-CLI 632, trae-agent 167, YouDub-webui 75.
        ("ALL_PROXY", "socks5://127.0.0.1:1080", "ALL_PROXY is a SOCKS proxy, .*socksio"),
        ("https_proxy", "socks4://10.0.0.1:1080", "HTTPS_PROXY must be the address of a proxy"),
        ("HTTP_PROXY", "http://user:secret@10.0.0.1:abc", "HTTP_PROXY must be the address"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_before_a_call(
    name: str, address: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdagents_llm.endpoints.find_spec", lambda name: None)
    monkeypatch.setenv(name, address)
    environment = parse_environment({"OPENAI_API_KEY": "test-key"})
    configs = load_model_configs()
    with pytest.raises(ConfigError, match=why) as caught:
        check_reachable(ModelSpec("openai", "gpt-4o"), environment, configs)
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    plain = ModelSpec("openai", "ward-7b", base_url="http://127.0.0.1:8000/v1")
    check_reachable(plain, environment, configs)
    assert goes_around_proxies(Endpoint("http://127.0.0.1:8000/v1", "", 1.0))
    GeminiClient(Endpoint("http://127.0.0.1:8000/", "test-key", 1.0))
    assert goes_around_proxies(Endpoint("http://10.0.0.2:8000/v1", "", 1.0, is_own=True))
    assert not goes_around_proxies(Endpoint("http://10.0.0.2:8000/v1", "", 1.0))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gtp-4o-mini", "gpt-4o-mini"), ("gemni-2.5-flash", "gemini-2.5-flash"),
     ("opnai/gpt-4o", "openai/gpt-4o"), ("mystery", None)],
)  # fmt: skip
def test_a_mistyped_model_brings_the_right_one(name: str, meant: str | None) -> None:
    ending = "" if meant is None else f"; did you mean '{meant}'?"
    with pytest.raises(ConfigError) as caught:
        chooser().parse(name)
    assert str(caught.value).endswith(f"(--model-base-url){ending}")


def test_an_unknown_name_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"unknown model 'mystery-7b'.*provider/name"):
        chooser().parse("mystery-7b")


def test_an_endpoint_of_ones_own_takes_any_name() -> None:
    url = "http://127.0.0.1:9/v1"
    for name in ("Qwen/Qwen3-8B", "google/gemma-3-27b-it", "gpt-oss-120b", "local"):
        assert chooser(url).parse(name) == ModelSpec("openai", name, url)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "local/smollm2-135m-instruct"),
        ({"GROQ_API_KEY": "k"}, "groq/openai/gpt-oss-120b"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "m"}, "openai/m"),
        ({"GROQ_API_KEY": "k", "genai_api_key": "k"}, "google/gemini-2.5-flash-lite"),
        ({"GROQ_API_KEY": "k", "openai_api_key": "k"}, "openai/gpt-4o-mini"),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "gpt-5.4"}, "openai/gpt-5.4"),
        ({"OPENAI_API_KEY": "k", "MAS_LLM_PROVIDER": "groq"}, "groq/openai/gpt-oss-120b"),
        ({"MAS_LLM_PROVIDER": "groq", "MAS_LLM_MODEL": "m"}, "groq/m"),
    ],
)
def test_auto_takes_what_there_is_a_key_for(variables: dict[str, str], expected: str) -> None:
    assert str(chooser(**variables).parse("auto")) == expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "openai/team"),
        ({"GOOGLE_API_KEY": "k"}, "google/gemini-2.5-flash-lite"),
        ({"GOOGLE_API_KEY": "k", "SUMMARIZER_LLM_PROVIDER": "groq"}, "groq/openai/gpt-oss-120b"),
        ({"SUMMARIZER_LLM_MODEL": "gemini-2.5-pro"}, "google/gemini-2.5-pro"),
    ],
)
def test_the_summarizer_goes_by_environment_then_defaults_with_a_key_then_team(
    variables: dict[str, str], expected: str
) -> None:
    team = ModelSpec("openai", "team")
    assert str(chooser(**variables).for_role(LLMRole.SUMMARIZER, team)) == expected


def test_a_wrong_provider_in_the_environment_is_named() -> None:
    with pytest.raises(ConfigError, match="MAS_LLM_PROVIDER is 'gogle'"):
        chooser(MAS_LLM_PROVIDER="gogle").parse("auto")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ModelSpec("openai", "gpt-4o"), "no key for openai: put OPENAI_API_KEY"),
        (ModelSpec("google", "gemini-x"), "no key for google: put GOOGLE_API_KEY"),
        (ModelSpec("local", "nowhere.gguf"), "there is no GGUF file nowhere.gguf"),
    ],
)
def test_what_cannot_be_reached_is_refused_before_any_call(spec: ModelSpec, message: str) -> None:
    registry = ModelRegistry(Runtime(Environment(), Ledger()))
    with pytest.raises(ConfigError, match=message):
        registry.model(spec)


def test_get_llm_needs_a_key_for_what_the_environment_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMMARIZER_LLM_PROVIDER", "groq")
    with pytest.raises(ConfigError, match="no key for groq"):
        get_llm(LLMRole.SUMMARIZER)


def test_get_llm_takes_the_name_of_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert getattr(get_llm("mas"), "name", "") == getattr(get_llm(LLMRole.MAS), "name", None)
    with pytest.raises(ConfigError, match="no role 'doctor'; choose mas, summarizer, buffer_agent"):
        get_llm("doctor")


def test_keys_are_not_shown() -> None:
    environment = parse_environment({"OPENAI_API_KEY": "sk-secret"})
    assert "secret" not in repr(environment)


@pytest.mark.parametrize(
    ("provider", "name", "field", "value"),
    [
        ("openai", "gpt-4o-mini", "takes_temperature", True),
        ("openai", "gpt-5-mini-2025-08-07", "takes_temperature", False),
        ("openai", "gpt-4o-mini-2024-07-18", "max_tokens_field", "max_completion_tokens"),
        ("openai", "anything-else", "max_tokens_field", "max_tokens"),
        ("google", "gemini-9-flash", "price", None),
    ],
)
def test_models_are_found_by_name_or_by_start(
    provider: str, name: str, field: str, value: Any
) -> None:
    assert getattr(load_model_configs().info(provider, name), field) == value


class Known:
    """A cache that has a reply to everything, and notes what it is asked for."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def claim(self, key: str) -> ChatReply:
        self.keys.append(key)
        return ChatReply("C", TokenUsage(1, 1), StopReason.STOP, "model")

    def put(self, key: str, reply: ChatReply) -> None: ...
    def put_error(self, key: str, error: ProviderError) -> None: ...
    def release(self, key: str) -> None: ...


async def test_weights_under_an_earlier_name_get_no_replies_of_the_earlier_ones(
    tmp_path: Path,
) -> None:
    gguf, cache = tmp_path / "model.gguf", Known()
    for content in (b"GGUF 1", b"GGUF 2", b"GGUF 1"):
        gguf.write_bytes(content)
        registry = ModelRegistry(Runtime(Environment(), Ledger(), replies=cache))
        asked = ChatRequest((ChatMessage("user", "Which?"),), max_tokens=9)
        assert (await registry.model(ModelSpec("local", str(gguf))).generate(asked)).text == "C"
    first, second, third = cache.keys
    assert first == third != second
