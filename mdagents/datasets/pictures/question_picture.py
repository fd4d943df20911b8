"""The pictures of a question: where a data set keeps them, and how their content is read."""

from __future__ import annotations

import base64
import binascii
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import regular_file

MOST_PICTURES = 16
"""Maximum number of pictures of a question, those of its options included."""
LARGEST_FILE = 64 * 2**20
"""Maximum size of the file of a picture, in bytes."""
_LARGEST = f"{LARGEST_FILE // 2**20} MB"

_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionPicture:
    """A picture of a question as its data set names it; its content is read when it is needed."""

    file: Path | None
    """File of the picture, or the archive that contains it; None if the record contains it."""
    member: str = ""
    """Name of the picture within a ZIP archive, or its place within a Parquet file; empty for a
    file of its own."""
    content: bytes = field(default=b"", repr=False)
    """Encoded picture, if the record contains it; otherwise empty."""
    caption: str = ""
    """Caption for the agents; empty without one."""
    option: str = ""
    """Letter of the option that the picture belongs to, empty for the question itself: the letter
    of the data set in a `SourceQuestion`, the presented letter in a `Question`."""

    @property
    def place(self) -> str:
        """Location of the picture, for messages."""
        if self.file is None:
            return "in the record"
        return f"{self.file}, {self.member}" if self.member else str(self.file)

    @property
    def name(self) -> str:
        """Name of the picture without the folders of this machine; empty if the record has it."""
        if self.file is None:
            return ""
        return f"{self.file.name}/{self.member}" if self.member else self.file.name

    def read(self) -> bytes:
        """Return the encoded picture.

        Raises:
            ConfigError: The file cannot be read, is empty or is larger than `LARGEST_FILE`.
        """
        if self.file is None:
            content = self.content
        elif not self.member:
            content = _file(self.file, self.place)
        elif self.file.suffix.lower() == ".parquet":
            from mdagents.datasets.parquet_rows import read_picture

            content = read_picture(self.file, self.member)
        else:
            content = _member(self.file, self.member, self.place)
        if not content:
            raise ConfigError(f"the picture {self.place} is empty")
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"the picture {self.place} is larger than {_LARGEST}")
        return content


def given_pictures(images: Sequence[Path | str | bytes]) -> tuple[QuestionPicture, ...]:
    """Return the pictures that a caller passes with a question.

    Args:
        images: Paths, data URIs or the bytes of encoded pictures, in the order of the prompt.

    Raises:
        ConfigError: There are too many pictures, or one of them is of another kind.
    """
    if isinstance(images, str | bytes | Path):
        raise ConfigError("images must be a list of paths, data URIs or bytes")
    _check_number(len(images))
    return tuple(map(_given, images))


def _given(image: object) -> QuestionPicture:
    if isinstance(image, Path):
        return QuestionPicture(image)
    if isinstance(image, bytes | bytearray | memoryview):
        return QuestionPicture(None, content=bytes(image))
    if not isinstance(image, str):
        raise ConfigError(
            f"a picture is {type(image).__name__}, not a path, a data URI or the bytes of a file"
        )
    if image.lower().startswith("data:"):
        return QuestionPicture(None, content=data_uri_content(image, "a picture"))
    if re.match(r"[a-z][a-z+.-]+://", image, re.IGNORECASE):
        raise ConfigError("pictures are not fetched from addresses; download it and give its path")
    return QuestionPicture(Path(image))


def _check_number(pictures: int) -> None:
    """Check that a question does not have more than `MOST_PICTURES`.

    Raises:
        ConfigError: There are more.
    """
    if pictures > MOST_PICTURES:
        raise ConfigError(f"the question has {pictures} pictures, at most {MOST_PICTURES} may be")


def data_uri_content(uri: str, where: str) -> bytes:
    """Return the content of a data URI in Base64.

    Raises:
        ConfigError: The address is not such a URI, or is too long.
    """
    start = _DATA_URI.match(uri)
    if start is None:
        raise ConfigError(f"{where} is a data URI that is not data:image/…;base64,…")
    return base64_content(uri[start.end() :], where)


def base64_content(text: str, where: str) -> bytes:
    """Return the content of a text in Base64.

    Raises:
        ConfigError: The text is not Base64, or is too long.
    """
    if len(text) > LARGEST_FILE * 4 // 3 + 4:
        raise ConfigError(f"{where} is larger than {_LARGEST}")
    compact = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{where} is not valid Base64") from None


def _file(path: Path, where: str) -> bytes:
    try:
        with regular_file(path) as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"the picture {where} cannot be read: {error.strerror}") from error
    except ValueError:
        raise ConfigError(f"the picture {where} cannot be read: not a path") from None


def members(archive: Path) -> dict[str, int]:
    """Return the name of each file in a ZIP archive -> its size in bytes; empty if it is not one.

    Args:
        archive: Path of the archive.
    """
    try:
        stat = archive.stat()
    except OSError:
        return {}
    return _members(archive, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _members(archive: Path, mtime: int, size: int) -> dict[str, int]:
    try:
        with regular_file(archive) as file, zipfile.ZipFile(file) as opened:
            return {one.filename: one.file_size for one in opened.infolist() if not one.is_dir()}
    except (*_BROKEN_ZIP, OSError):
        return {}


_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # encrypted; also NotImplementedError: another compression
    ValueError,  # also UnicodeDecodeError
    IndexError,
    MemoryError,
)


def _member(archive: Path, name: str, where: str) -> bytes:
    # What the archive says of a size is not trusted: at most so many bytes are decompressed.
    try:
        with (
            regular_file(archive) as file,
            zipfile.ZipFile(file) as opened,
            opened.open(name) as member,
        ):
            return member.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or "a broken archive"
        raise ConfigError(f"the picture {where} cannot be read: {reason}") from error
    except (*_BROKEN_ZIP, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else "a broken archive"
        raise ConfigError(f"the picture {where} cannot be read: {reason}") from None
