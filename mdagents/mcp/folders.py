"""The folders that a client may read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mdagents_llm.errors import ConfigError

_LONGEST = 1_000  # characters of a path


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders that the user of the server named; nothing outside is read.

    Args:
        folders: Folders, resolved.
    """

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, names: Sequence[str], *, needed: bool) -> Folders:
        """Return the folders with these names.

        Args:
            names: Folders.
            needed: Whether a folder that does not exist is an error; otherwise it may come later.

        Raises:
            ConfigError: A folder does not exist.
        """
        found = []
        for name in names:
            path = Path(name)
            if needed and not path.is_dir():
                raise ConfigError(f"--allow names {name}, which is not a folder")
            found.append(path.resolve())
        return cls(tuple(found))

    def resolve(self, name: str) -> Path:
        """Return the path of a file or folder that a client names.

        Args:
            name: Absolute, or relative to the working directory or to one of the folders.

        Raises:
            ConfigError: Nothing by that name is in a folder; links that lead out do not count.
        """
        if not name or len(name) > _LONGEST or "\0" in name:
            raise ConfigError(f"a path must have 1 to {_LONGEST} characters")
        is_within = False
        for start in (Path(), *self.folders):
            try:
                path = (start / name).resolve()
                is_within |= self._holds(path)
                path = path.resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
            if self._holds(path) and _is_text(path):
                here = Path.cwd()  # messages need not name the folders of this machine
                return path.relative_to(here) if path.is_relative_to(here) else path
        allowed = ", ".join(folder.name for folder in self.folders) or "no folder"
        found = f"there is no {name[:200]!r}" if is_within else f"{name[:200]!r} is not"
        raise ConfigError(f"{found} in a folder that may be read: {allowed} (--allow)")

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.folders)


def _is_text(path: Path) -> bool:
    """Return whether a path can be written as UTF-8; a link may lead to a name that cannot."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
