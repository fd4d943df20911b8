"""`studies/{study}.json` below the output folder: the list of a study's runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mdagents.records.folder import holds_nothing
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


def dated(name: str, now: datetime) -> str:
    """Return the name under which an earlier study of the same name is kept."""
    return f"{name}.{now:%Y%m%dT%H%M%S.%f}"


def write_study(output_dir: Path, study: StudyManifest, now: datetime) -> str:
    """Write the manifest of a study below the output folder.

    An earlier manifest of the same name is kept under a dated name if it cannot be read, or lists a
    run with records that this study does not have.

    Returns:
        The dated name; empty if no earlier manifest was kept.

    Raises:
        OSError: A file cannot be written.
    """
    path = output_dir / _FOLDER / f"{study.name}.json"
    kept_as = dated(study.name, now)
    kept = path.with_name(f"{kept_as}.json")
    try:
        earlier = StudyManifest.model_validate_json(read_regular(path))
    except FileNotFoundError:
        kept_as = ""
    except ValidationError:
        path.rename(kept)
    else:
        others = {run.run for run in earlier.runs} - {run.run for run in study.runs}
        if all(holds_nothing(output_dir / run) for run in others):
            kept_as = ""
        else:
            earlier.name = kept_as
            replace_file(kept, earlier.model_dump_json(indent=1).encode())
    replace_file(path, study.model_dump_json(indent=1).encode())
    return kept_as


def read_studies(output_dir: Path) -> list[StudyManifest]:
    """Return the readable studies below an output folder, sorted by name."""
    studies = []
    for path in sorted((output_dir / _FOLDER).glob("*.json")):
        try:
            studies.append(StudyManifest.model_validate_json(read_regular(path)))
        except (OSError, ValidationError):
            continue
    return studies
