"""Finds summary fields without content: they repeat the prompt or other fields, or are made up.

Emptying a true field does more harm than keeping a false one. So each rule keeps the field when its
words are not enough evidence, as with a few words of shorthand ("MI, BP 80/50").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from exaid_core.checks.normal_form import Wording, is_unspaced, size_of
from exaid_core.placeholders import PLACEHOLDER

_FEWEST = 6
"""Minimum number of words about the patient for a field to be judged by them."""
_ENOUGH = 0.2
"""Minimum share of a field's words about the patient that the agents must have said.

Of 1,123 fields of this length that gemini-2.5-flash-lite wrote about English discussions, none has
less than half; of true fields written as hard cases in other languages, hardly any has less than
this.
"""
_DISCUSSION = 5
"""Minimum ratio of words about the patient in a discussion to those in a field.

In a shorter text, nobody may have said the words of a true field, so a field is kept if it contains
a single stem of the text.
"""
_SAID_IN_EXAMPLE = 2 / 3
"""Minimum share of copied example words that agents have said if the example fits their case."""
_SAME_LANGUAGE = 0.5
"""Minimum share of a summary's short words that a discussion in the same language contains."""
_FEWEST_SHORT = 3
"""Minimum number of different short words for recognizing a language."""
_COPIED = 0.5
"""Minimum share of a field copied from the prompt for the field to count as copied."""
_REPEATED = 6
"""Minimum number of words for a field to count as a repetition of a longer field."""


def empty_fields(fields: Mapping[str, str], said: str, prompt: str) -> tuple[str, ...]:
    """Return the names of the fields that report nothing that was said.

    Such a field repeats the prompt in words that no agent said, repeats two earlier fields, or has
    hardly any words about the patient that an agent said. The last rule is skipped if the summary
    and the discussion are in different languages, and for fields of few words.

    Args:
        fields: Text of each field by name, in order.
        said: Everything that the summary may report: text and ids of agents, earlier summaries.
        prompt: Instructions to the model; their example starts at the last `{`.
    """
    hints, of_instructions, of_example = _of_prompt(prompt)
    of_said, of_summary = Wording(said), Wording("\n".join(fields.values()))
    of_instructions = of_instructions - of_said.runs
    of_example = of_example - of_said.runs
    is_comparable = _is_same_language(of_summary, of_said)
    found: list[str] = []
    before: list[str] = []
    for name, written in fields.items():
        text = Wording(written)
        if written == PLACEHOLDER or not text.words:
            continue
        line = " ".join(text.words)
        told = size_of(of_said.tells(text))
        copied = text.share_of(of_example)
        if (
            line in hints
            or text.share_of(of_instructions) >= _COPIED
            or (copied >= _COPIED and told < copied * _SAID_IN_EXAMPLE * text.size)
            or _repeats(line, len(text.words), before) > 1
            or (is_comparable and _is_made_up(text, of_said, told))
        ):
            found.append(name)
        else:
            before.append(line)
    return tuple(found)


_Runs = frozenset[tuple[str, ...]]


@lru_cache(maxsize=8)
def _of_prompt(prompt: str) -> tuple[frozenset[str], _Runs, _Runs]:
    """Return the parts of the instructions, and the runs of instructions and example."""
    instructions, _, example = prompt.rpartition("{")
    hints = frozenset(" ".join(Wording(part).words) for part in re.split("[:\n]", instructions))
    of_instructions, of_example = (Wording(text).runs for text in (instructions, example))
    return hints, frozenset(of_instructions), frozenset(of_example)


def _is_same_language(summary: Wording, said: Wording) -> bool:
    if any(map(is_unspaced, summary.words)):
        return size_of(said.tells(summary)) >= _ENOUGH * summary.size
    short = summary.short_words
    return len(short) >= _FEWEST_SHORT and len(short & said.short_words) >= _SAME_LANGUAGE * len(
        short
    )


def _is_made_up(field: Wording, said: Wording, told: float) -> bool:
    if field.size < _FEWEST:
        return False
    amount = said.size_without_numbers
    if amount >= _DISCUSSION * field.size:
        return told < _ENOUGH * field.size
    line = " ".join(field.words)
    return amount >= field.size and not told and not any(stem in line for stem in said.about)


def _repeats(line: str, words: int, before: Sequence[str]) -> int:
    """Return how many of the earlier lines a line repeats."""
    return sum(line == earlier or (words >= _REPEATED and line in earlier) for earlier in before)
