"""Decodes the text of a file, and recognizes text in an encoding that is not read."""

from __future__ import annotations

import contextlib
import re
from itertools import chain, islice

_INTACT = 3
"""Characters beyond ASCII that show for each damaged place that a text is UTF-8."""
_RAREST_ZEROS = 50
"""Maximum number of bytes for each zero of a UTF-16 text: spaces, line ends and digits have one."""
_NONSENSE = re.compile(
    r"(?=[^\x00-\x7f\s«»‹›“”„‘’‚–—…•€°]{5})(?!(.)\1{4})|[^\W\d_][¿¹²³¼½¾¸¤¦¬¯][^\W\d_]"
    r"|(?=[À-ÿ][à-ÿ]{3})(?!(.)\2{3}|[áæéíðóöúýþ]{4})|[ÂÃ][¡-º¼-¿]|â€"
    r"|[a-zß-ÿ][§©£¥¢†‡‰ˆ˜‹›‚][a-zß-ÿ]"  # letters of Mac Roman, DOS and TCVN3
    r"|þ(?=[b-df-hk-np-qs-tw-xz])"  # Turkish, with a letter of Icelandic
    r"|[0-9]\s?¤|¤\s?[0-9]"  # the euro sign of ISO-8859-15
)
"""What Windows-1252 makes of other encodings, also of words that no list has: five different
letters and signs beyond ASCII in a row, or four letters in lower case that are not Icelandic, a
sign within a word, or the first bytes of UTF-8."""
_WESTERN = "ca da de en es fi fr is it nb nl pt sv"
_CENTRAL = "cs hu pl ro sh sk sl"
_LANGUAGES = {
    "cp1252": _WESTERN, "mac_roman": _WESTERN, "cp850": _WESTERN,
    "cp1250": _CENTRAL, "iso8859_2": _CENTRAL, "cp852": _CENTRAL,
    "cp1251": "bg mk ru uk", "koi8_r": "ru", "cp866": "ru", "iso8859_5": "ru",
    "cp1253": "el", "cp1254": "tr", "cp1255": "he", "cp1256": "ar fa", "cp1257": "lt lv",
    "cp1258": "vi",
    "big5": "ja", "gbk": "zh", "shift_jis": "ja", "euc_jp": "ja", "euc_kr": "ko",
}  # fmt: skip
"""Encoding -> languages whose words are looked for; Japanese has the characters of Big5."""
_OF_SIGNS = ("big5", "gbk", "shift_jis", "euc_jp")
"""Encodings of languages without spaces: each character is looked for."""
_LATIN = (
    "cp1252",
    "mac_roman",
    "cp850",
    "cp1250",
    "iso8859_2",
    "cp852",
    "cp1254",
    "cp1257",
    "cp1258",
)
"""Encodings of languages whose words have letters of ASCII as well."""
_MOST_WORDS = 2_000
_SHORTEST = 3
"""Number of letters of the shortest word that is looked for."""
_UTF_7 = re.compile(rb"\+[A-Za-z0-9/]{3,}-[A-Za-z]")
"""A letter beyond ASCII within a word of UTF-7."""
_PARTS = re.compile(rb"[^\s/,;:()]+")
_LONGEST = 100
"""Number of bytes of the longest word that is looked for."""
_WORD = re.compile(r"[“”‘’„‚«»\"']*(?P<word>[^\W\d_]{2,}(?:['’-][^\W\d_]+)*)[“”‘’„‚«».…!?\"']*")
_ROMANIAN = str.maketrans("şţ", "șț")
"""Letters of old encodings -> those of the word list."""


def decoded(content: bytes) -> str | None:
    """Decode a text: UTF-16 with a byte order mark, UTF-8, or else Windows-1252.

    U+FFFD stands where UTF-8 is damaged.

    Returns:
        The text; None if it is in another encoding.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode("utf-16")
    text = content.decode("utf-8-sig", errors="replace")
    if "\0" not in text and _is_utf_8(content, text):
        return None if _hides_letters(content) else text
    with contextlib.suppress(UnicodeDecodeError):
        text = content.decode("cp1252")
        if "\0" not in text and not _NONSENSE.search(text) and not _has_other_words(content):
            return text
    return None


def may_be_utf_16(content: bytes) -> bool:
    """Return whether many zeros are the first, or the second, bytes of characters."""
    less, more = sorted(half.count(0) for half in (content[::2], content[1::2]))
    return not less and len(content) % 2 == 0 and _RAREST_ZEROS * more >= len(content)


def _is_utf_8(content: bytes, text: str) -> bool:
    """Return whether a text is UTF-8, damaged in a few places at most or cut within a character."""
    replaced = text.count("\ufffd")
    damaged = replaced - content.count("\ufffd".encode())
    intact = len(text) - len(text.encode("ascii", errors="ignore")) - replaced
    is_cut = damaged and text.endswith("\ufffd")
    return not damaged or intact > _INTACT * (damaged - is_cut)


def _hides_letters(content: bytes) -> bool:
    """Return whether the ASCII of a text stands for other letters, as in old mails."""
    if not content.isascii():
        return False
    if b"\x1b$" in content:
        return True
    if not _UTF_7.search(content):  # "DOAC+ASA" is no letter
        return False
    try:
        letters = content.decode("utf-7")
        letters.encode("cp1252")  # other letters come of notations such as CD3+CD4-
    except UnicodeError:
        return False
    return not letters.isascii()


def _has_other_words(content: bytes) -> bool:
    """Return whether more words of a text are known in another encoding than in Windows-1252.

    Only the words that the other encoding changes count.
    """
    found = (one.group() for one in _PARTS.finditer(content) if one.end() - one.start() <= _LONGEST)
    parts = [*islice(dict.fromkeys(one for one in found if not one.isascii()), _MOST_WORDS)]
    western, *others = _LANGUAGES
    usual = {part: part.decode(western) for part in parts}
    known: set[bytes] | None = None
    for encoding in others:
        texts = {part: part.decode(encoding, errors="replace") for part in parts}
        changed = {part: text for part, text in texts.items() if text != usual[part]}
        # Lists of words are large, and few texts need one.
        telling = {part: text for part, text in changed.items() if _tells(text, usual[part])}
        if here := len(_known(telling, encoding)):
            known = _known(usual, western) if known is None else known
            fewest = len(known & changed.keys())
            if len(changed) > 2 * fewest and here > fewest:
                return True
    return False


def _tells(text: str, usual: str) -> bool:
    """Return whether a word tells the encoding: not the quotation marks of Mac Roman in "DUBÉ"."""
    word, other = _WORD.fullmatch(text), _WORD.fullmatch(usual)
    return not (word and word["word"].isascii() and other and _is_spelt(other["word"]))


def _is_spelt(word: str) -> bool:
    """Return whether only the first letter of a word is a capital, or none is, or each is."""
    return word.isupper() or word[1:].islower()


def _known(texts: dict[bytes, str], encoding: str) -> set[bytes]:
    """Return the parts of a text that are known words, as they are read in an encoding."""
    import wordfreq

    words = {part: _letters(text, encoding) for part, text in texts.items()}
    wanted = {letters for word in words.values() for letters in word}
    if not wanted:
        return set()
    lists = (wordfreq.get_frequency_list(one, "small") for one in _LANGUAGES[encoding].split())
    found = wanted.intersection(chain.from_iterable(chain.from_iterable(lists)))
    return {part for part, word in words.items() if word and found.issuperset(word)}


def _letters(text: str, encoding: str) -> tuple[str, ...]:
    """Return what is looked for in a list of words: a word, or its signs; nothing if it is none."""
    match = _WORD.fullmatch(text)
    word = match["word"] if match else ""
    if encoding not in _LATIN and any(one.isascii() for one in word):
        return ()
    if encoding in _OF_SIGNS:
        return tuple(word)
    if len(word) < _SHORTEST or not _is_spelt(word):
        return ()
    word = word.casefold().replace("’", "'")
    return (word.translate(_ROMANIAN) if _LANGUAGES[encoding] == _CENTRAL else word,)
