"""The model of the tutorials: of known skill on questions that are made here, scripted elsewhere.

It is right on 55% of the questions when it names a letter only, and on 80% when it writes its
reasoning first. So a team beats a single call on the pages, by construction.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY
from tests.exaid_core.models import WAIT, asks_for
from tests.fake_provider import FakeProvider, SeenRequest

LETTER_ONLY, WITH_REASONING = 0.55, 0.8
REFUSED, CUT_OFF = "Patient 41 of a clinic", "Patient 67 of a clinic"
"""Questions that the model refuses, or never answers in full."""
AGENTS = {
    "triage nurse": "Emergency: chest pain for two hours in a man of 58.",
    "laboratory physician": "Troponin requested, result pending.",
    "cardiologist": "I suspect an acute coronary syndrome. ECG within ten minutes.",
}
"""What the agents of the graph say."""
SUMMARY = {
    "status_action": "Emergency: chest pain for two hours.",
    "key_findings": "Man of 58; troponin is requested.",
    "differential_rationale": "Acute coronary syndrome is suspected.",
    "uncertainty_confidence": "Troponin is open.",
    "recommendation_next_step": "ECG within ten minutes.",
    "agent_contributions": "Triage rated it, cardiology suspects the cause.",
}
_QUESTION = re.compile(r"Question:\n(.*?)\n\n", re.DOTALL)
_OPTION = re.compile(r"^([A-J])\) (.*)$", re.MULTILINE)
_LEVELS = ("basic", "basic", "basic", "intermediate", "advanced")


def write_questions(path: Path, count: int = 120) -> None:
    """Write questions in MedQA's published form, made from the sample."""
    sample = (REPOSITORY / "data" / "medqa" / "sample.jsonl").read_text(encoding="utf-8")
    questions = [json.loads(line) for line in sample.splitlines()]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            record = questions[number % len(questions)]
            row = {key: record[key] for key in ("options", "answer", "answer_idx")}
            text = f"Patient {number} of a clinic. {record['question']}"
            file.write(json.dumps({"question": text, **row}) + "\n")


def give_skill(provider: FakeProvider, questions: Path) -> None:
    """Let the provider answer as the module says, on the questions of a file."""
    records = map(json.loads, questions.read_text(encoding="utf-8").splitlines())
    gold = {record["question"]: record["options"][record["answer_idx"]] for record in records}

    def share(of: str, request: SeenRequest) -> float:
        return zlib.crc32(of.encode() + request.key(provider.seed)) / 2**32

    def block_of(request: SeenRequest) -> str:
        blocks: list[str] = _QUESTION.findall(request.text)
        return blocks[-1] if blocks else ""

    def is_question(request: SeenRequest) -> bool:
        asked = (request.schema or {}).get("properties", {}).get("answer", {})
        return "enum" in asked and _OPTION.split(block_of(request))[0].strip() in gold

    def answer(request: SeenRequest) -> dict[str, Any]:
        fields = (request.schema or {})["properties"]
        block = block_of(request)
        shown = {text: letter for letter, text in _OPTION.findall(block)}
        right = shown[gold[_OPTION.split(block)[0].strip()]]
        wrong = sorted(set(shown.values()) - {right})
        skill = WITH_REASONING if len(fields) > 1 else LETTER_ONLY
        is_right = share("skill", request) < skill
        letter = right if is_right else wrong[int(share("wrong", request) * len(wrong))]
        said: dict[str, Any] = {"answer": letter}
        if "confidence" in fields:
            said["confidence"] = round((0.7 if is_right else 0.4) + 0.3 * share("sure", request), 2)
        return said

    def level(request: SeenRequest) -> dict[str, Any]:
        return {"difficulty": _LEVELS[int(share("level", request) * len(_LEVELS))]}

    provider.when("triage officer", level)
    provider.when(is_question, answer)
    provider.fail_next("refusal", sys.maxsize, REFUSED)
    provider.fail_next("cut_off", sys.maxsize, CUT_OFF)


def speak_of_chest_pain(provider: FakeProvider) -> None:
    """Let the agents of the graph and EXAID say what stands above."""
    provider.when(asks_for("stream_state"), WAIT.model_dump())
    provider.when(asks_for("status_action"), SUMMARY)
    for who, text in AGENTS.items():
        provider.when(partial(_is_told_to_be, who), text)


def _is_told_to_be(who: str, request: SeenRequest) -> bool:
    return request.schema is None and who in request.text
