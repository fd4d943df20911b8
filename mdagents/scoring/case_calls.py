"""Access to the ledger of a run, `calls.jsonl`, case by case."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from mdagents.records.calls import calls_at, read_calls
from mdagents.scoring.fields import count_of, entries_of, object_of, text_of
from mdagents.scoring.result_file import reading
from mdagents.settings import EXAID_ROLES
from mdagents_llm.clock import ms_of
from mdagents_llm.ledger import CallRow


def is_of_exaid(call: CallRow) -> bool:
    """Return whether EXAID made a call."""
    return call.role in EXAID_ROLES


def starts_of(manifest: Mapping[str, Any]) -> list[int]:
    """Return the start times of a run's invocations, in ms since 1970 UTC, from its `run.json`.

    Invalid times are skipped; attempts at a question are then distinguished by tokens alone.
    """
    starts = []
    for invocation in entries_of(manifest, "invocations"):
        with suppress(ValueError):
            starts.append(ms_of(text_of(invocation, "started_at")))
    return starts


class CallFile:
    """`calls.jsonl`, indexed in one pass and then read case by case.

    Args:
        path: Path of the file; a missing file means that the run made no calls.
        on_call: Callback for each row of the file, in order.

    Raises:
        ConfigError: The file cannot be read; the message names a damaged line.
    """

    def __init__(self, path: Path, on_call: Callable[[CallRow], None] = lambda _: None) -> None:
        self._path = path
        self._offsets: dict[str, array[int]] = {}
        with reading(path):
            for offset, call in read_calls(path):
                self._offsets.setdefault(call.case_id, array("Q")).append(offset)
                on_call(call)

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._offsets

    def attempts(self, case_id: str, starts: Sequence[int]) -> list[list[CallRow]]:
        """Return the calls of a case grouped by attempt, in the order in which they started.

        An invocation answers a question once; if it loses a worker, it restarts the question.

        Args:
            case_id: Id of the case.
            starts: Start times of the invocations in ms since 1970 UTC, ascending.
        """
        if case_id not in self:
            return []
        calls = sorted(calls_at(self._path, self._offsets[case_id]), key=lambda c: c.started_ms)

        def attempt_of_call(call: CallRow) -> tuple[int, int]:
            return bisect_right(starts, call.started_ms), call.restart

        by_attempt = groupby(sorted(calls, key=attempt_of_call), attempt_of_call)
        return [list(attempt) for _, attempt in by_attempt]


def attempt_of(record: Mapping[str, Any], attempts: Sequence[list[CallRow]]) -> list[CallRow]:
    """Return the calls of the attempt behind a record: the last one with its token count.

    If no attempt has that count, return the last attempt; without attempts, return no calls.
    """
    used = count_of(object_of(record, "token_usage").get("total_tokens"))
    for calls in reversed(attempts):
        if used == sum(call.usage.total_tokens for call in calls if not is_of_exaid(call)):
            return calls
    return attempts[-1] if attempts else []
