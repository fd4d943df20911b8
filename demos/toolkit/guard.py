"""Guards for untrusted input: ids that may name a file, and text that may enter a prompt."""

from __future__ import annotations

import re
import secrets
from functools import cache
from itertools import pairwise
from pathlib import Path

from mdagents_llm.errors import ConfigError
from mdagents_llm.text import clean, one_line

LONGEST = 4_000
"""Default maximum number of characters of a document in a prompt."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SENTENCE_END = re.compile(
    r"(?<=[.!?。！？])[\"'”’)\]]*\s+"  # includes closing quotes and brackets after the full stop
    r"|\n\s*\n\s*"
    r"|\n(?![^\S\n]*[a-zà-öø-ÿ])"  # a line that starts with a lowercase letter was only wrapped
)
_PART = re.compile(r"(?: ?\\?\||\t|;\s| [-–—/=]| ?→) ?|,(?=[^\W\d_])")
"""What parts of a sentence begin with, such as a cell of a row and a line of a cell."""

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
    """Return a random id that cannot be guessed."""
    return secrets.token_hex(16)


def valid_id(text: str, what: str) -> str:
    """Return the id if it may name a file: 1 to 64 letters, digits, `-`, `_`, `.`, no leading `.`.

    Args:
        text: Id to check.
        what: Kind of object that the id identifies, with its article, for the message.

    Raises:
        ConfigError: The id is not valid.
    """
    if not _ID.fullmatch(text):
        raise ConfigError(
            f"{text[:80]!r} is no id of {what}: 1 to 64 letters, digits, '-', '_' or '.' in it"
        )
    return text


def without_instructions(text: str) -> tuple[str, list[str]]:
    """Remove sentences of a document that address a model, such as "ignore the rules".

    Of a row of a table only the cell or the line of a cell is removed.

    This is a heuristic and only one layer of defense: documents are also fenced in prompts and
    cannot choose a route, and no number is taken from the model's own words.

    Args:
        text: Text of the document.

    Returns:
        The text with a note in place of each removed sentence, and the removed sentences.
    """
    kept: list[str] = []
    found: list[str] = []
    start = 0
    for end in [*_SENTENCE_END.finditer(text), None]:
        sentence = text[start : end.start() if end else len(text)]
        kept.append(_without_parts(sentence, found))
        if end:
            kept.append(end.group())
            start = end.end()
    return "".join(kept), found


def _without_parts(sentence: str, found: list[str]) -> str:
    """Return a sentence without its parts that address a model, which are added to `found`."""
    starts = [0, *(mark.start() for mark in _PART.finditer(sentence))]
    kept: list[str] = []
    parts: list[str] = []
    for start, end in pairwise([*starts, len(sentence)]):
        part = sentence[start:end]
        if _to_the_model().search(part):
            mark = _PART.match(part)
            kept.append((mark.group() if mark else "") + _LEFT_OUT)
            parts.append(part[mark.end() if mark else 0 :].strip())
        else:
            kept.append(part)
    left = "".join(kept)
    if _to_the_model().search(left):
        found.append(sentence.strip())
        return _LEFT_OUT
    found.extend(parts)
    return left


def untrusted(text: str, source: str, *, limit: int = LONGEST) -> str:
    """Return a document's text in a form that is safe to place in a prompt.

    The text is `fenced` and has no sentences that address the model.

    Args:
        text: Text of the document.
        source: Label in the fence, such as the document's id.
        limit: Maximum number of characters.
    """
    kept, _ = without_instructions(clean(text))
    return fenced(kept, source, limit=limit)


def fenced(text: str, source: str, *, limit: int = LONGEST) -> str:
    """Return a user's text, with all its sentences, fenced for a prompt.

    The fence has a random mark that the text cannot know. Invisible characters are removed, and
    text beyond `limit` is replaced by a note.

    Args:
        text: Text of the user.
        source: Label in the fence.
        limit: Maximum number of characters.
    """
    text = clean(text)
    if len(text) > limit:
        text = f"{text[:limit]} [… {len(text) - limit:,} more characters]"
    mark = secrets.token_hex(4)
    return f"<document {mark} {one_line(source)}>\n{text}\n</document {mark}>"
