"""Results of MMLU-Pro: data set records extended by the reply and the letter read from it.

Source: `eval_results` and `evaluate_from_api.py` of TIGER-AI-Lab/MMLU-Pro, which named the reply
`response` before `model_outputs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.forms.form import Form, Record, first_of


def _elements(record: Record) -> Sequence[Record]:
    predicted, options = record.get("pred"), record.get("options")
    if isinstance(options, list) and len(options) <= len(LETTERS):
        options = dict(zip(LETTERS, options, strict=False))  # by place, whatever they begin with
    if type(predicted) is int and 0 <= predicted < len(LETTERS):
        predicted = LETTERS[predicted]  # counted from 0, like `answer_index`
    return (
        {
            "question_id": record.get("question_id"),
            "question": record.get("question"),
            "label": record.get("answer"),
            "options": options,
            "response": first_of(record, "model_outputs", "response") or predicted,
            **({"predicted": predicted} if predicted else {}),
        },
    )


MMLU_PRO = Form("MMLU-Pro", frozenset({"options", "answer_index", "pred"}), "answer", _elements)
