"""Make the example cases of `python view.py --examples` from scripts/example_cases.yaml.

The program answers the questions as in any run; a server of the tests says, word for word and at
the pace of a model, what the file holds. Only times differ between two runs of this script.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from exaid_core.schema.agent_summary import LIMITS
from mdagents.runs.program import main as run
from tests.fake_provider import FakeProvider, SeenRequest

ROOT = Path(__file__).parent.parent
INTO = ROOT / "mdagents" / "examples"
_NAME = "ten-debates"
_PACE = 0.1  # seconds for 24 characters
_LATENCY = 0.5  # seconds
_Case = dict[str, Any]


class Actors:
    """Says what the file holds.

    Args:
        cases: Content of the file.
    """

    def __init__(self, cases: list[_Case]) -> None:
        self._cases = cases

    def __call__(self, request: SeenRequest) -> dict[str, Any]:
        """Return the reply to a request."""
        text = request.text
        if "You watch clinicians" in text or "You brief the physician" in text:
            return self._exaid(text)
        (case,) = (case for case in self._cases if case["question"] in text)
        if "Your role: triage officer" in text:
            why = "Physicians of different specialties should discuss it."
            return {"reasoning": why, "difficulty": "intermediate"}
        if "Your task: choose exactly" in text:
            keys = ("role", "expertise", "reports_to")
            return {"experts": [dict(zip(keys, one, strict=True)) for one in case["experts"]]}
        if "Your role: moderator" in text:
            return {"analysis": case["verdict"], "answer": _decided(case)}
        roles = [role for role, *_ in case["experts"]]
        speaker = 1 + next(i for i, role in enumerate(roles) if f"Your role: {role}." in text)
        if turn := re.search(r"Your task in round (\d+), turn (\d+)", text):
            is_first = turn.groups() == ("1", "1")
            sent = [{"to": to, "text": said} for of, to, said in case["messages"] if of == speaker]
            sent = sent if is_first else []
            why = "An argument needs an answer." if sent else "Nothing to add."
            return {"reason": why, "participate": bool(sent), "messages": sent}
        opinion = case["opinions"][speaker - 1]
        if re.search(r"Your task: round \d+ is over", text):
            opinion = case["updates"][speaker]
        return dict(zip(("answer", "confidence", "reasoning"), opinion, strict=True))

    def _exaid(self, text: str) -> dict[str, Any]:
        """Return a judgment or a summary of EXAID: one after the opinions, one after the round."""
        new = " ".join(text.rpartition("New:")[2].split())
        case, number = next(
            ((case, n) for case in self._cases for n, end in enumerate(_ends(case)) if end in new),
            (None, 0),
        )
        if "You watch clinicians" in text:
            return {
                "reasoning": "A view is complete." if case else "The thought goes on.",
                "stream_state": "TOPIC_SHIFT" if case else "SAME_TOPIC_CONTINUING",
                "is_relevant": case is not None,
                "is_novel": case is not None,
                "final_trigger": case is not None,
            }
        if case is None:
            return dict.fromkeys(LIMITS, "None reported")
        if number < len(case["summaries"]):
            return dict(zip(LIMITS, case["summaries"][number], strict=True))
        last = dict.fromkeys(LIMITS, "None reported")
        return last | {
            "status_action": f"Decided: {_decided(case)}.",
            "differential_rationale": case["verdict"],
        }


def _decided(case: _Case) -> str:
    letters: list[str] = [letter for letter, *_ in case["opinions"]]
    for speaker, (letter, *_) in case["updates"].items():
        letters[speaker - 1] = letter
    return max(letters, key=letters.count)


def _ends(case: _Case) -> list[str]:
    """Return the last words of the texts after which a summary is due."""
    last_update = max(case["updates"].values(), key=lambda update: len(update[2]))
    return [text[-25:] for text in (case["opinions"][2][2], last_update[2], case["verdict"])]


def main() -> int:
    """Write the run."""
    cases: list[_Case] = yaml.safe_load((ROOT / "scripts/example_cases.yaml").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, FakeProvider() as provider:
        provider.pace, provider.latency = _PACE, _LATENCY
        provider.when(None, Actors(cases))
        questions = Path(folder, f"{_NAME}.jsonl")
        questions.write_text("".join(map(_question, cases)), "utf-8")
        os.chdir(folder)
        os.environ.update(
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=provider.openai_base_url,
            MDAGENTS_COMMIT="",
        )
        argv = [
            "--model",
            "openai/written-by-hand",
            "--dataset",
            str(questions),
            "--option-order",
            "original",
            "--cache",
            "off",
        ]
        if status := run(argv, skip=(), show_interaction_table=False):
            return status
        shutil.rmtree(INTO, ignore_errors=True)
        shutil.copytree("output", INTO, ignore=shutil.ignore_patterns(".lock"))
    return 0


def _question(case: _Case) -> str:
    record = {
        "realidx": case["id"],
        "question": case["question"],
        "options": case["options"],
        "answer_idx": case["answer"],
        "answer": case["options"][case["answer"]],
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    sys.exit(main())
