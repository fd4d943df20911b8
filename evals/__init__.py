"""Evaluates EXAID: replays frozen traces through its variants and measures the summaries."""

import mdagents_llm  # noqa: F401 - says so if this Python is too old
