"""`SOURCE.json`: believed of the file that it was written for; its earlier form is read too."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mdagents.datasets.source_note import NOTE, FileOrigin, SourceNote, read_note
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.medmcqa_files import golds, opened, write


def note(path: Path, cop_from: int | None) -> None:
    content = path.read_bytes()
    origin = FileOrigin(
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        records=1,
        left_out=0,
        upstream=(),
        verified_at=datetime(2026, 11, 21, tzinfo=UTC),
        licence="",
        citation="",
        cop_from=cop_from,
    )
    written = SourceNote(dataset="medmcqa", files={path.name: origin})
    (path.parent / NOTE).write_text(written.model_dump_json())


@pytest.mark.parametrize(("cop_from", "expected"), [(0, "BCD"), (1, "ABC")])
def test_the_note_beside_a_file_decides(tmp_path: Path, cop_from: int, expected: str) -> None:
    path = write(tmp_path / "test.jsonl", 1, 2, 3)
    note(path, cop_from)
    dataset = opened(path)
    assert golds(dataset) == expected
    assert f"counts the options from {cop_from} (as SOURCE.json beside it says)" in dataset.notice


def test_a_note_about_another_file_decides_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", 1, 2, 3)
    note(path, 1)
    write(path, 1, 2, 2)
    with pytest.raises(ConfigError, match="may count from 0 or from 1"):
        opened(path)
    note(path, None)
    with pytest.raises(ConfigError, match="may count from 0 or from 1"):
        opened(path)
    (tmp_path / NOTE).write_text("{broken")
    assert read_note(tmp_path) == {}


def test_a_note_of_the_earlier_form_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", 1, 0)
    note(path, None)
    earlier = json.loads((tmp_path / NOTE).read_text())
    earlier["schema_version"] = 2
    del earlier["files"]["test.jsonl"]["cop_from"]
    (tmp_path / NOTE).write_text(json.dumps(earlier))
    assert read_note(tmp_path)["test.jsonl"].cop_from is None
    assert golds(opened(path)) == "BA"
