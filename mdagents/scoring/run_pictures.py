"""Pictures that a record names, and their copies in the folder of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mdagents.records.pictures import PictureRecord
from mdagents.scoring.fields import entries_of
from mdagents_llm.files.regular_file import regular_file

_KEY = re.compile("[0-9a-f]{64}")
_SIGNATURES: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/webp": (b"RIFF",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}


def pictures_of_record(record: Mapping[str, Any]) -> tuple[PictureRecord, ...]:
    """Return the pictures that a record names, without entries of another form."""
    found = []
    for entry in entries_of(record, "pictures"):
        try:
            found.append(PictureRecord.model_validate(entry))
        except ValidationError:
            continue
    return tuple(found)


def trouble_with(picture: PictureRecord, folder: Path) -> str:
    """Return why the copy of a picture in a run's folder is not shown; empty if it can be."""
    if not picture.was_sent:
        return "not shown to the agents"
    signatures = _SIGNATURES.get(picture.media_type)
    if signatures is None or not _KEY.fullmatch(picture.sha256):  # the record of another program
        return "of a form that pages do not show"
    path = folder / picture.file
    try:
        if path.is_symlink():
            return "its copy in the run's folder has changed"
        with regular_file(path) as file:
            begins = file.read(16)
            size = file.seek(0, 2)
    except (OSError, ValueError):
        return "its copy is missing from the run's folder"
    # A feed of a worker does not know the size.
    if not begins.startswith(signatures) or size != (picture.bytes or size):
        return "its copy in the run's folder has changed"
    return ""
