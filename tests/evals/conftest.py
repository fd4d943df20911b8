"""A small trace, made up, and a model behind the fake provider."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exaid_core.trace.traces import write_trace as write_trace_file
from tests.fake_provider import FakeProvider
from tests.support.trace_events import ends, says, starts

SENTENCE = (
    "The patient has fever, a productive cough and pleuritic chest pain, and the chest x-ray shows "
    "consolidation of the left lower lobe, so that pneumonia is by far the most likely diagnosis, "
    "and we should start ceftriaxone now. "
)
"""36 words: one flush of the TokenGate."""

META: dict[str, Any] = {
    "mas_run_id": "mas_1",
    "mac_commit": "abc",
    "model": "gpt-4o-mini",
    "created_at": "2025-12-24T22:26:50Z",
}


def write_trace(
    folder: Path, case_id: str = "case-1", *, pause_ms: int = 0, more: str = "", **meta: Any
) -> Path:
    """Two doctors and the label by which the first hands over.

    Args:
        folder: Where it goes.
        case_id: Of the case.
        pause_ms: Between the first and the second half of the first turn.
        more: Further text that the first turn begins with.
        meta: Fields of its meta record that differ from `META`.
    """
    events = []
    turns = [("doctor0", more + SENTENCE + "Blood cultures first. "), ("doctor0", "Doctor1")]
    turns.append(("doctor1", f"I agree. {SENTENCE}The troponin is negative."))
    seq, t_ms = 0, 1_000_000
    for number, (agent_id, text) in enumerate(turns, start=1):
        events.append(starts(number, agent_id, seq, t_ms))
        pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
        for index, piece in enumerate(pieces):
            seq, t_ms = seq + 1, t_ms + 100
            if number == 1 and index == len(pieces) // 2:
                t_ms += pause_ms
            events.append(says(number, agent_id, seq, piece, t_ms))
        seq, t_ms = seq + 1, t_ms + 100
        events.append(ends(number, agent_id, seq, t_ms))
        seq, t_ms = seq + 1, t_ms + 400
    path = folder / f"{case_id}.trace.jsonl.gz"
    write_trace_file(path, events, case_id=case_id, **(META | meta))
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file, which may be compressed."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A run's folder with the traces of two cases."""
    run = tmp_path / "run"
    write_trace(run / "traces", "case-1")
    write_trace(run / "traces", "case-2", pause_ms=20_000)
    return run


@pytest.fixture
def model_options(provider: FakeProvider) -> Callable[..., list[str]]:
    """Options that reach the fake provider."""

    def options(*more: str) -> list[str]:
        return ["--model", "fake-model", "--model-base-url", provider.openai_base_url, *more]

    return options
