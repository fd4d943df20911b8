"""Tells whether a clause affirms a finding that it names: present, now, in this patient.

The method is that of ConText (Harkema et al. 2009, https://doi.org/10.1016/j.jbi.2009.05.002): cues
before or after the finding, each with a scope that ends with the clause or with a new statement.
The cues are our own, kept in `assertion_cues.txt`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from exaid_core.term_list import read_terms, with_gaps

_CUES_FILE = Path(__file__).with_name("assertion_cues.txt")

_REACH = 160
"""Characters before and after a finding in which cues are looked for."""

# A full stop (not that of "e.g." or of 0.5), a new line, a "but".
_CLAUSE_END = re.compile(
    r"[;!?\n—]|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\b[Dd]r)\.(?=\s|[A-Z]|$)"
    r"|\b(?:[Bb]ut|[Hh]owever|[Aa]lthough|(?<!as )[Tt]hough|[Ww]hereas|(?<!not )[Yy]et|[Ee]xcept"
    r"|[Nn]evertheless)\b"
)

_VERB = (
    r"(?:is|are|was|were|has|had|have|becomes?|became|develop(?:s|ed)|went|goes|presents?|presented"
    r"|suffer(?:s|ed)|progress(?:es|ed)|arrived|found|deteriorated|collapsed|remains|occur(?:s|red)"
    r"|ensued|happened|persists?|followed|confirmed|ongoing)\b"
)
# "no fever, then he developed …", "no fever, … occurred"
_NEW_STATEMENT = re.compile(
    rf"(?:,|\b(?:and|then|who)\b)\s*(?:\w+\s+){{0,3}}?(?:now|currently|today|suddenly|{_VERB})\b",
    re.IGNORECASE,
)
_STATED_OF_IT = re.compile(rf"\s+(?:then )?{_VERB}", re.IGNORECASE)
_NOW = re.compile(r"\b(?:now|currently)\b", re.IGNORECASE)
_BACK_FROM_THE_PAST = re.compile(
    r"\b(?:now|currently|today|present(?:s|ed|ing)|found|brought|admitted|arriv(?:es|ed|ing))\b",
    re.IGNORECASE,
)

_LINKING_VERBS = (
    r"(?:(?:is|was|were|are|has|have|had|been|be|being|can|could|did|does|do|now|considered|deemed"
    r"|seems?|appears?|thought|to|very|highly|clinically|therefore|thus|already|fully|successfully"
    r"|safely|both|all)(?:\s+|(?=n't))){0,5}"
)
_NOT_THERE = (
    r"(?:ruled out|excluded|unlikely|less likely|improbable|absent|negative|denied|averted"
    r"|prevented|avoided|resolved|(?:not|n't|never) (?:yet )?(?:been )?(?:present|suspected|likely"
    r"|evident|seen|found|confirmed|documented|observed|reported|the case"
    r"|(?:occur|develop|happen)\w*))"
)
_MAY_COME = (
    r"(?:may|might|could|can|would|will) (?:\w+ )?"
    r"(?:occur|develop|follow|ensue|happen|result|arise)"
)
_ONLY_A_TOPIC = (
    r"(?:prophylaxis|prevention|precautions?|protocols?|drills?|simulation|training|guidelines?"
    r"|risk|algorithm)"
)
_LONG_AGO = (
    r"(?:(?:years?|months?|weeks?) ago|in (?:19|20)\d\d|last (?:year|month)|as a child"
    r"|in childhood)"
)
_CUE_AFTER = re.compile(
    rf"[\s*_:=()–,-]{{0,4}}(?:{_LINKING_VERBS}{_NOT_THERE}|{_MAY_COME}|{_ONLY_A_TOPIC}"
    rf"|if (?:it|they|this|untreated|left))\b"
    rf"|\s*[:=(–-]\s*(?:no|none|nil|n/a)\b|[^,]{{0,25}}\b{_LONG_AGO}\b",
    re.IGNORECASE,
)


def is_affirmed(text: str, start: int, end: int) -> bool:
    """Return whether the finding `text[start:end]` is said to be present, now, in this patient.

    It does not if the clause denies it ("no evidence of", "was ruled out"), makes it a condition or
    a risk ("if … occurs", "to prevent"), or puts it into the past or into another person ("history
    of", "three years ago", "his father had"). A finding that is only suspected is affirmed.

    Args:
        text: Text in which apostrophes are ASCII.
        start: Where the finding begins.
        end: Where it ends.
    """
    before = _CLAUSE_END.split(text[max(start - _REACH, 0) : start])[-1]
    after = _CLAUSE_END.split(text[end : end + _REACH], maxsplit=1)[0]
    if _CUE_AFTER.match(after):
        return False
    return not any(
        _reaches(cue.lastgroup, before[cue.end() :], after)
        for cue in _cues_before().finditer(before)
    )


def _reaches(kind: str | None, between: str, after: str) -> bool:
    """Return whether a cue applies to the finding that follows after the text `between`."""
    if kind == "no_cue":
        return False
    if kind == "condition":
        return not _NOW.search(between)
    if kind == "past" and _BACK_FROM_THE_PAST.search(between):
        return False
    if "," in between and _STATED_OF_IT.match(after):
        return False
    return not _NEW_STATEMENT.search(between)


@cache
def _cues_before() -> re.Pattern[str]:
    by_kind: dict[str, list[str]] = {}
    for line in read_terms(_CUES_FILE):
        kind, _, cue = line.partition(":")
        by_kind.setdefault(kind.replace(" ", "_"), []).append(
            # Groups in the file do not capture: the last group that matched gives the kind.
            with_gaps(re.sub(r"\((?!\?)", "(?:", cue.strip()))
        )
    kinds = "|".join(f"(?P<{kind}>{'|'.join(cues)})" for kind, cues in by_kind.items())
    return re.compile(rf"(?<!\w)(?:{kinds})(?!\w)", re.IGNORECASE)
