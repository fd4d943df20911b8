"""Divides the limits of endpoints among the workers of a cluster.

What all workers may do together never exceeds what was asked for: a worker gets more only when
another has told that it holds less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EndpointState:
    """An endpoint as a worker sees it."""

    most: int
    """Calls under way at once that all workers together may make."""
    in_flight: int = 0
    waiting: int = 0
    """Calls that wait for a connection."""
    cooling: float = 0.0
    """Seconds for which it still cools down."""
    storms: int = 0
    """How often this worker had to slow down."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a worker may use of an endpoint."""

    limit: int
    """Calls under way at once; rates per minute are shared in the same proportion."""
    of: int
    cooling: float = 0.0
    """Seconds for which it lets no call in, as another worker was told to wait."""


@dataclass(slots=True)
class _Held:
    share: int = 0
    """The last that it was told."""
    state: EndpointState = field(default_factory=lambda: EndpointState(most=0))

    @property
    def at_most(self) -> int:
        """Calls that it may have under way now."""
        return max(self.share, self.state.in_flight)

    @property
    def need(self) -> int:
        return self.state.in_flight + self.state.waiting


class Shares:
    """The shares of one endpoint."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._targets: dict[int, int] = {}
        self._most = 0
        self._cool_until: tuple[float, int | None] = (float("-inf"), None)  # and who was told

    def __contains__(self, worker: int) -> bool:
        return worker in self._held

    def leave(self, worker: int) -> None:
        """Count a worker out that has ended: it has no call under way."""
        self._held.pop(worker, None)
        self._targets.pop(worker, None)

    def told(self, worker: int, state: EndpointState, now: float) -> None:
        """Note how a worker sees the endpoint, after it has obeyed all that it was told.

        One that is heard for the first time has no share yet.
        """
        held = self._held.setdefault(worker, _Held())
        if state.storms > held.state.storms:
            self._cool_until = now + state.cooling, worker
        held.state, self._most = state, state.most

    def divide(self) -> None:
        """Decide anew who gets how much: what each needs, and of the rest as much as the others."""
        self._targets = divided(self._most, {w: held.need for w, held in self._held.items()})

    def of(self, worker: int, now: float) -> Share:
        """Return what a worker may use from now on; it is told before it is heard again."""
        if worker not in self._targets:
            self.divide()
        free = self._most - sum(h.at_most for w, h in self._held.items() if w != worker)
        held = self._held[worker]
        held.share = max(0, min(self._targets[worker], free))
        until, by = self._cool_until
        return Share(held.share, max(1, self._most), max(0.0, until - now) if by != worker else 0.0)


def divided(most: int, needs: Mapping[int, int]) -> dict[int, int]:
    """Divide a number by max-min fairness: nobody gets more than another who needs more.

    What nobody needs is divided equally, so that a call need not wait for the next division.

    Args:
        most: What there is.
        needs: Who -> how much.

    Returns:
        Who -> how much; the sum is `most` unless there is nobody.
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
