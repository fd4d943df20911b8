"""The event log of the page: a page that connects late still receives every event."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from typing import Any

from demos.cdss_example.console import NAMES
from demos.cdss_example.events import (
    CaseBegan,
    CaseEnded,
    Event,
    NodeBegan,
    NodeEnded,
    Recommended,
    Said,
    Summarised,
)
from exaid_core.templates import LABELS, flags

Message = dict[str, Any]


class EventLog:
    """Stores events as messages and sends each page those that it has not received.

    Consecutive pieces of text are merged into one message, so memory use grows with the text and
    not with the number of pieces. Adding an event never waits for a page.
    """

    def __init__(self) -> None:
        self._name = secrets.token_hex(4)
        self._messages: list[Message] = []
        self._news = asyncio.Event()
        self._is_closed = False

    def add(self, event: Event) -> None:
        """Add an event."""
        last = self._messages[-1] if self._messages else {}
        if isinstance(event, Said) and (last.get("is"), last.get("run")) == ("said", event.number):
            last["text"] += event.text
        else:
            self._messages.append(_message(event))
        self._wake()

    def close(self) -> None:
        """End the streams of all pages once they have received every message."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def since(self, seen: str) -> AsyncGenerator[tuple[str, list[Message]]]:
        """Yield pairs of (id, messages) until the log is closed.

        Args:
            seen: Last id that the page received. If it is empty or from another log, the page
                receives everything, after a message that makes it clear its display.
        """
        index, chars = self._place(seen)
        is_new = (index, chars) == (0, 0)
        while True:
            news = self._news
            batch: list[Message] = [{"is": "anew"}] if is_new else []
            for message in self._messages[index:]:
                text = message.get("text", "")
                if message["is"] == "said":
                    if text[chars:]:
                        batch.append({**message, "text": text[chars:]})
                else:
                    batch.append(message)
                chars = 0
            if self._messages:  # the last message may still grow
                index = len(self._messages) - 1
                is_text = self._messages[-1]["is"] == "said"
                index, chars = (
                    (index, len(self._messages[-1]["text"])) if is_text else (index + 1, 0)
                )
            if batch:
                is_new = False
                yield f"{self._name}-{index}-{chars}", batch
            elif self._is_closed:
                return
            else:
                await news.wait()

    def _place(self, seen: str) -> tuple[int, int]:
        name, _, place = seen.partition("-")
        index, _, chars = place.partition("-")
        numbers = (index + chars).isascii() and index.isdecimal() and chars.isdecimal()
        if name != self._name or not numbers or len(place) > 30 or int(index) > len(self._messages):
            return 0, 0
        return int(index), int(chars)


def _message(event: Event) -> Message:
    match event:
        case CaseBegan(case_id, text):
            return {"is": "case", "id": case_id, "case": text}
        case NodeBegan(number, node):
            return {"is": "began", "run": number, "node": node, "name": NAMES.name_of(node)}
        case Said(number, _, text):
            return {"is": "said", "run": number, "text": text}
        case NodeEnded(number, node, failure):
            return {"is": "ended", "run": number, "node": node, "failure": failure}
        case Summarised(summary):
            fields = [[label, getattr(summary, name)] for name, label in LABELS.items()]
            agents = [NAMES.name_of(agent) for agent in summary.agents]
            return {"is": "summary", "agents": agents, "fields": fields, "flags": flags(summary)}
        case Recommended(_, recommendation, at_the_limit):
            fields = [[name.replace("_", " "), text] for name, text in recommendation.items()]
            return {"is": "recommended", "fields": fields, "limit": at_the_limit}
        case CaseEnded(failure, exaid):
            return {"is": "over", "failure": failure, "exaid": exaid}
