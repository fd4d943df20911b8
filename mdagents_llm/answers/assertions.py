"""Reads sentences that assert an option by its letter together with its own text.

"The most likely diagnosis is (C) Heparin." and "Administer heparin (Option C)." have no word such
as "answer". A letter alone does not identify an option there, nor does a text alone; both together
do. The sentence must single the option out, without denying, supposing or comparing it.
"""

import re
from collections.abc import Iterator

from mdagents_llm.answers.phrases import any_of, pattern
from mdagents_llm.answers.statements import Cue, is_supposed, sentences
from mdagents_llm.answers.text import OptionTexts
from mdagents_llm.answers.value import Reading, Sense

# "(C) Heparin", "C. Heparin", "option C: heparin", where the option's text follows.
_LABEL = re.compile(
    r"(?<![\w(-])(?:(?i:option|choice)\s)?(?:[(\[](?P<bracketed>[A-J])[)\]][.:,]?|(?P<bare>[A-J])[).:])"
    r"\s?[\"']?"
)
# "heparin (C)", "heparin (Option C)", where the option's text precedes.
_LABEL_BEHIND = re.compile(r"[\"',]?\s?[(\[](?i:(?:option|choice)\s)?(?P<letter>[A-J])[)\]]")

_SINGLES_OUT = pattern(any_of("best"))
# The words between the subject and the option: "is", "would be to", "is consistent with".
_EQUATES = pattern(
    rf"(?:\b(?:is|are|be|remains)\b(?:\s{any_of('equates', 'treat')})*|[:=→])[\s\"':]*$"
)
_CHOOSES = pattern(
    rf"(?:{any_of('chooses')}|(?:^|[,;:]\s)\W*{any_of('treat')})"
    r"(?:\s(?:the|an?|with|option|choice))*[\s\"':]*$"
)
# "(C) Heparin is the most likely cause"
_IS_IT = pattern(
    r"\W{0,3}(?:is|remains|would be|(?:seems|appears) to be)(?:\s(?:therefore|thus|clearly))?"
    rf"\s(?:the|our|my)\s(?:(?!second|next|least)\w+\s){{0,2}}?{any_of('best')}"
)
_OTHERWISE = pattern(any_of("otherwise"))
# "…, but this patient is an adult.", "…. However, …"
_TURNS = pattern(rf"[^.;]{{0,80}}[.;]?\s{any_of('but')}")
_BEHIND_DENIES = pattern(
    rf"[^.;]{{0,80}}{any_of('wrong', 'english wrong')}|\s?(?:or|and|/|vs\.?|versus)\s?\W?[A-J]\b"
)
# Brackets that hold neither a label nor an option's short text.
_ASIDE = pattern(r"\((?!(?:option|choice)\s[A-J]\))[^()]*\s[^()]*\)")

_LINK_CHARS = 80
_CONTEXT_CHARS = 400  # read before an option, so that the work stays linear in a long sentence


def assertions(lines: list[str], options: OptionTexts) -> Iterator[Reading]:
    """Yield the option that each asserting sentence of a reply names, in order.

    Args:
        lines: Lines of the reply without markup.
        options: Options of the question.
    """
    for line in map(_without_asides, lines):
        for start, end in sentences(line):
            for letter, begin, stop in _identified(line, start, end, options):
                if _is_asserted(line, start, begin, stop, end, options):
                    yield Reading(Sense.CHOSEN, letter)


def _without_asides(line: str) -> str:
    """Return a line of the same length whose bracketed remarks are blank."""
    return _ASIDE.sub(lambda aside: " " * len(aside[0]), line)


def _identified(
    line: str, start: int, end: int, options: OptionTexts
) -> Iterator[tuple[str, int, int]]:
    """Yield (letter, start, end) of each option that is given by its letter and its own text."""
    for label in _LABEL.finditer(line, start, end):
        letter = label["bracketed"] or label["bare"]
        named = options.at_start(line[label.end() :])
        if letter in named.letters:
            yield letter, label.start(), label.end() + named.end
    for label in _LABEL_BEHIND.finditer(line, start, end):
        first = max(start, label.start() - _CONTEXT_CHARS)
        begin = options.start_at_end(label["letter"], line[first : label.start()])
        if begin is not None:
            yield label["letter"], first + begin, label.end()


def _is_asserted(
    line: str, start: int, begin: int, stop: int, end: int, options: OptionTexts
) -> bool:
    before, behind = line[max(start, begin - _CONTEXT_CHARS) : begin], line[stop : max(end, stop)]
    near = before[-_LINK_CHARS:]
    singled_out = _EQUATES.search(near) and _SINGLES_OUT.search(before)
    if not (singled_out or _CHOOSES.search(near) or _IS_IT.match(behind)):
        return False
    if _OTHERWISE.search(before) or _BEHIND_DENIES.match(behind) or _TURNS.match(line, stop):
        return False
    return not is_supposed(line, start, Cue(begin, stop, colon=False), end, options)
