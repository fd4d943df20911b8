"""What the agents of another framework say, on its way to EXAID.

The framework must not notice: nothing here waits, and nothing raises.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextvars import copy_context
from functools import partial
from threading import RLock
from typing import Protocol, Self
from weakref import WeakValueDictionary

from exaid_core.alerts.critical_alerts import find_alert
from exaid_core.channel import MAX_AGENT_ID_CHARS, one_line
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.bus import Turn as Published
from exaid_core.trace.events import TraceEvent
from mdagents_llm.reasoning_tags import ThinkTags, without_reasoning

_LOG = logging.getLogger("exaid_core")

LONGEST_DATA = 4_000
"""Most characters of what is not a model's words, such as a tool's result: a file that a tool has
read is not said by anybody, and reading it for alerts would take time from the agents."""

_ROOM_FOR_A_NUMBER = 10  # characters
_CONTROL_FLOW = "GraphBubbleUp"  # LangGraph's: an interrupt, or a command to the graph above


class Listener(Protocol):
    """An `EXAID` or a `SyncExaid`."""

    def on_event(self, event: TraceEvent) -> None:
        """Take an event and return at once; from any thread."""


class Feed:
    """Tells EXAID what agents say; from any thread, in one order. Made by `of`."""

    def __init__(self, exaid: Listener) -> None:
        self._exaid = exaid  # lives as long as this, which is found by its id
        self._bus = TraceBus(on_failure=self.failed)
        self._bus.subscribe(exaid.on_event)
        self._lock = RLock()
        # EXAID's tasks must not belong to the step of the framework during which they begin: a
        # model of EXAID that is made with the same framework would be overheard, too.
        self._context = copy_context()  # of which each event has a copy: one can be within another
        # Loads the word lists here, and not in the middle of the first reply.
        find_alert("No arrest, SpO2 99 %.")
        self._speaking: set[str] = set()
        self._has_failed = False

    @classmethod
    def of(cls, exaid: Listener) -> Self:
        """Return the feed of an EXAID: one for all who overhear for it at the same time.

        So they know of each other's speakers, and say nothing twice.

        Args:
            exaid: Who is told.

        Raises:
            TypeError: It is no `EXAID` and no `SyncExaid`.
        """
        if not callable(getattr(exaid, "on_event", None)) or isinstance(exaid, type):
            raise TypeError(f"exaid must be an EXAID or a SyncExaid, not {exaid!r:.60}")
        with _FINDING:
            feed = _FEEDS.get((cls, id(exaid)))
            if not isinstance(feed, cls):
                feed = _FEEDS[cls, id(exaid)] = cls(exaid)
            return feed

    def start_turn(self, agent: str) -> Turn:
        """Return the turn of an agent that begins to speak.

        Args:
            agent: Any name. While another turn of this name is under way it is `name (2)` and so
                on: EXAID would take both for one text.
        """
        with self._lock:
            agent_id = self._free(_shown(agent))
            self._speaking.add(agent_id)
            published = self._context.copy().run(self._bus.start_turn, agent_id)
            return Turn(self, agent_id, published)

    def say(self, agent: str, text: str) -> None:
        """Take a whole turn of an agent."""
        turn = self.start_turn(agent)
        turn.say(text)
        turn.end()

    def failed(self, error: Exception) -> None:
        """Log that something could not be told to EXAID: the first time, and without its text."""
        if not self._has_failed:
            self._has_failed = True
            words = "EXAID cannot hear all that is said: %s"
            _LOG.warning(words, type(error).__name__)

    def _publish(self, agent_id: str, published: Published, text: str | None) -> None:
        with self._lock:
            if text is None:
                self._speaking.discard(agent_id)
                self._context.copy().run(published.end)
            else:
                self._context.copy().run(published.say, text)

    def _free(self, name: str) -> str:
        agent_id, number = name, 1
        while agent_id in self._speaking:
            number += 1
            agent_id = f"{name} ({number})"
        return agent_id


_FEEDS: WeakValueDictionary[tuple[type[Feed], int], Feed] = WeakValueDictionary()
"""The feeds in use, by their type and the id of their EXAID."""
_FINDING = RLock()


class Turn:
    """A turn of an agent.

    Args:
        feed: Of which it is a turn.
        agent_id: Whose turn it is.
        published: The same turn on the bus.
    """

    def __init__(self, feed: Feed, agent_id: str, published: Published) -> None:
        self.agent_id = agent_id
        """Different from those of all other turns under way."""
        self._publish = partial(feed._publish, agent_id, published)  # noqa: SLF001 - its other half
        self.has_spoken = False
        """Whether the agent has said anything but reasoning."""
        self._tags = ThinkTags()
        self._is_over = False

    def say(self, text: str) -> None:
        """Take a piece of what the agent says; reasoning in tags is left out, also in pieces."""
        self._tell(self._tags.feed(text))

    def say_call(self, text: str) -> None:
        """Take a piece of a call of a tool, which may come before the reasoning is closed."""
        self._tell(self._tags.end() + text)

    def flush(self) -> None:
        """Tell what was kept back because it could have become a tag."""
        self._tell(self._tags.end())

    def _tell(self, text: str) -> None:
        if text and not self._is_over:
            self.has_spoken = True
            self._publish(text)

    def end(self, error: BaseException | None = None, what: str = "") -> None:
        """End the turn, if it is under way.

        Args:
            error: With which it has failed. Its message is not told, since it may hold anything;
                nor is a cancellation or an interrupt of the graph, which is no failure of an agent.
            what: Has failed.
        """
        self.flush()
        if error is not None and not is_control_flow(error):
            words = f"{what} [failed: {type(error).__name__}]".lstrip()
            self._tell(f"\n{words}" if self.has_spoken else words)
        if not self._is_over:
            self._is_over = True
            self._publish(None)


def is_control_flow(error: BaseException) -> bool:
    """Return whether an exception is how a framework stops or redirects, and no failure."""
    if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt | SystemExit):
        return True
    return any(kind.__name__ == _CONTROL_FLOW for kind in type(error).__mro__)


def as_text(value: object) -> str:
    """Return data as one text, cut to `LONGEST_DATA`: text as it is, else JSON if it can be.

    Reasoning in tags is left out: a tool may be an agent.
    """
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            value = str(value)
    value = without_reasoning(value)
    left_out = len(value) - LONGEST_DATA
    return f"{value[:LONGEST_DATA]} [… {left_out} more characters]" if left_out > 0 else value


def _shown(agent: object) -> str:
    name = one_line(agent if isinstance(agent, str) else str(agent))
    return name[: MAX_AGENT_ID_CHARS - _ROOM_FOR_A_NUMBER].strip() or "agent"
