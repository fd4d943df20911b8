"""The outcome of a question as stated by its record, in our terms or another program's."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdagents.settings import Status

_OURS = {status.value: status for status in Status}
_FAILED = re.compile(
    # "inferred", "preferred", "deferred" and "transferred" are no errors.
    r"abort|cancel|crash|(?<!inf)(?<!ref)(?<!def)(?<!nsf)err|exception|fail|incomplete|pending"
    "|refus|reject|running|timed?.?out",
    re.IGNORECASE,
)
_NO_FAILURE = re.compile(
    r"(?<![^\W_])(no|without)[ _-](errors?|failures?|exceptions?)(?![^\W_])"
    r"|\b0 (errors|failures|exceptions)\b"
    r"|\bnot[ _-](failed|an error)\b|\berrors?[ _-]free\b|\berrors?: ?(none|no|0)\W*\Z",
    re.IGNORECASE,
)
_NO_ERROR = frozenset(
    ["", "-", "0", "false", "n/a", "na", "nan", "nil", "no", "no error", "none", "null", "ok"]
)
"""Texts in lower case that tables and programs write where there is no error."""
_FIRST_ERROR_CODE = 400  # HTTP status


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a question as stated by its record."""

    status: Status
    """Status of the question; `answered` means that the reply decides."""
    foreign: str = ""
    """The stated outcome if it is not one of our statuses, else empty."""


_ANSWERED = Verdict(Status.ANSWERED)

OUTCOME = ("status", "error")
"""Fields of a record that state its outcome."""


def verdict_of(record: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a record.

    A status that is not one of ours is ignored in favor of the reply, unless it states a failure: a
    word of `_FAILED`, false, or a number from 400 on. An `error` also states a failure, unless it
    says that there is none, or the record has one of our statuses. A failure becomes `api_error`,
    whatever the reply holds.

    Args:
        record: Record with the fields `OUTCOME`, or without.
    """
    stated = record.get("status")
    if isinstance(stated, str) and stated in _OURS:
        return Verdict(_OURS[stated])
    error = record.get("error")
    is_error = _is_error(error)
    if stated is None and not is_error:
        return _ANSWERED
    if is_error:
        return Verdict(Status.API_ERROR, _named("error", error if stated is None else stated))
    failed = _tells_of_failure(stated)
    foreign = _named("status", stated) if stated is not None else ""
    return Verdict(Status.API_ERROR if failed else Status.ANSWERED, foreign)


def _is_error(error: Any) -> bool:
    if isinstance(error, str):
        return error.strip().rstrip(".").casefold() not in _NO_ERROR
    if isinstance(error, list):
        return any(map(_is_error, error))
    return bool(error) and not isinstance(error, float)


def _tells_of_failure(stated: Any) -> bool:
    if isinstance(stated, str):
        return _FAILED.search(_NO_FAILURE.sub("", stated)) is not None
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return stated >= _FIRST_ERROR_CODE
    return stated is False


def _named(field: str, value: Any) -> str:
    return f"{field} {reprlib.repr(value)}"
