"""What is written down about batches, so that a later process finds them again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True, eq=False)
class Batch:
    """One batch: what was, or is about to be, submitted."""

    tag: str
    """Our name for it."""
    model: str
    """Which model: `provider/name` and its address."""
    submitted_at: str
    """ISO 8601, UTC."""
    keys: tuple[str, ...]
    """Of its requests, in their order."""
    id: str = ""
    """The provider's name for it; empty until that is known."""
    is_found: bool = False
    """Whether that was found by a look at the provider, since the submission had no reply."""
    spent: set[str] = field(default_factory=set)
    """Keys of requests that got an error, and are asked again elsewhere."""
    booked: set[str] = field(default_factory=set)
    """Keys of requests that a later process asks again before it asks something else, as what they
    got was half a reply, or a refusal of a setting. Their rows are in the ledger."""
    is_collected: bool = False
    """Whether its replies have been fetched; they can be again."""
    is_over: bool = False
    """Whether nothing further can be had from it."""


class Journal(Protocol):
    """Where batches are written down."""

    def batches(self) -> Iterable[Batch]:
        """Return those of earlier processes, oldest first."""
        ...

    def begin(self, batch: Batch) -> None:
        """Write down that a batch is about to be submitted; on the disk when this returns.

        Raises:
            StorageError: It cannot be written.
        """

    def submitted(self, batch: Batch) -> None:
        """Write down its id and whether it was found, likewise."""

    def spend(self, batch: Batch, key: str) -> None:
        """Write down that one of its requests will be asked again, likewise."""

    def book(self, batch: Batch, key: str) -> None:
        """Write down that the row of one of its requests is in the ledger, likewise."""

    def collected(self, batch: Batch) -> None:
        """Write down that its replies have been fetched, likewise."""

    def end(self, batch: Batch) -> None:
        """Write down that it is over, likewise."""
