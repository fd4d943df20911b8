"""Decides whether a text affirms a finding that it names: present, now, in this patient.

The method is ConText (Harkema et al. 2009, https://doi.org/10.1016/j.jbi.2009.05.002): cues before
or after the finding, each with a scope that ends at the end of the clause or at a new statement.
The cues are English: `words/en/assertion.txt`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from exaid_core.checks.cue_files import LETTER, Cue, any_of, read_cues
from exaid_core.checks.cue_finder import CueFinder

REACH = 160
"""Number of characters before and after a finding that are searched for cues."""

_PAST = ("history", "past")
_DENYING = ("order", "negation")

_PLAIN_VALUE = re.compile(r"(?=.*\d)(?:->|[^<>≤≥])*", re.DOTALL)  # and no threshold
_BOUND = re.compile(
    r"(?<!-)>|[<≤≥]|\b(?:less|under|below|greater|more|over|above)\b", re.IGNORECASE
)
_APART = re.compile(r"[,:]|\s-\s")
_OBJECT_AND_IN = re.compile(r"\w,?\s+(?:now )?in\s+\Z", re.IGNORECASE)
_OBJECT_AND_COLON = re.compile(r"\w(?<!following)\s*:\s", re.IGNORECASE)
_OTHER_OBJECT = re.compile(  # "without oxygen his", but not "without a" or "without signs of"
    r"(?!\s*(?:an?|the|any|his|her)\s+\Z)[^(:]*\b(?!(?:of|in|or|nor|with|to)\b)\w+\s*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?]\s+(?=[A-Z])|\n")


def is_affirmed(text: str, start: int, end: int) -> bool:
    """Return whether the text states that the finding `text[start:end]` is present in this patient.

    A finding is not affirmed if the clause denies it ("no evidence of", "was ruled out"), makes it
    a condition or a risk ("if … occurs", "to prevent"), or places it in the past or in another
    person ("history of", "three years ago", "his father had"). A suspected finding counts as
    affirmed.

    Args:
        text: English text with ASCII apostrophes.
        start: Start index of the finding.
        end: End index of the finding.
    """
    finding = text[start:end]
    before = _clause_end().split(text[max(start - REACH, 0) : start])[-1]
    after = _clause_end().split(text[end : end + REACH], maxsplit=1)[0]
    if _cue_after().match(after.replace("n't", " not")):
        return False
    return not any(
        _reaches(str(cue.lastgroup), before[cue.end() :], finding, after)
        for cue in _cue_before().finditer(before)
    )


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of a text, in order."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return list(pairwise([0, *ends, len(text)]))


def is_general(sentence: str) -> bool:
    """Return whether a sentence speaks of no patient in particular.

    Such a sentence states knowledge about diseases and drugs without naming the patient ("Septic
    shock is a common cause of death"), or reports patients of the literature.

    Args:
        sentence: English text with ASCII apostrophes.
    """
    if _finder("literature").occurs(sentence):
        return True
    return not _finder("patient").occurs(sentence) and _finder("general").occurs(sentence)


def _reaches(kind: str, between: str, finding: str, after: str) -> bool:
    """Return whether a cue applies to the finding that follows after the text `between`."""
    if kind == "no_cue" or (kind in _DENYING and _stands_alone(between, finding)):
        return False
    # "Risk of aspiration, GCS 5": a value is measured, whatever is denied or feared before it.
    is_value = kind in (*_DENYING, "denial", *_PAST) and _PLAIN_VALUE.fullmatch(finding)
    if is_value and (_APART.search(between) or _any("given").search(between)):
        return False
    if kind == "threshold":
        return _BOUND.search(finding) is not None
    if kind == "condition":
        return ": " not in between and not _any("now").search(between)
    if kind in _PAST and _any("present").search(between):
        return False
    if kind == "history" and _OBJECT_AND_IN.search(between):
        return False
    if kind == "order" and _OBJECT_AND_COLON.search(between):
        return False
    if kind == "order" and is_value and _OTHER_OBJECT.fullmatch(between):
        return _BOUND.search(finding) is not None
    if "," in between and _stated_of_it().match(after):
        return False
    return not _new_statement().search(between)


def _stands_alone(between: str, finding: str) -> bool:
    """Return whether a finding after "no fever, " is no part of the denied list.

    A measured value is none ("no chest pain, SpO2 70%"), nor is a state ("no trauma, comatose",
    "no fever, in shock").
    """
    if any(map(str.isdigit, finding)):
        return "," in between or _any("and").search(between) is not None
    first, comma, last = between.rpartition(",")
    if not comma or last.strip() not in ("", "and", "in", "now in"):
        return False
    if last.rstrip().endswith("in"):
        return True
    is_state = _any("state").match(finding) is not None
    return is_state and _any("state").search(first) is None  # "not comatose, unresponsive or …"


def _cues(kind: str) -> list[Cue]:
    return [cue for cue in read_cues("assertion") if cue.kind == kind]


@cache
def _finder(kind: str) -> CueFinder:
    return CueFinder(_cues(kind))


@cache
def _any(kind: str) -> re.Pattern[str]:
    return re.compile(any_of(read_cues("assertion"), kind), re.IGNORECASE)


@cache
def _cue_before() -> re.Pattern[str]:
    # Of several kinds that match at one position, the first counts. Their common word boundaries
    # are checked once, not once per kind.
    groups = (
        f"(?P<{kind.replace(' ', '_')}>{'|'.join(cue.words() for cue in _cues(kind))})"
        for kind in ("no cue", "condition", "threshold", *_PAST, *_DENYING, "denial")
    )
    return re.compile(rf"(?<!{LETTER})(?=\w)(?:{'|'.join(groups)})(?!{LETTER})", re.IGNORECASE)


@cache
def _clause_end() -> re.Pattern[str]:
    return re.compile(
        # A period, but not the one in "e.g." or 0.5.
        r"[;!?\n—]|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\b[Dd]r)\.(?=\s|(?-i:[A-Z])|$)"
        rf"|{_any('clause end').pattern}",
        re.IGNORECASE,
    )


@cache
def _stated_of_it() -> re.Pattern[str]:
    return re.compile(rf"\s+(?:{_any('and').pattern}\s)?{_any('new').pattern}", re.IGNORECASE)


@cache
def _new_statement() -> re.Pattern[str]:
    """Return a pattern for new statements: "no fever, then he developed …", "…, … occurred"."""
    return re.compile(
        rf"(?:[,:]|{_any('and').pattern})\s*(?:\w+\s+){{0,3}}?{_any('new').pattern}", re.IGNORECASE
    )


@cache
def _cue_after() -> re.Pattern[str]:
    links = rf"(?:{_any('link').pattern}\s+){{1,5}}"
    # Behind a comma or colon the denial ends its clause: "BP 70/40, no urine output" denies none.
    ends = rf"(?=\W*\Z|\s*[,)(|–-]|\s+{_any('denied by').pattern})"
    denied = _any("denied").pattern
    return re.compile(
        rf"[\s*_:=()|–,-]{{0,4}}(?:{links}{denied}|{denied}{ends}|{_any('after').pattern})"
        rf"|[\s*_]{{0,4}}(?!no\b){denied}"
        rf"|[^,]{{0,25}}{_any('long ago').pattern}",
        re.IGNORECASE,
    )
