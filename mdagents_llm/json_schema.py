"""JSON schemas of pydantic models, in the form that the providers accept."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

JsonSchema = dict[str, Any]

_NOISE = ("title", "default", "description")
_CHARS_OF_JSON_PER_FIELD = 6
_CHARS_OF_A_NUMBER = 24
_CHARS_PER_TOKEN = 2  # worst case; English prose has about 4.5
_ROOM_FOR_JSON = 64  # tokens


@lru_cache(maxsize=512)
def reply_schema(model: type[BaseModel]) -> JsonSchema:
    """Return the schema of `model` with references resolved, all properties required, no others.

    Properties keep the order of the model, so that a reasoning field comes before the answer.
    Treat the result as read-only: it is cached per class.
    """
    schema = model.model_json_schema()
    resolved: JsonSchema = _resolve(schema, schema.get("$defs", {}))
    return resolved


def _resolve(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolve(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return _resolve(definitions[name], definitions)
    resolved = {
        key: _resolve_properties(value, definitions)
        if key == "properties"
        else _resolve(value, definitions)
        for key, value in node.items()
        if key not in _NOISE and key != "$defs"
    }
    if "properties" in resolved:
        resolved["required"] = list(resolved["properties"])
        resolved["additionalProperties"] = False
    return resolved


def _resolve_properties(properties: Any, definitions: Mapping[str, Any]) -> Any:
    # A property may itself be called "title" or "default": only its schema is cleaned.
    return {name: _resolve(schema, definitions) for name, schema in properties.items()}


@lru_cache(maxsize=512)
def without_string_lengths(model: type[BaseModel]) -> JsonSchema:
    """Return `reply_schema(model)` without minLength and maxLength.

    OpenAI's strict mode does not list them among the supported keywords of a string
    (https://platform.openai.com/docs/guides/structured-outputs).
    """
    schema: JsonSchema = _without(reply_schema(model), {"minLength", "maxLength"})
    return schema


def _without(node: Any, keys: Set[str]) -> Any:
    if isinstance(node, list):
        return [_without(item, keys) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without(value, keys)
        for key, value in node.items()
        if key not in keys or isinstance(value, dict)  # a property with that name stays
    }


@lru_cache(maxsize=512)
def longest_reply(model: type[BaseModel]) -> int:
    """Return the length in characters of the longest compact JSON that fits the schema of `model`.

    Raises:
        ValueError: A string has no maxLength or an array has no maxItems: the reply would be
            unbounded, and a token limit could truncate it.
    """
    return _longest(reply_schema(model))


def token_limit(model: type[BaseModel]) -> int:
    """Return an upper bound on the tokens of a reply in the form of `model`.

    Raises:
        ValueError: The schema is unbounded, as for `longest_reply`.
    """
    return longest_reply(model) // _CHARS_PER_TOKEN + _ROOM_FOR_JSON


def _longest(schema: Mapping[str, Any]) -> int:
    if "enum" in schema or "const" in schema:
        return max(len(str(value)) + 2 for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return max(_longest(option) for option in schema["anyOf"])
    match schema.get("type"):
        case "object":
            return sum(
                len(name) + _CHARS_OF_JSON_PER_FIELD + _longest(value)
                for name, value in schema["properties"].items()
            )
        case "array":
            if "maxItems" not in schema:
                raise ValueError("an array in a reply schema needs maxItems")
            return int(schema["maxItems"]) * (_longest(schema["items"]) + 2) + 2
        case "string":
            if "maxLength" not in schema:
                raise ValueError("a string in a reply schema needs maxLength")
            return int(schema["maxLength"]) + 2
        case "integer" | "number":
            return _CHARS_OF_A_NUMBER
        case _:
            return 5  # true, false, null
