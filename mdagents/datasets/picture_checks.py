"""Checks the pictures of selected questions before a run starts, on their headers alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from mdagents.datasets.dataset import Dataset, IndexEntry
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.record_lines import place
from mdagents_llm.errors import ConfigError

_AT_ONCE = 4  # questions whose pictures are read at a time


@dataclass(frozen=True, slots=True)
class CheckedPicture:
    """A picture whose header is that of a picture."""

    picture: QuestionPicture
    sha256: str
    """SHA-256 of the encoded picture, in hex digits."""
    is_annotated: bool
    """Whether a DICOM file says that annotations are burnt into its pixels."""


@dataclass(frozen=True, slots=True)
class CheckedPictures:
    """The pictures of the selected questions."""

    questions: Mapping[str, Sequence[CheckedPicture]] = field(default_factory=dict)
    """ID of a question with pictures -> its pictures, in the order of its record."""
    notes: Sequence[str] = ()
    """Notes for the user, one sentence each."""


def check_picture(picture: QuestionPicture) -> CheckedPicture:
    """Check that a picture exists, and that its header is that of a picture.

    Raises:
        ConfigError: The picture cannot be sent.
    """
    # Pillow and pydicom are for questions with pictures alone.
    from mdagents.datasets.pictures.decoding import open_picture
    from mdagents.datasets.pictures.dicom import DicomPicture

    content = picture.read()
    opened = open_picture(content, picture.place)
    is_annotated = isinstance(opened, DicomPicture) and opened.is_annotated
    return CheckedPicture(picture, hashlib.sha256(content).hexdigest(), is_annotated)


def check_pictures(dataset: Dataset, entries: Sequence[IndexEntry]) -> CheckedPictures:
    """Check the pictures of questions; each is read once.

    Args:
        dataset: Data set of the questions.
        entries: Selected questions.

    Raises:
        ConfigError: A picture cannot be sent; the message names the first question with one.
    """
    pictured = [entry for entry in entries if entry.pictures]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        results = list(threads.map(partial(_checked, dataset), pictured))
    checked: dict[str, Sequence[CheckedPicture]] = {}
    refused: list[tuple[IndexEntry, ConfigError]] = []
    for entry, result in zip(pictured, results, strict=True):
        if isinstance(result, ConfigError):
            refused.append((entry, result))
        else:
            checked[entry.id] = result
    if refused:
        entry, reason = refused[0]
        raise ConfigError(
            f"{len(refused)} of the {len(entries)} questions have a picture that cannot be sent "
            f"(first: {place(dataset.path, entry.line)}, id {entry.id}): {reason}"
        )
    annotated = [id_ for id_, pictures in checked.items() if any(p.is_annotated for p in pictures)]
    if not annotated:
        return CheckedPictures(checked)
    note = (
        f"{len(annotated)} of the {len(entries)} questions have a DICOM picture with burnt-in "
        f"annotations, which may be a patient's name (first: {annotated[0]})."
    )
    return CheckedPictures(checked, [note])


def _checked(dataset: Dataset, entry: IndexEntry) -> list[CheckedPicture] | ConfigError:
    try:
        return list(map(check_picture, dataset.load(entry).pictures))
    except ConfigError as error:
        return error
