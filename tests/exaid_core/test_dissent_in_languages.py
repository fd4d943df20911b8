"""Answers and disagreement in eight languages: what summaries say, in `cues/dissent`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from exaid_core.checks.dissent import dissent_missing, stated_answer

SPLIT = {"expert-1-cardiologist": "C", "expert-2-neurologist": "A"}
_FILES = sorted((Path(__file__).with_name("cues") / "dissent").glob("*.txt"))


def lines(prefix: str) -> Iterator[object]:
    """Yield what a line has between `prefix` and its colon, and the text after it."""
    for file in _FILES:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            kind, _, text = line.partition(": ")
            if kind.startswith(prefix):
                wanted = kind.removeprefix(prefix).strip()
                yield pytest.param(wanted, text, id=f"{file.stem}-{number}")


@pytest.mark.parametrize(("_", "summary"), [*lines("shows")])
def test_a_summary_that_shows_the_disagreement(_: str, summary: str) -> None:
    assert not dissent_missing([summary], SPLIT)


@pytest.mark.parametrize(("_", "summary"), [*lines("hides")])
def test_a_summary_that_hides_the_disagreement(_: str, summary: str) -> None:
    assert dissent_missing([summary], SPLIT)


@pytest.mark.parametrize(("letter", "line"), [*lines("answer")])
def test_stated_answer(letter: str, line: str) -> None:
    assert stated_answer(f"…\n{line}\n") == (None if letter == "-" else letter)
