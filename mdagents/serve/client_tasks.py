"""Recognizes what a chat client asks on its own about a chat, such as a title for it."""

from __future__ import annotations

import re

_REACH = 600
"""Characters at both ends of a text in which a task is looked for."""
_MAKE = (
    r"\b(?:come up with|craft|creat(?:e|es|ing)|extract|generat(?:e|es|ing)|give|make|produce"
    r"|propose|provide|suggest|write)"
)
_TITLE = r" (?:an?|the) (?:(?!answer|no\b|without\b)[\w,'’-]{1,30} ){0,6}"
_CHAT = (
    r"(?:(?:an?|our|the|this)(?: user['’]s)? )?(?:[\w-]+ )?"
    r"(?:conversation|chat|dialogs?|dialogue|discussion|messages|prompt|query)\b"
)
_TASK = re.compile(
    # "Provide a concise, 5-word title for the conversation", "… that captures the essence of it"
    rf"{_MAKE}{_TITLE}"
    r"(?:title|headline|emoji|name)(?: with an emoji)?(?: as a title)?(?: \([^()\n]{1,40}\))?"
    rf" (?:for|of|that [a-z]{{1,20}}(?: the essence of)?) {_CHAT}"
    # "Give this conversation a name", "Summarize the conversation into a title"
    rf"|(?:{_MAKE}|\bsummari[sz]e) {_CHAT} (?:(?:in|into|as) )?an? (?:[\w-]{{1,30}} )?"
    r"(?:title|name)\b"
    # "Analyze this conversation and provide: 1. Its language 2. A concise title"
    rf"|\banaly[sz]e {_CHAT} and [a-z]{{1,20}}:[^?]{{0,160}}\ba (?:\w{{1,30}} )?title\b"
    # "Please summarize the above conversation and retain key information"
    r"|\bsummari[sz]e the (?:above|following|given|previous) (?:chat|conversation|dialogue)\b"
    r"|总结[^。\n]{0,8}(?:会话|对话)|(?:会话|对话)[^。\n]{0,30}标题",
    re.IGNORECASE,
)
"""A task about a chat; a question about titles and names may have the same words."""
_TRANSCRIPT = re.compile(
    r"\b(?:user|human|assistant|prompt|query)\b\W{0,3}:|\"role\"|<(?:chat_history|conversation|messages)>",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"\A\s*#+\s*Task:(?=.*<chat_history>)"
    r"|reflect the speaker['’]s likely facial expression"
    r"|a set of responses from (?:various|several|multiple|different) models"
    r"|choose and return the correct tool|Return an empty string if no tools match",
    re.IGNORECASE | re.DOTALL,
)
"""Tasks of Open WebUI, which are not about questions of a user."""
_FOR_MESSAGE = re.compile(
    # "Generate a short and concise title (max 6 words) based on this message:"
    rf"{_MAKE}{_TITLE}title (?:\([^()\n]{{1,40}}\) )?(?:for (?:an?|the|this) conversation )?"
    r"based on (?:the|this) (?:first |initial |user['’]s ){0,2}(?:message|query)\b"
    # "You must only respond with the title.", "RESPOND ONLY WITH THE TITLE TEXT."
    r"|\b(?:only (?:give|output|provide|reply|respond|return|write)(?: with)?"
    r"|(?:give|output|provide|reply|respond|return|write)(?: with)? only(?: with)?) the title\b"
    r"(?! of\b)",
    re.IGNORECASE,
)
"""A title for a message, whatever that is."""


def is_client_task(system: str, asked: str) -> bool:
    """Return whether a chat client asks about a chat, instead of a user about a question.

    Args:
        system: Text of the system prompt; empty without one.
        asked: Text of the user's message.
    """
    if _ALWAYS.search(asked) or _ALWAYS.search(system):
        return True
    places = (system[:_REACH], asked[:_REACH], asked[-_REACH:])
    if any(map(_FOR_MESSAGE.search, places)):
        return True
    return any(map(_TASK.search, places)) and bool(_TRANSCRIPT.search(asked))
