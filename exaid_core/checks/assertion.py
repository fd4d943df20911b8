"""Decides whether a clause affirms a finding that it names: present, now, in this patient.

The method is ConText (Harkema et al. 2009, https://doi.org/10.1016/j.jbi.2009.05.002): cues before
or after the finding, each with a scope that ends at the end of the clause or at a new statement.
The cues are our own, in the files `assertion.txt` of `exaid_core/checks/words`.
"""

from __future__ import annotations

import re
from functools import cache

from exaid_core.checks.cue_files import CHINESE_OR_JAPANESE, THAI, any_of, read_cues
from exaid_core.checks.cue_finder import CueFinder

REACH = 160
"""Number of characters before and after a finding that are searched for cues."""

_KINDS_BEFORE = ("no cue", "condition", "past", "denial")
"""Kinds of cues before a finding; of several at one position, the first kind wins."""


def is_affirmed(text: str, start: int, end: int) -> bool:
    """Return whether the text states that the finding `text[start:end]` is present in this patient.

    A finding is not affirmed if the clause denies it ("no evidence of", "was ruled out"), makes it
    a condition or a risk ("if … occurs", "to prevent"), or places it in the past or in another
    person ("history of", "three years ago", "his father had"). A suspected finding counts as
    affirmed.

    Args:
        text: Text normalized by `exaid_core.checks.cue_files.normal`; for English text, ASCII
            apostrophes are enough.
        start: Start index of the finding.
        end: End index of the finding.
    """
    before = _clause_end().split(text[max(start - REACH, 0) : start])[-1]
    after = _clause_end().split(text[end : end + REACH], maxsplit=1)[0]
    if _cue_after().match(after.replace("n't", " not")):
        return False
    return not any(
        _reaches(found.cue.kind, before[found.end :], after)
        for found in _cues_before().find(before)
    )


def _reaches(kind: str, between: str, after: str) -> bool:
    """Return whether a cue applies to the finding that follows after the text `between`."""
    if kind == "no cue":
        return False
    if kind == "condition":
        return not _any("now").search(between)
    if kind == "past" and _any("now", "present").search(between):
        return False
    if "," in between and _stated_of_it().match(after):
        return False
    return not _new_statement().search(between)


@cache
def _cues_before() -> CueFinder:
    cues = [cue for cue in read_cues("assertion") if cue.kind in _KINDS_BEFORE]
    return CueFinder(sorted(cues, key=lambda cue: _KINDS_BEFORE.index(cue.kind)))


@cache
def _any(*kinds: str) -> re.Pattern[str]:
    return re.compile(any_of(read_cues("assertion"), *kinds), re.IGNORECASE)


@cache
def _clause_end() -> re.Pattern[str]:
    unspaced = f"[{CHINESE_OR_JAPANESE}{THAI}]"
    return re.compile(
        # A period, but not the one in "e.g." or 0.5.
        r"[;!?\n—。؛؟،]|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\b[Dd]r)(?<!\b[Zz])(?<!\b[Zz]\.n)"
        rf"(?<!\b[Zz]\. n)\.(?=\s|(?-i:[A-Z])|{unspaced}|$)"
        # Chinese separates list items with a different comma.
        rf"|(?<={unspaced}),|,(?={unspaced})"
        rf"|{any_of(read_cues('assertion'), 'clause end')}",
        re.IGNORECASE,
    )


@cache
def _stated_of_it() -> re.Pattern[str]:
    cues = read_cues("assertion")
    return re.compile(rf"\s+(?:{any_of(cues, 'and')}\s)?{any_of(cues, 'verb')}", re.IGNORECASE)


@cache
def _new_statement() -> re.Pattern[str]:
    """Return a pattern for new statements: "no fever, then he developed …", "…, … occurred"."""
    cues = read_cues("assertion")
    return re.compile(
        rf"(?:,|{any_of(cues, 'and')})\s*(?:\w+\s+){{0,3}}?{any_of(cues, 'now', 'moment', 'verb')}",
        re.IGNORECASE,
    )


@cache
def _cue_after() -> re.Pattern[str]:
    cues = read_cues("assertion")
    links = rf"(?:{any_of(cues, 'link')}\s+){{0,5}}"
    return re.compile(
        rf"[\s*_:=()–,-]{{0,4}}(?:{links}{any_of(cues, 'not there')}|{any_of(cues, 'after')})"
        rf"|\s*[:=(–-]\s*{any_of(cues, 'none')}|[^,]{{0,25}}{any_of(cues, 'long ago')}",
        re.IGNORECASE,
    )
