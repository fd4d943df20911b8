"""Validates a data set record and converts it to a question; errors name the field."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from mdagents.datasets.empty_options import shown_options
from mdagents.datasets.field_names import plain
from mdagents.datasets.listed_options import without_options
from mdagents.datasets.near_duplicates import fingerprint, letters_and_digits
from mdagents.datasets.option_letters import letters_meant, without_labels
from mdagents.datasets.option_places import naming_letters
from mdagents.datasets.own_forms import empty_answer
from mdagents.datasets.picture_fields import (
    FoundPictures,
    read_pictures,
    without_option_pictures,
)
from mdagents.datasets.pictures.detection import text_of_parts
from mdagents.datasets.published_forms import in_medqa_form
from mdagents.datasets.published_names import answer_read_as, in_own_names
from mdagents.datasets.question_context import with_context
from mdagents.datasets.questions import LETTERS, SourceQuestion
from mdagents_llm.errors import ConfigError

ID_FIELDS = ("realidx", "id", "question_id", "pubid", "idx", "sample_id")
"""Field names for the id of a question; the first that is present counts. A name in another
spelling (`ID`, `Question ID`) counts if there is none of these and its value is an id."""

LONGEST_TEXT = 100_000
"""Maximum number of characters of a question or an option: ten times the longest published ones. A
longer text is not meant as a question for a model."""

LONGEST_ID = 200
"""Maximum number of characters of an id, which is used in file names."""


def parse_question(
    record: object,
    where: str,
    number: int,
    cop_from: int | None = None,
    *,
    folder: Path | None = None,
    needs_gold: bool = True,
) -> SourceQuestion:
    """Validate a record and return its question.

    Args:
        record: Parsed JSON of the line: an object with `question`, `options` (letter -> text, with
            consecutive letters from A, of which 2 to 10 are neither empty nor `n/a`, nor a trailing
            `nan`), `answer_idx` (a letter), and optionally an id; or a form known to
            `published_forms`.
        where: File and line, for error messages.
        number: Line number from 1, used as the id of a record without one.
        cop_from: Value of MedMCQA's field `cop` for the first option in this file: 0 or 1.
        folder: Folder that the paths of pictures are relative to; None: a picture must be in the
            record itself.
        needs_gold: Whether `answer_idx` is required.

    Raises:
        ConfigError: The record is invalid; the message names file, line and field.
    """
    if not isinstance(record, dict):
        raise ConfigError(f"{where}: a question must be a JSON object")
    named = in_own_names(record)
    where += answer_read_as(record, named)
    published = record = dict(named)
    record, of_options = without_option_pictures(record)
    record = in_medqa_form(record, where, cop_from)
    text = text_of_parts(record.get("question"))
    if not isinstance(text, str) or not text.strip():
        if "question" not in record:
            raise ConfigError(
                f"{where}: there is no field 'question', but {_names(published)}; needed are "
                "question, options (or A, B, C, …) and answer_idx"
            )
        raise ConfigError(f"{where}: field 'question' must be a non-empty text")
    texts = _texts(record.get("options"), where)
    letters = list(texts)
    text = with_context(published, text, texts, where)
    found = read_pictures(
        published,
        record["question"],
        text,
        texts,
        {letters[place]: said for place, said in of_options.items() if place < len(letters)},
        folder,
        where,
    )
    text, pictures, missing = found.text, found.pictures, found.missing
    if isinstance(record["question"], list):  # its parts were read again, for their pictures
        text = with_context(published, text, texts, where)
    _check_length(text, f"{where}: field 'question'")
    options, hidden = _options(found, where)
    text = without_options(text.strip(), [option.strip() for option in texts.values()])
    gold = record.get("answer_idx")
    if gold is None and not needs_gold:
        id_ = _id(record, where, number)
        return SourceQuestion(id_, text, options, "", hidden, pictures, missing)
    if "answer_idx" not in record:
        if name := empty_answer(published):
            raise ConfigError(
                f"{where}: field {name!r} is empty: write the letter of the right option"
            )
        raise ConfigError(
            f"{where}: no field says which option is right, such as answer_idx with its letter; "
            f"there are {_names(published)}"
        )
    if isinstance(gold, str) and gold in hidden:
        raise ConfigError(
            f"{where}: field 'answer_idx' is {gold!r}, and that option is empty or n/a"
        )
    if not isinstance(gold, str) or gold not in options:
        raise ConfigError(
            f"{where}: field 'answer_idx' is {reprlib.repr(gold)} "
            f"but must be one of {', '.join(options)}"
        )
    answer = record.get("answer")
    if isinstance(answer, str) and answer.strip() and answer != texts[gold]:  # unlike nearly all
        _check_answer(answer, texts, f"{where}: field 'answer'", gold)
    id_ = _id(record, where, number)
    return SourceQuestion(id_, text, options, gold, hidden, pictures, missing)


def _names(record: Mapping[str, object]) -> str:
    return reprlib.repr([*record])[1:-1]


def _check_answer(answer: str, texts: Mapping[str, str], field: str, gold: str) -> None:
    if gold in letters_meant(answer, texts):
        return
    fitting = [letter for letter in texts if fingerprint(texts[letter]) == fingerprint(answer)]
    is_another = bool(fitting) and gold not in fitting
    if is_another or letters_and_digits(answer) != letters_and_digits(texts[gold]):
        raise ConfigError(f"{field} differs from the text of option {gold}; one of them is wrong")


def _check_length(text: str, field: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise ConfigError(f"{field} has {len(text):,} characters, at most {LONGEST_TEXT:,} may be")


def _texts(options: object, where: str) -> dict[str, str]:
    """Return letter -> text of all options."""
    if not isinstance(options, dict):
        if options is None:
            raise ConfigError(
                f"{where}: there are no options: give a field 'options' with a list of texts, or "
                "a field for each of them: A, B, C, …"
            )
        raise ConfigError(
            f"{where}: field 'options' must be an object with letters, or a list of at most "
            f"{len(LETTERS)} texts"
        )
    letters = ",".join(options)
    if letters != ",".join(LETTERS[: len(options)]):
        raise ConfigError(
            f"{where}: option letters {reprlib.repr(letters)[1:-1]} are not consecutive from A to "
            f"{LETTERS[-1]} at most"
        )
    texts: dict[str, str] = {}
    for letter, text in options.items():
        if isinstance(text, float) and math.isnan(text):
            text = ""
        if not isinstance(text, str | None):
            raise ConfigError(f"{where}: option {letter} must be a text")
        texts[letter] = text or ""
    return without_labels(texts)


def _options(found: FoundPictures, where: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return letter -> text of the shown options, and of the hidden ones."""
    for letter, text in found.options.items():
        _check_length(text, f"{where}: option {letter}")
    shown = shown_options(found.options, {picture.option for picture in found.pictures})
    hidden = {letter: text for letter, text in found.options.items() if letter not in shown}
    if len(shown) < 2:
        raise ConfigError(
            f"{where}: field 'options' must have 2 to {len(LETTERS)} that are not empty"
        )
    moved = next((letter for letter in hidden if letter < max(shown)), None)
    if moved and (naming := naming_letters(shown)):
        raise ConfigError(
            f"{where}: option {naming[0]} names options by letter, and option {moved}, which is "
            "empty or n/a, would move them"
        )
    return shown, hidden


def id_field(record: Mapping[str, object]) -> str | None:
    """Return the name of the field with the id of a question; None without an id."""
    for field in ID_FIELDS:
        if record.get(field) is not None:
            return field
    # Another value, such as the `_id` object of a database, is not meant as the id of a question.
    named = [name for name in record if _names_id(name) and _is_id(record[name])]
    return min(named, key=lambda name: _PLAIN_IDS.index(plain(name)), default=None)


_PLAIN_IDS = [plain(field) for field in ID_FIELDS]


@lru_cache(maxsize=256)  # the records of a file have the same fields
def _names_id(name: str) -> bool:
    return plain(name) in _PLAIN_IDS


def _is_id(value: object) -> bool:
    """Return whether a value is a whole number or one line of text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    id_ = str(value).strip()
    return 0 < len(id_) <= LONGEST_ID and id_.isprintable()


def _id(record: Mapping[str, object], where: str, number: int) -> str:
    field = id_field(record)
    if field is None:
        return f"sample_{number}"
    value = record[field]
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise ConfigError(f"{where}: field '{field}' must be a text or a whole number")
    id_ = str(value).strip()
    if len(id_) > LONGEST_ID or not id_.isprintable():
        raise ConfigError(
            f"{where}: field '{field}' must be one line of at most {LONGEST_ID} characters"
        )
    return id_
