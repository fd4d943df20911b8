"""The files of a case: its trace, and the log of EXAID."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mdagents.records.folder import case_files
from mdagents_llm.files.regular_file import read_regular

# What is needed after a case only is imported there, so as not to delay the first request of a run.
if TYPE_CHECKING:
    from exaid_core.trace.traces import Trace


class CaseFiles(Protocol):
    """Keeps the files of cases."""

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """Keep the trace of a case, given as the content of its file.

        Raises:
            StorageError: It cannot be kept.
        """

    def keep_log(self, case_id: str, content: bytes) -> None:
        """Keep what EXAID did in a case, given as the content of its file.

        Raises:
            StorageError: It cannot be kept.
        """

    def log(self, case_id: str) -> bytes | None:
        """Return what EXAID did in a case, as the content of its file; None if none was kept.

        Raises:
            OSError: It cannot be read.
        """
        ...

    def content(self, case_id: str) -> bytes:
        """Return the content of the file of a trace that was kept.

        Raises:
            OSError: It cannot be read.
        """
        ...

    def trace(self, case_id: str) -> Trace:
        """Return a trace that was kept.

        Raises:
            RecordError: It cannot be read.
        """
        ...


class CaseFolder:
    """The files of cases in the folder of a run.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep_trace(self, case_id: str, content: bytes) -> None:
        """See `CaseFiles`."""
        self._write(case_files(self._folder, case_id)[0], content)

    def keep_log(self, case_id: str, content: bytes) -> None:
        """See `CaseFiles`."""
        self._write(case_files(self._folder, case_id)[1], content)

    def log(self, case_id: str) -> bytes | None:
        """See `CaseFiles`."""
        path = case_files(self._folder, case_id)[1]
        return path.read_bytes() if path.is_file() else None

    def trace(self, case_id: str) -> Trace:
        """See `CaseFiles`."""
        from exaid_core.trace.traces import read_trace

        return read_trace(case_files(self._folder, case_id)[0])

    def content(self, case_id: str) -> bytes:
        """See `CaseFiles`."""
        return read_regular(case_files(self._folder, case_id)[0])

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        from exaid_core.trace.files import write_packed

        # A folder that was moved or removed under the run is not made once more.
        write_packed(path, content, parents=False)
