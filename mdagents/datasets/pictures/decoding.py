"""Decodes the file of a picture to what a viewer would show, whatever the file claims to be.

The content decides on the format, never the name. Limits are checked on the header, before any
pixel is decoded.
"""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mdagents.datasets.pictures import dicom
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra

with needs_extra("images", "a question with a picture"):
    from PIL import Image, ImageCms, UnidentifiedImageError

# Files are judged by their errors and by the checks below; what Pillow and pydicom only warn of
# (odd metadata, many pixels) would be printed over the display of a run.
warnings.filterwarnings("ignore", module=r"(?:PIL|pydicom)\b")

MOST_PIXELS = 100_000_000
"""Maximum number of pixels of a file, width times height."""
LONGEST_SIDE = 65_500
"""Maximum width and height of a file, in pixels: the limit of JPEG, rounded down."""
MOST_ELONGATED = 200
"""Maximum ratio of the sides: vendors refuse more, and padding would show something else."""
_LARGE = 16_000_000
"""Number of pixels above which only one picture is decoded at a time, for the sake of memory."""
_LARGEST_PROFILE = 4 * 2**20
"""Maximum size of an ICC profile that is applied, in bytes; 600 KB is usual for CMYK."""

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "AVIF")
"""Formats that Pillow may read here; DICOM is read by pydicom."""

_one_at_a_time = threading.Semaphore()

_ORIENTATION = 0x0112
_TILE_SIDES = (322, 323)

_OTHERS = (
    (b"%PDF-", "a PDF; export its page as PNG"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the picture with git lfs pull"),
    (b"\x1f\x8b", "compressed with gzip; unpack it"),
    (b"PK\x03\x04", "a ZIP archive; name it in the record as archive.zip/picture.png"),
    (b"\x00\x00\x00\x0cjP", "JPEG 2000; save it as PNG"),
    (b"\xff\x0a", "JPEG XL; save it as PNG"),
    (b"8BPS", "a Photoshop file; save it as PNG"),
    (b"\x89HDF", "an HDF5 file; save the picture as PNG"),
)
_HEIF = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")


def open_picture(content: bytes, where: str) -> Image.Image | dicom.DicomPicture:
    """Return a picture whose header was read and checked; no pixel is decoded yet.

    Args:
        content: Encoded picture.
        where: Place of the picture, for messages.

    Raises:
        ConfigError: The content is not a picture that can be sent.
    """
    with _in_one_line(where):
        if dicom.is_dicom(content):
            opened: Image.Image | dicom.DicomPicture = dicom.open_dicom(content, where)
        else:
            # Hostile files are left alone by all readers but those of these formats.
            try:
                opened = Image.open(io.BytesIO(content), formats=FORMATS)
            except UnidentifiedImageError:
                raise ConfigError(f"the picture {where} is {_kind(content)}") from None
    _check_size(*opened.size, where)
    if isinstance(opened, Image.Image):
        tile = [getattr(opened, "tag_v2", {}).get(tag, 1) for tag in _TILE_SIDES]
        if not all(isinstance(side, int) for side in tile) or math.prod(tile) > MOST_PIXELS:
            raise ConfigError(f"the picture {where} has tiles of more pixels than it may have")
    return opened


def decode(opened: Image.Image | dicom.DicomPicture, where: str, at_least: int) -> Image.Image:
    """Return the pixels of a picture as a viewer would show them, in mode L or RGB.

    Args:
        opened: Result of `open_picture`.
        where: Place of the picture, for messages.
        at_least: Number of pixels that suffice: a large JPEG is decoded at a fraction of its size
            that still has four times as many.

    Raises:
        ConfigError: The file is damaged, or its content is not supported.
    """
    is_large = math.prod(opened.size) > _LARGE
    with _one_at_a_time if is_large else threading.Lock(), _in_one_line(where):
        if isinstance(opened, dicom.DicomPicture):
            return opened.decode()
        if opened.format == "JPEG" and math.prod(opened.size) > 4 * at_least:
            share = math.sqrt(4 * at_least / math.prod(opened.size))
            width, height = (math.ceil(side * share) for side in opened.size)
            opened.draft(None, (width, height))
        opened.load()
        return _as_shown(_upright(opened))


def _check_size(width: int, height: int, where: str) -> None:
    pixels = f"the picture {where} has {width:,} x {height:,} pixels"
    if width < 1 or height < 1:
        raise ConfigError(f"{pixels}, so there is nothing to see")
    if max(width, height) > LONGEST_SIDE or width * height > MOST_PIXELS:
        raise ConfigError(
            f"{pixels}, at most {LONGEST_SIDE:,} a side and {MOST_PIXELS:,} in all: save it smaller"
        )
    if width * height == 1:
        raise ConfigError(f"{pixels}, which vendors refuse")
    if max(width, height) > MOST_ELONGATED * min(width, height):
        raise ConfigError(
            f"{pixels}; one side may be {MOST_ELONGATED} times the other at most: crop it"
        )


def _kind(content: bytes) -> str:
    """Return what a file is that is not a picture in a supported format."""
    for start, kind in _OTHERS:
        if content.startswith(start):
            return kind
    if content[4:8] == b"ftyp" and content[8:12] in _HEIF:
        return "HEIC; save it as JPEG or PNG"
    text = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in text:
        return "an SVG drawing; export it as PNG"
    if text.startswith((b"<!doctype html", b"<html", b"<head")):
        return "a web page, perhaps an error message; download the picture again"
    return "damaged or in no format that can be read: PNG, JPEG, WebP, GIF, TIFF, BMP, AVIF, DICOM"


@contextmanager
def _in_one_line(where: str) -> Iterator[None]:
    """Turn whatever a decoder raises for a file into one line."""
    try:
        yield
    except ConfigError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ConfigError(
            f"the picture {where} has more than {MOST_PIXELS:,} pixels: save it smaller"
        ) from None
    except MemoryError:
        raise ConfigError(f"the picture {where} needs more memory than there is") from None
    except Exception as error:  # noqa: BLE001 - damaged files raise errors of every type
        lines = str(error).splitlines()
        reason = lines[0][:120] if lines else type(error).__name__
        if reason.startswith(("decoder error", "broken data", "unrecognized data")):
            reason = "it is damaged"
        raise ConfigError(f"the picture {where} cannot be decoded: {reason}") from None


def _upright(image: Image.Image) -> Image.Image:
    """Return a picture in the orientation of its EXIF tag; a TIFF has been turned already."""
    if image.format == "TIFF":
        return image
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - a viewer ignores EXIF data that it cannot read
        return image
    turned = _TURNS.get(orientation) if isinstance(orientation, int) else None
    return image if turned is None else image.transpose(turned)


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def _as_shown(image: Image.Image) -> Image.Image:
    """Return a picture in mode L or RGB: colors as in sRGB, transparent parts on white."""
    profile = image.info.get("icc_profile")
    if image.mode.startswith("I") or image.mode == "F":
        return from_numbers(np.asarray(image))
    if image.mode in ("La", "RGBa"):
        image = image.convert(image.mode.upper())
    if image.mode in ("LA", "RGBA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.new("RGBA", layer.size, "white")
        image.alpha_composite(layer)
        image = image.convert("RGB")
    if image.mode == "P":
        image = image.convert("RGB")
    if isinstance(profile, bytes) and 0 < len(profile) <= _LARGEST_PROFILE:
        image = _in_srgb(image, profile)
    if image.mode == "1":
        return image.convert("L")
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Return a picture whose colors were in an ICC profile; unchanged if the profile is damaged."""
    mode = "L" if image.mode == "L" else "RGB"
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        space = source.profile.xcolor_space.strip()
        if space != {"L": "GRAY", "LAB": "Lab"}.get(image.mode, image.mode):
            return image
        shown = ImageCms.profileToProfile(
            image, source, ImageCms.createProfile("sRGB"), outputMode="RGB"
        )
    except Exception:  # noqa: BLE001 - a viewer ignores a profile that it cannot read
        return image
    return image if shown is None else shown.convert(mode)


def from_numbers(numbers: np.ndarray[Any, Any]) -> Image.Image:
    """Return a gray picture of numbers with more than 8 bits.

    16-bit numbers are shown over their whole range, as viewers do. Real numbers are shown as they
    are if they lie in 0 to 1 or in 0 to 255, otherwise from the least to the greatest.

    Args:
        numbers: Array of shape (height, width); what is not finite is black.
    """
    if numbers.dtype == np.uint16:
        return Image.fromarray((numbers >> 8).astype(np.uint8))
    values = np.nan_to_num(numbers.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    is_whole = np.issubdtype(numbers.dtype, np.integer)
    if low >= 0 and high <= 255 and (is_whole or high > 1):
        low, high = 0.0, 255.0
    elif low >= 0 and high <= 65_535 and is_whole:
        low, high = 0.0, 65_535.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    spread = high - low or 1.0
    return Image.fromarray(((values - low) / spread * 255).round().clip(0, 255).astype(np.uint8))


def needs_no_change(content: bytes, opened: Image.Image) -> bool:
    """Return whether a file can be sent as it is: it holds pixels that any model reads, no more.

    Metadata, a color profile, transparency, several frames and bytes after the end all count.
    """
    if opened.format == "PNG":
        return opened.mode in ("1", "L", "P", "RGB") and _is_plain_png(content)
    return opened.format == "JPEG" and opened.mode in ("L", "RGB") and _is_plain_jpeg(content)


_PLAIN_CHUNKS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"sRGB", b"gAMA", b"pHYs", b"sBIT"})


def _is_plain_png(content: bytes) -> bool:
    if content[24:25] == b"\x10":  # bits of a sample
        return False
    at = 8
    while at + 12 <= len(content):
        length, kind = int.from_bytes(content[at : at + 4]), content[at + 4 : at + 8]
        if kind not in _PLAIN_CHUNKS or (kind in _LENGTHS and length > _LENGTHS[kind]):
            return False
        at += length + 12
        if kind == b"IEND":
            return at == len(content)
    return False


_LENGTHS = {b"IEND": 0, b"sRGB": 1, b"gAMA": 4, b"pHYs": 9, b"sBIT": 4}
"""Chunk -> its greatest length in bytes."""

_TABLES = frozenset({0xDB, 0xC4, 0xDD, 0xC0, 0xC1, 0xC2})
"""Markers of a JPEG file with tables and sizes: DQT, DHT, DRI, SOF0 to SOF2."""


def _is_plain_jpeg(content: bytes) -> bool:
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker, length = content[at + 1], int.from_bytes(content[at + 2 : at + 4])
        is_jfif = marker == 0xE0 and length == 16 and content[at + 4 : at + 9] == b"JFIF\0"
        is_adobe = marker == 0xEE and length == 14 and content[at + 4 : at + 9] == b"Adobe"
        if marker == 0xDA:
            return _ends_with_scan(content, at + 2 + length)
        if not (is_jfif or is_adobe or marker in _TABLES):
            return False
        at += 2 + length
    return False


def _ends_with_scan(content: bytes, at: int) -> bool:
    """Return whether only scans and tables follow, and the file ends where the picture does."""
    while (at := content.find(b"\xff", at)) >= 0 and at + 1 < len(content):
        marker = content[at + 1]
        if marker == 0xD9:
            return at + 2 == len(content)
        if marker == 0 or 0xD0 <= marker <= 0xD7 or marker == 0xFF:
            at += 1 if marker == 0xFF else 2
        elif marker in _TABLES or marker == 0xDA:
            at += 2 + int.from_bytes(content[at + 2 : at + 4])
        else:
            return False
    return False


def is_lossy(content: bytes, opened: Image.Image | dicom.DicomPicture) -> bool:
    """Return whether the file is a JPEG, or a WebP or AVIF file without lossless compression."""
    if isinstance(opened, dicom.DicomPicture):
        return False
    return opened.format in ("JPEG", "MPO", "AVIF") or content[12:16] == b"VP8 "
