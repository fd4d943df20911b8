"""Results of MedAgentBoard: a file `{qid}-result.json` for each question, or JSON Lines.

Source: `medagentboard/medqa/*.py` of yhzhu99/MedAgentBoard; the first version of `single_llm.py`
wrote JSON Lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.fields import object_of
from mdagents.scoring.forms.form import Form, Record, first_of


def _elements(record: Record) -> Sequence[Record]:
    history = object_of(record, "case_history")
    details = object_of(record, "details")
    stated = first_of(record, "predicted_answer", "model_answer")
    level = record.get("complexity_level")
    found = {"predicted": stated} if stated in tuple(LETTERS) else {}
    return (
        {
            "question_id": record.get("qid"),
            "question": record.get("question"),
            "label": record.get("ground_truth"),
            "options": record.get("options"),
            "response": _reply(history.get("raw_responses"), stated),
            "difficulty": None if level == "unknown" else level,
            **found,
            "wall_seconds": first_of(record, "processing_time_seconds")
            or history.get("processing_time"),
            "error": details.get("error"),
        },
    )


def _reply(raw: Any, stated: Any) -> Any:
    """Return the model's text if there is a single reply, else the letter parsed by MedAgentBoard.

    That letter is the first option whose letter occurs anywhere in the text.
    """
    return raw[0] if isinstance(raw, list) and len(raw) == 1 else stated


MEDAGENTBOARD = Form("MedAgentBoard", frozenset({"qid", "ground_truth"}), "ground_truth", _elements)
