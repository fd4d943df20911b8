"""The JSON Schemas are made from the models, and accept the same records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from evals.schema_files import DIALECT, SCHEMAS, load_schema
from mdagents_llm.errors import ConfigError


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid_and_closed(name: str) -> None:
    schema = load_schema(name)
    assert schema["$schema"] == DIALECT
    jsonschema_rs.meta.validate(schema)
    assert not jsonschema_rs.validator_for(schema).is_valid({})
    for definition in schema["$defs"].values():
        if definition.get("type") == "object":
            assert definition["additionalProperties"] is False


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_is_described(name: str) -> None:
    for title, definition in load_schema(name)["$defs"].items():
        for field, content in definition.get("properties", {}).items():
            # What a reference describes is described where it points.
            assert "description" in content or "$ref" in content, f"{title}.{field}"


def test_a_schema_by_name_by_file_name_and_by_path() -> None:
    by_name = load_schema("exaid.run")
    assert load_schema("exaid.run.schema.json") == by_name
    with pytest.raises(ConfigError, match="write a path or one of"):
        load_schema("exaid.nothing")


def test_a_schema_by_the_path_that_the_format_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    by_name = load_schema("exaid.run")
    assert load_schema("schemas/exaid.run.schema.json") == by_name
    assert load_schema("evals/schemas/exaid.run.schema.json") == by_name
    with pytest.raises(ConfigError, match="there is no schema elsewhere"):
        load_schema("elsewhere/exaid.run.schema.json")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "exaid.run.schema.json").write_text('{"title": "own"}')
    assert load_schema("schemas/exaid.run.schema.json") == {"title": "own"}


@pytest.mark.parametrize(
    ("name", "record", "is_valid"),
    [
        ("exaid.manifest", {"record_type": "trace_entry", "case_id": "case-1"}, False),
        (
            "exaid.manifest",
            {
                "record_type": "trace_entry",
                "case_id": "case-1",
                "file": "a",
                "sha256": "sha256:" + "0" * 64,
                "delta_count": 1,
                "turn_count": 1,
            },
            True,
        ),
        (
            "exaid.trace",
            {
                "record_type": "stream_delta",
                "case_id": "case-1",
                "seq": 1,
                "turn_id": 0,
                "agent_id": "a",
                "delta_text": "x",
                "t_emitted_ms": 1,
                "t_rel_ms": 0,
            },
            False,
        ),
    ],
)
def test_schemas_accept_and_refuse(name: str, record: dict[str, Any], is_valid: bool) -> None:
    assert jsonschema_rs.validator_for(load_schema(name)).is_valid(record) is is_valid
