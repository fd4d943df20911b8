"""The sentence about an invalid flag, made of the errors of pydantic."""

from __future__ import annotations

import re
import reprlib

from pydantic import BaseModel, ValidationError

from mdagents.runs.flags.bounds import bounds_in_words
from mdagents.runs.flags.flag import flag_name
from mdagents_llm.terminal.did_you_mean import did_you_mean

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "yes or no",
    "string": "a text",
    "path": "a path",
}
"""Prefix of the name of pydantic's error -> expected value."""
_OF_A_CLOSED_SET = ("enum", "literal_error")
_OUT_OF_BOUNDS = ("greater_than", "greater_than_equal", "less_than_equal")


def first_in_words(error: ValidationError, model: type[BaseModel]) -> str:
    """Return a one-line message about the first invalid flag.

    Args:
        error: Errors of the validation.
        model: Model that was validated.
    """
    first, *others = error.errors()
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return (
            f"there is no setting {name}; a RunConfig takes flags of main.py by their names"
            f"{did_you_mean(name, model.model_fields)}"
        )
    flag = flag_name(name)
    if first["type"] in _OUT_OF_BOUNDS:
        given = first["input"]
        shown = f"{given:g}" if isinstance(given, float) else reprlib.repr(given)
        return f"{flag} is {shown} but must be {bounds_in_words(model, name)}"
    same = [other for other in others if other["loc"][0] == name]
    if first["type"] in _OF_A_CLOSED_SET:
        listed = " ".join(error["ctx"]["expected"] for error in [first, *same])
        allowed = re.findall(r"'([^']+)'", listed)
        return (
            f"{flag} is {reprlib.repr(first['input'])} but must be one of {', '.join(allowed)}"
            f"{did_you_mean(str(first['input']), allowed)}"
        )
    if expected := _TYPES.get(first["type"].partition("_")[0]):
        return f"{flag} is {reprlib.repr(first['input'])} but must be {expected}"
    wrong = " or ".join(part["msg"].removeprefix("Value error, ") for part in [first, *same])
    return f"{flag} is {reprlib.repr(first['input'])}: {wrong}"
