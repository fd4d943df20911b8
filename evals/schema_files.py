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
from infra.errors import ConfigError

FOLDER = Path(__file__).with_name("schemas")
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
    return FOLDER / f"{name}.schema.json"


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

    Raises:
        ConfigError: There is no such schema, or it is not a JSON object.
    """
    name = name_or_path.removesuffix(".schema.json")
    path = schema_path(name) if name in SCHEMAS else Path(name_or_path)
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
