"""Stop signals: what the first and the second do, and what is said about it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

STOPPING = "stopping: questions in progress get 10 s; repeat to stop at once"
STOPPING_BATCHES = (
    "stopping in 10 s: batches continue at the provider, and the same command collects them; "
    "repeat to cancel them"
)
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Stops:
    """Handles stop signals: the first lets questions in progress finish, the second does not.

    Args:
        say: Shows a line to the user.
        first: Line to show at the first signal.
    """

    def __init__(self, say: Callable[[str], None], first: str = STOPPING) -> None:
        self._first = first
        self.signals: list[int] = []
        """Numbers of the signals received so far."""
        self.say = say
        self._listens = False
        self._interrupts: list[Callable[[], None]] = []

    def at_each(self, interrupt: Callable[[], None]) -> None:
        """Call a function at each stop, and once for each that came before.

        Args:
            interrupt: Starts nothing more; at a second call, it stops at once.
        """
        self._interrupts.append(interrupt)
        for _ in self.signals:
            interrupt()

    def listen(self) -> None:
        """Handle the signals as long as the event loop runs."""
        self._listens = True
        loop = asyncio.get_running_loop()
        for name in _SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # The parent process may have set the signal to be ignored, as nohup does.
            if number is None or signal.getsignal(number) is signal.SIG_IGN:
                continue
            # Windows has no such handlers; there Python's own Ctrl-C stops at once.
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self._on_signal, number)

    def listen_again(self) -> None:
        """Handle the signals again after other code has replaced the handlers, if they were set."""
        if self._listens:
            self.listen()

    def _on_signal(self, number: int) -> None:
        if not self.signals:
            self.say(self._first)
        self.signals.append(number)
        for interrupt in self._interrupts:
            interrupt()
