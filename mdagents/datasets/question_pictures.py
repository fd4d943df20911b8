"""The pictures of a question: where a data set keeps them, and how they look in a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdagents_llm.errors import ConfigError

MOST_PICTURES = 16
"""Maximum number of pictures of a question, those of its options included."""
LARGEST_FILE = 64 * 2**20
"""Maximum size of the file of a picture, in bytes."""


@dataclass(frozen=True, slots=True)
class QuestionPicture:
    """A picture of a question as its data set names it; its content is read when it is needed."""

    file: Path | None
    """File of the picture, or the archive that contains it; None if the record contains it."""
    member: str = ""
    """Name of the picture within an archive; empty for a file of its own."""
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
            return "a picture in the record"
        return f"{self.file}, {self.member}" if self.member else str(self.file)

    def read(self) -> bytes:
        """Return the encoded picture.

        Raises:
            ConfigError: The file cannot be read.
        """
        if self.file is None:
            return self.content
        try:
            return self.file.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"the picture {self.place} cannot be read: {error.strerror}"
            ) from error


def pictures_of(record: Mapping[str, Any], folder: Path | None) -> tuple[QuestionPicture, ...]:
    """Return the pictures that a record names in its field `images`, a list of paths.

    Args:
        record: Record as published.
        folder: Folder that the paths are relative to; None: paths are not
            followed.
    """
    paths = record.get("images") or []
    if folder is None or not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
        return ()
    return tuple(QuestionPicture(folder / path) for path in paths)
