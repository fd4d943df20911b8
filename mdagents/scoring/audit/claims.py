"""Claims of an agreement that the recorded opinions do not show."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from mdagents.teams.digest import names_option

_WHO = (
    r"(?:experts?|specialists?|teams?|panel|panelists?|members?|colleagues|physicians?|doctors?"
    r"|clinicians?|agents?|participants?|reports?|opinions?|assessments?|debaters?|personas?)"
)
_AGREE = (
    r"(?:agree[sd]?|concur(?:s|red)?|converge[sd]?|support(?:s|ed)?|favou?r(?:s|ed)?|cho(?:se|ose)"
    r"|select(?:s|ed)?|prefer(?:s|red)?|endorse[sd]?|back(?:s|ed)?|vote[sd]?"
    r"|(?:is|are|was|were) (?:all )?(?:in (?:full |complete )?agreement|unanimous|agreed))"
)
_ADVERBS = r"(?:(?:now|all|both|also|fully|clearly|strongly|have|has|had|unanimously) ){0,2}"
_CLAIM = re.compile(
    rf"\b(?:all|every|each)(?: of)?(?: the| our)?(?: (?:two|three|four|five|six|seven|\d+))?"
    rf"(?: \w+)? {_WHO} {_ADVERBS}{_AGREE}\b"
    r"|\bunanimous(?:ly)?\b"
    rf"|\b(?:the|our) (?:whole |entire )?(?:panel|team|experts|specialists|teams) "
    rf"(?:all |have all |fully |unanimously ){_ADVERBS}{_AGREE}\b"
    rf"|\b(?:no|without(?: any)?) (?:dissent|disagreement)\b"
    rf"|\b(?:no|none of the) {_WHO} (?:disagree[sd]?|dissent(?:s|ed)?)\b"
    r"|\b(?:full|complete|universal|total) (?:consensus|agreement)\b"
    r"|\beveryone (?:now )?agree[sd]?\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\b(?:no|not|never|nor|neither|lack of|absence of|failed to|fail to|short of|rather than"
    r"|if|unless|until|although not|far from|nearly|almost|cannot|without)\b|n['’]t)"
    r"(?: [\w-]+){0,3} ?\Z",
    re.IGNORECASE,
)
_ABOUT_LESS = re.compile(
    # "All experts agree that the patient is septic, but …": on a finding, not on the answer.
    r"\s(?:that|on|about)\s(?!(?:the )?(?:answer|option|diagnosis|choice|final)|\(?[A-P]\b)",
    re.IGNORECASE,
)

_LONGEST_OBJECT = 100
"""Characters after a claim in which its clause may name an option."""
_CLAUSE = re.compile(r"[,;:.](?=\s|\Z)|\s(?:but|yet|while|whereas|although)\s", re.IGNORECASE)


def claims_agreement(text: str, options: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the words that claim that all agree on the answer; empty without such a claim.

    English only. "Not all experts agree" and "all experts agree that she is septic" claim nothing
    about the answer; "all experts agree on heparin" does, if heparin is an option.

    Args:
        text: Argument of a decision, or a summary.
        options: Letter -> text.
    """
    for found in _CLAIM.finditer(text):
        if _DENIED.search(text, max(0, found.start() - 40), found.start()):
            continue
        after = _CLAUSE.split(text[found.end() : found.end() + _LONGEST_OBJECT], maxsplit=1)[0]
        if not _ABOUT_LESS.match(after) or any(
            names_option(after, letter, option) for letter, option in options.items()
        ):
            return found[0]
    return ""


def is_unstated(claim: str, decision: str, last: Collection[str]) -> bool:
    """Return whether a claimed agreement on a decision contradicts the last opinions."""
    return bool(claim) and set(last) != {decision}
