"""The benchmark of numbers and drugs in summaries plants what it says, and keeps to its bounds."""

from __future__ import annotations

import random

import pytest

from benchmarks import grounding
from benchmarks.grounding import Pair, false_alarms, found_errors, planted


def test_an_error_of_each_kind_is_planted() -> None:
    pair = Pair("Metoprolol 25 mg for 7 days", "metoprolol 25 mg for a week")
    errors = dict(planted(pair, random.Random(1)))
    assert list(errors) == ["number", "unit", "drug"]
    assert all(error != pair.summary for error in errors.values())
    assert not list(planted(Pair("doctor1 agrees", "doctor1: I agree"), random.Random(1)))


@pytest.mark.sweep
@pytest.mark.parametrize("half", [grounding.SEEN, grounding.HELD_OUT])
def test_few_true_texts_are_flagged_and_most_errors_are_found(half: str) -> None:
    alarms, errors = false_alarms(half), found_errors(half)
    assert len(alarms) >= 25  # without the shared data, only the quotations are there
    assert sum(alarm.flagged for alarm in alarms) <= 0.1 * len(alarms)
    assert sum(error.flagged for error in errors) >= 0.9 * len(errors)


@pytest.mark.sweep
def test_the_tables_name_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert grounding.main(["--half", grounding.SEEN, "--show"]) == 0
    printed = capsys.readouterr().out
    assert "True texts, seen half" in printed
    assert "number in paraphrases" in printed
