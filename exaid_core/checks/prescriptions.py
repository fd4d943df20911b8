"""Writes out what British and Indian prescriptions abbreviate: `5 mg OD`, `1-0-1`, `8-hourly`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exaid_core.checks.drugs import drugs

_TIMES = {
    "od": "daily", "bd": "BID", "om": "every morning", "on": "nightly", "eod": "every other day",
    "100": "every morning", "010": "every noon", "001": "nightly", "110": "BID", "101": "BID",
    "011": "BID", "111": "TID", "1111": "QID",
}  # fmt: skip
"""How often a dose is given, by the letters or the doses of a day from morning to night."""
_HOURS = {"BID": "12", "TID": "8", "QID": "6"}
# Starts with the character that is searched for, as the patterns of quantities.py. ON in small
# letters is a preposition.
_ABBREVIATION = re.compile(
    r"[oObBeE](?<![\w.].)(?:(?<=[oO])\.?[dD]|(?<=[bB])\.?[dD]|(?<=[eE])[oO][dD]"
    r"|(?<=[oO])(?:\.?[mM]|\.[nN])|(?<=O)N(?! [A-Z]))\b(?![-/])"
    r"|[01](?<![\w.,/+-].)(?: ?- ?[01]){2,3}(?![\w/+]|-\d|[.,]\d| (?:u|iu|units?)\b)"
)
_NOT_A_SIGN = re.compile(r"\W+")
_REACH = 60
"""Characters before an abbreviation that are searched for a dose, and for words about the eye."""
_ROUTE = (
    r"(?:po|p\.o|per oral|oral(?:ly)?|by mouth|iv|i\.v|im|i\.m|sc|s/c|sl|s/l|pr|ng|neb\w*|inhal\w+"
    r"|topical(?:ly)?|tab(?:let)?s?|cap(?:sule)?s?|[sxecm]r|xl|ec|each|of|given|taken|now"
    r"|(?:before|after|with) (?:food|meals?|breakfast|lunch|dinner)|[ap]c|prn|sos)"
)
# "40 mg", "500 mg (SR) PO", "2 puffs", "increase to", "take it"
_BEFORE_IT = re.compile(
    r"(?:(?:[0-9] ?(?:mg|mcg|[uμ]g|microg(?:rams?)?|mics|g|gm|grams?|ml|mmol|meq|iu|u|units?)"
    r"|\b(?:tab(?:let)?s?|cap(?:sule)?s?|puffs?|sprays?|sachets?|patch(?:es)?))(?:/kg)?\b\.?"
    r"|\b(?:increased?|reduced?|decreased?|changed?|switch(?:ed)?|titrated?) (?:it )?(?:from|to)\b"
    r"|\b(?:take|give)n?(?: it| this)?\b)"
    rf"\)?(?: ?\([^()]{{1,20}}\))?[,:]? ?(?:- ?)?(?:{_ROUTE}\b\.?,? ?)*\(?\Z",
    re.IGNORECASE,
)
# OD is also the right eye, and an overdose.
_NOT_DAILY = re.compile(
    r"\b(?:eyes?|ocul\w+|ophthal\w+|intravitr\w+|vitre\w+|retina\w*|macul\w+|iop|va|vision|visual"
    r"|cornea\w*|uvei\w+|glaucoma|(?-i:O[SU])|bevacizumab|ranibizumab|aflibercept|faricimab"
    r"|overdos\w+|ingest\w+|intentional\w*|deliberate\w*|suicid\w+|staggered)\b",
    re.IGNORECASE,
)
# "OD weekly", "OD Mon/Wed/Fri", "OD or BD", "OM: BID"; "BD pen needle", "OD of aspirin"
_NOT_ALONE = re.compile(
    r"[ ,:(]*(?:(?:once |twice |thrice )?(?:weekly|fortnightly|monthly)"
    r"|(?:once|twice|thrice|\w+ times|[1-6](?:-[1-6])? days?)"
    r" ?(?:an?|per|each|every|in a|/)? ?(?:week|month)"
    r"|(?:per|every|each) (?:\w+ )?(?:weeks?|fortnight|months?|day)\b|/ ?week"
    r"|(?:on |every |each )?(?:alternate|mon|tue|wed|thu|fri|sat|sun)(?:\w*day|s)?\b|mwf|tiw"
    r"|(?:(?:(?:for|x) ?[0-9]+ \w+,? )?(?:or|then) )?(?:[btq]\.?i\.?d|[btq]ds|bd)\b"
    r"|(?:pens?|needles?|syringes?|pre-?filled|ultra|type|disorder|of)\b)",
    re.IGNORECASE,
)
_ENDS_UNIT = re.compile(r"[rkh]ly\b", re.IGNORECASE)  # quick, and few texts have it
_EVERY_FEW = re.compile(
    r"(?:\bevery )?(?<![\w.,/+-])"
    r"(?P<count>[0-9]{1,2}(?: ?- ?[0-9]{1,2})?|two|three|four|six|eight|twelve)"
    r"(?:(?:th|rd|nd)?[ -](?P<hour>hour)ly|-(?P<unit>week|month|year)ly)\b",
    re.IGNORECASE,
)


def written_out(text: str) -> str:
    """Return a text with the abbreviations for how often a dose is given written out.

    `OD`, `BD`, `1-0-1` and the like are read behind a dose only, or behind a drug, and not before
    another schedule.

    Args:
        text: Text whose signs are normalized as by `exaid_core.checks.quantities.plain`.
    """
    text = _ABBREVIATION.sub(_frequency, text)
    return _EVERY_FEW.sub(_interval, text) if _ENDS_UNIT.search(text) else text


def unread_hours(text: str) -> Iterator[str]:
    """Yield the hours that may be between doses by abbreviations that `written_out` left.

    Args:
        text: Text that `written_out` returned.
    """
    for found in _ABBREVIATION.finditer(text):
        if hours := _HOURS.get(_TIMES.get(_name(found), "")):
            yield hours


def _name(found: re.Match[str]) -> str:
    return _NOT_A_SIGN.sub("", found[0]).lower()


def _frequency(found: re.Match[str]) -> str:
    name = _name(found)
    before = found.string[max(found.start() - _REACH, 0) : found.start()]
    around = before + found.string[found.end() : found.end() + _REACH]
    if (
        _NOT_ALONE.match(found.string, found.end())
        or (name == "od" and _NOT_DAILY.search(around))
        or (name == "on" and before.isupper())  # "WARFARIN 5 MG ON 3/5"
    ):
        return found[0]
    is_schedule = _BEFORE_IT.search(before) or _is_of_drug(before, name)
    return _TIMES.get(name, found[0]) if is_schedule else found[0]


def _is_of_drug(before: str, name: str) -> bool:
    """Return whether an abbreviation follows a drug: `500 mg metformin OD`, `metformin BD`."""
    mentions = list(drugs(before))
    if mentions and name not in ("od", "eod") and not before[mentions[-1][1] :].strip():
        return True
    for start, end, _ in reversed(mentions):
        before = before[:start] + before[end:].lstrip()
    return bool(mentions) and _BEFORE_IT.search(before) is not None


def _interval(found: re.Match[str]) -> str:
    return f"every {found['count']} {found['hour'] or found['unit']}s"
