"""Data sets whose questions have pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

LETTERS = "ABCD"


def png(color: tuple[int, int, int], size: tuple[int, int] = (32, 24)) -> bytes:
    """An encoded picture of one color."""
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, "PNG")
    return out.getvalue()


def write_pictured(
    contents: Sequence[bytes], golds: str, path: Path = Path("seen/test.jsonl")
) -> list[str]:
    """Write a data set in which each question has one picture; return the flags that name it.

    Args:
        contents: Encoded picture of each question.
        golds: Letter of the right option of each question.
        path: File of the questions; the pictures are beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, (content, gold) in enumerate(zip(contents, golds, strict=True), start=1):
        file = f"picture-{number}.png"
        (path.parent / file).write_bytes(content)
        record = {
            "id": f"q-{number}",
            "question": f"Which option does picture {number} of this series encode?",
            "options": {letter: f"option {letter.lower()}" for letter in LETTERS},
            "answer_idx": gold,
            "images": [file],
        }
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines))
    return ["--dataset", str(path)]
