"""Reads sentences that assert an option by its letter together with its own text.

"The most likely diagnosis is (C) Heparin." and "Administer heparin (Option C)." have no word such
as "answer". A letter alone does not identify an option there, nor does a text alone; both together
do. The sentence must single the option out, without denying, supposing or comparing it.
"""

import re
from collections.abc import Iterator

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

_BEST = (
    r"(?:most (?:likely|probable|appropriate|suitable|consistent|compatible|accurate|reasonable"
    r"|common|effective|specific|sensitive|important|critical|relevant|fitting|useful|definitive"
    r"|plausible)|best|correct|right|next step|first[- ]line|indicated|recommended|preferred"
    r"|(?:the|my|our|final) (?:diagnosis|conclusion)|likeliest"
    r"|(?:drug|treatment|test) of choice|gold standard)"
)
_SINGLES_OUT = re.compile(rf"\b{_BEST}\b", re.IGNORECASE)
# The words between the subject and the option: "is", "would be to", "is consistent with".
_EQUATES = re.compile(
    r"(?:\b(?:is|are|be|remains|becomes|includes?|involves?)\b(?:\s(?:the|an?|to|that|therefore"
    r"|thus|most|likely|probably|clearly|indeed|caused by|due to|consistent with|administer|perform"
    r"|start|give|order|obtain|initiate|option|choice))*|[:=→])[\s\"':]*$",
    re.IGNORECASE,
)
_CHOOSES = re.compile(
    r"(?:\b(?:I|we)(?: would| will|'d|'ll)?(?: therefore| thus)? (?:choose|select|pick|recommend"
    r"|favor|answer|go with)"
    r"|\bshould (?:receive|undergo|be (?:given|started on|treated with))"
    r"|(?:^|[,;:]\s)\W*(?:choose|select|administer|perform|start|order|prescribe|initiate|obtain))"
    r"(?:\s(?:the|an?|with|option|choice))*[\s\"':]*$",
    re.IGNORECASE,
)
# "(C) Heparin is the most likely cause"
_IS_IT = re.compile(
    r"\W{0,3}(?:is|remains|would be|(?:seems|appears) to be)(?:\s(?:therefore|thus|clearly))?"
    rf"\s(?:the|our|my)\s(?:(?!second|next|least)\w+\s){{0,2}}?{_BEST}\b",
    re.IGNORECASE,
)
# Words by which a sentence does not assert its option as the answer.
_OTHERWISE = re.compile(
    r"\b(?:least|less|in(?:correct|appropriate)|wrong|unlikely|second|third|other|another"
    r"|alternatives?|distractor|tempting|differential|possib\w+|plausib\w+|although|while|whereas"
    r"|though|instead of|rather than|contraindicated|could|might|may|one of|some|many|not|never"
    r"|neither|but|no longer|except|avoid|mistak\w+|confus\w+|mimic\w*|initially|previously)\b",
    re.IGNORECASE,
)
# "…, but this patient is an adult.", "…. However, …"
_TURNS = re.compile(r"[^.;]{0,80}[.;]?\s(?:but|however|nevertheless|yet)\b", re.IGNORECASE)
# Brackets that hold neither a label nor an option's short text.
_ASIDE = re.compile(r"\((?!(?:option|choice)\s[A-J]\))[^()]*\s[^()]*\)", re.IGNORECASE)
_BEHIND_DENIES = re.compile(
    r"[^.;]{0,80}\b(?:not|less|unlikely|in(?:correct|appropriate)|wrong|false|excluded|ruled out"
    r"|contraindicated)\b|\s?(?:or|and|/|vs\.?|versus)\s?\W?[A-J]\b",
    re.IGNORECASE,
)


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
                if _is_asserted(line, start, begin, stop, end):
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


def _is_asserted(line: str, start: int, begin: int, stop: int, end: int) -> bool:
    before, behind = line[max(start, begin - _CONTEXT_CHARS) : begin], line[stop : max(end, stop)]
    near = before[-_LINK_CHARS:]
    singled_out = _EQUATES.search(near) and _SINGLES_OUT.search(before)
    if not (singled_out or _CHOOSES.search(near) or _IS_IT.match(behind)):
        return False
    if _OTHERWISE.search(before) or _BEHIND_DENIES.match(behind) or _TURNS.match(line, stop):
        return False
    return not is_supposed(line, start, Cue(begin, stop, colon=False), end)
