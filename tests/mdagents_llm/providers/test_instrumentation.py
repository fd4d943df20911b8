"""What wraps the vendors' SDKs sees model, messages and tokens of each call.

OpenInference is a requirement of development: `pip install openinference-instrumentation-openai`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from typing import Any

import pytest
from anthropic import _base_client as anthropic_client
from google.genai._api_client import BaseApiClient
from inspect_ai import Task, eval_async
from inspect_ai.agent import Agent, AgentState, agent, agent_bridge, as_solver
from inspect_ai.agent._bridge import bridge
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from openai import AsyncOpenAI, OpenAI
from openai import _base_client as openai_client
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.chat import ChatCompletion
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mdagents_llm.chat import ChatMessage, ChatModel, ChatRequest
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.providers import typed_calls
from tests.fake_provider import FakeProvider

REQUEST = ChatRequest(messages=(ChatMessage("user", "Which vitamin?"),), max_tokens=200)


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Spans of OpenInference, while it wraps the SDK."""
    instrumentation = pytest.importorskip("openinference.instrumentation.openai")
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = instrumentation.OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()
    for client in (OpenAI, AsyncOpenAI):  # it leaves a copy of the inherited method
        del client.request


@pytest.fixture
async def open_model(
    make_runtime: Callable[..., Runtime], provider: FakeProvider
) -> AsyncIterator[Callable[[], ChatModel]]:
    """Opens a model of the fake provider, after the SDK was wrapped."""
    registry = ModelRegistry(make_runtime())
    yield lambda: registry.model(ModelSpec("openai", "gpt-4o-mini", provider.openai_base_url))
    await registry.aclose()


@pytest.mark.parametrize("streamed", [False, True])
async def test_openinference_sees_model_messages_and_tokens(
    streamed: bool, spans: InMemorySpanExporter, open_model: Callable[[], ChatModel]
) -> None:
    deltas: list[str | None] = []
    reply = await open_model().generate(REQUEST, deltas.append if streamed else None)
    (span,) = spans.get_finished_spans()
    seen: dict[str, Any] = dict(span.attributes or {})
    assert span.name == "ChatCompletion"
    assert seen["llm.model_name"].startswith("gpt-4o-mini")
    assert seen["llm.input_messages.0.message.content"] == "Which vitamin?"
    assert seen["llm.output_messages.0.message.content"] == reply.text
    assert seen["llm.token_count.prompt"] == reply.usage.input_tokens
    assert seen["llm.token_count.completion"] == reply.usage.output_tokens


async def test_a_wrapper_of_the_method_sees_each_call(
    open_model: Callable[[], ChatModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry, Langfuse, MLflow, Sentry and others replace `AsyncCompletions.create`."""
    seen: list[Any] = []
    own = AsyncCompletions.create

    @wraps(own)
    async def create(*args: Any, **kwargs: Any) -> Any:
        seen.append((kwargs, reply := await own(*args, **kwargs)))
        return reply

    monkeypatch.setattr(AsyncCompletions, "create", create)
    model = open_model()
    reply = await model.generate(REQUEST)
    await model.generate(REQUEST, lambda _: None)
    (asked, given), (streamed, _) = seen
    assert (asked["model"], asked["messages"][0]["content"]) == ("gpt-4o-mini", "Which vitamin?")
    assert isinstance(given, ChatCompletion)
    assert given.usage
    assert given.usage.prompt_tokens == reply.usage.input_tokens
    assert streamed["stream"] is True


async def test_a_model_heeds_only_the_method_that_it_would_call(
    make_runtime: Callable[..., Runtime],
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenTelemetry wraps with wrapt, whose wrappers seem to be the functions that they wrap."""
    wrapt = pytest.importorskip("wrapt")
    monkeypatch.setattr(AsyncResponses, "create", AsyncResponses.create)  # to restore it
    seen: list[str] = []

    def note(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        seen.append(kwargs["model"])
        return wrapped(*args, **kwargs)

    registry = ModelRegistry(make_runtime())
    try:
        wrapt.wrap_function_wrapper("openai.resources.responses", "AsyncResponses.create", note)
        for api in ("chat", "responses"):
            spec = ModelSpec("openai", f"gpt-5-{api}", provider.openai_base_url, api=api)
            await registry.model(spec).generate(REQUEST)
    finally:
        await registry.aclose()
    assert seen == ["gpt-5-responses"]


def test_chat_completions_do_not_load_the_responses_api() -> None:
    """It takes 30 ms of each start."""
    program = """
import sys
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.openai_chat import OpenAIChat
from openai import AsyncOpenAI
OpenAIChat(AsyncOpenAI(api_key="key", base_url="http://127.0.0.1:1"), "any", ModelInfo())
sys.exit("openai.resources.responses.responses" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Inspect's own
async def test_inspects_bridge_answers_in_place_of_the_endpoint(
    make_runtime: Callable[..., Runtime], provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agent_bridge` takes calls of the model `inspect`; it takes no streams."""
    for client in (openai_client.AsyncAPIClient, anthropic_client.AsyncAPIClient):
        monkeypatch.setattr(client, "request", client.request)  # the bridge wraps it for good
    for method in ("async_request", "async_request_streamed"):
        monkeypatch.setattr(BaseApiClient, method, vars(BaseApiClient)[method])
    monkeypatch.setattr(bridge, "_patch_initialised", False)

    @agent
    def ours() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            async with agent_bridge(state) as bridged:
                registry = ModelRegistry(make_runtime())
                spec = ModelSpec("openai", "inspect", provider.openai_base_url)
                reply = await registry.model(spec).generate(REQUEST)
                await registry.aclose()
                assert reply.text == "Vitamin C."
                assert reply.usage.input_tokens > 0
                return bridged.state

        return execute

    output = ModelOutput.from_content("mockllm/model", "Vitamin C.")
    output.usage = ModelUsage(input_tokens=5, output_tokens=3, total_tokens=8)
    model = get_model("mockllm/model", custom_outputs=[output])
    task = Task(dataset=[Sample("?")], solver=as_solver(ours()))
    (log,) = await eval_async(task, model=model, log_dir="logs")
    assert log.status == "success", log.error
    assert not provider.calls


def test_the_setting_decides_before_what_is_seen() -> None:
    def own() -> None: ...

    assert not typed_calls.wanted({}, "providers", own)
    assert typed_calls.wanted({}, "openai", own), "a function of another package wraps"
    assert typed_calls.wanted({"LLM_TYPED_CALLS": "1"}, "providers", own)
    assert not typed_calls.wanted({"LLM_TYPED_CALLS": "0"}, "openai", own)
