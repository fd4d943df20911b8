"""EXAID's results for the questions of a run, joined with their records.

A record is written when its question is decided, and EXAID may take longer. EXAID's part is
therefore in a separate file, `summaries.jsonl`, and readers of records join the two here.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mdagents.records.jsonl import MALFORMED, damaged, lines_at, number_of, whole_lines
from mdagents_llm.errors import ConfigError

ItemKey = tuple[str, int]
"""Key of a question in an epoch: (question_id, epoch)."""

_EXAIDS_PART = ("exaid", "watched")
_IS_NONE = ("says nothing about a question", "EXAID follows the question once more")


class SummariesFile:
    """An index of the lines of a `summaries.jsonl`, which takes 16 bytes of memory for each.

    A torn last line is ignored. Of several lines of an answer, the last one counts.

    Args:
        path: Path of the file, which may be missing.

    Raises:
        OSError: The file cannot be read.
        ConfigError: A line is damaged; the message names it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        hashes, offsets = array("q"), array("Q")
        for number, offset, line in whole_lines(path):
            try:
                content = json.loads(line)
                item = content["question_id"], content["epoch"]
                hashes.append(_hash(item, content["attempt"]))
            except MALFORMED as error:
                raise damaged(path, number, *_IS_NONE) from error
            offsets.append(offset)
        order = sorted(range(len(hashes)), key=hashes.__getitem__)
        self._hashes = array("q", map(hashes.__getitem__, order))
        """Hashes of the answers, ascending. Of a million, two are equal once in 10^7 files."""
        self._offsets = array("Q", map(offsets.__getitem__, order))
        """Offset of the line of each, in the same order, and in that of the file for one answer."""

    def has(self, item: ItemKey, attempt: int) -> bool:
        """Return whether the file has a line for an answer.

        Args:
            item: Key of the question.
            attempt: Number of the answer to it, from 1.
        """
        return self._offset(item, attempt) is not None

    def line_of(self, item: ItemKey, attempt: int) -> bytes | None:
        """Return the line of an answer; None when EXAID has not written one, or was off."""
        offset = self._offset(item, attempt)
        return None if offset is None else next(lines_at(self._path, [offset]))

    def damaged(self, item: ItemKey, attempt: int) -> ConfigError:
        """Return the error for a line that does not hold the summaries of its answer."""
        offset = self._offset(item, attempt)
        assert offset is not None, "it has a line"
        return damaged(self._path, number_of(self._path, offset), *_IS_NONE)

    def put_into(self, record: Mapping[str, Any], attempt: int) -> Mapping[str, Any]:
        """Return a record merged with EXAID's part, if any.

        Args:
            record: Record from `samples.jsonl`.
            attempt: Number of the answer to its question, from 1.
        """
        id_, epoch = record.get("question_id"), record.get("epoch")
        if not (isinstance(id_, str) and isinstance(epoch, int)):
            return record  # written by another program
        line = self.line_of((id_, epoch), attempt)
        if line is None:
            return record
        return with_exaid(record, json.loads(line))

    def _offset(self, item: ItemKey, attempt: int) -> int | None:
        key = _hash(item, attempt)
        place = bisect_right(self._hashes, key) - 1
        return self._offsets[place] if place >= 0 and self._hashes[place] == key else None


def with_exaid(record: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record merged with EXAID's part of a line of `summaries.jsonl`."""
    return {**record, **{name: made[name] for name in _EXAIDS_PART if name in made}}


def is_counting(summary: Mapping[str, Any]) -> bool:
    """Return whether a summary is not empty and was made from text."""
    # Imported lazily: it loads pydantic, which scoring a run without EXAID does not need.
    from exaid_core.placeholders import PLACEHOLDER
    from exaid_core.schema.agent_summary import LIMITS

    said = (summary.get(name, PLACEHOLDER) for name in LIMITS)
    return bool(summary.get("source_seqs")) and any(text != PLACEHOLDER for text in said)


def _hash(item: ItemKey, attempt: int) -> int:
    return hash(f"{attempt} {item[1]} {item[0]}")
