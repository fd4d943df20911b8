"""Divides the limits of endpoints among the workers of a cluster.

All workers together never exceed the requested limit: a worker gets a larger share only when
another has reported that it holds less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EndpointState:
    """State of an endpoint as a worker sees it."""

    most: int
    """Maximum number of calls in progress, over all workers together."""
    in_flight: int = 0
    waiting: int = 0
    """Calls that wait for a connection."""
    cooling: float = 0.0
    """Seconds until the endpoint has cooled down."""
    storms: int = 0
    """Number of times this worker had to slow down."""


@dataclass(frozen=True, slots=True)
class Share:
    """A worker's share of an endpoint."""

    limit: int
    """Maximum number of calls in progress; rates per minute are shared in the same proportion."""
    of: int
    cooling: float = 0.0
    """Seconds for which the endpoint accepts no call, because another worker had to wait."""


@dataclass(slots=True)
class _Held:
    share: int = 0
    """Last share that the worker was given."""
    state: EndpointState = field(default_factory=lambda: EndpointState(most=0))

    @property
    def at_most(self) -> int:
        """Maximum number of calls that the worker may have in progress now."""
        return max(self.share, self.state.in_flight)

    @property
    def need(self) -> int:
        return self.state.in_flight + self.state.waiting


class Shares:
    """Shares of one endpoint."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._targets: dict[int, int] = {}
        self._most = 0
        self._cool_until: tuple[float, int | None] = (float("-inf"), None)  # (time, its worker)

    def __contains__(self, worker: int) -> bool:
        return worker in self._held

    def leave(self, worker: int) -> None:
        """Remove a worker that has ended: it has no call in progress."""
        self._held.pop(worker, None)
        self._targets.pop(worker, None)

    def told(self, worker: int, state: EndpointState, now: float) -> None:
        """Record a worker's state of the endpoint, reported after it has obeyed its orders.

        A worker that reports for the first time has no share yet.
        """
        held = self._held.setdefault(worker, _Held())
        if state.storms > held.state.storms:
            self._cool_until = now + state.cooling, worker
        held.state, self._most = state, state.most

    def divide(self) -> None:
        """Divide the limit again: each worker gets what it needs, and an equal part of the rest."""
        self._targets = divided(self._most, {w: held.need for w, held in self._held.items()})

    def of(self, worker: int, now: float) -> Share:
        """Return a worker's share from now on; the worker receives it before its next report."""
        if worker not in self._targets:
            self.divide()
        free = self._most - sum(h.at_most for w, h in self._held.items() if w != worker)
        held = self._held[worker]
        held.share = max(0, min(self._targets[worker], free))
        until, by = self._cool_until
        return Share(held.share, max(1, self._most), max(0.0, until - now) if by != worker else 0.0)


def divided(most: int, needs: Mapping[int, int]) -> dict[int, int]:
    """Divide a number by max-min fairness: nobody gets more than another who needs more.

    The part that nobody needs is divided equally, so that a call need not wait for the next
    division.

    Args:
        most: Number to divide.
        needs: Name -> need.

    Returns:
        Name -> share; the sum is `most` unless `needs` is empty.
    """
    shares: dict[int, int] = {}
    left = most
    for place, who in enumerate(sorted(needs, key=lambda who: (needs[who], who))):
        shares[who] = min(needs[who], left // (len(needs) - place))
        left -= shares[who]
    each, odd = divmod(left, len(shares)) if shares else (0, 0)
    for place, who in enumerate(sorted(shares, key=lambda who: (-needs[who], who))):
        shares[who] += each + (place < odd)
    return shares
