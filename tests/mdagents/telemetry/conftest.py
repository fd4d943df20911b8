"""What tests of spans read of a run's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BASIC = ("--difficulty", "basic", "--otel")


def ledger() -> list[dict[str, Any]]:
    """The rows of all runs in the output folder."""
    return [
        json.loads(line)
        for path in Path("output").glob("*/calls.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]


def questions_file(count: int) -> str:
    """Write a data set of as many questions, and return its name."""
    lines = [
        {
            "id": f"q-{number}",
            "question": f"Patient {number} has bleeding gums. Which vitamin is lacking?",
            "options": {"A": "Retinol", "B": "Thiamine", "C": "Ascorbic acid", "D": "Calciferol"},
            "answer_idx": "ABCD"[number % 4],
        }
        for number in range(count)
    ]
    Path("own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return "own.jsonl"
