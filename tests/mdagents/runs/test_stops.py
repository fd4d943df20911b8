"""A dozen of the cells of `benchmarks.stops`, over real processes."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from benchmarks import stops
from benchmarks.stops import STOPS, Needs, Stop, try_stop, undisturbed
from tests.conftest import REPOSITORY

MAIN = REPOSITORY / "main.py"
QUESTIONS = 5
CELLS = [
    ("Ctrl-C", True),
    ("Ctrl-C twice", True),
    ("SIGTERM", True),
    ("SIGHUP", False),
    ("wrong key", True),
    ("unknown model", False),
    ("quota used up", True),
    ("endpoint down", True),
    ("down for 20 s", True),
    ("time limit of a question", True),
    ("token limit", True),
    ("full disk", True),
    ("output of another user", False),
    ("closed stdout", True),
]

pytestmark = [
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.skipif(
        sys.platform != "linux", reason="benchmarks measure the Linux way, and so does this"
    ),
]


@pytest.fixture(scope="module")
def whole() -> tuple[dict[str, Any], Needs]:
    return undisturbed(MAIN, QUESTIONS)


@pytest.mark.parametrize(("name", "exaid"), CELLS, ids=[name for name, _ in CELLS])
def test_a_run_is_stopped_and_goes_on(
    name: str, exaid: bool, whole: tuple[dict[str, Any], Needs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stops, "OUTAGE", 3.0)
    (stop,) = (stop for stop in STOPS if stop.name == name)
    if stop.needs_root and not _may_mount():
        pytest.skip("needs root")
    records, needs = whole
    outcome = try_stop(stop, QUESTIONS, exaid=exaid, main=MAIN, whole=records, needs=needs)
    assert outcome.faults == [], "\n".join(outcome.lines + outcome.lines_again)


def test_a_cell_that_is_not_as_it_should_be_says_so(whole: tuple[dict[str, Any], Needs]) -> None:
    records, needs = whole
    wrong = Stop("nothing happens", frozenset({1}))
    outcome = try_stop(wrong, QUESTIONS, exaid=False, main=MAIN, whole=records, needs=needs)
    assert outcome.faults == ["exit 0", "no line"]


def _may_mount() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and stops.may_mount()
