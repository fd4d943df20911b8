"""Who answers which question: items on loan to workers, until they are decided or lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.engine import Item

MOST_DEATHS = 3
"""Workers that die over a question before it is given up."""
QUIET = 10.0
"""Seconds without a death before a suspect is lent again: where all die, none is to blame."""
LONGEST_WAIT = 60.0
"""Seconds after which it is lent all the same."""


class Leases:
    """The items of a run: not begun, on loan, or done.

    When a worker dies, what it had is lent out again. It is not known over which question it died:
    each that it had is suspected. One that is suspected twice waits until no more workers die, and
    is lent to one that has no other such; if that dies, too, it was this one.

    Args:
        items: What is to be answered, in this order.
        length: How long an item will take, in any unit; of the last ones the longest go first.
    """

    def __init__(self, items: Iterable[Item], length: Callable[[Item], float]) -> None:
        self._todo = deque(items)
        self._length = length
        self._is_sorted = False
        self._back: deque[Item] = deque()  # lost once, or returned: they go first
        self._suspects: deque[tuple[float, Item]] = deque()  # (since when, which)
        self._died_at = float("-inf")  # the last worker
        self._deaths: Counter[ItemKey] = Counter()
        self._lent: dict[int, dict[ItemKey, Item]] = {}

    @property
    def left(self) -> int:
        """Items that nobody has."""
        return len(self._todo) + len(self._back) + len(self._suspects)

    @property
    def lent(self) -> int:
        """Items that a worker has."""
        return sum(map(len, self._lent.values()))

    def of(self, worker: int) -> list[ItemKey]:
        """Return the items that a worker has."""
        return [*self._lent.get(worker, ())]

    def lend(self, worker: int, room: int, ahead: int, workers: int, now: float) -> list[Item]:
        """Lend items to a worker.

        Args:
            worker: Which one.
            room: How many it answers at once.
            ahead: How many more it gets, so that it need not wait for the next ones; none of the
                last items, lest another worker be without.
            workers: How many there are.
            now: Seconds, as for `lost`.
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
        """Take back an item that a worker did not begin."""
        item = self._lent.get(worker, {}).pop(key, None)
        if item is not None:
            self._back.append(item)

    def lost(self, worker: int, now: float, *, by_itself: bool) -> list[Item]:
        """Take back what a worker had that is no more.

        Args:
            worker: Which one.
            now: Seconds.
            by_itself: Whether a question may be to blame; not, if the whole machine was lost.

        Returns:
            Those that are given up, as `MOST_DEATHS` workers have died over them.
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
        """Lend nothing any more."""
        self._todo.clear()
        self._back.clear()
        self._suspects.clear()

    def _is_suspect(self, key: ItemKey) -> bool:
        return self._deaths[key] == MOST_DEATHS - 1
