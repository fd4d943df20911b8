"""Fields of a data set that describe a question, such as its subject; kept in the run's records.

They group the questions in an error analysis and never reach a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mdagents.datasets.empty_options import is_missing
from mdagents.datasets.field_names import is_option_or_answer, plain
from mdagents.datasets.pictures.detection import Field, kind_of_field
from mdagents.datasets.published_names import in_own_names
from mdagents.datasets.question_context import is_context
from mdagents.datasets.question_records import ID_FIELDS
from mdagents_llm.text import one_line

MOST_FIELDS = 20
"""Maximum number of fields that are kept of a question."""

LONGEST_FIELD = 100
"""Maximum number of characters of a field and of its name; longer texts name no group."""

_NOT_KEPT = frozenset({
    "question", "options", "choices", "cop", "exp", "explanation", "rationale",
    "finaldecision", "answertype", "answeroptions", *map(plain, ID_FIELDS),
})  # fmt: skip
"""Fields that are the question itself, its answer or its id; names are normalized by `plain`."""


def kept_fields(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the short fields of a record besides the question, its options, answer and pictures.

    Args:
        record: Record as published or as written by the user. Texts, whole numbers and truth values
            are kept, of nested objects none.

    Returns:
        Name of a field -> its value as one line, at most `MOST_FIELDS`.
    """
    kept: dict[str, str] = {}
    for name, value in in_own_names(record).items():
        if len(kept) < MOST_FIELDS and _describes(name) and (text := _short(value)):
            kept[name] = text
    return kept


@lru_cache
def _describes(name: str) -> bool:
    return (
        0 < len(name) <= LONGEST_FIELD
        and name.isprintable()
        and plain(name) not in _NOT_KEPT
        and not is_option_or_answer(name)
        and not is_context(name)
        and kind_of_field(name) is Field.OTHER
    )


def _short(value: object) -> str:
    if not isinstance(value, str | int) or (isinstance(value, str) and is_missing(value)):
        return ""
    text = one_line(str(value)[: 2 * LONGEST_FIELD])
    return text if len(text) <= LONGEST_FIELD else ""
