"""Values that satisfy a reply schema, made up from a seed: what a well-behaved model would say.

It knows what `mdagents_llm.json_schema.reply_schema` writes, and refuses anything else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from mdagents_llm.json_schema import JsonSchema
from tests.support.medical_prose import SPECIALTIES, prose

FieldPath = tuple[str | int, ...]
"""Where a value stands in the reply: `("experts", 0, "role")`; `()` is the whole reply."""


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""'No opinion about this value': the filler makes one up. (None is a value of its own: null.)"""

FieldPolicy = Callable[[FieldPath], Any]
"""Returns the value of a field, or `MISSING`."""

USUAL_WORDS = 40
_SPECIALTY_FIELDS = ("role", "specialty", "reports_to")
_USUAL_ITEMS = 2
_NOTES = {"title", "description", "default"}
_KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum", "const", "minLength", "maxLength"},
    "integer": {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": {"enum", "const"},
    "null": set[str](),
}
_LIMIT = re.compile(r"(minimum|maximum|minItems|maxItems): (-?[\d.]+)")


class UnsupportedSchemaError(ValueError):
    """The schema asks for something that no reply schema of this project asks for."""


def fill(
    schema: JsonSchema,
    key: bytes,
    *,
    words: int = USUAL_WORDS,
    words_by_field: Mapping[str, int] | None = None,
    given: Any = MISSING,
    policy: FieldPolicy | None = None,
) -> Any:
    """Return a value that `schema` accepts.

    The value of a field depends on the key and on the field's path only, so that scripting one
    field leaves the others as they were.

    Args:
        schema: A reply schema, references resolved.
        key: At most 64 bytes that decide what is made up.
        words: Of free text.
        words_by_field: Words of fields of these names; a field called `role`, `specialty` or
            `reports_to` holds the name of a specialty unless it is listed here, `name` that of a
            team.
        given: What is already known: kept as it is, right or wrong; where it is a dict that lacks
            properties, those are added.
        policy: Asked for every value that is not given.

    Raises:
        UnsupportedSchemaError: The schema has a keyword that this filler does not know.
    """
    return _Filling(key, words, words_by_field or {}, policy).value(schema, (), given)


def _with_limits_of_words(schema: JsonSchema) -> JsonSchema:
    """Return a schema with the limits that its description names, where the API takes no others."""
    told = _LIMIT.findall(schema.get("description", ""))
    return schema | {name: json.loads(value) for name, value in told}


@dataclass(frozen=True)
class _Filling:
    key: bytes
    words: int
    words_by_field: Mapping[str, int]
    policy: FieldPolicy | None

    def number(self, path: FieldPath, salt: str = "") -> int:
        """Return 64 bits that depend on the key and the path, the same in every process."""
        digest = hashlib.blake2b(f"{path}{salt}".encode(), digest_size=8, key=self.key).digest()
        return int.from_bytes(digest, "big")

    def value(self, schema: JsonSchema, path: FieldPath, given: Any = MISSING) -> Any:
        if given is MISSING and self.policy is not None:
            given = self.policy(path)
        if "anyOf" in schema:
            schema = self._variant(schema["anyOf"], path, given)
        schema = _with_limits_of_words(schema)
        kind = schema.get("type", "string" if schema.keys() & {"enum", "const"} else None)
        unknown = schema.keys() - {"type"} - _NOTES - _KEYWORDS.get(str(kind), set())
        if str(kind) not in _KEYWORDS or unknown:
            raise UnsupportedSchemaError(f"{path}: type {kind!r} with {sorted(unknown)}")
        if kind == "object" and (given is MISSING or isinstance(given, dict)):
            return self._object(schema["properties"], path, {} if given is MISSING else given)
        if kind == "array" and (given is MISSING or isinstance(given, list)):
            return self._array(schema, path, given)
        return self._scalar(schema, path) if given is MISSING else given

    def _variant(self, variants: list[JsonSchema], path: FieldPath, given: Any) -> JsonSchema:
        """Return one of the variants; where null is allowed, it is a quarter of all values.

        Of objects it is one that has the properties that are given.
        """
        number = self.number(path, "|")
        if isinstance(given, dict):
            variants = [one for one in variants if _may_hold(one, given)] or variants
        nulls = [variant for variant in variants if variant.get("type") == "null"]
        told = [variant for variant in variants if variant.get("type") != "null"]
        return nulls[0] if nulls and number % 4 == 0 else told[number % len(told)]

    def _object(
        self, properties: dict[str, JsonSchema], path: FieldPath, given: dict[str, Any]
    ) -> dict[str, Any]:
        made = {
            name: self.value(rule, (*path, name), given.get(name, MISSING))
            for name, rule in properties.items()
        }
        return made | {name: value for name, value in given.items() if name not in properties}

    def _array(self, schema: JsonSchema, path: FieldPath, given: Any) -> list[Any]:
        if given is MISSING:
            usual = min(_USUAL_ITEMS, schema.get("maxItems", _USUAL_ITEMS))
            given = [MISSING] * (schema.get("minItems") or usual)
        return [self.value(schema["items"], (*path, at), item) for at, item in enumerate(given)]

    def _scalar(self, schema: JsonSchema, path: FieldPath) -> Any:
        number = self.number(path)
        match schema.get("type"):
            case _ if "const" in schema:
                return schema["const"]
            case _ if "enum" in schema:
                return schema["enum"][number % len(schema["enum"])]
            case "string":
                return self._text(schema, path)
            case "integer":
                low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
                high = schema.get(
                    "maximum", schema.get("exclusiveMaximum", max(10, low + 10) + 1) - 1
                )
                return low + number % (high - low + 1)
            case "number":
                low = schema.get("minimum", schema.get("exclusiveMinimum")) or 0.0
                high = schema.get("maximum", schema.get("exclusiveMaximum", low + 1.0))
                exact = low + (high - low) * (number % 9999 + 1) / 10001
                rounded = round(exact, 2)
                return rounded if low < rounded < high else exact
            case "boolean":
                return number % 2 == 0
        return None

    def _text(self, schema: JsonSchema, path: FieldPath) -> str:
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        number = self.number(path)
        words = self.words_by_field.get(name)
        if words is None and name in (*_SPECIALTY_FIELDS, "name"):
            # Neighbours in a list get different specialties, as a recruiter would choose them.
            places = [part for part in path if isinstance(part, int)]
            number = self.number(tuple(part for part in path if isinstance(part, str)))
            number += sum(place * 5**at for at, place in enumerate(reversed(places)))
            specialty = SPECIALTIES[number % len(SPECIALTIES)]
            text = f"{specialty} team" if name == "name" else specialty
        else:
            text = prose(words or self.words, number)
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if len(text) < least:
            text = f"{text} {prose(least, number)}"
        return text[:most].rstrip(" \n").ljust(least, ".")


def _may_hold(schema: JsonSchema, given: dict[str, Any]) -> bool:
    fields = schema.get("properties", {})
    return given.keys() <= fields.keys() and all(
        value in fields[name].get("enum", [value]) for name, value in given.items()
    )
