"""Reads and scores files in a process of its own, which can open nothing outside the folders."""

from __future__ import annotations

import errno
import os
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from threading import Timer
from typing import Any

from pydantic import BaseModel, ConfigDict

import mdagents
from mdagents.mcp.results import FileScored, RunsCompared, file_scored, runs_compared
from mdagents.scoring.comparison import compare
from mdagents.scoring.report import make_report
from mdagents.scoring.rows import Repeated, RunOutput, nothing_finished, read_output
from mdagents_llm.errors import BenchError, is_debugging

READING_SECONDS = 120.0
"""Time that reading and scoring of files may take."""
MOST_BYTES = 2**30
"""Maximum size of the files that one call reads, in bytes."""
_MOST_MEMORY = 4 * 2**30
"""Maximum size of the address space in bytes: a small archive may hold a huge file."""
_MOST_RESULT = 2**20  # characters of a result
_PACKAGES = ("mdagents", "mdagents_llm", "exaid_core")
_CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".dylib")


class Kind(StrEnum):
    """What is made of the files."""

    COMPARE = "compare"
    SCORE = "score"


class Job(BaseModel):
    """What to read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    paths: tuple[Path, ...]
    """Runs or result files: one to score, two or more to compare."""
    folders: tuple[Path, ...]
    """Folders outside of which nothing is read, resolved."""
    common: bool = False
    """Whether the questions are compared that all runs hold."""
    repeated: Repeated | None = None
    """Handling of repeated records."""


class Outcome(BaseModel):
    """What came of a job: a result or an error."""

    compared: RunsCompared | None = None
    scored: FileScored | None = None
    error: str = ""
    """What to change, in a line; empty if there is a result."""


class FileGate:
    """Audit hook that refuses to open files and folders outside of some folders.

    Reading a run opens files beside the one that is named, such as its `run.json`, and each may be
    a link. So the check is where files are opened.

    Args:
        folders: Folders, resolved.
        most_bytes: Maximum size of all files that are opened, in bytes.
    """

    def __init__(self, folders: Sequence[Path], most_bytes: int) -> None:
        self._inside = tuple(str(folder).rstrip(os.sep) + os.sep for folder in folders)
        own = Path(mdagents.__file__).resolve().parent
        self._own = tuple(f"{own.with_name(name)}{os.sep}" for name in _PACKAGES)
        self._code = tuple(
            os.path.realpath(path) + os.sep for path in sysconfig.get_paths().values()
        )
        self._most_bytes = most_bytes
        self._sizes: dict[str, int] = {}
        self._bytes = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Check an audit event.

        Raises:
            PermissionError: The file or folder is outside.
            OSError: The files are too large.
        """
        if event not in ("open", "os.listdir", "os.scandir"):
            return
        if not isinstance(arguments[0], str | bytes | os.PathLike):
            return  # a descriptor that is open already
        path = os.path.realpath(os.fsdecode(arguments[0]))
        at = path + os.sep
        if at.startswith(self._inside):
            self._count(path)
        elif at.startswith(self._own):
            return
        elif not at.startswith(self._code) or (event == "open" and not path.endswith(_CODE)):
            raise PermissionError(errno.EACCES, "a link that leads out of the folders of --allow")

    def _count(self, path: str) -> None:
        with suppress(OSError):  # opening it says what is wrong
            size = Path(path).stat().st_size
            self._bytes += size - self._sizes.get(path, 0)
            self._sizes[path] = size
        if self._bytes > self._most_bytes:
            most = f"{self._most_bytes // 2**20:,} MB"
            raise OSError(errno.EFBIG, f"more than {most} would have to be read")


def main() -> None:
    """Do the job of standard input, and print its outcome."""
    job = Job.model_validate_json(sys.stdin.buffer.read())
    _limit_memory()
    _limit_time()
    sys.addaudithook(FileGate(job.folders, MOST_BYTES))
    text = _outcome(job).model_dump_json()
    if len(text) > _MOST_RESULT:
        text = Outcome(error="the result is too large for a tool").model_dump_json()
    sys.stdout.buffer.write(text.encode())


def _outcome(job: Job) -> Outcome:
    try:
        if job.kind is Kind.COMPARE:
            runs = [_read(path) for path in job.paths]
            return Outcome(compared=runs_compared(compare(runs, common=job.common)))
        run = _read(job.paths[0], job.repeated)
        return Outcome(scored=file_scored(run.name, make_report(run, []), dict(run.read_as)))
    except BenchError as error:
        return Outcome(error=str(error))
    except MemoryError:
        return Outcome(error=f"reading takes more than {_MOST_MEMORY // 2**30} GB of memory")
    except Exception as error:  # whatever a file brings about costs this call alone
        if is_debugging():
            raise
        return Outcome(error=f"unexpected {type(error).__name__}")


def _read(path: Path, repeated: Repeated | None = None) -> RunOutput:
    run = read_output(path, repeated)
    if not run.rows:
        raise nothing_finished(run, run.name)
    return run


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit, macOS ignores it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def _limit_time() -> None:
    """End the process when its time is up, in case nobody is left to do so."""
    timer = Timer(2 * READING_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
