"""Policies over recorded runs: whose answer they take, and what they pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.scoring.policies import (
    THRESHOLDS,
    Answers,
    Family,
    agreement_of,
    families,
    oracle_of,
)
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.errors import ConfigError
from tests.mdagents.scoring.made_up_runs import made_up, row, run_of, scored


def answers_of(*runs: RunOutput) -> Answers:
    return Answers.of(runs, [run.name for run in runs], [run.rows for run in runs])


def families_of(*runs: RunOutput) -> dict[str, Family]:
    return {family.name: family for family in families(answers_of(*runs))}


def reached(family: Family, place: int = 0) -> tuple[int, float]:
    """Right answers and tokens in all."""
    return int(family.right[place].sum()), float(family.tokens[place].sum())


@pytest.mark.parametrize(
    ("rows", "agreements"),
    [
        ([row("A", opinions="AAB", confidence=0.9)], [0.6]),
        ([row("A", opinions="AAA", confidence=0.8)], [0.8]),
        ([row("A", opinions="A", confidence=0.7)], [0.7]),
        ([row("A", confidence=0.7)], [0.7]),
        ([row("A", opinions="AAAB")], [0.75]),
        ([row("C", opinions="AAB", confidence=None), row("A", opinions="A", confidence=1)], [0, 1]),
        ([row("-", opinions="AAA", confidence=0.9), row("A", confidence=0.5)], [0, 0.5]),
        ([row("A", confidence=0.9), row("A", opinions="AA", confidence=0.9)], [0, 0.9]),
        ([row("A", opinions="AA"), row("A", opinions="AA", confidence=0.9)], [0, 0.9]),
        ([row("A"), row("B")], None),
        ([row("-", confidence=0.9, opinions="AA")], None),
    ],
)
def test_agreement_is_the_share_of_experts_times_the_confidence(
    rows: Sequence[ScoredRow], agreements: list[float] | None
) -> None:
    assert agreement_of(rows) == (None if agreements is None else pytest.approx(agreements))


@given(
    opinions=st.text("AB", min_size=3, max_size=3),
    confidence=st.integers(0, 20),
    threshold=st.integers(14, 20),
)
def test_above_two_thirds_it_is_the_rule_of_the_disagreement_router(
    opinions: str, confidence: int, threshold: int
) -> None:
    experts = made_up("experts", "A", tokens=1)
    experts = replace(
        experts, rows=(row("A", opinions=opinions, confidence=confidence / 20, tokens=1),)
    )
    family = families_of(experts, made_up("team", "A", tokens=5))["experts, else team"]
    is_taken = family.tokens[threshold, 0] == 1
    assert is_taken == (opinions == "AAA" and confidence >= threshold)


def test_an_answer_is_taken_from_its_threshold_on() -> None:
    sure = row("A", opinions="AAB", confidence=0.9, tokens=10)  # 0.6, but for binary fractions
    family = families_of(run_of("x", [sure]), made_up("y", "B", tokens=70))["x, else y"]
    taken = {t for t, right in zip(THRESHOLDS, family.right[:, 0], strict=True) if right}
    assert taken == {t for t in THRESHOLDS if t < 0.62}
    assert set(family.tokens[:, 0]) == {10, 80}
    assert family.policy_name(12) == "x, else y, from 0.60"


def test_only_a_dearer_run_is_asked_next() -> None:
    cheap = made_up("cheap", "AB", tokens=5, confidence=[0.5, 0.5])
    same = made_up("same", "AB", tokens=5, confidence=[0.5, 0.5])
    silent = made_up("silent", "AB", tokens=3)
    dear = made_up("dear", "AB", tokens=9, confidence=[0.5, 0.5])
    names = set(families_of(cheap, same, silent, dear))
    assert {name for name in names if " agree" not in name} == {
        "always cheap", "always same", "always silent", "always dear",
        "cheap, else dear", "same, else dear",
    }  # fmt: skip
    assert {name for name in names if " agree" in name} == {
        "cheap and same agree, else dear", "silent and cheap agree, else dear",
        "silent and same agree, else dear",
    }  # fmt: skip


def test_two_runs_agree_on_a_letter_of_the_data_set() -> None:
    one, other = made_up("one", "AABB--", tokens=1), made_up("other", "ABBC-A", tokens=2)
    dear = made_up("dear", "AAAAA-", tokens=10)
    family = families_of(one, other, dear)["one and other agree, else dear"]
    # Right, asked, wrong alike, asked, no answer of both: asked, one without an answer: asked.
    assert family.right[0].tolist() == [1, 1, 0, 1, 1, 0]
    assert family.tokens[0].tolist() == [3, 13, 3, 13, 13, 13]
    # Presented in the reverse order, the letters that were read differ.
    reverse = str.maketrans("ABCD", "DCBA")
    shown = [
        replace(
            of,
            response=of.response.translate(reverse),
            by_text=of.by_text.translate(reverse),
        )
        for of in other.rows
    ]
    again = families_of(one, replace(other, rows=tuple(shown)), dear)
    assert np.array_equal(again["one and other agree, else dear"].right, family.right)


def test_the_same_text_is_the_same_choice_under_any_letter() -> None:
    """The order of the options is unknown in the files of other programs."""
    given = {"A": "aspirin", "B": "heparin", "C": "statin", "D": "rest"}
    shown = {"A": "rest", "B": "statin", "C": "aspirin", "D": "heparin"}
    one = run_of("one", [scored(f"q{n}", given, "A", said) for n, said in enumerate("ABBD")])
    other = run_of("other", [scored(f"q{n}", shown, "C", said) for n, said in enumerate("CDBA")])
    choices = answers_of(one, other).choices
    assert (choices[0] == choices[1]).tolist() == [True, True, False, True]


def test_right_options_of_the_same_text_are_one_choice() -> None:
    options = {"A": "aspirin", "B": "rest", "C": "aspirin", "D": "rest"}
    one, other = (run_of(said, [scored("q", options, "A", said)]) for said in "AC")
    assert np.ptp(answers_of(one, other).choices) == 0


def test_no_answer_is_never_right() -> None:
    failing = made_up("failing", "B---", confidence=[1.0] * 4)
    found = families_of(failing, made_up("fair", "AAAB", tokens=500))
    assert reached(found["always failing"]) == (0, 400)
    assert reached(found["failing, else fair"], 1) == (2, 400 + 3 * 500)
    assert reached(found["failing, else fair"], 0) == (0, 400), "from 0 on everything is taken"


def test_the_oracle_takes_the_run_that_did_best_and_the_cheapest_of_equals() -> None:
    cheap, dear = made_up("cheap", "AABB", tokens=10), made_up("dear", "ABAB", tokens=30)
    assert reached(oracle_of(answers_of(cheap, dear))) == (3, 10 + 10 + 30 + 10)


def test_epochs_are_summed_by_question() -> None:
    # Questions q0 and q1, two epochs: right in the first only.
    run = made_up("run", "ABAA", tokens=10, epochs=2)
    found = families_of(run)["always run"]
    assert found.right.tolist() == [[2, 1]]
    assert found.tokens.tolist() == [[20, 20]]


def test_a_run_without_tokens_is_named() -> None:
    known, unknown = made_up("known", "AB"), run_of("unknown", [row("A"), row("B", tokens=None)])
    with pytest.raises(ConfigError, match=r"unknown.json does not hold the tokens of 1 of 2"):
        answers_of(known, unknown)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("ABC-"), st.integers(0, 50), st.sampled_from([None, 0.3, 0.55, 0.9]),
        st.text("AB", max_size=3),
    ),
    min_size=6,
    max_size=6,
)  # fmt: skip


@pytest.mark.sweep
@given(st.tuples(ROWS, ROWS, ROWS))
def test_every_policy_is_what_it_says(
    given_: tuple[list[tuple[str, int, float | None, str]], ...],
) -> None:
    """Held against a reading of the names, question by question."""
    runs = {
        name: run_of(
            name,
            [
                row(letter, id_=f"q{n}", tokens=tokens, confidence=sure, opinions=opinions)
                for n, (letter, tokens, sure, opinions) in enumerate(of_run)
            ],
        )
        for name, of_run in zip("xyz", given_, strict=True)
    }
    cost = {name: sum(of.total_tokens or 0 for of in run.rows) for name, run in runs.items()}
    seen = 0
    for name, family in families_of(*runs.values()).items():
        for place in range(len(family.right)):
            for question in range(6):
                of = {run: output.rows[question] for run, output in runs.items()}
                asked, taken = _by_hand(name, family, place, question, of, runs)
                assert family.right[place, question] == of[taken].correct
                assert family.tokens[place, question] == sum(
                    of[run].total_tokens or 0 for run in asked
                )
                assert cost[taken] <= cost[asked[-1]]
                seen += 1
    assert seen >= 3 * 6


def _by_hand(
    name: str,
    family: Family,
    place: int,
    question: int,
    of: dict[str, ScoredRow],
    runs: dict[str, RunOutput],
) -> tuple[str, str]:
    """The runs that are asked, and the one whose answer is taken."""
    if name.startswith("always "):
        return name[-1], name[-1]
    if " agree" in name:
        one, other, third = name[0], name[6], name[-1]
        agree = of[one].choice == of[other].choice != ""
        return (one + other, one) if agree else (one + other + third, third)
    first, then = name[0], name[-1]
    agreements = agreement_of(runs[first].rows)
    assert agreements is not None
    if agreements[question] >= family.thresholds[place] - 1e-9:
        return first, first
    return first + then, then
