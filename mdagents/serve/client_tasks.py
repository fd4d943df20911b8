"""Recognizes what a chat client asks on its own about a chat, such as a title for it."""

from __future__ import annotations

import re

_REACH = 600
"""Characters at both ends of a text in which a task is looked for."""
_MAKE = (
    r"\b(?:analy[sz]e|come up with|craft|create|generate|give|make|name|produce|propose|provide"
    r"|suggest|summari[sz]e|write)\b"
)
_TITLE = r"\b(?:titles?|headline|emoji|topic|a (?:\w+ )?name)\b"
_CHAT = r"\b(?:conversation|chat(?: history)?|dialogs?|dialogue|discussion)\b"
_TASK = re.compile(
    # "Provide a concise title for the conversation", "… as a title for the prompt"
    rf"{_MAKE}[^.?!\n]{{0,80}}{_TITLE}[^.?!\n]{{0,80}}(?:{_CHAT}|\b(?:prompt|query|messages)\b)"
    # "Give this conversation a name", "Analyze this conversation and provide: … 2. A title"
    rf"|{_MAKE}[^.?!\n]{{0,40}}{_CHAT}[^?]{{0,160}}{_TITLE}",
    re.IGNORECASE,
)
"""A task about a chat; a question about titles and names may have the same words."""
_TRANSCRIPT = re.compile(
    r"\b(?:user|human|assistant|prompt|query)\b\W{0,3}:|\"role\"|<(?:conversation|messages)>",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"\A\s*#+\s*Task:(?=.*<chat_history>)"
    r"|reflect the speaker['’]s likely facial expression"
    r"|a set of responses from (?:various|several|multiple|different) models"
    r"|choose and return the correct tool",
    re.IGNORECASE | re.DOTALL,
)
"""Tasks of Open WebUI, which are not about questions of a user."""


def is_client_task(system: str, asked: str) -> bool:
    """Return whether a chat client asks about a chat, instead of a user about a question.

    Args:
        system: Text of the system prompt; empty without one.
        asked: Text of the user's message.
    """
    if _ALWAYS.search(asked) or _ALWAYS.search(system) or _TASK.search(system[:_REACH]):
        return True
    is_task = _TASK.search(asked[:_REACH]) or _TASK.search(asked[-_REACH:])
    return bool(is_task and _TRANSCRIPT.search(asked))
