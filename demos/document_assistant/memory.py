"""The memory of a session: one line per turn, and the documents in use."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten

from demos.document_assistant.schemas import Response, text_of
from demos.document_assistant.state import AgentState

LONGEST_SUMMARY = 2000
"""Maximum characters of a conversation's summary; the oldest lines are dropped first."""
MOST_DOCUMENTS = 12
"""Maximum number of documents in use in a conversation; the oldest are dropped first."""

_OF_A_QUESTION, _OF_AN_ANSWER = 120, 240  # characters in a line of the summary


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a session after a turn."""

    conversation_summary: str
    active_documents: list[str]


def remembered(state: AgentState, response: Response) -> Memory:
    """Return the memory of the session after the turn of `state`, which ended with `response`."""
    question = shorten(state.user_input, _OF_A_QUESTION, placeholder=" …")
    answer = shorten(text_of(response), _OF_AN_ANSWER, placeholder=" …")
    sources = f" [{', '.join(response.sources)}]" if response.sources else ""
    line = f"{state.turn}. {question} -> {answer}{sources}"
    lines = [*(state.conversation_summary or "").splitlines(), line]
    while len(lines) > 1 and len("\n".join(lines)) > LONGEST_SUMMARY:
        lines.pop(0)
    return Memory("\n".join(lines)[:LONGEST_SUMMARY], state.active_documents[-MOST_DOCUMENTS:])
