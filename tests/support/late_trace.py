"""A trace in which the end of a turn was written before the turn's last delta."""

from __future__ import annotations

from pathlib import Path

from exaid_core.trace.files import dump_line, read_records, write_gz
from exaid_core.trace.records import content_hash


def end_before_last_delta(path: Path, late_ms: int, *, hash_covers: bool = False) -> Path:
    """Rewrite a trace so that its first turn ends before its last delta.

    Args:
        path: The trace.
        late_ms: How long before it.
        hash_covers: Whether the turn's hash counts that delta all the same.
    """
    records = [content for _, content in read_records(path)]
    at = next(i for i, r in enumerate(records) if r.get("boundary") == "end")
    end, last = records[at], records[at - 1]
    end["seq"], last["seq"] = last["seq"], end["seq"]
    moved = last["t_emitted_ms"] - late_ms - end["t_ms"]
    end["t_ms"] += moved
    end["t_rel_ms"] += moved
    if not hash_covers:
        said = [r["delta_text"] for r in records[1 : at - 1] if r["record_type"] == "stream_delta"]
        end["content_hash"] = content_hash(said)
    records[at - 1 : at + 1] = [end, last]
    write_gz(path, map(dump_line, records))
    return path
