"""Reports of whole runs, made on request."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from weakref import WeakValueDictionary

from mdagents.live import LIVE_FILE
from mdagents_llm.errors import ConfigError
from mdagents_llm.processes import end_child, run_module

_AT_A_TIME = 2  # processes, each of which uses a core
_LONGEST = 1_800.0  # seconds; at 10 s for 1,000 questions, enough for 180,000
_KEPT = 20_000_000  # bytes of cached reports

Folders = tuple[Path, ...]
"""Folder of one run, or folders of several runs to compare."""


async def make_report(folders: Folders, common: bool = False) -> bytes:
    """Return the HTML report of runs, made in a child process: charts need time and memory.

    Args:
        folders: Folders of the runs.
        common: Whether to compare only the questions that all runs hold.

    Raises:
        ConfigError: The report failed or timed out; the message says why.
    """
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryFile() as errors:
        name = Path(made) / "report.json"
        command, variables = run_module("mdagents", "score", "--html", "--output", str(name))
        what = "--input" if len(folders) == 1 else "--compare"
        process = await asyncio.create_subprocess_exec(
            *command,
            what,
            *map(str, folders),
            *(["--common"] if common else []),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
            env=variables,
        )
        try:
            async with asyncio.timeout(_LONGEST):
                status = await process.wait()
        except TimeoutError:
            raise ConfigError(
                f"the report was not made within {_LONGEST:g} s; make it in a terminal: python "
                "evaluate_text_output.py --html"
            ) from None
        finally:
            await end_child(process)  # alive only if the request was canceled or took too long
        if status:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            for folder in folders:
                last = last.replace(str(folder), folder.name)
            raise ConfigError(last.removeprefix("error: ") or "the report could not be made")
        return await asyncio.to_thread(name.with_suffix(".html").read_bytes)


class Reports:
    """Makes reports, one at a time for the same runs, and caches the latest until files change.

    Args:
        make: Function that makes a report.
    """

    def __init__(self, make: Callable[[Folders, bool], Awaitable[bytes]] = make_report) -> None:
        self._make = make
        self._room = asyncio.Semaphore(_AT_A_TIME)
        self._locks = WeakValueDictionary[tuple[Folders, bool], asyncio.Lock]()
        self._kept: dict[tuple[Folders, bool], tuple[object, bytes]] = {}  # (files, report)

    async def of(self, folders: Folders, *, common: bool = False) -> bytes:
        """Return the report of runs; after a cancellation the next waiter makes the report.

        Args:
            folders: Folders of the runs.
            common: Whether to compare only the questions that all runs hold.

        Raises:
            ConfigError: The report cannot be made; the message says why.
        """
        asked = folders, common
        async with self._locks.setdefault(asked, asyncio.Lock()):
            files = await asyncio.to_thread(lambda: list(_files(folders)))
            of_files, report = self._kept.pop(asked, (None, b""))
            if of_files != files:
                async with self._room:
                    report = await self._make(folders, common)
            self._kept[asked] = files, report
            while sum(len(report) for _, report in self._kept.values()) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return report


def _files(folders: Folders) -> Iterator[tuple[Path, int, int]]:
    """Yield (path, modification time in ns, size in bytes) of the files behind a report."""
    for path in sorted(path for folder in folders for path in folder.iterdir()):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if path.name != LIVE_FILE:
                yield path, status.st_mtime_ns, status.st_size
