"""Searches a text for hundreds of cues at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from ahocorasick_rs import AhoCorasick

from exaid_core.checks.cue_files import LETTER, Cue, folded


class Found(NamedTuple):
    """A cue in a text."""

    start: int
    end: int
    cue: Cue


class CueFinder:
    """Finds what one regular expression with all cues as alternatives would find, but faster.

    Most texts contain hardly any cues. So the literals that the cues need are searched first, all
    in one pass (Aho–Corasick), and only the cues whose literal occurs are matched in full.

    Args:
        cues: Cues to find; of several that match at one position, the first wins.
        before_a_digit: Whether a digit or an underscore may follow a cue.
    """

    def __init__(self, cues: Iterable[Cue], *, before_a_digit: bool = False) -> None:
        self._cues = tuple(cues)
        self._before_a_digit = before_a_digit
        self._patterns: dict[tuple[int, bool], re.Pattern[str]] = {}  # compiled on first use
        self._always: set[int] = set()
        self._needing: dict[str, set[int]] = {}
        for index, cue in enumerate(self._cues):
            needed = needed_literals(folded(cue.expression))
            if not needed:
                self._always.add(index)
            for literal in needed:
                self._needing.setdefault(literal, set()).add(index)
        self._literals = list(self._needing)
        self._automaton = AhoCorasick(self._literals)

    def find(self, text: str) -> Iterator[Found]:
        """Yield the cues in a text normalized by `normal`, in order and without overlap.

        Time is linear in the length of the text.
        """
        spans = sorted(
            (match.start(), index, match.end())
            for index in self._candidates(text)
            for match in self._pattern(index, text.isascii()).finditer(text)
        )
        covered = 0
        for start, index, end in spans:
            if start >= covered:
                covered = end
                yield Found(start, end, self._cues[index])

    def occurs(self, text: str) -> bool:
        """Return whether a text normalized by `normal` contains any of the cues."""
        return any(
            self._pattern(index, text.isascii()).search(text) for index in self._candidates(text)
        )

    def _candidates(self, text: str) -> set[int]:
        """Return the indices of the cues whose literal occurs in a text."""
        candidates = set(self._always)
        for literal in set(self._automaton.find_matches_as_strings(folded(text), overlapping=True)):
            candidates |= self._needing[literal]
        return candidates

    def _pattern(self, index: int, for_ascii: bool) -> re.Pattern[str]:
        if (index, for_ascii) not in self._patterns:
            pattern = self._cues[index].pattern(before_a_digit=self._before_a_digit)
            if for_ascii:  # means the same there, and is faster
                pattern = pattern.replace(LETTER, r"\w")
            self._patterns[index, for_ascii] = re.compile(pattern, re.IGNORECASE)
        return self._patterns[index, for_ascii]


_Literals: TypeAlias = frozenset[str]

_TOKEN = re.compile(
    r"(?P<skipped>\(\?<?[=!])|(?P<opens>\((?:\?[-a-z]*:)?)|(?P<closes>\))|(?P<bar>\|)"
    r"|(?P<optional>(?:[?*]|\{0,\d+\})\??)|(?P<repeat>(?:\+|\{[\d,]+\})\??)"
    r"|(?P<other>\\\w|\[[^\]]*\]|[ .^$])|(?P<letter>\\?.)"
)


def needed_literals(expression: str) -> frozenset[str]:
    """Return literals at least one of which occurs in every match; empty if unknown.

    Among the parts that every match must contain, the longest is chosen. Only the regular
    expression syntax of the cue files is supported.
    """
    return _alternatives(_TOKEN.finditer(expression))


def _alternatives(tokens: Iterator[re.Match[str]]) -> _Literals:
    """Return the needed literals of the alternatives up to the end of the group."""
    branches: list[_Literals] = []
    parts: list[_Literals] = [_Literals()]  # required by the branch, in order
    run = ""  # letters just before the current token

    def end_of_run() -> None:
        nonlocal run
        if run:
            parts.append(frozenset({run}))
            run = ""

    def end_of_branch() -> None:
        end_of_run()
        branches.append(max(parts, key=lambda part: min(map(len, part), default=0)))
        parts[:] = [_Literals()]

    for token in tokens:
        match token.lastgroup:
            case "letter":
                run += token[0][-1]
            case "optional" if run:
                run = run[:-1]
                end_of_run()
            case "optional":
                parts.pop()
            case "opens":
                end_of_run()
                parts.append(_alternatives(tokens))
            case "skipped":
                end_of_run()
                _alternatives(tokens)
                parts.append(_Literals())
            case "bar":
                end_of_branch()
            case "closes":
                break
            case _:
                end_of_run()
                parts.append(_Literals())
    end_of_branch()
    return frozenset().union(*branches) if all(branches) else _Literals()
