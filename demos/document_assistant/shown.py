"""Formats documents, sessions, messages and replies as plain text for the dialogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap

from demos.document_assistant.assistant import Reply
from demos.document_assistant.citations import with_places
from demos.document_assistant.library import Document
from demos.document_assistant.schemas import NoAnswer, Response
from demos.toolkit.sessions import Message, Role, Session
from mdagents_llm.text import printable

_WIDTH = 96
_FROM_MEDIUM, _FROM_HIGH = 0.4, 0.75


def clean(text: str) -> str:
    """Return a text without control characters, so that it cannot affect the terminal."""
    return "\n".join(printable(line).rstrip() for line in text.splitlines())


def wrapped(text: str) -> str:
    """Return clean text, wrapped to the width of a terminal."""
    lines = clean(text).splitlines()
    return "\n".join(
        part for line in lines for part in wrap(line, _WIDTH, break_on_hyphens=False) or [""]
    )


def confidence_of(response: Response) -> str:
    """Return the model's stated confidence as a word: high, medium or low.

    The number is the model's guess about itself; with two digits it would look like a measurement.
    """
    if response.confidence >= _FROM_HIGH:
        return "high"
    return "medium" if response.confidence >= _FROM_MEDIUM else "low"


def documents_as_text(documents: Sequence[Document]) -> str:
    """Return one line per document: id, kind, date, title."""
    width = max((len(one.id) for one in documents), default=0)
    return "\n".join(clean(_document(one, width)) for one in documents)


def _document(document: Document, width: int) -> str:
    date = document.date.isoformat() if document.date else ""
    uploaded = "  (uploaded)" if document.scope else ""
    return f"  {document.id:<{width}}  {document.kind:<11}  {date:<10}  {document.title}{uploaded}"


def reply_as_text(reply: Reply, titles: Mapping[str, str], seconds: float) -> str:
    """Return a reply with the place behind each sentence, its sources, and the model's confidence.

    Args:
        reply: Reply of the assistant.
        titles: Document id -> title.
        seconds: Duration of the turn in seconds.
    """
    response = reply.response
    citations = () if isinstance(response, NoAnswer) else response.citations
    lines = [wrapped(with_places(reply.text, citations)), ""]
    if response.sources:
        lines += [_source(one, titles) for one in response.sources]
    else:
        lines.append("  source: none - no document was found or read for this")
    if not isinstance(response, NoAnswer):
        lines.append(f"  the model's confidence: {confidence_of(response)}")
    lines.append(f"  {reply.intent.intent_type}, {seconds:.1f} s")
    return "\n".join(lines)


def _source(document_id: str, titles: Mapping[str, str]) -> str:
    title = titles.get(document_id)
    return clean(f"  source: {document_id}" + (f" - {title}" if title else ""))


def messages_as_text(messages: Iterable[Message]) -> str:
    """Return the messages of a conversation as text."""
    said = (
        f"{'you' if one.role is Role.USER else 'assistant'}: {one.text.strip()}" for one in messages
    )
    return "\n".join(wrapped(one) for one in said) or "Nothing has been said in this session yet."


def sessions_as_text(sessions: Iterable[Session], current: str) -> str:
    """Return one line per session, with a mark at the current one."""
    return "\n".join(
        clean(
            f"{'*' if one.id == current else ' '} {one.id}  {one.updated:%Y-%m-%d %H:%M} UTC  "
            f"{one.turns} {'turn' if one.turns == 1 else 'turns'}"
        )
        for one in sessions
    )
