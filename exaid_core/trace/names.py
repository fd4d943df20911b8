"""Names of the files that hold traces."""

from __future__ import annotations

TRACE_SUFFIX = ".trace.jsonl.gz"
"""End of the name of a trace file."""
JOURNAL = "trace_journal.jsonl"
"""Name of the journal in the folder of a run: see `exaid_core.trace.journal`."""
