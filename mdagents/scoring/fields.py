"""Lenient readers for the fields of a record, from this program or another one."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mdagents.datasets.kept_fields import MOST_FIELDS
from mdagents.datasets.listed_options import has_all, without_options
from mdagents.datasets.option_letters import (
    letter_marked,
    letters_in_list,
    letters_meant,
    with_letters,
    without_labels,
)
from mdagents.datasets.own_forms import from_objects, list_in
from mdagents.datasets.questions import LETTERS
from mdagents_llm.text import single_spaced, well_formed

MISSING: tuple[object, ...] = (None, "", [], {})
"""Values that count as an empty field."""

_LETTERS = frozenset(LETTERS)
_ANY_LABEL = re.compile(r"\(([A-J])\)")
_LABEL_APART = re.compile(r"(?<!\w)\(([A-J])\)(?!-\w)")  # not of Factor(B), or (E)-stilbene

_DIGITS = re.compile(r"[0-9]{1,9}")

_BETWEEN_LETTERS = re.compile(r"\s*[,;/&]\s*|\s+and\s+")

_TOO_LARGE = 1 << 63  # larger than any count or time; sums of such numbers may not be finite

Tokens = tuple[int | None, int | None, int | None]
"""Token counts (input, output, total); None for an unknown count."""

_JOINTS = re.compile(r"[\s_-]+")
_TEMPERATURE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_DECISIONS = (
    *("finalanswer", "majorityvote", "majority", "answer", "0.0"),
    *("finaldecision", "finalresponse", "finalchoice", "final", "decision", "answerchoice"),
    *("choice", "prediction", "predictedanswer", "predicted", "selected", "output", "result"),
    *("content", "text", "message", "response", "choices"),
)
"""Fields of a response that hold the answer, the most certain first, in lower case and without
spaces, `_` and `-`. The last ones are those of replies of the APIs of OpenAI, Anthropic and
Ollama."""

REVIEW = "final_review"
"""Kind of a multidisciplinary team that reads the reports of the others."""


def options_of(value: Any) -> dict[str, str] | None:
    """Return presented letter -> text; empty when `value` is None, None when it holds no options.

    Args:
        value: Options as an object keyed by letters, or in a form of other programs: a list
            `["(A) text", "(B) text", …]`, a list of the texts alone in order, one string
            `(A) text (B) text …`, or `{"label": letters, "text": texts}`. Letters in a list or a
            string may be in any order. Those that are null are skipped. Elements of a list may be
            `{"key": "A", "value": text}`, `{"A": text}` or `["A", text]`, if all are.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return _in_one_text(value) or None
    value = _without_objects(value)
    if isinstance(value, dict):
        named = value if value.keys() <= _LETTERS else with_letters(value)
        return _texts(named) if named.keys() <= _LETTERS else None
    if not is_listed(value):
        return None
    listed = letters_in_list(value)
    return None if listed is None else _texts(dict(sorted(listed.items())))


def _without_objects(value: Any) -> Any:
    """Return options whose elements are no objects or lists; None if their texts are not clear."""
    if isinstance(value, dict) and value.keys() == {"label", "text"}:
        letters, texts = value["label"], value["text"]
        are_lists = isinstance(letters, list) and isinstance(texts, list)
        if not (are_lists and len(letters) == len(texts)):
            return value
        value = list(map(list, zip(letters, texts, strict=True)))
    if not isinstance(value, list) or not any(isinstance(one, dict | list) for one in value):
        return value
    pairs = [list(*one.items()) if _is_single(one) else one for one in value]
    if all(isinstance(one, list) and len(one) == 2 for one in pairs):
        keys = [letter_marked(str(letter)) for letter, _ in pairs]
        read: Any = dict(zip(keys, [text for _, text in pairs], strict=True))
        if len(read) < len(pairs):
            return None
    elif all(isinstance(one, dict) for one in value):
        read = from_objects(value)
    else:
        return None
    texts = list(read.values()) if isinstance(read, dict) else read
    is_clear = all(text is None or isinstance(text, str | int | float) for text in texts)
    # With letters, one without a text is no option.
    has_texts = (any if isinstance(read, dict) else all)(text not in MISSING for text in texts)
    return read if is_clear and has_texts else None


def _is_single(option: Any) -> bool:
    return isinstance(option, dict) and len(option) == 1 and letter_marked(str(*option)) != ""


def is_listed(value: Any) -> bool:
    """Return whether a value is a text, or a list of not too many options."""
    return isinstance(value, str) or (isinstance(value, list) and len(value) <= len(LETTERS))


def _in_one_text(text: str) -> dict[str, str]:
    """Return letter -> text for options listed in one text: `(A) Iron (B) Zinc`.

    The letters are consecutive from A. They may be in any order if each occurs once; otherwise
    texts mention others, `(C) (A) and (B)`, and the letters are in order.

    Returns:
        The options; empty without any, or if they can be told apart in several ways.
    """
    labels = list(_ANY_LABEL.finditer(text))
    of_all = _between(labels, text)
    of_apart = _between(list(_LABEL_APART.finditer(text)), text)
    if of_all == of_apart:
        return of_all
    readings = [read for read in (of_all, of_apart) if len(read) > 1 and all(read.values())]
    if of_all in readings and len(of_all) == len(labels):
        return of_all
    return readings[0] if len(readings) == 1 else {}


def _between(marks: Sequence[re.Match[str]], text: str) -> dict[str, str]:
    """Return letter -> text between two labels, or after the last one; empty if not clear."""
    letters = sorted({mark[1] for mark in marks})
    if "".join(letters) != LETTERS[: len(letters)]:
        return {}
    if len(marks) > len(letters):
        marks = _only_in_order(marks, len(letters))
    found: dict[str, str] = {}
    end = len(text)
    for mark in reversed(marks):
        found[mark[1]] = text[mark.end() : end].strip()
        end = mark.start()
    return dict(sorted(found.items()))


def _only_in_order(marks: Sequence[re.Match[str]], count: int) -> list[re.Match[str]]:
    """Return the marks of `count` letters from A, of which the first mark is one.

    Returns:
        The marks in order; empty if there is none, or a choice.
    """
    ways = [0] * (count + 1)  # number of letters -> ways in which marks so far begin with them
    read: list[list[re.Match[str]]] = [[] for _ in ways]
    for mark in marks:
        place = LETTERS.index(mark[1])
        before = int(mark is marks[0]) if place == 0 else ways[place]
        if before:
            ways[place + 1] += before
            read[place + 1] = [*read[place], mark]
    return read[count] if ways[count] == 1 else []


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    texts = {letter: str(text) for letter, text in options.items() if text is not None}
    return without_labels(texts)


def gold_of(label: Any, options: Mapping[str, str]) -> str | None:
    """Return the letter of the right option; None when `label` names none.

    Args:
        label: A letter (`C`, `c`, `(C)`, `Option C`), the text of an option in any case, or both
            (`C) text`). Of options with one text, the first counts; they look the same.
        options: Letter -> text; empty when the record has none, in which case any letter may be
            the right one.
    """
    if not isinstance(label, str):
        return None
    if label in (options or _LETTERS):
        return label
    if not options:
        letter = letter_marked(label)
        return letter if letter in _LETTERS else None
    meant = sorted(letters_meant(label, options))
    are_alike = len({options[letter].strip() for letter in meant}) == 1
    return meant[0] if are_alike else None


def names_several(label: Any, options: Mapping[str, str]) -> bool:
    """Return whether a label, such as `A, C` or `["A", "C"]`, names more than one option.

    Args:
        label: Field of a record.
        options: Letter -> text.
    """
    named = list_in(label) if isinstance(label, str) else label
    if isinstance(label, str) and named is None:
        letters = list(map(letter_marked, _BETWEEN_LETTERS.split(label.strip())))
        return len(letters) > 1 and all(letter in options for letter in letters)
    return isinstance(named, list) and len(named) > 1 and all(gold_of(x, options) for x in named)


def id_of(record: Mapping[str, Any]) -> str:
    """Return the id of a record; empty when it is missing or invalid.

    An id is a nonblank string or a number; 3 and 3.0 are equal.
    """
    for name in ("question_id", "id", "realidx"):
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return plain(value)
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return str(int(value) if value == int(value) else value)
    return ""


def fields_of(record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return name and value of the data set's fields that a record keeps, at most `MOST_FIELDS`."""
    fields = object_of(record, "fields").items()
    texts = [(plain(name), plain(value)) for name, value in fields if isinstance(value, str)]
    return tuple(texts[:MOST_FIELDS])


def plain(text: str) -> str:
    """Return the text with characters replaced that some files and programs cannot hold."""
    return well_formed(text).replace("\0", "\ufffd")


def tokens_of(usage: Mapping[str, Any]) -> Tokens:
    """Read token counts under the names of this program, the OpenAI API or the Anthropic API.

    An unknown count under one name does not hide a known one under the other. A total that is
    missing or less than its parts is their sum. Anthropic's `input_tokens` are those that its
    cache did not read or write (https://platform.claude.com/docs/en/api/messages).

    Args:
        usage: `token_usage` object of a record.
    """
    read = count_of(usage.get("input_tokens"))
    kept = [count_of(usage.get(f"cache_{act}_input_tokens")) or 0 for act in ("read", "creation")]
    if read is None:
        read, kept = count_of(usage.get("prompt_tokens")), []
    written = count_of(usage.get("output_tokens"))
    if written is None:
        written = count_of(usage.get("completion_tokens"))
    both = count_of(usage.get("total_tokens"))
    if read is not None:
        # A total below their sum says that the cached ones are among the input.
        whole = read + sum(kept) + (written or 0)
        is_apart = sum(kept) > read or not both or both >= whole
        read += sum(kept) if is_apart else 0
    if read is not None and written is not None:
        both = max(both or 0, read + written)
    return read, written, both


def answer_text(response: Any) -> str | None:
    """Return the text that holds the answer, from any known form of a response.

    Args:
        response: Text, list of parts, or object. Of an object, the first field of `_DECISIONS`
            that is not empty counts, else the only field, or the first of several temperatures.

    Returns:
        The text; None for an object in which any field could be the answer.
    """
    if isinstance(response, dict):
        if all(text in MISSING for text in response.values()):
            return ""
        fields = {_JOINTS.sub("", key).casefold(): text for key, text in response.items()}
        known = [fields[name] for name in _DECISIONS if name in fields]
        if not known and len(response) > 1 and not all(map(_TEMPERATURE.fullmatch, response)):
            return None
        filled = [one for one in known if one not in MISSING and not isinstance(one, bool)]
        return answer_text(next(iter(filled or known or response.values()), ""))
    if isinstance(response, list):
        spoken = [part for part in response if not _is_thought(part)]
        parts = [answer_text(part) for part in spoken]
        texts = [part for part in parts if part is not None]
        return "\n".join(texts) if len(texts) == len(parts) else None
    return "" if response is None else str(response)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")


def opinions_of(
    record: Mapping[str, Any], options: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the first and last letters of all experts, or of the teams if there are no experts.

    First are those before any debate. A review team reads the reports of the others, so that its
    answer is no first opinion.
    """
    if not (record.get("opinions") or record.get("teams")):
        return (), ()
    reports = entries_of(record, "teams")
    assessed = any(report.get("kind") != REVIEW for report in reports)
    stated = [
        (
            str(opinion.get("agent", place)),
            opinion.get("answer"),
            not count_of(opinion.get("round")),
        )
        for place, opinion in enumerate(entries_of(record, "opinions"))
    ] or [
        (str(place), report.get("answer"), not assessed or report.get("kind") != REVIEW)
        for place, report in enumerate(reports)
    ]
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for who, letter, alone in stated:
        if isinstance(letter, str) and letter in options:
            if alone:
                first.setdefault(who, letter)
            last[who] = letter
    return tuple(first.values()), tuple(last.values())


def content_digest(question: str, texts: Collection[str], gold: str) -> int:
    """Return a digest of a question, independent of option order; valid within one process only.

    Args:
        question: Text of the question, with or without the options at its end.
        texts: Texts of the options, sorted.
        gold: Text of the right option; without options, its letter or nothing.
    """
    words = single_spaced(question)
    if has_all(words, texts):
        words = single_spaced(without_options(question.strip(), texts))
    return hash((words, *texts, gold)) >> 4  # 60 bits take 16 bytes less


def response_text(response: Any) -> str:
    """Return all text of a response, from any known form."""
    if isinstance(response, dict):
        response = list(response.values())
    if isinstance(response, list):
        return "\n\n".join(filter(None, map(response_text, response)))
    return "" if response is None else str(response)


def text_of(record: Mapping[str, Any], name: str) -> str:
    """Return the text or number in a field as a string; empty without either."""
    value = record.get(name)
    return str(value) if isinstance(value, str | int | float) else ""


def object_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the JSON object in a field; empty without one."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def number_of(value: Any) -> float | None:
    """Return the value as a float if it is a finite number, else None."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is int and abs(value) < _TOO_LARGE:  # a bool is not a number
        return float(value)
    return None


def amount_of(value: Any) -> float | None:
    """Return the value as a float if it is a finite number that is not negative, else None."""
    number = number_of(value)
    return number if number is not None and number >= 0 else None


def sum_if_known(amounts: Iterable[float | None]) -> float | None:
    """Return the sum of amounts; None if one is unknown."""
    total: float = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def count_of(value: Any) -> int | None:
    """Return an amount truncated to an integer; None if the value is not an amount."""
    if type(value) is int:
        return value if 0 <= value < _TOO_LARGE else None
    number = amount_of(value)
    return None if number is None else int(number)


def epoch_of(value: Any) -> int:
    """Return an epoch as stated, also as a text of digits; 1 if it is no whole number from 0."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    epoch = count_of(value)
    return 1 if epoch is None else epoch


def confidence_of(value: Any) -> float | None:
    """Return the value if it is a number from 0 to 1, else None."""
    number = number_of(value)
    return number if number is not None and 0 <= number <= 1 else None


def entries_of(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the JSON objects in the array in a field; empty without any."""
    value = record.get(name)
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]
