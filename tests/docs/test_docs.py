"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mdagents.records.manifest import RunManifest
from mdagents.records.sample import SampleRecord
from mdagents.runs.options import make_parser
from mdagents.scoring.scored_row import COLUMNS
from mdagents.settings import Status
from scripts.update_docs import PAGE, with_help
from tests.conftest import REPOSITORY

PAGES = [*sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "README.md"]


def test_the_help_in_the_docs_is_that_of_the_programs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_help(page), "run: python scripts/update_docs.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_a_page_names_exists(page: Path) -> None:
    known = set(re.findall(r"--[a-z][a-z_-]+", make_parser().format_help()))
    programs = [f for name in ("benchmarks", "evals/cli") for f in (REPOSITORY / name).glob("*.py")]
    for program in (PAGE, *programs):
        known |= set(re.findall(r"--[a-z][a-z-]+", program.read_text(encoding="utf-8")))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", page.read_text(encoding="utf-8")))
    assert {flag.replace("_", "-") for flag in named} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_the_fields_on_disk_are_described() -> None:
    page = (REPOSITORY / "docs" / "files.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([a-z_0-9]+)`", page))
    fields = {*SampleRecord.model_fields, *RunManifest.model_fields, *COLUMNS, *map(str, Status)}
    assert fields <= words, f"docs/files.md does not name {sorted(fields - words)}"
