"""Shortens long texts without changing the meaning of what is left."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from exaid_core.checks.term_list import phrases
from exaid_core.tokenizer import character_ends, is_spaced, sentence_ends, word_spans

ELLIPSIS = "…"
PLACEHOLDER = "None reported."
"""Text of a field without content."""

# Characters that are read past the limit: enough for the words that decide about the last gap.
_LOOKAHEAD = 200
_LONGEST_PHRASE = 4
"""Number of words on each side of a negation that belong to it."""
_LONGEST_UNSPACED_PHRASE = 8
"""Counterpart of `_LONGEST_PHRASE` for dictionary words: shorter ones, particles included."""
_LONGEST_WORD = 64
"""Maximum characters of a word; a longer run between spaces can be cut anywhere."""

_DANGLING = " \t\n,;:.…([{/–—，、。；：（「『【《〈،؛۔।¿¡"

_BEFORE_A_NUMBER = "([<>≤≥=~≈±+−-.,（"
_ENDS_CLAUSE = re.compile(r"[.,;:!?)\]，、。；：！？）」』】،؛؟۔।]$")
_COMPARATOR = re.compile(r"[(\[]?(?:[<>≤≥=~≈±]+|[+−-])")
# Units: lower-case Latin and Cyrillic letters, letters of caseless scripts, and German nouns.
_UNIT = re.compile(
    r"[a-zµμà-öø-ÿđơưạ-ỹ%°‰/×\u0430-\u045f]|[^\W\d_\u0000-\u0590]"
    r"|(?:IU|U|L|Hz|kPa|Fr|Gy|Bq|[kMG]Bq|MHz|Eq|M)\b"
    r"|(?:Ampullen?|Einheiten|Gramm|Hübe|Mikrogramm|Milligramm|Milliliter|Minuten|Stück|Stunden"
    r"|Tabletten?|Tagen?|Tropfen|Wochen)\b"
)
_LONG_UNITS = phrases("đơn vị, وحدة دولية, مم زئبق, ميلي مول, ملي مول, международных единиц")
_RANGE_SIGNS = phrases(
    "-, −, –, —, /, x, ×, *, ·, ±, +/-, to, and, or, of, in, over,"
    "～, 至, 到, から, ถึง, đến, إلى, bis, a, à, до"
)
_MAGNITUDES = phrases("hundred, thousand, million, billion")
_DIVIDERS = phrases("per, /, 每, 毎, ต่อ, mỗi, por, par, pro, لكل")

_CONJUNCTIONS = phrases(
    "and, or, but, nor, yet, so, then, however, although, though, while, whereas, because, since,"
    "pero, aunque, porque, und, oder, aber, weil, mais, và, hoặc, nhưng, vì, أو, لكن, ثم, لأن,"
    "但, 但是, 和, 与, 與, 及, 或, 并, 並, 而, แต่, และ, หรือ, เพราะ"
)
# Words that may follow a number without being its unit.
_NOT_UNITS = _CONJUNCTIONS | phrases("with, on, in, at, for, is, was, were, are, to, by, from, as")

# Phrases of one or two words that negate, or advise against, what follows.
_NEGATIONS = phrases(
    "no, not, non, never, none, nil, nor, neither, without, cannot, lacks, lacking, lack of,"
    "deny, denies, denied, denying, unlikely, less likely, absent, absence of, free of,"
    "exclude, excludes, excluded, rule out, rules out, ruled out, ruling out, negative for,"
    "evidence against, rather than, instead of, unless, except, hardly, fails to, failed to,"
    "refuses, refused, declines, declined, contraindicated, avoid, stop, withhold, discontinue"
)
# Negations that may apply to the words before them: "thrombolysis is not indicated".
_DENIES_BEFORE = phrases(
    "not, never, cannot, unlikely, less likely, absent, excluded, ruled out, contraindicated,"
    "unless, except"
)
# Counterparts in other languages with spaces; in capitals they are English abbreviations.
_OTHERS_DENY_BEFORE = phrases(
    "descartado, descartada, improbable, contraindicado, contraindicada, ausente, descartou,"
    "pas, exclu, exclue, nicht, ausgeschlossen, unwahrscheinlich, kontraindiziert, không, غير, нет,"
    "नहीं"
)
# Vietnamese puts spaces between syllables, so a phrase has twice as many words.
_VIETNAMESE_NEGATIONS = phrases(
    "không, chưa, chẳng, đừng, tránh, ngừng, ngưng, phủ nhận, loại trừ, chống chỉ, ít nghĩ"
)
_OTHER_NEGATIONS = (
    _OTHERS_DENY_BEFORE
    | _VIETNAMESE_NEGATIONS
    | phrases(
        # Spanish, Portuguese, Italian
        "sin, ni, nunca, jamás, tampoco, ningún, ninguno, ninguna, niega, niegan, negó,"
        "ausencia de, descarta, descartar, evitar, suspender, salvo, excepto,"
        "não, sem, nem, nega, nenhum, nenhuma, senza, né, nessun, nessuna, evitare,"
        # French, German
        "sans, aucun, aucune, jamais, sauf, éviter, arrêter, absence de,"
        "kein, keine, keinen, keinem, keiner, keines, nie, niemals, ohne, weder, verneint,"
        "vermeiden, absetzen, außer,"
        # Arabic
        "لا, ليس, ليست, لم, لن, بدون, دون, بلا, عدم, ولا, وليس, ولم, ولن, نفى, ينفي, تنفي, ينفى,"
        "استبعاد, يستبعد, تجنب, إيقاف, خال, خالٍ, خالي, خالية,"
        # Russian, Korean, Hindi
        "не, без, ни, отрицает, исключить, избегать, 안, 못, बिना"
    )
)
_PAIRED = frozenset(name for name in _NEGATIONS | _OTHER_NEGATIONS if " " in name)
# Negations in scripts without spaces, at any position.
_UNSPACED_NEGATIONS = re.compile(
    "[未否]|不(?![全整同])|非(?!常)|无效|無効|無し|禁|停用|停止|中止|除外|排除|阴性|陰性|避け|低い|乏し|にくい"
    "|な(?:い|く|かっ|けれ|し)|ません|ず(?!つ)|ぬ"
    "|(?P<before_what>[无無没沒勿毋莫别]|免(?=用|除)|避免|ไม่|มิได้|ปฏิเสธ|ห้าม|อย่า|งด"
    "|ไร้|ปราศจาก|หลีกเลี่ยง|ບໍ່|មិន|គ្មាន)"
)
# Korean negations at the start of a word: "발열이 없다".
_KOREAN_NEGATION = re.compile("없|않|아니")

# Vowels of Thai and Lao that are written before their consonant.
_LEADING_VOWELS = "เแโใไເແໂໃໄ"
# Numbers at the end, with their possible units.
_NUMBER_AT_END = re.compile(r"(?:\d\D{0,11})+\Z")


def shorten(text: str, limit: int) -> str:
    """Return `text` if it fits, else as much of its beginning as makes sense alone plus `…`.

    The cut falls between words, even in scripts without spaces. A number stays with its unit, and a
    range or fraction stays whole. A negation stays with the words that it negates (up to four on
    each side within its clause, or eight in scripts without spaces), or both are dropped. Only if
    no word fits, a word is cut, provided that it belongs to a script without spaces or is longer
    than any word: between user-perceived characters (grapheme clusters), and not in or after a
    number.

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
    spans = word_spans(head)
    bound = _bound_gaps(head, spans)
    characters = None if head.isascii() else set(character_ends(head))
    for index in reversed(range(len(spans) - 1)):
        end = spans[index][1]
        if end < limit and index not in bound:
            kept = head[:end].rstrip(_DANGLING)
            if kept and (characters is None or len(kept) in characters):
                return kept + ELLIPSIS
    if spans and 0 not in bound and _can_be_divided(text, *spans[0]):
        ends = [end for end in character_ends(head) if spans[0][0] < end < limit]
        kept = head[: ends[-1]].rstrip(_LEADING_VOWELS) if ends else ""
        return _NUMBER_AT_END.sub("", kept) + ELLIPSIS
    return ELLIPSIS


def _can_be_divided(text: str, start: int, end: int) -> bool:
    """Return whether a first word can be cut, as `shorten` describes."""
    word = text[start:end]
    if not is_spaced(word):
        return not _UNSPACED_NEGATIONS.match(word)
    return len(word) > _LONGEST_WORD or not re.search(r"[^\W_]", text)


def split_text(text: str, limit: int) -> list[str]:
    """Split a text into pieces of at most `limit` characters; joined, they equal the text.

    Each piece is as long as possible and ends at the end of a sentence. If no sentence fits, it
    ends between words, if possible where `shorten` would cut, and inside a word only if the word is
    too long.

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
    spans = word_spans(text)
    bound = _bound_gaps(text, spans)
    starts = [start for start, _ in spans[1:]]
    free = [start for gap, start in enumerate(starts) if gap not in bound]
    for places in (free, starts, characters):
        if ends := [end for end in places if end in characters]:
            return ends[-1]
    return limit  # a single grapheme cluster longer than the limit


def _bound_gaps(text: str, spans: list[tuple[int, int]]) -> set[int]:
    """Return the indices of the words after which the text must not be cut."""
    bound: set[int] = set()
    words = [text[start:end] for start, end in spans]
    plain = [_plain(word) for word in words]
    clause_ends = [
        bool(_ENDS_CLAUSE.search(word)) or (not is_spaced(word) and text[end : end + 1].isspace())
        for word, (_, end) in zip(words, spans, strict=True)
    ]
    for index in range(len(words) - 1):
        # No cut after a conjunction or a dash: stripping a dash would expose the word before it.
        if plain[index] in _CONJUNCTIONS or not words[index].strip(_DANGLING):
            bound.add(index)
        bound.update(_amount(words, clause_ends, index))
        bound.update(_negated(words, plain, clause_ends, index))
    for gaps in (
        [] if is_spaced(text) else _negated_unspaced(text, spans, words, plain, clause_ends)
    ):
        bound.update(gaps)
    return bound


def _plain(word: str) -> str:
    return (
        word.strip("*_()[]\"'“”‘’.,;:!?，、。；：！？（）「」『』،؛؟۔«»¿¡")
        .lower()
        .replace("’", "'")
    )


def _amount(words: list[str], clause_ends: list[bool], index: int) -> range:
    """Return the gaps from the word at `index` on, at most three, that would split an amount."""
    word, after = words[index : index + 2]
    beyond = words[index + 2] if index + 2 < len(words) else ""
    one, two = range(index, index + 1), range(index, index + 2)
    if after in _DIVIDERS:
        return two
    if _COMPARATOR.fullmatch(word) or word.lower() in _MAGNITUDES:
        return one
    if word.endswith("/") and not is_spaced(after):
        return one
    if not _ends_with_number(word):
        return range(0)
    if after.lower() in _RANGE_SIGNS and _starts_with_number(beyond):
        return two
    if f"{after} {_plain(beyond)}" in _LONG_UNITS:
        return two
    if not is_spaced(after):
        # Dictionaries split long units: 毫米|汞|柱.
        last = min(index + 3, len(words) - 1)
        return range(index, next((i for i in range(index + 1, last) if clause_ends[i]), last))
    is_unit = _UNIT.match(after) and _plain(after) not in _NOT_UNITS
    return one if is_unit or _starts_with_number(after) else range(0)


def _ends_with_number(word: str) -> bool:
    last = word.rstrip("%％")[-1:]
    return last.isnumeric() or last in tuple("两兩半")


def _starts_with_number(word: str) -> bool:
    return word.lstrip(_BEFORE_A_NUMBER)[:1].isnumeric()


def _negated(words: list[str], plain: list[str], clause_ends: list[bool], index: int) -> range:
    """Return the gaps within the phrase of a negation that starts at `index`; empty without one."""
    name, end = " ".join(plain[index : index + 2]), index + 1
    if name not in _PAIRED:
        name, end = plain[index], index
    if name in _NEGATIONS or name.endswith("n't"):
        denies_before = name in _DENIES_BEFORE or name.endswith("n't")
    elif name in _OTHER_NEGATIONS and not words[index].isupper():
        denies_before = name in _OTHERS_DENY_BEFORE
    elif _KOREAN_NEGATION.match(name):
        denies_before = True
    else:
        return range(0)
    longest = _LONGEST_PHRASE * (2 if name in _VIETNAMESE_NEGATIONS else 1)
    start = _start_of_phrase(words, plain, clause_ends, index, longest) if denies_before else index
    # At least one word follows: a negation must not be the last word.
    last = _end_of_phrase(plain, clause_ends, end, longest)
    return range(start, min(max(last, end + 1), len(words) - 1))


def _negated_unspaced(
    text: str,
    spans: list[tuple[int, int]],
    words: list[str],
    plain: list[str],
    clause_ends: list[bool],
) -> Iterator[range]:
    """Yield the gaps within the phrase of each negation in a script without spaces."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    for negation in _UNSPACED_NEGATIONS.finditer(text):
        first = bisect_right(starts, negation.start()) - 1
        last = bisect_left(ends, negation.end())
        start, end = first, _end_of_phrase(plain, clause_ends, last, _LONGEST_UNSPACED_PHRASE)
        if negation["before_what"]:
            end = min(max(end, last + 1), len(spans) - 1)
        else:
            start = _start_of_phrase(words, plain, clause_ends, first, _LONGEST_UNSPACED_PHRASE)
        yield range(start, end)


def _start_of_phrase(
    words: list[str], plain: list[str], clause_ends: list[bool], index: int, longest: int
) -> int:
    for before in range(index - 1, max(index - 1 - longest, -1), -1):
        # A heading right before the negation is what it negates: "Embolism: ruled out".
        is_heading = before == index - 1 and words[before].endswith((":", "："))
        if (clause_ends[before] and not is_heading) or plain[before] in _CONJUNCTIONS:
            return before + 1
    return max(index - longest, 0)


def _end_of_phrase(plain: list[str], clause_ends: list[bool], index: int, longest: int) -> int:
    last = min(index + longest, len(plain) - 1)
    for word in range(index, last):
        if clause_ends[word] or plain[word + 1] in _CONJUNCTIONS:
            return word
    return last
