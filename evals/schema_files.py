"""JSON Schemas of the file formats, generated from their pydantic models (Draft 2020-12)."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from evals.manifest import ManifestRecord
from evals.metrics_records import METRICS_SCHEMA_VERSION, MetricsRecord
from exaid_core.trace.records import Record, TraceRecord
from exaid_core.trace.run_records import RunRecord
from mdagents_llm.errors import ConfigError

_FOLDER = "schemas"
"""Folder of the schemas in the published formats, as in `schemas/exaid.run.schema.json`."""
_SUFFIX = ".schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCHEMAS: Mapping[str, tuple[str, TypeAdapter[Any]]] = MappingProxyType(
    {
        "exaid.manifest": ("2.0.0", TypeAdapter(ManifestRecord)),
        "exaid.trace": ("2.0.0", TypeAdapter(TraceRecord)),
        "exaid.run": ("1.5.0", TypeAdapter(RunRecord)),
        "exaid.metrics": (METRICS_SCHEMA_VERSION, TypeAdapter(MetricsRecord)),
    }
)
"""Version and record type adapter by format name."""


def make_schema(name: str) -> dict[str, Any]:
    """Return the schema of one record (one line) of a format."""
    version, adapter = SCHEMAS[name]
    schema = adapter.json_schema(mode="serialization")
    schema.pop("discriminator", None)  # OpenAPI only; oneOf means the same
    definitions = schema.get("$defs", {})
    for model in _subclasses(Record):
        if model.__name__ in definitions:
            _describe(definitions[model.__name__], model)
    return {
        "$schema": DIALECT,
        "$id": f"urn:mdagents-bench:{name}:{version}",
        "title": f"{name} {version}: one record",
        **schema,
    }


def _subclasses(model: type[Record]) -> Iterator[type[Record]]:
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _describe(schema: dict[str, Any], model: type[Record]) -> None:
    """Add the docstrings of a model's fields to its schema as descriptions.

    Pydantic can do so when it makes the class, but that takes 27 ms of each run of `main.py`.
    """
    for cls in model.__mro__[: model.__mro__.index(Record)]:
        body = ast.parse(inspect.getsource(cls)).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in pairwise(body.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(description))):
                    written = model.model_fields[name].alias or name
                    described = schema["properties"][written]
                    described.setdefault("description", inspect.cleandoc(description))


def load_schema(name_or_path: str) -> dict[str, Any]:
    """Return the schema of a format by format or file name, or read it from a path.

    If no file `schemas/exaid.run.schema.json` exists, that path also names the format.

    Raises:
        ConfigError: The schema does not exist, cannot be read or is not a JSON object.
    """
    path = Path(name_or_path)
    name = path.name.removesuffix(_SUFFIX)
    if name in SCHEMAS and path.parent.name in ("", _FOLDER) and not path.is_file():
        return make_schema(name)
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        names = ", ".join(SCHEMAS)
        raise ConfigError(
            f"there is no schema {name_or_path}; write a path or one of {names}"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"the schema {path} cannot be read: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigError(f"the schema {path} is not a JSON object")
    return schema
