"""A release says its version once, wherever it is said."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import mdagents
from scripts import release
from tests.conftest import REPOSITORY

CHANGELOG = "# Changelog\n\n## 9.9.0 – 2026-01-02\n\n- New.\n\n## 9.8.0 – 2026-01-01\n\n- Old.\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that say the version."""
    (tmp_path / "mdagents").mkdir()
    (tmp_path / "mdagents" / "__init__.py").write_text('"""It."""\n\n__version__ = "9.9.0"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 9.9.0\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    return tmp_path


def test_the_citation_has_the_version_of_the_code() -> None:
    assert release.stated_version() == mdagents.__version__


def test_the_newest_dated_entry_of_the_changelog_is_that_of_the_code() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    versions = [heading.split(" – ") for heading in headings if heading != "Unreleased"]
    assert versions[0][0] == mdagents.__version__
    dates = [date.fromisoformat(day) for _, day in versions]
    assert dates == sorted(dates, reverse=True)


def test_the_notes_are_those_of_the_version(clone: Path) -> None:
    assert release.stated_version() == "9.9.0"
    assert release.notes_of("9.9.0") == "- New.\n"


@pytest.mark.parametrize(
    ("file", "text", "argument", "said"),
    [
        ("CITATION.cff", "version: 9.8.0\n", "v9.9.0", "CITATION.cff has version ['9.8.0']"),
        ("CHANGELOG.md", CHANGELOG.replace("9.9.0", "Unreleased"), "v9.9.0", "a dated section"),
        ("CHANGELOG.md", CHANGELOG.replace(" – 2026-01-02", ""), "v9.9.0", "a dated section"),
        ("other.md", "", "v9.8.0", "the tag is v9.8.0, but the code is version 9.9.0"),
        ("other.md", "", "9.9.0", "the tag is 9.9.0, but the code is version 9.9.0"),
    ],
)
def test_what_says_something_else_stops_it(
    clone: Path, file: str, text: str, argument: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / file).write_text(text)
    assert release.main(["--tag", argument, "--output", str(clone / "dist")]) == 1
    assert said in capsys.readouterr().err
    assert not list(clone.glob("dist/*"))


@pytest.mark.process
def test_it_needs_no_package() -> None:
    program = [sys.executable, "-S", str(REPOSITORY / "scripts" / "release.py"), "--help"]
    assert b"usage: " in subprocess.run(program, capture_output=True, check=True).stdout
