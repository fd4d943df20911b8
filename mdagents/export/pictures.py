"""The pictures of a sample: attachments, which the messages of the sample refer to.

Inspect's viewer fetches an attachment once, however many messages refer to it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai.model import Content, ContentImage, ContentText

from mdagents.scoring.run_pictures import pictures_of_record, trouble_with

LARGEST = 100_000_000
"""Maximum size of the pictures of a log, in bytes: Inspect reads a JSON log as a whole."""


@dataclass(frozen=True, slots=True)
class SamplePictures:
    """Pictures of a question, as the messages of its sample show them."""

    content: Sequence[Content] = ()
    """Each picture after its label, or a sentence that says why it is not shown."""
    attachments: Mapping[str, str] = field(default_factory=dict)
    """Key of the attachment -> data URI."""
    of_option: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Presented letter -> numbers of its pictures."""

    def option(self, letter: str, text: str) -> str:
        """Return the text of an option with the labels of its pictures, as in a prompt."""
        labels = [f"[Picture {number}]" for number in self.of_option.get(letter, ())]
        return " ".join(filter(None, [text, *labels]))


class PictureReader:
    """Reads the pictures of samples from the folder of a run.

    Args:
        folder: Folder of the run.
        room: Maximum size of all pictures in bytes; later ones are named instead of shown.
    """

    def __init__(self, folder: Path, room: int = LARGEST) -> None:
        self._folder = folder
        self._room = room

    def read(self, record: Mapping[str, Any]) -> SamplePictures:
        """Return the pictures of a record."""
        pictures = pictures_of_record(record)
        content: list[Content] = []
        attachments: dict[str, str] = {}
        of_option: dict[str, list[int]] = {}
        for number, picture in enumerate(pictures, start=1):
            what = ": ".join(filter(None, [f"Picture {number}", picture.caption]))
            if picture.option:
                of_option.setdefault(picture.option, []).append(number)
            why_not = trouble_with(picture, self._folder)
            file = self._folder / picture.file if not why_not else None
            if file is not None and file.stat().st_size > self._room:
                why_not = f"left out, so that the log has at most {LARGEST // 10**6} MB of pictures"
            if file is None or why_not:
                # Without the content, an image would be shown as a broken one.
                content.append(ContentText(text=f"[{what} ({picture.name}): {why_not}]"))
                continue
            key = picture.sha256
            if key not in attachments:
                raw = file.read_bytes()
                self._room -= len(raw)
                in_base64 = base64.b64encode(raw).decode()
                attachments[key] = f"data:{picture.media_type};base64,{in_base64}"
            content += [ContentText(text=what), ContentImage(image=f"attachment://{key}")]
        return SamplePictures(content, attachments, of_option)
