"""Records of a run, made up, and the file of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OPTIONS = {"A": "Aspirin", "B": "Heparin", "C": "Warfarin", "D": "Watchful waiting"}


def ours(question_id: str, label: str, predicted: str | None, **changes: Any) -> dict[str, Any]:
    response = (
        {"analysis": "So.", "final_answer": f"{predicted}) {OPTIONS[predicted]}"}
        if predicted
        else None
    )
    record = {
        "question_id": question_id,
        "label": label,
        "options": OPTIONS,
        "response": response,
        "difficulty": "basic",
        "token_usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "cost_usd": 0.01,
        },
        "status": "answered" if predicted else "api_error",
        "predicted": predicted,
        "wall_seconds": 1.5,
        "calls": 6,
        "exaid": {"token_usage": {"total_tokens": 7}},
    }
    return record | changes


def write(records: list[Any], name: str = "run.json") -> Path:
    path = Path("output") / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(records))
    return path
