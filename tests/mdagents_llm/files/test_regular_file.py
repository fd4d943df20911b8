"""Only regular files are opened, and nothing waits for another process."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mdagents_llm.files.regular_file import open_regular, read_regular
from mdagents_llm.files.whole_file import whole_file


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (pipe, "not a regular file"),
        (listening, "not a regular file"),
        (device, "not a regular file"),
        (Path.mkdir, "a folder, not a file"),
    ],
)
def test_what_is_no_file_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], why: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    make(Path("x"))
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND):
        with pytest.raises(OSError, match="file") as caught:
            os.close(open_regular(Path("x"), flags))
        assert (caught.value.strerror, caught.value.filename) == (why, "x")
    assert Path("x").exists()


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"content")
    (tmp_path / "link").symlink_to("x")
    assert read_regular(tmp_path / "link") == b"content"
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none")


@pytest.mark.parametrize("make", [pipe, listening, device])
def test_what_is_no_file_is_not_replaced_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("x"))
    before = os.lstat("x").st_mode
    with pytest.raises(OSError, match="not a regular file"), whole_file(Path("x")) as file:
        file.write(b"content")
    assert os.lstat("x").st_mode == before
    assert list(Path().iterdir()) == [Path("x")]
