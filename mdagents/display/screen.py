"""The terminal as displays draw on it. It loads rich, which takes 40 ms."""

from __future__ import annotations

from rich.console import Console


class Screen(Console):
    """A terminal on stderr; once it is gone, what is drawn goes nowhere.

    Rich itself would then end the program, and close its standard output.
    """

    def on_broken_pipe(self) -> None:
        """See `Console`."""
        self.quiet = True
