"""Fields of a summary that report nothing: they repeat the prompt, another field, or no agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from exaid_core.schema.agent_summary import PLACEHOLDER
from exaid_core.words import is_spaced, word_spans

_STEM = 5
"""Characters of a word that are compared: `hypotensive` is `hypotension`."""
_SHORT = 3
"""Most characters of a word that is about grammar and not about the patient, in most languages."""
_FEWEST = 3
"""Words about the patient that a field needs to be judged by them."""
_ENOUGH = 0.25
"""Share of a field's words about the patient that agents must have said. Of 1,972 sentences that
gemini-2.5-flash-lite wrote about 251 parts of real discussions, none has less."""
_SAME_LANGUAGE = 0.5
"""Share of its short words that two texts of one language have in common."""
_RUN = 4
"""Words that follow one another in the same order: what is copied, not written."""
_REPEATED = 6
"""Words from which on a field may not be a part of another one."""


def empty_fields(fields: Mapping[str, str], said: str, prompt: str) -> tuple[str, ...]:
    """Return the names of the fields that report nothing of what was said.

    Such a field repeats the prompt where no agent said so, repeats a field before it, or has hardly
    a word about the patient that an agent said. The last is left open when the summary is in
    another language than the discussion.

    Args:
        fields: Name -> text, in order.
        said: All that the summary may report: text and ids of agents, earlier summaries.
        prompt: The instructions to the model, with their example.
    """
    of_said = _words(said)
    stems, runs = {_stem(word) for word in of_said}, set(_runs(of_said))
    of_prompt = set(_runs(_words(prompt))) - runs
    is_comparable = _is_same_language(_words("\n".join(fields.values())), set(of_said))
    found: list[str] = []
    before: list[str] = []
    for name, text in fields.items():
        words = _words(text)
        if text == PLACEHOLDER or not words:
            continue
        line = " ".join(words)
        of_field = list(_runs(words))
        copied = sum(run in of_prompt for run in of_field)
        about = {_stem(word) for word in words if not _is_short(word) or word.isdecimal()}
        told = len(about & stems)
        if (
            (copied and 2 * copied >= len(of_field))
            or line in before
            or (len(words) >= _REPEATED and any(line in earlier for earlier in before))
            or (is_comparable and len(about) >= _FEWEST and told < _ENOUGH * len(about))
        ):
            found.append(name)
        else:
            before.append(line)
    return tuple(found)


def _words(text: str) -> list[str]:
    """Return the words in lower case; of a script without spaces, its characters in pairs."""
    if is_spaced(text):
        return re.findall(r"[^\W_]+", text.lower())
    parts = [text[start:end].lower() for start, end in word_spans(text)]
    return [part for part in parts if part.isalnum()]


def _is_short(word: str) -> bool:
    return len(word) <= _SHORT and is_spaced(word)


def _is_same_language(words: list[str], of_said: Set[str]) -> bool:
    short = {word for word in words if _is_short(word) and word.isalpha()}
    if not all(map(is_spaced, words)):
        return any(not is_spaced(word) for word in of_said)
    return len(short) >= _FEWEST and len(short & of_said) >= _SAME_LANGUAGE * len(short)


def _stem(word: str) -> str:
    return word[:_STEM]


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN)), strict=False)
