"""Detects options that refer to the places of other options: "All of the above", "Both A and C".

The meaning of such an option changes, or is lost, when the other options move.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

_QUANTITY = (
    r"(?:(?:not|only|just|more than|at least) )?"
    r"(?:all|none|any|both|either|neither|each|some|one|two|three|nothing)"
    r"(?: one| two| three| or more)?"
)
_THINGS = r"(?:options?|choices?|answers?|alternatives?|responses?|statements?)"
_VERDICT = r"(?:correct|true|right|wrong|false|incorrect|possible)"
_LETTER = rf"(?:{_THINGS} )?[(\['\"‘“]?([a-z])[)\]'\"’”.]?"
_AND = (
    r"\s*(?:(?:,\s*)?\b(?:and/or|and|or|nor|but not|và|hoặc|et|ou|und|oder|como|als auch)\b"
    r"|(?<= )[yoe](?= )|[和及与或、]|[,;&+/])\s*"
)
_CUE = (
    r"(?:both|either|neither|only|same as|(?:all|any|one|none|each) of"
    rf"|(?:all|none),? (?:except|but|apart from)|cả|tanto|les deux|sowohl|{_THINGS}) "
)
_ALONE = re.compile(r"(?<![a-z])[a-z](?![a-z])")
_ORDINAL = r"(?:the )?(?:first|second|third|fourth|fifth|former|latter|last)"
_RIGHT = (
    r"\s?(?:đều )?(?:đúng|sai)| (?:son|estão|sont|sono|sind) (?:corre[ct]+[aeo]s?|vraies|richtig)"
    r"|[都均皆]?(?:对|正确)"
)
_SAID = r"(?: (?:mentioned|listed|given|stated|described|named|options?|choices?|answers?))*"
_LETTERS = re.compile(
    rf"(?P<before>(?:{_CUE})*)(?P<letters>{_LETTER}(?:{_AND}{_LETTER})*)"
    rf"(?P<after>(?: (?:only|both|alone|together|(?:is|are) (?:both )?{_VERDICT})|{_RIGHT})*)"
)
_RANGE = re.compile(
    rf"(?P<before>(?:{_CUE})*)(?P<first>{_LETTER})\s?(?:-|–|\bto\b|\bthrough\b)\s?(?P<last>{_LETTER})"
)
_BY_ORDINAL = re.compile(
    rf"(?:only |both )?{_ORDINAL}(?: (?:two|three|four)|(?:{_AND}{_ORDINAL})+)"
    rf"(?: (?:only|{_THINGS}))*"
)
_STARTS_WITH_ORDINAL = re.compile(rf"{_ORDINAL}\b")
_ABOUT_OTHERS = re.compile(
    "|".join(
        (
            rf"{_QUANTITY}(?: of)? (?:the|these|those)"
            r" (?:above|foregoing|preceding|previous)\b.{0,60}",
            rf"{_QUANTITY}(?: of)? above"
            rf"(?:\W+(?:{_THINGS}|mentioned|given|said|is|are|except)\b.{{0,60}})?",
            rf"{_QUANTITY}(?: of)?(?: the| these| those)?"
            r"(?: other| given| listed| mentioned| following)*"
            rf" (?:these|those|them|others|following|{_THINGS})"
            r"(?: (?:is|are|given|listed|mentioned|here|equally|all|apply|applies"
            rf"|{_THINGS}|{_VERDICT}))*",
            rf"(?:all|both|none|neither)(?: is| are)? {_VERDICT}",
            # Without a noun, these can only mean the other options. "None" has its own meaning.
            r"all|both|any|either|neither",
            rf"(?:{_CUE})*{_THINGS} \d(?:{_AND}\d)*",
            r"(?:all|everything|anything|nothing|none|any)(?: of)?(?: the)?"
            rf"{_SAID} (?:above|below)",
            # Chinese: "all of the above are right", "none of the above".
            r"(?:以上|上述|前述)(?:选项|答案|各项|几项|[二两三四][项者种]|所有|全部|[都均皆全不是对错有无非的可能]"
            r"|正确|错误|没有)+",
            r"(?:全部|都|皆|均)(?:不)?(?:是|对|正确|都是|都对)|所有(?:选项|答案)(?:都)?(?:不)?(?:是|对|正确)?",
            # Vietnamese: "all (three) answers above", "no answer is right".
            r"(?:tất cả|cả (?:hai|ba|bốn|[2-4]))(?: các| những)?"
            r"(?: (?:đáp án|câu|ý|phương án|lựa chọn|trên|đều|đúng|sai|ở trên))+",
            r"(?:không có|không|chưa có)(?: các| những)? (?:đáp án|câu|ý|phương án|lựa chọn)"
            r"(?: (?:nào|trên|đều|đúng|sai|ở trên))*",
            # Spanish, Portuguese, French, Italian and German.
            r"(?:tod[ao]s?|ningun[ao]|nenhuma?|ambas|ambos)(?: (?:de|das|dos|as|os|las|los|lo))*"
            r"(?: (?:anterior(?:es)?|opciones|opções|alternativas|respuestas|respostas|acima"
            r"|(?:son |estão |es |está )?corre[ct]+as?))+",
            r"(?:toutes|tous|aucune?)(?: de)?(?: (?:les|ces|des|ceux))?"
            r"(?: (?:réponses|propositions|options|ci-dessus|précédentes|proposées"
            r"|sont (?:correctes|exactes|vraies)))+",
            r"(?:tutte|nessuna|entrambe)(?: (?:le|delle))?"
            r"(?: (?:precedenti|risposte|opzioni|sono corrette))+",
            r"(?:alle|keine?[rs]?|beide)(?: (?:der|die|oben|davon))*"
            r"(?: (?:genannten|obigen|antworten|aussagen|optionen|davon"
            r"|(?:sind |ist )?(?:richtig|falsch)))+",
        )
    )
)


def speaking_of_places(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the letters of the options that refer to the places of others.

    Args:
        options: Letter -> text, in the order of the data set.
    """
    naming = naming_letters(options)
    by_ordinal = [o for o in options.values() if _STARTS_WITH_ORDINAL.match(_plain(o))]
    if len(by_ordinal) > 1:  # the question asks for one
        by_ordinal = []
    return tuple(
        letter
        for letter, text in options.items()
        if letter in naming
        or _is_about_others(text)
        or (text in by_ordinal and _BY_ORDINAL.fullmatch(_plain(text)))
    )


def naming_letters(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the letters of options that name other options by letter, or carry their own letter.

    An example of the latter is "b. Iron". Letters that stand for statements in the question do not
    count: in that case all options name letters, "a and c", "b and d", or one names itself or a
    later option.
    """
    if all(re.match(rf"\W?{letter}(?:\W|$)", o, re.IGNORECASE) for letter, o in options.items()):
        return tuple(options)
    named = {letter: _named(text) for letter, text in options.items()}
    found = []
    for letter, (names, has_cue) in named.items():
        targets = {other for other in options if other != letter and (has_cue or other < letter)}
        if names and names <= targets and any(not named[name][0] for name in names):
            found.append(letter)
    return tuple(found)


def _is_about_others(text: str) -> bool:
    return _ABOUT_OTHERS.fullmatch(_plain(text)) is not None


def _named(text: str) -> tuple[frozenset[str], bool]:
    """Return (letters that make up the whole text, whether it calls them options)."""
    if between := _RANGE.fullmatch(_plain(text)):
        ends = [_ALONE.findall(between[name])[-1] for name in ("first", "last")]
        has_cue = bool(between["before"])
        is_range = ord(ends[1]) - ord(ends[0]) > (0 if has_cue else 1)  # "A-V", "A to B" are none
        return frozenset(end.upper() for end in ends) if is_range else frozenset(), has_cue
    match = _LETTERS.fullmatch(_plain(text))
    if match is None:
        return frozenset(), False
    parts = re.split(_AND, match["letters"])
    letters = [letter for part in parts for letter in _ALONE.findall(part)]
    has_cue = bool(match["before"] or match["after"])
    if len(set(letters)) < 2 and not has_cue:
        return frozenset(), False
    return frozenset(letter.upper() for letter in letters), has_cue


@lru_cache(maxsize=1024)  # an option is read several times in a row
def _plain(text: str) -> str:
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return re.sub(r"^[(\[]?[a-j][).\]:]\s+(?=\w{2})", "", folded).strip(" .,;:!-–")
