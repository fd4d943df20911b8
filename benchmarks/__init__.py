"""Speed and cost benchmarks, run by hand, that print tables (docs/measurements/index.md)."""

import mdagents_llm  # noqa: F401 - says so if this Python is too old
