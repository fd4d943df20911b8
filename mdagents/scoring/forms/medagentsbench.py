"""Predictions of MedAgentsBench: data set records extended by the answer and its cost.

Source: published predictions of gersteinlab/medagents-benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.scoring.fields import object_of
from mdagents.scoring.forms.form import Form, Record, first_of


def _elements(record: Record) -> Sequence[Record]:
    usage = dict(object_of(record, "token_usage"))
    if usage.get("cost_usd") is None:
        usage["cost_usd"] = record.get("cost")
    return (
        {
            "question_id": first_of(record, "realidx", "id", "idx"),
            "question": record.get("question"),
            "label": record.get("answer_idx"),
            "answer": record.get("answer"),
            "options": record.get("options"),
            "response": record.get("predicted_answer"),
            "difficulty": record.get("difficulty"),
            "token_usage": usage,
            "wall_seconds": record.get("time_elapsed"),
            "error": record.get("error"),
        },
    )


MEDAGENTSBENCH = Form(
    "MedAgentsBench", frozenset({"predicted_answer", "answer_idx"}), "answer_idx", _elements
)
