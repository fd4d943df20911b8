"""Extracts the plain text of a model's reply and finds option texts in it.

Models wrap the same answer in Markdown, LaTeX, HTML, full-width characters or reasoning tags. The
rules of :mod:`mdagents_llm.answers` read the plain lines from :func:`plain_lines`, and use
:class:`OptionTexts` to find the options that a passage names in words.
"""

import html
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from mdagents_llm.reasoning_tags import CLOSING, OPENING, without_blocks

MAX_CHARS = 50_000
"""Number of characters that are read from the end of a reply, about 12,000 tokens.

This is several times the longest reply that a prompt of this project requests. Nothing earlier can
override a final statement.
"""

_LOOP_TAIL = 40
"""Length of the end of a reply that is searched for earlier in it, in characters."""
_LONGEST_PASSAGE = 2_000
"""Maximum length of a passage that counts as looping, in characters."""
_LOOP_KEPT = 800
"""Minimum number of characters that are kept of a loop, besides one copy."""

# Invisible characters that would separate a label from its letter.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
# Here and below, alternatives that each start with one character are searched much faster.
_NEWLINE = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")
# A doubly encoded line break; before a lowercase letter it would be LaTeX, as in \neq.
_ESCAPED_NEWLINE = re.compile(r"\\n(?![a-z])")
# Characters that NFKC leaves unchanged: typographic quotes, hyphens, and East Asian brackets. It
# makes the slash of a fraction.
_LOOKALIKES = str.maketrans(
    "‘’‚‛“”„‟«»‐‑−∶⁄【】〔〕「」『』《》〈〉⟨⟩",
    '\'\'\'\'""""""---:/[][]""""<><><>',
)
# Cyrillic and Greek letters alone behind a sign. Cyrillic В and Е look like B and E but have other
# places in their alphabet, so they may be the third option and the sixth.
_LOOKALIKE_LETTER = re.compile(r"(?<=[:(\[])\s?[АСΑΒΕ](?=\s?(?:[)\].]|$))", re.MULTILINE)
_AS_LATIN = str.maketrans("АСΑΒΕ", "ACABE")
_CONTRACTIONS = (
    (re.compile(r"\bcan't\b", re.IGNORECASE), "cannot"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
)

# A reasoning model's thoughts are not its reply: they weigh letters that the reply then drops. The
# opening tag may be in the prompt template, and a truncated reply may lack the closing one.
_THOUGHTS_CLOSE = re.compile(rf"{CLOSING.pattern}|</(?:reasoning|scratchpad)>", re.IGNORECASE)
_THOUGHTS_OPEN = re.compile(rf"{OPENING.pattern}|<(?:reasoning|scratchpad)>", OPENING.flags)

# First characters of all markup up to `_SNAKE_CASE`; most texts contain none of them.
_MARKUP_SIGN = re.compile(r"[<\[~\\_]")
# Servers of small models may pass through the tokens that end or frame a turn.
_SPECIAL_TOKEN = re.compile(
    r"<[|｜][\w▁ ]{1,40}[|｜]>|</?s>|\[/?INST\]|<(?:end|start)_of_(?:turn|utterance)>|<\|?turn\|?>"
    r"|<(?:seed:)?(?i:[be]os|eo[adhmpt])>|<(?:unk|pad)>"
    r"|\[\|\w{1,40}\|\]|\[e~\[|\]~b\]|</?assistant>"
)
_TURN_END = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|end_of_text|endoftext|end_of_turn|eos)\|>|</s>|<end_of_turn>"
    r"|<turn\|>|\[INST\]|(?:<\|im_start\|>|<start_of_turn>|<\|start_header_id\|>)user|<\|user\|>"
    r"|<(?:seed:)?(?i:eos|eo[adhmpt])>(?! [a-z])|<｜end▁of▁sentence｜>"
    r"|<[|｜](?:User|hy_User)[|｜]>|\[e~\["
    r"|\[\|(?:endofturn|user)\|\]|<\|turn>user|<end_of_utterance>|</assistant>"
    r"|\[unused10\]"
)
_STRUCK_OUT = re.compile(r"~~[^~\n]{1,300}~~|<(?:del|strike)>[^<\n]{1,300}</(?:del|strike)>")
# Between texts, "<s>" and "</s>" are no tokens of a model.
_STRUCK_OUT_SHORT = re.compile(r"(?<=[^\s>\]])\s*<s>[^<\n]{1,300}</s>")
# A box whose content is on lines of its own.
_OPEN_BOX = re.compile(r"(\\f?box(?:ed)?\s?\{)\s*\n\s*")
_LATEX_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|tt|sf|normal|sc|up)?|math(?:bf|it|rm|tt|sf|bb|cal|normal)|bf|rm|[hm]box"
    r"|emph|underline|bm|boldsymbol|operatorname|displaystyle|huge|Huge|[lL]arge)\b\s?"
    r"|\\(?:text)?color(?:box)?\s?\{[^{}\n]{0,40}\}\s?"
)
# \( and \[ open mathematics; other signs are escaped so that Markdown leaves them alone.
_ESCAPED_SIGN = re.compile(r"\\(?=[()\[\]*_#.:>`-])")
_LATEX_SPACE = re.compile(r"\\(?:[,;:! ]|q?quad\b)")
_ANSWER_TAG = (
    r"(?:(?:final|my|correct|selected|chosen)?[ _-]?"
    r"(?:answer|ans|option|choice|letter|response|result|decision)"
    r"|(?:answer|option|choice)[ _-](?:letter|choice)|final|prediction|solution)>"
)
_ANSWER_TAG_OPEN = re.compile(f"<{_ANSWER_TAG}|<<{_ANSWER_TAG}>", re.IGNORECASE)
_ANSWER_TAG_CLOSE = re.compile(f"</{_ANSWER_TAG}", re.IGNORECASE)
# Intentionally lowercase: `<B>` is an answer in angle brackets, `<b>` is bold.
_HTML_BREAK = re.compile(r"<(?:br|/?p|/?div|/?li|/?h[1-6]|hr)(?: [^<>\n]{0,100})?\s?/?>")
_HTML_INLINE = re.compile(
    r"</?(?:b|strong|em|i|u|span|code|mark|ul|ol|center)(?: [^<>\n]{0,100})?>"
)
# A run of underscores is matched once, from its first: "x____x" may have thousands.
_EMPHASIS = re.compile(r"\*|`|\$|_(?<!__)(?:(?<!\w_)_*|_*+(?!\w))")
_SNAKE_CASE = re.compile(r"_(?<=[a-z]_)(?=[a-z])")
_LINE_MARKERS = re.compile(r"(?:(?:[>#+•·▪●◦‣➤|]|[-–—*](?=\s)|\d{1,2}[.)](?=\s))\s*+)*+")

_LETTER = re.compile("[A-J]")
_LAST_SPACED = "\u0dff"  # before Thai, Korean, Chinese and Japanese
_LONGEST_WORD = 50  # characters, with what separates it from the next
# The signs of "-2.5", ".5", "1/4" and "1 / 4"; no hyphen of "IL-2" and no dash of "2-5".
_SIGN = (
    r"[-–](?<!\d\s.)(?<![^\s([{<>=≤≥≈:,;/|\"'~、。].)(?=\.?\d)|\.(?<![\w.]\.)(?=\d)"
    r"|/(?:(?<=\d/)|(?<=\d\s/))(?=\s?\d)"
)
_WORD_CHAR = re.compile(rf"[^\W_]|[+<>=≤≥↑↓↔±%]|{_SIGN}")
_WORD = re.compile(rf"[^\W_]+|[+<>=≤≥↑↓↔±%]|{_SIGN}")
# What makes "5" the beginning of another number: "5.5", "5/7", "5%", "5 × 10"; "5.0" equals it.
_NUMBER_GOES_ON = re.compile(r"[.,:–-]\d|\s?/\s?\d|\s?%|\s?[×*^]\s?\d")
_ZEROS = re.compile(r"\.0+(?!\d)")


def normalized(text: str) -> str:
    """Return the end of a reply with normalized characters.

    Full-width letters and brackets become ASCII, typographic quotes become straight, invisible
    characters are removed, and negating contractions become the word `not`. Markup is kept.

    Args:
        text: Model's reply, of any length.
    """
    text = _ESCAPED_NEWLINE.sub("\n", _NEWLINE.sub("\n", html.unescape(_end_of(text))))
    if not text.isascii():
        # Truncate again: normalization makes some characters up to 18 times longer.
        text = _end_of(unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)))
        text = text.translate(_LOOKALIKES)
        text = _LOOKALIKE_LETTER.sub(lambda match: match[0].translate(_AS_LATIN), text)
    if "'" in text:
        for pattern, replacement in _CONTRACTIONS:
            text = pattern.sub(replacement, text)
    return text


def _end_of(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    # A partial line can change its meaning: "vitamin D" would start with a "D".
    _, cut, rest = text[-MAX_CHARS:].partition("\n")
    return rest if cut else text[-MAX_CHARS:].partition(" ")[2]


def without_thoughts(text: str) -> str:
    """Return a reasoning model's reply without its thoughts; empty if it was cut off in them.

    Text after the token that ends the model's turn is dropped.
    """
    said = _THOUGHTS_CLOSE.split(without_blocks(text))[-1]
    said = _STRUCK_OUT_SHORT.sub("", _THOUGHTS_OPEN.split(said)[0])
    ends = (end.start() for end in _TURN_END.finditer(said))
    return next((said[:end] for end in ends if said[:end].strip()), said)


def without_loop(text: str) -> str:
    """Return a reply without most copies of a passage that it repeats until it ends.

    A model may fall into such a loop until it reaches its token limit. Enough copies are kept for
    the text around a statement; more would state nothing new and take longer to read.
    """
    tail = text[-_LOOP_TAIL:]
    nearest = max(len(text) - len(tail) - _LONGEST_PASSAGE, 0)
    before = text.rfind(tail, nearest, len(text) - 1)
    if not text or before < 0:
        return text
    period, start = len(text) - len(tail) - before, len(text)
    passage = text[-period:]
    while text.endswith(passage, 0, start):
        start -= period
    copies = 1 - (-_LOOP_KEPT // period)
    return text[: start + copies * period]


def plain_lines(text: str) -> list[str]:
    r"""Return the nonempty lines of a cleaned text, without markup.

    An answer tag becomes a line that starts with `Answer:`; `\boxed{` is kept, because it states an
    answer.
    """
    if _MARKUP_SIGN.search(text):
        text = _OPEN_BOX.sub(r"\1", text)
        text = _STRUCK_OUT.sub("", _SPECIAL_TOKEN.sub("\n", text))
        text = _LATEX_SPACE.sub(" ", _ESCAPED_SIGN.sub("", _LATEX_FONT.sub("", text)))
        text = _ANSWER_TAG_CLOSE.sub("\n", _ANSWER_TAG_OPEN.sub("\nAnswer: ", text))
        text = _SNAKE_CASE.sub(" ", _HTML_INLINE.sub("", _HTML_BREAK.sub("\n", text)))
    return list(filter(None, map(_plain_line, text.split("\n"))))


def _plain_line(line: str) -> str:
    line = _LINE_MARKERS.sub("", line.strip(), count=1)
    return " ".join(_EMPHASIS.sub("", line).split())


def _fold(word: str) -> str:
    """Return a word without case and accents: a model may write Sjogren for Sjögren."""
    if word.isascii():
        return word.lower()
    if word == "–":
        return "-"  # before a number
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def words(text: str) -> tuple[str, ...]:
    """Return the words of a cleaned text, without case, accents and punctuation."""
    return tuple(map(_fold, _WORD.findall(text)))


# --- options in words ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """The option whose text a passage starts with."""

    letters: frozenset[str]
    """Letter of the option, or of several with the same text; empty if no option matches."""
    end: int = 0
    """Offset of the end of the option's text, in characters."""
    word_count: int = 0
    """Number of words in the option's text."""


_NO_OPTION = Named(frozenset())


class OptionTexts:
    """The options of one question, searchable by their words.

    Args:
        options: Presented letter -> option text.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.letters = tuple(filter(_LETTER.fullmatch, options))
        self._letters_of: dict[tuple[str, ...], set[str]] = {}
        self._words_of: dict[str, tuple[str, ...]] = {}
        for letter in self.letters:
            option_words = _text_words(options[letter])
            self._words_of[letter] = option_words
            if option_words:
                self._letters_of.setdefault(option_words, set()).add(letter)
        # Longest first: "aspirin and clopidogrel" must not count as "aspirin".
        self._texts = sorted(self._letters_of, key=len, reverse=True)
        self._first_words = {option_words[0] for option_words in self._texts}

    def words_of(self, letter: str) -> tuple[str, ...]:
        """Return the words of an option's text; empty if the option does not exist."""
        return self._words_of.get(letter, ())

    def exactly(self, text: str) -> frozenset[str]:
        """Return the letters of the options whose whole text equals `text`."""
        return frozenset(self._letters_of.get(words(text), ()))

    def at_start(self, text: str) -> Named:
        """Return the longest option text that a plain text starts with, but no part of a number."""
        first = _WORD.search(text)
        if first is None or _fold(first[0]) not in self._first_words:
            return _NO_OPTION
        found = list(islice(_WORD.finditer(text), len(self._texts[0])))
        folded = tuple(_fold(match[0]) for match in found)
        for option_words in self._texts:
            size = len(option_words)
            if folded[:size] == option_words:
                end = found[size - 1].end()
                if text[end - 1].isdigit():
                    zeros = _ZEROS.match(text, end)
                    end = zeros.end() if zeros else end
                    if _NUMBER_GOES_ON.match(text, end):
                        return _NO_OPTION
                return Named(frozenset(self._letters_of[option_words]), end, size)
        return _NO_OPTION

    def own_text(self, letter: str, text: str) -> int:
        """Return the offset up to which a plain text and an option's text have the same characters.

        Words need not end there, because Chinese and Japanese do not separate them; punctuation and
        spaces are ignored. One equal character alone does not count.
        """
        own = "".join(self.words_of(letter))
        equal = end = 0
        for match in _WORD_CHAR.finditer(text):
            folded = _fold(match[0])
            if not own.startswith(folded, equal):
                break
            equal += len(folded)
            end = match.end()
            if equal == len(own):
                break
        return end if equal > 1 or equal == len(own) else 0

    def has_unspaced(self, letter: str, text: str) -> bool:
        """Return whether a text holds an option's in a script that does not separate words."""
        own = "".join(self.words_of(letter))
        return own[:1] > _LAST_SPACED and own in "".join(words(text))

    def start_at_end(self, letter: str, text: str) -> int | None:
        """Return where an option's text starts if a plain text ends with it, else None."""
        own = self.words_of(letter)
        after = max(0, len(text) - _LONGEST_WORD * len(own))
        last = list(_WORD.finditer(text, after))[-len(own) :] if own else []
        if not last or tuple(_fold(match[0]) for match in last) != own:
            return None
        return last[0].start()


def _text_words(option_text: str) -> tuple[str, ...]:
    """Return an option's words, normalized in the same way as a reply's."""
    return words(" ".join(plain_lines(normalized(option_text))))
