"""Data sets whose questions have pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from tests.support.embedders import write_train
from tests.support.pictures import WORDS, coded_picture

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


def write_coded(folder: Path, *, swapped: bool = False, count: int = 12) -> list[str]:
    """Write questions that pixels alone answer, and a train split; return the flags that name them.

    All questions have the same text and the same options, so that nothing but the picture tells
    them apart.

    Args:
        folder: Folder of the data set.
        swapped: Whether each picture shows a wrong option.
        count: Number of questions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = WORDS[: len(LETTERS)]
    options = {letter: f"The word is {word}" for letter, word in zip(LETTERS, words, strict=True)}
    lines = []
    for number in range(count):
        gold = number % len(words)
        shown = words[(gold + swapped) % len(words)]
        (folder / f"{number}.png").write_bytes(coded_picture(shown))
        record = {
            "id": f"q-{number}",
            "question": "Which word do the bands of the picture encode?",
            "options": options,
            "answer_idx": LETTERS[gold],
            "images": [f"{number}.png"],
        }
        lines.append(json.dumps(record) + "\n")
    (folder / "test.jsonl").write_text("".join(lines))
    write_train((f"Which vitamin is lacking in case {n}?" for n in range(12)), folder)
    return ["--dataset", folder.name, "--data-dir", str(folder.parent)]
