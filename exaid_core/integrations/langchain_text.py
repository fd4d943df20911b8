"""What messages, results of tools and nodes of LangChain and LangGraph say, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

from exaid_core.integrations.feed import as_text

_OF_AGENTS = ("ai", "AIMessageChunk", "chat", "function", "tool")
_ROLES = ("assistant", "ai", "tool")


@dataclass(slots=True)
class Step:
    """A node of a graph at work."""

    inputs: object
    has_spoken: bool = False
    """Whether a model has said something in it."""
    results: set[str] = field(default_factory=set)
    """Results of tools in it."""
    error: BaseException | None = None
    """Told as the failure of a turn in it."""


def content(message: BaseMessage) -> str:
    """Return what a message says: its text, and why it refuses, but no reasoning."""
    refusal = message.additional_kwargs.get("refusal")
    return str(message.text) or (refusal if isinstance(refusal, str) else "")


def result(output: object) -> str:
    """Return the result of a tool as text."""
    if isinstance(output, ToolMessage):
        failed = "failed: " if output.status == "error" else ""
        return failed + as_text(output.text or output.content)
    if type(output).__name__ == "Command":  # LangGraph's, which need not be installed
        return "\n".join(update(output, Step(None)))
    return as_text(output)


def update(outputs: object, step: Step) -> list[str]:
    """Return what a node says in its update of the state: what was not there before."""
    if type(outputs).__name__ == "Command":
        outputs = getattr(outputs, "update", None)
    known, new = _state(step.inputs), _state(outputs)
    if not new and not isinstance(outputs, Mapping):
        new = {"": outputs}
    before = {key for value in known.values() for each in _items(value) for key in _keys(each)}
    texts: list[str] = []
    for name, value in new.items():
        for each in _items(value):
            if before.isdisjoint(_keys(each)) and not _is_of_a_tool(each, step):
                texts += _said(name, each)
    return texts


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)


def _keys(value: object) -> set[object]:
    """Return what makes a value of the state the same as another."""
    if isinstance(value, str):
        return {value}
    identity: set[object] = {id(value)}
    return identity | {value.id} if isinstance(value, BaseMessage) and value.id else identity


def _is_of_a_tool(value: object, step: Step) -> bool:
    """Return whether a value is what a tool has said in the same step."""
    if isinstance(value, ToolMessage):
        is_told = value.status == "error" and step.error is not None
        return is_told or result(value) in step.results
    return isinstance(value, str) and as_text(value) in step.results


def _state(state: object) -> Mapping[str, object]:
    if isinstance(state, Mapping):
        return state
    if isinstance(state, BaseModel) and not isinstance(state, BaseMessage):
        return dict(state)
    if is_dataclass(state) and not isinstance(state, type):
        return {each.name: getattr(state, each.name, None) for each in fields(state)}
    return {}


def _said(name: str, value: object) -> list[str]:
    match value:
        case str():
            text = as_text(value)
            return [f"{name}: {text}" if name else text] if text.strip() else []
        case BaseMessage() if value.type in _OF_AGENTS:
            text = as_text(content(value))
            calls = value.tool_calls if isinstance(value, AIMessage) else []
            said = [text] if text.strip() else []
            return said + [f"{call['name']}: {as_text(call['args'])}" for call in calls]
        case {"role": role, "content": str(text)} if role in _ROLES:
            return [as_text(text)] if text.strip() else []
    return []
