"""`batches.jsonl`: the journal of a run's provider batches.

A line either begins a batch (`tag`, `model`, `submitted_at`, `keys`) or records one event of it:
its `id` (`found` if recovered by querying the provider), a request that is `spent` or `booked`,
that it was `collected`, or that it is `over`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mdagents.records.jsonl import MALFORMED, damaged, whole_lines
from mdagents.records.line_log import LineLog
from mdagents_llm.errors import StorageError
from mdagents_llm.layers.batch_journal import Batch

BATCHES_FILE = "batches.jsonl"


class BatchFile:
    """A `Journal` in the folder of a run.

    Args:
        path: Path of the file. It is created on the first write, so a run that sends no batches
            has no file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log: LineLog | None = None

    def batches(self) -> Iterable[Batch]:
        """Return the batches of earlier processes, oldest first.

        Raises:
            ConfigError: A line is damaged.
        """
        return read_batches(self._path)

    def begin(self, batch: Batch) -> None:
        """Record on disk that a batch is about to be submitted."""
        self._write(
            {
                "tag": batch.tag,
                "model": batch.model,
                "submitted_at": batch.submitted_at,
                "keys": batch.keys,
            }
        )

    def submitted(self, batch: Batch) -> None:
        """Record the id of a batch, and whether it was recovered from the provider."""
        self._write({"tag": batch.tag, "id": batch.id, "found": batch.is_found})

    def spend(self, batch: Batch, key: str) -> None:
        """Record that a request of a batch will be sent again."""
        self._write({"tag": batch.tag, "spent": key})

    def book(self, batch: Batch, key: str) -> None:
        """Record that the row of a batch's request is in the ledger."""
        self._write({"tag": batch.tag, "booked": key})

    def collected(self, batch: Batch) -> None:
        """Record that the replies of a batch have been fetched."""
        self._write({"tag": batch.tag, "collected": True})

    def end(self, batch: Batch) -> None:
        """Record that a batch is over: nothing further can be fetched from it."""
        self._write({"tag": batch.tag, "over": True})

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()

    def _write(self, entry: dict[str, object]) -> None:
        try:
            if self._log is None:
                self._log = LineLog(self._path, syncs=True)
            self._log.append(json.dumps(entry).encode())
        except OSError as error:
            raise StorageError(f"cannot write to {self._path}: {error.strerror}") from error


def read_batches(path: Path) -> list[Batch]:
    """Return the batches in a file, oldest first; empty when the file is missing.

    Raises:
        ConfigError: A line is damaged; the message names it.
    """
    found: dict[str, Batch] = {}
    for number, _, line in whole_lines(path):
        try:
            entry = json.loads(line)
            if "keys" in entry:
                texts = [entry["tag"], entry["model"], entry["submitted_at"], *entry["keys"]]
                tag, model, submitted_at, *keys = map(_text, texts)
                found[tag] = Batch(tag, model, submitted_at, tuple(keys))
                continue
            batch = found[entry["tag"]]
            batch.id = _text(entry.get("id", batch.id))
            batch.is_found = entry.get("found", batch.is_found)
            batch.is_collected |= "collected" in entry
            batch.is_over |= "over" in entry
            batch.spent |= {entry["spent"]} if "spent" in entry else set()
            batch.booked |= {entry["booked"]} if "booked" in entry else set()
        except MALFORMED as error:
            without = "a request of that batch may be paid for twice"
            raise damaged(path, number, "says nothing about a batch", without) from error
    return list(found.values())


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
