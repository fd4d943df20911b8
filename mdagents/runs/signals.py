"""Stop signals: what the first and the second do, and what is said about it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

STOPPING = "stopping: questions in progress have 10 s to finish; press Ctrl-C again to stop now"
STOPPING_BATCHES = (
    "stopping in 10 s: batches continue at the provider, and the same command collects them; "
    "press Ctrl-C again to cancel them"
)
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop a program.

    The parent process may have set one to be ignored, as nohup does with SIGHUP; Windows has no
    SIGHUP.
    """
    numbers = [signal.Signals[name] for name in _SIGNALS if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


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
        for number in stop_signals():
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
