"""The pictures of a run: what its records say of them, and the copies in its folder."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path, PurePath

from pydantic import BaseModel, ConfigDict

from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import Question
from mdagents_llm.files.whole_file import replace_file
from mdagents_llm.pictures import Picture

PICTURES = "pictures"
"""Folder of a run with the pictures that were sent, each once however many questions show it."""

_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


class PictureRecord(BaseModel):
    """A picture of a question, as it was sent or left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str
    """Name of the picture in the data set, without the folders of this machine."""
    caption: str = ""
    option: str = ""
    """Presented letter of the option that it belongs to; empty for the question itself."""
    sha256: str = ""
    """Identity of the picture as sent (`Picture.sha256`); empty if it was not sent."""
    media_type: str = ""
    width: int = 0
    """Pixels, as sent."""
    height: int = 0
    bytes: int = 0
    """Size of the encoded picture, as sent."""

    @property
    def was_sent(self) -> bool:
        """Whether agents saw it; with `--images drop` they did not."""
        return bool(self.sha256)

    @property
    def file(self) -> str:
        """Path of the copy, relative to the folder of the run; empty if it was not sent."""
        return f"{PICTURES}/{self.sha256}{_ENDINGS[self.media_type]}" if self.sha256 else ""


def picture_records(question: Question, sent: Sequence[Picture]) -> tuple[PictureRecord, ...]:
    """Return the records of a question's pictures, in the order of its prompts.

    Args:
        question: The question.
        sent: Its pictures as sent; empty if the agents were not shown them.
    """
    return tuple(
        PictureRecord(
            name=picture_name(picture, number),
            caption=picture.caption,
            option=picture.option,
            sha256=shown.sha256 if shown else "",
            media_type=shown.media_type if shown else "",
            width=shown.width if shown else 0,
            height=shown.height if shown else 0,
            bytes=shown.bytes if shown else 0,
        )
        for number, (picture, shown) in enumerate(
            zip(question.pictures, sent or repeat(None), strict=False), start=1
        )
    )


def picture_name(picture: QuestionPicture, number: int) -> str:
    """Return the name of a picture for records and messages, without folders of this machine.

    Args:
        picture: Picture of a question.
        number: Its number among the pictures of the question, from 1.
    """
    return PurePath(picture.member or picture.file or f"picture {number} of the record").name


def keep_picture(folder: Path, picture: Picture, *, private: bool = False) -> None:
    """Copy a picture as sent into the folder of a run, unless it is there already.

    Args:
        folder: Folder of the run; it is not created again if it was moved away.
        picture: Picture as sent.
        private: Whether only the owner can read the copy.

    Raises:
        OSError: The copy cannot be written.
    """
    path = folder / PICTURES / f"{picture.sha256}{_ENDINGS[picture.media_type]}"
    if path.exists():
        return
    path.parent.mkdir(0o700 if private else 0o777, exist_ok=True)
    content = base64.b64decode(picture.base64)
    replace_file(path, content, sync=True, parents=False, private=private)
