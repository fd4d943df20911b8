"""Detects whether agents disagree, and whether a summary reports it.

The words of disagreement are English (`words/en/dissent.txt`).
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

from exaid_core.checks.cue_files import LETTER, normal
from exaid_core.checks.language import is_english
from exaid_core.checks.term_list import read_terms, with_gaps

_ANY_OPTION = dict.fromkeys("ABCDEFGHIJ", "")

_ARTICLE_OR_PRONOUN = re.compile(
    r"\s(?!(?:vs|versus|and|or|nor|over|than|but|while|whereas|by|on|for|in|due|because|since|given"
    r"|is|was|has|remains|favou?red|chosen|preferred|supported|selected)\b)[a-z]"
)
# A letter that names an option, but not the one in "B-cell", "E. coli", "38 °C" or "A型".
_OPTION = re.compile(
    rf"(?<!{LETTER})(?<![./+°-])[A-J](?!{LETTER}|[/+-]|['’.]{LETTER}|\.\s[a-z]|[型组組群级級类類])"
)

# A letter behind one of these is an answer, whatever follows it: "option B cell lymphoma".
_BEFORE_AN_ANSWER = re.compile(
    r"\b(?:options?|answers?|choices?|vs\.?|versus|choos(?:e|es|ing)|chose|chosen|picks?|picked"
    r"|selects?|selected|(?:agent|doctor|expert)s?[ -]?\d+:?) \W?\Z",
    re.IGNORECASE,
)
_VERSUS = re.compile(r" (?:vs|versus)\b", re.IGNORECASE)

# A list numbered with letters follows: "Plan: A) fluids B) antibiotics", "A: airway, B: breathing".
_BEFORE_A_LIST = re.compile(
    r"\b(?:plan|management|treatment|therapy|orders|recommendations|steps|tests|work-?up"
    r"|differentials?|ddx)\W{0,2}: ?\(?(?=(?-i:A)[).:] )"
    r"|(?<!\w)(?<!options: )(?<!answers: )(?=(?-i:A)\W{1,3}airway\b[^\n]{0,200}?\bB\W{1,3}breath)",
    re.IGNORECASE,
)
_LONGEST_ITEM = 200
_END_OF_ITEM = re.compile(r"[.;\n]|\Z")

_COUNT = r"(?:\d|one|two|three|four|five|six)"
# Words between an agent or opinion and the word that says that they differ.
_LINK = (
    r"(?:(?: (?:of|among|between|from|by)(?: [\w-]+){1,4}?)?"
    r"(?: (?:are|is|was|were|has|have|had|been|be|remains?|seems?|appears?|in|still|also|now|then"
    r"|currently|initially|sharply|strongly|clearly|slightly|somewhat|partly|evenly|equally)){0,4}"
    r":? )"
)
_ARTICLES = r"(?: (?:the|an?|for|that|answer|option|it is))*"

_ENDED = r"(?:resolved|settled|reconciled|ended|withdrawn|retracted|overcome)"
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:no|not|(?<!not )without|never|none|nobody|nor|neither|little|minimal|resolved"
    r"|settled|lack of|absence of|if|unless|any)|n't)"
    r"(?: (?!(?:and|but|or|yet|while|as|without)\b)[\w-]+){0,3} \Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r" ?[:=(–—-] ?(?:none|no\b|nil|n/?a\b|absent)"
    r"|(?: [\w-]{1,30}){0,2} in (?:the )?(?:published |medical )?(?:literature|studies)\b"
    r"|(?: [\w-]{1,30}){0,6},? (?:but|and|then|until)"
    r"(?: (?:now|then|all|both|later|finally|eventually|they|have|since)){1,3}"
    r" (?:agreed?|concur|concurred|converged?|reach(?:ed)? (?:a )?(?:consensus|agreement))\b"
    r"|(?: (?:was|were|is|has|have|been|now|fully)){0,3}"
    rf" (?:absent|{_ENDED})\b",
    re.IGNORECASE,
)
# Nouns, as in "disagreement between A and B was later resolved". In "they disagree, bleeding was
# resolved", it is not the dispute.
_DISPUTE = re.compile(r"disagreements?|dissent|disputes?|discord(?:ance)?|split", re.IGNORECASE)
_ENDED_AFTER = re.compile(
    r"(?: (?!(?:whether|if|although|though|because|that|which|who|whose|where|when|while|as|since"
    r"|after|before|but|says?|remains?|persists?|continues?|and (?!(?-i:[A-J])\b))\b)"
    r"\(?[\w'/-]+\)?){0,12}?"
    rf" (?:was|were|has|have)(?: (?:been|now|since|then|later|fully)){{0,3}} {_ENDED}\b",
    re.IGNORECASE,
)
# "initial disagreement", "despite disagreement", "initially differed"
_AT_FIRST = re.compile(
    r"\b(?:initial(?:ly)?|original(?:ly)?|first|early|earlier|previous(?:ly)?|prior|despite|after"
    r"|following)(?: (?!(?:and|but|or|yet|while|as|without)\b)[\w-]+){0,4}\Z",
    re.IGNORECASE,
)
_TO_AN_ANSWER = (
    r"(?: (?:is|was|reached|to|on|for|with|that|the|answer|option|in favou?r of)){0,4}:?"
    r" \W?(?-i:[A-J])\b"
)
_ALL_AGREED_AFTER = re.compile(
    r"(?:(?!\b(?:no|not|never|without|lack|yet|still|remains?|persists?|continues?|unresolved|some"
    r"|most(?:ly)?|majority|many|one|two|others?|another|nearly|almost|largely)\b|n't|%)"
    r"[^.\n]){0,80}?"
    r"\b(?:(?:all|both|they|everyone|everybody|(?:team|group|panel|experts|agents|doctors))"
    r"(?: (?:now|then|later|finally|eventually|have|has)){0,3}"
    r" (?:settled|agreed?s?|concur(?:red)?|converged?|support(?:ed)?|favou?r(?:ed)?|choose|chose"
    r"|back(?:ed)?|prefer(?:red)?|switched|moved)"
    rf"|unanimous|reconciled|consensus){_TO_AN_ANSWER}"
    r"(?![^.\n]{0,40}\b(?:except|but|apart from|save|not)\b)",
    re.IGNORECASE,
)


_LETTERS = r"(?:[A-J](?:,? (?:and |or )?)){0,8}"
_SET_ASIDE = (
    r"(?:ruled out|excluded|rejected|dismissed|discarded|eliminated|refuted|set aside|unsupported"
    r"|(?:is|are|was|were|being|been|as|clearly)(?: (?:also|then|now|both|all|clearly))*"
    r" (?:incorrect|wrong)"
    r"|(?<!thinks . )(?<!believes . )(?<!considers . )(?<!finds . )(?:incorrect|wrong)"
    r"|dropped(?! to (?:\w+ )?votes?\b)|abandoned"
    r"|no longer (?:held|supported|favou?red)"
    r"|(?:initially|first|originally) (?:favou?red|supported|preferred|chosen|considered)"
    r"|(?:deemed )?(?:less |un)likely(?! than\b))"
)
_LETTER_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|(?:no one|nobody|none|no \w{1,20}))|n't"
    r"|\b(?:instead of|(?:moved|shifted|switched|changed)(?: away)? from)"
    r"|\b(?:rul(?:ed|ing) out|exclud(?:ed|ing)|reject(?:ed|ing)|dismiss(?:ed|ing)|dropp(?:ed|ing)"
    r"|abandon(?:ed|ing)))"
    r"(?: (?:the|for|an?|answers?|options?|to|be|as|cho(?:ose|oses|se|sen)|pick(?:s|ed)?"
    r"|think(?:s|ing)?|select(?:s|ed)?|consider(?:s|ed)?|(?:support|favou?r|prefer)\w{0,4}"
    rf"|vot(?:e|es|ed)|held|holds?)){{0,4}} \W?{_LETTERS}\W?\Z",
    re.IGNORECASE,
)
_CONSIDERED_BEFORE = re.compile(
    rf"\bconsidered (?:options? |answers? )?{_LETTERS}\Z", re.IGNORECASE
)
# "Initially B, all switched to A", "chose B at first but now agrees with A"
_HELD_FIRST = re.compile(
    r"\b(?<!the )(?:initially|originally|first|earlier)"
    r"(?: (?:was|for|cho(?:se|sen)|pick(?:ed)?|select(?:ed)?|support(?:ed)?|favou?red|preferred"
    r"|thought|held|voted|leaned|towards?|the|answer|option)){0,3}"
    rf" \W?{_LETTERS}\W?\Z",
    re.IGNORECASE,
)
_LEFT_AFTER = re.compile(
    r"[,;]?(?: (?:at first,?|but|and|then|later|now|finally|eventually|has|have|since|all|both|they"
    r"|everyone|everybody)){0,5}"
    r" (?:switch|chang|mov|shift|converg|settl|agree|support|favou?r|prefer|back|choose|chose)"
    rf"(?:s|d|ed|es)?{_TO_AN_ANSWER}",
    re.IGNORECASE,
)
_BUT_AFTER = re.compile(r",? but\b", re.IGNORECASE)
# "B was ruled out" and "B, D, and E were excluded", but not "B was rejected by doctor1".
_LETTER_DENIED_AFTER = re.compile(
    r"[*)'\"]{0,3}(?:(?:, [A-J]){0,8},? (?:and|or) [A-J])? "
    r"(?:(?:was|were|is|are|has|have|been|being|also|then|now|both|all) ){0,4}"
    rf"{_SET_ASIDE}\b(?! by (?!all\b|both\b|every|consensus\b|the\b))",
    re.IGNORECASE,
)
_MARK = "\ue000"
"""Character around the number of an agent; it is private, so no text has it."""


@lru_cache(maxsize=512)  # a segment is read for its summary, for dissent and for positions
def stated_answer(text: str) -> str | None:
    """Return the letter A to J that a segment states as its answer; None if it states none.

    `mdagents_llm.answers` describes the forms of a statement: "Answer: C", "The answer is (C)." A
    letter that stands alone on a line is not a statement.
    """
    # Its many patterns take time to compile.
    from mdagents_llm.answers import ParseMethod, parse_answer

    parsed = parse_answer(text, _ANY_OPTION)
    is_statement = parsed.method in (ParseMethod.STATEMENT, ParseMethod.STRUCTURED)
    return parsed.letter if is_statement else None


def dissent_missing(summary_texts: Iterable[str], answers: Mapping[str, str]) -> bool:
    """Return whether agents hold different answers and the summary does not report it.

    A summary reports it if it names two of the answers without denying them, says without negation
    that agents or their opinions differ, or gives the different views of two agents. A summary that
    is not in English is taken to report it.

    Args:
        summary_texts: Fields of the summary.
        answers: Latest answer letter of each agent, by agent id.
    """
    different = set(answers.values())
    if len(different) <= 1:
        return False
    text = "\n".join(" ".join(normal(field).split()) for field in summary_texts)
    if not is_english(text):
        return False
    if len(different & _held_options(text)) >= 2:
        return False
    marked = _with_agents_marked(text, answers)
    return not (_says_that_they_differ(marked) or _names_different_views(marked))


def named_options(text: str) -> set[str]:
    """Return the letters A to J that name answer options in a text normalized by `normal`."""
    return {letter[0] for letter in _options(text)}


def _options(text: str) -> Iterator[re.Match[str]]:
    name, noun = _before_a_letter(), _after_a_letter()
    numbering = set(_numbers_of_lists(text))
    for letter in _OPTION.finditer(text):
        if not (
            letter.start() in numbering
            or (
                name.search(text, max(letter.start() - 40, 0), letter.end())
                and not _VERSUS.match(text, letter.end())
            )
            or (
                noun.match(text, letter.end())
                and not _BEFORE_AN_ANSWER.search(text, max(letter.start() - 20, 0), letter.start())
            )
            or (letter[0] in "AI" and _ARTICLE_OR_PRONOUN.match(text, letter.end()))
        ):
            yield letter


def _numbers_of_lists(text: str) -> Iterator[int]:
    """Yield the places of letters that number a list, unless it lists views of agents."""
    for begin in _BEFORE_A_LIST.finditer(text):
        places, end = list[int](), begin.end()
        for letter in _ANY_OPTION:
            item = re.compile(rf"(?<!\w){letter}[).:] ").search(text, end, end + _LONGEST_ITEM)
            if item is None:
                break
            places.append(item.start())
            end = item.end()
        last = _END_OF_ITEM.search(text, end, end + _LONGEST_ITEM)
        stop = last.end() if last else end
        if len(places) > 1 and not _tells_of_views().search(text, begin.end(), stop):
            yield from places


def _held_options(text: str) -> set[str]:
    """Return the letters that are named other than to deny them ("not B", "B was ruled out")."""
    starts, ends = list[int](), list[int]()
    for found in _difference().finditer(text):
        if end := _end_of_dispute(text, found):
            starts.append(found.start())
            ends.append(max([end.end(), *ends[-1:]]))
    held = set[str]()
    for letter in _options(text):
        settled = bisect(starts, letter.start())
        if not (settled and letter.start() < ends[settled - 1]) and not _is_denied(text, letter):
            held.add(letter[0])
    return held


def _is_denied(text: str, letter: re.Match[str]) -> bool:
    begin, end = max(letter.start() - 60, 0), letter.end()
    return bool(
        _LETTER_DENIED_BEFORE.search(text, begin, letter.start())
        or _LETTER_DENIED_AFTER.match(text, end)
        or (_BUT_AFTER.match(text, end) and _CONSIDERED_BEFORE.search(text, begin, letter.start()))
        or (_LEFT_AFTER.match(text, end) and _HELD_FIRST.search(text, begin, letter.start()))
    )


def _with_agents_marked(text: str, agent_ids: Collection[str]) -> str:
    """Return a text with a mark for each agent id, so that one pattern fits the agents of any case.

    An id alone is quick to compile, unlike the patterns around it.
    """
    ids = sorted(filter(None, map(normal, agent_ids)), key=len, reverse=True)
    if not ids:
        return text
    anyone = re.compile("|".join(rf"(?<!\w)({re.escape(one)})(?!\w)" for one in ids), re.IGNORECASE)
    return anyone.sub(lambda found: f"{_MARK}{found.lastindex}{_MARK}", text)


def _says_that_they_differ(text: str) -> bool:
    return any(
        not _DENIED_BEFORE.search(text, max(found.start() - 60, 0), found.start())
        and not _outsider_before().search(text, max(found.start() - 60, 0), found.start())
        and not _end_of_dispute(text, found)
        for found in _disagreement().finditer(text)
    )


def _end_of_dispute(text: str, found: re.Match[str]) -> re.Match[str] | None:
    """Return the words behind a disagreement that tell that there is none, or none any more."""
    if end := _DENIED_AFTER.match(text, found.end()):
        return end
    if _DISPUTE.fullmatch(found[0]) and (end := _ENDED_AFTER.match(text, found.end())):
        return end
    if _AT_FIRST.search(text, max(found.start() - 60, 0), found.end()):
        return _ALL_AGREED_AFTER.match(text, found.end())
    return None


def _names_different_views(text: str) -> bool:
    """Return whether two agents prefer different things, or one is contrasted with another."""
    by_agent, of_agent, contrast = _views()
    views = [view for pattern in (by_agent, of_agent) for view in pattern.finditer(text)]
    agents = {view["who"].lower() for view in views}
    held = {view["what"].lower() for view in views}
    # Views of more than one agent and of more than one thing hold a pair that differs in both.
    return bool(contrast.search(text)) or (len(agents) > 1 and len(held) > 1)


@cache
def _words() -> dict[str, str]:
    """Return a regular expression for each kind of word."""
    kinds: dict[str, list[str]] = {}
    for line in read_terms(Path(__file__).with_name("words") / "en" / "dissent.txt"):
        kind, _, expression = line.partition(": ")
        kinds.setdefault(kind, []).append(with_gaps(expression))
    return {kind: rf"\b(?:{'|'.join(words)})\b" for kind, words in kinds.items()}


def _agent() -> str:
    return rf"(?:{_words()['agent']}(?:[ -]?\d+)?|{_MARK}\d+{_MARK})"


@cache
def _before_a_letter() -> re.Pattern[str]:
    """Return a pattern of a name and its letters, or of a temperature, up to the last letter."""
    return re.compile(
        rf"{_words()['name']}\s(?:[A-J](?:\s?[/&]\s?|\s(?:and|or)\s)){{0,4}}[A-J]\Z"
        rf"|{_words()['person']}\s[A-J]\Z"
        r"|(?<![\d.])(?:2[5-9]|3\d|4[0-6])(?:\.\d{1,2})? ?C\Z"
        r"|(?<![\d.])(?:7[7-9]|[89]\d|1(?:0\d|1[0-5]))(?:\.\d{1,2})? ?F\Z",
        re.IGNORECASE,
    )


@cache
def _after_a_letter() -> re.Pattern[str]:
    return re.compile(rf"\s{_words()['noun']}", re.IGNORECASE)


@cache
def _tells_of_views() -> re.Pattern[str]:
    """Return a pattern of words in a list that say whose views its items are."""
    words = _words()
    return re.compile(
        rf"{_agent()}|{words['opinion']}|{words['prefers']}|\b(?:by|per|chosen)\b"
        r"|\((?![A-J]\))",
        re.IGNORECASE,
    )


@cache
def _outsider_before() -> re.Pattern[str]:
    return re.compile(
        rf"{_words()['outsider']}(?: (?:is|are|was|were|has|have|had|been|still|also)){{0,3}} \Z",
        re.IGNORECASE,
    )


@cache
def _difference() -> re.Pattern[str]:
    return re.compile(rf"{_words()['disagreement']}|{_words()['differs']}", re.IGNORECASE)


@cache
def _disagreement() -> re.Pattern[str]:
    words, agent = _words(), _agent()
    holder = rf"(?:{agent}|{words['opinion']})"
    return re.compile(
        rf"{words['disagreement']}"
        rf"|{holder}{_LINK}{words['differs']}"
        rf"|{words['differs']} (?:\w+ )?{holder}"
        rf"|\b(?:ma|mi)jority(?: of)?(?: the)? (?:{agent}|{words['prefers']}|{words['opinion']})"
        r"|\b(?:ma|mi)jority(?: is| was)?:? \W?(?-i:[A-J])\b"
        rf"|\b(?:most|some|all but one) (?:of )?(?:the )?{agent}"
        # "2 of 3 experts", but not "3 of 3 experts"
        rf"|\b(?P<some>{_COUNT})(?:/| (?:out )?of (?:the )?)(?!(?P=some)\b){_COUNT} {agent}",
        re.IGNORECASE,
    )


@cache
def _views() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns of "doctor1 prefers MI", "MI preferred by doctor1", "but doctor1 prefers"."""
    agent, prefers = _agent(), _words()["prefers"]
    return (
        re.compile(
            rf"(?P<who>{agent}):? (?:\w+ly |still |now |again )?{prefers}{_ARTICLES} "
            r"(?P<what>[\w-]+)",
            re.IGNORECASE,
        ),
        re.compile(
            rf"(?<![\w-])(?P<what>[\w-]+) (?:is |was |are )?{prefers} by (?:the )?(?P<who>{agent})",
            re.IGNORECASE,
        ),
        re.compile(
            rf"\b(?:while|whereas|in contrast(?!-)|by contrast|on the other hand|however|but"
            rf"|although|though)\b[^.;\n]{{0,60}}?{agent}[^.;\n]{{0,40}}?(?:{prefers}|\brecommends?\b)"
            rf"|\b(?:versus|vs\.?|differ(?:s|ed|ing)? from) [^.;\n]{{0,60}}?{agent}",
            re.IGNORECASE,
        ),
    )
