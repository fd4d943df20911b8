"""Fills a client's JSON schema with the answer of a team, or says beforehand why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from urllib.parse import unquote

from mdagents.datasets.field_names import plain as plain_name
from mdagents.serve.errors import ApiError, invalid
from mdagents.serve.schema_words import (
    LETTERS,
    TEXTS,
    confidence_scale,
    contradiction,
    is_for_letter,
)

_DEEPEST = 8
"""Maximum number of references one after the other."""
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
_SIZES = {"minLength", "maxLength", "minItems", "maxItems"}
_CONDITIONS = {
    "$dynamicRef", "$ref", "allOf", "anyOf", "contains", "else", "exclusiveMaximum",
    "exclusiveMinimum", "format", "if", "multipleOf", "not", "oneOf", "pattern", "prefixItems",
    "then", "uniqueItems",
}  # fmt: skip
"""Keywords under which what is filled in might not be valid; an unknown keyword is a note."""
_OF_THE_WHOLE = {
    "allOf", "anyOf", "const", "dependentRequired", "dependentSchemas", "else", "enum", "if",
    "maxProperties", "minProperties", "not", "oneOf", "patternProperties", "propertyNames", "then",
}  # fmt: skip
"""Keywords of the object itself under which what is filled in might not be valid."""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list, "boolean": bool, "integer": int, "null": type(None), "number": (int, float),
    "object": dict, "string": str,
}  # fmt: skip


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
            ApiError: The team stated no confidence or no reasons, and the schema requires them.
        """
        filled: dict[str, object] = {}
        for one in self.properties:
            match one.part:
                case _Part.LETTER:
                    filled[one.name] = _spelled(letter, one.schema)
                case _Part.TEXT:
                    filled[one.name] = text
                case _Part.REASONS if analysis or not one.schema.get("minLength"):
                    filled[one.name] = _clipped(analysis, one.schema)
                case _Part.LISTED_REASONS:
                    filled[one.name] = [analysis]
                case _Part.CONSTANT:
                    filled[one.name] = one.schema["const"]
                case _Part.NULL:
                    filled[one.name] = None
                case _Part.CONFIDENCE if confidence is not None:
                    value = round(confidence * confidence_scale(one.schema), 10)
                    filled[one.name] = round(value) if one.schema["type"] == "integer" else value
                case _ if one.is_nullable:
                    filled[one.name] = None
                case _ if one.is_required:
                    code = "no_confidence" if one.part is _Part.CONFIDENCE else "no_reasons"
                    raise ApiError(502, f"the team stated no {one.name}", code)
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
    if conditions := sorted(_OF_THE_WHOLE & root.keys()):
        raise _refused(f"a team cannot follow {' and '.join(conditions)} of its root; leave it out")
    required = root.get("required", [])
    for name in required if isinstance(required, list) else ():
        if not isinstance(name, str) or name not in properties:
            raise _refused(f"a team cannot fill the required property {name!r:.80}")
    found = []
    reasons: dict[str, str] = {}
    resolved = {
        name: _without_null(_resolved(given, schema), schema) for name, given in properties.items()
    }
    parts = _parts_of({str(name): own for name, (own, _) in resolved.items()}, options)
    for name, (own, is_nullable) in resolved.items():
        is_required = isinstance(required, list) and name in required
        part = parts[str(name)]
        if isinstance(part, str):
            if is_required and not is_nullable:
                raise _refused(f"a team cannot fill the required property '{name}'{part}")
            reasons[plain_name(str(name))] = f"a team cannot fill the property '{name}'{part}"
            if is_required:
                found.append(_Property(str(name), _Part.NULL, own, is_required, is_nullable))
        else:
            found.append(_Property(str(name), part, own, is_required, is_nullable))
    if not any(one.part in (_Part.LETTER, _Part.TEXT) for one in found):
        none = "the schema has no property for the answer, such as 'answer': a string"
        raise _refused(
            next((why for name, why in reasons.items() if name in LETTERS | TEXTS), none)
        )
    return Filling(found)


def _refused(message: str) -> ApiError:
    return invalid(f"response_format: {message}", "response_format", "invalid_json_schema")


def _resolved(node: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with what it refers to; its own keywords count first."""
    for _ in range(_DEEPEST):
        if not isinstance(node, dict):
            raise _refused("a schema in it is not an object")
        reference = node.get("$ref")
        if reference is None and isinstance(one := node.get("allOf"), list) and len(one) == 1:
            node = _merged(one[0], node, "allOf")
            continue
        if reference is None:
            return node
        at: object = root
        for step in str(reference).removeprefix("#").strip("/").split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")  # RFC 6901
            at = at.get(name) if isinstance(at, dict) and step else at
        if not isinstance(at, dict):
            raise _refused(f"its reference {str(reference)!r:.80} leads to no schema")
        node = _merged(at, node, "$ref")
    raise _refused("its references lead in a circle")


def _merged(inner: object, outer: Mapping[str, Any], keyword: str) -> object:
    """Return a schema with the other keywords of the one that holds it by `keyword`."""
    others = {name: value for name, value in outer.items() if name != keyword}
    return {**inner, **others} if isinstance(inner, dict) else inner


def _without_null(
    schema: Mapping[str, Any], root: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """Return a schema without its null alternative, and whether it has one."""
    keyword = "anyOf" if schema.get("anyOf") else "oneOf"
    choices = schema.get(keyword)
    if isinstance(choices, list):
        others = [
            one for one in choices if not (isinstance(one, dict) and one.get("type") == "null")
        ]
        if len(others) == 1:
            only = _merged(_resolved(others[0], root), schema, keyword)
            return _resolved(only, root), len(others) < len(choices)
        return schema, len(others) < len(choices)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        if len(others) == 1:
            return {**schema, "type": others[0]}, "null" in kinds
    return schema, schema.get("nullable") is True


def _parts_of(
    properties: Mapping[str, Mapping[str, Any]], options: Mapping[str, str]
) -> dict[str, _Part | str]:
    """Return what each property is filled with, or why a team has nothing for it.

    Of several properties that may be for the letter, those that do not say so are not filled: one
    of them may be for a second choice or for a text.
    """
    parts = {name: _part_of(name, own, options) for name, own in properties.items()}
    letters = [name for name, part in parts.items() if part is _Part.LETTER]
    if len(letters) > 1:
        why = " because others may be for the letter too; say 'letter' in its description"
        parts |= {name: why for name in letters if not is_for_letter(name, properties[name])}
    return parts


def _part_of(name: str, schema: Mapping[str, Any], options: Mapping[str, str]) -> _Part | str:
    """Return what a property is filled with, or why a team has nothing for it."""
    plain = plain_name(name)
    if "const" in schema:
        _check_bounds(name, schema)
        fits = _fits(schema["const"], schema)
        return _Part.CONSTANT if fits else " because its const is not of its type or in its bounds"
    values = schema.get("enum")
    if not isinstance(values, list) and plain not in LETTERS | TEXTS | _REASONS | _CONFIDENCES:
        return "; it fills answer (a letter), reasoning and confidence"
    if found := sorted(_CONDITIONS & schema.keys()):
        instead = ", or give an enum of the letters" if plain in LETTERS else ""
        return f" because of its {' and '.join(found)}; leave that out{instead}"
    _check_bounds(name, schema)
    if isinstance(values, list):
        letters = [_spelled(letter, schema) for letter in options]
        for part, filled in ((_Part.LETTER, letters), (_Part.TEXT, list(options.values()))):
            if all(one in values for one in filled):
                fits = all(_fits(one, schema) for one in filled)
                unfit = " because its enum is not of its type or in its bounds"
                return contradiction(name, schema, part is _Part.LETTER) or (
                    part if fits else unfit
                )
        return " because its enum has neither the letters nor the texts of all options"
    least = max(1 if plain in LETTERS else 0, schema.get("minLength", 0))
    match schema.get("type"):
        case "string" if least > 1:
            return " because of its minLength; leave that out"
        case "string" if schema.get("maxLength", least) < least:
            return " because of its maxLength; leave that out"
        case "string" if plain in TEXTS and "maxLength" in schema:
            return " because of its maxLength; leave that out"
        case "string" if plain in LETTERS:
            return contradiction(name, schema, is_letter=True) or _Part.LETTER
        case "string" if plain in TEXTS:
            return _Part.TEXT
        case "string" if plain in _REASONS:
            return _Part.REASONS
        case "array" if plain in _REASONS:
            is_list = _is_list_of_strings(schema)
            return _Part.LISTED_REASONS if is_list else " unless it may be a list of one string"
        case "number" | "integer" as kind if plain in _CONFIDENCES:
            scales = (100,) if kind == "integer" else (1, 100)
            is_known = schema.get("minimum", 0) == 0 and confidence_scale(schema) in scales
            named = " or ".join(str(scale) for scale in scales)
            return _Part.CONFIDENCE if is_known else f" unless its scale is 0 to {named}"
        case _:
            return f" unless its type is {'number' if plain in _CONFIDENCES else 'string'}"


def _check_bounds(name: str, schema: Mapping[str, Any]) -> None:
    for bound in (_SIZES | {"minimum", "maximum"}) & schema.keys():
        value = schema[bound]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _refused(f"{bound} of '{name}' is not a number")
        if bound in _SIZES and value < 0:
            raise _refused(f"{bound} of '{name}' is not a number of 0 or more")


def _fits(value: object, schema: Mapping[str, Any]) -> bool:
    """Return whether a value is of the type of a schema and within its bounds.

    A type that JSON schema does not know, such as `STRING` of other APIs, is no condition.
    """
    given = schema.get("type")
    kinds = [kind for kind in _TYPES if kind in (given if isinstance(given, list) else [given])]
    if kinds and not any(_is_of(kind, value) for kind in kinds):
        return False
    match value:
        case bool():
            return True
        case int() | float():
            least, most = schema.get("minimum", value), schema.get("maximum", value)
            return bool(least <= value <= most)
        case str():
            length = len(value)
            least, most = schema.get("minLength", length), schema.get("maxLength", length)
            return bool(least <= length <= most)
        case _:
            return True


def _is_of(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _is_list_of_strings(schema: Mapping[str, Any]) -> bool:
    items = schema.get("items", {"type": "string"})
    is_short = schema.get("minItems", 0) <= 1 <= schema.get("maxItems", 1)
    return (
        is_short
        and isinstance(items, dict)
        and not items.keys() & (_CONDITIONS | _SIZES | {"const", "enum"})
        and items.get("type") == "string"
    )


def _clipped(text: str, schema: Mapping[str, Any]) -> str:
    longest = schema.get("maxLength")
    return text if longest is None else text[: int(longest)]


def _spelled(letter: str, schema: Mapping[str, Any]) -> str:
    values = schema.get("enum")
    return letter if not isinstance(values, list) or letter in values else letter.lower()
