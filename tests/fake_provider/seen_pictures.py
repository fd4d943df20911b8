"""The pictures of a request, decoded from the bytes that the server received."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.support.pictures import word_in

_DATA_URI = re.compile(r"data:(image/[a-z]+);base64,")
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}


class BadPictureError(ValueError):
    """The bytes are not a picture, or not of the type that the request says."""


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """A picture as the server received it.

    Attributes:
        media_type: As the request says, and as the bytes are.
        size: Width and height in pixels.
        bytes: Size of the encoded picture.
        sha256: Of the encoded picture.
        word: The code word in its pixels (`tests.support.pictures`); empty without one.
        detail: The resolution that the request asks for; empty without one.
        message: Index of its message.
        at: Characters of the message before it.
    """

    media_type: str
    size: tuple[int, int]
    bytes: int
    sha256: str
    word: str
    detail: str = ""
    message: int = 0
    at: int = 0


def picture_of_uri(uri: Any, detail: Any = None) -> SeenPicture:
    """Return the picture of a data URI.

    Raises:
        BadPictureError: It is none.
    """
    begins = _DATA_URI.match(uri) if isinstance(uri, str) else None
    if begins is None:
        raise BadPictureError("Invalid image data URI")
    return picture_of(begins[1], uri[begins.end() :], detail)


def picture_of(media_type: str, encoded: str, detail: Any = None) -> SeenPicture:
    """Return the picture of a Base64 text.

    Raises:
        BadPictureError: It is none.
    """
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadPictureError("the image is not valid Base64") from error
    name, size, word = _decoded(hashlib.sha256(content).digest(), _Bytes(content))
    if _FORMATS.get(media_type) != name:
        raise BadPictureError(f"the image was specified as {media_type}, but appears to be {name}")
    digest = hashlib.sha256(content).hexdigest()
    return SeenPicture(media_type, size, len(content), digest, word, detail or "")


class _Bytes:
    """Bytes that are equal to any other, so that a cache compares their digests alone."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bytes)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=256)
def _decoded(digest: bytes, given: _Bytes) -> tuple[str | None, tuple[int, int], str]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(given.content))
            image.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise BadPictureError("the image cannot be decoded") from error
    return image.format, image.size, word_in(image)
