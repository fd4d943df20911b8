"""Programs of LangGraph and LangChain, and what EXAID hears of them."""

from __future__ import annotations

import operator
import warnings
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolCall,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, create_react_agent

from exaid_core.integrations.feed import LONGEST_DATA
from exaid_core.integrations.langchain import ExaidCallback
from tests.exaid_core.integrations.overhearing import Ears, listening

QUESTION: Runnable[Any, str] = RunnableLambda(lambda state: "?")
PIECES = ["The troponin", " is raised: ", "2.4 ng/mL."]
TEXT = "".join(PIECES)


class State(TypedDict, total=False):
    case: str
    notes: Annotated[list[str], operator.add]
    plan: str


CASE: State = {"case": "chest pain"}


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


ASKED = {"messages": [HumanMessage("How is he?")]}


class PlainTalk(TypedDict):
    messages: Any
    report: str


class Speaker(BaseChatModel):
    """Says messages one after the other, in the chunks of each if there are several."""

    says: list[list[Any]]
    streaming: bool = False
    tells: bool = True
    """Whether it calls callbacks itself, as some integrations do; LangChain does it for others."""
    pause: Any = None
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "speaker"

    def _next(self) -> list[Any]:
        chunks = self.says[min(self.asked, len(self.says) - 1)]
        self.asked += 1
        return chunks

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        (message,) = self._next()
        if isinstance(message, BaseException):
            raise message
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for message in self._next():
            if isinstance(message, BaseException):
                raise message
            chunk = ChatGenerationChunk(message=message)
            if run_manager is not None and self.tells:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            if self.pause is not None:
                await self.pause()


def streams(*contents: Any, **settings: Any) -> Speaker:
    """Say one message in these chunks."""
    chunks = [AIMessageChunk(content=each) for each in contents]
    return Speaker(says=[chunks], streaming=True, **settings)


def says(*messages: Any) -> Speaker:
    """Say each message as a whole."""
    return Speaker(says=[[message] for message in messages], disable_streaming=True)


def calls(name: str, **arguments: Any) -> AIMessage:
    """A message that calls a tool."""
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id="call-1")])


def asks(model: Runnable[Any, Any]) -> Callable[[Any], Any]:
    """A node that notes what a model says of the case."""

    async def node(state: State) -> State:
        return {"notes": [str((await model.ainvoke(state["case"])).text)]}

    return node


def graph_of(**nodes: Any) -> Any:
    """One node after the other."""
    graph: Any = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in pairwise([START, *nodes, END]):
        graph.add_edge(before, after)
    return graph.compile()


async def hear(program: Any, state: Any, **config: Any) -> Ears:
    """What EXAID heard of one run of a program."""
    exaid, ears = listening()
    async with exaid:
        await program.ainvoke(state, config={**config, "callbacks": [ExaidCallback(exaid)]})
    assert exaid.tail_loss() == 0
    return ears


@tool
def troponin(patient: str) -> str:
    """Return the latest troponin."""
    if patient == "nobody":
        raise ValueError("there is no such patient")
    return "x" * 2 * LONGEST_DATA if patient == "long" else f"{TEXT} ({patient})"


def agent_with_tool(model: BaseChatModel, *tools: BaseTool) -> Any:
    """A doctor who calls tools until it answers."""

    async def node(state: Talk) -> Talk:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph: Any = StateGraph(Talk)
    graph.add_node("doctor", node)
    graph.add_node("tools", ToolNode(tools or [troponin], handle_tool_errors=True))
    graph.add_edge(START, "doctor")
    graph.add_conditional_edges(
        "doctor", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    graph.add_edge("tools", "doctor")
    return graph.compile()


def prebuilt(name: str | None, *messages: Any, tools: Any = ()) -> Any:
    """An agent of LangGraph's own, whose nodes are `agent` and `tools`."""

    class WithTools(Speaker):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    model = WithTools(says=[[message] for message in messages], disable_streaming=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it moves to another package
        return create_react_agent(model, list(tools) or [troponin], name=name)
