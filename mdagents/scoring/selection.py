"""The questions and epochs that a run selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from mdagents.scoring.fields import count_of, object_of, text_of


class Selection:
    """The questions and epochs of a run, in order.

    Args:
        manifest: Content of `run.json`; empty for another program's file, to which every record
            belongs.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        ids, epochs = manifest.get("item_ids"), object_of(manifest, "options").get("epochs")
        self.ids: Sequence[str] = list(map(str, ids)) if isinstance(ids, list) else ()
        self._epochs = epochs if type(epochs) is int else 1

    @cached_property
    def _known(self) -> Mapping[str, str]:
        """Id of a question -> the same id, whose string is in memory once."""
        return {id_: id_ for id_ in self.ids}

    @property
    def size(self) -> int:
        """Number of questions, each counted once per epoch."""
        return len(self.ids) * self._epochs

    def has(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record belongs to the run."""
        if not self.ids:
            return True
        return text_of(record, "question_id") in self._known and (
            1 <= (count_of(record.get("epoch", 1)) or 0) <= self._epochs
        )

    def id_of(self, stated: str) -> str:
        """Return an id as the string of the selection, so that it is in memory once."""
        return self._known.get(stated, stated)
