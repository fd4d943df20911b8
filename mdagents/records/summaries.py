"""What EXAID made of the questions of a run, joined with their records.

A record is written when its question is decided, and EXAID may need longer. So its part is in a
file of its own, `summaries.jsonl`, and readers of records join the two here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mdagents.records.jsonl import MALFORMED, damaged, lines_at, number_of, whole_lines
from mdagents_llm.errors import ConfigError

ItemKey = tuple[str, int]
"""(question_id, epoch)"""

_EXAIDS_PART = ("exaid", "watched")
_IS_NONE = ("says nothing about a question", "EXAID follows the question once more")


class SummariesFile:
    """Finds the lines of a `summaries.jsonl`; keeps only their places in memory.

    A torn last line does not count.

    Args:
        path: The file, which may be missing.

    Raises:
        OSError: It cannot be read.
        ConfigError: A line is damaged; names it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[str, int] = {}  # texts, since tuples would take twice the memory
        for number, offset, line in whole_lines(path):
            try:
                content = json.loads(line)
                item = content["question_id"], content["epoch"]
                key = _key(item, content["attempt"])
            except MALFORMED as error:
                raise damaged(path, number, *_IS_NONE) from error
            self._offsets[key] = offset

    def has(self, item: ItemKey, attempt: int) -> bool:
        """Return whether EXAID has finished with an answer.

        Args:
            item: The question.
            attempt: Which of its answers, from 1.
        """
        return _key(item, attempt) in self._offsets

    def line_of(self, item: ItemKey, attempt: int) -> bytes | None:
        """Return the line of an answer; None when EXAID has not finished with it, or was off."""
        offset = self._offsets.get(_key(item, attempt))
        return None if offset is None else next(lines_at(self._path, [offset]))

    def damaged(self, item: ItemKey, attempt: int) -> ConfigError:
        """Return the error for the line of an answer, when it holds something else."""
        number = number_of(self._path, self._offsets[_key(item, attempt)])
        return damaged(self._path, number, *_IS_NONE)

    def put_into(self, record: Mapping[str, Any], attempt: int) -> Mapping[str, Any]:
        """Return the record with EXAID's part, if there is one.

        Args:
            record: Of `samples.jsonl`.
            attempt: Which answer to its question it is, from 1.
        """
        id_, epoch = record.get("question_id"), record.get("epoch")
        if not (isinstance(id_, str) and isinstance(epoch, int)):
            return record  # of another program
        line = self.line_of((id_, epoch), attempt)
        if line is None:
            return record
        made: Mapping[str, Any] = json.loads(line)
        return {**record, **{name: made[name] for name in _EXAIDS_PART if name in made}}


def is_counting(summary: Mapping[str, Any]) -> bool:
    """Return whether a summary is not empty and was made from text."""
    # Imported here: it loads pydantic, and runs without EXAID are scored without.
    from exaid_core.schema.agent_summary import LIMITS, PLACEHOLDER

    said = (summary.get(name, PLACEHOLDER) for name in LIMITS)
    return bool(summary.get("source_seqs")) and any(text != PLACEHOLDER for text in said)


def _key(item: ItemKey, attempt: int) -> str:
    return f"{attempt} {item[1]} {item[0]}"
