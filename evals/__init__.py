"""Evaluates EXAID: replays frozen traces through its variants and measures the summaries."""
