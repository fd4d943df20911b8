"""Extracts text from messages, tool results and nodes of LangChain and LangGraph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    MessageLikeRepresentation,
    ToolMessage,
    convert_to_messages,
)
from pydantic import BaseModel

from exaid_core.integrations.feed import as_text
from mdagents_llm.reasoning_tags import without_reasoning

_OF_AGENTS = ("ai", "AIMessageChunk", "chat", "function", "tool")
_ROLES = frozenset({"ai", "assistant", "developer", "function", "human", "system", "tool", "user"})


@dataclass(slots=True)
class Step:
    """A graph node in progress."""

    inputs: object
    has_spoken: bool = False
    """Whether a model has said something in the node."""
    results: set[str] = field(default_factory=set)
    """Results of tools in the node."""
    error: BaseException | None = None
    """Exception already reported as the failure of a turn in the node; None without one."""


def content(message: BaseMessage) -> str:
    """Return the text or refusal of a whole message, without tagged reasoning."""
    return without_reasoning(piece(message))


def piece(message: BaseMessage) -> str:
    """Return the text or refusal of a piece of a message, in which a reasoning tag may be split."""
    refusal = message.additional_kwargs.get("refusal")
    return str(message.text) or (refusal if isinstance(refusal, str) else "")


def results(output: object) -> list[str]:
    """Return the result of a tool as texts."""
    if type(output).__name__ != "Command":  # from LangGraph, which may not be installed
        return [_result(output)]
    # The tool's changes of the state, but only its own messages, since it may repeat others.
    texts: list[str] = []
    for name, value in _changes(output):
        if isinstance(value, ToolMessage):
            texts.append(_result(value))
        elif isinstance(value, str):
            texts += _said(name, value)
    return texts


def update(outputs: object, step: Step) -> list[str]:
    """Return the new texts in a node's update of the state."""
    before = {key for value in _values(step.inputs) for key in _keys(value)}
    return [
        text
        for name, value in _changes(outputs)
        if before.isdisjoint(_keys(value)) and not _is_of_a_tool(name, value, step)
        for text in _said(name, value)
    ]


def _changes(outputs: object) -> Iterator[tuple[str, object]]:
    """Yield each value in an update of the state with the name of its field."""
    if type(outputs).__name__ == "Command":
        outputs = getattr(outputs, "update", None)
    state = _state(outputs)
    if state is not None:
        for name, value in state.items():
            # LangGraph's wrapper for a value that replaces the present one instead of extending it.
            value = getattr(value, "value", None) if type(value).__name__ == "Overwrite" else value
            for each in _items(value):
                yield name, each
        return
    for each in _items(outputs):
        if type(each).__name__ == "Command" or _state(each) is not None:
            yield from _changes(each)  # an item of a list of updates
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str):
            yield from _changes({each[0]: each[1]})
        else:
            yield "", each


def _values(state: object) -> Iterator[object]:
    """Yield the values of a state, including one that LangGraph passes to a tool."""
    for name, value in (_state(state) or {}).items():
        yield from _values(value) if name == "state" else _items(value)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) and not _role(value) else (value,)


def _keys(value: object) -> set[object]:
    """Return the keys by which a value of the state is recognized; equal values share one."""
    if isinstance(value, str):
        return {value}
    own = value.get("id") if isinstance(value, Mapping) else None
    own = value.id if isinstance(value, BaseMessage) else own
    return {id(value), own} if isinstance(own, str) and own else {id(value)}


def _is_of_a_tool(name: str, value: object, step: Step) -> bool:
    """Return whether a tool in the same step has already said a value."""
    message = _message(value)
    if isinstance(message, ToolMessage):
        is_told = message.status == "error" and step.error is not None
        return is_told or _result(message) in step.results
    if isinstance(value, str):
        return as_text(value) in step.results or not step.results.isdisjoint(_said(name, value))
    return False


def _result(output: object) -> str:
    if not isinstance(output, ToolMessage):
        return as_text(output)
    failed = "failed: " if output.status == "error" else ""
    return failed + as_text(output.text or output.content)


def _state(state: object) -> Mapping[str, object] | None:
    """Return the fields of a state; None if the object is not a state."""
    if isinstance(state, Mapping):
        return None if _role(state) else state
    if isinstance(state, BaseModel) and not isinstance(state, BaseMessage):
        return dict(state)
    if is_dataclass(state) and not isinstance(state, type):
        return {each.name: getattr(state, each.name, None) for each in fields(state)}
    return None


def _role(value: object) -> str:
    """Return the role in a message that is a dictionary or a pair; empty for anything else."""
    role: object = None
    if isinstance(value, tuple) and len(value) == 2:
        role = value[0]
    elif isinstance(value, Mapping) and "content" in value:
        role = value.get("role", value.get("type"))
    return role if isinstance(role, str) and role in _ROLES else ""


def _message(value: object) -> BaseMessage | None:
    """Return a message in any form that LangGraph takes; None for anything else.

    Graphs on other machines return dictionaries, for example.
    """
    if isinstance(value, BaseMessage):
        return value
    if not (role := _role(value)):
        return None
    if role == "tool" and isinstance(value, Mapping):
        value = {"tool_call_id": "", **value}
    return convert_to_messages([cast("MessageLikeRepresentation", value)])[0]


def _said(name: str, value: object) -> list[str]:
    if isinstance(value, str):
        text = as_text(value)
        return [f"{name}: {text}" if name else text] if text.strip() else []
    message = _message(value)
    if message is None or message.type not in _OF_AGENTS:
        return []
    text = as_text(content(message))
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    said = [text] if text.strip() else []
    return said + [f"{call['name']}: {as_text(call['args'])}" for call in calls]
