"""Finds files by a pattern."""

from __future__ import annotations

from pathlib import Path


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths below a folder that match a pattern, sorted; hidden ones do not match.

    macOS keeps a hidden `._run.json` beside `run.json` on drives of other systems.

    Args:
        folder: Folder, which need not exist.
        pattern: Pattern for `Path.glob`.
    """
    found = sorted(folder.glob(pattern))
    return [path for path in found if not _is_hidden(path.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
