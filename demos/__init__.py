"""Companion systems: the model layer and EXAID outside the benchmark, each complete by itself."""

import mdagents_llm  # noqa: F401 - says so if this Python is too old
