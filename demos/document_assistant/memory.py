"""What a session remembers of its turns: a line each, and the documents that were used."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten

from demos.document_assistant.schemas import Response, text_of
from demos.document_assistant.state import AgentState

LONGEST_SUMMARY = 2000
"""Characters of the summary of a conversation; its oldest lines go first."""
MOST_DOCUMENTS = 12
"""Documents that a conversation holds to be in use; the oldest go first."""

_OF_A_QUESTION, _OF_AN_ANSWER = 120, 240  # characters in a line of the summary


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered after a turn."""

    conversation_summary: str
    active_documents: list[str]


def remembered(state: AgentState, response: Response) -> Memory:
    """Return what the session remembers after the turn of `state`, which ended in `response`."""
    question = shorten(state.user_input, _OF_A_QUESTION, placeholder=" …")
    answer = shorten(text_of(response), _OF_AN_ANSWER, placeholder=" …")
    sources = f" [{', '.join(response.sources)}]" if response.sources else ""
    line = f"{state.turn}. {question} -> {answer}{sources}"
    lines = [*(state.conversation_summary or "").splitlines(), line]
    while len(lines) > 1 and len("\n".join(lines)) > LONGEST_SUMMARY:
        lines.pop(0)
    return Memory("\n".join(lines)[:LONGEST_SUMMARY], state.active_documents[-MOST_DOCUMENTS:])
