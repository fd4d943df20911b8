"""What is read of the replies of agents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from mdagents.agents.replies import opinion

OPINION = opinion(("A", "B", "C"), 50)


def confidence(value: Any) -> float:
    reply = {"reasoning": "Because.", "answer": "B", "confidence": value}
    read: Any = OPINION.model_validate_json(json.dumps(reply))
    return float(read.confidence)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (0, 0), (0.85, 0.85), (1, 1), (1.0, 1), ("0.85", 0.85), ("1", 1),
        (85, 0.85), (85.5, 0.855), (100, 1), ("85", 0.85), ("85%", 0.85),
        (" 85 % ", 0.85), ("5%", 0.05),
    ],
)  # fmt: skip
def test_a_confidence_may_be_in_percent(value: object, read: float) -> None:
    assert confidence(value) == pytest.approx(read)


@pytest.mark.parametrize(
    "value",
    [2, 8, 9.5, 10, 10.0, "10", "8/10", 101, -5, "0.85%", "high", None, True, [], {}, "1e1", "nan"],
)
def test_a_confidence_on_a_scale_in_doubt_is_refused(value: object) -> None:
    """From 1 to 10, it is percent or the scale of ten (NVIDIA/SkillSpector 93)."""
    with pytest.raises(ValidationError):
        confidence(value)


DRUGS = {"A": "Aspirin", "B": "Clopidogrel", "C": "Heparin"}
GERMS = {"A": "B. cereus", "B": "yes", "C": "E. coli"}


def letter(value: str, options: dict[str, str]) -> str:
    reply = {"reasoning": "Because.", "answer": value, "confidence": 1}
    read: Any = OPINION.model_validate_json(json.dumps(reply), context=options)
    return str(read.answer)


@pytest.mark.parametrize(
    ("value", "options", "read"),
    [
        ("C) Heparin", DRUGS, "C"),
        ("C) low-dose heparin", DRUGS, "C"),
        ("c. heparin", DRUGS, "C"),
        ("C", GERMS, "C"),
        ("Heparin", DRUGS, "C"),
        ("B. cereus", GERMS, "A"),
        ("B. yes", GERMS, "B"),
        ("E. coli", GERMS, "C"),
        ("C) C. difficile", {}, "C"),
    ],
)
def test_an_answer_is_a_letter_or_the_text_of_an_option(
    value: str, options: dict[str, str], read: str
) -> None:
    assert letter(value, options) == read


@pytest.mark.parametrize(
    "value",
    [
        "C. difficile", "B. cereus", "A: aspirin or C: heparin", "A. Aspirin and B. Clopidogrel",
        "A. Aspirin, C. Heparin", "A) Aspirin; C) Heparin", "A - Aspirin / C - Heparin",
    ],
)  # fmt: skip
def test_a_species_or_several_options_are_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        letter(value, DRUGS)
