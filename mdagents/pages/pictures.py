"""Pictures of a question, as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mdagents.records.pictures import PictureRecord
from mdagents.scoring.run_pictures import trouble_with

THUMBNAIL = 320
"""Maximum width and height of a picture among the text of a page, in CSS pixels."""


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture of a question, as a page shows it."""

    number: int
    """Number among the pictures of the question, from 1, as in the prompts."""
    title: str
    """Number of the picture and id of its question, in words."""
    alt: str
    """Text for those who do not see the picture: its number, its question and its caption."""
    caption: str
    """Caption of the data set; the name of the file without one."""
    option: str
    """Letter of the option that the picture belongs to; empty for the question itself."""
    width: int
    """Width of the thumbnail in CSS pixels."""
    height: int
    """Height of the thumbnail in CSS pixels."""
    full_width: int
    """Width of the picture as sent, in pixels."""
    full_height: int
    """Height of the picture as sent, in pixels."""
    key: str
    """Identity of the picture (`PictureRecord.sha256`)."""
    source: str
    """Address of the picture; empty in a report, whose script finds it by its key."""
    why_not: str
    """Why the picture is not shown; empty if it is."""


def shown_pictures(
    pictures: Sequence[PictureRecord], question_id: str, folder: Path, address: str
) -> list[ShownPicture]:
    """Return the pictures of a question for a page.

    Args:
        pictures: Pictures in the order of the prompts.
        question_id: Id of the question, for the text of those who do not see the pictures.
        folder: Folder of the run, which has the copies.
        address: Address of these copies; empty for a report.
    """
    return [
        _shown(picture, number, question_id, folder, address)
        for number, picture in enumerate(pictures, start=1)
    ]


def _shown(
    picture: PictureRecord, number: int, question_id: str, folder: Path, address: str
) -> ShownPicture:
    why_not = trouble_with(picture, folder)
    title = f"Picture {number} of question {question_id}"
    scale = min(1.0, THUMBNAIL / max(picture.width, picture.height, 1))
    return ShownPicture(
        number=number,
        title=title,
        alt=f"{title}: {picture.caption}" if picture.caption else title,
        caption=picture.caption or picture.name,
        option=picture.option,
        width=max(1, round(picture.width * scale)),
        height=max(1, round(picture.height * scale)),
        full_width=picture.width,
        full_height=picture.height,
        key=picture.sha256,
        source=f"{address}/{Path(picture.file).name}" if address and not why_not else "",
        why_not=why_not,
    )
