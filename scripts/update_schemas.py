"""Writes the JSON Schema files in evals/schemas; a test fails when they differ from the models."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evals.schema_files import FOLDER, SCHEMAS, schema_path, schema_text

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        schema_path(name).write_text(schema_text(name), encoding="utf-8")
        print(f"{schema_path(name).relative_to(ROOT)} is up to date")
