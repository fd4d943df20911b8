"""Terminal output of a case: the running node, its text, and EXAID's summaries in boxes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

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
from exaid_core import AgentNames, AgentSummary, render_summary
from mdagents_llm.text import printable

NAMES = AgentNames(
    {
        "orchestrator": "Orchestrator",
        "cardiology": "CardiologyAgent",
        "laboratory": "LaboratoryAgent",
        "synthesis": "SynthesisAgent",
    }
)
BOX = """\
┌─ Agents: $agents
├─ Action: $action
├─ Reasoning: $reasoning
├─ Findings: $findings
├─ Uncertainty: $uncertainty_confidence
├─ Flags: $flags
└─ Next Steps: $next_steps"""

_NARROWEST, _WIDEST = 30, 100  # columns
_INDENT = "   "
_IN_FIELDS = "synthesis"
"""Node whose text is not streamed, because it is printed as the recommendation."""


class Console:
    """Prints events in whole lines and holds summary boxes back until the agent stops speaking.

    Args:
        write: Callback that prints a line.
        columns: Width of the terminal in columns.
    """

    def __init__(self, write: Callable[[str], None], columns: int) -> None:
        self._write = write
        self._width = min(max(columns - 1, _NARROWEST), _WIDEST)
        self._line = ""
        self._speaks = False
        self._boxes: list[AgentSummary] = []
        """Summaries waiting for the end of the turn."""

    def show(self, event: Event) -> None:
        """Print an event."""
        match event:
            case CaseBegan(_, text):
                self._rule("═ Case")
                self._block(text)
            case NodeBegan(number, node):
                self._rule(f"─ {number} {NAMES.name_of(node)}")
                self._speaks = True
            case Said(_, node, text):
                if node != _IN_FIELDS:
                    self._stream(text)
            case NodeEnded(_, node, failure):
                self._end_line()
                if failure:
                    self._block(f"{node} failed; the case continues without it: {failure}")
                self._end_turn()
            case Summarised(summary):
                self._boxes.append(summary)
                if not self._speaks:
                    self._end_turn()
            case Recommended(text, _, at_the_limit):
                self._rule("═ Recommendation, for a physician to check")
                self._block(text)
                if at_the_limit:
                    self._block(
                        f"Stopped by the limit of steps: the orchestrator wanted {at_the_limit} "
                        "once more."
                    )
            case CaseEnded(failure, exaid):
                self._end_line()
                self._end_turn()
                if failure:
                    self._block(f"failed: {failure}")
                if exaid not in ("", "off"):
                    self._block(f"EXAID: {exaid}")

    def note(self, text: str) -> None:
        """Print a message of the program itself."""
        for line in textwrap.wrap(printable(text), self._width):
            self._write(line)

    def _rule(self, title: str) -> None:
        self._write("\n" + f"{title} ".ljust(self._width, title[0]))

    def _block(self, text: str) -> None:
        for line in text.split("\n"):
            indent = _INDENT + "  " * line.startswith("- ")
            for part in self._wrapped(line, indent) or [""]:
                self._write(part)

    def _wrapped(self, text: str, indent: str) -> list[str]:
        return textwrap.wrap(
            printable(text), self._width, initial_indent=_INDENT, subsequent_indent=indent
        )

    def _stream(self, text: str) -> None:
        """Add a piece of text and print the lines that are full."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._block(line)
        *full, rest = self._wrapped(self._line, _INDENT) or [""]
        if full:
            for line in full:
                self._write(line)
            # `wrap` drops a trailing space, which separates this word from the next: put it back.
            self._line = rest.strip() + " " * self._line.endswith((" ", "\t"))

    def _end_line(self) -> None:
        if self._line.strip():
            self._block(self._line)
        self._line = ""

    def _end_turn(self) -> None:
        self._speaks = False
        for summary in self._boxes:
            self._write("")
            self._box(summary)
        self._boxes = []

    def _box(self, summary: AgentSummary) -> None:
        for line in render_summary(summary, BOX, NAMES).split("\n"):
            edge = "   " if line.startswith("└") else "│  "
            for part in textwrap.wrap(printable(line), self._width, subsequent_indent=edge):
                self._write(part)
