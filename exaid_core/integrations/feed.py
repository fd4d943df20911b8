"""Forwards the turns of another framework's agents to EXAID.

The framework must not notice: nothing here waits, and nothing here raises.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextvars import copy_context
from functools import partial
from threading import RLock
from typing import Protocol, Self
from weakref import WeakValueDictionary

from pydantic import BaseModel

from exaid_core.channel import MAX_AGENT_ID_CHARS
from exaid_core.checks.alerts import find_alert
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.bus import Turn as Published
from exaid_core.trace.events import TraceEvent
from mdagents_llm.reasoning_tags import ThinkTags, without_reasoning_of_data
from mdagents_llm.text import between, one_line

_LOG = logging.getLogger("exaid_core")

LONGEST_DATA = 4_000
"""Maximum characters of text that no model wrote, such as a tool's result.

A file that a tool has read is not said by anybody, and searching it for alerts would slow down the
agents.
"""

_LONGEST_READ = 100_000
"""Maximum characters in which reasoning is looked for, before the text is cut to `LONGEST_DATA`.

All of a large result would take seconds, for which the event loop would stand still.
"""
_TYPE, _BASE64 = r"data:[\w/.+;=-]{1,100},", r"[A-Za-z0-9+/]{200,}={0,2}"
_BINARY_URL = re.compile(_TYPE + _BASE64)  # such as a picture
_BINARY_PART = re.compile(rf'([\[, ]*)"(?:{_TYPE})?{_BASE64}"')  # a string of JSON
_LEFT_OUT = "[binary data]"
_BEGINS_JSON = re.compile(r'\s*(?:\{\s*"|\[\s*[\[{"\d])')

_ROOM_FOR_A_NUMBER = 10  # characters for a suffix such as " (2)"
_CONTROL_FLOW = "GraphBubbleUp"  # in LangGraph, an interrupt or a command to the parent graph


class Listener(Protocol):
    """An `EXAID` or a `SyncExaid`."""

    def on_event(self, event: TraceEvent) -> None:
        """Accept an event from any thread and return at once."""


class Feed:
    """Sends turns of agents to EXAID, from any thread and in one order. Created by `of`."""

    def __init__(self, exaid: Listener) -> None:
        self._exaid = exaid  # kept alive by this feed, which is found by its id
        self._bus = TraceBus(on_failure=self.failed)
        self._bus.subscribe(exaid.on_event)
        self._lock = RLock()
        # EXAID's tasks must not run in the context of the framework's current step: otherwise a
        # model of EXAID that uses the same framework would be overheard as well.
        self._context = copy_context()  # copied for each event, since events can be nested
        # Load the word lists now, not in the middle of the first reply.
        find_alert("No arrest, SpO2 99 %.")
        self._speaking: set[str] = set()
        self._has_failed = False

    @classmethod
    def of(cls, exaid: Listener) -> Self:
        """Return the feed of an EXAID, which all concurrent integrations share.

        A shared feed knows all speakers, so that nothing is said twice.

        Args:
            exaid: An `EXAID` or a `SyncExaid` that receives the turns.

        Raises:
            TypeError: `exaid` is neither an `EXAID` nor a `SyncExaid`.
        """
        if not callable(getattr(exaid, "on_event", None)) or isinstance(exaid, type):
            raise TypeError(f"exaid must be an EXAID or a SyncExaid, not {exaid!r:.60}")
        with _FINDING:
            feed = _FEEDS.get((cls, id(exaid)))
            if not isinstance(feed, cls):
                feed = _FEEDS[cls, id(exaid)] = cls(exaid)
            return feed

    def start_turn(self, agent: str) -> Turn:
        """Start the turn of an agent and return it.

        Args:
            agent: Name of the agent. While another turn of this name is in progress, it becomes
                `name (2)` and so on, because EXAID would merge the two texts.
        """
        with self._lock:
            agent_id = self._free(_shown(agent))
            self._speaking.add(agent_id)
            published = self._context.copy().run(self._bus.start_turn, agent_id)
            return Turn(self, agent_id, published)

    def say(self, agent: str, text: str) -> None:
        """Publish a whole turn of an agent."""
        turn = self.start_turn(agent)
        turn.say(text)
        turn.end()

    def failed(self, error: Exception) -> None:
        """Log that EXAID missed something, once per feed and without the error's message."""
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
"""Feeds in use, by their type and the id of their EXAID."""
_FINDING = RLock()


class Turn:
    """A turn of an agent of another framework.

    Args:
        feed: Feed that the turn belongs to.
        agent_id: Id of the agent whose turn it is.
        published: The turn on the bus.
    """

    def __init__(self, feed: Feed, agent_id: str, published: Published) -> None:
        self.agent_id = agent_id
        """Agent id, unique among the turns in progress."""
        self._publish = partial(feed._publish, agent_id, published)  # noqa: SLF001 - its other half
        self.has_spoken = False
        """Whether the agent has said anything besides reasoning."""
        self.is_over = False
        """Whether the turn has ended."""
        self._tags = ThinkTags()
        self._end_of_part = ""

    def say(self, text: str, *, is_new_part: bool = False) -> None:
        """Publish a piece of the agent's text without tagged reasoning, even if a tag is split.

        Args:
            text: The piece.
            is_new_part: Whether the piece begins another part of the reply than the text before it.
        """
        if text:
            lead = between(self._end_of_part, text) if is_new_part else ""
            self._end_of_part = text[-1]
            self._tell(self._tags.feed(lead + text))

    def say_call(self, text: str) -> None:
        """Publish a piece of a tool call, which may come before a reasoning tag is closed."""
        self._end_of_part = text[-1:]
        self._tell(self._tags.end() + text)

    def flush(self) -> None:
        """Publish text that was held back because it could have become a tag."""
        self._tell(self._tags.end())

    def _tell(self, text: str) -> None:
        if text and not self.is_over:
            self.has_spoken = True
            self._publish(text)

    def end(self, error: BaseException | None = None, what: str = "") -> None:
        """End the turn if it is in progress.

        Args:
            error: Exception with which the turn failed; None if it succeeded. Its message is not
                published, since it may contain anything. A cancellation or an interrupt of the
                graph is not published at all, since it is not a failure of an agent.
            what: Name of the thing that failed, such as a tool.
        """
        self.flush()
        if error is not None and not is_control_flow(error):
            words = f"{what} [failed: {type(error).__name__}]".lstrip()
            self._tell(f"\n{words}" if self.has_spoken else words)
        if not self.is_over:
            self.is_over = True
            self._publish(None)


def is_control_flow(error: BaseException) -> bool:
    """Return whether an exception stops or redirects a framework rather than signals a failure."""
    if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt | SystemExit):
        return True
    return any(kind.__name__ == _CONTROL_FLOW for kind in type(error).__mro__)


def as_text(value: object) -> str:
    """Return data as text cut to `LONGEST_DATA`: strings unchanged, else JSON if possible.

    Tagged reasoning is left out, because a tool may be an agent; so are pictures in Base64, which
    would leave no room for the text beside them.
    """
    if not isinstance(value, str):
        try:
            value = _beginning_of_json(value)
        except (TypeError, ValueError, RuntimeError):  # also changed meanwhile, or too deep
            value = str(value)
    value = _BINARY_URL.sub(_LEFT_OUT, value)
    if len(value) > _LONGEST_READ:
        visible = value[:_LONGEST_READ]
        if not _BEGINS_JSON.match(visible):  # JSON that is cut is no JSON, and values mention tags
            visible = without_reasoning_of_data(visible)
        return f"{visible[:LONGEST_DATA]} [… more]"
    visible = without_reasoning_of_data(value)
    left_out = len(visible) - LONGEST_DATA
    return f"{visible[:LONGEST_DATA]} [… {left_out} more characters]" if left_out > 0 else visible


def _beginning_of_json(value: object) -> str:
    """Return a value as JSON, or a beginning of it that is longer than `_LONGEST_READ`."""
    parts, length = [], 0
    for part in _JSON.iterencode(value):
        if binary := _BINARY_PART.fullmatch(part):
            part = f'{binary[1]}"{_LEFT_OUT}"'
        parts.append(part)
        length += len(part)
        if length > _LONGEST_READ:
            break
    return "".join(parts)


def _fields(value: object) -> object:
    if isinstance(value, BaseModel):  # such as a part of a tool's output
        return value.model_dump(exclude_none=True)
    raise TypeError(f"{type(value).__name__} is no JSON")


_JSON = json.JSONEncoder(ensure_ascii=False, default=_fields)


def _shown(agent: object) -> str:
    name = one_line(agent if isinstance(agent, str) else str(agent))
    return name[: MAX_AGENT_ID_CHARS - _ROOM_FOR_A_NUMBER].strip() or "agent"
