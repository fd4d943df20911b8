"""Prepares the pictures of a question for a prompt: decodes, scales and encodes them."""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import dataclass

from mdagents.datasets.question_pictures import LARGEST_FILE, QuestionPicture
from mdagents.datasets.questions import Question
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.pictures import ImageDetail, Picture

MAX_PIXELS = 1_150_000
"""Default maximum number of pixels of a picture as it is sent, width times height."""


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """How pictures are sent."""

    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels, width times height; a larger picture is scaled down."""
    detail: ImageDetail = ImageDetail.AUTO


def prepare_pictures(question: Question, settings: PictureSettings) -> tuple[Picture, ...]:
    """Return the pictures of a question as they are sent, in the order of `Question.pictures`.

    Raises:
        ConfigError: A picture cannot be read.
    """
    return tuple(
        prepare_picture(picture, settings, label)
        for picture, label in zip(question.pictures, question.labels(), strict=True)
    )


def prepare_picture(picture: QuestionPicture, settings: PictureSettings, label: str) -> Picture:
    """Return a picture as it is sent.

    Raises:
        ConfigError: The picture cannot be read.
    """
    content = picture.read()
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"the picture {picture.place} has {len(content):,} bytes")
    identity = hashlib.sha256(hashlib.sha256(content).digest() + b"%d" % settings.max_pixels)
    with needs_extra("images", "a question with a picture"):
        from PIL import Image
    image = Image.open(io.BytesIO(content)).convert("RGB")
    out = io.BytesIO()
    image.save(out, "PNG")
    return Picture(
        base64=base64.b64encode(out.getvalue()).decode(),
        media_type="image/png",
        width=image.width,
        height=image.height,
        sha256=identity.hexdigest(),
        label=label,
        detail=settings.detail,
    )
