"""The text that observers see while an agent replies: the free text of a reply, never its JSON.

A reply is streamed line by line: each free text in the order in which it arrives, and finally the
answer as `Answer: C`. Enumerations other than the answer, numbers, booleans and empty texts are
left out.

Where a delta may change the structure of the reply, pydantic_core parses the text so far. Within a
free text it is read alone: a model in a loop may write a hundred thousand characters of it.
Elsewhere the work is quadratic in the length of the reply.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from pydantic import BaseModel
from pydantic_core import from_json

from exaid_core.trace.bus import TraceBus
from mdagents_llm.json_schema import JsonSchema, reply_schema

Path = tuple[str, ...]
"""Names of fields, from the reply down; the items of a list have the path of the list."""

ANSWER = "answer"
"""Name of the field that holds the letter of a reply."""

PREFIXES: Mapping[Path, str] = {("messages", "text"): "To Expert {to}: "}
"""Path of a text in a reply -> prefix of the text; `{…}` names an integer of the same object. If
that is unknown when the text arrives, the text and all after it are left to
`ReplyStream.finish`."""

_OPENING = re.compile(r"(?:[^{<]++|(?><think>.*?</think>)|<(?!think>))*+\{", re.DOTALL)
_HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")  # a surrogate, which no UTF-8 text can hold
_UNESCAPED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}  # inside a string, where JSON forbids them
_ESCAPES = str.maketrans(_UNESCAPED)
_BEGUN_ESCAPE = re.compile(  # also half of a surrogate pair
    r"(?<!\\)(?:\\\\)*+(\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?)\Z"
)
_LONGEST_ESCAPES = 64
"""Number of characters at the end of a reply that are searched for an escape that goes on."""
_LONGEST_SPACE = 64
"""Number of characters of white space after which no more is read: a model may write it between two
fields until it reaches its token limit."""


class StreamedTurn:
    """A turn of one agent on the bus, or several turns when attempts fail after some text.

    Args:
        bus: Bus on which the turn is published.
        agent_id: Id of the agent.
        reply: Form of the reply, which distinguishes free text from the rest.
        letters: Letter of the answer in the reply -> letter to emit; empty: the same.
    """

    def __init__(
        self, bus: TraceBus, agent_id: str, reply: type[BaseModel], letters: Mapping[str, str]
    ) -> None:
        self._bus = bus
        self._agent_id = agent_id
        self._reply = reply
        self._letters = letters
        self._turn = bus.start_turn(agent_id)
        self._stream = ReplyStream(reply, self._turn.say, letters)

    def take(self, delta: str | None) -> None:
        """Take a piece of the reply; None: the text so far was discarded, as `OnText` describes."""
        if delta is not None:
            self._stream.feed(delta)
            return
        if self._stream.has_emitted:
            self._turn.end()
            self._turn = self._bus.start_turn(self._agent_id)
        self._stream = ReplyStream(self._reply, self._turn.say, self._letters)

    def end(self, parsed: BaseModel | None = None) -> None:
        """End the turn.

        Args:
            parsed: Reply whose remaining text is published, with the letter to emit; None when the
                turn failed.
        """
        if parsed is not None:
            self._stream.finish(parsed)
        self._turn.end()


class ReplyStream:
    """Emits the free text of a reply while its JSON streams in.

    Text before the JSON object (prose, a code fence, a `<think>` block) and after it is skipped.
    The answer is emitted at the end of the object, wherever it is in it. From the point where the
    object is not valid JSON, the rest is left to `finish`.

    Args:
        reply: Form of the reply.
        emit: Called with text, never empty, at most once per `feed` and once by `finish`.
        letters: Letter of the answer in the reply -> letter to emit; empty: the same.
    """

    def __init__(
        self,
        reply: type[BaseModel],
        emit: Callable[[str], None],
        letters: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._strings = _strings_of(reply)
        self._emit = emit
        self._letters = letters
        self._emitted = ""
        self._text = ""
        self._is_within_text = False
        self._later: list[tuple[str, str]] = []  # JSON and text since then, not yet joined
        self._begun = ""  # an escape that the next delta continues
        self._is_over = False

    @property
    def has_emitted(self) -> bool:
        """Whether any text was emitted."""
        return bool(self._emitted)

    def feed(self, delta: str) -> None:
        """Emit the text that is settled by `delta`, the next characters of the reply."""
        if self._is_over or not delta:
            return
        delta, self._begun = self._begun + delta, ""
        if self._is_within_text and self._goes_on(delta):
            return
        self._join()
        is_more_space = delta.isspace() and self._text[-_LONGEST_SPACE:].isspace()
        self._text += delta
        if not self._text.startswith("{"):
            opening = _OPENING.match(self._text) if "{" in delta else None
            if opening is None:
                return
            self._text = self._text[opening.end() - 1 :]
        elif is_more_space:
            return
        so_far = self._read()
        is_whole = "}" in delta and _is_whole(self._text)
        self._is_over |= is_whole
        self._say(self._settled(so_far, is_whole=is_whole))
        self._enter_text()

    def finish(self, parsed: BaseModel) -> None:
        """Emit the text that the stream left out; for a reply that was not streamed, all of it.

        Args:
            parsed: Validated reply. If it does not begin with the emitted text (its JSON had to be
                repaired, or it was asked again), nothing more is emitted.
        """
        self._join()
        self._say(streamed_text(parsed))

    def _say(self, text: str) -> None:
        """Emit the part of `text`, the whole text so far, that has not been emitted."""
        said = len(self._emitted)
        if len(text) > said and text.startswith(self._emitted):
            self._emitted = text
            self._emit(text[said:])

    def _goes_on(self, delta: str) -> bool:
        """Emit a delta within a free text; return False if it ends the text, or has no valid JSON.

        An escape that it only begins waits for the next delta.
        """
        begun = _BEGUN_ESCAPE.search(delta) if "\\" in delta else None
        end = begun.start(1) if begun else len(delta)
        escaped = delta[:end].translate(_ESCAPES)
        try:
            text = from_json(f'"{escaped}"'.encode())
        except ValueError:
            return False
        self._begun = delta[end:]
        self._later.append((escaped, text))
        if text:
            self._emit(text)
        return True

    def _join(self) -> None:
        """Join what was read within a free text to the rest, once instead of at each delta."""
        self._text += "".join(escaped for escaped, _ in self._later)
        self._emitted += "".join(text for _, text in self._later)
        self._later.clear()

    def _settled(self, so_far: dict[str, object], *, is_whole: bool = False) -> str:
        return _text_of(so_far, self._strings, self._letters, is_whole=is_whole)

    def _enter_text(self) -> None:
        """Set whether the reply so far ends within a free text, by trying a further letter."""
        self._is_within_text = False
        if self._is_over or not self._emitted or self._text.endswith('"'):
            return
        begun = _BEGUN_ESCAPE.search(self._text, max(len(self._text) - _LONGEST_ESCAPES, 0))
        text = self._text[: begun.start(1)] if begun else self._text
        further = _parsed(text + "x")
        if further is not None and self._settled(further) == self._emitted + "x":
            self._is_within_text = True
            self._text, self._begun = text, self._text[len(text) :]

    def _read(self) -> dict[str, object]:
        """Return the object so far; an unreadable part is dropped with all after it."""
        while (parsed := _parsed(self._text)) is None:
            places = range(len(self._text))
            bad = bisect_left(places, True, key=lambda at: _parsed(self._text[: at + 1]) is None)
            escape = _UNESCAPED.get(self._text[bad], "")
            rest = self._text[bad + 1 :] if escape else ""
            self._text = self._text[:bad] + escape + rest
            self._is_over = not escape
        return parsed


def _parsed(beginning: str) -> dict[str, object] | None:
    """Parse the beginning of a JSON object; None if it is not JSON."""
    try:  # as bytes, because half a surrogate pair in a str would raise TypeError
        parsed: dict[str, object] = from_json(beginning.encode(), allow_partial="trailing-strings")
    except ValueError:
        return None
    return parsed


def _is_whole(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False
    return True


def streamed_text(parsed: BaseModel) -> str:
    """Return all text that `ReplyStream` emits of a validated reply."""
    whole = parsed.model_dump(mode="json", by_alias=True)
    text = _text_of(whole, _strings_of(type(parsed)), {}, is_whole=True)
    return _HALF_OF_A_PAIR.split(text, maxsplit=1)[0]


@lru_cache(maxsize=512)
def _strings_of(reply: type[BaseModel]) -> dict[Path, list[object]]:
    """Return path -> choices for all strings in a reply; a free text has no choices."""
    return dict(_strings(reply_schema(reply), ()))


def _strings(schema: JsonSchema, path: Path) -> Iterator[tuple[Path, list[object]]]:
    match schema:
        case {"enum": choices}:
            yield path, choices
        case {"const": choice}:
            yield path, [choice]
        case {"type": "string"}:
            yield path, []
        case {"anyOf": forms}:
            for form in forms:
                yield from _strings(form, path)
        case {"items": items}:
            yield from _strings(items, path)
        case {"properties": fields}:
            for name, of_field in fields.items():
                yield from _strings(of_field, (*path, name))


def _text_of(
    value: dict[str, object],
    strings: Mapping[Path, list[object]],
    letters: Mapping[str, str],
    *,
    is_whole: bool,
) -> str:
    lines: list[str] = []
    answer = value.get(ANSWER)
    try:
        _add_lines(lines, value, strings, (), {})
        # Other spellings of a letter are left to the validation of the reply.
        if is_whole and isinstance(answer, str) and answer in strings.get((ANSWER,), []):
            lines.append(f"Answer: {letters.get(answer, answer)}")
    except KeyError:  # a prefix names an integer that is not known yet: this text and the rest wait
        pass
    return "\n".join(lines)


def _add_lines(
    lines: list[str],
    value: object,
    strings: Mapping[Path, list[object]],
    path: Path,
    known: Mapping[str, int],
) -> None:
    """Add the texts in `value`; `known` holds the integers that precede it in its object."""
    if isinstance(value, str):
        if value and strings.get(path) == []:
            lines.append(PREFIXES.get(path, "").format_map(known) + value)
    elif isinstance(value, list):
        for item in value:
            _add_lines(lines, item, strings, path, known)
    elif isinstance(value, dict):
        earlier: dict[str, int] = {}
        for name, inner in value.items():
            _add_lines(lines, inner, strings, (*path, name), earlier)
            if type(inner) is int:
                earlier[name] = inner
