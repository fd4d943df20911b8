"""An agent: a model that calls tools, a few rounds long, until it hands in its draft."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from textwrap import shorten
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import BaseModel, TypeAdapter

from demos.document_assistant.chat_prompts import PROMPTS
from demos.document_assistant.errors import NoUsableAnswerError
from demos.document_assistant.figures import unfounded
from demos.document_assistant.state import OnStep
from demos.document_assistant.tools import ToolUse
from mdagents_llm.errors import StructuredOutputError

MOST_ROUNDS = 6
"""Replies of a model in a turn. The last one can only be the draft."""
CALCULATOR = "calculator"

_LONGEST_STEP = 80  # characters of what a tool is called with
_USES = TypeAdapter(ToolUse)
_STEPS = {
    "document_search": "searching documents",
    "document_reader": "reading",
    "document_statistics": "counting documents",
    CALCULATOR: "calculating",
}


@dataclass(frozen=True, slots=True)
class Drafted:
    """What an agent has come to."""

    draft: dict[str, Any]
    """In the form that was asked for."""
    uses: Sequence[ToolUse]
    """Calls of tools, in their order."""
    problem: str
    """Why the draft cannot be reported; empty if it can."""


async def ask_agent(
    model: Any,
    tools: Sequence[BaseTool],
    messages: Sequence[BaseMessage],
    draft: type[BaseModel],
    *,
    name: str,
    required: str,
    on_step: OnStep,
) -> Drafted:
    """Let a model call tools until it hands in a draft.

    A draft before the required tool was used is sent back once, and so is one whose calculation has
    numbers that are neither the user's nor a document's; the next reply is a call of that tool.

    Args:
        model: The chat model.
        tools: What it may call.
        messages: The prompt, the system's message first.
        draft: The form of the draft.
        name: Of the agent.
        required: The tool that has to be used, `document_search` or the calculator; empty: none.
        on_step: See `OnStep`.

    Raises:
        NoUsableAnswerError: It handed in no draft that has the form.
    """
    system, *conversation = messages
    rounds = _Rounds(on_step, next((tool for tool in tools if tool.name == required), None))
    agent: Any = create_agent(
        model,
        list(tools),
        system_prompt=system.text,
        response_format=ToolStrategy(draft),
        middleware=[rounds],
        name=name,
    )
    try:
        end = await agent.ainvoke({"messages": conversation})
    except StructuredOutputError as error:
        raise NoUsableAnswerError(f"The model gave no usable answer: {error}.") from error
    written = end.get("structured_response")
    if written is None:
        raise NoUsableAnswerError("The model gave no answer in the form that was asked for.")
    problem = rounds.problem_of(end["messages"])
    return Drafted(written, _uses_in(end["messages"]), problem)


def _uses_in(messages: Sequence[BaseMessage]) -> list[ToolUse]:
    return [
        _USES.validate_python(message.artifact)
        for message in messages
        if isinstance(message, ToolMessage) and message.artifact is not None
    ]


class _Rounds(AgentMiddleware[Any, Any, Any]):
    """Bounds the loop of an agent, tells its steps, and sends back a draft without its tool.

    Args:
        on_step: See `OnStep`.
        required: The tool that has to be used, if there is one.
    """

    def __init__(self, on_step: OnStep, required: BaseTool | None) -> None:
        super().__init__()
        self._on_step = on_step
        self._required = required

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Ask the model, for nothing but its draft in the last round."""
        asked_before = sum(isinstance(one, AIMessage) for one in _of_this_turn(request.messages))
        if asked_before >= MOST_ROUNDS:
            raise NoUsableAnswerError(f"The model came to no answer in {MOST_ROUNDS} replies.")
        is_last = asked_before == MOST_ROUNDS - 1
        response = await handler(request.override(tools=[]) if is_last else request)
        response = _draft_alone(response)
        if response.structured_response is None:
            return response
        problem = self.problem_of(request.messages)
        if problem and not is_last and not _was_sent_back(request.messages):
            return await self._sent_back(request, handler, problem)
        written = response.structured_response.model_dump(mode="json")
        return ModelResponse(response.result, written)  # what a checkpoint can hold

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Tell of the call, and note what it was in a form that a checkpoint can hold."""
        call = request.tool_call
        said = ", ".join(str(value) for value in call["args"].values() if value not in (None, ""))
        said = shorten(said, _LONGEST_STEP, placeholder=" …")
        self._on_step(": ".join(filter(None, [_STEPS.get(call["name"], call["name"]), said])))
        result = await handler(request)
        if isinstance(result, ToolMessage) and isinstance(result.artifact, ToolUse):
            result.artifact = _USES.dump_python(result.artifact, mode="json")
        return result

    def problem_of(self, messages: Sequence[BaseMessage]) -> str:
        """Return what a draft stands on no ground for, in a sentence; empty if it has one."""
        if self._required is None:
            return ""
        uses = _uses_in(messages)
        if self._required.name != CALCULATOR:
            has_looked = any(use.name != CALCULATOR for use in uses)
            return "" if has_looked else "No document was looked at."
        last = last_calculation(uses)
        if last is None:
            return "No calculation was made."
        made_up = unfounded(last.expression, _given_to(messages))
        if made_up:
            return (
                f"The calculation has the number {made_up[0]}, which is neither in your message "
                "nor in a document that was read."
            )
        return ""

    async def _sent_back(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
        problem: str,
    ) -> ModelResponse[Any]:
        assert self._required is not None, "without it there is no problem"
        name = self._required.name
        nudge = HumanMessage(
            PROMPTS.render(f"use_{name}", problem=problem), additional_kwargs=_SENT_BACK
        )
        response = await handler(
            request.override(
                messages=[*request.messages, nudge],
                tools=[self._required],
                tool_choice=name,
                response_format=None,
            )
        )
        return ModelResponse([nudge, *response.result])


_SENT_BACK = {"sent_back": True}


def _given_to(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """Yield the texts whose numbers a calculation may take: not what the model says in this turn.

    A tool's result counts where it quotes documents or has calculated, so that a number that the
    model made up is not taken from an error message that repeats it.
    """
    this_turn = _of_this_turn(messages)
    yield from (one.text for one in messages[: len(messages) - len(this_turn)])
    for one in this_turn:
        if isinstance(one, HumanMessage) and not one.additional_kwargs.get("sent_back"):
            yield one.text
        elif isinstance(one, ToolMessage) and one.artifact is not None:
            use = _USES.validate_python(one.artifact)
            if use.value is not None:
                yield f"{use.value:f}"
            elif use.documents:
                yield one.text


def _was_sent_back(messages: Sequence[BaseMessage]) -> bool:
    return any(one.additional_kwargs.get("sent_back") for one in messages)


def _of_this_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return what came after the user's message, the last before the model's first call."""
    asked = [
        at
        for at, one in enumerate(messages)
        if isinstance(one, HumanMessage) and not one.additional_kwargs.get("sent_back")
    ]
    return messages[asked[-1] :]


def _draft_alone(response: ModelResponse[Any]) -> ModelResponse[Any]:
    """Return a reply without its draft if it also calls tools: their results come first."""
    if response.structured_response is None:
        return response
    message = next(one for one in response.result if isinstance(one, AIMessage))
    name = type(response.structured_response).__name__
    others = [call for call in message.tool_calls if call["name"] != name]
    if not others:
        return response
    return ModelResponse([message.model_copy(update={"tool_calls": others})])


def last_calculation(uses: Sequence[ToolUse]) -> ToolUse | None:
    """Return the last call of the calculator that gave a number."""
    return next((use for use in reversed(uses) if _value_of(use) is not None), None)


def _value_of(use: ToolUse) -> Decimal | None:
    return use.value if use.name == CALCULATOR else None
