"""Attributes of the spans of questions; those of calls are in `mdagents_llm.telemetry`."""

from __future__ import annotations

from collections.abc import Mapping

from mdagents.records.sample import SampleRecord
from mdagents.settings import Status
from mdagents_llm.telemetry.call_spans import Attributes, Value, as_messages

EVALUATION = "gen_ai.evaluation.result"
"""Name of the event that states the score of a question."""

_NOT_DECIDED = frozenset({Status.ANSWERED, Status.SKIPPED})
"""Statuses of questions that ended without an error."""


def of_decision(record: SampleRecord, *, with_text: bool) -> Attributes:
    """Return the attributes that a question has once it is decided."""
    attributes: Attributes = {
        "mdagents.status": record.status.value,
        "mdagents.calls": record.calls,
    }
    optional = {
        "mdagents.difficulty": record.difficulty,
        "mdagents.routed_by": record.routed_by and record.routed_by.value,
        "mdagents.answer": record.predicted,
        "mdagents.correct": record.correct,
        "mdagents.confidence": record.confidence,
        "mdagents.turns_left_out": len(record.left_out) or None,
    }
    attributes |= {name: value for name, value in optional.items() if value is not None}
    if record.status not in _NOT_DECIDED:
        attributes["error.type"] = record.status.value
    if with_text and record.response:
        said = "\n".join(record.response.values())
        attributes["gen_ai.output.messages"] = as_messages([("assistant", said)], "stop")
    return attributes


def of_score(record: SampleRecord) -> Mapping[str, Value] | None:
    """Return the score of a question; None if it does not count toward accuracy.

    A question without an answer counts as wrong, as in the report, and is labeled by its status.
    """
    if record.status is Status.SKIPPED or not record.label:
        return None
    label = record.status.value
    if record.status is Status.ANSWERED:
        label = "correct" if record.correct else "incorrect"
    return {
        "gen_ai.evaluation.name": "accuracy",
        "gen_ai.evaluation.score.value": float(bool(record.correct)),
        "gen_ai.evaluation.score.label": label,
    }
