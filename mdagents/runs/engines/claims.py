"""Reply cache that the workers of a cluster share: each request is sent once."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple

from mdagents_llm.chat import ChatReply
from mdagents_llm.errors import ProviderError
from mdagents_llm.layers.reply_store import ReplyStore


class Found(NamedTuple):
    """The answer to a lookup."""

    lookup: int
    """Number that the worker gave the lookup."""
    reply: ChatReply | None
    """Cached reply; None: the worker sends the request and then releases the key."""


class Claims:
    """Tracks which worker sends which request, and which workers wait for its reply.

    Args:
        store: Cached replies.
    """

    def __init__(self, store: ReplyStore) -> None:
        self._store = store
        self._asked_by: dict[str, int] = {}
        self._waiting: defaultdict[str, deque[tuple[int, int]]] = defaultdict(deque)
        self._found: defaultdict[int, list[Found]] = defaultdict(list)

    def look_up(self, worker: int, lookup: int, key: str) -> None:
        """Find a cached reply for a worker, let it send the request, or let it wait for another."""
        reply = self._store.get(key, truncated_too=False)
        if reply is None and key in self._asked_by:
            self._waiting[key].append((worker, lookup))
            return
        if reply is None:
            self._asked_by[key] = worker
        self._found[worker].append(Found(lookup, reply))

    def keep(self, key: str, kept: ChatReply | ProviderError) -> None:
        """Cache a reply, or the error in which a request ended.

        Raises:
            StorageError: The reply cannot be written.
        """
        if isinstance(kept, ChatReply):
            self._store.put(key, kept)
        else:
            self._store.put_error(key, kept)

    def release(self, worker: int, key: str) -> None:
        """Release a worker's claim on a key, or its wait for one, so that others can claim it."""
        waiting = self._waiting.pop(key, deque[tuple[int, int]]())
        if self._asked_by.get(key) == worker:
            del self._asked_by[key]
        else:
            waiting = deque(one for one in waiting if one[0] != worker)
        for waiter, lookup in waiting:
            self.look_up(waiter, lookup, key)

    def lost(self, worker: int) -> None:
        """Release every claim and wait of a worker that died."""
        self._found.pop(worker, None)
        for key in [*self._waiting]:
            kept = deque(one for one in self._waiting[key] if one[0] != worker)
            self._waiting[key] = kept
        for key in [key for key, asker in self._asked_by.items() if asker == worker]:
            self.release(worker, key)

    def found(self, worker: int) -> list[Found]:
        """Return and clear the answers that a worker has not received yet."""
        return self._found.pop(worker, [])
