"""Fields of a record, ours or another program's: read leniently, None where there is no value."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from mdagents.datasets.option_letters import letter_marked, letters_meant, with_letters
from mdagents.datasets.questions import LETTERS
from mdagents_llm.files.text import well_formed

_LETTERS = frozenset(LETTERS)
_LETTERED = re.compile(r"\(?([A-J])[).:]\s*(.*)", re.DOTALL)
_IN_ONE_TEXT = re.compile(r"\(([A-J])\)\s*(.*?)\s*(?=\([A-J]\)|$)", re.DOTALL)

_ODD_SPACE = ("  ", *"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f")
"""White space of ASCII except a single blank."""

_OPTIONS = "Options:"

_TOO_LARGE = 1 << 63  # larger than any count or time; sums of such numbers may not be finite

Tokens = tuple[int | None, int | None, int | None]
"""Of input, output, and both."""


def options_of(value: Any) -> dict[str, str] | None:
    """Return presented letter -> text; empty without a `value`, None when it holds no options.

    Args:
        value: An object with letters, in which null is not an option; or, as other programs write
            it, a list `["(A) text", "(B) text", …]`, the texts alone in their order, or one text
            `(A) text (B) text …`.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        value = [f"({letter}) {text}" for letter, text in _IN_ONE_TEXT.findall(value)] or None
    if isinstance(value, dict):
        named = with_letters(value)
        options = {letter: str(text) for letter, text in named.items() if text is not None}
        return options if options.keys() <= _LETTERS else None
    if not isinstance(value, list) or len(value) > len(LETTERS):
        return None
    matches = [_LETTERED.match(str(text).strip()) for text in value]
    letters = LETTERS[: len(value)]
    if all(match and match[1] == letter for match, letter in zip(matches, letters, strict=True)):
        return {match[1]: match[2] for match in matches if match}
    return {letter: str(text) for letter, text in zip(letters, value, strict=True)}


def gold_of(label: Any, options: Mapping[str, str]) -> str | None:
    """Return the letter of the right option; None when `label` names none.

    Args:
        label: A letter (`C`, `c`, `(C)`, `Option C`), the text of one option and no other, in any
            case, or both (`C) text`).
        options: Empty when the record has none: then any letter may be the right one.
    """
    if not isinstance(label, str):
        return None
    if label in (options or _LETTERS):
        return label
    if not options:
        letter = letter_marked(label)
        return letter if letter in _LETTERS else None
    meant = letters_meant(label, options)
    return meant.pop() if len(meant) == 1 else None


def id_of(record: Mapping[str, Any]) -> str:
    """Return the id that a record states; empty when it states none or an invalid one.

    An id is a text that is not blank, or a number; 3 and 3.0 are the same.
    """
    for name in ("question_id", "id", "realidx"):
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return plain(value)
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return str(int(value) if value == int(value) else value)
    return ""


def plain(text: str) -> str:
    """Return the text without the characters that some files and programs cannot hold."""
    return well_formed(text).replace("\0", "\ufffd")


def tokens_of(usage: Mapping[str, Any]) -> Tokens:
    """Read tokens under our names or those of OpenAI's API; a missing total is computed.

    Args:
        usage: The object `token_usage` of a record.
    """
    read = count_of(usage.get("input_tokens", usage.get("prompt_tokens")))
    written = count_of(usage.get("output_tokens", usage.get("completion_tokens")))
    both = count_of(usage.get("total_tokens"))
    if both is None and read is not None and written is not None:
        both = read + written
    return read, written, both


def answer_text(response: Any) -> str:
    """Return the text that holds the answer, from any of the forms that such programs write."""
    if isinstance(response, dict):
        for key in ("final_answer", "majority_vote", "majority", "answer", "Answer", "0.0"):
            if key in response:
                return answer_text(response[key])
        return answer_text(next(iter(response.values()), ""))
    if isinstance(response, list):
        return "\n".join(answer_text(part) for part in response)
    return "" if response is None else str(response)


def opinions_of(
    record: Mapping[str, Any], options: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return first and last letter of each expert; of each team's report if there is no expert."""
    if not (record.get("opinions") or record.get("teams")):
        return (), ()
    stated = [
        (str(opinion.get("agent", place)), opinion.get("answer"))
        for place, opinion in enumerate(entries_of(record, "opinions"))
    ] or [
        (str(place), report.get("answer"))
        for place, report in enumerate(entries_of(record, "teams"))
    ]
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for who, letter in stated:
        if isinstance(letter, str) and letter in options:
            first.setdefault(who, letter)
            last[who] = letter
    return tuple(first.values()), tuple(last.values())


def content_digest(question: str, texts: Collection[str], gold: str) -> int:
    """Return a question's digest, independent of its options' order; differs between processes.

    Args:
        question: Its text, with or without the options at its end.
        texts: Of its options.
        gold: Text of the right one.
    """
    if not question.isascii() or any(map(question.__contains__, _ODD_SPACE)):
        question = " ".join(question.split())
    if _OPTIONS in question:
        question = _without_options(question, texts)
    return hash((question.strip(), *sorted(texts), gold))


def _without_options(question: str, texts: Collection[str]) -> str:
    """Return a question without a list of all its options at the end, as MDAgents writes it."""
    before, _, listed = question.rpartition(_OPTIONS)
    for text in sorted(texts, key=len, reverse=True):
        if (at := listed.find(" ".join(text.split()))) < 0:
            return question
        listed = f"{listed[:at]} {listed[at + len(text) :]}"
    return before if _LETTERS.issuperset(re.findall(r"\w+", listed)) else question


def response_text(response: Any) -> str:
    """Return all text of a response, from any of the forms that such programs write."""
    if isinstance(response, dict):
        response = list(response.values())
    if isinstance(response, list):
        return "\n\n".join(filter(None, map(response_text, response)))
    return "" if response is None else str(response)


def text_of(record: Mapping[str, Any], name: str) -> str:
    """Return the text or number in a field; empty without either."""
    value = record.get(name)
    return str(value) if isinstance(value, str | int | float) else ""


def object_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the JSON object in a field; empty without one."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def number_of(value: Any) -> float | None:
    """Return a finite number, else None."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is int and abs(value) < _TOO_LARGE:  # a bool is not a number
        return float(value)
    return None


def count_of(value: Any) -> int | None:
    """Return a number without its fraction."""
    if type(value) is int:
        return value if abs(value) < _TOO_LARGE else None
    number = number_of(value)
    return None if number is None else int(number)


def confidence_of(value: Any) -> float | None:
    """Return a number from 0 to 1, else None."""
    number = number_of(value)
    return number if number is not None and 0 <= number <= 1 else None


def entries_of(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the JSON objects in the array of a field; empty without any."""
    value = record.get(name)
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]
