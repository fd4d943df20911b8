"""LangChain's standard suite for chat models, over the fake provider."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from mdagents_llm.chat import ChatModel
from mdagents_llm.endpoints import Runtime
from mdagents_llm.langchain.waiting import wait_for
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.llm_registry import ModelRegistry
from tests.fake_provider import FakeProvider, SeenRequest

pytestmark = [
    pytest.mark.sweep,
    # stream_events(version="v3") is under test, and new.
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning"),
]


class OverTheFakeProvider:
    """A model of one endpoint of the fake provider, for each test of the suite."""

    spec: ClassVar[str]
    wrapped: ChatModel

    @pytest.fixture(autouse=True)
    async def _wrap(
        self,
        request: pytest.FixtureRequest,
        make_runtime: Callable[..., Runtime],
        provider: FakeProvider,
    ) -> AsyncIterator[None]:
        script(provider)
        registry = ModelRegistry(make_runtime())
        self.wrapped = registry.model(request.getfixturevalue(self.spec))
        yield
        # In the loop to which its connections belong.
        if inspect.iscoroutinefunction(request.function):
            await registry.aclose()
        else:
            wait_for(registry.aclose())

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatModelAdapter

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": self.wrapped}


def script(provider: FakeProvider) -> None:
    """Let the fake provider call tools as a model would that does what it is told."""

    def calls(**arguments: object) -> dict[str, Any]:
        return {"reply": {"tool_calls": [{"args": arguments}]}}

    def has_tools(request: SeenRequest) -> bool:
        return "reply" in (request.schema or {}).get("properties", {})

    def customer(request: SeenRequest) -> dict[str, Any]:
        _, name, _ = request.messages[-1].split("'")
        return calls(customer_name=name)

    provider.when("magic_function(3)", calls(input=3))
    provider.when("Create a customer", customer)
    provider.when(lambda seen: has_tools(seen) and "weather in" in seen.text, calls())


class Integration(OverTheFakeProvider, ChatModelIntegrationTests):
    """The suite of calls."""

    @property
    def supports_model_override(self) -> bool:
        return False

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supported_usage_metadata_details(self) -> Any:
        details = ["reasoning_output", "cache_read_input"]
        return {"invoke": details, "stream": details}

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> Any:
        return self._ask(stream=stream)

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> Any:
        return self._ask(stream=stream)

    def _ask(self, *, stream: bool) -> Any:
        model = ChatModelAdapter(self.wrapped)
        if not stream:
            return model.invoke("Hello")
        first, *more = model.stream("Hello")
        return sum(more, start=first)


class TestUnitOfOpenAI(OverTheFakeProvider, ChatModelUnitTests):
    spec = "openai_spec"


class TestUnitOfGemini(OverTheFakeProvider, ChatModelUnitTests):
    spec = "gemini_spec"


class TestIntegrationOfOpenAI(Integration):
    spec = "openai_spec"


class TestIntegrationOfGemini(Integration):
    spec = "gemini_spec"
