"""Detects whether agents disagree, and whether a summary reports it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import chain

from exaid_core.checks.cue_files import LETTER, any_of, normal, read_cues
from exaid_core.checks.cue_finder import CueFinder

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
# A contrast signals disagreement only if an agent's stance follows.
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
    """Return the letter A to J of the last line `Answer: X` in a segment; None without such a line.

    The word for "answer" may be in any language of `exaid_core/checks/words`.
    """
    letters = [line["letter"] for line in _stated_answers().finditer(normal(text))]
    return letters[-1] if letters else None


def dissent_missing(summary_texts: Iterable[str], answers: Mapping[str, str]) -> bool:
    """Return whether agents hold different answers and the summary does not report it.

    A summary reports it if it names two of the answers, uses a word of disagreement that it does
    not negate ("no dissent"), or contrasts the views of two agents.

    Args:
        summary_texts: Fields of the summary.
        answers: Latest answer letter of each agent, by agent id.
    """
    different = set(answers.values())
    if len(different) <= 1:
        return False
    text = "\n".join(" ".join(normal(field).split()) for field in summary_texts)
    return not (
        len(different & named_options(text)) >= 2
        or _has_word_of_disagreement(text)
        or _contrasts_agents(text, answers.keys())
    )


def named_options(text: str) -> set[str]:
    """Return the letters A to J that name answer options in a text normalized by `normal`."""
    return {
        letter[0]
        for letter in _letters().finditer(text)
        if not _name_before().search(text, max(letter.start() - 20, 0), letter.start())
        and not (letter[0] in "AI" and _ARTICLE_OR_PRONOUN.match(text, letter.end()))
    }


def _has_word_of_disagreement(text: str) -> bool:
    return any(
        not _denied_before().search(text, max(start - 60, 0), start)
        and not _denied_after().match(text, end)
        for start, end in chain(
            ((found.start, found.end) for found in _disagreement().find(text)),
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


@cache
def _letters() -> re.Pattern[str]:
    # A letter that names an option, but not the one in "B-cell", "E. coli" or "38 °C".
    cues = read_cues("dissent")
    return re.compile(
        rf"(?<!{LETTER})(?<![./+°-])[A-J](?!{LETTER}|[/+-]|['’.]{LETTER}|\.\s[a-z]"
        rf"|{any_of(cues, 'name after')})"
    )


@cache
def _name_before() -> re.Pattern[str]:
    cues = read_cues("dissent")
    return re.compile(
        r"(?:\b(?:hepatitis|vitamin|influenza|immunoglobulin|protein|factor|complement|coxsackie"
        r"|type|group|grade|class|stage|child-pugh|ha?emophilia|amphotericin"
        r"|expert|doctor|dr|agent|team|patient|case)\s"
        rf"|{any_of(cues, 'name before')}\s?)\Z",
        re.IGNORECASE,
    )


@cache
def _stated_answers() -> re.Pattern[str]:
    cues = read_cues("dissent")
    return re.compile(
        rf"^[ \t>*_#(\[【-]{{0,20}}{any_of(cues, 'answer')}[ \t*_)\]】]{{0,4}}:[ \t*_(\[【]{{0,6}}"
        # "Answer: A biopsy …" and "Answer: I think …" do not name an option.
        rf"(?P<letter>(?-i:[B-HJ]|[AI](?![ \t]+[a-z])))"
        rf"(?!{LETTER}|['’]|{any_of(cues, 'name after')})",
        re.IGNORECASE | re.MULTILINE,
    )


@cache
def _disagreement() -> CueFinder:
    return CueFinder(cue for cue in read_cues("dissent") if cue.kind == "disagreement")


_COUNT_OF_AGENTS = re.compile(
    rf"\b(?:ma|mi)jority(?: of)?(?: the)? (?:{_AGENT}|{_STANCE}|view|vote|opinion|report)"
    rf"|\b(?:most|some|all but one) (?:of )?(?:the )?{_AGENT}"
    # "2 of 3 experts", but not "3 of 3 experts"
    rf"|\b(?P<some>{_COUNT})(?:/| (?:out )?of (?:the )?)(?!(?P=some)\b){_COUNT} {_AGENT}",
    re.IGNORECASE,
)


@cache
def _denied_before() -> re.Pattern[str]:
    cues = read_cues("dissent")
    return re.compile(
        r"(?:\b(?:no|not|(?<!not )without|never|none|nobody|nor|neither|little|minimal|resolved"
        r"|settled|lack of|absence of)|n't)"
        r"(?: (?!(?:and|but|or|yet|while|as|without)\b)[\w-]+){0,3} \Z"
        rf"|{any_of(cues, 'denied before')}(?: [\w-]+){{0,2}} ?\Z",
        re.IGNORECASE,
    )


@cache
def _denied_after() -> re.Pattern[str]:
    cues = read_cues("dissent")
    return re.compile(
        r" ?[:=(–—-] ?(?:none|no\b|nil|n/?a\b|absent)"
        r"|(?: (?:was|were|is|has|have|been|now|fully)){0,3}"
        r" (?:absent|resolved|settled|reconciled)\b"
        rf"|(?: [\w'-]+){{0,3}} ?{any_of(cues, 'denied after')}",
        re.IGNORECASE,
    )
