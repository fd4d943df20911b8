"""`SOURCE.json`: the origin of the files of a data set, written when they are downloaded."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

NOTE = "SOURCE.json"
"""Name of the file, which is in the folder of the files it describes."""

PLACED_BY_HAND = "by hand"
"""Value of `host` for a file supplied by a user."""


# Most data sets have no note.
_CONFIG = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Upstream(BaseModel):
    """A published file."""

    model_config = _CONFIG

    host: str
    """`huggingface`, `github`, or `by hand`."""
    repo: str
    """Repository; empty when a user named the file."""
    revision: str
    """Commit of that repository; empty when a user named the file."""
    path: str
    """The file's path inside the repository, or its name."""
    sha256: str
    """SHA-256 of the file: the published one, to which the file was compared; of a file by hand its
    own, compared to nothing; if none was published, its own."""
    as_reported: bool = Field(default=False, exclude_if=lambda reported: not reported)
    """Whether no SHA-256 was published: the file was compared with the checksum that the host
    reported for that commit when it was downloaded."""


class FileOrigin(BaseModel):
    """Where one file of ``data/{name}/`` came from."""

    model_config = _CONFIG

    sha256: str
    """SHA-256 of the local file."""
    bytes: int
    """Size of the file in bytes."""
    records: int
    """Number of questions in the file."""
    left_out: int
    """Published records that are not usable questions."""
    upstream: tuple[Upstream, ...]
    """Files that it was made from."""
    verified_at: datetime | None
    """When the checksums of its sources were first verified (UTC); None for a file placed by hand,
    which is not verified."""
    licence: str
    """Terms of use, with who states them."""
    citation: str
    """Reference to cite."""
    cop_from: int | None = None
    """What MedMCQA's field `cop` calls the first option, 0 or 1; None where there is no such field.
    """
    pictures: int | None = Field(default=None, exclude_if=lambda pictures: pictures is None)
    """Number of files in `images/` that the questions name, each named by the first 32 hex digits
    of its SHA-256; None for questions of text."""


class SourceNote(BaseModel):
    """Contents of ``data/{name}/SOURCE.json``."""

    model_config = _CONFIG

    schema_version: Literal[2, 3] = 3
    """Version of this form. 2 had no `cop_from`, and a `verified_at` for files by hand too."""
    dataset: str
    """Name of the data set, which is the name of its folder."""
    files: dict[str, FileOrigin]
    """File name in the folder -> where the file came from."""


def read_note(folder: Path) -> dict[str, FileOrigin]:
    """Return file name -> noted origin; empty without a valid note."""
    try:
        return dict(SourceNote.model_validate_json((folder / NOTE).read_bytes()).files)
    except (OSError, ValidationError):
        return {}  # the origin of a file kept as published can be determined again


def origin_of(path: Path, sha256: str) -> FileOrigin | None:
    """Return the noted origin of a file; None without a note or if the checksum differs.

    Args:
        path: Path of the file.
        sha256: SHA-256 of its content.
    """
    origin = read_note(path.parent).get(path.name)
    return origin if origin is not None and origin.sha256 == sha256 else None
