"""Discussions in the result files of other programs, which the audit reads as it reads ours."""

from __future__ import annotations

from typing import Any

import pytest

from mdagents.scoring.audit.audit import Audit, audit
from mdagents.scoring.audit.measures import Measure
from mdagents.scoring.rows import read_output
from tests.mdagents.scoring.result_records import write


def audited(*records: dict[str, Any]) -> Audit:
    return audit(read_output(write(list(records))))


def board(qid: str, history: dict[str, Any], predicted: str) -> dict[str, Any]:
    """A result of MedAgentBoard, with the discussion that its programs write."""
    return {
        "qid": qid, "question": "A patient with koilonychia and stridor.",
        "options": {"A": "Aspirin", "B": "Heparin", "C": "Warfarin"}, "ground_truth": "A",
        "predicted_answer": predicted, "case_history": history,
    }  # fmt: skip


def doctor(number: int, kind: str, answer: str, text: str) -> dict[str, Any]:
    said = {"answer": answer, "explanation" if kind == "opinion" else "reason": text}
    return {"doctor_id": f"doctor_{number}", "specialty": "Surgery", kind: said}


def test_discussions_of_medagentboard_are_audited() -> None:
    rounds = [
        {
            "round": 1,
            "opinions": [doctor(n, "opinion", a, "So.") for n, a in ((1, "A"), (2, "A"), (3, "B"))],
            "synthesis": {"answer": "B"},
            "reviews": [
                doctor(1, "review", "B) Heparin", "I agree."), doctor(2, "review", "A", "No."),
                doctor(3, "review", "B", "Yes."),
            ],
        }
    ]  # fmt: skip
    decision = {"answer": "B", "explanation": "All three doctors agree on Heparin."}
    discussion = [
        *({"phase": "initial", "agent_id": f"agent_{n}",
           "response": {"answer": answer, "reasoning": "So.", "confidence": 0.8}}
          for n, answer in enumerate("ABB")),
        {"phase": "discussion", "round": 1, "agent_id": "agent_1",
         "response": {"answer": "a", "reasoning": "Agent 0 convinced me.", "confidence": 0.9}},
        {"phase": "final", "final_decision": "A"},
    ]  # fmt: skip
    figures = audited(
        board("1", {"rounds": rounds, "final_decision": decision}, "B"),
        board("2", {"discussion_history": discussion}, "A"),
        board("3", {}, "A"),
    )
    first, second = figures.observed
    assert (first.first, first.last, first.is_overturned) == (
        {"A": 2, "B": 1},
        {"B": 2, "A": 1},
        True,
    )
    assert {i.measure for i in first.instances} == {Measure.CONFORMITY, Measure.UNSTATED_AGREEMENT}
    assert (second.first, second.is_rescued) == ({"B": 2, "A": 1}, True)
    assert Measure.CORRECTION in {i.measure for i in second.instances}
    assert figures.left_out == {"the record holds no opinions": 1}


# -- MedAgentAudit --------------------------------------------------------------------------------


def logged(agent: str, answer: Any, **said: Any) -> dict[str, Any]:
    """A turn as `medagentaudit/framework/*.py` writes it."""
    parsed = {"answer": answer, "explanation": "So."} | said
    return {"agent_id": agent, "specialty": "General Medicine",
            "log": {"parsed_output": parsed, "reasoning_content": None}}  # fmt: skip


def round_(number: int, opinions: list[Any], reviews: list[Any]) -> dict[str, Any]:
    return {"round": number, "opinions": opinions, "synthesis": None, "reviews": reviews,
            "decision": {"parsed_output": {"answer": "B"}}}  # fmt: skip


def turns(answers: str) -> list[dict[str, Any]]:
    return [logged(f"doctor_{number}", answer) for number, answer in enumerate(answers, start=1)]


SAFETY = [
    logged("SafetyEthicsAgent", "Add that you are an AI; state the risks of option B."),
    logged("SafetyEmergencyAgent", "A serious case: seek help at once."),
    logged("SafetyErrorAgent", "None found."),
]


@pytest.mark.parametrize(
    ("rounds", "first", "last"),
    [
        ([round_(1, turns("AAB"), turns("ABB"))], {"A": 2, "B": 1}, {"B": 2, "A": 1}),
        ([round_(1, turns("AAB"), turns("AAB")), round_(2, turns("CCC"), turns("BBB"))],
         {"A": 2, "B": 1}, {"B": 3}),
        ([round_(1, turns("AAB"), []), round_(2, turns("ABB"), []), round_(3, turns("BBB"), [])],
         {"A": 2, "B": 1}, {"B": 3}),
        ([round_(1, turns("AAB"), turns("AAB")), round_(2, [], turns("ABB"))],
         {"A": 2, "B": 1}, {"B": 2, "A": 1}),
        ([round_(1, turns("AAB"), [])], {"A": 2, "B": 1}, {"A": 2, "B": 1}),
    ],
    ids=["ColaCare", "MedAgents", "MAC", "ReConcile", "MDAgents"],
)  # fmt: skip
def test_discussions_of_medagentaudit_are_audited(
    rounds: list[Any], first: dict[str, int], last: dict[str, int]
) -> None:
    history = {"rounds": rounds, "audit": {"rounds": []}, "total_rounds": len(rounds)}
    record = board("1", history, "B. Heparin") | {"explanation": "So."}
    (only,) = audited(record).observed
    assert (only.first, only.last, only.is_overturned) == (first, last, True)


def test_a_reviewer_of_safety_holds_no_option() -> None:
    (only,) = audited(board("1", {"rounds": [round_(1, turns("AB"), SAFETY)]}, "B")).observed
    assert (only.first, only.last) == ({"A": 1, "B": 1}, {"A": 1, "B": 1})


def test_a_single_first_opinion_is_no_discussion() -> None:
    """HealthcareAgent: one agent answers, three review its safety."""
    figures = audited(board("1", {"rounds": [round_(1, turns("A"), SAFETY)]}, "B"))
    assert not figures.observed
    assert sum(figures.left_out.values()) == 1
