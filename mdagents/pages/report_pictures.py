"""The pictures in a report: each once, in full size while the report stays small enough.

A picture that does not fit in full size is a thumbnail; when not even the thumbnails fit, the last
ones are left out. The page says how many.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from PIL import Image

from mdagents.pages.pictures import THUMBNAIL
from mdagents.scoring.run_pictures import pictures_of_record, trouble_with
from mdagents_llm.processes import cores, in_processes

LARGEST_REPORT = 20_000_000
"""Size of a report in bytes that its pictures do not exceed."""

_RESERVED = 4_000  # bytes, for what follows the pictures
_AROUND = 120  # bytes around an embedded picture
_SMALL = 40_000  # bytes up to which a picture needs no thumbnail
_QUALITY = 80  # of JPEG
_WORTH_A_PROCESS = 60  # thumbnails that take as long as starting a process


@dataclass(frozen=True, slots=True)
class Embedded:
    """A picture in the page."""

    key: str
    """Identity of the picture."""
    uri: Markup
    """Data URI of the picture or of its thumbnail; empty if the copy cannot be decoded."""
    is_reduced: bool
    """Whether this is only the thumbnail."""


class ReportPictures:
    """Collects the pictures of the questions of a report, then embeds them."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Path, str]] = {}  # key -> (file, media type)
        self.written = 0
        """Size of the page so far, in bytes."""
        self.note = ""
        """What is reduced or left out, in a sentence; known when all pictures are embedded."""

    def add(self, record: Mapping[str, Any], folder: Path) -> None:
        """Collect the pictures of a record that can be shown.

        Args:
            record: Record of a question.
            folder: Folder of the run.
        """
        if not record.get("pictures"):
            return
        for picture in pictures_of_record(record):
            if picture.sha256 not in self._found and not trouble_with(picture, folder):
                self._found[picture.sha256] = folder / picture.file, picture.media_type

    def embedded(self) -> Iterator[Embedded]:
        """Yield the pictures that fit into the page, in the order of the questions."""
        if not self._found:
            return
        room = LARGEST_REPORT - _RESERVED - self.written
        small: dict[str, str] = {}
        files = [file for file, _ in self._found.values()]
        processes = min(cores(), len(files) // _WORTH_A_PROCESS + 1)
        thumbnails = in_processes(make_thumbnail, files, processes=processes)
        for key, made in zip(self._found, thumbnails, strict=True):
            if len(made) + _AROUND > room:
                break
            room -= len(made) + _AROUND
            small[key] = made
        reduced = 0
        for key, thumbnail in small.items():
            file, media_type = self._found[key]
            more = _in_base64(file.stat().st_size) + len(media_type) + 13 - len(thumbnail)
            if not thumbnail or more > room:
                reduced += bool(thumbnail)
                yield Embedded(key, Markup(thumbnail), is_reduced=bool(thumbnail))
                continue
            room -= max(0, more)
            yield Embedded(key, Markup(_uri(media_type, file.read_bytes())), is_reduced=False)
        self.note = _note(len(self._found), reduced, len(self._found) - len(small))


def _note(pictures: int, reduced: int, left_out: int) -> str:
    parts = []
    if reduced:
        parts.append(f"{reduced:,} of {pictures:,} pictures are thumbnails only")
    if left_out:
        parts.append(f"{left_out:,} of {pictures:,} pictures are left out")
    if not parts:
        return ""
    megabytes = LARGEST_REPORT // 10**6
    return (
        f"{' and '.join(parts)}, so that this report stays under {megabytes} MB. "
        "The folder of the run has all of them."
    )


def make_thumbnail(file: Path) -> str:
    """Return the data URI of a thumbnail; empty if the file cannot be decoded.

    A small picture is its own thumbnail.
    """
    try:
        content = file.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of a picture that is suspiciously large or damaged
            image = Image.open(io.BytesIO(content))
            image.draft("RGB", (THUMBNAIL * 2, THUMBNAIL * 2))
            image.load()
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
        return ""
    if len(content) <= _SMALL:
        kind = file.suffix.removeprefix(".").replace("jpg", "jpeg")
        return _uri(f"image/{kind}", content)
    plain = _plain(image)
    plain.thumbnail((THUMBNAIL, THUMBNAIL))
    out = io.BytesIO()
    plain.save(out, "JPEG", quality=_QUALITY, optimize=True)
    return _uri("image/jpeg", out.getvalue())


def _plain(image: Image.Image) -> Image.Image:
    """Return a picture in the colors of a JPEG, with white where it was transparent."""
    if image.mode.startswith("I"):  # 16 bits for each pixel
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    ground = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")


def _uri(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _in_base64(size: int) -> int:
    return (size + 2) // 3 * 4
