"""A run as a log of Inspect, which its viewer and its analysis tools read (docs/inspect.md)."""

from __future__ import annotations

from pathlib import Path

from mdagents_llm.extras import needs_extra


def export_run(path: Path, output: Path | None = None) -> Path:
    """Write a run as a log of Inspect. The same run gives the same bytes.

    Args:
        path: Folder of a run, its `samples.jsonl`, or a JSON array.
        output: The file; None: in the run's folder, under the name that Inspect would give it.

    Returns:
        The file.

    Raises:
        ConfigError: There is no such run, its files cannot be read, or Inspect is not installed.
        RecordError: A trace cannot be read.
        StorageError: The log cannot be written.
    """
    with needs_extra("inspect", "an export"):  # imported here: it takes seconds to load
        from mdagents.export.log import write_log

    return write_log(path, output)


__all__ = ["export_run"]
