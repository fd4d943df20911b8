"""Names of the fields of user-supplied questions."""

from __future__ import annotations

import re
from functools import lru_cache

COUNTED = {"answerindex": 0, "answernumber": 1}
"""Field with the number of the right option -> number of the first option."""

ANSWERS = ("answeridx", *COUNTED, "answer")
"""Fields with the right option, which must agree; names are normalized by `plain`."""

OTHER_ANSWERS = (
    "correctanswer",
    "correctoption",
    "correct",
    "answerkey",
    "label",
    "gold",
    "target",
    "answerid",
)
"""Fields with the right option if none of `ANSWERS` is present; the first one counts."""

COLUMN = re.compile(r"(?:option|choice|op)?([a-j])")
"""Name of a column of an option with a letter; also how an answer refers to it."""
NUMBERED = re.compile(r"(?:option|choice|op)(\d{1,2})")
"""Name of a column of an option with a number, from 0 or 1; also how an answer refers to it."""


def plain(name: str) -> str:
    """Return a field name in lowercase without spaces and punctuation: `Option A` -> `optiona`."""
    return re.sub(r"[\W_]", "", name.lower())


def is_option_or_answer(name: str) -> bool:
    """Return whether a field is named like one with an option or with the right one."""
    named = plain(name)
    is_option = COLUMN.fullmatch(named) or NUMBERED.fullmatch(named)
    return bool(is_option) or names_right_option(name)


@lru_cache(maxsize=256)  # the records of a file have the same fields
def names_right_option(name: str) -> bool:
    """Return whether a field is named like one with the right option."""
    return plain(name) in (*ANSWERS, *OTHER_ANSWERS)
