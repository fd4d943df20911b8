"""Fields of a summary that report nothing: they repeat the prompt, other fields, or no agent.

To empty a field that is true does more harm than to leave one that is not: so each rule leaves the
field as it is where words cannot tell, as after a few words of shorthand ("MI, BP 80/50").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from exaid_core.schema.agent_summary import PLACEHOLDER
from exaid_core.words import UNSPACED

_STEM = 5
"""Characters of a word that are compared: `hypotensive` is `hypotension`."""
_SHORT = 3
"""Most characters of a word that is about grammar and not about the patient, in most languages."""
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
_RUN = 4
"""Words that follow one another in the same order: what is copied, not written."""
_COPIED = 0.5
"""Share of a field that is copied from the prompt from which on it is looked at."""
_REPEATED = 6
"""Words from which on a field repeats those that it is a part of."""

_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
_SHORT_WORD = re.compile(rf"(?<!\d )\b[^\W\d_]{{1,{_SHORT}}}\b")  # not the unit of a number
_ARABIC_ARTICLE = re.compile("^[وفبك]?ال")
_ACRONYM_LENGTHS = range(2, 7)


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
    hints = {" ".join(_Text(part).words) for part in re.split("[:\n]", instructions)}
    of_said, of_summary = _Text(said), _Text("\n".join(fields.values()))
    of_instructions = set(_runs(_Text(instructions).words)) - of_said.runs
    of_example = set(_runs(_Text(example).words)) - of_said.runs
    is_comparable = _is_same_language(of_summary, of_said)
    found: list[str] = []
    before: list[str] = []
    for name, written in fields.items():
        text = _Text(written)
        if written == PLACEHOLDER or not text.words:
            continue
        line = " ".join(text.words)
        told = _size(of_said.tells(text))
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


class _Text:
    """The words of a text, without accents; of scripts without spaces, characters in pairs."""

    def __init__(self, text: str) -> None:
        marked = "" if text.isascii() else unicodedata.normalize("NFKD", text)
        self._plain = (
            "".join(c for c in marked if not unicodedata.category(c).startswith("M")) or text
        )
        self._as_written = [word for run in _WORD.findall(self._plain) for word in _pairs(run)]
        self.words = [word.casefold() for word in self._as_written]

    @cached_property
    def about(self) -> set[str]:
        """Stems of its words about the patient."""
        return {_stem(word) for word in self.words if not _is_short(word)}

    @cached_property
    def stems(self) -> set[str]:
        return {_stem(word) for word in self.words}

    @cached_property
    def size(self) -> float:
        return _size(self.about)

    @cached_property
    def runs(self) -> set[tuple[str, ...]]:
        return set(_runs(self.words))

    @cached_property
    def short_words(self) -> set[str]:
        """Those of grammar: no acronym, no unit."""
        found = _SHORT_WORD.findall(self._plain)
        return {word.casefold() for word in found if not word.isupper()}

    @cached_property
    def acronyms(self) -> set[str]:
        return {
            word.casefold()
            for word in self._as_written
            if len(word) in _ACRONYM_LENGTHS and word.isalpha() and word.isupper()
        }

    @cached_property
    def initials(self) -> str:
        return "".join(word[0] for word in self.words)

    def tells(self, other: _Text) -> set[str]:
        """Return the stems about the patient of another text that this one has.

        An acronym is what it stands for: `MI` is `myocardial infarction`.
        """
        told = other.about & self.stems
        told |= {_stem(word) for word in other.acronyms if word in self.initials}
        for acronym in self.acronyms:
            start = other.initials.find(acronym)
            if start >= 0:
                told |= set(map(_stem, other.words[start : start + len(acronym)]))
        return told & other.about

    def share_of(self, runs: set[tuple[str, ...]]) -> float:
        """Return how much of it is these runs of words, 0 to 1."""
        own = list(_runs(self.words))
        return sum(run in runs for run in own) / len(own) if own else 0.0


def _pairs(run: str) -> Iterable[str]:
    if len(run) > 2 and _UNSPACED_RUN.fullmatch(run):
        return (run[start : start + 2] for start in range(len(run) - 1))
    return [run]


def _size(stems: Iterable[str]) -> float:
    """Return how many words these are; a word of a script without spaces has about two pairs."""
    return sum(0.5 if _UNSPACED_RUN.match(stem) else 1 for stem in stems)


def _is_short(word: str) -> bool:
    return len(word) <= _SHORT and not word.isdecimal() and not _UNSPACED_RUN.match(word)


def _is_same_language(summary: _Text, said: _Text) -> bool:
    if any(map(_UNSPACED_RUN.match, summary.words)):
        return _size(said.tells(summary)) >= _ENOUGH * summary.size
    short = summary.short_words
    return len(short) >= _FEWEST_SHORT and len(short & said.short_words) >= _SAME_LANGUAGE * len(
        short
    )


def _is_made_up(field: _Text, said: _Text, told: float) -> bool:
    if field.size < _FEWEST:
        return False
    amount = _size(stem for stem in said.about if not stem.isdecimal())
    if amount >= _DISCUSSION * field.size:
        return told < _ENOUGH * field.size
    line = " ".join(field.words)
    return amount >= field.size and not told and not any(stem in line for stem in said.about)


def _repeats(line: str, words: int, before: Sequence[str]) -> int:
    """Return how many lines a line repeats."""
    return sum(line == earlier or (words >= _REPEATED and line in earlier) for earlier in before)


def _stem(word: str) -> str:
    return _ARABIC_ARTICLE.sub("", word)[:_STEM]


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN)), strict=False)
