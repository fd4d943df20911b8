"""The adapter over the embedded model, whose replies a grammar holds to their form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field

from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.llm_registry import ModelRegistry
from tests.conftest import CACHE_DIR

pytestmark = pytest.mark.embedded


class Triage(BaseModel):
    """How urgent a case is."""

    reason: str
    level: Literal["emergency", "urgent", "routine"]
    signs: list[str] = Field(max_length=2)
    pain: int | None = Field(None, ge=0, le=10)


@tool
def heart_rate(
    patient: Literal["Ann", "Ben"], unit: Annotated[Literal["bpm", "Hz"], "of the rate"] = "bpm"
) -> str:
    """Return the heart rate of a patient."""
    return f"{patient}: 130 {unit}"


@tool
def remember(facts: dict[str, Any]) -> str:
    """Remember facts."""
    return "remembered"


@pytest.fixture
async def adapter(make_runtime: Callable[..., Runtime]) -> AsyncIterator[ChatModelAdapter]:
    registry = ModelRegistry(make_runtime(environment=Environment(cache_dir=CACHE_DIR)))
    model = registry.model(ModelSpec("local", "smollm2-135m-instruct"))
    yield ChatModelAdapter(model, max_tokens=40)
    await registry.aclose()


async def test_structured_output(adapter: ChatModelAdapter) -> None:
    triage = await adapter.with_structured_output(Triage).ainvoke("A man has crushing chest pain.")
    assert isinstance(triage, Triage)
    assert 0 < len(triage.reason) <= 160


async def test_text_and_its_stream(adapter: ChatModelAdapter) -> None:
    message = await adapter.ainvoke("Say hello.")
    streamed = [chunk.text async for chunk in adapter.astream("Say hello.")]
    assert len(streamed) > 2
    assert "".join(streamed) == message.text
    assert message.response_metadata["model_provider"] == "local"


async def test_a_loop_of_model_and_tools(adapter: ChatModelAdapter) -> None:
    calls = adapter.bind_tools([heart_rate, remember], tool_choice="heart_rate")
    answers = adapter.bind_tools([heart_rate, remember], tool_choice="none")

    async def model(state: MessagesState) -> dict[str, Any]:
        has_result = isinstance(state["messages"][-1], ToolMessage)
        return {"messages": [await (answers if has_result else calls).ainvoke(state["messages"])]}

    def what_next(state: MessagesState) -> str:
        last = state["messages"][-1]
        return "tools" if isinstance(last, AIMessage) and last.tool_calls else END

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([heart_rate, remember]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", what_next, ["tools", END])
    graph.add_edge("tools", "model")
    asked = {"messages": [HumanMessage("How fast does Ann's heart beat?")]}
    _, call, *results, answer = (await graph.compile().ainvoke(asked))["messages"]
    assert {one["name"] for one in call.tool_calls} == {"heart_rate"}
    assert [one.tool_call_id for one in results] == [one["id"] for one in call.tool_calls]
    assert all("130" in one.text for one in results)
    assert answer.text


async def test_the_model_may_answer_or_call(adapter: ChatModelAdapter) -> None:
    message = await adapter.bind_tools([heart_rate, remember]).ainvoke("How are you?")
    assert bool(message.text) != bool(message.tool_calls)
