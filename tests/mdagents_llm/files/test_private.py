"""Files that only their owner can read, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mdagents_llm.files.private import make_private_file, make_private_folder, open_private, tighten
from mdagents_llm.files.whole_file import whole_file

UMASKS = (0o000, 0o022, 0o077, 0o777)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("mask", UMASKS)
def test_what_is_made_is_closed_to_others(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "folder"
    with umask(mask):
        make_private_folder(folder)
        make_private_file(folder / "made")
        with whole_file(folder / "whole", private=True) as file:
            file.write(b"said")
    assert mode_of(folder) == 0o700
    assert mode_of(folder / "made") == 0o600
    assert mode_of(folder / "whole") & 0o077 == 0


def test_there_is_no_moment_at_which_others_can_read(tmp_path: Path) -> None:
    with umask(0), whole_file(tmp_path / "whole", private=True) as file:
        file.write(b"half")
        (draft,) = tmp_path.iterdir()
        assert mode_of(draft) == 0o600
    with umask(0), open(tmp_path / "log", "ab", opener=open_private):
        assert mode_of(tmp_path / "log") == 0o600


def test_what_others_can_read_is_closed_to_them_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for before, after in ((0o644, 0o600), (0o664, 0o600), (0o640, 0o600), (0o600, 0o600)):
        path.write_text("said")
        path.chmod(before)
        make_private_file(path, tightens=False)
        assert mode_of(path) == before
        make_private_file(path)
        assert (mode_of(path), path.read_text()) == (after, "said")
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path)
    assert mode_of(tmp_path) == 0o755, "a folder that was there may be shared"
    tighten(tmp_path)
    assert mode_of(tmp_path) == 0o700


def test_a_folder_is_not_made_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "x")
