"""An embedder for tests, and a train split to use it on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from mdagents.datasets.dataset import Dataset, open_dataset
from mdagents_llm.embeddings import Vectors

_DIMENSIONS = 256


class WordEmbedder:
    """Texts are near each other when they have words in common."""

    name = "words"

    def __init__(self) -> None:
        self.embedded: list[str] = []
        """All texts, in the order in which they came."""

    def queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            self.embedded.append(text)
            for word in text.casefold().split():
                row[crc32(word.strip("?.,").encode()) % _DIMENSIONS] += 1
            row /= np.linalg.norm(row) or 1
        return rows

    def passages(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError("questions are compared with questions")


def write_train(texts: Iterable[str], folder: Path = Path("data/mine")) -> Dataset:
    """A train split with a question of three options for each text, whose ids are `train-N`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "train.jsonl"
    questions = [
        {
            "id": f"train-{n}",
            "question": text,
            "options": {"A": f"right {n}", "B": f"wrong {n}", "C": f"bad {n}"},
            "answer_idx": "A",
        }
        for n, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return open_dataset(str(path), folder)
