"""The memory of an expert in a debate: a line for each message, within a fixed number of words.

An agent has no chat history. Without a memory it would receive a reply without knowing its own
question, and repeat itself; with the whole history, tokens would grow with the square of the
number of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mdagents.agents.events import DebateMessage
from mdagents.agents.replies import CHARS_PER_WORD
from mdagents.teams.clipping import clip

MEMORY_WORDS = 80
"""Maximum number of words of messages in a prompt, at `CHARS_PER_WORD` characters each."""
LINE_WORDS = 20
"""Maximum number of words of one of these messages."""


def memory(
    wrote: Sequence[DebateMessage], read: Sequence[DebateMessage], name: Callable[[str], str]
) -> str:
    """Return the last message to each recipient, then the messages read before, newest first.

    The expert's own last messages are always included, shortened if there are many; messages that
    it read take the words that are left.

    Args:
        wrote: Messages that the expert has written, oldest first.
        read: Messages that it has read in earlier turns, oldest first.
        name: `agent_id` -> name of that expert in the panel.

    Returns:
        Text for a prompt; empty when there is nothing to remember.
    """
    last = {message.recipient: message for message in wrote}.values()
    own = [(f"You to {name(m.recipient)}", m) for m in sorted(last, key=_when, reverse=True)]
    told = [(f"{name(m.sender)} to you", m) for m in sorted(read, key=_when, reverse=True)]
    if not own and not told:
        return ""
    words = min(LINE_WORDS, MEMORY_WORDS // max(len(own), 1))
    lines = [
        f"- {who}: {clip(' '.join(message.text.split()), words * CHARS_PER_WORD)}"
        for who, message in (own + told)[: MEMORY_WORDS // words]
    ]
    return "\n".join(["Earlier messages, newest first:", *lines])


def _when(message: DebateMessage) -> tuple[int, int]:
    return message.round, message.turn
