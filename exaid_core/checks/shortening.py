"""Shortens long texts without changing the meaning of what is left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from exaid_core.checks.alerts import find_alerts
from exaid_core.checks.drugs import drugs
from exaid_core.checks.quantities import plain
from exaid_core.checks.schedules import is_schedule, tells_schedule
from exaid_core.checks.shortening_patterns import (
    ALLERGY_TO,
    ANAPHYLAXIS,
    ANTIALLERGIC,
    BARS,
    CLAUSE_END,
    CODE_STATUS,
    COMMA,
    CONTENT,
    CONTINUES,
    CORRECTS,
    DENIES,
    DRUG_CLASS,
    EPINEPHRINE,
    GIVEN,
    LIMITS,
    LIST,
    MOVED,
    NEWS,
    NEXT_ONE,
    NO_ALLERGY,
    NONE_OF_IT,
    ORDERED,
    OTHERS,
    OWN_FINDING,
    QUALIFIES,
    REACTED,
    REACTION,
    REASSURES,
    REFERS_BACK,
    RELAPSES,
    STATEMENT_END,
    STOPS,
    TAKE,
    TAKEN_BACK,
    THE_DOSE,
    TREATED,
    TREATS,
    WITHHELD,
    WORST,
)
from exaid_core.tokenizer import character_ends, sentence_ends, word_spans

ELLIPSIS = "…"

# Characters after the limit that are searched for words that change the meaning of what is kept.
_LOOKAHEAD = 1000
_DANGLING = " \t\n,;:.…|–—，、。；：،؛؟۔।"
# A denial of at most this many words ("Family refused") answers an earlier statement, unless it has
# a finding of its own ("No fever", "Denies pain").
_SHORT = 4
_DRUG_REACH = 40
_HEADING = 20
"""Characters before a drug that are searched for a heading such as `Allergies:`."""
_COMMON = frozenset(
    {"patient", "patients", "doctor", "agent", "supervisor", "symptoms", "findings"}
)


def shorten(text: str, limit: int) -> str:
    """Return `text` if it fits, else as many of its first statements as make sense alone, plus `…`.

    A statement ends with its sentence or at a semicolon; a list that was announced
    ("Differentials include …") also at a comma. The text is not cut before a statement that denies,
    limits or takes back an earlier one, as far as English words show it. The result is empty if not
    even the first statement can stand alone within the limit.

    Args:
        text: Any text.
        limit: Maximum characters of the result, including the ellipsis.

    Raises:
        ValueError: `limit` is less than 1.
    """
    if limit < 1:
        raise ValueError(f"a text cannot be shortened to {limit} characters")
    if len(text) <= limit:
        return text
    head = text[: limit + _LOOKAHEAD]
    kept = ""
    for end, start, rest_of_list in _places(head):
        candidate = head[:end].rstrip(_DANGLING)
        if len(candidate) >= limit:
            break
        if candidate and not _changes_meaning(candidate, head[start:], rest_of_list):
            kept = candidate
    return kept and kept + ELLIPSIS


def _places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (end of a statement, start of the next, rest of the list that is cut), ascending."""
    begin = 0
    ends = [(end.start(), end.end()) for end in STATEMENT_END.finditer(text)]
    for stop, after in [*ends, (len(text), len(text))]:
        if announced := LIST.search(text, begin, stop):
            for comma in COMMA.finditer(text, announced.end(), stop):
                yield comma.start(), after, text[comma.end() : stop]
        if stop < len(text):
            yield stop, after, ""
        begin = after


def _changes_meaning(kept: str, rest: str, rest_of_list: str) -> bool:
    """Return whether what is left out denies, limits or takes back what is kept."""
    if kept.count("(") > kept.count(")") or kept.count("[") > kept.count("]"):
        return True
    if QUALIFIES.search(rest_of_list):
        return True
    if rest.startswith(("(", "[", "–", "—", "-")):
        return True
    named = set(map(str.lower, CONTENT.findall(kept))) - _COMMON
    reassures = REASSURES.search(kept) is not None
    treats = TREATS.search(kept) is not None
    lacks_schedule = treats and _lacks_schedule(kept)
    has_no_allergy = NO_ALLERGY.search(kept) is not None
    taken_back = [(by, unless) for said, by, unless in TAKEN_BACK if said.search(kept)]
    statements = STATEMENT_END.split(rest)
    return (
        any(
            CONTINUES.match(statement)
            or STOPS.match(statement)
            or CORRECTS.search(statement)
            or (
                DENIES.search(statement)
                and (_refers_back(statement) or not named.isdisjoint(_named(statement)))
            )
            for statement in statements
        )
        or any(
            (reassures and _is_bad_news(statement, named))
            or ((treats or has_no_allergy) and _is_bar(statement))
            or (treats and _is_limit(statement, kept))
            or (lacks_schedule and _is_schedule(statement, kept))
            or any(
                _says(by, statement) and not unless.search(statement) for by, unless in taken_back
            )
            or _is_another_dose(statement, kept)
            or (_is_danger(statement, kept) and (reassures or not _dangers(kept)))
            or (_is_worst(statement) and not _is_worst(kept))
            for statement in [rest_of_list, *statements]
        )
        or any(
            one.search(kept) and other.search(rest)
            for one, other in (CODE_STATUS, reversed(CODE_STATUS))
        )
    )


def _is_bad_news(statement: str, named: set[str]) -> bool:
    """Return whether a statement may take back a reassurance that has the words `named`."""
    return bool(
        NEWS.match(statement)
        or _says(RELAPSES, statement)
        or MOVED.search(statement)
        or (NEXT_ONE.match(statement) and not named.isdisjoint(_named(statement)))
    )


@lru_cache(maxsize=1024)  # a statement is left out of several cuts
def _is_bar(statement: str) -> bool:
    """Return whether a statement bars a treatment, or tells of a reaction to a drug."""
    if NONE_OF_IT.search(statement):
        return False
    if BARS.search(statement):
        return True
    for reaction in REACTION.finditer(statement):
        behind = statement[reaction.end() : reaction.end() + _DRUG_REACH]
        places = [start for start, _, _ in drugs(behind)]
        places += [found.start() for found in DRUG_CLASS.finditer(behind)]
        if places and not TREATED.search(reaction[0] + behind[: min(places)]):
            return True
    given = [(start, end) for start, end, name in drugs(statement) if not ANTIALLERGIC.match(name)]
    given += [found.span() for found in DRUG_CLASS.finditer(statement)]
    return any(
        ALLERGY_TO.search(statement[max(start - _HEADING, 0) : start])
        or (
            (reacted := REACTED.match(statement, end))
            and not TREATED.search(statement, end, reacted.end() + _DRUG_REACH)
        )
        for start, end in given
    )


def _is_another_dose(statement: str, kept: str) -> bool:
    """Return whether a statement tells that another dose was ordered than the one in `kept`."""
    ordered = ORDERED.search(statement)
    if ordered is None:
        return False
    unit = ordered["unit"].lower()
    given = {dose["number"] for dose in GIVEN.finditer(kept) if dose["unit"].lower() == unit}
    return bool(given) and ordered["number"] not in given


def _is_limit(statement: str, kept: str) -> bool:
    """Return whether a statement limits or refuses a treatment in `kept`, and no other drug."""
    withheld = WITHHELD.search(statement)
    if withheld and _is_what_was_ordered(statement[: withheld.start()], withheld["object"], kept):
        return True
    if not LIMITS.search(statement):
        return False
    limited = _drug_names(statement)
    return not limited or not limited.isdisjoint(_drug_names(kept))


def _is_what_was_ordered(subject: str, withheld: str, kept: str) -> bool:
    named = _drug_names(withheld or subject)  # "Metformin must not be given if …"
    if named:
        return not named.isdisjoint(_drug_names(kept))
    return THE_DOSE.issuperset(withheld.lower().split())


def _lacks_schedule(kept: str) -> bool:
    """Return whether it may be untold how often a dose in `kept` is given."""
    dosed = [each for each in STATEMENT_END.split(kept) if GIVEN.search(each)]
    if len(dosed) != 1 or len(GIVEN.findall(dosed[0])) != 1:
        return bool(dosed)
    return not tells_schedule(plain(dosed[0]), of_a_dose=False)


def _is_schedule(statement: str, kept: str) -> bool:
    """Return whether a statement tells how often or when a drug is given, and no other drug."""
    given = _scheduled(statement)
    return given is not None and given <= _drug_names(kept)


@lru_cache(maxsize=1024)  # a statement is left out of several cuts
def _scheduled(statement: str) -> frozenset[str] | None:
    """Return the drugs named in a statement on a schedule; None if it is on something else."""
    given = _drug_names(statement)
    taking = TAKE.match(statement)
    if taking or given:
        of_a_dose = taking is not None and not taking["past"]
        told = tells_schedule(plain(statement), of_a_dose=of_a_dose)
    else:
        told = len(statement.split()) <= _SHORT and is_schedule(plain(statement))
    return given if told else None


@lru_cache(maxsize=1024)
def _drug_names(text: str) -> frozenset[str]:
    return frozenset(name for _, _, name in drugs(text))


def _is_danger(statement: str, kept: str) -> bool:
    """Return whether a statement reports a danger that is no reason for a treatment in `kept`."""
    treated = EPINEPHRINE.search(kept) is not None
    return any(not (treated and ANAPHYLAXIS.match(alert)) for alert in _dangers(statement))


@lru_cache(maxsize=1024)  # a statement is left out of several cuts
def _dangers(text: str) -> tuple[str, ...]:
    return tuple(find_alerts(text))


def _is_worst(statement: str) -> bool:
    return _says(WORST, statement) and not OTHERS.search(statement)


def _says(words: re.Pattern[str], statement: str) -> bool:
    return bool(words.search(statement)) and not NONE_OF_IT.search(statement)


def _refers_back(denial: str) -> bool:
    return bool(
        REFERS_BACK.match(denial)
        or (len(denial.split()) <= _SHORT and not OWN_FINDING.match(denial))
    )


def _named(statement: str) -> set[str]:
    return set(map(str.lower, CONTENT.findall(statement)))


def split_text(text: str, limit: int) -> list[str]:
    """Split a text into pieces of at most `limit` characters; joined, they equal the text.

    Each piece is as long as possible and ends at the end of a sentence. If no sentence fits, it
    ends after a comma, colon or semicolon, else between words but not after a number, and inside a
    word only if the word is too long.

    Args:
        text: Any text.
        limit: Maximum characters of a piece.

    Raises:
        ValueError: `limit` is less than 1.
    """
    if limit < 1:
        raise ValueError(f"a text cannot be split into pieces of {limit} characters")
    pieces, start = [], 0
    while len(text) - start > limit:
        end = start + _end_of_piece(text[start : start + limit + _LOOKAHEAD], limit)
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]] if text[start:] else pieces


def _end_of_piece(text: str, limit: int) -> int:
    if sentences := [end for end in sentence_ends(text) if end <= limit]:
        return sentences[-1]
    characters = dict.fromkeys(end for end in character_ends(text) if end <= limit)
    starts = [start for start, _ in word_spans(text)[1:]]
    clauses = [end.end() for end in CLAUSE_END.finditer(text)]
    between = [start for start in starts if not text[:start].rstrip()[-1:].isnumeric()]
    for places in (clauses, between, starts, characters):
        if ends := [end for end in places if end in characters]:
            return ends[-1]
    return limit  # a single grapheme cluster longer than the limit
