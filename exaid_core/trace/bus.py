"""The bus that publishes the turns of a case while they are in progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

from exaid_core.trace.events import EventKind, TraceEvent
from mdagents_llm.clock import epoch_ms

Subscriber = Callable[[TraceEvent], None]


class TraceBus:
    """Numbers the events of one case and passes them to its subscribers, in one global order.

    Publishing returns at once and never raises: a subscriber must not block, and one that raises is
    not called again.

    Args:
        now_ms: Clock in ms since 1970 UTC.
        on_failure: Callback for a subscriber's exception.
    """

    def __init__(
        self,
        now_ms: Callable[[], int] = epoch_ms,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._now_ms = now_ms
        self._on_failure = on_failure
        self._subscribers: list[Subscriber] = []
        self._seqs = count()
        self._turns = count(1)
        self.wants_text = False
        """Whether a subscriber wants text as it arrives, so that replies must be streamed."""

    def subscribe(self, subscriber: Subscriber, *, wants_text: bool = False) -> None:
        """Call `subscriber` with each event from now on."""
        self._subscribers.append(subscriber)
        self.wants_text = self.wants_text or wants_text

    def start_turn(self, agent_id: str) -> Turn:
        """Publish the start of an agent's turn and return the turn."""
        number = next(self._turns)
        publish = partial(self._publish, number, agent_id)
        publish(EventKind.START, "")
        return Turn(number, publish)

    def _publish(self, turn: int, agent_id: str, kind: EventKind, text: str) -> None:
        event = TraceEvent(next(self._seqs), self._now_ms(), turn, agent_id, kind, text)
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception as error:  # noqa: BLE001 - an observer must not disturb the agents
                self._subscribers = [one for one in self._subscribers if one is not subscriber]
                with suppress(Exception):
                    self._on_failure(error)


class Turn:
    """A turn in progress.

    Args:
        number: Number of the turn, from 1, unique in the case.
        publish: Function that publishes an event of the turn, given its kind and text.
    """

    def __init__(self, number: int, publish: Callable[[EventKind, str], None]) -> None:
        self.number = number
        self._publish = publish

    def say(self, text: str) -> None:
        """Publish a piece of text."""
        if text:
            self._publish(EventKind.DELTA, text)

    def end(self) -> None:
        """Publish that the turn has ended or failed."""
        self._publish(EventKind.END, "")
