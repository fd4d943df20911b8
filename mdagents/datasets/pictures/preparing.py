"""Prepares the pictures of a question for a prompt: decodes, scales and encodes them."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents_llm.pictures import ImageDetail, Picture

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 1_150_000
"""Default maximum number of pixels of a picture as it is sent, width times height."""
LONGEST_SENT = 8_000
"""Maximum width and height of a picture as it is sent, in pixels: the limit of several vendors."""
SHORTEST_SENT = 28
"""Minimum width and height of a picture as it is sent, in pixels: several models refuse less, so
smaller pictures are enlarged by a whole number."""
LARGEST_PNG = 5 * 2**20 * 3 // 4
"""Maximum size of a PNG file as it is sent, in bytes: 5 MB in Base64, the limit of several vendors.
A larger one becomes a JPEG."""
_KEPT = 64 * 2**20
"""Maximum size of all prepared pictures that are kept in memory, in bytes of Base64."""


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """How pictures are sent."""

    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels, width times height; a larger picture is scaled down."""
    detail: ImageDetail = ImageDetail.AUTO


def prepare_picture(picture: QuestionPicture, settings: PictureSettings, label: str) -> Picture:
    """Return a picture as it is sent; the result is kept for other questions and agents.

    Raises:
        ConfigError: The picture cannot be read.
    """
    content = picture.read()
    identity = hashlib.sha256(hashlib.sha256(content).digest() + b"%d" % settings.max_pixels)
    sha256 = identity.hexdigest()
    prepared = _PREPARED.get(sha256, content, picture.place, settings.max_pixels)
    return replace(prepared, label=label, detail=settings.detail)


def size_as_sent(picture: QuestionPicture, max_pixels: int) -> tuple[int, int]:
    """Return the width and height at which a picture is sent, by its header alone.

    Raises:
        ConfigError: The picture cannot be read.
    """
    from mdagents.datasets.pictures.decoding import open_picture  # Pillow, for pictures alone

    return _sent_size(*open_picture(picture.read(), picture.place).size, max_pixels)


class _Prepared:
    """Prepared pictures, the most recently used ones up to `_KEPT` bytes; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Picture] = OrderedDict()
        self._bytes = 0
        self._waiting: dict[str, Future[Picture]] = {}

    def get(self, sha256: str, content: bytes, where: str, max_pixels: int) -> Picture:
        """Return a picture; threads that need it at the same time wait for the first of them."""
        with self._lock:
            if sha256 in self._kept:
                self._kept.move_to_end(sha256)
                return self._kept[sha256]
            other = self._waiting.get(sha256)
            if other is None:
                own = self._waiting[sha256] = Future[Picture]()
        if other is not None:
            return other.result()
        try:
            prepared = _prepare(content, where, max_pixels, sha256)
        except BaseException as error:
            with self._lock:
                del self._waiting[sha256]
            own.set_exception(error)
            raise
        with self._lock:
            del self._waiting[sha256]
            self._keep(prepared)
        own.set_result(prepared)
        return prepared

    def _keep(self, picture: Picture) -> None:
        self._kept[picture.sha256] = picture
        self._bytes += len(picture.base64)
        while self._bytes > _KEPT:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.base64)


_PREPARED = _Prepared()


def _prepare(content: bytes, where: str, max_pixels: int, sha256: str) -> Picture:
    from mdagents.datasets.pictures import decoding  # Pillow, for runs with pictures alone
    from mdagents.datasets.pictures.dicom import DicomPicture

    opened = decoding.open_picture(content, where)
    image = decoding.decode(opened, where, max_pixels)
    size = _sent_size(*image.size, max_pixels)
    if (
        not isinstance(opened, DicomPicture)
        and size == opened.size
        and len(content) <= LARGEST_PNG
        and decoding.needs_no_change(content, opened)
    ):
        encoded, media_type = content, f"image/{opened.format}".lower()
    else:
        is_lossy = decoding.is_lossy(content, opened)
        encoded, media_type = _encode(_scaled(image, size), is_lossy=is_lossy)
    return Picture(
        base64=base64.b64encode(encoded).decode(),
        media_type=media_type,
        width=size[0],
        height=size[1],
        sha256=sha256,
    )


def _sent_size(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Return the width and the height at which a picture is sent."""
    share = min(1, math.sqrt(max_pixels / (width * height)), LONGEST_SENT / max(width, height))
    if share < 1:
        return max(1, int(width * share)), max(1, int(height * share))
    times = math.ceil(SHORTEST_SENT / min(width, height))
    if width * height * times**2 > max_pixels or max(width, height) * times > LONGEST_SENT:
        return width, height
    return width * times, height * times


def _scaled(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    from PIL import Image

    if size == image.size:
        return image
    if size[0] > image.width:
        return image.resize(size, Image.Resampling.NEAREST)
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _encode(image: Image.Image, *, is_lossy: bool) -> tuple[bytes, str]:
    """Return the encoded picture without metadata, and its media type."""
    image = image.copy()
    image.info.clear()  # a profile or a comment would be written
    png = _saved(image, "PNG")
    if is_lossy or len(png) > LARGEST_PNG:
        jpeg = _saved(image, "JPEG", quality=95, subsampling=0)
        if len(jpeg) < len(png):
            return jpeg, "image/jpeg"
    return png, "image/png"


def _saved(image: Image.Image, form: str, **options: int) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
