"""JSON from outside: what is read, and one line for what is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import DEEPEST, load_json


def refusal(raw: bytes | str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_json(raw, "x.jsonl line 4")
    message = str(caught.value)
    assert message.startswith("x.jsonl line 4")
    assert "\n" not in message
    assert len(message) < 200
    message.encode()
    return message.removeprefix("x.jsonl line 4").lstrip(": ")


def nested(levels: int) -> str:
    return '{"a": [' * (levels // 2) + "]}" * (levels // 2)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("\ufeff[1]", [1]),
        (b"\xef\xbb\xbf[1]\r\n", [1]),
        (r'{"a": "\ud83d\ude00 \\u0000"}', {"a": "\U0001f600 \\u0000"}),
        ("[" + "[]," * 500 + "[]]", [[]] * 501),
    ],
)
def test_what_is_read(raw: bytes | str, value: object) -> None:
    assert load_json(raw, "x") == value


def test_as_deep_as_may_be() -> None:
    assert load_json(nested(DEEPEST), "x")
    assert refusal(nested(DEEPEST + 2)).startswith("is nested too deeply")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("{nonsense", "is not JSON: Expecting property name enclosed in double quotes at column 2"),
        ("", "is not JSON"),
        ('{"a": "\x00"}', "is not JSON: Invalid control character"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8 text; save it as UTF-8"),
        (b'{"a": "\xe4"}', "is not UTF-8 text"),
        (r'{"a": "half \ud83d"}', "field 'a' holds half of a surrogate pair"),
        (r'{"a": {"b": ["x", ["\uDC00"]]}}', "field 'b' holds half of a surrogate pair"),
        (r'{"a\ud83d": 1}', r"field 'a\ud83d' holds half of a surrogate pair"),
        (r'"\ud83d"', "holds half of a surrogate pair"),
        (r'{"a": "cut\u0000off"}', "field 'a' holds a NUL character; take it out"),
        ('{"a": {"A": 1, "B": 2, "A": 1}}', "has field 'A' twice; leave one of them out"),
        ('{"a\\n": 1, "a\\n": 2}', r"has field 'a\n' twice"),
        (f'{{"{"k" * 9999}": "", "{"k" * 9999}": ""}}', "has field 'kkk"),
        (nested(100_000), "is nested too deeply"),
        ('{"a": ' + "[" * 100_000, "is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "has a whole number of more than 4300 digits"),
    ],
)
def test_what_is_wrong_is_one_line(raw: bytes | str, message: str) -> None:
    assert refusal(raw).startswith(message)


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters()) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.sweep
@given(anything, st.booleans())
def test_json_is_read_or_refused(value: Any, as_ascii: bool) -> None:
    with contextlib.suppress(ConfigError):
        text = json.dumps(value, ensure_ascii=as_ascii)
        assert repr(load_json(text, "x")) == repr(value)


@given(st.binary() | st.text())
def test_nothing_else_is_raised(raw: bytes | str) -> None:
    with contextlib.suppress(ConfigError):
        load_json(raw, "x")
