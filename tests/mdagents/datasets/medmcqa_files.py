"""Files in the form of MedMCQA, made up, and what is read from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mdagents.datasets.dataset import Dataset, open_dataset

COLUMNS = ("opa", "opb", "opc", "opd")


def a_record(n: int, place: Any, **fields: Any) -> dict[str, Any]:
    texts = {column: f"{column} of {n}" for column in COLUMNS}
    return {"id": f"q{n}", "question": f"Which, {n}?", "cop": place} | texts | fields


def write(path: Path, *places: Any, **fields: Any) -> Path:
    records = [p if isinstance(p, dict) else a_record(n, p, **fields) for n, p in enumerate(places)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def golds(dataset: Dataset) -> str:
    return "".join(dataset.load(entry).gold for entry in dataset.index)


def opened(path: Path) -> Dataset:
    return open_dataset(str(path), path.parent)
