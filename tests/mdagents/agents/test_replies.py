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
