"""Quotes trace text in prompts: as data, never as instructions.

The author of a trace may try to end the data early or to hide text from the reader. So each text
becomes one JSON string, without invisible characters, inside a delimiter that it cannot contain.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from mdagents_llm.text import clean

MAX_AGENT_ID_CHARS = 100

_NONCE_CHARS = 16

_NOT_IN_AN_ID = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def shown_id(agent_id: str) -> str:
    """Return `agent_id` as it is stored and displayed: cleaned and stripped of white space."""
    return clean(agent_id).strip()


def valid_agent_id(agent_id: str) -> str:
    """Validate an agent id and return it as `shown_id` does.

    Raises:
        TypeError: The id is not a string.
        ValueError: The id is empty, longer than `MAX_AGENT_ID_CHARS` characters, or has a line
            break or another control character.
    """
    if not isinstance(agent_id, str):
        raise TypeError(f"an agent id must be a string, not {type(agent_id).__name__}")
    if _NOT_IN_AN_ID.search(agent_id):
        raise ValueError(f"agent id {agent_id!a:.120} has a line break or control character")
    cleaned = shown_id(agent_id)
    if not cleaned:
        raise ValueError("an agent id must not be empty")
    if len(cleaned) > MAX_AGENT_ID_CHARS:
        raise ValueError(
            f"agent id {cleaned[:20]!r}… has {len(cleaned)} characters, "
            f"at most {MAX_AGENT_ID_CHARS} are allowed"
        )
    return cleaned


def as_data(segments: Sequence[tuple[str, str]]) -> str:
    """Return a prompt block that holds `segments` as data.

    Args:
        segments: Pairs of agent id and text, in reading order.

    Returns:
        An opening delimiter, one line of JSON `{"agent": …, "text": …}` per segment, and a closing
        delimiter, each on a line of its own. Equal segments give equal blocks.
    """
    lines = [_json_line(agent_id, text) for agent_id, text in segments]
    nonce = _nonce("\n".join(lines))
    return "\n".join([f"<trace {nonce}>", *lines, f"</trace {nonce}>"])


def _json_line(agent_id: str, text: str) -> str:
    line = json.dumps(
        {"agent": clean(agent_id), "text": clean(text)}, ensure_ascii=False, separators=(",", ":")
    )
    # Angle brackets occur only inside JSON strings, where their escapes mean the same.
    return line.translate(_ESCAPES)


def _nonce(content: str) -> str:
    # With a random nonce, every prompt would be new and no recorded reply could be replayed. A hash
    # of the content is as safe: to forge the delimiter, a text would have to contain a hash of
    # itself. The same segments always give the same prompt.
    return hashlib.sha256(content.encode()).hexdigest()[:_NONCE_CHARS]
