"""Agent loop: a model calls tools for a few rounds until it submits its draft."""

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
"""Maximum replies of a model in a turn; the last one must be the draft."""
CALCULATOR = "calculator"

_LONGEST_STEP = 80  # characters of a tool call's arguments in a progress message
_USES = TypeAdapter(ToolUse)
_STEPS = {
    "document_search": "searching documents",
    "document_reader": "reading",
    "document_statistics": "counting documents",
    CALCULATOR: "calculating",
}


@dataclass(frozen=True, slots=True)
class Drafted:
    """Result of an agent."""

    draft: dict[str, Any]
    """Fields of the draft in the requested form."""
    uses: Sequence[ToolUse]
    """Tool calls, in order."""
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
    """Let a model call tools until it submits a draft.

    A draft is sent back once if the required tool was not used, or if its calculation has numbers
    that come from neither the user nor a document. The next reply must then call that tool.

    Args:
        model: Chat model of the agent.
        tools: Tools that the model may call.
        messages: Messages of the prompt, system message first.
        draft: Model class of the draft.
        name: Name of the agent.
        required: Tool that must be used, `document_search` or the calculator; empty if none.
        on_step: Callback for progress messages.

    Raises:
        NoUsableAnswerError: The model did not submit a valid draft.
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
    """Middleware that limits the rounds, reports progress, and sends back unfounded drafts.

    Args:
        on_step: Callback for progress messages.
        required: Tool that must be used; None if none is required.
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
        """Call the model; in the last round it may only submit its draft."""
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
        return ModelResponse(response.result, written)  # plain JSON, which a checkpoint can hold

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Report the call, and store its artifact in a form that a checkpoint can hold."""
        call = request.tool_call
        said = ", ".join(str(value) for value in call["args"].values() if value not in (None, ""))
        said = shorten(said, _LONGEST_STEP, placeholder=" …")
        self._on_step(": ".join(filter(None, [_STEPS.get(call["name"], call["name"]), said])))
        result = await handler(request)
        if isinstance(result, ToolMessage) and isinstance(result.artifact, ToolUse):
            result.artifact = _USES.dump_python(result.artifact, mode="json")
        return result

    def problem_of(self, messages: Sequence[BaseMessage]) -> str:
        """Return why a draft is unfounded, as a sentence; empty if it is founded."""
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
    """Yield the texts whose numbers a calculation may use.

    The model's own text in this turn does not count. A tool result counts only if it quotes
    documents or is a calculation, so that an error message that repeats an invented number does not
    make it valid.
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
    """Return the messages of this turn, from the user's message on."""
    asked = [
        at
        for at, one in enumerate(messages)
        if isinstance(one, HumanMessage) and not one.additional_kwargs.get("sent_back")
    ]
    return messages[asked[-1] :]


def _draft_alone(response: ModelResponse[Any]) -> ModelResponse[Any]:
    """Drop the draft of a reply that also calls tools, because their results must come first."""
    if response.structured_response is None:
        return response
    message = next(one for one in response.result if isinstance(one, AIMessage))
    name = type(response.structured_response).__name__
    others = [call for call in message.tool_calls if call["name"] != name]
    if not others:
        return response
    return ModelResponse([message.model_copy(update={"tool_calls": others})])


def last_calculation(uses: Sequence[ToolUse]) -> ToolUse | None:
    """Return the last calculator call that returned a number."""
    return next((use for use in reversed(uses) if _value_of(use) is not None), None)


def _value_of(use: ToolUse) -> Decimal | None:
    return use.value if use.name == CALCULATOR else None
