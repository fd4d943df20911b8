"""The JSON Schema of each file format, made from its pydantic models (Draft 2020-12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from evals.manifest import ManifestRecord
from evals.metrics_records import MetricsRecord
from exaid_core.trace.records import TraceRecord
from exaid_core.trace.run_records import RunRecord
from mdagents_llm.errors import ConfigError

FOLDER = Path(__file__).with_name("schemas")
_SUFFIX = ".schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCHEMAS: Mapping[str, tuple[str, TypeAdapter[Any]]] = MappingProxyType(
    {
        "exaid.manifest": ("2.0.0", TypeAdapter(ManifestRecord)),
        "exaid.trace": ("2.0.0", TypeAdapter(TraceRecord)),
        "exaid.run": ("1.5.0", TypeAdapter(RunRecord)),
        "exaid.metrics": ("2.2.0", TypeAdapter(MetricsRecord)),
    }
)
"""Name -> version, and the model of a record."""


def schema_path(name: str) -> Path:
    """Return the path of the schema of a format."""
    return FOLDER / f"{name}{_SUFFIX}"


def make_schema(name: str) -> dict[str, Any]:
    """Return the schema of one record (one line) of a format."""
    version, adapter = SCHEMAS[name]
    schema = adapter.json_schema(mode="serialization")
    schema.pop("discriminator", None)  # of OpenAPI; oneOf means the same
    return {
        "$schema": DIALECT,
        "$id": f"urn:mdagents-bench:{name}:{version}",
        "title": f"{name} {version}: one record",
        **schema,
    }


def schema_text(name: str) -> str:
    """Return the text of a schema file."""
    return json.dumps(make_schema(name), indent=2, ensure_ascii=False) + "\n"


def load_schema(name_or_path: str) -> dict[str, Any]:
    """Read a schema by the name of its format, the name of its file, or a path.

    `schemas/exaid.run.schema.json` is the one of this package in any folder that has no such file.

    Raises:
        ConfigError: There is no such schema, or it is not a JSON object.
    """
    path = Path(name_or_path)
    name = path.name.removesuffix(_SUFFIX)
    is_of_package = path.parent.name in ("", FOLDER.name)
    if name in SCHEMAS and is_of_package and not path.is_file():
        path = schema_path(name)
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
