"""A scripted team: what each agent says, by the prompts that only it gets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from demos.cdss_example.events import Event
from mdagents_llm.endpoints import ModelSpec
from tests.fake_provider import FakeProvider, SeenRequest

COORDINATES, READS_VALUES = "You coordinate a team", "physician of laboratory medicine"
JUDGES_HEARTS, RECOMMENDS = "You are a cardiologist", "You write the recommendation"
EXAID_MODEL = "gpt-4.1-mini"
"""What EXAID writes with, so that its calls are known by it."""
CASE = {
    "patient_id": "PAT-001",
    "age": 58,
    "sex": "M",
    "chief_complaint": "Chest pain and shortness of breath",
    "vital_signs": {"heart_rate": {"value": 104, "unit": "/min"}},
    "lab_results": {"troponin T": "86 ng/L"},
}


def is_exaid(request: SeenRequest) -> bool:
    return request.model == EXAID_MODEL


def exaid_spec(spec: ModelSpec) -> ModelSpec:
    return ModelSpec(spec.provider, EXAID_MODEL, spec.base_url)


def script(provider: FakeProvider, steps: Sequence[str]) -> None:
    """The orchestrator asks for these, the last one again and again; the others say their names."""

    def decide(request: SeenRequest) -> dict[str, Any]:
        opinions = request.text.partition("<opinions>")[2]
        given = len(re.findall("^(laboratory|cardiology): ", opinions, re.MULTILINE))
        step = steps[min(given, len(steps) - 1)]
        return {
            "running_summary": f"Known before {step}.",
            "reason": "It is needed.",
            "next_step": step,
            "question": f"What does {step} think?",
        }

    provider.when(COORDINATES, decide)
    provider.when(READS_VALUES, "Troponin T 86 ng/L is six times the limit of the norm.")
    provider.when(JUDGES_HEARTS, "Acute coronary syndrome is likely; an ECG decides.")
    provider.when(
        RECOMMENDS,
        {
            "assessment": "Acute coronary syndrome.",
            "action": "ECG now,\ntroponin again.",
            "urgency": "emergency",
            "evidence": "Troponin T 86 ng/L.",
            "uncertainty": "The ECG is open.",
            "safety_net": "Monitor the rhythm.",
        },
    )


class Seen(list[Event]):
    """Keeps the events of a case."""

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self]
