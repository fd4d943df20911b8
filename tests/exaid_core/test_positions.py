"""A change of an answer for which nobody has said anything new."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from exaid_core.checks.positions import Positions

FIRST = "The uptake is diffuse and the eyes bulge. Answer: B"


@dataclass(frozen=True)
class Said:
    agent_id: str
    text: str


def remarks(*said: tuple[str, str]) -> list[str]:
    return list(Positions().unargued([Said(*one) for one in said]))


@pytest.mark.parametrize(
    "text",
    ["I agree with my colleague. Answer: A", "Answer: A", "You are right, so I change. Answer: A",
     "Diffuse uptake, bulging eyes: the answer is A."],
)  # fmt: skip
def test_a_change_without_a_word_that_is_new_is_remarked(text: str) -> None:
    assert remarks(("surgeon", FIRST), ("internist", "Answer: A"), ("surgeon", text)) == [
        "surgeon changed from B to A, and nobody had said anything new"
    ]


@pytest.mark.parametrize(
    "between",
    [
        ("internist", "Amiodarone explains a raised thyroxine without nodules. Answer: A"),
        ("surgeon", "Amiodarone explains a raised thyroxine without nodules. Answer: A"),
    ],
)
def test_an_argument_is_a_reason_whoever_gives_it(between: tuple[str, str]) -> None:
    assert remarks(("surgeon", FIRST), between, ("surgeon", "I agree. Answer: A")) == []


@pytest.mark.parametrize(
    "said",
    [
        [("surgeon", FIRST), ("surgeon", "As before. Answer: B")],
        [("surgeon", FIRST), ("internist", "Answer: A")],
        [("surgeon", "I cannot tell."), ("surgeon", "Answer: A")],
        [("surgeon", ""), ("internist", "A patient came.")],
    ],
)
def test_who_keeps_an_answer_or_had_none_is_not_remarked(said: list[tuple[str, str]]) -> None:
    assert remarks(*said) == []


def test_positions_are_kept_from_summary_to_summary() -> None:
    positions = Positions()
    assert list(positions.unargued([Said("surgeon", FIRST)])) == []
    assert len(list(positions.unargued([Said("surgeon", "I agree. Answer: A")]))) == 1
    assert len(list(positions.unargued([Said("surgeon", "No: answer: B")]))) == 1
