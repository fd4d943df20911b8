"""Fields of a summary that report nothing: they repeat the prompt, other fields, or no agent.

To empty a field that is true does more harm than to leave one that is not: so each rule leaves the
field as it is where words cannot tell, as after a few words of shorthand ("MI, BP 80/50").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from exaid_core.schema.agent_summary import PLACEHOLDER
from exaid_core.wording import Wording, is_unspaced, runs_of, size_of

_FEWEST = 6
"""Words about the patient that a field needs to be judged by them."""
_ENOUGH = 0.2
"""Share of a field's words about the patient that agents say in a discussion. Of 1,123 fields of
this length that gemini-2.5-flash-lite wrote about English ones, none has less than half; of true
ones that were written in other languages to be hard, hardly any has less than this.
"""
_DISCUSSION = 5
"""Words about the patient that a discussion has for each of a field. In a shorter text, true words
may be those of nobody, so a field is left if it has a part of a single one that was said."""
_SAID_IN_EXAMPLE = 2 / 3
"""Share of the words of the prompt's example that agents have said if it is their case, too."""
_SAME_LANGUAGE = 0.5
"""Share of its short words that two texts of one language have in common."""
_FEWEST_SHORT = 3
"""Different short words that a language is told by."""
_COPIED = 0.5
"""Share of a field that is copied from the prompt from which on it is looked at."""
_REPEATED = 6
"""Words from which on a field repeats those that it is a part of."""


def empty_fields(fields: Mapping[str, str], said: str, prompt: str) -> tuple[str, ...]:
    """Return the names of the fields that report nothing of what was said.

    Such a field repeats the prompt where no agent said so, repeats two fields before it, or has
    hardly a word about the patient that an agent said. The last is left open when the summary is in
    another language than the discussion, and where a field has few words.

    Args:
        fields: Name -> text, in order.
        said: All that the summary may report: text and ids of agents, earlier summaries.
        prompt: The instructions to the model; from the last `{` on, their example.
    """
    instructions, _, example = prompt.rpartition("{")
    hints = {" ".join(Wording(part).words) for part in re.split("[:\n]", instructions)}
    of_said, of_summary = Wording(said), Wording("\n".join(fields.values()))
    of_instructions = set(runs_of(Wording(instructions).words)) - of_said.runs
    of_example = set(runs_of(Wording(example).words)) - of_said.runs
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
    amount = size_of(stem for stem in said.about if not stem.isdecimal())
    if amount >= _DISCUSSION * field.size:
        return told < _ENOUGH * field.size
    line = " ".join(field.words)
    return amount >= field.size and not told and not any(stem in line for stem in said.about)


def _repeats(line: str, words: int, before: Sequence[str]) -> int:
    """Return how many lines a line repeats."""
    return sum(line == earlier or (words >= _REPEATED and line in earlier) for earlier in before)
