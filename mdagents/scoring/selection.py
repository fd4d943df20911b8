"""The questions and epochs that a run selected."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from mdagents.scoring.fields import count_of, object_of, text_of
from mdagents.scoring.scored_row import ScoredRow


class Selection:
    """The questions and epochs of a run, in order.

    Args:
        manifest: Content of `run.json`; empty for another program's file, to which every record
            belongs.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        ids, epochs = manifest.get("item_ids"), object_of(manifest, "options").get("epochs")
        self._ids = list(map(str, ids)) if isinstance(ids, list) else []
        self._epochs = epochs if type(epochs) is int else 1

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        """Question -> its place in the selection."""
        return {id_: number for number, id_ in enumerate(self._ids)}

    @property
    def size(self) -> int:
        """Number of questions, each counted once per epoch."""
        return len(self._ids) * self._epochs

    def has(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record belongs to the run."""
        if not self._ids:
            return True
        return text_of(record, "question_id") in self._numbers and (
            1 <= (count_of(record.get("epoch", 1)) or 0) <= self._epochs
        )

    def id_of(self, stated: str) -> str:
        """Return an id as the string of the selection, so that it is in memory once."""
        number = self._numbers.get(stated)
        return stated if number is None else self._ids[number]

    def order(self, rows: list[ScoredRow]) -> None:
        """Sort rows by epoch and selection, as the JSON array of a run has them."""
        if self._ids:
            last = len(self._ids)  # place of rows that are not in the selection
            # Sorted twice, since one key for both would make a tuple for each row.
            rows.sort(key=lambda row: self._numbers.get(row.question_id, last))
            rows.sort(key=lambda row: row.epoch)
