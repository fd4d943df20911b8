"""Reads the value after a label such as `Answer:`: one option, several, none, or a rejected one.

:func:`read_value` is the only place that decides whether a letter in a text is an option's label.
Most single letters in a text are not: articles, pronouns, vitamins, viruses, genus names.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from mdagents_llm.answers.text import Named, OptionTexts, words

VALUE_CHARS = 600
"""Number of characters that are read after a label."""


class Sense(Enum):
    """The meaning of a value with respect to the options."""

    CHOSEN = auto()
    """The value names one option."""
    REJECTED = auto()
    """The value states that one option is not the answer."""
    SEVERAL = auto()
    """The value names two or more options."""
    NONE = auto()
    """The value states that there is no answer, or names an option that does not exist."""
    SILENT = auto()
    """The value is not a statement about an option: prose, a placeholder, or empty."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The interpretation of a value."""

    sense: Sense
    letter: str | None = None
    """Letter of the chosen or rejected option; None for any other sense."""
    text_mismatch: bool = False
    """Whether the text next to the letter belongs to another option."""


SILENT = Reading(Sense.SILENT)
NONE = Reading(Sense.NONE)
SEVERAL = Reading(Sense.SEVERAL)

_OPENERS = r"[\s(\[{<\"'|:]*"
_CLOSERS = r"[)\]}>\"'|]"
# Filler between a label and the letter: "Answer: I think it is option C".
_FILLER = re.compile(
    rf"{_OPENERS}(?:(?:I|we) (?:would )?(?:think|believe|say|choose|select|pick|go with)"
    r"|(?:the )?(?:single |most |correct |best |right |final |likely |appropriate )*"
    r"(?:answer|option|choice|letter|opción|opcion|letra|alternativa|opção|lettre|phương án|đáp án)"
    r"(?=\s?[(\[{<\"':]*(?:[A-Ja-j]\b|is\b))"
    r"|it(?: is|'s)|(?:is|would be|must be|should be|remains|that|as|for|to be)"
    r"|(?:definitely|clearly|most likely|likely|probably|therefore|thus|hence|indeed|still|now"
    r"|donc|entonces|então|daher|somit|buchstabe)"
    r"|(?-i:la|el|le|die|der|o|a)"
    r"(?=\s(?:[(\[]?(?-i:[A-J])\b|letra\b|alternativa\b|opción\b|opção\b|lettre\b))"
    r")(?:\b|(?<='s))(?!\s?-\w)[\s:,]*"
    r"|(?:de )?l'(?:option|alternative)\s"
    rf"|{_OPENERS}(?:选项|選項|选|選)\s*",
    re.IGNORECASE,
)
# The letter itself; "A+", "B12", "A's" and "D/3" are other words.
_LETTER = re.compile(rf"{_OPENERS}(?P<letter>[A-Ja-j])(?![A-Za-z0-9_À-ɏ]|'\w|\+|/\d)")
_CLOSED = re.compile(rf"[.:]?\s?{_CLOSERS}")
_SEPARATED = re.compile(r"\s?(?:[.,:;!?=(/&→>\[\\。、]|[-–—]+(?=\s|$)|[–—])")
# "C-section", "B/L", "A&E"
_JOINED = re.compile(r"[-/&]\w")
_GENUS = re.compile(r"\.\s?(?P<epithet>[a-z]{3,})")
# The part of a label after its letter: "C.) ", "C: ", "C - ".
_LABEL_END = re.compile(rf"(?:\s?(?:{_CLOSERS}|[.:=]|[-–—]+))*\s?")
# A bare letter followed by a word is a label only before words that cannot start a noun phrase.
# "A" and "I" are words themselves, so their list is shorter.
_AFTER_ANY = re.compile(
    r"\s(?:because|since|is|and|or|y|o|e|ou|et|und|oder|và|hoặc|vs|based on|due to|as it|which"
    r"|porque|weil|denn|car|parce|pois|vì|debido|ya que"
    r"|(?i:(?:final )?answer|explanation|rationale|reason\w*|justification|confidence))\b"
)
_AFTER_CONSONANT = re.compile(
    r"\s(?:as|for|from|with|given|was|would|has|by|in|not|but|rather|over|instead|while|although"
    r"|if|after|on|at|it|this|the|that|we|to|through)\b"
)
_GOES_ON = frozenset(words("the this that because since and which with for due based given"))
_MANY_LETTERS = re.compile(r"[\s(\[{\"']*(?P<letters>[A-J]{2,10})(?![\w-])")

_HEDGES = (
    r"(?:(?:possibly|maybe|perhaps|even|also|both|either|likely|probably|potentially|option"
    r"|choice|letter|answer|then)[\s,:]*)*"
)
_JOINER = (
    r"(?:\b(?:or|and|y|o|e|ou|et|und|oder|và|hoặc|vs|versus|plus|as well as|followed by|to"
    r"|through|thru)\b\.?|[/,&+?|→>、和与或-]|\.\.)"
)
_EDGE = r"(?=\s?(?:$|[)\]}.,;:/&?!\"'>、。-]|(?:or|and|depending|are|both)\b))"
# Directly after a label or a whole option text: "C or D", "C (or D)", "C) aspirin and D) heparin".
_SECOND = re.compile(
    rf"[\s)\]}}\"'(.]*{_JOINER}[\s,(/]*{_HEDGES}[\s(\[{{\"'/]*(?P<letter>[A-J]){_EDGE}"
    r"|[\s)\]]*\((?P<bracketed>[A-J])\)"
)
_STATED = r"\sis\b(?!\s(?:\w+ly\s|also\s)*(?:wrong|incorrect|not|false|excluded|eliminated))"
# Farther from a label, where a bare letter may be part of the text: only "…, (D) heparin".
_SECOND_LABEL = re.compile(
    rf"{_JOINER}\s*{_HEDGES}(?:\((?P<letter>[A-J])\)|(?P<open>[A-J])(?:\)\s|{_STATED}))"
)
# "A) Aspirin B) Clopidogrel": the options listed on one line.
_NEXT_LABEL = re.compile(r"[\s,;|/]*\(?(?P<letter>[A-J])\s?[).:\]]")
# The point where a value stops naming options and starts an explanation.
_EXPLANATION = re.compile(
    r"\b(?:because|since|as|due to|given|which|that|not|rather|instead|over|unlike|while|whereas"
    r"|although|though|but|than|if|after|where|when|so|based|for)\b"
    r"|(?<!vs)[.;!。](?=\s|$)|\s?[–—]\s?|\s-+\s|\n"
)
# A verdict on the option, including its verb: in "C) False positive" the word is option text.
_BE = r"[\s,]*(?:(?:is|was|are|would be|seems|can be|has been|should be)\s(?:\w+ly\s|also\s)*"
_WRONG = r"(?:the\s)?(?:incorrect|wrong|false|excluded|eliminated|ruled out)"
_DENIED = re.compile(
    rf"{_BE}(?:{_WRONG}|not|unlikely|less|contraindicated|inappropriate)|cannot|does not|can not"
    r"|should not)\b(?!\s(?:only|contraindicated)\b)",
    re.IGNORECASE,
)
# After the option's text, "is not" may make it the answer: "which of these is not …?".
_TEXT_DENIED = re.compile(
    rf"{_BE}(?:{_WRONG}|not (?:the |a )?(?:correct|right|answer|best)))\b", re.IGNORECASE
)
# "B (incorrect)", "C) Heparin [rejected]"
_MARKED_WRONG = re.compile(r"\W{0,3}(?:incorrect|wrong|rejected|eliminated)\W*$", re.IGNORECASE)
_NEGATION = re.compile(
    r"[\s(\"':,]*(?:definitely |clearly |certainly |probably |likely )*(?:not|never|neither|nor"
    r"|anything but|other than|except|excluding|nicht|pas|não|không phải|不是)(?:\b|(?<=不是))\s*"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(rf"{_OPENERS}(?:either|both|between|any of|one of|all of)\b", re.IGNORECASE)
_ANY_LETTER = re.compile(r"(?<![\w-])[A-J](?![\w'+-])")
_NO_ANSWER = re.compile(
    r"\W*(?:none|n/?a|unknown|unclear|undetermined|uncertain|inconclusive|undecided"
    r"|insufficient (?:data|information|evidence|context)|not (?:listed|given|among|in the options)"
    r"|(?:it )?cannot be (?:determined|answered)|not (?:sure|known|determined|applicable|possible)"
    r"|no (?:answer|consensus|decision)|I (?:do not know|cannot|am unable|am not)|unable to"
    r"|tie|tied|split (?:between|vote|decision))\b",
    re.IGNORECASE,
)
# The prompt's own placeholders: "Example Answer", "<letter>", "[A/B/C/D]", "A-D", "A, B, C, or D".
_TEMPLATE = re.compile(
    r"\W*(?:example answer|option text|your answer|answer text|the text of|<(?![A-J]>)"
    r"|\[(?:text|option)|\.{3}|…)",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\W*(?:one of\W*)?(?P<first>[A-J])\s?(?:-|–|—|to|through|thru|\.\.\.?|…)\s?(?P<last>[A-J])\b"
)
_LISTED = re.compile(
    r"\W*(?:one of\W*)?[A-J]\b[)\]]?(?:[\s,/|]+(?:or )?[(\[]?[A-J]\b[)\]]?){2,9}(?=\W|$)"
)


def read_value(text: str, options: OptionTexts, *, colon: bool = True) -> Reading:
    """Return the reading of the plain text after a label.

    Args:
        text: Text after the label; only its first line counts.
        options: Options of the question.
        colon: Whether the label ends in a sign rather than a verb; only then can a lone lowercase
            `a` or `i` be an option letter.
    """
    line = text[:VALUE_CHARS].lstrip(" \n:,").partition("\n")[0]
    if _is_template(line, options) and not _own_option(line, options):
        return SILENT
    for _ in range(8):
        filler = _FILLER.match(line)
        if filler is None or options.at_start(line).letters:
            break
        line = line[filler.end() :]
    named = options.at_start(line)
    if not named.letters:
        if negation := _NEGATION.match(line):
            return _read_negated(negation["rest"])
        if _NO_ANSWER.match(line):
            return NONE
        if _is_several(line, options):
            return SEVERAL
    label = _LETTER.match(line)
    if label and _is_label(label, line, options, colon):
        letter = label["letter"].upper()
        rest = line[label.end() :]
        # "B cell lymphoma" and "A lesion of the tract" are texts, unless the letter's text follows.
        if named.word_count < 2 or letter in _text_behind(rest, options).letters:
            return _read_lettered(letter, rest, options)
    return _read_named(line, named, options)


def _own_option(line: str, options: OptionTexts) -> str:
    """Return the letter at the start of a value if its own text follows; else an empty string."""
    label = _LETTER.match(line)
    letter = label["letter"].upper() if label else ""
    own = label and letter in _text_behind(line[label.end() :], options).letters
    return letter if own else ""


def _is_several(line: str, options: OptionTexts) -> bool:
    """Return whether a value starts by naming several options: "both A and C", "(CH)"."""
    many = _MANY_LETTERS.match(line)
    if many and len(set(many["letters"])) == len(many["letters"]):
        return set(many["letters"]) <= set(options.letters)
    window = _up_to_explanation(line)
    return _SEVERAL.match(line) is not None and len(set(_ANY_LETTER.findall(window))) > 1


def _up_to_explanation(text: str) -> str:
    cut = _EXPLANATION.search(text)
    return text[: cut.start()] if cut else text


def _read_negated(rest: str) -> Reading:
    label = _ANY_LETTER.search(rest[:40])
    return Reading(Sense.REJECTED, label[0]) if label else SILENT


def _text_behind(rest: str, options: OptionTexts) -> Named:
    """Return the option whose text follows a label's letter."""
    return options.at_start(rest[_end_of_label(rest) :])


def _end_of_label(rest: str) -> int:
    end = _LABEL_END.match(rest)
    return end.end() if end else 0


def _is_label(label: re.Match[str], line: str, options: OptionTexts, colon: bool) -> bool:
    """Return whether a letter at the start of a value is an option's label."""
    letter = label["letter"].upper()
    rest = line[label.end() :]
    behind = _text_behind(rest, options)
    if letter in behind.letters and not _JOINED.match(rest):
        upper = label["letter"].isupper()
        return upper or bool(_SEPARATED.match(rest) or _CLOSED.match(rest))
    genus = _GENUS.match(rest)
    # "C. difficile" is a species, "C. this is why" a label.
    known = {*options.words_of(letter)[:1], *_GOES_ON}
    if genus and not behind.letters and genus["epithet"] not in known:
        return False
    if _CLOSED.match(rest):
        return True
    if label["letter"].islower():
        return not rest.strip(" .!") and (colon or letter not in "AI")
    if _SECOND.match(rest) or _JOINED.match(rest):
        return _SECOND.match(rest) is not None
    if not rest.strip() or _SEPARATED.match(rest) or behind.letters or rest.lstrip()[:1] > "\u2e7f":
        return True
    after_consonant = letter not in "AI" and _AFTER_CONSONANT.match(rest)
    return bool(_AFTER_ANY.match(rest) or after_consonant)


def _read_lettered(letter: str, rest: str, options: OptionTexts) -> Reading:
    """Read the text after a letter: the option's text, a second letter, or a verdict."""
    if letter not in options.letters:
        return NONE
    text = rest[_end_of_label(rest) :]
    named = options.at_start(text)
    if not named.letters and _TEMPLATE.match(text) and not text.startswith(("…", "...")):
        return SILENT
    own = letter in named.letters
    after = text[named.end :] if named.letters else text
    if _names_another(letter, "" if own else rest, after, named, options):
        return SEVERAL
    denied = _TEXT_DENIED.match(after) if named.letters else _DENIED.match(rest.lstrip(")]}>\"'|"))
    if _MARKED_WRONG.match(after) or (denied and "." not in rest[: _end_of_label(rest)]):
        return Reading(Sense.REJECTED, letter)
    mismatch = bool(named.letters) and not own and _ends_phrase(after)
    return Reading(Sense.CHOSEN, letter, text_mismatch=mismatch)


def _names_another(letter: str, rest: str, after: str, named: Named, options: OptionTexts) -> bool:
    """Return whether a second option follows the first: "C or D", "C) aspirin and D) heparin"."""
    window = _up_to_explanation(after)
    if not named.letters and "." in rest[: _end_of_label(rest)]:
        window = ""  # "C. The other options (A, B and D) are wrong": a separate sentence
    found = [_SECOND.match(rest), _SECOND.match(window) if named.letters else None]
    seconds = {match["letter"] or match["bracketed"] for match in found if match}
    if named.letters and (following := _NEXT_LABEL.match(after)):
        seconds.add(following["letter"])
    for match in _SECOND_LABEL.finditer(window):
        seconds.add(match["letter"] or match["open"])
    if seconds & set(options.letters) - {letter}:
        return True
    also = re.match(r"\s?(?:or|and|/|&)\s", after) if named.letters else None
    other = options.at_start(after[also.end() :]).letters if also else frozenset()
    return bool(other - named.letters - {letter})


def _ends_phrase(after: str) -> bool:
    """Return whether an option's text ends here: "Aspirin" does not match "Aspirin therapy"."""
    return re.match(r"\s*(?:$|[^\w\s-]|(?:because|since|is|as|due|which)\b)", after) is not None


def _is_template(line: str, options: OptionTexts) -> bool:
    """Return whether the value is a placeholder from the prompt: `[A/B/C/D]`, `A-D`, `<letter>`."""
    if options.at_start(line).letters:
        return False
    ranged = _RANGE.match(line)
    if ranged and ranged["first"] == "A" and ranged["last"] == options.letters[-1]:
        return True
    if listed := _LISTED.match(line):
        return len(set(re.findall(r"\b[A-J]\b", listed[0]))) >= max(3, len(options.letters))
    return _TEMPLATE.match(line) is not None


def _read_named(line: str, named: Named, options: OptionTexts) -> Reading:
    """Read a value that starts with the whole text of an option."""
    after = line[named.end :]
    if not named.letters or _TEXT_DENIED.match(after) or not _ends_phrase(after):
        return SILENT
    also = re.match(r"\s?(?:,\s?)?(?:or|and|/|&)\s", after)
    if also and options.at_start(after[also.end() :]).letters - named.letters:
        return SEVERAL
    letter = re.match(r"\s?[(\[](?:option |choice )?(?P<letter>[A-J])[)\]]", after)
    if letter and letter["letter"] in options.letters:  # "heparin (C)": the letter wins
        mismatch = letter["letter"] not in named.letters
        return Reading(Sense.CHOSEN, letter["letter"], mismatch)
    return Reading(Sense.CHOSEN, min(named.letters)) if len(named.letters) == 1 else SEVERAL
