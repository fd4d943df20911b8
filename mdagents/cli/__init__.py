"""The commands: `mdagents run`, `score`, `study` and others."""

from mdagents.cli.commands import main

__all__ = ["main"]
