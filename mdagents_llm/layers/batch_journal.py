"""The journal of batches, from which a later process resumes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True, eq=False)
class Batch:
    """One batch that was submitted or is about to be."""

    tag: str
    """Our own name for the batch."""
    model: str
    """Model as `provider/name` with its base URL."""
    submitted_at: str
    """Time of the submission, ISO 8601 in UTC."""
    keys: tuple[str, ...]
    """Keys of the requests, in their order."""
    id: str = ""
    """ID that the provider gave the batch; empty until known."""
    is_found: bool = False
    """Whether `id` was found by a search at the provider, since the submission had no reply."""
    spent: set[str] = field(default_factory=set)
    """Keys of requests that got an error, and are sent again outside this batch."""
    booked: set[str] = field(default_factory=set)
    """Keys of requests with a truncated reply or a refused setting, whose rows are in the ledger. A
    later process reads their results again before it sends the follow-up requests."""
    is_collected: bool = False
    """Whether the replies have been fetched; they can be fetched again."""
    is_over: bool = False
    """Whether the batch is finished, with nothing left to fetch."""


class Journal(Protocol):
    """Persistent storage of batches.

    All methods except `batches` save to disk before they return, and raise StorageError if they
    cannot.
    """

    def batches(self) -> Iterable[Batch]:
        """Return the batches of earlier processes, oldest first."""
        ...

    def begin(self, batch: Batch) -> None:
        """Record that a batch is about to be submitted; saved to disk when this returns.

        Raises:
            StorageError: The entry cannot be written.
        """

    def submitted(self, batch: Batch) -> None:
        """Record the ID of a batch and whether it was found by a search."""

    def spend(self, batch: Batch, key: str) -> None:
        """Record that a request of a batch will be sent again."""

    def book(self, batch: Batch, key: str) -> None:
        """Record that the row of a request of a batch is in the ledger."""

    def collected(self, batch: Batch) -> None:
        """Record that the replies of a batch have been fetched."""

    def end(self, batch: Batch) -> None:
        """Record that a batch is finished."""
