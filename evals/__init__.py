"""Evaluation of EXAID: replay frozen traces through its variants and measure the summaries."""

import mdagents_llm  # noqa: F401 - says so if this Python is too old
