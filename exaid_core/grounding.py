"""Checks a summary against its support: its numbers, its drugs, its disagreement."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from exaid_core.cues.files import LETTER, any_of, normal, read_cues
from exaid_core.cues.finder import CueFinder
from exaid_core.doses import drug_doses
from exaid_core.drugs import NamedDrugs, drugs
from exaid_core.quantities import Quantity, numbers, plain, quantities

# --- numbers, doses and drugs --------------------------------------------------------------------

# Vital signs and ages are often given without a unit.
_OFTEN_UNWRITTEN = frozenset({"mmhg", "1/min", "%", "°c", "°f", "year"})

# The summary counts how many agents hold a view; the agents themselves do not say it.
_COUNTED_AGENTS = re.compile(
    r"\s(?:(?:out )?of (?:the )?\w+ )?(?:experts?|agents?|doctors?|specialists?|clinicians?"
    r"|physicians?|teams?|members?|opinions?|views?|answers?|votes?)\b",
    re.IGNORECASE,
)


def unsupported_terms(summary_texts: Iterable[str], support: str) -> tuple[str, ...]:
    """Return the numbers, doses and drugs of a summary that do not occur in its support.

    Numbers are compared by value and unit: `5mg` is `5 mg`, `0.50` is `0.5`, `two` is `2`, and
    5 mg/kg supports neither 5 mg nor 5 g. A number without a unit is supported by any number of
    that value, a drug by any of its names. A dose next to a drug (`metoprolol 10 mg`) is swapped
    when the support gives that drug with other doses only and that dose with other drugs only.

    Args:
        summary_texts: The fields of the summary.
        support: All text that the summary was made from.

    Returns:
        The terms as the summary writes them, in order and each once.
    """
    evidence = _Evidence(plain(support))
    terms: dict[_Meaning, str] = {}
    for text in summary_texts:
        for meaning, term in evidence.missing(plain(text)):
            terms.setdefault(meaning, term)
    return tuple(terms.values())


_Meaning: TypeAlias = str | tuple[str | None, tuple[str, ...], str | None]
"""Name of a drug; or drug, if it is a dose of one, values and unit of a quantity: what makes two
terms the same."""


class _Evidence:
    def __init__(self, support: str) -> None:
        self._support = support
        self._numbers = numbers(support)
        self._measured: set[tuple[str, str | None]] = set()
        self._quantities = tuple(quantities(support))
        for quantity in self._quantities:
            self._numbers.update(quantity.values)
            self._measured.update((value, quantity.unit) for value in quantity.values)
        self._drugs = NamedDrugs(support)

    def missing(self, text: str) -> list[tuple[_Meaning, str]]:
        """Return meaning and wording of the terms of `text` without support, in order."""
        measured = tuple(quantities(text))
        found: list[tuple[int, _Meaning, str]] = [
            (claim.start, (None, claim.values, claim.unit), claim.text)
            for claim in _claims(text, measured)
            if not all(self._has(value, claim.unit) for value in claim.values)
        ]
        found += [
            (start, name, text[start:end])
            for start, end, name in drugs(text)
            if name not in self._drugs
        ]
        for given in drug_doses(text, measured):
            if given.drug and self._is_swapped(given.drug.name, given.dose):
                start, end, name = given.drug
                meaning = (name, given.dose.values, given.dose.unit)
                found.append((start, meaning, f"{text[start:end]} {given.dose.text}"))
        return [(meaning, term) for _, meaning, term in sorted(found, key=itemgetter(0))]

    def _has(self, value: str, unit: str | None) -> bool:
        if unit is None:
            return value in self._numbers
        if (value, unit) in self._measured:
            return True
        # A single digit that stands alone is more often a label ("Expert 2", "2.").
        is_measurement = len(value.partition(".")[0]) > 1
        return is_measurement and unit in _OFTEN_UNWRITTEN and (value, None) in self._measured

    def _is_swapped(self, drug: str, dose: Quantity) -> bool:
        measured = ((value, dose.unit) in self._measured for value in dose.values)
        if drug not in self._drugs or not all(measured):
            return False
        dosed = self._dosed.values()
        has_doses = any(drug in (drugs or ()) for drugs in chain.from_iterable(dosed))
        return has_doses and any(
            given and all(drugs is not None and drug not in drugs for drugs in given)
            for value in dose.values
            if (given := self._dosed.get((value, dose.unit)))
        )

    @cached_property
    def _dosed(self) -> Mapping[tuple[str, str | None], Sequence[frozenset[str] | None]]:
        """Value and unit of each dose in the support -> what each time it may be a dose of."""
        dosed = defaultdict(list)
        for given in drug_doses(self._support, self._quantities):
            for value in given.dose.values:
                dosed[value, given.dose.unit].append(given.candidates)
        return dosed


def _claims(text: str, measured: Iterable[Quantity]) -> Iterator[Quantity]:
    for quantity in measured:
        counts_agents = quantity.unit is None and _COUNTED_AGENTS.match(text, quantity.end)
        if quantity.certain and not counts_agents:
            yield quantity


# --- disagreement --------------------------------------------------------------------------------

_CUES = read_cues("dissent")
# An option's letter; not the one of "B-cell", "E. coli" or "38 °C".
_LETTER = re.compile(
    rf"(?<!{LETTER})(?<![./+°-])[A-J](?!{LETTER}|[/+-]|['’.]{LETTER}|\.\s[a-z]"
    rf"|{any_of(_CUES, 'name after')})"
)
_NAME_BEFORE = re.compile(
    r"(?:\b(?:hepatitis|vitamin|influenza|immunoglobulin|protein|factor|complement|coxsackie"
    r"|type|group|grade|class|stage|child-pugh|ha?emophilia|amphotericin"
    r"|expert|doctor|dr|agent|team|patient|case)\s"
    rf"|{any_of(_CUES, 'name before')}\s?)\Z",
    re.IGNORECASE,
)
_STATED_ANSWER = re.compile(
    rf"^[ \t>*_#(\[【-]{{0,20}}{any_of(_CUES, 'answer')}[ \t*_)\]】]{{0,4}}:[ \t*_(\[【]{{0,6}}"
    # "Answer: A biopsy …" and "Answer: I think …" name no option.
    rf"(?P<letter>(?-i:[B-HJ]|[AI](?![ \t]+[a-z])))(?!{LETTER}|['’]|{any_of(_CUES, 'name after')})",
    re.IGNORECASE | re.MULTILINE,
)
_ARTICLE_OR_PRONOUN = re.compile(
    r"\s(?!(?:vs|versus|and|or|nor|over|than|but|while|whereas|by|on|for|in|due|because|since|given"
    r"|is|was|has|remains|favou?red|chosen|preferred|supported|selected)\b)[a-z]"
)

_AGENT = (
    r"\b(?:experts?|agents?|doctors?|specialists?|clinicians?|physicians?|surgeons?|teams?"
    r"|members?|moderators?|\w{3,20}(?:ologist|iatrist|iatrician|internist)s?)\b"
)
_STANCE = (
    r"\b(?:favou?r|prefer|argu|support|choos|chos|select|vot|recommend|suggest|believ|advocat"
    r"|maintain|pick|oppos|conclud|answer)(?:e|es|s|ed|red|en|ing)?\b"
)
_COUNT = r"(?:\d|one|two|three|four|five|six)"
_DISAGREEMENT = CueFinder(cue for cue in _CUES if cue.kind == "disagreement")
_COUNT_OF_AGENTS = re.compile(
    rf"\b(?:ma|mi)jority(?: of)?(?: the)? (?:{_AGENT}|{_STANCE}|view|vote|opinion|report)"
    rf"|\b(?:most|some|all but one) (?:of )?(?:the )?{_AGENT}"
    # "2 of 3 experts", but not "3 of 3 experts"
    rf"|\b(?P<some>{_COUNT})(?:/| (?:out )?of (?:the )?)(?!(?P=some)\b){_COUNT} {_AGENT}",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:no|not|(?<!not )without|never|none|nobody|nor|neither|little|minimal|resolved|settled"
    r"|lack of|absence of)|n't)(?: (?!(?:and|but|or|yet|while|as|without)\b)[\w-]+){0,3} \Z"
    rf"|{any_of(_CUES, 'denied before')}(?: [\w-]+){{0,2}} ?\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r" ?[:=(–—-] ?(?:none|no\b|nil|n/?a\b|absent)"
    r"|(?: (?:was|were|is|has|have|been|now|fully)){0,3} (?:absent|resolved|settled|reconciled)\b"
    rf"|(?: [\w'-]+){{0,3}} ?{any_of(_CUES, 'denied after')}",
    re.IGNORECASE,
)
# A contrast means disagreement only if an agent's stance follows.
_CONTRAST = re.compile(
    r"\b(?:while|whereas|in contrast(?!-)|by contrast|on the other hand|however|but"
    r"|although|though)\b([^.;\n]{0,100})",
    re.IGNORECASE,
)
_AGENT_AGAINST_AGENT = re.compile(
    r"\b(?:versus|vs\.?|differ(?:s|ed|ing)? from) ([^.;\n]{0,60})", re.IGNORECASE
)
_NAMES_AGENT = re.compile(rf"{_AGENT}|\b(?:others|another)\b", re.IGNORECASE)
_TAKES_STANCE = re.compile(_STANCE, re.IGNORECASE)


def stated_answer(text: str) -> str | None:
    """Return the letter A to J of the last line `Answer: X` in a segment, None without one.

    The word for "answer" may be that of any language of `exaid_core/cues`.
    """
    letters = [line["letter"] for line in _STATED_ANSWER.finditer(normal(text))]
    return letters[-1] if letters else None


def dissent_missing(summary_texts: Iterable[str], answers: Mapping[str, str]) -> bool:
    """Return whether agents hold different answers and the summary does not say so.

    A summary says so if it names two of the answers, or has a word of disagreement that it does
    not deny ("no dissent"), or contrasts what one agent holds with what another does.

    Args:
        summary_texts: The fields of the summary.
        answers: Agent id -> latest letter that the agent stated.
    """
    different = set(answers.values())
    if len(different) <= 1:
        return False
    text = "\n".join(" ".join(normal(field).split()) for field in summary_texts)
    return not (
        len(different & _named_options(text)) >= 2
        or _has_word_of_disagreement(text)
        or _contrasts_agents(text, answers.keys())
    )


def _named_options(text: str) -> set[str]:
    return {
        letter[0]
        for letter in _LETTER.finditer(text)
        if not _NAME_BEFORE.search(text, max(letter.start() - 20, 0), letter.start())
        and not (letter[0] in "AI" and _ARTICLE_OR_PRONOUN.match(text, letter.end()))
    }


def _has_word_of_disagreement(text: str) -> bool:
    return any(
        not _DENIED_BEFORE.search(text, max(start - 60, 0), start)
        and not _DENIED_AFTER.match(text, end)
        for start, end in chain(
            ((found.start, found.end) for found in _DISAGREEMENT.find(text)),
            (count.span() for count in _COUNT_OF_AGENTS.finditer(text)),
        )
    )


def _contrasts_agents(text: str, agent_ids: Collection[str]) -> bool:
    ids = [agent_id.lower() for agent_id in agent_ids]

    def names_agent(tail: str) -> bool:
        return bool(_NAMES_AGENT.search(tail)) or any(name in tail.lower() for name in ids)

    return any(
        _TAKES_STANCE.search(contrast[1]) and names_agent(contrast[1])
        for contrast in _CONTRAST.finditer(text)
    ) or any(names_agent(other[1]) for other in _AGENT_AGAINST_AGENT.finditer(text))
