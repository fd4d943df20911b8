"""The commands: `mdagents run`, `score`, `study` and others, one line of dispatch for each."""
