"""The files of a case: its trace and its EXAID run log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from exaid_core.trace.names import JOURNAL
from mdagents.records.folder import case_files
from mdagents.records.line_log import LineLog
from mdagents_llm.files.regular_file import read_regular
from mdagents_llm.files.whole_file import writing

# Modules needed only after a case are imported lazily, to avoid delaying a run's first request.
if TYPE_CHECKING:
    from exaid_core.trace.traces import Trace


class CaseFiles(Protocol):
    """Stores the files of cases."""

    @property
    def are_quick(self) -> bool:
        """Whether a trace is saved without waiting, so that the event loop may do it."""

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """Save the trace of a case, given as the content of its file.

        Raises:
            StorageError: The trace cannot be written.
        """

    def keep_log(self, case_id: str, content: bytes) -> None:
        """Save the EXAID run log of a case, given as the content of its file.

        Raises:
            StorageError: The log cannot be written.
        """

    def log(self, case_id: str) -> bytes | None:
        """Return the content of a case's EXAID run log; None if none was saved.

        Raises:
            OSError: The log cannot be read.
        """
        ...

    def content(self, case_id: str) -> bytes:
        """Return the content of a saved trace file.

        Raises:
            OSError: The file cannot be read.
        """
        ...

    def trace(self, case_id: str) -> Trace:
        """Return a saved trace.

        Raises:
            RecordError: The trace cannot be read.
        """
        ...


class CaseFolder:
    """The case files in the folder of a run.

    Args:
        folder: Folder of the run.
        journals: Whether to append traces to the journal (`exaid_core.trace.journal`), where only
            `read_case` finds them, rather than to write a file for each.
        private: Whether only the owner can read the journal.

    Raises:
        OSError: The journal cannot be opened.
    """

    def __init__(self, folder: Path, *, journals: bool = False, private: bool = False) -> None:
        self._folder = folder
        self._journal: LineLog | None = None
        if journals:
            self._journal = LineLog(folder / JOURNAL, syncs=False, private=private)

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()

    @property
    def are_quick(self) -> bool:
        """Whether a trace is a line of an open file."""
        return self._journal is not None

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """Save the trace of a case, given as the content of its file."""
        from exaid_core.trace.journal import journal_line

        if self._journal is None:
            self._write(case_files(self._folder, case_id)[0], content)
            return
        with writing(self._journal.path):
            self._journal.append(journal_line(case_id, content))

    def keep_log(self, case_id: str, content: bytes) -> None:
        """Save the EXAID run log of a case, given as the content of its file."""
        self._write(case_files(self._folder, case_id)[1], content)

    def log(self, case_id: str) -> bytes | None:
        """Return the content of a case's EXAID run log; None if none was saved."""
        path = case_files(self._folder, case_id)[1]
        return path.read_bytes() if path.is_file() else None

    def trace(self, case_id: str) -> Trace:
        """Return the saved trace of a case."""
        from exaid_core.trace.traces import read_trace

        return read_trace(case_files(self._folder, case_id)[0])

    def content(self, case_id: str) -> bytes:
        """Return the content of a case's saved trace file."""
        return read_regular(case_files(self._folder, case_id)[0])

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        from exaid_core.trace.files import write_packed

        # Do not recreate a folder that was moved or removed while the run was in progress.
        write_packed(path, content, parents=False)


def read_case(folder: Path, case_id: str) -> Trace | None:
    """Return the trace of a case; None without one.

    Args:
        folder: Folder of the run, which may be in progress in another process.
        case_id: Id of the case.

    Raises:
        RecordError: The trace exists and cannot be read.
    """
    from exaid_core.trace.files import RecordError
    from exaid_core.trace.journal import journaled_trace
    from exaid_core.trace.traces import read_trace

    path, _ = case_files(folder, case_id)
    content = journaled_trace(folder, case_id)
    if content is None and not path.is_file():
        return None
    try:
        return read_trace(path, content)
    except RecordError as error:
        if content is not None:
            raise
        what = f"{error.what}; delete this file to go without its turns"
        raise RecordError(path, error.line, what) from error
