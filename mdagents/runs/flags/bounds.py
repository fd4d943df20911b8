"""The bounds of numbers in flags, and their wording in errors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from mdagents.settings import LARGEST_COUNT, SMALLEST_COUNT

AtLeast1 = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Count = Annotated[int, Field(ge=SMALLEST_COUNT, le=LARGEST_COUNT)]
"""Number of experts, rounds, turns, teams or clinicians."""

MOST_TOKENS = 1_000_000
"""Maximum limit of a reply, in tokens; no model writes that much."""


def bounds_in_words(model: type[BaseModel], name: str) -> str:
    """Return the bounds of a field's number, such as `1 to 10`."""
    schema = model.model_json_schema()["properties"][name]
    match schema.get("anyOf", [schema])[0]:
        case {"minimum": low, "maximum": high}:
            return f"{low:g} to {high:g}"
        case {"minimum": 0}:
            return "0 or more"
        case {"minimum": low}:
            return f"at least {low:g}"
        case {"exclusiveMinimum": low}:
            return f"more than {low:g}"
    raise AssertionError("only these bounds are used")
