"""Files of pictures: a folder that has each once, named by its content, and archives of them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from mdagents.datasets.pictures.places import IMAGES, content_name, ending_of
from mdagents.datasets.pictures.question_picture import LARGEST_FILE
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.whole_file import replace_file

_MOST_MEMBERS = 2_000_000
_LARGEST_TEXT = 256 * 2**20  # bytes of a file with questions within an archive


class NoPictureError(ConfigError):
    """Bytes that are missing or are no picture. The message is a reason without names."""


class PictureFolder:
    """Folder with the pictures of a data set, each once, named by its content.

    Args:
        folder: Folder of the data set. The pictures are in its subfolder `images`, which is created
            with the first picture.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, content: object) -> str:
        """Write a picture if it is not there, and return its path relative to the data set.

        Args:
            content: Encoded picture; None if the data set has none.

        Raises:
            NoPictureError: The content is missing, too large, or not a picture.
            OSError: The file cannot be written.
        """
        if not isinstance(content, bytes) or not content:
            raise NoPictureError("its picture is missing")
        if len(content) > LARGEST_FILE:
            raise NoPictureError(f"its picture has more than {LARGEST_FILE:,} bytes")
        if not ending_of(content):
            raise NoPictureError("its picture is in no known format")
        name = f"{IMAGES}/{content_name(content)}"
        path = self.folder / name
        if not path.exists():
            replace_file(path, content)
        return name


class PictureArchive:
    """Zip archive with pictures, of which single ones are read. Nothing is unpacked by its name.

    Args:
        path: Path of the archive.

    Raises:
        ConfigError: The file is not a zip archive, or has too many members.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read as a zip archive: {error}") from None
        members = [info for info in self._zip.infolist() if not info.is_dir()]
        if len(members) > _MOST_MEMBERS:
            raise ConfigError(f"{path} has more than {_MOST_MEMBERS:,} members")
        self._exact = {info.filename: info for info in members}
        self._by_end: dict[str, zipfile.ZipInfo | None] = {}
        for info in members:
            for name in _names(info):
                parts = _parts(name)
                for start in range(len(parts) if "__macosx" not in parts else 0):
                    end = "/".join(parts[start:])
                    is_other = self._by_end.get(end, info) is not info
                    self._by_end[end] = None if is_other else info

    def read(self, name: object) -> bytes:
        """Return the picture that a data set names.

        Args:
            name: Path of the picture within the archive, or the end of it, in any case.

        Raises:
            NoPictureError: There is no such picture or more than one, or it cannot be read.
        """
        if not isinstance(name, str) or not name.strip():
            raise NoPictureError("its picture is missing")
        name = name.strip()
        info = self._exact.get(name) or self._by_end.get("/".join(_parts(name)))
        if info is None:
            raise NoPictureError("its picture is not in the archive, or under two names")
        return self._content(info, LARGEST_FILE)

    def contents(self, *names: object) -> Iterator[bytes]:
        """Yield the pictures that a data set names, each read when it is asked for."""
        yield from map(self.read, names)

    def files(self, folder: str, ending: str) -> Iterator[tuple[str, bytes]]:
        """Yield (name, content) of the files below a folder of the archive, sorted by name.

        Args:
            folder: Name of the folder, at any depth.
            ending: File extension with its dot.

        Raises:
            ConfigError: A file cannot be read.
        """
        for name in sorted(self._exact):
            if folder.lower() in _parts(name)[:-1] and name.lower().endswith(ending):
                try:
                    yield name, self._content(self._exact[name], _LARGEST_TEXT)
                except NoPictureError as error:
                    raise ConfigError(f"{self._path}, {name}: {error}") from None

    def _content(self, info: zipfile.ZipInfo, most: int) -> bytes:
        if info.flag_bits & 1:
            raise NoPictureError("the archive is encrypted")
        if info.file_size > most:
            raise NoPictureError(f"its picture has more than {most:,} bytes")
        try:
            with self._zip.open(info) as file:
                content = file.read(most + 1)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
            raise NoPictureError("its picture is broken in the archive") from None
        if len(content) > most:
            raise NoPictureError(f"its picture has more than {most:,} bytes")
        return content


def _names(info: zipfile.ZipInfo) -> set[str]:
    """Return the names of a member: as zip defines them, and as UTF-8 if they do not say so."""
    try:
        return {info.filename, info.filename.encode("cp437").decode()}
    except UnicodeError:
        return {info.filename}


def _parts(name: str) -> list[str]:
    """Return the parts of a path in lower case, without those that lead nowhere."""
    parts = name.replace("\\", "/").casefold().split("/")
    return [part for part in parts if part not in ("", ".")]
