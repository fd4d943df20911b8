"""The ReAct loop: a model thinks, calls tools, reads their results, and finally answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from demos.medagen.schemas import ActionStart, Event, Level, Observation, Thought
from demos.medagen.tools import Toolbox
from demos.toolkit.guard import untrusted

MOST_ITERATIONS = 5
"""Maximum replies of the model in a turn; the last one must be the answer."""
ANSWER = "final_answer"

_IN_FENCES = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_LONGEST_RESULT = 2_500  # characters of a tool result in the prompt


class Draft(BaseModel):
    """What the model says in the end. Nothing of it is told to a user unchecked."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    triage_level: Level
    symptom_summary: str = Field(min_length=1, max_length=2_000)
    red_flags: list[str] = Field(default=[], max_length=20)
    suspected_conditions: list[str] = Field(default=[], max_length=10)
    recommendation: str = Field(default="", max_length=4_000)


class NoDraftError(Exception):
    """The model did not give an answer that can be parsed."""


_ANSWER_TOOL = {
    "type": "function",
    "function": {
        "name": ANSWER,
        "description": "Give the result of the triage. Call this when you are done.",
        "parameters": Draft.model_json_schema() | {"description": ""},
    },
}


async def react(
    model: BaseChatModel,
    toolbox: Toolbox,
    messages: Sequence[BaseMessage],
    on_event: Callable[[Event], None],
) -> Draft:
    """Run the loop until the model answers.

    Args:
        model: Chat model that reasons.
        toolbox: Tools of the turn.
        messages: Messages of the prompt.
        on_event: Callback for thoughts, tool calls and results as they occur.

    Raises:
        NoDraftError: The model did not give an answer that can be parsed.
        ProviderError: The model could not be called.
    """
    talk = list(messages)
    tools = [*toolbox.offered, _ANSWER_TOOL]
    thinking = model.bind_tools(tools, tool_choice="any")
    answering = model.bind_tools([_ANSWER_TOOL], tool_choice=ANSWER)
    for number in range(1, MOST_ITERATIONS + 1):
        reply = await (answering if number == MOST_ITERATIONS else thinking).ainvoke(talk)
        assert isinstance(reply, AIMessage)
        if not reply.tool_calls:
            return _draft_in(reply.text)
        talk.append(reply)
        for call in reply.tool_calls:
            if call["name"] == ANSWER:
                return _draft_of(call["args"])
            talk.append(await _observed(call, reply.text, toolbox, on_event))
    raise NoDraftError(f"the model called tools in all {MOST_ITERATIONS} replies")


async def _observed(
    call: ToolCall, said: str, toolbox: Toolbox, on_event: Callable[[Event], None]
) -> ToolMessage:
    name, arguments = call["name"], dict(call["args"])
    thought = str(arguments.pop("thought", "") or said).strip()
    if thought:
        on_event(Thought(text=thought))
    on_event(ActionStart(tool=name, input=arguments))
    output = await toolbox.call(name, arguments)
    on_event(Observation(tool=name, output=output))
    text = json.dumps(output, ensure_ascii=False)
    fenced = untrusted(text, f"result of {name}", limit=_LONGEST_RESULT)
    return ToolMessage(fenced, tool_call_id=call["id"] or name, name=name)


def _draft_in(text: str) -> Draft:
    """Return the draft in a text, which may be inside a code fence."""
    fenced = _IN_FENCES.search(text)
    try:
        read: Any = json.loads(fenced.group(1) if fenced else text)
    except ValueError:
        raise NoDraftError("the answer of the model is no JSON") from None
    return _draft_of(read)


def _draft_of(read: object) -> Draft:
    try:
        return Draft.model_validate(read)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "answer"
        raise NoDraftError(f"the answer of the model has no usable {where}") from None
