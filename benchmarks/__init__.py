"""Speed and cost measurements, run by hand, each printing a table; see docs/performance.md."""

import mdagents_llm  # noqa: F401 - says so if this Python is too old
