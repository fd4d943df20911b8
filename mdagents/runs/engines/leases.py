"""Leases: items lent to workers until they are decided or the worker dies."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.engine import Item

MOST_DEATHS = 3
"""Number of workers that die on a question before it is given up."""
QUIET = 10.0
"""Seconds without a death before a suspect is lent again: if all die, no item is to blame."""
LONGEST_WAIT = 60.0
"""Seconds after which a suspect is lent regardless of `QUIET`."""


class Leases:
    """Items of a run: not started, on loan, or done.

    When a worker dies, its items are lent again. Nobody knows which question killed it, so each of
    its items becomes a suspect. An item that is suspected twice waits until no more workers die,
    and is then lent to a worker without another such suspect; if that worker dies, this item is to
    blame.

    Args:
        items: Items to answer, in this order.
        length: Returns how long an item will take, in any unit; the longest of the last items go
            first.
    """

    def __init__(self, items: Iterable[Item], length: Callable[[Item], float]) -> None:
        self._todo = deque(items)
        self._length = length
        self._is_sorted = False
        self._back: deque[Item] = deque()  # lost once, or returned: they go first
        self._suspects: deque[tuple[float, Item]] = deque()  # (suspected since, item)
        self._died_at = float("-inf")  # time of the last death
        self._deaths: Counter[ItemKey] = Counter()
        self._lent: dict[int, dict[ItemKey, Item]] = {}

    @property
    def left(self) -> int:
        """Number of items that no worker has."""
        return len(self._todo) + len(self._back) + len(self._suspects)

    @property
    def lent(self) -> int:
        """Number of items on loan."""
        return sum(map(len, self._lent.values()))

    def of(self, worker: int) -> list[ItemKey]:
        """Return the keys of the items that a worker has."""
        return [*self._lent.get(worker, ())]

    def lend(self, worker: int, room: int, ahead: int, workers: int, now: float) -> list[Item]:
        """Lend items to a worker.

        Args:
            worker: Number of the worker.
            room: Number of items that it answers at once.
            ahead: Number of extra items, so that the worker need not wait for the next ones; the
                last items are not lent ahead, so that no other worker runs out.
            workers: Number of workers.
            now: Current time in seconds, on the same clock as for `lost`.
        """
        lent = self._lent.setdefault(worker, {})
        last = 2 * room * workers
        free = room - len(lent)
        if self.left > last:
            free += min(ahead, (self.left - last) // workers)
        elif not self._is_sorted:
            self._todo = deque(sorted(self._todo, key=self._length, reverse=True))
            self._is_sorted = True
        items: list[Item] = []
        if self._suspects and free > 0 and not any(map(self._is_suspect, lent)):
            since, suspect = self._suspects[0]
            if now - self._died_at >= QUIET or now - since >= LONGEST_WAIT:
                items.append(suspect)
                self._suspects.popleft()
        for waiting in (self._back, self._todo):
            while waiting and len(items) < free:
                items.append(waiting.popleft())
        lent.update((item.key, item) for item in items)
        return items

    def done(self, worker: int, key: ItemKey) -> bool:
        """Note that an item is decided; return False if this worker did not have it."""
        return self._lent.get(worker, {}).pop(key, None) is not None

    def returned(self, worker: int, key: ItemKey) -> None:
        """Reclaim an item that a worker did not start."""
        item = self._lent.get(worker, {}).pop(key, None)
        if item is not None:
            self._back.append(item)

    def lost(self, worker: int, now: float, *, by_itself: bool) -> list[Item]:
        """Reclaim the items of a worker that died.

        Args:
            worker: Number of the worker.
            now: Current time in seconds.
            by_itself: Whether a question may be to blame; False if the whole machine was lost.

        Returns:
            Items that are given up because `MOST_DEATHS` workers have died on them.
        """
        lent = self._lent.pop(worker, {})
        blamed = [key for key in lent if self._is_suspect(key)] or list(lent)
        if by_itself:
            self._deaths.update(blamed)
            self._died_at = now
        given_up = []
        for key, item in lent.items():
            if self._deaths[key] >= MOST_DEATHS:
                given_up.append(item)
            elif self._is_suspect(key):
                self._suspects.append((now, item))
            else:
                self._back.append(item)
        return given_up

    def drop(self) -> None:
        """Stop lending: drop all items that are not on loan."""
        self._todo.clear()
        self._back.clear()
        self._suspects.clear()

    def _is_suspect(self, key: ItemKey) -> bool:
        return self._deaths[key] == MOST_DEATHS - 1
