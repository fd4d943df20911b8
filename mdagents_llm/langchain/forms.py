"""Reply forms for arbitrary JSON schemas: the schema sent to a model, and the value read back.

`mdagents_llm.json_schema` and the endpoints' strict modes support a subset of JSON Schema: each
property is required, no others are allowed, and there are no references. A schema is translated
into that subset:

- an optional property may be null, and null is removed from the result;
- a value with an open schema (any value, an object without properties) or a recursive schema, whose
  depth is unbounded, is requested as a string that holds JSON, and parsed;
- keywords that strict modes do not know (`format`, `not`, …) are not sent.

The reply is then validated against the whole schema, and requested again if it does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, NoReturn

import jsonschema_rs
from pydantic import PrivateAttr, RootModel, model_validator

from mdagents_llm.errors import ConfigError
from mdagents_llm.json_schema import JsonSchema

Read = Callable[[dict[str, Any]], Any]
"""Function that converts an object written by a model to its value, or raises ValueError."""

_KEPT: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "boolean": (),
    "null": (),
}
OPEN = (
    "A value whose schema leaves its form open, or refers back to itself, is written as a string "
    "that holds JSON."
)
"""Instruction added to the prompt of a schema that is open."""
_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
_MOST_ITEMS = 16


class Form(RootModel[dict[str, Any]]):
    """The form of a reply whose schema is known at run time only; made by `form_of`."""

    asked_schema: ClassVar[JsonSchema]
    read: ClassVar[Read]
    _meaning: Any = PrivateAttr(None)

    @classmethod
    def model_json_schema(cls, *arguments: Any, **settings: Any) -> JsonSchema:
        """Return the schema that is sent to a model."""
        return cls.asked_schema

    @property
    def meaning(self) -> Any:
        """Value that `read` returned for the reply."""
        return self._meaning

    @model_validator(mode="after")
    def _read(self) -> Form:
        self._meaning = type(self).read(self.root)
        return self


def form_of(asked_schema: JsonSchema, read: Read) -> type[Form]:
    """Return a form whose replies follow `asked_schema` and are converted by `read`."""

    class Reply(Form):
        pass

    Reply.asked_schema = asked_schema
    Reply.read = staticmethod(read)
    return Reply


class Shape:
    """One JSON schema: the form in which it is sent to a model, and the reading of its value.

    Args:
        schema: Any JSON schema; `$ref` may refer to a place within it.
        name: Name of the described value, for messages.
        longest: Maximum characters of a string without `maxLength`, for a model whose grammar needs
            a bound; None for no bound.

    Raises:
        ConfigError: The schema has a dangling reference, or is not a JSON schema.
    """

    def __init__(self, schema: JsonSchema, name: str, longest: int | None = None) -> None:
        self._name = name
        self._longest = longest
        self._refers_to_itself = False
        self._schema: JsonSchema = self._resolved(schema, schema, ())
        self.told = schema if self._refers_to_itself else self._schema
        """Complete schema, with references resolved unless it is recursive."""
        try:
            self._validator = jsonschema_rs.validator_for(self.told)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise ConfigError(
                f"the schema of {name} is not a valid JSON schema: {_line(error)}"
            ) from None
        self.is_open = False
        """Whether any value is requested as a string that holds JSON."""
        self.asked = self._asked(self._schema)
        """Schema that is sent to a model."""

    @property
    def has_fields(self) -> bool:
        """Whether a value is an object with named properties."""
        return bool(self._schema.get("properties"))

    def read(self, value: object) -> Any:
        """Return the value that a model's reply stands for.

        Raises:
            ValueError: The value does not fit the schema.
        """
        meant = _meant(self._schema, value)
        error = next(self._validator.iter_errors(meant), None)
        if error is not None:
            place = "".join(f"[{part!r}]" for part in error.instance_path)
            raise ValueError(f"{self._name}{place}: {_line(error)}")
        return meant

    def _resolved(self, node: Any, root: JsonSchema, path: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self._resolved(item, root, path) for item in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str):
            if reference in path:
                self._refers_to_itself = True
                return {}
            target = self._resolved(_target(root, reference, self._name), root, (*path, reference))
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return target | self._resolved(beside, root, path) if beside else target
        # Property names and enumeration values are not schemas.
        return {
            key: value
            if key in ("enum", "const", "default", "examples")
            else {name: self._resolved(inner, root, path) for name, inner in value.items()}
            if key == "properties" and isinstance(value, dict)
            else self._resolved(value, root, path)
            for key, value in node.items()
            if key not in ("$defs", "definitions")
        }

    def _asked(self, node: Any) -> JsonSchema:
        variants = _variants(node)
        if variants is not None:
            return _any_of(self._asked(variant) for variant in variants)
        values = _values(node)
        if values is not None:
            groups = groupby(sorted(values, key=_type_of), key=_type_of)
            return _any_of(_one_of(kind, list(group)) for kind, group in groups)
        match _kind(node):
            case "object":
                fields = {
                    name: self._asked(inner)
                    if name in node.get("required", ())
                    else _any_of([self._asked(inner), {"type": "null"}])
                    for name, inner in node.get("properties", {}).items()
                }
                return {"type": "object", "properties": fields, "required": [*fields]}
            case "array":
                most = max(_MOST_ITEMS, node.get("minItems", 0))
                bound = {} if self._longest is None else {"maxItems": most}
                kept = {key: node[key] for key in ("minItems", "maxItems") if key in node}
                return {"type": "array", "items": self._asked(node["items"]), **bound, **kept}
            case None:
                self.is_open = True
                return {"type": "string"} | self._bound()
            case "string":
                kept = {key: node[key] for key in _KEPT["string"] if key in node}
                return {"type": "string"} | self._bound() | kept
            case kind:
                return {"type": kind, **{key: node[key] for key in _KEPT[kind] if key in node}}

    def _bound(self) -> JsonSchema:
        return {} if self._longest is None else {"maxLength": self._longest}


def _target(root: JsonSchema, reference: str, name: str) -> Any:
    node: Any = root
    try:
        if not reference.startswith("#"):
            raise KeyError(reference)
        for part in reference.removeprefix("#").split("/")[1:]:
            node = node[part.replace("~1", "/").replace("~0", "~")]
    except (KeyError, TypeError):
        message = f"the schema of {name} refers to {reference}, which is not in it"
        raise ConfigError(message) from None
    return node


def _variants(node: Any) -> Sequence[Any] | None:
    """Return the alternative schemas of a value; None if there is no choice."""
    if not isinstance(node, dict):
        return None
    for key in ("anyOf", "oneOf"):
        if key in node:
            beside = {name: value for name, value in node.items() if name != key}
            return [{**beside, **one} if isinstance(one, dict) else one for one in node[key]]
    if isinstance(node.get("type"), list):
        return [{**node, "type": kind} for kind in node["type"]]
    if len(node.get("allOf", ())) == 1 and isinstance(node["allOf"][0], dict):
        beside = {name: value for name, value in node.items() if name != "allOf"}
        return [{**beside, **node["allOf"][0]}]
    return None


def _values(node: Any) -> list[Any] | None:
    """Return the values of an enumeration of scalars; None if a schema is not one."""
    if not isinstance(node, dict):
        return None
    values = [node["const"]] if "const" in node else node.get("enum")
    if values is None or any(isinstance(value, dict | list) for value in values):
        return None
    kind = node.get("type")
    fitting = [value for value in values if kind in (None, _type_of(value), "number")]
    return fitting or None


def _kind(node: Any) -> str | None:
    """Return the type of a schema; None if the schema is open."""
    if not isinstance(node, dict) or "allOf" in node:
        return None
    kind = node.get("type")
    if kind is None:
        kind = "object" if "properties" in node else "array" if "items" in node else None
    if kind == "object":
        is_closed = "properties" in node or node.get("additionalProperties") is False
        return kind if is_closed else None
    if kind == "array":
        return kind if isinstance(node.get("items"), dict) else None
    return kind if kind in _KEPT else None


def _any_of(schemas: Iterable[JsonSchema]) -> JsonSchema:
    """Return a choice of schemas, flattened and without duplicates."""
    flat: list[JsonSchema] = []
    for schema in schemas:
        flat += [one for one in schema.get("anyOf", [schema]) if one not in flat]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _one_of(kind: str, values: list[Any]) -> JsonSchema:
    # Never `const`, which Gemini does not know; a single value is also an enumeration.
    return {"type": kind} if kind == "null" else {"type": kind, "enum": values}


def _type_of(value: object) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def _meant(node: Any, value: Any) -> Any:
    """Return the value that a reply stands for, by the translation rules of this module."""
    variants = _variants(node)
    if variants is not None:
        meanings = [(one, _meant(one, value)) for one in variants]
        fitting = (meaning for one, meaning in meanings if jsonschema_rs.is_valid(one, meaning))
        return next(fitting, value)
    if _values(node) is not None:
        return value
    match _kind(node), value:
        case "object", dict():
            fields, required = node.get("properties", {}), node.get("required", ())
            return {
                name: _meant(fields.get(name, {"type": "string"}), inner)
                for name, inner in value.items()
                if inner is not None
                or name in required
                or name not in fields
                or jsonschema_rs.is_valid(fields[name], None)
            }
        case "array", list():
            return [_meant(node["items"], item) for item in value]
        case None, str():
            return _decoded(value)
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _decoded(text: str) -> Any:
    """Return the value of JSON in a text; other text is the value itself.

    So is text that a number would not give back: `1E50` is a code of ICD-11, and `0.50` a dose.
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, int | float)
    return text if is_number and json.dumps(value) != text.strip() else value


def _line(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", error)).split())[:300]
