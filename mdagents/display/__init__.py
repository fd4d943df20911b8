"""Displays of a run in progress. They write to stderr; stdout is for results."""

from __future__ import annotations

import sys

from mdagents.display.display import Display, Snapshot, accuracy_so_far
from mdagents.display.failsafe import Failsafe
from mdagents.display.plain import Bar, LogLines

__all__ = [
    "Bar",
    "Display",
    "Failsafe",
    "LogLines",
    "Snapshot",
    "accuracy_so_far",
    "make_display",
]


def make_display(
    kind: str, questions: int, *, with_summaries: bool = True, in_batches: bool = False
) -> Display:
    """Return the display for `--display`; without a terminal, `full` and `plain` print lines.

    Args:
        kind: Value of the flag.
        questions: Number of questions of the run.
        with_summaries: Whether EXAID is on.
        in_batches: Whether replies come in batches; no text streams then, and `full` is `plain`.
    """
    if kind == "none":
        return Display()
    if kind == "full" and in_batches:
        kind = "plain"
    return Failsafe(_shown(kind, questions, with_summaries), instead=LogLines(questions))


def _shown(kind: str, questions: int, with_summaries: bool) -> Display:
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if kind == "full" and is_terminal:
        from mdagents.display.screen import Screen  # loads rich, so it is imported only if needed
        from mdagents.display.terminal_view import TerminalView

        console = Screen(stderr=True)
        if console.is_interactive:  # neither a dumb terminal nor one without cursor control
            return TerminalView(questions, console, with_summaries=with_summaries)
    if kind == "plain" and is_terminal:
        return Bar(questions)
    return LogLines(questions)
