"""LangChain's structured output: any kind of schema as a reply form, and the value of a reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from langchain_core.utils.function_calling import convert_to_json_schema
from pydantic import BaseModel, PydanticUserError, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1

from mdagents_llm.errors import ConfigError
from mdagents_llm.json_schema import JsonSchema
from mdagents_llm.langchain.forms import OPEN, Form, Shape, form_of
from mdagents_llm.langchain.messages import json_line
from mdagents_llm.validation import first_problem

_TOLD = "Your reply is one JSON object and nothing else. It validates against this JSON schema:\n"


@dataclass(frozen=True, slots=True)
class Output:
    """The structured output of a model, for one schema."""

    form: type[Form]
    """Form of the reply; its `meaning` is the object, with the property names of the schema."""
    instructions: str
    """Prompt text with the schema and its descriptions, which the API itself is not sent."""
    value: Callable[[dict[str, Any]], Any]
    """Function that converts the object to the user's type, or raises ValueError."""
    key: str
    """SHA-256 of the JSON schema."""


def output_of(schema: dict[str, Any] | type, longest: int | None) -> Output:
    """Return the output for a pydantic class, a `TypedDict`, or a dict that holds a schema.

    Args:
        schema: Schema in any form that `with_structured_output` takes.
        longest: Maximum characters of a string without `maxLength`; None for no bound.

    Raises:
        ConfigError: `schema` is not a schema, or not one of an object with named properties.
    """
    if isinstance(schema, dict):
        return _of_json(json.dumps(schema), longest)
    return _of_class(schema, longest)


@lru_cache(maxsize=256)
def _of_json(text: str, longest: int | None) -> Output:
    schema: JsonSchema = json.loads(text)
    if not schema.keys() & {"properties", "$ref"}:
        schema = _converted(schema)
    return _output(schema, lambda value: value, longest)


@lru_cache(maxsize=256)
def _of_class(schema: type, longest: int | None) -> Output:
    if not isinstance(schema, type):
        raise ConfigError(
            f"{schema!r} is not a schema; pass a pydantic class, a TypedDict or a dict"
        )
    if issubclass(schema, BaseModel):
        model = schema

        def instance(value: dict[str, Any]) -> BaseModel:
            try:  # through JSON text, since pydantic then accepts text for a date, for example
                return model.model_validate_json(json.dumps(value))
            except ValidationError as error:
                raise ValueError(first_problem(error)) from None

        return _output(_schema_of(schema.model_json_schema), instance, longest)
    if issubclass(schema, BaseModelV1):
        return _output(_schema_of(schema.schema), schema.parse_obj, longest)
    return _output(_converted(schema), lambda value: value, longest)


def _schema_of(make: Callable[[], JsonSchema]) -> JsonSchema:
    try:
        return make()
    except (PydanticUserError, ValueError) as error:  # a field that JSON cannot hold
        raise ConfigError(
            f"a model cannot be asked for this: {str(error).splitlines()[0]}"
        ) from None


def _converted(schema: dict[str, Any] | type) -> JsonSchema:
    try:
        return convert_to_json_schema(schema)
    except ValueError as error:
        raise ConfigError(f"{schema!r} is not a schema: {str(error).splitlines()[0]}") from None


def _output(
    schema: JsonSchema, value: Callable[[dict[str, Any]], Any], longest: int | None
) -> Output:
    shape = Shape(schema, str(schema.get("title", "the reply")), longest)
    if not shape.has_fields:
        raise ConfigError(
            f"the schema {schema.get('title', '')} of structured output is not that of an object "
            "with named properties; put the value into a field of one"
        )

    def read(reply: dict[str, Any]) -> dict[str, Any]:
        meant: dict[str, Any] = shape.read(reply)
        value(meant)
        return meant

    told = _TOLD + json_line(shape.told)
    return Output(
        form=form_of(shape.asked, read),
        instructions=f"{told}\n{OPEN}" if shape.is_open else told,
        value=value,
        key=sha256(json.dumps(schema, default=str).encode()).hexdigest(),
    )
