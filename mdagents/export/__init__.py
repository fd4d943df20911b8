"""Export of a run: an Inspect log (docs/how-to/inspect.md), or a card (docs/how-to/run-card.md)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from mdagents_llm.extras import needs_extra


class LogFormat(StrEnum):
    """Format of a log; its value is the ending of the file's name."""

    JSON = "json"
    """One JSON document."""
    EVAL = "eval"
    """A ZIP archive with one file per sample: Inspect's default, and all that Scout finds."""


def export_run(
    path: Path, output: Path | None = None, log_format: LogFormat = LogFormat.JSON
) -> Path:
    """Write a run as an Inspect log; the same run gives the same bytes.

    Args:
        path: Folder of a run, its `samples.jsonl`, or a JSON array.
        output: File of the log; None writes to the run's folder, under the name that Inspect would
            choose.
        log_format: Format of the log.

    Returns:
        Path of the log.

    Raises:
        ConfigError: The run does not exist or cannot be read, or Inspect is not installed.
        RecordError: A trace cannot be read.
        StorageError: The log cannot be written.
    """
    with needs_extra("inspect", "an export"):  # imported here: Inspect takes seconds to load
        from mdagents.export.log import write_log

    return write_log(path, output, log_format)


__all__ = ["LogFormat", "export_run"]
