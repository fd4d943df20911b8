"""Faults that are planted in debates are found, each at the right message, and no others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mdagents.scoring.audit.audit import audit
from mdagents.scoring.audit.measures import Measure
from mdagents.scoring.rows import newest_output, read_output
from tests.fake_provider import FakeProvider
from tests.support.planted import KINDS, TEAMS, plant, play, write_questions
from tests.support.whole_runs import Run


@pytest.mark.sweep
@pytest.mark.parametrize("team", TEAMS)
def test_planted_faults_are_found_and_no_others(
    provider: FakeProvider, run: Run, team: str
) -> None:
    kinds, flags = TEAMS[team]
    planted = [
        plant(number, kind) for number, kind in enumerate(kind for _ in range(3) for kind in kinds)
    ]
    play(provider, planted)
    write_questions(Path("planted.jsonl"), planted)
    status, _, errors = run(
        "--dataset", "planted.jsonl", "--exaid", "off", "--option-order", "original", *flags,
    )  # fmt: skip
    assert status == 0, errors
    figures = audit(read_output(newest_output(Path("output"))))
    observed = {one.question_id: one for one in figures.observed}
    for each in planted:
        instances = observed[f"planted-{each.number}"].instances
        assert Counter(instance.measure for instance in instances) == each.expected, each
        if each.cause is not None:
            of_change = (Measure.CONFORMITY, Measure.CORRECTION, Measure.UNPROMPTED)
            (change,) = [one for one in instances if one.measure in of_change]
            if team == "debate":  # the opinions that all see are what is read
                assert change.places[0].kind == "opinion"
                continue
            read = [place for place in change.places if place.kind == "message"]
            told = change.measure is not Measure.UNPROMPTED
            delivered = sorted(each.messages, key=lambda message: message.sender)
            place = delivered.index(each.messages[each.cause])
            assert [one.number for one in read] == [place] * told


@pytest.mark.sweep
def test_a_policy_reaches_what_was_estimated_from_the_run_without_it(
    provider: FakeProvider, run: Run
) -> None:
    planted = [
        plant(number, kind) for number, kind in enumerate(kind for _ in range(2) for kind in KINDS)
    ]
    play(provider, planted)
    write_questions(Path("planted.jsonl"), planted)
    flags = (
        "--dataset", "planted.jsonl", "--difficulty", "intermediate", "--exaid", "off",
        "--option-order", "original",
    )  # fmt: skip
    assert run(*flags)[0] == 0
    policies = audit(read_output(newest_output(Path("output")))).policies
    assert run(*flags, "--debate-policy", "agreed", "--output-dir", "agreed")[0] == 0
    reached = read_output(newest_output(Path("agreed"))).rows
    estimate = next(each for each in policies if each.flags == "--debate-policy agreed")
    assert estimate.correct == sum(row.correct for row in reached)
    tokens = sum(row.total_tokens or 0 for row in reached)
    assert estimate.tokens_per_question * len(reached) == pytest.approx(tokens)
