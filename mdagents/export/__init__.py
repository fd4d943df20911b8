"""A run as a log of Inspect, which its viewer and its analysis tools read (docs/inspect.md).

The form is that of `inspect_ai.log.EvalLog`, version 2, as of inspect_ai 0.3.285. The package
itself is not needed: a test reads the log with it.
"""

from mdagents.export.export import export_run

__all__ = ["export_run"]
