"""The files of a case: its trace and its EXAID run log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mdagents.records.folder import case_files
from mdagents_llm.files.regular_file import read_regular

# Modules needed only after a case are imported lazily, to avoid delaying a run's first request.
if TYPE_CHECKING:
    from exaid_core.trace.traces import Trace


class CaseFiles(Protocol):
    """Stores the files of cases."""

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
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """Save the trace of a case, given as the content of its file."""
        self._write(case_files(self._folder, case_id)[0], content)

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
