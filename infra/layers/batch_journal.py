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
    spent: set[str] = field(default_factory=set)
    """Keys of requests that got an error, or half a reply: those are asked again elsewhere."""
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
        """Write down its id, likewise."""

    def spend(self, batch: Batch, key: str) -> None:
        """Write down that one of its requests will be asked again, likewise."""

    def collected(self, batch: Batch) -> None:
        """Write down that its replies have been fetched, likewise."""

    def end(self, batch: Batch) -> None:
        """Write down that it is over, likewise."""
