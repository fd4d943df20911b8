"""Text with spaces is counted and cut as before words of other scripts were known."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exaid_core.checks.shortening import shorten
from exaid_core.token_gate.token_gate import LEGACY, RUNTIME, GateCore
from tests.conftest import REAL_TRACES, SHARED
from tests.support.medical_prose import prose

LIMITS = (1, 20, 60, 120, 150, 180, 210)

# SHA-256 of what the code gave before; of the flushes, and of the sentences cut.
FLUSHED = {
    "case-33651373.trace.jsonl.gz": "ae137d9ab247cc57",
    "case-35586169.trace.jsonl.gz": "9905ace7df6d5e5f",
    "case-35907878.trace.jsonl.gz": "6aee3a36829372dd",
    "case-36837600.trace.jsonl.gz": "a1da27b582f44687",
    "case-37308247.trace.jsonl.gz": "dc55ea201e602572",
    "case-38803759.trace.jsonl.gz": "cad51177a296dbfa",
}
CUT = {
    "case-33651373.trace.jsonl.gz": "292f71ce2886c409",
    "case-35586169.trace.jsonl.gz": "5fef720a0cbd8d38",
    "case-35907878.trace.jsonl.gz": "6f512cdbe09d33c6",
    "case-36837600.trace.jsonl.gz": "b8b763150935bf56",
    "case-37308247.trace.jsonl.gz": "b6ead17b47afe154",
    "case-38803759.trace.jsonl.gz": "b00ca23add8f65f6",
    "prose": "1682a1733b54b746",
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


def cuts(text: str) -> Iterator[str]:
    """Each sentence and each line, with the one after it, at all limits."""
    for unit in (r"(?<=[.!?])\s+", r"\n+"):
        parts = re.split(unit, text)
        for one, two in zip(parts, [*parts[1:], ""], strict=True):
            yield from (shorten(f"{one} {two}", limit) for limit in LIMITS)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_flushes_of_a_trace(path: Path) -> None:
    assert digest(flushes(path)) == FLUSHED[path.name]


@pytest.mark.sweep
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_sentences_of_a_trace(path: Path) -> None:
    text = "".join(delta["delta_text"] for delta in deltas(path))
    assert digest(cuts(text)) == CUT[path.name]


@pytest.mark.sweep
def test_prose() -> None:
    assert digest(cuts(prose(4000, 1))) == CUT["prose"]
