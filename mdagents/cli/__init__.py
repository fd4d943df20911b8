"""Command line: the dispatcher of `mdagents run`, `score`, `study` and others."""
