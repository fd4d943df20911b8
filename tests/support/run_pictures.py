"""Pictures in the folder of a run, made for tests through the functions that a run uses."""

from __future__ import annotations

import base64
import hashlib
import io
import random
from pathlib import Path
from typing import Any

from PIL import Image

from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import Question
from mdagents.records.pictures import PictureRecord, keep_picture, picture_records
from mdagents_llm.pictures import Picture

FORMS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
"""Name of the format for Pillow -> media type."""


def noise(width: int, height: int, seed: int = 1) -> Image.Image:
    """A picture that cannot be compressed: three bytes a pixel."""
    pixels = random.Random(seed).randbytes(width * height * 3)
    return Image.frombytes("RGB", (width, height), pixels)


def as_sent(image: Image.Image, form: str = "PNG") -> Picture:
    """A picture as it is sent to a model."""
    out = io.BytesIO()
    image.save(out, form)
    content = out.getvalue()
    return Picture(
        base64=base64.b64encode(content).decode(),
        media_type=FORMS[form],
        width=image.width,
        height=image.height,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def record_of(
    folder: Path,
    image: Image.Image,
    name: str = "scan.png",
    *,
    caption: str = "",
    option: str = "",
    form: str = "PNG",
) -> PictureRecord:
    """The record of a picture, whose copy is in the folder."""
    picture = as_sent(image, form)
    folder.mkdir(parents=True, exist_ok=True)
    keep_picture(folder, picture)
    named = QuestionPicture(Path("/a folder of this machine") / name, "", b"", caption, option)
    question = Question("1", "", {option or "A": ""}, "", {}, pictures=(named,))
    (record,) = picture_records(question, [picture])
    return record


def named(*records: PictureRecord) -> list[dict[str, Any]]:
    """The field `pictures` of a question's record."""
    return [record.model_dump(mode="json") for record in records]
