"""What comes from outside: ids that may name a file, and text that may stand in a prompt."""

from __future__ import annotations

import re
import secrets
from functools import cache
from pathlib import Path

from mdagents_llm.errors import ConfigError

LONGEST = 4_000
"""Characters of a document that stand in a prompt, where nothing else is asked for."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Control characters but tab and line feed, and what is not seen or turns the text around."""
_SENTENCE_END = re.compile(
    r"(?<=[.!?。！？])[\"'”’)\]]*\s+"  # with what is behind its full stop
    r"|\n\s*\n\s*"
    r"|\n(?![^\S\n]*[a-zà-öø-ÿ])"  # a line that goes on with a small letter was only wrapped
)

_LEFT_OUT = "[left out: a sentence that addresses the model]"


@cache
def _to_the_model() -> re.Pattern[str]:
    lines = Path(__file__).with_name("instructions.txt").read_text(encoding="utf-8").split("\n")
    kinds: dict[str, str] = {}
    patterns: list[str] = []
    for line in lines:
        name, is_kind, words = line.partition(" = ")
        if is_kind:
            kinds[name] = words
        elif line and not line.startswith("#"):
            for name, words in kinds.items():
                line = line.replace(name, words)
            patterns.append(line.replace(" ", r"\s+"))
    return re.compile("|".join(patterns), re.IGNORECASE)


def new_id() -> str:
    """Return a random id that nobody guesses."""
    return secrets.token_hex(16)


def valid_id(text: str, what: str) -> str:
    """Return an id that may name a file: 1 to 64 letters, digits, `-`, `_`, `.`, no `.` first.

    Args:
        text: The id.
        what: What it is of, with its article, for the message.

    Raises:
        ConfigError: It is no such id.
    """
    if not _ID.fullmatch(text):
        raise ConfigError(
            f"{text[:80]!r} is no id of {what}: 1 to 64 letters, digits, '-', '_' or '.' in it"
        )
    return text


def seen(text: str) -> str:
    """Return a text without control characters and others that are not seen or turn it around."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def without_instructions(text: str) -> tuple[str, list[str]]:
    """Leave out the sentences of a document that address a model, such as "ignore the rules".

    A heuristic, and one net of several: what a document says is fenced in prompts besides, chooses
    no route, and no number comes from the model's own words.

    Args:
        text: Of a document.

    Returns:
        The text, with a note in place of each such sentence, and these sentences.
    """
    kept: list[str] = []
    found: list[str] = []
    start = 0
    for end in [*_SENTENCE_END.finditer(text), None]:
        sentence = text[start : end.start() if end else len(text)]
        if _to_the_model().search(sentence):
            found.append(sentence.strip())
            kept.append(_LEFT_OUT)
        else:
            kept.append(sentence)
        if end:
            kept.append(end.group())
            start = end.end()
    return "".join(kept), found


def untrusted(text: str, source: str, *, limit: int = LONGEST) -> str:
    """Return a document's text as it may stand in a prompt.

    It is `fenced`, without sentences that address the model.

    Args:
        text: What the document says.
        source: What it is, an id for example; stands in the fence.
        limit: The most characters.
    """
    clean, _ = without_instructions(seen(text))
    return fenced(clean, source, limit=limit)


def fenced(text: str, source: str, *, limit: int = LONGEST) -> str:
    """Return what a user wrote as it may stand in a prompt, with all its sentences.

    It stands between marks that it cannot know, without characters that are not seen, and ends
    after `limit` characters with a note.

    Args:
        text: What was written.
        source: What it is; stands in the fence.
        limit: The most characters.
    """
    clean = seen(text)
    if len(clean) > limit:
        clean = f"{clean[:limit]} [… {len(clean) - limit:,} more characters]"
    mark = secrets.token_hex(4)
    source = " ".join(seen(source).split())
    return f"<document {mark} {source}>\n{clean}\n</document {mark}>"
