"""Detects options that refer to the places of other options: "All of the above", "Both A and C".

The meaning of such an option changes, or is lost, when the other options move.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from exaid_core.tokenizer import UNSPACED

_QUANTITY = (
    r"(?:(?:not|only|just|more than|at least) )?"
    r"(?:all|none|any|both|either|neither|each|some|one|two|three|nothing)"
    r"(?: one| two| three| or more)?"
)
_THINGS = r"(?:options?|choices?|answers?|alternatives?|responses?|statements?)"
_VERDICT = r"(?:correct|true|right|wrong|false|incorrect|possible)"
_NOUN = (
    rf"(?:(?:the|las?|los|el|as?|os?|les?|die|le|gli) )?(?:{_THINGS}|respuestas?|respostas?"
    r"|opci(?:ón|ones)|opç(?:ão|ões)|alternativas?|réponses?|propositions?|rispost[ae]"
    r"|antwort(?:en)?|antwoord(?:en)?|svar|odpowiedzi|ответы?|jawaban|câu|đáp án|选项|選項|選択肢)"
)
_OTHER_LETTERS = str.maketrans("абвгдесأابجد", "abcdefcaabcd")
"""Letters of options in Cyrillic and Arabic."""
_ANY_LETTER = "[a-zа-есأابجد]"
_LETTER = rf"(?:{_NOUN} )?[(\['\"‘“]?{_ANY_LETTER}[)\]'\"’”.]?"
_AND = (
    r"\s*(?:(?:,\s*)?(?<!\w)(?:and/or|and|or|nor|(?:but )?not|as well as|plus|with"
    r"|và|hoặc|et|ou|und|oder|como|als auch|en|of|och|eller|og|и|или|oraz|lub|ve|veya|dan|atau"
    r"|और|या|및)(?!\w)"
    r"|(?<= )[yoeiو](?= )|[和及与或と와과]|または|および|(?:,\s*)?[、;&+/]|,)\s*"
)
_CUE = (
    r"(?:both|either|neither|only|not|same as|combination of|(?:all|any|one|none|each) of"
    rf"|(?:all|none),? (?:except|but|apart from)|cả|tanto|amb[ao]s|les deux|sowohl|верно|{_NOUN}) "
)
_ALONE = re.compile(rf"(?<!\w){_ANY_LETTER}(?!\w)")
_ORDINAL = r"(?:the )?(?:first|second|third|fourth|fifth|former|latter|last)"
_RIGHT = (
    r"\s?(?:đều )?(?:đúng|sai)| (?:son|estão|sont|sono|sind) (?:corre[ct]+[aeo]s?|vraies|richtig)"
    r"|[都均皆]?(?:对|正确)| (?:верны|верно|benar|दोनों)"
)
_SAID = r"(?: (?:mentioned|listed|given|stated|described|named|options?|choices?|answers?))*"
_IS_RIGHT = rf"(?: (?:is|are) (?:both )?{_VERDICT})"
_LETTERS = re.compile(
    rf"(?P<before>(?:{_CUE})*)(?P<letters>{_LETTER}(?:{_IS_RIGHT}?{_AND}{_LETTER})*)"
    rf"(?P<after>(?: (?:only|both|alone|together)|{_IS_RIGHT}|{_RIGHT})*)"
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
            r"(?:all|both|none|neither) (?:apply|applies)",
            r"other than (?:the )?above",
            r"(?:all|any|both|none|neither)(?: of)?(?: the| those)? (?:mentioned|listed)",
            # Without a noun, these can only mean the other options. "None" has its own meaning.
            r"all|both|any|either|neither",
            rf"(?:{_CUE})*{_THINGS} \d(?:{_AND}\d)*",
            r"(?:all|everything|anything|nothing|none|any)(?: of)?(?: the)?"
            rf"{_SAID} (?:above|below)",
            # Chinese: "all of the above are right", "none of the above".
            r"(?:以上|上述|前述)(?:选项|答案|说法|叙述|描述|各项|几项|[二两三四][项者种]|所有|全部|[都均皆全不是对错有无非的可能]"
            r"|正确|错误|没有)+",
            r"(?:全部|都|皆|均)(?:不)?(?:是|对|正确|都是|都对)|所有(?:选项|答案)(?:都)?(?:不)?(?:是|对|正确)?",
            # Vietnamese: "all (three) answers above", "no answer is right".
            r"(?:tất cả|cả (?:hai|ba|bốn|[2-4]))(?: các| những)?"
            r"(?: (?:đáp án|câu|ý|phương án|lựa chọn|trên|đều|đúng|sai|ở trên))+",
            r"(?:không có|không|chưa có)(?: các| những)? (?:đáp án|câu|ý|phương án|lựa chọn)"
            r"(?: (?:nào|trên|đều|đúng|sai|ở trên))*",
            # Japanese and Korean.
            r"(?:上記|以上)の?(?:すべて|全て|全部|いずれ|どれ|どちら)\w{0,12}",
            r"(?:すべて|全て|いずれも|どれも)(?:正しい|誤り|正解|該当する)",
            r"(?:위의?|상기|이상) ?(?:모두|모든|전부|어느)[\w ]{0,12}",
            r"(?:모두|전부) ?(?:맞|옳|정답)\w{0,3}",
            # Spanish, Portuguese, French, Italian.
            r"(?:tod[ao]s?|ningun[ao]|nenhuma?|ambas|ambos)(?: (?:de|das|dos|as|os|las|los|lo))*"
            r"(?: (?:anterior(?:es)?|opciones|opções|alternativas|respuestas|respostas|acima"
            r"|(?:son |estão |es |está )?corre[ct]+as?))+",
            r"(?:toutes|tous|aucune?)(?: de)?(?: (?:les|ces|des|ceux))?"
            r"(?: (?:réponses|propositions|options|ci-dessus|précédentes|proposées"
            r"|sont (?:correctes|exactes|vraies)))+",
            r"(?:tutte|nessuna|entrambe)(?: (?:le|delle))?"
            r"(?: (?:precedenti|risposte|opzioni|sono corrette))+",
            # German, Dutch, Swedish, Norwegian and Danish.
            r"(?:alle|al|keine?[rs]?|beide|geen|alla|inge[nt]|inget|båda|begge)"
            r"(?: (?:der|die|de|het|van|av|af|oben|davon))*"
            r"(?: (?:genannten|obigen|antworten|aussagen|optionen|davon|bovenstaande|genoemde"
            r"|antwoorden|ov[ae]nstående|ovennevnte|svar|alternativ(?:en)?"
            r"|(?:(?:sind|ist|zijn|är|er) )?(?:richtig|falsch|juist|rätt|riktig[ae]?|rigtige)))+",
            # Russian and Polish.
            r"(?:вс[её]|ничего|ни од(?:ин|на|но)|оба|обе)(?: из)?(?: (?:них|этих|ответ(?:ы|ов)"
            r"|вариант(?:ы|ов)|(?:выше)?(?:перечисленн|указанн|названн)[а-я]{2,3}|верны|верно"
            r"|правильны))+",
            r"(?:wszystki[em]|wszystko|żadn[aey]|obie)(?: z)?"
            r"(?: (?:nich|powyższ(?:e|ych)|wymienion(?:e|ych)|odpowiedzi"
            r"|są (?:prawidłowe|poprawne)))+",
            # Turkish, Indonesian, Arabic and Hindi.
            r"yukarıdakilerin (?:hepsi|tümü|hiçbiri|her ikisi)|hepsi(?: doğru)?",
            r"(?:semua(?:nya)?|tidak ada|keduanya)"
            r"(?: (?:jawaban|pilihan|yang|di atas|benar|salah))+",
            r"(?:جميع|كل|لا شيء|أي)"
            r"(?: (?:ما|مما|من|سبق|ذكر|أعلاه|الإجابات|الخيارات|صحيحة?|خاطئة))+",
            r"(?:उपरोक्त|उपर्युक्त|इनमें)(?: (?:सभी|में|से|कोई|नहीं|दोनों))+",
        )
    )
)

_OWN = re.compile(rf"(?:[\W_]{{0,4}}{_NOUN} ?)?[\W_]{{0,4}}([a-j])(?:[\W_]|\Z|(?=[{UNSPACED}]))")
_KIND = re.compile(r"[a-j](?:[型形群组組级級期类類区區]|[细細]胞\Z)")
"""Names of kinds, in scripts without spaces: 'A型' (type A)."""
_SERIES = [
    series.split()
    for series in (
        "1 2 3 4 5 6 7 8 9 10",
        "i ii iii iv v vi vii viii ix x",
        "α β γ δ ε ζ η θ ι κ",
        "а б в г д е ж з и к",
        "א ב ג ד ה ו ז ח ט י",
        "أ ب ج د ه و ز ح ط ي",
        "क ख ग घ ङ च छ ज झ ञ",
        "ก ข ค ง จ ฉ ช ซ ฌ ญ",
        "ア イ ウ エ オ カ キ ク ケ コ",
        "가 나 다 라 마 바 사 아 자 차",
        "甲 乙 丙 丁 戊 己 庚 辛 壬 癸",
    )
]
"""Marks of options other than Latin letters."""
_CIRCLED = re.compile("[①-⑩]")
_LABEL = re.compile(
    rf"[\W_]{{0,4}}({'|'.join(label for series in _SERIES for label in series)})ـ?[*_]{{0,2}}"
    r"(?:[).\]、】](?!\d)|\s?:(?!\s?\d)|(?<![α-κ])\s?[-–]\s(?!\d))\s*\S"
)
"""Mark of a place; "α - helix" is a name."""


def speaking_of_places(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the letters of the options that refer to the places of others.

    Args:
        options: Letter -> text, in the order of the data set.
    """
    naming = naming_letters(options)
    by_ordinal = [o for o in options.values() if _STARTS_WITH_ORDINAL.match(_unlabeled(o))]
    if len(by_ordinal) > 1:  # the question asks for one
        by_ordinal = []
    return tuple(
        letter
        for letter, text in options.items()
        if letter in naming
        or _is_about_others(text)
        or (text in by_ordinal and _BY_ORDINAL.fullmatch(_unlabeled(text)))
    )


def naming_letters(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the letters of options that name other options by letter, or carry their own letter.

    An example of the latter is "b. Iron" or "2) Iron". Letters that stand for statements in the
    question do not count: in that case all options name letters, "a and c", "b and d", or one names
    itself or a later option.
    """
    if _are_labeled(options):
        return tuple(options)
    named = {letter: _named(text) for letter, text in options.items()}
    found = []
    for letter, (names, has_cue) in named.items():
        targets = {other for other in options if other != letter and (has_cue or other < letter)}
        if names and names <= targets and any(not named[name][0] for name in names):
            found.append(letter)
    return tuple(found)


def _are_labeled(options: Mapping[str, str]) -> bool:
    """Return whether each option begins with its letter, or with a mark of its place: `2) Iron`."""
    texts = {
        letter: unicodedata.normalize("NFKC", _CIRCLED.sub(r"(\g<0>)", text)).casefold()
        for letter, text in options.items()
    }
    if all((own := _OWN.match(text)) and own[1] == of.lower() for of, text in texts.items()):
        return not all(map(_KIND.match, texts.values()))
    places = {ord(of) - ord("A"): _LABEL.match(text) for of, text in texts.items()}
    return any(
        all(label and label[1] == series[place] for place, label in places.items())
        for series in _SERIES
    )


def names_several(text: str) -> bool:
    """Return whether a text is nothing but a mention of several options: `(A) and (B)`."""
    return len(_letters_of(_plain(text))[0]) > 1


def _is_about_others(text: str) -> bool:
    return any(_ABOUT_OTHERS.fullmatch(reading) for reading in (_plain(text), _unlabeled(text)))


def _named(text: str) -> tuple[frozenset[str], bool]:
    """Return (letters that make up the whole text, whether it calls them options)."""
    found = _letters_of(_plain(text))
    return found if found[0] else _letters_of(_unlabeled(text))


def _letters_of(plain: str) -> tuple[frozenset[str], bool]:
    if between := _RANGE.fullmatch(plain):
        ends = [_alone(between[name])[-1] for name in ("first", "last")]
        has_cue = bool(between["before"])
        is_range = ord(ends[1]) - ord(ends[0]) > (0 if has_cue else 1)  # "A-V", "A to B" are none
        return frozenset(ends) if is_range else frozenset(), has_cue
    match = _LETTERS.fullmatch(plain)
    if match is None:
        return frozenset(), False
    letters = frozenset(
        letter for part in re.split(_AND, match["letters"]) for letter in _alone(part)
    )
    has_cue = bool(match["before"] or match["after"])
    return letters if len(letters) > 1 or has_cue else frozenset(), has_cue


def _alone(text: str) -> list[str]:
    """Return the letters that stand alone, in uppercase."""
    return [letter.translate(_OTHER_LETTERS).upper() for letter in _ALONE.findall(text)]


@lru_cache(maxsize=1024)  # an option is read several times in a row
def _plain(text: str) -> str:
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(" .,;:!-–")


def _unlabeled(text: str) -> str:
    """Return a text without a label of its own: `e. All of the above`."""
    return re.sub(r"^[(\[]?[a-j][).\]:]\s+", "", _plain(text))
