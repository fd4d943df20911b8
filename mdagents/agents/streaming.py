"""What observers read of an agent while it replies: the free text of a reply, never its JSON.

A reply is streamed line by line: each free text in the order in which it arrives, at last the
answer as `Answer: C`. Enumerations other than the answer, numbers, booleans and empty texts are
left out.

The JSON is scanned by hand, each character once. The partial mode of `pydantic_core.from_json`
reads the whole prefix again with every delta: quadratic in the length of the reply. The scanner
does not validate the JSON: it stops at the first thing that it cannot read with certainty, and
`ReplyStream.finish` emits the rest once the validated reply is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from pydantic import BaseModel

from exaid_core.trace.bus import TraceBus
from infra.json_schema import JsonSchema, reply_schema
from mdagents.agents.replies import Participation

ANSWER = "answer"
"""The field of a reply that holds its letter."""

PREFIXES: Mapping[type[BaseModel], Mapping[tuple[str, ...], str]] = {
    Participation: {("messages", "text"): "To Expert {to}: "},
}
"""What precedes a text, by reply and path of the text; `{…}` names a field of the same object, an
integer or an enumeration. If that field is not known when the text arrives, the text and all after
it are left to `ReplyStream.finish`."""

T = TypeVar("T")
_Scan = Generator[None, None, T]  # yields when it needs another delta

_BLOCK = re.compile(r"\{|<think>")
_VISIBLE = re.compile(r"\S")
_BARE = re.compile(r"[\w.+-]*")  # a number, true, false, null
_INTEGER = re.compile(r"[1-9][0-9]*|0")
_ESCAPE = (
    r'\\(?:["\\/bfnrt]'
    r"|u(?:[0-9a-cA-CefEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_LONGEST_ESCAPE = len(r"\ud83d\ude00")
_RUN = re.compile(rf'(?:[^"\\\ud800-\udfff]+|{_ESCAPE})*+')  # whole characters of a string
_DECODER = json.JSONDecoder(strict=False)  # line breaks that should have been escaped are accepted


class _Unsure(Exception):  # noqa: N818 - not an error: the text waits for the validated reply
    pass


@dataclass(frozen=True, slots=True)
class _Shape:
    """What is streamed of the JSON value at this place of the schema; by default nothing."""

    is_text: bool = False
    prefix: str = ""
    choices: frozenset[str] = frozenset()
    item: _Shape | None = None
    fields: Mapping[str, _Shape] = field(default_factory=dict)


_NOTHING = _Shape()


@lru_cache(maxsize=512)
def _shape_of(reply: type[BaseModel]) -> _Shape:
    prefixes: dict[tuple[str, ...], str] = {}
    for prefixed, own in PREFIXES.items():
        if issubclass(reply, prefixed):
            prefixes.update(own)
    return _shape(reply_schema(reply), prefixes, ())


def _shape(
    schema: JsonSchema, prefixes: Mapping[tuple[str, ...], str], path: tuple[str, ...]
) -> _Shape:
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    if len(options) != 1:
        return _NOTHING
    schema = options[0]
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return _Shape(choices=frozenset(value for value in values if isinstance(value, str)))
    match schema.get("type"):
        case "string":
            return _Shape(is_text=True, prefix=prefixes.get(path, ""))
        case "array":
            return _Shape(item=_shape(schema.get("items", {}), prefixes, path))
        case "object":
            properties = schema.get("properties", {}).items()
            return _Shape(
                fields={name: _shape(value, prefixes, (*path, name)) for name, value in properties}
            )
        case _:
            return _NOTHING


class StreamedTurn:
    """A turn of one agent on the bus, or several when attempts fail after some text.

    Args:
        bus: Where the turn is published.
        agent_id: The agent whose turn it is.
        reply: The form of the reply, which tells free text from the rest.
    """

    def __init__(self, bus: TraceBus, agent_id: str, reply: type[BaseModel]) -> None:
        self._bus = bus
        self._agent_id = agent_id
        self._reply = reply
        self._turn = bus.start_turn(agent_id)
        self._stream = ReplyStream(reply, self._publish)
        self._has_text = False

    def take(self, delta: str | None) -> None:
        """Take a piece of the reply; None: the text so far was discarded (see `OnText`)."""
        if delta is not None:
            self._stream.feed(delta)
            return
        if self._has_text:
            self._turn.end()
            self._turn = self._bus.start_turn(self._agent_id)
            self._has_text = False
        self._stream = ReplyStream(self._reply, self._publish)

    def end(self, parsed: BaseModel | None = None) -> None:
        """End the turn.

        Args:
            parsed: The reply, whose unpublished part is published; None when the turn failed.
        """
        if parsed is not None:
            self._stream.finish(parsed)
        self._turn.end()

    def _publish(self, text: str) -> None:
        self._has_text = True
        self._turn.say(text)


class ReplyStream:
    """Emits the free text of a reply while its JSON streams in.

    Text before the JSON object (prose, a code fence, a `<think>` block) and after it is skipped.
    The answer is emitted at the end of the object, wherever it stands in it. `feed` takes time in
    proportion to its delta, however long the reply already is.

    Args:
        reply: The form of the reply; None for free text, which is emitted as it arrives.
        emit: Called with text, never empty, at most once per `feed` and once by `finish`.
    """

    def __init__(self, reply: type[BaseModel] | None, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._emitted: list[str] = []
        self._fresh: list[str] = []  # what the current delta adds to it
        self._text = ""
        self._at = 0
        self._scan = self._free_text() if reply is None else self._reply(_shape_of(reply))

    def feed(self, delta: str) -> None:
        """Emit the text that `delta`, the next characters of the reply, settles."""
        self._text = self._text[self._at :] + delta  # left over: a few characters at most
        self._at = 0
        next(self._scan)
        if self._fresh:
            text = "".join(self._fresh)
            self._fresh.clear()
            self._pass_on(text)

    def finish(self, parsed: BaseModel | None) -> None:
        """Emit what the stream left out; for a reply that was not streamed, all of it.

        Args:
            parsed: The validated reply, or None for a failed turn. Where it does not begin with the
                emitted text (its JSON had to be repaired, or it was asked again), nothing more is
                emitted.
        """
        if parsed is None:
            return
        emitted, whole = "".join(self._emitted), streamed_text(parsed)
        if whole.startswith(emitted) and whole != emitted:
            self._pass_on(whole[len(emitted) :])

    def _pass_on(self, text: str) -> None:
        self._emitted.append(text)
        self._emit(text)

    # The scanner: a recursive descent whose recursion ends with the schema's.

    def _free_text(self) -> _Scan[None]:
        while True:
            if self._text:
                self._fresh.append(self._text)
                self._at = len(self._text)
            yield

    def _reply(self, shape: _Shape) -> _Scan[None]:
        try:
            yield from self._opening()
            known = yield from self._object(shape)
            answer = known.get(ANSWER)
            # Other spellings of a letter are left to the validation of the reply.
            if answer in shape.fields.get(ANSWER, _NOTHING).choices:
                self._fresh.append(f"{self._line_break()}Answer: {answer}")
        except _Unsure:
            pass
        while True:
            self._at = len(self._text)
            yield

    def _opening(self) -> _Scan[None]:
        """Skip to the object's first character."""
        while True:
            found = _BLOCK.search(self._text, self._at)
            if found is None:
                yield from self._all_but(len("<think"))
                continue
            self._at = found.end()
            if found[0] == "{":
                return
            while (end := self._text.find("</think>", self._at)) < 0:
                yield from self._all_but(len("</think"))
            self._at = end

    def _all_but(self, count: int) -> _Scan[None]:
        """Discard the text at hand except for its last `count` characters."""
        self._at = max(self._at, len(self._text) - count)
        yield

    def _object(self, shape: _Shape) -> _Scan[dict[str, str]]:
        """Read an object after its brace; return its integers and enumerated strings by name."""
        known: dict[str, str] = {}
        mark = yield from self._mark()
        while mark != "}":
            if mark != '"':
                raise _Unsure
            name = yield from self._captured()
            if (yield from self._mark()) != ":":
                raise _Unsure
            mark = yield from self._mark()
            value = yield from self._value(shape.fields.get(name, _NOTHING), mark, known)
            known.pop(name, None)  # of two values of one name the last counts
            if value is not None:
                known[name] = value
            mark = yield from self._mark()
            if mark == ",":
                mark = yield from self._mark()
            elif mark != "}":
                raise _Unsure
        return known

    def _array(self, item: _Shape, known: Mapping[str, str]) -> _Scan[None]:
        mark = yield from self._mark()
        while mark != "]":
            yield from self._value(item, mark, known)
            mark = yield from self._mark()
            if mark == ",":
                mark = yield from self._mark()
            elif mark != "]":
                raise _Unsure

    def _value(self, shape: _Shape, mark: str, known: Mapping[str, str]) -> _Scan[str | None]:
        """Read a value that begins with `mark`; return an integer or an enumerated string."""
        if mark == '"':
            if shape.is_text:
                yield from self._free_text_field(shape.prefix, known)
                return None
            text = yield from self._captured()
            return text if text in shape.choices else None
        if mark == "{" and shape.fields:
            yield from self._object(shape)
        elif mark == "[" and shape.item is not None:
            yield from self._array(shape.item, known)
        elif mark in "{[":
            yield from self._skipped()
        else:
            bare = yield from self._bare(mark)
            if _INTEGER.fullmatch(bare):
                return bare
        return None

    def _free_text_field(self, prefix: str, known: Mapping[str, str]) -> _Scan[None]:
        try:
            lead = self._line_break() + prefix.format_map(known)
        except KeyError:
            raise _Unsure from None
        yield from self._string(self._fresh, lead)

    def _line_break(self) -> str:
        return "\n" if self._emitted or self._fresh else ""

    def _captured(self) -> _Scan[str]:
        pieces: list[str] = []
        yield from self._string(pieces)
        return "".join(pieces)

    def _string(self, pieces: list[str], lead: str = "") -> _Scan[None]:
        """Decode a string after its opening quote into `pieces`, `lead` before the first."""
        while True:
            found = _RUN.match(self._text, self._at)
            run = found[0] if found else ""
            if run:
                pieces.append(lead + (_DECODER.decode(f'"{run}"') if "\\" in run else run))
                lead = ""
                self._at += len(run)
            if self._at < len(self._text):
                if self._text[self._at] == '"':
                    self._at += 1
                    return
                if len(self._text) - self._at >= _LONGEST_ESCAPE:
                    raise _Unsure  # not an escape, or half a surrogate pair
            yield

    def _skipped(self) -> _Scan[None]:
        """Read an object or an array of any depth after its first character."""
        depth = 1
        while depth:
            mark = yield from self._mark()
            if mark == '"':
                yield from self._captured()
            elif mark in "{[":
                depth += 1
            elif mark in "}]":
                depth -= 1

    def _bare(self, first: str) -> _Scan[str]:
        """Read a number, true, false or null that begins with `first`."""
        if not _BARE.fullmatch(first):
            raise _Unsure
        bare = first
        while True:
            found = _BARE.match(self._text, self._at)
            if found:
                bare += found[0]
                self._at = found.end()
            if self._at < len(self._text):
                return bare
            yield

    def _mark(self) -> _Scan[str]:
        """Read the next character that is not white space."""
        while (found := _VISIBLE.search(self._text, self._at)) is None:
            self._at = len(self._text)
            yield
        self._at = found.end()
        return found[0]


def streamed_text(parsed: BaseModel) -> str:
    """Return all that `ReplyStream` emits of a validated reply."""
    lines: list[str] = []
    dumped = parsed.model_dump(mode="json", by_alias=True)
    ReplyStream(type(parsed), lines.append).feed(json.dumps(dumped))
    return "".join(lines)
