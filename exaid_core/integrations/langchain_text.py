"""Extracts text from messages, tool results and nodes of LangChain and LangGraph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, fields, is_dataclass
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    ToolMessage,
    convert_to_messages,
)
from pydantic import BaseModel

from exaid_core.integrations.feed import as_text
from mdagents_llm.reasoning_tags import without_reasoning
from mdagents_llm.text import between

_OF_AGENTS = ("ai", "AIMessageChunk", "chat", "function", "tool")
_NOT_OF_AGENTS = ("developer", "human", "system", "user")  # roles of a `ChatMessage`
_ROLES = frozenset({"ai", "assistant", "developer", "function", "human", "system", "tool", "user"})
_OF_A_DUMP = frozenset({"additional_kwargs", "id", "response_metadata", "tool_calls"})
_LONG = 30
"""Characters from which a field that has a text is a copy: two may say the same few words."""
_REMOVE_ALL = "__remove_all__"  # in LangGraph, id of a message that removes all before it
_ECHOES = (
    # LangChain's beginnings of results of structured outputs, which repeat the call or refuse it.
    "Returning structured response: ",
    "Error: Failed to parse structured output",
)
_HANDS_BACK = "__is_handoff_back"  # in langgraph-supervisor, metadata of messages of its own
_DEFAULTS: Mapping[str, object] = {"name": "", "tool_call_id": ""}
"""Fields that LangChain requires of some messages."""


@dataclass(slots=True)
class _Known:
    """A text or message of an input, kept so that no other object gets its identity."""

    value: object
    contents: tuple[object, object]
    """What it contained before the node ran, which may change it in place."""

    def said(self) -> list[str]:
        """Return what a message said before the node ran."""
        value, (body, calls) = self.value, self.contents
        if isinstance(value, AIMessage):
            value = value.model_copy(update={"content": body, "tool_calls": calls})
        elif isinstance(value, BaseMessage):
            value = value.model_copy(update={"content": body})
        elif isinstance(value, Mapping):
            value = {**value, "content": body, "tool_calls": calls}
        return _texts(_message(value))


@dataclass(slots=True)
class Step:
    """A graph node in progress, made from its input before it runs: it may change that in place."""

    inputs: InitVar[object]
    known: dict[object, list[_Known]] = field(init=False)
    """Texts and messages of the input by each of their keys."""
    fields: dict[str, str] = field(init=False)
    """Texts of the input by their fields."""
    replies: list[list[str]] = field(default_factory=list)
    """Pieces of what each model has said in the node so far, with any tagged reasoning."""
    said: set[str] = field(default_factory=set)
    """Other texts that were said in the node, without space."""
    results: set[str] = field(default_factory=set)
    """Results of tools in the node."""
    error: BaseException | None = None
    """Exception already reported as the failure of a turn in the node; None without one."""

    def __post_init__(self, inputs: object) -> None:
        state = _state(inputs) or {}
        self.fields = {name: each for name, each in state.items() if isinstance(each, str)}
        self.known = {}
        for value in _values(inputs):
            known = _Known(value, _contents(value))
            for key in _keys(value):
                self.known.setdefault(key, []).append(known)
            if (key := _text_key(value)) is not None:
                self.known.setdefault(key, [known])

    def contain(self, inner: Step, asked: object) -> None:
        """Take messages of agents that a node within this one has in its memory as known.

        Args:
            inner: The node.
            asked: Input of its graph, which this node may have made and return as well.
        """
        unknown = [(key, inner.known[key]) for key in inner.known if key not in self.known]
        own = set(map(id, _values(asked))) if unknown else ()
        for key, known in unknown:
            value = known[0].value
            if isinstance(value, AIMessage | ToolMessage) and id(value) not in own:
                self.known[key] = known

    def lines(self) -> set[str]:
        """Return the lines of the texts and messages of the input."""
        texts = (key[1] for key in self.known if isinstance(key, tuple) and key[0] == "text")
        return {line.strip() for text in texts for line in text.splitlines() if line.strip()}

    def hear(self, *texts: str) -> None:
        """Take texts as said in the node."""
        self.said.update(map(_squeezed, texts))


def content(message: BaseMessage) -> str:
    """Return the text or refusal of a whole message, without tagged reasoning."""
    return without_reasoning(piece(message))


def piece(message: BaseMessage) -> str:
    """Return the text or refusal of a message, its parts in lines of their own."""
    blocks = message.content if isinstance(message.content, list) else []
    if isinstance(message, ToolMessage) and len(blocks) > 1:  # separate contents of a tool of MCP
        return "\n".join(filter(None, (_text_of(block) for block in blocks)))
    said = ""
    for text, is_new in Parts().of(message):
        said += between(said, text) + text if is_new else text
    return said


@dataclass(slots=True)
class Parts:
    """Tells where one part of a reply ends and another begins, in a message or in its pieces."""

    index: object = None
    """Index of the block of the latest text; None if it has none."""
    has_other: bool = False
    """Whether a block that is not a text has followed it."""

    def of(self, message: BaseMessage) -> Iterator[tuple[str, bool]]:
        """Yield each text of a message or of a piece of it, and whether it begins a new part."""
        content = message.content
        blocks: list[Any] = content if isinstance(content, list) else [content]
        text_of = _text_of if any(map(_text_of, blocks)) else _refusal_of
        refusal = message.additional_kwargs.get("refusal")
        if text_of is _refusal_of and isinstance(refusal, str):
            blocks = [{"type": "refusal", "refusal": refusal}]
        is_first = True
        for block in blocks:
            index = block.get("index") if isinstance(block, Mapping) else None
            if text := text_of(block):
                yield text, self.begins(index) or (index is None and not is_first)
                is_first = False
            elif isinstance(block, Mapping) and block.get("type") != "text":
                self.has_other = True

    def begins(self, index: object) -> bool:
        """Take the index of the block of a text; return whether the text begins a new part."""
        has_other, self.has_other = self.has_other, False
        before, self.index = self.index, index
        if index is None or before is None:
            return has_other
        return index != before


def _refusal_of(block: object) -> str:
    """Return the refusal in a content block; empty if it is another block."""
    match block:
        case {"type": "refusal", "refusal": str(refusal)}:
            return refusal
        case {"type": "non_standard", "value": {"type": "refusal", "refusal": str(refusal)}}:
            return refusal
    return ""


def _text_of(block: object) -> str:
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return text
    return ""


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


def data(message: BaseMessage) -> Iterator[str]:
    """Yield the tool calls of a message, and the texts in their arguments or in its JSON."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    values: list[object] = [call["args"] for call in calls]
    yield from (f"{call['name']}: {as_text(call['args'])}" for call in calls)
    text = content(message)
    with suppress(ValueError, RecursionError):
        values.append(json.loads(text[text.index("{") : text.rindex("}") + 1]))
    while values:
        match values.pop():
            case str(text):
                yield text
            case {**fields_of_it}:
                values += fields_of_it.values()
            case [*items]:
                values += items


def update(outputs: object, step: Step, agent: str = "") -> list[str]:
    """Return the texts in a node's update of the state that neither its input nor a model says.

    Args:
        outputs: What the node returns.
        step: The node.
        agent: Name of the node, which may precede a model's reply in a text.
    """
    changes = list(_changes(outputs))
    returned = {id(value) for _, value in changes}
    is_rewritten = any(getattr(value, "id", None) == _REMOVE_ALL for _, value in changes)
    replies = [without_reasoning("".join(reply)) for reply in step.replies]
    step.hear(*replies, *(each for reply in replies for each in _lines(reply)))
    long = sorted((each for each in replies if len(each) >= _LONG), key=len, reverse=True)
    earlier: set[str] | None = None
    news: list[str] = []
    for name, each in changes:
        value = _added(each, step.fields.get(name)) if isinstance(each, str) else each
        for text in _news(name, value, step, returned, is_rewritten=is_rewritten):
            rest = text
            if isinstance(value, str) and replies and _squeezed(text) not in step.said:
                earlier = step.lines() if earlier is None else earlier
                rest = _without_lines(text, earlier)
            if rest := _unsaid(rest, step.said, long, agent):
                news.append(_cut(name if isinstance(value, str) else "", rest))
                step.hear(text)
    return news


def _added(text: str, before: str | None) -> str:
    """Return what a text adds to a long one that its field had before, else all of it."""
    if before is None or len(before) < _LONG or not text.startswith(before):
        return text
    rest = text[len(before) :]
    if rest.startswith("\n") or before.endswith("\n"):
        return rest.strip()
    return f"… {rest.strip()}" if rest[:1].isspace() else text


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text without marks of a list, and what follows a label in them."""
    for line in text.splitlines():
        yield re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line)
        yield line.partition(": ")[2]


def _without_lines(text: str, earlier: Set[str]) -> str:
    """Return a text without lines of the input, as of the talk so far to which it adds some."""
    kept: list[str] = []
    for line in text.splitlines():
        label, _, rest = line.partition(": ")
        if line.strip() not in earlier:
            kept.append(f"{label}: …" if rest.strip() in earlier else line)
    return "\n".join(dict.fromkeys(kept)) if kept != text.splitlines() else text


def _unsaid(text: str, said: set[str], replies: Sequence[str], agent: str) -> str:
    """Return what a text has besides the replies of models; empty if it has nothing else."""
    if not text.strip() or _squeezed(text) in said:
        return ""
    whole, text = text, text.strip().removesuffix("…").removesuffix("...").rstrip()
    if len(text) >= _LONG and any(_find(reply, text) for reply in replies):
        return ""
    rest = whole
    for reply in replies:
        if place := _find(rest, reply):
            rest = f"{rest[: place[0]]}…{rest[place[1] :]}"
    is_label = rest is not whole and set(_words(rest)) <= set(_words(agent))
    return "" if is_label else rest


def _find(text: str, part: str) -> tuple[int, int] | None:
    """Return where a text has a part as words of its own."""
    part = part.strip()
    start = text.find(part)
    if start < 0 or not part:
        return None
    end = start + len(part)
    before = text[start - 1 : start] if start else " "
    is_apart = before.isspace() or before in "\"'*_>([{:"
    goes_on = re.match(r"\w|[.,]\d", text[end : end + 2])
    return (start, end) if is_apart and not goes_on else None


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def _news(
    name: str, value: object, step: Step, returned: set[int], *, is_rewritten: bool
) -> list[str]:
    """Return what a text or message of an update says that the input did not say.

    A message of the input that has other words now, or whose id has, was corrected, unless the
    update has both.
    """
    if isinstance(value, str) and value in step.known:
        return []
    contents = _contents(value)
    keys = _keys(value)
    if is_rewritten or (isinstance(value, str) and len(value) >= _LONG):
        keys.add(_text_key(value))
    before = [known for key in keys for known in step.known.get(key, ())]
    if any(known.value is not value and id(known.value) in returned for known in before):
        return []
    if any(known.contents == contents for known in before):
        return []
    value = value if isinstance(value, str) else _message(value)
    if _is_of_a_tool(name, value, step):
        return []
    known_texts = [text.strip() for known in before for text in known.said()]
    return [
        text
        for text in _texts(value)
        if not any(_begins(each, text.strip()) for each in known_texts)
    ]


def _begins(whole: str, text: str) -> bool:
    """Return whether a text is a whole one or was cut from its beginning, but not in a number."""
    if text == whole:
        return True
    text = text.removesuffix("…").removesuffix("...").rstrip()
    if len(text) < _LONG or not whole.startswith(text):
        return False
    return not re.match(r"\d[.,]?\d", whole[len(text) - 1 :])


def _changes(outputs: object) -> Iterator[tuple[str, object]]:
    """Yield each text and message in an update of the state with the name of its field."""
    if type(outputs).__name__ == "Command":
        outputs = getattr(outputs, "update", None)
    state = _state(outputs)
    if state is not None:
        for name, value in state.items():
            # LangGraph's wrapper for a value that replaces the present one instead of extending it.
            value = getattr(value, "value", None) if type(value).__name__ == "Overwrite" else value
            for each in _items(name, value):
                yield name, each
        return
    for each in outputs if isinstance(outputs, list | tuple) else (outputs,):
        is_state = _state(each) is not None and not _is_dump(each)
        if is_state or type(each).__name__ == "Command":
            yield from _changes(each)  # an item of a list of updates
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str):
            yield from _changes({each[0]: each[1]})
        else:
            for said in _items("", [each]):
                yield "", said


def _values(state: object) -> Iterator[object]:
    """Yield the texts and messages of a state, including one that LangGraph passes to a tool."""
    for name, value in (_state(state) or {}).items():
        yield from _values(value) if name == "state" else _items(name, value)


def _items(name: str, value: object) -> list[object]:
    """Return the texts and messages in a field of a state.

    A pair or a dump is a message only in a list of messages: elsewhere it may be anything.
    """
    items: Sequence[object] = value if isinstance(value, list | tuple) else (value,)
    if name == "messages" and _is_pair(value):
        items = (value,)
    has_messages = name == "messages" or (items is value and all(map(_may_be_message, items)))
    is_said = _may_be_message if has_messages else _is_message
    return [each for each in items if isinstance(each, str) or is_said(each)]


def _keys(value: object) -> set[object]:
    """Return the keys by which a text or message is recognized; equal texts share one."""
    if isinstance(value, str):
        return {value}
    own = value.get("id") if isinstance(value, Mapping) else getattr(value, "id", None)
    return {id(value), ("id", own)} if isinstance(own, str) and own else {id(value)}


def _text_key(value: object) -> object:
    """Return the key by which copies of a text or message are recognized; None without one."""
    body = _contents(value)[0]
    return ("text", body) if isinstance(body, str) else None


def _contents(value: object) -> tuple[object, object]:
    """Return what a message contains; only the objects themselves, since states may be large."""
    if isinstance(value, BaseMessage):
        return value.content, getattr(value, "tool_calls", None) or []
    if isinstance(value, Mapping):
        return value.get("content"), value.get("tool_calls") or []
    return value, []


def _is_of_a_tool(name: str, value: object, step: Step) -> bool:
    """Return whether a tool in the same step has already said a value."""
    if isinstance(value, ToolMessage):
        is_told = value.status == "error" and step.error is not None
        return is_told or _result(value) in step.results
    if isinstance(value, str):
        return as_text(value) in step.results or not step.results.isdisjoint(_said(name, value))
    return False


def _result(output: object) -> str:
    if not isinstance(output, ToolMessage):
        return as_text(output)
    failed = "failed: " if output.status == "error" else ""
    return failed + as_text(piece(output) or output.content)


def _state(state: object) -> Mapping[str, object] | None:
    """Return the fields of a state; None if the object is not a state."""
    if isinstance(state, Mapping):
        return None if _is_message(state) else state
    if isinstance(state, BaseModel) and not isinstance(state, BaseMessage):
        return dict(state)
    if is_dataclass(state) and not isinstance(state, type):
        return {each.name: getattr(state, each.name, None) for each in fields(state)}
    return None


def _is_message(value: object) -> bool:
    """Return whether a value is a message wherever it is."""
    if isinstance(value, Mapping):
        return "role" in value and "content" in value
    return isinstance(value, BaseMessage)


def _may_be_message(value: object) -> bool:
    """Return whether a value is a message in a list of messages."""
    return _is_message(value) or _is_pair(value) or _is_dump(value)


def _is_pair(value: object) -> bool:
    """Return whether a value is a pair of a role and a text or content blocks."""
    match value:
        case tuple((str(role), str())):
            return role in _ROLES
        case tuple((str(role), list(blocks))):
            return role in _ROLES and all(isinstance(each, str | dict) for each in blocks)
    return False


def _is_dump(value: object) -> bool:
    """Return whether a value is a message as a dictionary, such as `RemoteGraph` returns."""
    match value:
        case {"type": str(role), "content": _, **others}:
            return role in _ROLES and not _OF_A_DUMP.isdisjoint(others)
    return False


def _message(value: object) -> BaseMessage | None:
    """Return a message in any form that LangGraph takes.

    Where LangChain refuses other fields, only role and text; None if it refuses these as well.
    """
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, tuple):
        value = {"role": value[0], "content": value[1]}
    if not isinstance(value, Mapping):
        return None
    given = {name: each for name, each in value.items() if each is not None}
    plain = {"role": value.get("role", value.get("type")), "content": value["content"]}
    for form in ({**given, "content": value["content"]}, plain):
        with suppress(Exception):  # LangChain trusts the types of the fields
            return convert_to_messages([{**_DEFAULTS, **form}])[0]
    return None


def _said(name: str, value: object) -> list[str]:
    return [_cut(name if isinstance(value, str) else "", text) for text in _texts(value)]


def _cut(name: str, text: str) -> str:
    """Return a text as it is sent, with the name of its field."""
    return f"{name}: {as_text(text)}" if name else as_text(text)


def _texts(value: object) -> list[str]:
    """Return what a text or a message of an agent says, in full length."""
    if isinstance(value, str):
        text = without_reasoning(value)
        return [text] if text.strip() else []
    if not isinstance(value, BaseMessage) or value.type not in _OF_AGENTS:
        return []
    if isinstance(value, ChatMessage) and value.role.lower() in _NOT_OF_AGENTS:
        return []
    text = content(value)
    is_echo = isinstance(value, ToolMessage) and text.startswith(_ECHOES)
    if is_echo or value.response_metadata.get(_HANDS_BACK):
        return []
    calls = value.tool_calls if isinstance(value, AIMessage) else []
    said = [text] if text.strip() else []
    return said + [f"{call['name']}: {as_text(call['args'])}" for call in calls]
