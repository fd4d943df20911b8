"""Text with spaces is gated as before words of other scripts were known."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exaid_core.token_gate.token_gate import LEGACY, RUNTIME, GateCore
from tests.conftest import REAL_TRACES, SHARED

# SHA-256 of the flushes that the code gave before.
FLUSHED = {
    "case-33651373.trace.jsonl.gz": "ae137d9ab247cc57",
    "case-35586169.trace.jsonl.gz": "9905ace7df6d5e5f",
    "case-35907878.trace.jsonl.gz": "6aee3a36829372dd",
    "case-36837600.trace.jsonl.gz": "a1da27b582f44687",
    "case-37308247.trace.jsonl.gz": "dc55ea201e602572",
    "case-38803759.trace.jsonl.gz": "cad51177a296dbfa",
}
TRACES = [
    path
    for path in (*REAL_TRACES, *(SHARED / "published_exaid" / "traces").glob("*.gz"))
    if path.name in FLUSHED
]


def digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def deltas(path: Path) -> Iterator[dict[str, Any]]:
    # Not by `read_trace`: the published trace has deltas after the ends of their turns.
    for line in gzip.decompress(path.read_bytes()).splitlines():
        record = json.loads(line)
        if record["record_type"] == "stream_delta":
            yield record


def flushes(path: Path) -> Iterator[str]:
    for profile in (RUNTIME, LEGACY):
        core = GateCore(profile)
        for delta in deltas(path):
            now = delta["t_emitted_ms"] / 1000
            for flush in core.add(
                delta["agent_id"], delta["delta_text"], seq=delta["seq"], now=now
            ):
                yield repr(flush)
        for agent in core.agents():
            yield repr(core.flush(agent))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_flushes_of_a_trace(path: Path) -> None:
    assert digest(flushes(path)) == FLUSHED[path.name]
