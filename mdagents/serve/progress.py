"""The debate in brief: one line for each event of a question that a reader would want to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdagents.agents.events import (
    DebateMessage,
    Event,
    Recruited,
    Routed,
    Rung,
    TurnBegan,
    TurnEnded,
)
from mdagents.settings import RoutedBy

_LONGEST = 300  # characters of a message or a reason


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a debate in brief, without its line break."""

    text: str
    is_of_reply: bool
    """Whether it tells of a reply; without any so far, the question may yet end in an error."""


class Progress:
    """Observer of a question that writes lines.

    Args:
        write: Receives each line.
    """

    def __init__(self, write: Callable[[Line], None]) -> None:
        self._write = write
        self._roles: dict[str, str] = {}
        self.lines: list[str] = []
        """Lines so far."""

    def tell(self, event: Event) -> None:
        """Write the line of an event; most events have none."""
        text = self._line(event)
        if text:
            self.lines.append(text)
            is_chosen = isinstance(event, Routed) and event.by is RoutedBy.FORCED
            has_failed = isinstance(event, TurnEnded) and event.failed
            self._write(Line(text, not (is_chosen or has_failed)))

    def _line(self, event: Event) -> str:
        match event:
            case TurnBegan():
                self._roles[event.agent] = event.role
                return ""
            case Routed(level=level) if level is not None:
                return f"Team: {level.value} ({event.by.value}). {_short(event.reason)}".rstrip()
            case Recruited():
                return f"Recruited: {', '.join(member.role for member in event.members)}"
            case TurnEnded(failed=True):
                return f"{self._name(event.agent)}: no reply"
            case TurnEnded(answer=str() as answer):
                sure = "" if event.confidence is None else f", confidence {event.confidence:.2f}"
                return f"{self._name(event.agent)}: {answer}{sure}"
            case DebateMessage():
                sender, recipient = self._name(event.sender), self._name(event.recipient)
                return f"{sender} to {recipient}: {_short(event.text)}"
            case Rung():
                votes = ", ".join(f"{letter} {count}" for letter, count in event.votes.items())
                return f"{event.level.value}: {votes}. {_short(event.why)}"
            case _:
                return ""

    def _name(self, agent: str) -> str:
        return self._roles.get(agent, agent)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
