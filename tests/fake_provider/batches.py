"""The batches of the fake provider: their life, whatever API they came through.

A line is answered by the same model as any request, when its batch is done: by the clock, or when a
test lets it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class BatchStatus(StrEnum):
    """How a batch stands."""

    AT_WORK = "at_work"
    DONE = "done"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    REFUSED = "refused"


@dataclass
class SeenBatch:
    """A batch as the provider sees it.

    Attributes:
        id: The provider's name for it.
        api: `openai`, `responses`, `gemini` or `anthropic`.
        tag: What the client calls it; empty where the API takes no name.
        keys: Of its requests, in their order.
        bodies: The requests, likewise.
        model: Named in the address by Gemini, else in each body.
        refused: Why nothing of it is worked on; empty if it is.
        created: Seconds since 1970 UTC.
        status: How it stands.
        results: Key -> what became of it, for those that were answered.
        polls: How often it was asked after.
    """

    id: str
    api: str
    tag: str
    keys: tuple[str, ...]
    bodies: tuple[Mapping[str, Any], ...]
    model: str = ""
    refused: str = ""
    created: float = field(default_factory=time.time)
    status: BatchStatus = BatchStatus.AT_WORK
    results: dict[str, Any] = field(default_factory=dict)
    polls: int = 0


class Batches:
    """All batches of a server.

    Attributes:
        seconds: From a batch's creation until it is done.
        held: Whether nothing gets done.
        expiring: The next batch that is created ends with so many of its last lines unanswered.
        failing: HTTP statuses of the next calls about batches; 0: the next batch is created, and
            the connection lost before the reply.
        refusing: Why the next batch that is created is refused as a whole, when it is due; empty:
            it is not.
        room: Requests that may be at work at once; None: as many as come.
        says_when: Whether a refusal for want of room names a pause, where the API can.
        delay: Seconds from the creation of a batch to the reply that tells of it.
        rewrite: Changes the JSON lines of the replies of a batch that is done.
        late: So many times, a batch that is done does not yet name its file of replies.

    Args:
        answer: Answers a line: (batch, key, body) -> what the API writes about it.
    """

    def __init__(self, answer: Callable[[SeenBatch, str, Mapping[str, Any]], Any]) -> None:
        self._answer = answer
        self.seconds = 0.0
        self.held = False
        self.expiring = 0
        self.refusing = ""
        self.room: int | None = None
        self.says_when = False
        self.delay = 0.0
        self.rewrite: Callable[[list[str]], list[str]] = list
        self.late = 0
        self.failing: list[int] = []
        self.files: dict[str, str] = {}
        self.all: list[SeenBatch] = []
        self._expire: dict[str, int] = {}

    def keep_file(self, content: str) -> str:
        """Keep a file and return its id."""
        name = f"file-{len(self.files):06d}"
        self.files[name] = content
        return name

    def create(
        self,
        api: str,
        keys: Sequence[str],
        bodies: Sequence[Mapping[str, Any]],
        *,
        tag: str = "",
        model: str = "",
        refused: str = "",
    ) -> SeenBatch:
        """Take a batch on."""
        number = len(self.all)
        batch = SeenBatch(
            f"batch_{number:04d}", api, tag, tuple(keys), tuple(bodies), model,
            refused or self.refusing,
        )  # fmt: skip
        self.refusing = ""
        self._expire[batch.id], self.expiring = self.expiring, 0
        self.all.append(batch)
        return batch

    def find(self, name: str) -> SeenBatch | None:
        """Return a batch as it stands now; None if there is none so called."""
        batch = next((one for one in self.all if one.id == name), None)
        if batch is not None:
            batch.polls += 1
            self._move_on(batch)
        return batch

    def is_full(self, requests: int) -> bool:
        """Return whether so many requests more are too many."""
        for batch in self.all:
            self._move_on(batch)
        at_work = sum(len(b.keys) for b in self.all if b.status is BatchStatus.AT_WORK)
        return self.room is not None and at_work + requests > self.room

    def of(self, *apis: str) -> list[SeenBatch]:
        """Return the batches that came through these APIs, newest first."""
        return [batch for batch in reversed(self.all) if batch.api in apis]

    def cancel(self, batch: SeenBatch) -> None:
        """Answer nothing further of a batch."""
        if batch.status is BatchStatus.AT_WORK:
            batch.status = BatchStatus.CANCELLED

    def _move_on(self, batch: SeenBatch) -> None:
        is_due = time.time() - batch.created >= self.seconds
        if batch.status is not BatchStatus.AT_WORK or not is_due:
            return
        if batch.refused:
            batch.status = BatchStatus.REFUSED
            return
        if self.held:
            return
        left = self._expire[batch.id]
        answered = len(batch.keys) - left
        for key, body in list(zip(batch.keys, batch.bodies, strict=True))[:answered]:
            batch.results[key] = self._answer(batch, key, body)
        batch.status = BatchStatus.EXPIRED if left else BatchStatus.DONE
