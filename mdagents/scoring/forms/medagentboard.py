"""Results of MedAgentBoard: a file `{qid}-result.json` for each question, or JSON Lines.

Source: `medagentboard/medqa/*.py` of yhzhu99/MedAgentBoard; the first version of `single_llm.py`
wrote JSON Lines. Its successor MedAgentAudit writes the same fields, and what an agent said inside
the log of its call: `medagentaudit/framework/*.py` of MedX-PKU/MedAgentAudit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mdagents.datasets.questions import LETTERS
from mdagents.scoring.fields import (
    count_of,
    entries_of,
    gold_of,
    object_of,
    options_of,
    text_of,
)
from mdagents.scoring.forms.form import Form, Record, first_of

_MOST_OPINIONS = 500
_ANSWERS = ("predicted_answer", "model_answer", "final_answer", "llm_response")
"""Fields with the answer; the last two in records of other programs on MIRAGE."""


def _elements(record: Record) -> Sequence[Record]:
    history = object_of(record, "case_history")
    details = object_of(record, "details")
    stated = first_of(record, *_ANSWERS)
    level = record.get("complexity_level")
    found = {"predicted": stated} if stated in tuple(LETTERS) else {}
    if "raw_responses" in history or not record.keys().isdisjoint({*_ANSWERS, "error"}):
        found["response"] = _reply(history.get("raw_responses"), stated)
    return (
        {
            "question_id": record.get("qid"),
            "question": record.get("question"),
            "label": record.get("ground_truth"),
            "options": record.get("options"),
            "difficulty": None if level == "unknown" else level,
            **found,
            "opinions": list(_opinions(history, record.get("options")))[:_MOST_OPINIONS],
            "analysis": text_of(object_of(history, "final_decision"), "explanation")
            or text_of(record, "explanation"),
            "wall_seconds": first_of(record, "processing_time_seconds")
            or history.get("processing_time"),
            "error": first_of(record, "error") or details.get("error"),
        },
    )


def _opinions(history: Record, options: Any) -> Iterator[Record]:
    """Yield the opinions of a discussion as our records have them.

    ColaCare and MedAgents have rounds: doctors judge alone in the first, and review a synthesis of
    all at the end of each. In MAC they speak once per round, and nobody reviews. ReConcile has a
    list of responses, with a round from the discussion on.
    """
    shown = options_of(options) or {}
    rounds = entries_of(history, "rounds")
    reviewed = any(entries_of(round_, "reviews") for round_ in rounds)
    for number, round_ in enumerate(rounds, start=1):
        for each in () if reviewed and number > 1 else entries_of(round_, "opinions"):
            yield _opinion(each, _said(each, "opinion"), number - 1, shown)
        for each in entries_of(round_, "reviews"):
            yield _opinion(each, _said(each, "review"), number, shown)
    for each in entries_of(history, "discussion_history"):
        if isinstance(each.get("response"), dict):
            round_number = count_of(each.get("round")) or 0
            yield _opinion(each, object_of(each, "response"), round_number, shown)


def _said(turn: Record, name: str) -> Record:
    """Return what an agent said in a turn: under `name`, or parsed from the reply in its log."""
    return object_of(turn, name) or object_of(object_of(turn, "log"), "parsed_output")


def _opinion(who: Record, said: Record, round_: int, options: Mapping[str, str]) -> Record:
    agent = text_of(who, "doctor_id") or text_of(who, "agent_id")
    return {
        "agent": agent,
        "role": text_of(who, "specialty") or agent,
        "round": round_,
        "answer": gold_of(said.get("answer"), options) or "",
        "confidence": said.get("confidence"),
        "reasoning": "\n".join(
            filter(None, (text_of(said, name) for name in ("explanation", "reasoning", "reason")))
        ),
    }


def _reply(raw: Any, stated: Any) -> Any:
    """Return the model's text if there is a single reply, else the letter parsed by MedAgentBoard.

    That letter is the first option whose letter occurs anywhere in the text.
    """
    return raw[0] if isinstance(raw, list) and len(raw) == 1 else stated


MEDAGENTBOARD = Form("MedAgentBoard", frozenset({"qid", "ground_truth"}), "ground_truth", _elements)
