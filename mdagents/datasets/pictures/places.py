"""Resolves what a record says of a picture to its file: a path, an address, a data URI, Base64.

Nothing outside the folder of the data set is read, and nothing is fetched: a data set from
somebody else must not be able to send a file of this machine to a model.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from mdagents.datasets.pictures.question_picture import (
    QuestionPicture,
    base64_content,
    data_uri_content,
    members,
)
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching

IMAGES = "images"
"""Folder beside a question file with its pictures, in which a file name alone is looked up."""

ENDINGS = (
    ".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".avif", ".dcm", ".dicom"
)  # fmt: skip
"""Extensions that the copy of a downloaded picture may have."""

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_OTHER_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_BASE64 = re.compile(r"(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|SUkqA|TU0AK|Qk0)[A-Za-z0-9+/=\s]{60,}")
"""Base64 of a PNG, JPEG, GIF, WebP, TIFF or BMP file."""
_MOST_ARCHIVES = 20


class NotThereError(Exception):
    """A picture that cannot be used; the message says which one and why, without a period."""


def copy_of(address: str) -> str:
    """Return the path, without its ending, of the downloaded copy of an address.

    Args:
        address: Address as written in the record.
    """
    return f"{IMAGES}/{hashlib.sha256(address.encode()).hexdigest()[:32]}"


def ending_of(content: bytes) -> str:
    """Return the extension of a picture's file by its first bytes; empty if it is no picture."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    if content[4:12] in (b"ftypavif", b"ftypavis"):
        return ".avif"
    if content[128:132] == b"DICM":
        return ".dcm"
    return next((ending for start, ending in _STARTS.items() if content.startswith(start)), "")


def content_name(content: bytes) -> str:
    """Return the name of a file for a picture: 32 hex digits of its SHA-256, and an extension.

    Args:
        content: Encoded picture; a file that no signature identifies may be DICOM.
    """
    return hashlib.sha256(content).hexdigest()[:32] + (ending_of(content) or ".dcm")


_STARTS = {
    b"\x89PNG\r\n\x1a\n": ".png",
    b"\xff\xd8\xff": ".jpg",
    b"GIF87a": ".gif",
    b"GIF89a": ".gif",
    b"II*\x00": ".tif",
    b"MM\x00*": ".tif",
    b"BM": ".bmp",
}
"""First bytes of a file -> its extension."""


def find_picture(named: str, folder: Path | None) -> QuestionPicture:
    """Return the picture that a text in a record names.

    Args:
        named: Path relative to the folder, an address, a data URI or the content in Base64.
        folder: Folder of the data set; None: only content in the record itself counts.

    Raises:
        NotThereError: There is no such picture, or it may not be read.
    """
    named = named.strip()
    if named[:5].lower() == "data:" or _BASE64.fullmatch(named):
        read = data_uri_content if named[:5].lower() == "data:" else base64_content
        try:
            return QuestionPicture(None, content=read(named, "a picture"))
        except ConfigError as error:
            raise NotThereError(str(error)) from None
    shown = _short(named)
    if folder is None:
        raise NotThereError(shown)
    if _ADDRESS.match(named):
        paths = [copy_of(named) + ending for ending in ENDINGS]
        reason = "is an address and is not downloaded"
    elif _OTHER_ADDRESS.match(named):
        raise NotThereError(f"{shown} is neither a path nor a web address")
    else:
        paths = _spellings(named, folder)
        reason = "is not there"
    for find in (_in_folder, _in_archive, _in_other_case):
        for path in paths:
            if found := find(path, folder):
                return found
    raise NotThereError(f"{shown} {reason}")


def _spellings(named: str, folder: Path) -> list[str]:
    """Return the paths, relative to the folder, at which a named file may be.

    Raises:
        NotThereError: The name leads out of the folder.
    """
    path = named.replace("\\", "/")
    if Path(path).is_absolute():
        path = _within(path, folder)
    if ".." in PurePosixPath(path).parts:
        raise NotThereError(f"{_short(named)} leads out of the folder of the data set")
    # macOS writes names of files in another normal form than most programs.
    forms = dict.fromkeys(
        [path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)]
    )
    return [place for form in forms for place in (form, f"{IMAGES}/{form}")]


def _in_other_case(path: str, folder: Path) -> QuestionPicture | None:
    """Return the only file whose name differs from a path's in its case, as Windows finds it."""
    place = PurePosixPath(path)
    try:
        parent = folder / place.parent
        names = _names_by_lower_case(parent, parent.stat().st_mtime_ns)
    except (ValueError, OSError):
        return None
    found = names.get(place.name.lower(), [])
    return _in_folder(str(place.with_name(found[0])), folder) if len(found) == 1 else None


@lru_cache(maxsize=8)
def _names_by_lower_case(folder: Path, mtime: int) -> dict[str, list[str]]:
    """Return lower-case name -> names of the entries of a folder as of its modification time."""
    names: dict[str, list[str]] = {}
    for entry in folder.iterdir():
        names.setdefault(entry.name.lower(), []).append(entry.name)
    return names


def find_in_parquet(place: str, folder: Path | None) -> QuestionPicture:
    """Return the picture at a place in a Parquet file in the folder of the data set.

    Raises:
        NotThereError: There is no such file.
    """
    name, _, member = place.partition("/")
    file = _in_folder(name, folder) if folder is not None and member else None
    if file is None or file.file is None or not name.lower().endswith(".parquet"):
        raise NotThereError(f"{_short(place)} is not there")
    return QuestionPicture(file.file, member)


def _short(named: str) -> str:
    return repr(named if len(named) <= 80 else named[:79] + "…")


def _within(path: str, folder: Path) -> str:
    """Return an absolute path relative to the folder that must contain it."""
    try:
        return Path(path).resolve().relative_to(folder.resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):
        raise NotThereError(f"{_short(path)} is outside the folder of the data set") from None


def _in_folder(path: str, folder: Path) -> QuestionPicture | None:
    try:
        file = folder / path
        if not file.is_file():
            return None
        if not file.resolve().is_relative_to(folder.resolve()):
            raise NotThereError(f"{_short(path)} is a link out of the folder of the data set")
    except (ValueError, OSError, RuntimeError):  # a NUL character, a name too long, a loop of links
        return None
    return QuestionPicture(file)


def _in_archive(path: str, folder: Path) -> QuestionPicture | None:
    for archive in _archives(folder):
        names = members(archive)
        parts = PurePosixPath(path).parts
        shorter = "/".join(parts[1:]) if parts[:1] in ((archive.stem,), (archive.name,)) else ""
        for name in (path, shorter, f"{archive.stem}/{path}", f"{IMAGES}/{path}"):
            if name in names:
                return QuestionPicture(archive, name)
    return None


def _archives(folder: Path) -> Iterator[Path]:
    for number, archive in enumerate(matching(folder, "*.zip")):
        if number == _MOST_ARCHIVES:
            return
        if archive.is_file() and archive.resolve().is_relative_to(folder.resolve()):
            yield archive
