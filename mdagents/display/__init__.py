"""What a person sees while a run goes on. Everything goes to stderr; stdout is for results."""

from __future__ import annotations

import sys

from mdagents.display.display import Display, Snapshot, accuracy_so_far
from mdagents.display.failsafe import Failsafe
from mdagents.display.plain import Bar, LogLines

__all__ = [
    "DISPLAYS",
    "Bar",
    "Display",
    "Failsafe",
    "LogLines",
    "Snapshot",
    "accuracy_so_far",
    "make_display",
]

DISPLAYS = ("full", "plain", "log", "none")
"""What `--display` can be."""


def make_display(kind: str, questions: int, *, with_summaries: bool = True) -> Display:
    """The display for `--display`; `full` and `plain` are lines where there is no terminal.

    Args:
        kind: As the flag has it.
        questions: How many the run has.
        with_summaries: Whether there is an EXAID to wait for.
    """
    if kind == "none":
        return Display()
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if kind == "full" and is_terminal:
        from rich.console import Console  # 40 ms, which the others need not wait for

        from mdagents.display.terminal_view import TerminalView

        console = Console(stderr=True)
        if console.is_interactive:  # neither a dumb terminal nor one that moves no cursor
            view = TerminalView(questions, console, with_summaries=with_summaries)
            return Failsafe(view, instead=LogLines(questions))
    if kind == "plain" and is_terminal:
        return Bar(questions)
    return LogLines(questions)
