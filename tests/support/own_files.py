"""The files of the repository, which are not all files that are in its folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import REPOSITORY


def own_files(*folders: str, tracked: bool = False) -> list[str]:
    """The files of folders, those included that git does not track yet, but none that it ignores.

    Args:
        folders: Beside this repository's README.
        tracked: Whether only files that git tracks count.
    """
    others = () if tracked else ("--others", "--exclude-standard")
    command = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached", *others, "--", *folders]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # an archive, or a machine without git
        found = (path for folder in folders for path in (REPOSITORY / folder).rglob("*"))
        kept = (path for path in found if path.is_file() and path.parent.name != "__pycache__")
        return sorted(str(path.relative_to(REPOSITORY)) for path in kept)
    names = done.stdout.split("\0")[:-1]
    return sorted({name for name in names if Path(REPOSITORY, name).exists()})
