"""Reads the value after a label such as `Answer:`: one option, several, none, or a rejected one.

:func:`read_value` is the only place that decides whether a letter in a text is an option's label.
Most single letters in a text are not: articles, pronouns, vitamins, viruses, genus names.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from mdagents_llm.answers.phrases import any_of, pattern
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

_OPENERS = r"[\s(\[{<\"'|:✅✓✔☑👉➡➤▶🎯⭐]*"
_CLOSERS = r"[)\]}>\"'|]"
# Filler between a label and the letter: "Answer: I think it is option C".
_FILLER = pattern(
    rf"{_OPENERS}(?:{any_of('filler')}"
    rf"|(?-i:{any_of('determiner')})(?=\s(?:{any_of('label noun')}|[(\[]?(?-i:[A-J])\b))"
    r"|(?:(?:the|single|most|correct|best|right|final|likely|appropriate) )*"
    rf"{any_of('label noun')}(?=[\s(\[{{<\"':]*(?:[A-J](?![A-Za-z0-9_À-ɏ])|is\b)))(?!\s?-\w)[\s:,]*"
)
# The letter itself; "A+", "B12", "A's" and "D/3" are other words.
_LETTER = re.compile(rf"{_OPENERS}(?P<letter>[A-Ja-j])(?![A-Za-z0-9_À-ɏ]|'(?![⺀-힣])\w|\+|/\d)")
# So are "B超" and "C型肝炎", unless the option's text begins like that: "C超声心动图".
_TERM = re.compile(r"超|型|群|族|[组組级級期肝]|反[应應応]|[细細]胞|蛋白|因子|형|군|반응|세포")
_CLOSED = re.compile(rf"[.:]?\s?{_CLOSERS}")
_SEPARATED = re.compile(r"\s?(?:[.,:;!=(/&→>\[\\。、✅✓✔☑]|[-–—]+(?=\s|$)|[–—])")
# "C-section", "B/L", "A&E"
_JOINED = re.compile(r"[-/&]\w")
_GENUS = re.compile(r"\.\s?(?P<epithet>[a-z]{3,})")
# The part of a label after its letter: "C.) ", "C: ", "C - ".
_LABEL_END = re.compile(rf"(?:\s?(?:{_CLOSERS}|[.:=]|[-–—]+(?!\.?\d)))*\s?")
# A bare letter followed by a word is a label only before words that cannot start a noun phrase.
_AFTER_ANY = re.compile(rf"\s(?:{any_of('because')}|(?i:{any_of('inverted')}))")
_AFTER_CONSONANT = re.compile(rf"\s{any_of('english after')}")
_GOES_ON = frozenset(words("the this that because since and which with for due based given"))
_MANY_LETTERS = re.compile(r"[\s(\[{\"']*(?P<letters>[A-J]{2,10})(?![\w-])")

_HEDGES = rf"(?:{any_of('hedge')}[\s,:]*)*"
_JOINER = rf"(?:,?\s?{any_of('or')}|[/\\,&+?|→>・·•-]|\.\.)"
_EDGE = r"(?=\s?(?:$|[()\]}.,;:/&?!\"'>、。-]|(?:or|and|depending|are|both)\b|[⺀-힣]))"
# Directly after a label or a whole option text: "C or D", "C (or D)", "C) aspirin and D) heparin".
_SECOND = re.compile(
    rf"[\s)\]}}\"'(.]*{_JOINER}[\s,(/]*{_HEDGES}[\s(\[{{\"'/]*(?P<letter>[A-J]){_EDGE}"
    r"|[\s)\]]*\((?P<bracketed>[A-J])\)"
    rf"|[–—](?P<ranged>[A-J]){_EDGE}"
)
# "B; C" and "B; C and D", where nothing else follows: "C; A and B are wrong" explains the answer.
_LISTED_LETTER = r"[(\[]?[A-J]\b[)\]]?"
_SECOND_LISTED = re.compile(
    rf"[\s)\]\"']*;\s?[(\[\"']?(?P<letter>[A-J])\b[)\]]?"
    rf"(?:(?:\s?[,;/&+]|\s{any_of('or')})\s?{_LISTED_LETTER}){{0,8}}"
    r"\s?(?:$|[.。)\]}<>\"'](?!\s?\w)|;|\((?:both|all)\b)"
)
# "B (2 votes), C (2 votes)", "B: 50%; C: 50%", "B = 2, C = 2"
_COUNT = r"[\s)\]]*[(:=,]?\s?(?P<{0}>\d+(?:\.\d+)?)(?![\d/])\s?(?:%|votes?|票|표)?[\s)\]]*"
_SECOND_COUNTED = pattern(
    rf"{_COUNT.format('count')}(?:[,;/|]|{any_of('or')})?\s?[(\[]?(?-i:(?P<letter>[A-J]))\b"
    rf"{_COUNT.format('other')}(?![\w-])"
)
# Farther from a label, where a bare letter may be part of the text: only "…, (D) heparin".
_SECOND_LABEL = re.compile(
    rf"{_JOINER}\s*{_HEDGES}(?:\((?P<letter>[A-J])\)|(?P<open>[A-J])(?:\)\s"
    r"|\sis\b(?!\s(?:\w+ly\s|also\s)*(?:wrong|incorrect|not|false|excluded|eliminated))))"
)
# "C if SBP < 90 mmHg, otherwise A", "A (if stable) or C (if unstable)"
_IN_A_CASE = pattern(
    rf"[\s)\]]*[(,]?\s?{any_of('in a case')}[^.?!\n]{{0,100}}?"
    rf"(?:{any_of('else')}[\s,:(]{{0,3}}(?-i:(?P<other>[A-J]))(?![\w'-])"
    rf"|(?:[,;]|{any_of('or')})[\s(]*(?-i:(?P<another>[A-J]))"
    rf"[\s)]*[,(]?\s?(?:{any_of('in a case', 'else')}))"
)
# "Aspirin, or if bleeding, C. Heparin", not "Aspirin, or if it is not tolerated, C. Heparin"
_OR_IN_A_CASE = pattern(
    rf"[\s)\]]*,?\s?(?:or\b[\s,(]*|{any_of('or')}[\s,(]*(?!(?:for|in)\b)){any_of('in a case')}"
    r"(?![^,.:;)?!\n]{0,60}\b(?:(?:un|im|in|contra)?(?:available|possible|feasible|toleran\w+"
    r"|tolerated|indicated|indications?|sufficient|effective)|allerg\w+|fails?|needed|necessary"
    r"|required|no response|persists?|refractory)\b)"
    r"[^.?!\n]{1,60}?(?:[,:)]|(?=\sthen\b))\s?(?:then\s)?(?=\W{0,2}\w)"
)
_ARTICLE_BEHIND = re.compile(r"\s[a-zà-ÿ]")
# "C, but D is correct"
_OVERRULED = re.compile(
    r"[^.?!\n]{0,80}?[,;]\s(?:but|instead|however|although)\s(?:\w+\s){0,2}?\W?(?P<letter>[A-J])\W{0,3}\s?"
    r"(?:is|was)\s(?:\w+ly\s|the\s){0,2}(?:correct|right|better|best|answer)\b"
)
# "C if she is pregnant", "C (if pregnant)"
_CONDITIONAL = pattern(
    rf"[\s)\]]*(?:{any_of('if behind')}|(?:,\s?(?=[^()]*$)|\((?=[^,()]*\)))?{any_of('if patient')})"
)
# "B or not B", "B or none"
_DOUBTED = pattern(
    rf"[\s)\]]*(?:{any_of('or')}\s?{any_of('not')}"
    rf"|(?:\b(?:or|o|ou|oder|hoặc)\s|或){any_of('no answer')})"
)
# "C → changed to D", "B (revised: C)"
_REVISED = pattern(
    rf"[\s)\].,;:(\[→>–—-]*{any_of('revised')}"
    rf"(?=[\s:(\[\"']*(?-i:[A-J])(?![\w'+-]|\s?\(?{any_of('in a case')})"
    r"(?!(?<=:\s[AI])\s(?!because|since|after|based|due|given|on|for)\w))"
)
# "A) Aspirin B) Clopidogrel": the options listed on one line.
_NEXT_LABEL = re.compile(r"[\s,;|/]*\(?(?P<letter>[A-J])\s?[).:\]]")
# Between the texts of two options: "aspirin/heparin", "aspirin, or heparin".
_JOINS = rf"\s?(?:[/&+|、]|[,;]?\s?{any_of('or')})\s?"
_JOINED_TEXT = pattern(rf"{_JOINS}(?P<comma>(?!))?")
_LISTED_TEXT = pattern(rf"{_JOINS}|\s?(?P<comma>[,;])\s?")
_NO_MORE = Named(frozenset())
_ENDS_LIST = re.compile(r"\s?[)\]}>\"'.!]*\s?$")
# The point where a value stops naming options and starts an explanation.
_EXPLANATION = pattern(rf"{any_of('explains')}|(?<!vs)[.;!。](?=\s|$)|\s?[–—]\s?|\s-+\s|\n")
# A verdict on the option, including its verb: in "C) False positive" the word is option text.
_BE = r"[\s,]*(?:is|was|are|would be|seems|can be|has been|should be)\s(?:\w+ly\s|also\s|the\s)*"
_DENIED = pattern(
    rf"(?:{_BE}{any_of('wrong', 'english wrong')}|\s(?:cannot|does not|should not)\b)"
    r"(?!\s(?:only|contraindicated)\b)"
)
# After the option's text, "is not" may make it the answer: "which of these is not …?".
_TEXT_DENIED = pattern(
    rf"{_BE}(?:{any_of('wrong')}|not (?:the |a )?(?:correct|right|answer|best)\b)"
)
# "B (incorrect)", "C) Heparin [rejected]"
_MARKED_WRONG = pattern(
    rf"\W{{0,3}}(?:{any_of('but', 'before wrong')}\s?"
    rf"(?:(?:this|that|it) |c')?(?:{any_of('is')}\s?)?)?(?:{any_of('wrong')}|rejected)\W*$"
    r"|[^\w❌✗✘✖]*[❌✗✘✖]\W*$"
)
_NEGATION = pattern(
    r"[\s(\"':,]*(?:(?:definitely|clearly|certainly|probably|likely) )*"
    rf"{any_of('not')}\s*(?P<rest>.*)"
)
_SEVERAL = pattern(rf"{_OPENERS}{any_of('several')}")
_ANY_LETTER = re.compile(r"(?<![\w-])[A-J](?![\w'+-])")
_NO_ANSWER = pattern(rf"\W*{any_of('no answer')}")
# The prompt's own placeholders: "Example Answer", "<letter>", "[A/B/C/D]", "A-D", "A, B, C, or D".
_TEMPLATE = pattern(rf"\W*(?:{any_of('placeholder')}|<(?![A-J]>)|\[(?:text|option)|\.{{3}}|…)")
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
    if is_placeholder(line, options):
        return SILENT
    for _ in range(8):
        filler = _FILLER.match(line)
        if filler is None or options.at_start(line).letters:
            break
        line = line[filler.end() :]
    named = options.at_start(line)
    if not named.letters:
        if negation := _NEGATION.match(line):
            denied = _ANY_LETTER.search(negation["rest"][:40])
            return Reading(Sense.REJECTED, denied[0]) if denied else SILENT
        if _NO_ANSWER.match(line):
            return NONE
        if _is_several(line, options):
            return SEVERAL
    label = _letter_of(line, options)
    if label and _is_label(label, line, options, colon):
        letter = label["letter"].upper()
        rest = line[label.end() :]
        # "B cell lymphoma" and "A lesion of the tract" are texts, unless the letter's text follows.
        if named.word_count < 2 or letter in options.at_start(_text_behind(rest)).letters:
            return _read_lettered(letter, rest, options)
    return _read_named(line, named, options)


def _letter_of(line: str, options: OptionTexts) -> re.Match[str] | None:
    label = _LETTER.match(line)
    if label is None or not _TERM.match(line, label.end()):
        return label
    return label if options.own_text(label["letter"].upper(), line[label.end() :]) else None


def _is_several(line: str, options: OptionTexts) -> bool:
    """Return whether a value starts by naming several options: "both A and C", "(CH)"."""
    many = _MANY_LETTERS.match(line)
    if many and len(set(many["letters"])) == len(many["letters"]):
        return set(many["letters"]) <= set(options.letters)
    window = _EXPLANATION.split(line, maxsplit=1)[0]
    return _SEVERAL.match(line) is not None and len(set(_ANY_LETTER.findall(window))) > 1


def _text_behind(rest: str) -> str:
    """Return the text after a label's letter and the signs that end the label."""
    return _LABEL_END.sub("", rest, count=1)


def _is_label(label: re.Match[str], line: str, options: OptionTexts, colon: bool) -> bool:
    """Return whether a letter at the start of a value is an option's label."""
    letter = label["letter"].upper()
    rest = line[label.end() :]
    behind = options.at_start(_text_behind(rest))
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
    if letter == "A" and behind.letters and _ARTICLE_BEHIND.match(rest):
        return False  # "Resposta: A embolia pulmonar"
    if not rest.strip() or _SEPARATED.match(rest) or behind.letters or rest.lstrip()[:1] > "\u2e7f":
        return True
    after_consonant = letter not in "AI" and _AFTER_CONSONANT.match(rest)
    return bool(_AFTER_ANY.match(rest) or after_consonant)


def _read_lettered(letter: str, rest: str, options: OptionTexts) -> Reading:
    """Read the text after a letter: the option's text, a second letter, or a verdict."""
    if letter not in options.letters or _DOUBTED.match(rest):
        return NONE
    text = _text_behind(rest)
    named = options.at_start(text)
    behind = text[named.end :] if letter in named.letters else rest
    if revised := _REVISED.match(behind):
        return read_value(behind[revised.end() :], options)
    if not named.letters and _TEMPLATE.match(text) and not text.startswith(("…", "...")):
        return SILENT
    own = letter in named.letters
    # "C. The other options (A, B and D) are wrong": a separate sentence
    new_sentence = "." in rest.removesuffix(text)
    after = text[named.end :]
    each = _IN_A_CASE.match(rest)
    if each and {each["other"], each["another"]} & set(options.letters) - {letter}:
        return SEVERAL
    if _in_another_case(after, options) - {letter, *named.letters}:
        return SEVERAL
    if _second_letters(rest, after, named, new_sentence) & set(options.letters) - {letter}:
        return SEVERAL
    also = _also_named(after, options) if named.letters else _NO_MORE
    if also.letters - named.letters - {letter}:
        if not _is_combined(letter, named.letters | also.letters, options):
            return SEVERAL
        return _read_lettered(letter, after[also.end :], options)
    denied = _TEXT_DENIED.match(after) if named.letters else _DENIED.match(rest.lstrip(")]}>\"'|"))
    if _MARKED_WRONG.match(after) or (denied and (own or not new_sentence)):
        return Reading(Sense.REJECTED, letter)
    if _CONDITIONAL.match(behind) and (own or not _begins_own(letter, text, options)):
        return SILENT
    mismatch = bool(named.letters) and not own and _ends_phrase(after)
    return Reading(Sense.CHOSEN, letter, text_mismatch=mismatch)


def _begins_own(letter: str, text: str, options: OptionTexts) -> bool:
    """Return whether a text begins with its option's first word: "If symptoms persist, refer"."""
    return words(text)[:1] == options.words_of(letter)[:1]


def _second_letters(rest: str, after: str, named: Named, new_sentence: bool) -> set[str]:
    """Return letters that follow the first: "C or D", "C) aspirin and D) heparin".

    Args:
        rest: Text after the first letter.
        after: Text after the first option.
        named: The option whose text follows the first letter.
        new_sentence: Whether a period separates the letter from what follows.
    """
    if overruled := _OVERRULED.match(after):
        return {overruled["letter"]}
    counted = _SECOND_COUNTED.match(after)
    if counted and float(counted["count"]) <= float(counted["other"]):
        return {counted["letter"]}
    window = _EXPLANATION.split(after, maxsplit=1)[0]
    found = [_SECOND.match(rest), _SECOND_LISTED.match(rest)]
    if named.letters:
        found += [_SECOND.match(window), _NEXT_LABEL.match(after)]
    if named.letters or not new_sentence:
        found += _SECOND_LABEL.finditer(window)
    return {letter for match in found if match for letter in match.groups() if letter}


def _in_another_case(after: str, options: OptionTexts) -> frozenset[str]:
    """Return the option of another case that follows: "Aspirin, or if bleeding, C. Heparin"."""
    other = _OR_IN_A_CASE.match(after)
    if other is None:
        return frozenset()
    text = after[other.end() :]
    label = _letter_of(text, options)
    if label and _is_label(label, text, options, colon=True):
        return frozenset(label["letter"].upper()) & frozenset(options.letters)
    return options.at_start(text).letters


def _also_named(after: str, options: OptionTexts, *, listed: bool = False) -> Named:
    """Return the options that are named by texts after another's: "aspirin or heparin".

    Args:
        after: Text after the first option's.
        options: Options of the question.
        listed: Whether commas join options too, if nothing follows the last: "aspirin, heparin".
    """
    joined, found, end = _NO_MORE, frozenset[str](), 0
    while also := (_LISTED_TEXT if listed else _JOINED_TEXT).match(after, end):
        named = options.at_start(after[also.end() :])
        if not named.letters - found:
            break
        found |= named.letters
        end = also.end() + named.end
        if not also["comma"]:
            joined = Named(joined.letters | named.letters, end)
    return Named(found, end) if found and _ENDS_LIST.match(after, end) else joined


def _is_combined(letter: str, parts: frozenset[str], options: OptionTexts) -> bool:
    """Return whether an option's text has the texts of others: "aspirin and clopidogrel"."""
    own = set(options.words_of(letter))
    return all(own.issuperset(options.words_of(part)) for part in parts)


def _ends_phrase(after: str) -> bool:
    """Return whether an option's text ends here: "Aspirin" does not match "Aspirin therapy"."""
    return re.match(r"\s*(?:$|[^\w\s-]|(?:because|since|is|as|due|which)\b)", after) is not None


def is_placeholder(line: str, options: OptionTexts) -> bool:
    """Return whether a value is a placeholder from the prompt: `[A/B/C/D]`, `A-D`, `<letter>`.

    All options' texts in a row are one too: `yes/no/maybe`.
    """
    if (named := options.at_start(line)).letters:
        several = named.letters | _also_named(line[named.end :], options, listed=True).letters
        return len(several) >= max(3, len(options.letters)) and len(named.letters) == 1
    ranged = _RANGE.match(line)
    if ranged and ranged["first"] == "A" and ranged["last"] == options.letters[-1]:
        return True
    if listed := _LISTED.match(line):
        return len(set(re.findall(r"\b[A-J]\b", listed[0]))) >= max(3, len(options.letters))
    return _TEMPLATE.match(line) is not None


def _read_named(line: str, named: Named, options: OptionTexts) -> Reading:
    """Read a value that starts with the whole text of an option."""
    after = line[named.end :]
    if not named.letters:
        return SILENT
    also = _also_named(after, options, listed=True).letters | _in_another_case(after, options)
    if also - named.letters:
        return SEVERAL
    if _TEXT_DENIED.match(after) or not _ends_phrase(after):
        return SILENT
    letter = re.match(r"\s?[(\[](?:option |choice )?(?P<letter>[A-J])[)\]]", after)
    if letter and letter["letter"] in options.letters:  # "heparin (C)": the letter wins
        mismatch = letter["letter"] not in named.letters
        return Reading(Sense.CHOSEN, letter["letter"], mismatch)
    return Reading(Sense.CHOSEN, min(named.letters)) if len(named.letters) == 1 else SEVERAL
