"""`studies/{study}.json` below the output folder: the list of a study's runs."""

from __future__ import annotations

import glob
from collections.abc import Callable, Set
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mdagents.records.folder import holds_nothing
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.files.whole_file import replace_file

_FOLDER = "studies"
_SCHEMA_VERSION = "1.0.0"

UNREADABLE = (OSError, ValueError, LookupError, TypeError, RecursionError)
"""What reading a file of unknown content raises."""


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


def name_to_keep(
    folder: Path, name: str, runs: Set[str], now: datetime, runs_in: Callable[[Path], Set[str]]
) -> str:
    """Return the name under which an earlier study of the same name is kept.

    It is dated, and the same each time that a study of these runs is kept.

    Args:
        folder: Folder of the files to keep.
        name: Name of both studies.
        runs: Names of the runs of the earlier one.
        now: Time of this start.
        runs_in: Returns the names of the runs of a file that was kept; raises one of `UNREADABLE`
            for a file of another kind.
    """
    for path in sorted(folder.glob(f"{glob.escape(name)}.*.json")):
        with suppress(*UNREADABLE):
            if runs_in(path) == runs:
                return path.stem
    return f"{name}.{now:%Y%m%dT%H%M%S.%f}"


def write_study(output_dir: Path, study: StudyManifest, now: datetime) -> str:
    """Write the manifest of a study below the output folder.

    An earlier manifest of the same name is kept under another name if it cannot be read, or lists a
    run with records that this study does not have.

    Returns:
        The other name; empty if no earlier manifest was kept.

    Raises:
        OSError: A file cannot be written.
    """
    folder = output_dir / _FOLDER
    path = folder / f"{study.name}.json"
    kept_as = ""
    try:
        earlier = StudyManifest.model_validate_json(read_regular(path))
    except FileNotFoundError:
        pass
    except ValidationError:
        kept_as = name_to_keep(folder, study.name, set(), now, _runs_in)
        path.rename(folder / f"{kept_as}.json")
    else:
        runs = {run.run for run in earlier.runs}
        if not all(
            holds_nothing(output_dir / run) for run in runs - {run.run for run in study.runs}
        ):
            kept_as = earlier.name = name_to_keep(folder, study.name, runs, now, _runs_in)
            replace_file(folder / f"{kept_as}.json", earlier.model_dump_json(indent=1).encode())
    replace_file(path, study.model_dump_json(indent=1).encode())
    return kept_as


def _runs_in(path: Path) -> set[str]:
    return {run.run for run in StudyManifest.model_validate_json(read_regular(path)).runs}


def read_studies(output_dir: Path) -> list[StudyManifest]:
    """Return the readable studies below an output folder, sorted by name."""
    studies = []
    for path in sorted((output_dir / _FOLDER).glob("*.json")):
        try:
            studies.append(StudyManifest.model_validate_json(read_regular(path)))
        except (OSError, ValidationError):
            continue
    return studies
