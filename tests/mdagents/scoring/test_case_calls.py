"""The calls of a record are those of the attempt that it is of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mdagents.scoring.case_calls import CallFile, attempt_of
from mdagents_llm.chat import TokenUsage
from mdagents_llm.clock import ms_of, timestamp_of
from tests.mdagents.records.test_calls import ROW

START = ms_of(ROW.started_at)


def test_calls_of_a_lost_worker_are_an_attempt_of_their_own(tmp_path: Path) -> None:
    """Its last rows may arrive after the question has started again."""
    path = tmp_path / "calls.jsonl"
    rows = [
        replace(ROW, started_at=timestamp_of(START + at), restart=restart, usage=TokenUsage(n, 1))
        for at, restart, n in [
            (0, 0, 10),
            (500, 0, 20),
            (400, 1, 30),
            (900, 1, 40),
            (99_000, 2, 50),
        ]
    ]
    path.write_text("".join(json.dumps(row.as_dict()) + "\n" for row in rows))
    attempts = CallFile(path).attempts(ROW.case_id, [START - 1, START + 90_000])
    assert [[row.usage.input_tokens for row in attempt] for attempt in attempts] == [
        [10, 20],
        [30, 40],
        [50],
    ]
    record = {"token_usage": {"total_tokens": 72}}
    assert attempt_of(record, attempts) == rows[2:4]
    assert CallFile(path).attempts("case-2", []) == []
