"""What the fake provider was asked and what it answered, and the sums over it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.fake_provider.chat_api import SeenRequest, Usage
from tests.fake_provider.faults import BILLED_FAULTS

OK = "ok"
BAD_REQUEST = "bad_request"
CLIENT_GONE = "client_gone"
SCRIPT_ERROR = "script_error"

_BILLED = frozenset({OK, *(fault.value for fault in BILLED_FAULTS)})


@dataclass(frozen=True)
class ServedCall(SeenRequest):
    """A request for a reply, and what became of it.

    Attributes:
        status: HTTP status; 0 if no status line was sent.
        outcome: `ok`; the value of the `Fault` that hit it; `client_gone` if the client hung up
            first; `bad_request` if no reply follows its schema; `script_error` if a rule raised.
        reply: The text of the reply, as far as the client could read it.
        usage: What the reply says that it used; nothing if it says nothing.
        started: When it arrived, monotonic seconds.
        ended: When it was answered, monotonic seconds (for a hang: when it was left hanging).
        batch: The batch that it came in; empty for a request of its own.
    """

    status: int
    outcome: str
    reply: str
    usage: Usage
    started: float
    ended: float
    batch: str = ""

    @property
    def billed(self) -> bool:
        """True if the reply reached the client whole and told its usage."""
        return self.outcome in _BILLED


class CallLog:
    """Counts requests, and keeps them if asked to. Safe to read from other threads.

    Attributes:
        keep: False: counters only, so that memory does not grow.
        in_flight: How many requests are being served now.
        max_in_flight: How many there were at most at one time. Without latency a reply is made and
            sent in one step, so that there is never more than one.
    """

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self.in_flight = 0
        self._lock = threading.Condition()
        self.forget()

    def forget(self) -> None:
        """Start again, with arrival number 0; what is in flight stays so."""
        with self._lock:
            self.max_in_flight = self.in_flight
            self._arrivals = 0
            self._calls: list[ServedCall] = []
            self._totals = Usage()
            self._outcomes: Counter[str] = Counter()

    def arrive(self) -> int:
        """Count a request as in flight and return its arrival number."""
        with self._lock:
            self._arrivals += 1
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
            return self._arrivals - 1

    def leave(self) -> None:
        """Count a request as no longer in flight."""
        with self._lock:
            self.in_flight -= 1

    def add(self, outcome: str, call: ServedCall | None = None) -> None:
        """Book what became of a request; one that could not be understood is no call."""
        with self._lock:
            self._outcomes[outcome] += 1
            if call and call.billed:
                self._totals += call.usage
            if call and self.keep:
                self._calls.append(call)
            self._lock.notify_all()

    def wait(self, count: int, timeout: float) -> None:
        """Block until `count` requests have been booked.

        Raises:
            TimeoutError: They were not within `timeout` seconds.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: self._outcomes.total() >= count, timeout):
                booked = self._outcomes.total()
                raise TimeoutError(f"{booked} of {count} requests were served after {timeout} s")

    @property
    def calls(self) -> list[ServedCall]:
        """All calls in order of arrival (a copy)."""
        with self._lock:
            return sorted(self._calls, key=lambda call: call.index)

    @property
    def totals(self) -> Usage:
        """Sum of the usage of all billed replies."""
        with self._lock:
            return self._totals

    @property
    def outcomes(self) -> dict[str, int]:
        """How many requests had each outcome."""
        with self._lock:
            return dict(self._outcomes)


def peak_in_flight(calls: Iterable[ServedCall]) -> int:
    """Return how many of these calls were being served at the same time, at most.

    Of one role, say: `peak_in_flight(call for call in provider.calls if "EXAID" in call.text)`.
    """
    # At equal times an end comes before a start.
    edges = sorted(edge for call in calls for edge in ((call.started, 1), (call.ended, -1)))
    peak = now = 0
    for _, step in edges:
        now += step
        peak = max(peak, now)
    return peak


def depth(calls: Iterable[ServedCall]) -> int:
    """Return the length of the longest chain of calls, each begun after the one before ended."""
    chain: list[int] = []
    ordered = sorted(calls, key=lambda call: call.started)
    for call in ordered:
        before = [
            n for n, other in zip(chain, ordered, strict=False) if other.ended <= call.started
        ]
        chain.append(1 + max(before, default=0))
    return max(chain)
