"""Fills a client's JSON schema with the answer of a team, or says beforehand why it cannot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from mdagents.serve.errors import ApiError, invalid

_DEEPEST = 8
"""Maximum number of references one after the other."""
_LETTERS = frozenset(
    [
        "answer",
        "finalanswer",
        "answerletter",
        "letter",
        "choice",
        "option",
        "selectedoption",
        "selected",
        "prediction",
        "predicted",
        "answeridx",
        "answerchoice",
        "correctanswer",
        "correctoption",
        "selectedanswer",
        "selectedchoice",
    ]
)
_TEXTS = frozenset(["answertext", "optiontext", "choicetext", "selectedtext"])
_REASONS = frozenset(
    [
        "reasoning",
        "explanation",
        "analysis",
        "rationale",
        "reason",
        "thought",
        "thoughts",
        "thinking",
        "justification",
        "chainofthought",
        "steps",
    ]
)
_CONFIDENCES = frozenset(["confidence", "probability", "certainty"])
_NOTES = {"type", "title", "description", "default", "examples", "enum", "const", "$defs"}
_BOUNDS = {"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "items"}


class _Part(Enum):
    """What a property is filled with."""

    LETTER = auto()
    TEXT = auto()
    REASONS = auto()
    LISTED_REASONS = auto()
    CONFIDENCE = auto()
    CONSTANT = auto()
    NULL = auto()


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    part: _Part
    schema: Mapping[str, Any]
    is_required: bool
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Filling:
    """A schema whose properties a team can fill."""

    properties: Sequence[_Property]

    def fill(
        self, letter: str, text: str, analysis: str, confidence: float | None
    ) -> dict[str, object]:
        """Return the object, its properties in the order of the schema.

        Args:
            letter: Letter of the option.
            text: Text of the option.
            analysis: Reasons of the team.
            confidence: Confidence of the team, 0 to 1; None if it stated none.

        Raises:
            ApiError: The team stated no confidence, and the schema requires it.
        """
        filled: dict[str, object] = {}
        for one in self.properties:
            match one.part:
                case _Part.LETTER:
                    filled[one.name] = _spelled(letter, one.schema)
                case _Part.TEXT:
                    filled[one.name] = text
                case _Part.REASONS:
                    filled[one.name] = _clipped(analysis, one.schema)
                case _Part.LISTED_REASONS:
                    filled[one.name] = [analysis]
                case _Part.CONSTANT:
                    filled[one.name] = one.schema["const"]
                case _Part.NULL:
                    filled[one.name] = None
                case _Part.CONFIDENCE if confidence is not None:
                    filled[one.name] = confidence
                case _ if one.is_nullable:
                    filled[one.name] = None
                case _ if one.is_required:
                    raise ApiError(502, f"the team stated no {one.name}", "no_confidence")
        return filled


def plan_filling(schema: object, options: Mapping[str, str]) -> Filling:
    """Return how a schema is filled.

    Args:
        schema: JSON schema of an object.
        options: Letter -> text of the options of the question.

    Raises:
        ApiError: The schema has no property for the answer, or requires one that a team cannot
            fill; the message names it.
    """
    if not isinstance(schema, dict):
        raise _refused("the schema must be an object")
    root = _resolved(schema, schema)
    properties = root.get("properties")
    if root.get("type", "object") != "object" or not isinstance(properties, dict):
        raise _refused("the schema must be of an object with properties")
    required = root.get("required", [])
    found = []
    for name, given in properties.items():
        own, is_nullable = _without_null(_resolved(given, schema), schema)
        is_required = isinstance(required, list) and name in required
        part = _part_of(str(name), own, options)
        if part is None and is_required:
            if not is_nullable:
                raise _refused(
                    f"a team cannot fill the required property '{name}'; it fills answer (a "
                    "letter), reasoning and confidence"
                )
            part = _Part.NULL
        if part is not None:
            found.append(_Property(str(name), part, own, is_required, is_nullable))
    if not any(one.part in (_Part.LETTER, _Part.TEXT) for one in found):
        raise _refused("the schema has no property for the answer, such as 'answer': a string")
    return Filling(found)


def _refused(message: str) -> ApiError:
    return invalid(f"response_format: {message}", "response_format", "invalid_json_schema")


def _resolved(node: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(_DEEPEST):
        if not isinstance(node, dict):
            raise _refused("a schema in it is not an object")
        reference = node.get("$ref")
        if reference is None and isinstance(one := node.get("allOf"), list) and len(one) == 1:
            node = one[0]
            continue
        if reference is None:
            return node
        at: object = root
        for step in str(reference).removeprefix("#").strip("/").split("/"):
            at = at.get(step) if isinstance(at, dict) and step else at
        node = at
    raise _refused("its references lead in a circle")


def _without_null(
    schema: Mapping[str, Any], root: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """Return a schema without its null alternative, and whether it has one."""
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        others = [
            one for one in choices if not (isinstance(one, dict) and one.get("type") == "null")
        ]
        if len(others) == 1:
            return _resolved(others[0], root), len(others) < len(choices)
        return schema, len(others) < len(choices)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        if len(others) == 1:
            return {**schema, "type": others[0]}, "null" in kinds
    return schema, False


def _part_of(name: str, schema: Mapping[str, Any], options: Mapping[str, str]) -> _Part | None:
    """Return what a property is filled with; None if a team has nothing for it."""
    plain = re.sub(r"[\W_]", "", name.lower())
    if "const" in schema:
        return _Part.CONSTANT
    if set(schema) - _NOTES - _BOUNDS:  # a pattern, a format: what is filled in might not fit
        return None
    if any(not _is_count(schema[name]) for name in _BOUNDS & schema.keys() - {"items"}):
        raise _refused(f"a bound of '{name}' is not a number")
    if isinstance(values := schema.get("enum"), list):
        if all(letter in values or letter.lower() in values for letter in options):
            return _Part.LETTER
        return _Part.TEXT if all(text in values for text in options.values()) else None
    match schema.get("type"):
        case "string" if schema.get("minLength", 0) > 1:
            return None
        case "string" if plain in _LETTERS:
            return _Part.LETTER
        case "string" if plain in _TEXTS and "maxLength" not in schema:
            return _Part.TEXT
        case "string" if plain in _REASONS:
            return _Part.REASONS
        case "array" if plain in _REASONS and _is_list_of_strings(schema):
            return _Part.LISTED_REASONS
        case "number" if plain in _CONFIDENCES and schema.get("minimum", 0) <= 0:
            return _Part.CONFIDENCE if schema.get("maximum", 1) >= 1 else None
        case _:
            return None


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_list_of_strings(schema: Mapping[str, Any]) -> bool:
    items = schema.get("items", {"type": "string"})
    is_short = schema.get("minItems", 0) <= 1 <= schema.get("maxItems", 1)
    return (
        is_short
        and isinstance(items, dict)
        and set(items) <= _NOTES
        and items.get("type") == "string"
    )


def _clipped(text: str, schema: Mapping[str, Any]) -> str:
    longest = schema.get("maxLength")
    return text if longest is None else text[: int(longest)]


def _spelled(letter: str, schema: Mapping[str, Any]) -> str:
    values = schema.get("enum")
    return letter if not isinstance(values, list) or letter in values else letter.lower()
