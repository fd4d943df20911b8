"""What the runs of one process share: endpoints, kept replies, workers, places, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mdagents.runs.engines.engine import Places
from mdagents_llm.endpoints import Endpoints
from mdagents_llm.layers.cache import ReplyStore

if TYPE_CHECKING:
    from mdagents.runs.engines.cluster import Cluster

STOPPING = "stopping: questions in progress get 10 s; repeat to stop at once"
STOPPING_BATCHES = (
    "stopping in 10 s: batches continue at the provider, and the same command collects them; "
    "repeat to cancel them"
)
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interruptible(Protocol):
    """What a stop is told."""

    def interrupt(self) -> None:
        """Begin nothing further; at a second call, stop at once."""


class Stops:
    """Signals that ask for a stop: the first lets questions under way finish, the second does not.

    Args:
        say: Shows a line.
        first: What it says at the first.
    """

    def __init__(self, say: Callable[[str], None], first: str = STOPPING) -> None:
        self._first = first
        self.signals: list[int] = []
        """Those that came."""
        self.say = say
        self._listens = False
        self._told: list[Interruptible] = []

    def tell(self, told: Interruptible) -> None:
        """Let something know of each stop, also of those that came."""
        self._told.append(told)
        for _ in self.signals:
            told.interrupt()

    def listen(self) -> None:
        """Handle the signals, as long as the event loop runs."""
        self._listens = True
        loop = asyncio.get_running_loop()
        for name in _SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # The parent process may have it ignored: nohup does.
            if number is None or signal.getsignal(number) is signal.SIG_IGN:
                continue
            # Windows has no such handlers: there Python's own Ctrl-C stops at once.
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self._on_signal, number)

    def listen_again(self) -> None:
        """Handle the signals after something else has taken them over, if they were handled."""
        if self._listens:
            self.listen()

    def _on_signal(self, number: int) -> None:
        if not self.signals:
            self.say(self._first)
        self.signals.append(number)
        for told in self._told:
            told.interrupt()


@dataclass(slots=True)
class Shared:
    """What runs share that are under way at once."""

    endpoints: Endpoints
    replies: ReplyStore | None
    """None: no cache."""
    cluster: Cluster | None
    """None: questions are answered in this process."""
    check_spent: Callable[[], None]
    """Raises LimitExceeded when a limit of all of them together is reached."""
    stops: Stops
    _places: dict[str, Places] = field(default_factory=dict)

    def places(self, endpoint: str, count: int) -> Places:
        """Return the places of an endpoint.

        Args:
            endpoint: Which one.
            count: Of the places, when it is asked for the first time.
        """
        return self._places.setdefault(endpoint, Places(count))
