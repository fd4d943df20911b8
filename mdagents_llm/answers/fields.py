"""Extracts the JSON objects in a model's reply and the field that holds its answer."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mdagents_llm.answers.phrases import phrases
from mdagents_llm.answers.text import MAX_CHARS, normalized, words
from mdagents_llm.latex import COMMAND, with_escaped_latex


def _key_name(key: str) -> str:
    return "".join(filter(str.isalnum, words(normalized(key))))


_ANSWER_KEYS = [_key_name(phrase) for phrase in phrases("field")]

NULL = "null"
"""Value of an answer field that states that there is no answer."""

_OBJECT_START = re.compile(r'\{(?=\s*"[^"\n]{1,60}"\s*:)')
# Each failed decoding attempt may scan to the end of the text; this limit keeps the work
# proportional to the length of the reply.
_MAX_FAILURES = 32
_MAX_DEPTH = 8
_DECODER = json.JSONDecoder(strict=False)  # models write line breaks inside strings

_LOOSE_FIELD = re.compile(r"[\"'](?P<key>[^\"'\d\n,:{}\[\]]{1,30})[\"']\s{0,20}:\s{0,20}")
_LOOSE_VALUE = re.compile(
    r'"(?P<double>(?:[^"\\]|\\.){0,2000}+)(?:"|$)'
    r"|'(?P<single>[^'\n]{0,2000}+)|(?P<bare>[^,}\]\n]{1,200})",
    re.DOTALL,
)
_ESCAPES = re.compile(rf'\\(?!{COMMAND})(["nrt/])')
_ESCAPED = {"n": "\n", "r": "\n", "t": " "}


@dataclass(frozen=True, slots=True)
class Fields:
    """The answers in the JSON of a reply, and the remaining text."""

    answers: tuple[object, ...]
    """Decoded values of the answer field, from the last object that has one, or from every object
    of the list that contains it. Empty if no object has one."""
    tail: str
    """Text after the last object that has an answer; empty without such an object."""
    prose: str
    """Reply with each object replaced by the strings in it."""


@dataclass(frozen=True, slots=True)
class _Object:
    content: dict[str, object]
    start: int
    end: int


def read_fields(text: str) -> Fields:
    """Split a reply into JSON objects and prose.

    Args:
        text: Reply as the model wrote it; only its last :data:`MAX_CHARS` characters are read.
    """
    text = text[-MAX_CHARS:]
    objects = list(_objects(text))
    answers: list[object] = []
    last: _Object | None = None
    for found in objects:
        value = answer_field(found.content)
        if value is None:
            continue
        if last is None or text[last.end : found.start].strip() != ",":
            answers.clear()
        answers.append(value)
        last = found
    if last is not None:
        return Fields(tuple(answers), text[last.end :], _prose(text, objects))
    if not objects and "{" in text:
        answers.extend(_loose_answers(normalized(text)))
        if text.lstrip(" \n`").removeprefix("json").lstrip().startswith("{"):
            text = unescape(text)
    return Fields(tuple(answers), "", _prose(text, objects) if objects else text)


def answer_field(content: dict[str, object], depth: int = _MAX_DEPTH) -> object | None:
    """Return the value of the field that holds the answer, searching nested objects.

    Empty fields are ignored, and so are objects in a list: those are other agents' answers. An
    explicit null is returned as :data:`NULL`, unless another field has a value.
    """
    by_name = {_key_name(key): value for key, value in content.items()}
    fields = [by_name[key] for key in _ANSWER_KEYS if key in by_name]
    for value in fields:
        if value not in (None, "", [], {}) and not isinstance(value, bool):
            return value
    for value in content.values():
        if depth and isinstance(value, dict):
            inner = answer_field(value, depth - 1)
            if inner is not None:
                return inner
    return NULL if None in fields else None


def unescape(text: str) -> str:
    """Resolve the escapes in a JSON string that cannot be decoded as JSON."""
    return _ESCAPES.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)


def _objects(text: str) -> Iterator[_Object]:
    position = failures = 0
    while failures < _MAX_FAILURES and (start := _OBJECT_START.search(text, position)):
        try:
            content, position = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            if _is_cut_off(error):
                return  # the rest of the text is inside this object
            failures += 1
            position = start.end()
        except (ValueError, RecursionError):
            return  # nesting deeper, or numbers longer, than in any real reply
        else:
            raw = text[start.start() : position]
            if (escaped := with_escaped_latex(raw)) != raw:
                content = _DECODER.decode(escaped)
            yield _Object(content, start.start(), position)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    unread = error.doc[error.pos :].strip(" \n\t`")
    return not unread or error.msg.startswith("Unterminated string")


def _prose(text: str, objects: list[_Object]) -> str:
    pieces: list[str] = []
    position = 0
    for found in objects:
        pieces += [text[position : found.start], *_strings(found.content)]
        position = found.end
    return "\n".join([*pieces, text[position:]])


def _strings(value: object, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield the texts in a JSON value that may state an answer; a word or letter alone does not."""
    if isinstance(value, str):
        if len(value.split()) > 1:
            yield value
    elif depth and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner, depth - 1)


def _loose_answers(text: str) -> list[object]:
    """Return the answer fields of JSON that does not decode: truncated, or in single quotes.

    The nesting cannot be recovered, so all fields with the highest-precedence name count.
    """
    found: dict[str, list[object]] = {}
    for field in _LOOSE_FIELD.finditer(text):
        key = _key_name(field["key"])
        value = _LOOSE_VALUE.match(text, field.end())
        if key not in _ANSWER_KEYS or (value and value[0].lstrip().startswith(("{", "["))):
            continue
        content = (value["double"] or value["single"] or value["bare"] or "") if value else ""
        if content.strip() not in ("", "null", "None"):
            found.setdefault(key, []).append(unescape(content))
        elif content or not text[field.end() :].strip(
            " \n\"'`"
        ):  # null, or cut off before the value
            found.setdefault(key, [])
    return next(filter(None, (found.get(key) for key in _ANSWER_KEYS)), [NULL] if found else [])
