"""Terminal that displays draw on. Importing this module loads rich, which takes 40 ms."""

from __future__ import annotations

from rich.console import Console


class Screen(Console):
    """Console on stderr that discards output once the terminal is gone.

    Rich would exit the program and close its standard output instead.
    """

    def on_broken_pipe(self) -> None:
        """Silence the console instead of exiting."""
        self.quiet = True
