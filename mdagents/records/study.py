"""`studies/{study}.json` below the output folder: the list of a study's runs."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.files.whole_file import replace_file

_FOLDER = "studies"
_SCHEMA_VERSION = "1.0.0"


class StudyRun(BaseModel):
    """A run of a study and its place in the study's grid."""

    model_config = ConfigDict(extra="forbid")

    dataset: str
    """Label, like the two that follow."""
    model: str
    method: str
    run: str
    """Name of the run."""
    reason: str = ""
    """Why it could not be finished; empty when it was, or was not begun."""


class StudyManifest(BaseModel):
    """Definition of a study and its runs."""

    model_config = ConfigDict(extra="forbid")

    schema_version: str = _SCHEMA_VERSION
    name: str
    baseline: str
    """Label of the method that all others are compared with."""
    runs: list[StudyRun]


def write_study(output_dir: Path, study: StudyManifest) -> None:
    """Write the manifest of a study below the output folder.

    Raises:
        OSError: The file cannot be written.
    """
    path = output_dir / _FOLDER / f"{study.name}.json"
    replace_file(path, study.model_dump_json(indent=1).encode())


def read_studies(output_dir: Path) -> list[StudyManifest]:
    """Return the readable studies below an output folder, sorted by name."""
    studies = []
    for path in sorted((output_dir / _FOLDER).glob("*.json")):
        try:
            studies.append(StudyManifest.model_validate_json(read_regular(path)))
        except (OSError, ValidationError):
            continue
    return studies
