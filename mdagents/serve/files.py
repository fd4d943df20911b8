"""Files of a server below the output folder: its ledger and the records of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from mdagents.records.line_log import LineLog
from mdagents.records.sample import SampleRecord
from mdagents.records.served import SERVED
from mdagents.records.store import writable
from mdagents_llm.errors import StorageError
from mdagents_llm.files.json_text import compact_json
from mdagents_llm.files.private import make_private_folder
from mdagents_llm.ledger import CallRow


class ServedFiles:
    """`calls.jsonl` and `samples.jsonl` in the folder of one start of a server.

    Only the owner can read them: questions of clients may be about patients.

    Args:
        folder: Folder, which exists.
        keeps_prompts: Whether rows keep the prompts and replies that they have.
    """

    def __init__(self, folder: Path, *, keeps_prompts: bool) -> None:
        self.folder = folder
        self._keeps_prompts = keeps_prompts
        self._calls = LineLog(folder / "calls.jsonl", syncs=False, private=True)
        self._samples = LineLog(folder / "samples.jsonl", syncs=False, private=True)

    def booked(self, row: CallRow) -> None:
        """Write a row of the ledger.

        Raises:
            StorageError: The row cannot be written.
        """
        kept = row if self._keeps_prompts else row.without_prompts()
        self._append(self._calls, compact_json(kept.as_dict()))

    def decided(self, record: SampleRecord) -> None:
        """Write the record of a question, decided or failed.

        Raises:
            StorageError: The record cannot be written.
        """
        self._append(self._samples, record.model_dump_json().encode())

    def _append(self, log: LineLog, line: bytes) -> None:
        try:
            log.append(line)
        except OSError as error:
            raise StorageError(f"cannot write to {self.folder}: {error.strerror}") from error

    def close(self) -> None:
        """Close the files."""
        self._calls.close()
        self._samples.close()


@contextmanager
def served_files(output_dir: Path, now: datetime, *, keeps_prompts: bool) -> Iterator[ServedFiles]:
    """Create the folder of this start, named by its time, and open its files.

    Raises:
        ConfigError: The folder cannot be written.
    """
    name = f"{SERVED}{now:%Y%m%dT%H%M%S}"
    with writable(output_dir):
        output_dir.mkdir(parents=True, exist_ok=True)
        folder, number = output_dir / name, 1
        while folder.exists():
            number += 1
            folder = output_dir / f"{name}-{number}"
        make_private_folder(folder)
        files = ServedFiles(folder, keeps_prompts=keeps_prompts)
    with closing(files):
        yield files
