"""Sentences in which a reply commits itself to an option.

Three strengths, each a list of named cues. A **final statement** says that it is the answer
("Final answer: C", a boxed letter); of several the last one counts, because models correct
themselves. A **supporting** one argues for an option ("so I would choose C", "C is the best
option") and may do so for one it drops later; supporting statements count when all agree. A
**reported** one is somebody else's or an earlier one ("Cardiologist: Answer: B").
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from mdagents.answers.text import Line, OptionTexts, words
from mdagents.answers.value import (
    UNDECIDED,
    VALUE_CHARS,
    Reading,
    Sense,
    is_denied,
    read_value,
)
from mdagents.answers.voice import Voice, is_habit, voice_of

_BEFORE_CHARS = 120

# "Answer: C", "the answer to the query is C", "Choice - C", a heading "Answer" over the letter.
# The lookahead lets the next search start behind the noun, so that "answer choice is" is not lost.
_LINK = (
    r"(?:(?<=answer)'s(?=\s)"
    r"|\b(?:is|remains|becomes|goes (?:to|for)|(?:would|should|must|will) be)\b[ :–—-]*"
    r"|[:=|→\]]|\s?[–—]|\s?-+>|\s-(?=\s)|(?<=answer|choice|option)-(?=[A-J]\b)|\n|$)"
)
_LABEL = re.compile(
    r"\b(?P<noun>answer|ans\b\.?|choice|option|selection|decision|verdict|conclusion|vote|consensus"
    r"|pick|(?:(?<=correct )|(?<=best )|(?<=final ))response)\b"
    rf"(?=(?P<middle>[^.:;?!=|\n]{{0,200}}?)(?P<link>{_LINK}))",
    re.IGNORECASE,
)
# "Final: C", "Correct = C": words that are a label only where a line starts.
_SHORT_LABEL = re.compile(
    r"(?m)^(?:(?:my|the|our) )?(?:final|correct|selected|chosen|recommended|best|key|winner"
    r"|response|result|solution|prediction|output|assistant)\s?[:=]",
    re.IGNORECASE,
)
# "Answer C", "Final answer (C) aspirin": without a separator, at the start of a line.
_LINE_LABEL = re.compile(
    r"(?m)^(?:(?:the|my|our|final|correct|best|right|single|most|likely|appropriate) ){0,4}"
    r"(?:answer|ans\.?) (?=\W{0,3}[A-J]\b)",
    re.IGNORECASE,
)
_HEADING_WORDS = re.compile(
    r"\W*(?:(?:step|part) \d\W*)?(?:(?:so|thus|therefore|hence|the|my|our|final|correct|best|single"
    r"|most|likely|appropriate|consensus|majority|overall|consolidated|selected|chosen|proposed"
    r"|recommended|team's|moderator's|conclusion|summary|and|in|is|diagnosis|explanation)\W+){0,6}",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\f?box(?:ed)?\b\s?")
# "I change my answer from B to C"
_CHANGE = re.compile(
    r"\b(?:chang|revis|updat|correct|switch|amend)\w{1,4}\b[^.:;?!\n]{0,60}?\bto\b(?=\s\W{0,3}"
    r"(?:(?:option|choice|answer)\s)?\W{0,3}[A-J]\b)",
    re.IGNORECASE,
)
# "Answer: C. On second thought, D."
_AMENDMENT = re.compile(
    r"\b(?:on second thought|on reflection|correction|scratch that|I mean|I meant|make that)"
    r"\b[\s,:–—-]+",
    re.IGNORECASE,
)
_FINAL_CUES = (_LABEL, _SHORT_LABEL, _LINE_LABEL, _BOXED, _CHANGE, _AMENDMENT)

# A label's noun with one of these in front speaks of an option that is not the answer, ...
_NOT_THE_ANSWER = frozenset(
    words(
        "incorrect wrong false worst second alternative alternate other another distractor tempting"
        " least next possible plausible potential reasonable poor bad common runner rejected"
        " each every any one unlikely third closest"
    )
)
# ... and with one of these of an answer that is not this reply's.
_NOT_MINE = frozenset(words("initial previous earlier original old prior first their his her"))
_OURS = frozenset(
    words("team panel group moderator coordinator arbitrator majority patient question case")
)
_MIDDLE_ELSEWHERE = re.compile(
    r"\b(?:not|never|neither|nor|incorrect|wrong|if|whether|depends|explanation|explained"
    r"|excluded|rationale|format|between|was|were)\b"
    r"|^'s|(?-i:\b[B-HJ]\b|\b[AI]\b(?=\s?[)\]:-]|$))",
    re.IGNORECASE,
)

_LISTING = re.compile(r"\b(?:choices|options)\b", re.IGNORECASE)

_SUPPORTING_CUES = (
    # "I would choose C", "leaving only C", "the findings point to C"
    re.compile(
        r"\b(?:choos(?:e|es|ing)|chosen?|select(?:s|ed|ing)?|pick(?:s|ed|ing)?"
        r"|vot(?:e|es|ed|ing)(?: for)?|go(?:ing)? with|went with|opt(?:ed|ing)? for"
        r"|(?:settl|land)(?:e|ed|ing) (?:on|for)|money on|lean(?:s|ing)? (?:towards?|to)"
        r"|leav(?:es|ing)(?: us)?(?: with)?(?: only| just)?|agree(?:d|s)? (?:on|with|that it is)"
        r"|conclud(?:e|ed)(?: that)?(?: it is)?|stick(?:ing)? with|stand by"
        r"|(?:in )?favou?r(?:s|ed|ing)?(?: of)?|point(?:s|ing)? to(?:wards?)?"
        r"|support(?:s|ed|ing)?|consistent with|corresponds? to|matches|narrows (?:it )?down to"
        r"|respond with|answer with|I answer|mak(?:es|ing) (?:it|the|my|our)"
        r"(?: (?:final|correct|best))?(?: (?:answer|choice|option))?"
        r"|(?:I|we)(?: would|'d)? (?:think|believe|say|guess|suspect)(?: that)?)\b",
        re.IGNORECASE,
    ),
    # "Therefore, C.", "it must be C"
    re.compile(
        r"\b(?:therefore|thus|hence|so|overall|finally|in (?:summary|conclusion)"
        r"|by (?:simple )?majority(?: vote)?|this is"
        r"|it(?:'s| is| must be| should be| has to be))\b[,:]?",
        re.IGNORECASE,
    ),
    # "The most likely diagnosis is C"
    re.compile(
        r"\b(?:diagnosis|cause|explanation|step|treatment|management|mechanism|therapy|drug"
        r"|medication|test|study|finding|intervention|organism|pathogen|etiology|statement"
        r"|complication|approach|action|structure|factor|opinion|majority|guess|bet)\b"
        r"[^.:;?!\n]{0,80}?(?:\b(?:is|would be)\b:?|:)",
        re.IGNORECASE,
    ),
)

# "Option C (aspirin) is the best choice": what may stand before the letter, what must behind.
_TRAILING = re.compile(
    r"(?:(?:^|[\n.,;:!?—–(])\s?|\b(?i:option|choice|answer|letter|that|so|thus|therefore|hence"
    r"|believe|think|say|consider|is|only)\s)[(\[\"']?(?P<letter>[A-J])"
    r"(?P<text>(?:\s?[)\].:,]|\s?\()[^.\n?]{0,160}?[),]?|)"
    r"\s(?:is|as|remains|seems|appears|being|represents|fits|would be|provides|offers)\b"
    r"(?P<grade>(?:\s\w{1,30}){0,3}?\s(?:correct|right|best|final|answer|preferred|optimal|ideal"
    r"|what (?:I|we)|most (?:likely|appropriate|accurate|consistent|suitable|probable|plausible"
    r"|effective)))\b"
)
# "B would be correct if there were caseation"
_CONDITION_BEHIND = re.compile(r"[^.;\n]{0,100}?\b(?:if|unless|provided)\b")
_HEDGED_GRADE = re.compile(r"\b(?:not|never|in|partially|partly|second|less|nearly|hardly)\b")
# "... which leaves **C**." A letter in prose needs its emphasis to stand out as a label.
_EMPHASISED = re.compile(
    r"(?P<before>\w[\w ,'()/%-]{0,100}?[\w,')%:]:? )(?P<mark>\*\*|__|\$|`|\\\()\s?"
    r"(?P<label>[(\[]?[A-J](?:[)\].:]{1,2}\s?[^*\n$`]{0,200}?)?[)\]]?)"
    r"[.]?(?:\*\*|__|\$|`|\\\))[.!]?(?=\s*$|\s*\n)"
)
# "... which is an anticoagulant (option C)."
_PARENTHESISED = re.compile(
    r"(?P<before>\w[\w ,.*'/%-]{0,100}? )"
    r"[(\[](?:[Oo]ption|[Cc]hoice|[Aa]nswer) (?P<label>[A-J])[)\]][*_]{0,3}[.!]?(?=\s*$|\s*\n)"
)
_DISAPPROVAL = re.compile(
    r"\b(?:not|cannot|never|without|rul\w+|exclud\w+|incorrect|wrong|unlikely|eliminat\w+|against"
    r"|than|except|unlike|instead|avoid|or|and|vitamin|hepatitis|type|group|factor|influenza"
    r"|protein|grade|class|stage|phase|category|either|neither|nor|between|like|over)\b",
    re.IGNORECASE,
)

_CORRECTION = re.compile(
    r"\b(?:wait|correction|corrected|correcting|actually|on second thought|on reflection"
    r"|scratch that|mistake|mistaken|sorry|apolog\w+|revis\w+|reconsider\w*|re-?evaluat\w+"
    r"|changed?|misread|oops|hold on|no,|instead|rather|however|but|ultimately"
    r"|after (?:discussion|review|debate))",
    re.IGNORECASE,
)
_CORRECTING = (
    r"\b(?:wait|correction|actually|on second thought|on reflection|scratch that|mistake|mistaken"
    r"|sorry|apologi[sz]e|reconsider\w*|re-?evaluat\w+|misread|oops|hold on|no)\b"
)
_MAY_CORRECT = re.compile(_CORRECTING, re.IGNORECASE)
_CORRECTS_HERE = re.compile(rf"{_CORRECTING}[\s,:.!—–-]*(?:[\w']+\W+){{0,6}}$", re.IGNORECASE)
_FINAL = re.compile(
    r"\b(?:final|finally|correct|ultimate|majority|consensus|conclusion)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Statement:
    reading: Reading
    start: int
    end: int
    line: int
    final: bool


class Statements:
    """The statements of one reply.

    Args:
        lines: The lines of the reply without markup.
        options: The options of the question.
    """

    def __init__(self, lines: list[Line], options: OptionTexts) -> None:
        self._body = "\n".join(line.text for line in lines)
        self._options = options
        self._line_starts = [0]
        for line in lines:
            self._line_starts.append(self._line_starts[-1] + len(line.text) + 1)
        self._final: list[_Statement] = []
        self._reported: list[Reading] = []
        self._weak: list[Reading] = []
        for cue in _FINAL_CUES:
            for match in cue.finditer(self._body):
                self._add(match)

    def final(self) -> Reading | None:
        """Returns what the last final statement says.

        A later rejection of the same option takes a statement back. Two statements on one line
        that name different options say nothing, unless the second says that it corrects the first.
        """
        decided: Reading | None = None
        previous: _Statement | None = None
        for statement in sorted([*self._final, *self._corrections()], key=lambda one: one.start):
            reading = statement.reading
            if reading.sense is Sense.REJECTED:
                if decided and decided.letter == reading.letter:
                    decided = UNDECIDED
                continue
            clash = (
                previous is not None
                and previous.line == statement.line
                and previous.reading.letter != reading.letter
                and not self._overrules(previous, statement)
            )
            decided = UNDECIDED if clash else reading
            previous = statement
        return decided

    def supporting(self) -> list[Reading]:
        """Returns the options that the reply argues for."""
        readings = [reading for _, reading in self._leading()]
        return [*readings, *self._trailing(), *self._weak]

    def reported(self) -> list[Reading]:
        """Returns the options that the reply reports as answers of others, or as earlier ones."""
        return self._reported

    def _add(self, cue: re.Match[str]) -> None:
        voice = self._label_voice(cue)
        if voice is Voice.NONE:
            return
        link = cue.end("link") if cue.re is _LABEL else cue.end()
        linked = cue["link"] if cue.re is _LABEL else ":"
        lone_lower = not linked.strip(" -–—:").isalpha()
        value = self._body[link : link + VALUE_CHARS]
        reading = read_value(value, self._options, lone_lower=lone_lower)
        supposed = "would" in linked and _CONDITION_BEHIND.match(value)
        if reading.sense is Sense.SILENT or supposed or self._is_asked(value, linked):
            return
        if voice is Voice.REPORTED:
            self._reported.append(reading)
            return
        before = self._body[max(cue.start() - 30, self._line_start(cue.start())) : link]
        final = _FINAL.search(before) is not None
        # "Answer B: heparin would …" may discuss one answer after another, and a text that occurs
        # somewhere behind "Conclusion:" is not yet the conclusion.
        if reading.in_passing or (cue.re is _LINE_LABEL and not final):
            self._weak.append(reading)
            return
        line = self._line(link)
        self._final.append(_Statement(reading, cue.start(), link, line, final))

    def _label_voice(self, cue: re.Match[str]) -> Voice:
        before = self._before(cue.start())
        if cue.re is _LABEL:
            middle, link = cue["middle"], cue["link"]
            listed = _LISTING.search(middle) and link.strip() != "is"
            if listed or _MIDDLE_ELSEWHERE.search(middle):
                return Voice.NONE
            if link in ("\n", "") and not self._is_heading(cue.start(), middle):
                return Voice.NONE
            adjectives = re.findall(r"[\w']+", before.rpartition("\n")[2][-30:])[-2:]
            lowered = {word.lower() for word in adjectives}
            if lowered & _NOT_THE_ANSWER or (link.strip() == "is" and {"a", "an"} & lowered):
                return Voice.NONE
            owners = {word.removesuffix("'s") for word in lowered if word.endswith("'s")}
            if lowered & _NOT_MINE or owners - _OURS:
                return Voice.REPORTED
        return voice_of(before)

    def _is_heading(self, start: int, middle: str) -> bool:
        """Whether a label that ends its line is all that the line says."""
        before = self._body[self._line_start(start) : start]
        rest = middle.strip().lower() in ("", "is", "choice", "option", "letter")
        return rest and _HEADING_WORDS.fullmatch(before) is not None

    def _is_asked(self, value: str, link: str) -> bool:
        """Whether the sentence is a question: "So the answer is B?"."""
        end = re.search(r"[.!?\n]", value)
        return link.strip(" :-") == "is" and end is not None and end[0] == "?"

    def _leading(self) -> Iterator[tuple[re.Match[str], Reading]]:
        for cue in _SUPPORTING_CUES:
            for match in cue.finditer(self._body):
                before = self._before(match.start())
                if is_habit(before):
                    continue
                value = self._body[match.end() : match.end() + VALUE_CHARS]
                if (value[:1] == "\n" and match[0][-1] != ":") or voice_of(
                    before, match[0]
                ) is not Voice.OWN:
                    continue
                reading = read_value(value, self._options, letters_only=True, lone_lower=False)
                asked = self._is_asked(value, "is")
                if reading.sense in (Sense.CHOSEN, Sense.UNDECIDED) and not asked:
                    yield match, reading

    def _trailing(self) -> Iterator[Reading]:
        for match in _TRAILING.finditer(self._body):
            letter = match["letter"]
            before = self._before(match.start("letter"))
            graded = not _HEDGED_GRADE.search(match["grade"]) and not is_denied(match["text"])
            after = self._body[match.end() : match.end() + 80]
            asked = self._is_asked(after, "is")
            supposed = _CONDITION_BEHIND.match(after)
            if not graded or asked or supposed or is_habit(before):
                continue
            if letter in self._options.letters and voice_of(before) is Voice.OWN:
                yield Reading(Sense.CHOSEN, letter)

    def _corrections(self) -> list[_Statement]:
        """Supporting statements that say that they correct what went before."""
        if not _MAY_CORRECT.search(self._body):
            return []
        return [
            _Statement(reading, cue.start(), cue.end(), self._line(cue.start()), True)
            for cue, reading in self._leading()
            if _CORRECTS_HERE.search(self._body, max(cue.start() - _BEFORE_CHARS, 0), cue.start())
        ]

    def _overrules(self, earlier: _Statement, later: _Statement) -> bool:
        between = self._body[earlier.end : later.end]
        return (later.final and not earlier.final) or _CORRECTION.search(between) is not None

    def _before(self, start: int) -> str:
        return self._body[max(start - _BEFORE_CHARS, 0) : start]

    def _line(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def _line_start(self, position: int) -> int:
        return self._line_starts[self._line(position) - 1]


def emphasised(text: str, options: OptionTexts) -> list[Reading]:
    """Returns the options whose letter ends a sentence in bold, code or mathematics.

    Args:
        text: The cleaned reply with its markup.
        options: The options of the question.
    """
    readings = []
    for match in [*_EMPHASISED.finditer(text), *_PARENTHESISED.finditer(text)]:
        sentence = re.split(r"[.!?;\n]", match["before"])[-1]
        reading = read_value(match["label"], options, letters_only=True, lone_lower=False)
        own = voice_of(match["before"]) is Voice.OWN and not _DISAPPROVAL.search(sentence)
        if own and reading.sense is Sense.CHOSEN:
            readings.append(reading)
    return readings
