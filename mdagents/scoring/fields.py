"""Fields of a record, ours or a foreign program's: read leniently, None where there is no value."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from mdagents.questions import LETTERS

_LETTERED = re.compile(r"\(?([A-J])[).:]\s*(.*)", re.DOTALL)


def options_of(value: Any) -> dict[str, str] | None:
    """Presented letter -> text; None when `value` holds no options.

    Args:
        value: An object with letters, or, as foreign programs write it, a list: `["(A) text",
            "(B) text", …]` or the texts alone in their order.
    """
    if isinstance(value, dict):
        return {str(letter): str(text) for letter, text in value.items()}
    if not isinstance(value, list) or len(value) > len(LETTERS):
        return None
    matches = [_LETTERED.match(str(text).strip()) for text in value]
    letters = LETTERS[: len(value)]
    if all(match and match[1] == letter for match, letter in zip(matches, letters, strict=True)):
        return {match[1]: match[2] for match in matches if match}
    return {letter: str(text) for letter, text in zip(letters, value, strict=True)}


def answer_text(response: Any) -> str:
    """The text that holds the answer, out of any of the forms that such programs write."""
    if isinstance(response, dict):
        for key in ("final_answer", "majority_vote", "answer", "Answer", "0.0"):
            if key in response:
                return answer_text(response[key])
        return answer_text(next(iter(response.values()), ""))
    if isinstance(response, list):
        return "\n".join(answer_text(part) for part in response)
    return "" if response is None else str(response)


def opinions_of(
    record: Mapping[str, Any], options: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """First and last letter of each expert; of each team's report where there is no expert's."""
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


def content_digest(question: Any, options: Mapping[str, str], label: str) -> str:
    """Digest of question, options and right option, whatever the order of the options."""
    text = " ".join(question.split()) if isinstance(question, str) else ""
    texts = sorted(option.strip() for option in options.values())
    content = json.dumps([text, texts, options.get(label, "").strip()])
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def response_text(response: Any) -> str:
    """All that a response says, in any of the forms that such programs write."""
    if isinstance(response, dict):
        response = list(response.values())
    if isinstance(response, list):
        return "\n\n".join(filter(None, map(response_text, response)))
    return "" if response is None else str(response)


def text_of(record: Mapping[str, Any], name: str) -> str:
    """The text or number in a field; empty when there is neither."""
    value = record.get(name)
    return str(value) if isinstance(value, str | int | float) else ""


def object_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The JSON object in a field; empty when there is none."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def number_of(value: Any) -> float | None:
    """A finite number."""
    is_number = type(value) in (int, float)  # and no bool
    return float(value) if is_number and math.isfinite(value) else None


def count_of(value: Any) -> int | None:
    """A number without its fraction."""
    number = number_of(value)
    return None if number is None else int(number)


def confidence_of(value: Any) -> float | None:
    """A number from 0 to 1."""
    number = number_of(value)
    return number if number is not None and 0 <= number <= 1 else None


def entries_of(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The JSON objects in the array of a field; empty when there is none."""
    value = record.get(name)
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]
