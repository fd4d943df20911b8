"""Reads sentences that state the answer: "Answer: C", "The answer is C", a boxed letter.

Each cue is read within its sentence: text before a period neither denies nor names anything after
it. The last of several statements counts, because models correct themselves; two letters in one
sentence are not an answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from mdagents_llm.answers.lines import option_lists, reviews
from mdagents_llm.answers.phrases import any_of, pattern
from mdagents_llm.answers.text import OptionTexts, words
from mdagents_llm.answers.value import NONE, SEVERAL, Reading, Sense, read_value

_LINK_CHARS = 160
_MOST_LINKS = 4
_LONGEST_TITLE = 40  # characters
_CONTEXT_CHARS = 400  # read around a statement
_MOST_CUES = 80  # read at either end of a reply; a looping one may have thousands

_NOUN = pattern(
    rf"(?P<english>{any_of('english answer')})|{any_of('answer')}|(?P<best>{any_of('best answer')})"
    rf"|{any_of('label answer')}(?=\s?(?:[^\w\s]|$|{any_of('is')}))"
)
# The link between the noun and the letter: a sign or a verb.
_LINK = pattern(
    r"(?P<sign>[=→⇒⟹|\]]|:(?!(?<=\d:)\d)|-+>|\s[-–—]+(?=\s)|–(?!\.?\d)|—"
    r"|(?<=\w)-(?=[(\[]?[A-J]\b)|(?<=answer)'s(?=\s))"
    rf"|(?:(?P<tentative>{any_of('would be')})|{any_of('is')})(?:[ :—]|[-–](?!\.?\d))*"
    r"|(?<=[案项項])\s?(?=[\s(]*[A-J](?![A-Za-z]))"
    # Hungarian, Hindi, Bengali, Urdu and Telugu: "A válasz (C).", "जवाफ (C) हो।"
    rf"|(?<=[zरরبంफ])\s(?=\([A-J]\)\s?(?:{any_of('is')})?\W*(?:$|[.।۔]))"
)
_LINE_LABEL = pattern(
    rf"(?P<before>(?:\w+(?:'s)?\s){{0,2}}){any_of('label')}"
    rf"(?:\s?\([^()]{{0,30}}\))?(?:\s?[:=→|](?!=)|\s[-–—]+\s)"
)
# "选项: C"; the heading of a list in "选项: A. 阿司匹林 B. 华法林"
_OPTION_LABEL = pattern(rf"{any_of('option label')}\s?:")
# "Answer C", "Final answer (C) aspirin": without a sign, at the start of a line.
_UNSIGNED = pattern(
    r"(?:the |my )?(?P<final>(?:final |correct )?)(?:answer|ans\.?) (?=\W{0,3}[A-J]\b)"
)
_YOURS = pattern(r"\W*(?:your |[你您]的)")
_OVER_A_REMARK = re.compile(r"\s?[A-J]\s?:")
# "Dissenting answer", "Less likely answer"
_QUALIFIED = re.compile(r"\W*[A-Za-z'-]+\s(?:[A-Za-z'-]+\s)?")
_BOXED = re.compile(r"\\f?box(?:ed)?\b\s?")
_CHANGE = pattern(
    r"\b(?:(?:chang|revis|switch|updat)\w{1,4}\b[^.:;?!\n]{0,40}?\b(?:answer|(?:my|our) vote)"
    r"|(?P<whose>my|our|the) answer (?:now )?(?:chang|shift|switch)(?:es|ed|s))"
    r"\b[^.:;?!\n]{0,40}?\bto\b"
    r"(?=\s\W{0,3}(?:(?:option|choice)\s)?\W{0,3}[A-J]\b)"
)
# "changed his answer to B", "asked me to change my answer to B", "Expert 2 changed the answer to B"
_OF_ANOTHER = pattern(
    r"\b(?:his|her|their|(?!(?:team|panel|group)')\w+'s) (?:\w+ ){0,2}(?:answer|vote)\b"
)
_ASKED_TO = pattern(
    r"\b(?:(?:want|ask|tell|told|urg|advis|press|invit)\w* (?:me|us|the (?:team|panel|group))"
    r"|(?:was|were|am|are|been) (?:asked|told|urged|advised|pressed|invited)"
    r"|(?:refus|declin)\w*|reluctant|unwilling|hesitant) to $"
)
# not "The expert panel changed", "Expert 2's argument changed", "That she is pregnant changes"
_BY_ANOTHER = pattern(
    rf"(?!(?:teams?|some|many|s?he)\b|(?<=\bthe )(?:agents|doctors|experts|members)\b)"
    rf"{any_of('person')}(?:(?!\b(?:I|we|this|that|which)\b|'s\b"
    r"|(?<!\b(?:in|of|on)\sthe\s)\b(?:group|panel|team)\b)[^.,;:\n]){0,80}$"
    r"|\bs?he (?:(?:has|had|would|wants|wanted|to|then|now|also|later|\w+ly) ){0,4}$"
)
_OF_US = pattern(r"\b(?:I|we|my|our)\b")
_HAS_CHANGED = pattern(r"\bnow\b|\b(?:changed|shifted|switched)\b")
# "changes to B in sepsis", not "changes to B in light of the ECG" or "for two reasons"
_IN_ANOTHER_CASE = pattern(
    rf"\W*[A-J]\W{{0,3}}{any_of('of others')}(?! (?:\w+ )?(?:light|view|summary|conclusion|line"
    r"|accordance|agreement|response|consensus|confidence|certainty|reasons?|safety|rounds?)\b)"
)
# "故选C"; "讨论后选C" and "选C会出血" may be remarks, "考生误选C" and "选C者" are others'
_CHOSEN = re.compile(
    rf"{any_of('choose')}(?=[\s:(]*[A-J](?![A-Za-z])"
    rf"(?!\s?(?:\([^()]{{0,40}}\))?{any_of('choosing')})"
    rf"(?P<supposed>\s?(?:\([^()]{{0,40}}\))?{any_of('may follow')})?)"
)
_CHOSEN_HERE = re.compile(rf"(?:^|\W|{any_of('before choose')})$")
_CHOSEN_BY_OTHERS = re.compile(rf"{any_of('not choosing')}$")
# "(C) heparin is the correct answer"
_INVERTED = re.compile(
    r"(?:^|(?<=[.!?,;:–—(]\s)|\b(?i:option|choice|answer|letter|that|so|thus|therefore|hence),?\s)"
    r"[(\[\"']?(?=[A-J]\b)(?P<value>[A-J](?:\s?[(\[)\].:,]+[^.?\n]{0,160}?)?)"
    r",?\s(?:is|must be|remains)(?:\s\w+ly)?\s(?:the|our|my)\s(?:(?:single|only|most likely)\s)?"
    r"(?:(?:correct|right|final)\s(?:answer|option|choice)|(?:best )?answer)"
    r"(?=\W*(?:$|[.,;:!]|because\b|since\b|as\b|here\b|to\b|and\b))"
)
# "C是正确答案", "選択肢Cが正解です", "La opción C es la respuesta correcta"
_INVERTED_FOREIGN = pattern(
    rf"(?:^|(?<=[.!?,;:–—(]\s)|(?<=[。、,;:])(?<![A-J].)|{any_of('so', 'label noun')}\s?)[(\[\"']?"
    rf"(?P<value>(?-i:[A-J])(?![A-Za-z0-9'-])(?:[)\].:][^.?;。\n]{{0,80}}?)?)[)\]\"']?\s?"
    rf"{any_of('inverted')}(?:(?=\W*(?:$|[.,;:!]|{any_of('because')}))|(?=[⺀-힣])(?!的|之一))"
)
# "Daher ist die richtige Antwort C"; a sentence that starts with the verb is a condition.
_VERB_FIRST = pattern(
    rf"(?<=[\w,]\s){any_of('verb first')}\s(?P<value>)"
    rf"(?=\W{{0,3}}(?:{any_of('label noun')}\s)?\W{{0,3}}(?-i:[A-J])(?![\w'-]))"
)
_CUES = (_NOUN, _BOXED, _CHANGE, _CHOSEN)
_HEADING = pattern(rf"\W*(?:{any_of('heading')}\W+){{0,6}}$")

_SENTENCE_END = re.compile(
    r"(?:[.!?;…](?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\b[Dd]r\.)(?<!\b[Pp]rof\.)(?<!\b[Aa]ns\.)"
    r"[.!?;…]*(?=\s|$)|[。!?।۔؟])\s*"
)
_LABEL_ALONE = re.compile(r"\W*(?:(?i:option|answer|choice)\s)?[A-J]\.\s*")
_CLAUSE_START = pattern(rf"[,،、;:—–]|{any_of('clause')}")
# The noun refers to an option that is not the answer, or to another's answer.
_ANOTHER = pattern(rf"{any_of('english another')}[\s-](?:\w+\s)?$")
_ANOTHER_FOREIGN = pattern(rf"{any_of('another')}\s?$")
_ANOTHER_LABEL = pattern(any_of("another label"))
# "❌ Answer: C", but "A ❌ B ❌ Answer: C" crosses others out.
_DENIED = pattern(rf"{any_of('denied')}|(?<!\b[A-J]\s)[❌✗✘✖](?!\W*[A-J]\b)")
_VALUE_LETTER = re.compile(r"\W*(?P<letter>[A-J])(?![A-Za-z])(?:\s?번)?")
# Right behind an option; an explanation may follow it: "答えはC以外", not "答えはC (Aではない)".
_DENIED_BEHIND = pattern(
    rf"(?:\s?\([^()]{{0,60}}\))?[)\]\"']*(?![은는は](?!\s?아))"
    rf"(?:(?![(\[:;、,.–—-]|(?<![A-Za-z])[A-J](?![A-Za-z])|{any_of('clause behind')}).){{0,12}}?"
    rf"{any_of('denied behind')}|[)\]]?[、,]\s?{any_of('denied behind a comma')}"
)
_LABEL_DENIED_BEHIND = pattern(
    rf"(?:[、,和与]\s?[A-J])*[)\]\"']*[^(\[:;、,.A-J–—-]{{0,2}}?{any_of('denied behind')}"
    rf"|[)\]]?[、,]\s?{any_of('denied behind a comma')}"
)
_SUPPOSED = pattern(rf"{any_of('supposed', 'if')}|^\W*{any_of('supposed first')}")
_CONDITION = pattern(any_of("if", "condition"))
_ANOTHER_CASE = pattern(rf"\W*{any_of('of others', 'another case')}[^:]*:?\s*$")
_ASKED = pattern(rf"\W*{any_of('asks')}")
_OWN = r"(?:\b(?:I|we)\b|[我私]|\b(?:저|나|우리)(?:희)?(?:는|의)?\b)"
_CONCLUDES = r"[^.;\n]*\w, (?:and )?(?:so|thus|therefore|hence|my|our)\b"
_CONCLUDES_ITSELF = r"[^.;:\"\n]*\w, (?:and )?(?:(?:so|thus|therefore|hence),? )?(?:my|our)\b"
# "Expert 2 chose C, so the answer", not "Expert 2 says it is C, so the answer", but "so my answer"
_VOTES_AND_CONCLUDES = (
    r"(?:(?:cho|select|vot|pick|prefer|favou?r|recommend|argu\w+ (?:\w+ )?for\b)\w*\b"
    rf"|{any_of('says')}(?= (?-i:[A-J])(?:,|\sand\b)))(?! that\b){_CONCLUDES}"
    rf"|{any_of('says')}(?! that\b){_CONCLUDES_ITSELF}"
)
# "She said she was pregnant, so the answer", not "She said it is HIT" or "She said she chose B"
_PATIENT_AND_CONCLUDES = (
    rf"s?he\b[^.;,\n]{{0,80}}?{any_of('says')}(?! that\b)"
    rf"(?=[^.;,\n]*\b(?:s?he|his|him|her)\b)(?![^.;,\n]*(?-i:\b[A-J]\b)){_CONCLUDES}"
)
# "As the surgeon says, the correct answer", not "As the surgeon wrongly says, …", "While Expert 1
# says, in adults, the answer" or an answer within a quotation
_BESIDE_A_REPORT = pattern(
    r"^\W*(?![^;\n]*\bthat,)(?![^\"]*\"(?:[^\"]*\"[^\"]*\")*[^\"]*$)(?:(?:so|and|now),? )?"
    r"(?:as(?![^;\n]*\b(?:wrong|mistaken|incorrect)ly\b)"
    rf"|(?:since|because|while|although|though|given that)(?![^;\n]*{any_of('says')},))"
    r" [^;\n]*, (?:the|my|our) (?:\w+ ){0,2}$"
)
_REPORTED = pattern(
    rf"(?!{_PATIENT_AND_CONCLUDES}){any_of('person')}(?:(?!{_OWN})[^.;\n]){{0,80}}"
    rf"(?!{_VOTES_AND_CONCLUDES}){any_of('says')}"
    rf"(?![^.;\n]*(?:{_OWN}|[,、]\s?(?:因此|所以|因而)))"
    rf"|{any_of('source')}\s?{any_of('person')}|{any_of('at first')}"
)
_BY_SOMEBODY = r"(?:\sby(?:\s(?!(?:that|to|so|and)\b)[\w'-]+){1,3})?"
# "According to UpToDate, the correct", "UpToDate says that the", before "answer is B"
_QUOTED = pattern(
    rf"(?:(?:{any_of('source')}|\b(?:by|in|under)(?: the)?)\s?{any_of('reference', 'outdated')},?"
    rf"|{any_of('reference', 'outdated')}\s?{any_of('says')})"
    r"(?:\s[^\s,.;:]+){0,3}\s?$"
    rf"|{any_of('was told')}{_BY_SOMEBODY}(?:\sthat)?(?:\sthe)?"
    r"(?:\s(?:correct|right|best|final))?\s?$"
)
# "専門家2は答えはBだと言う": before "答え", and from B on
_BY_A_PERSON = pattern(rf"{any_of('person')}(?:(?!{_OWN})[^.;\n]){{0,20}}$")
_SAYS_BEHIND = pattern(rf"\W*[A-J][^.,;、\n]{{0,40}}?{any_of('says behind')}")
_AGREES = pattern(any_of("agrees"))
_SPEAKER = pattern(
    rf"\W*(?:\w+[^\w:\n]{{1,2}}){{0,3}}{any_of('person')}"
    r"(?:(?!\b(?:is|are|has|have|was|were|and|agrees?)\b)[^:.\n]){0,60}:"
)
# "The answer is B, said the cardiologist."
_ATTRIBUTED = pattern(
    rf"[,;]?\s(?:{any_of('says')} |{any_of('source')} )(?:\w{{1,3}} )?"
    rf"{any_of('person', 'reference')}"
    r"|^(?:(?!\b(?:because|since|due|given|which|than|over|not|replac\w+)\b)[^,;:]){0,80}[,;]?\s"
    rf"(?:as )?(?:{any_of('says')} |{any_of('source')} )(?:by )?(?:the )?{any_of('outdated')}"
    rf"|[,;]\s?{any_of('person')}\s?{any_of('says')}"
    r"|^(?:(?!\b(?:because|since|as|due|given|which)\b)[^:;]){0,80}[,;]\s?(?:or so |so )?"
    rf"{any_of('was told')}{_BY_SOMEBODY}\W*$"
    r"|\bor so (?:I thought|it (?:seems|appears))\b|\bwas my (?:first|initial)\b"
    rf"|\bis what (?:the )?(?:\w+ )?{any_of('person')} {any_of('says')}"
)
_INTRODUCES = pattern(
    rf"\W*(?:\w+ )?{any_of('person')}(?:[ ']\w+){{0,3}}\W*:"
    rf"|[^.;\n]{{0,60}}{any_of('person')}[^.;\n]{{0,40}}{any_of('says')}\W*:"
)
_TOGETHER = pattern(any_of("together"))
_JOKE = pattern(any_of("joke"))
_BUT = pattern(any_of("but"))
# "For adults, the answer is B. But this is a child."
_TURNS = rf"[^.;]{{0,80}}[.;]?\s?{any_of('but')}"
_GENERAL = pattern(rf"{any_of('general')}|^\W*{any_of('of others')}")
_OF_OTHERS_FIRST = pattern(rf"\W*{any_of('of others')}")
_THEN_TURNS = pattern(_TURNS)
_OF_OTHERS = pattern(
    rf"\W*[A-J][)\]: ]{{0,3}}(?:{any_of('general')}"
    rf"|(?:(?!\b(?:because|since|as|due|which)\b)[^.;,(]){{0,80}}?{any_of('of others')}){_TURNS}"
)
# "I previously stated the answer is B.", not "I said it was a clot, so the answer is B."
_RECALLED = pattern(
    rf"{any_of('recalled')},?(?: that)?(?: (?:the|my|its))?"
    r"(?: (?:correct|right|best|final)){0,2}\W*$"
)
# "Answer: C", and below "Exam tip: …" or "In stable patients, the answer is A."
_ASIDE = pattern(rf"\W*{any_of('another case')}(?=[^\w:]*:)")
_OF_A_GROUP = pattern(
    rf"(?:^|[.:,—–-]\s?|\s)\W*{any_of('of others')}\s(?:(?:[\w-]+,?\s){{0,6}}){any_of('group')}"
    r"(?! (?:like|such as) (?:this|him|her|ours)\b)"
)
# "The answer is C. Without contraindications, the answer is A."
_LACKING = pattern(
    r"\W*(?:without|in the absence of)\s(?:[\w'-]+\s){0,3}"
    r"(?:contra-?indication|evidence|feature|finding|red flag|sign|symptom)s?\b"
)
# "The answer would be B for an arterial clot.", "In children, the answer would be B."
_OF_A_CASE = pattern(
    r"\W*(?:[A-J]\W{0,2}\s)?(?:for|in)\s(?:an?|patients|adults|children|women|men|infants)\b"
)
# "Saying that the answer is B would be an error."
_WRONG_BEHIND = pattern(
    r"(?:(?!\b(?:because|since)\b)[^.,;]){0,60}"
    rf"(?:, which )?{any_of('is', 'would be')}\s?{any_of('wrong')}"
)
# "Bei Kindern ist die beste Option A."
_OF_SOME = pattern(
    rf"\W*(?:{any_of('sometimes')}|{any_of('of others')}\s(?:[\w-]+,?\s){{0,6}}{any_of('group')})"
)
_ELSEWHERE = pattern(
    rf"{any_of('elsewhere')}|\bn'$|^\s?(?:choices|options)\b"
    r"|(?-i:(?<![\w'-])[B-HJ](?![\w'-])|(?<![\w'-])[AI](?=\s?(?:[)\]:-]|$)))"
)
_CHOICES = re.compile(r"\(\w{1,20}(?:\s?/\s?\w{1,20}){1,9}\)")  # "Answer (yes/no/maybe): yes"
_IN_BRACKETS = re.compile(r"\s?(?:\([^()]{0,30}\)\s?)?")
_CORRECTS = pattern(any_of("corrects"))
_REPLACES = pattern(
    rf"{any_of('taken back')}\W*(?:(?:so|and) )?(?:the )?(?:correct |right |best )?\Z"
    r"|\bfinal (?:answer|decision|choice)\b|\b(?:my|our) (?:answer|choice)\b"
    r"|\b(?:chang|revis|switch)\w{1,4} (?:my|our|the|this) (?:answer|choice|vote)\b"
)
_TAKEN_BACK = pattern(rf"\W*(?:(?:but|oh|hmm),?\s)?{any_of('taken back', 'joke')}")
# Only right behind the statement: later, "however" may be about another option.
# A verdict may go on about something else: "However, this is not the correct dose".
_TURNED_DOWN = pattern(
    r"\W*(?:however,?\s(?:on (?:second thought|reflection)|scratch that|let me (?:correct"
    r"|re-?(?:analy|assess|check|consider|evaluat|exam|think|visit)\w*))\b"
    rf"|(?:(?:(?:however|wait|no),?\s)?{any_of('taken back')}"
    r"|(?:however|wait|no),?\s(?:option |answer )?\W?(?P<letter>(?-i:[A-J]))\W?"
    r" is (?:not (?:right|correct)|incorrect|wrong))"
    r"(?=\W*$|\s?[:;—–]|\s-\s|,?\s(?:because|since|as|due|owing|given|here)\b"
    r"|\s(?:for|in) (?:this|her|his|him)\b"
    r"|\s(?:with|about|in) (?:my|this|that) (?:answer|choice|conclusion|reasoning)\b"
    r"|(?:(?<=correct)|(?<=right)|(?<=wrong)|(?<=mistake))"
    r"(?:,\s(?!(?:for|if|in|unless|when)\b)|\sand\b)))"
)


@dataclass(frozen=True, slots=True)
class Cue:
    """The positions of a label and of its value."""

    start: int
    value: int
    colon: bool
    tentative: bool = False
    """Whether the statement is conditional ("would be") and therefore overrides nothing."""
    weak: bool = False
    """Whether it may be no answer but a guess, a remark, or the best option of other patients."""
    announces: bool | None = None
    """Whether the option may be on the line below; None if words before the label decide."""


@dataclass(frozen=True, slots=True)
class _Statement:
    cue: Cue
    reading: Reading


def final_statement(
    lines: list[str], options: OptionTexts, earlier: Reading | None = None
) -> Reading | None:
    """Return the reading of the last statement in a reply; `earlier` if the reply states nothing.

    A statement is withdrawn by a later denial of the same option, and by a sentence that starts
    with "Wait" or "Scratch that", unless another statement follows.

    Args:
        lines: Lines of the reply without markup.
        options: Options of the question.
        earlier: Answer that is stated before these lines.
    """
    lines = _without_most_cues(lines)
    decided = earlier
    decided_weakly = False
    just_stated = earlier is not None
    listed = {index for run in option_lists(lines) for index in run}
    for number, line in enumerate(lines):
        if number in listed and _OPTION_LABEL.match(line):
            continue
        if number and _INTRODUCES.fullmatch(lines[number - 1]):
            continue  # "The previous agent wrote:", and then "Answer: B"
        below = number + 1 < len(lines) and number + 1 not in listed
        following = lines[number + 1] if below else ""
        labelled: _Statement | None = None
        for start, end in sentences(line):
            stated = _read_sentence(line, start, end, following, options, labelled)
            just_stated, before = stated is not None, just_stated
            if stated is None:
                if decided is not None and (
                    (decided is not earlier and _TAKEN_BACK.match(line, start, end))
                    or (before and _is_turned_down(decided, line, start, end))
                ):
                    decided = NONE
            elif decided is not None and _is_aside(line, start, stated.cue):
                continue  # "The answer is C. In pregnancy it would be A."
            elif stated.reading.sense is not Sense.REJECTED:
                weak = stated.cue.weak and not _replaces(line, start, stated.cue)
                if decided is not None and weak and decided.letter != stated.reading.letter:
                    decided = SEVERAL if decided_weakly else decided
                    continue
                decided, decided_weakly = stated.reading, weak
                labelled = stated if stated.cue.colon else None
            elif decided is not None and decided.letter == stated.reading.letter:
                decided = NONE
    return decided


def _is_turned_down(decided: Reading, line: str, start: int, end: int) -> bool:
    """Return whether a sentence says that the answer right before it is wrong."""
    verdict = _TURNED_DOWN.match(line, start, end)
    return verdict is not None and verdict["letter"] in (None, decided.letter)


def _without_most_cues(lines: list[str]) -> list[str]:
    """Return the two ends of a reply with many nouns and other beginnings of a statement."""
    if sum(map(len, lines)) <= _CONTEXT_CHARS:
        return lines
    starts = [
        sorted(match.start() for cues in _CUES for match in cues.finditer(line)) for line in lines
    ]
    if sum(map(len, starts)) <= 2 * _MOST_CUES:
        return lines
    first = sum(count <= _MOST_CUES for count in accumulate(map(len, starts)))
    left, last = _MOST_CUES, len(lines)
    while len(starts[last - 1]) <= left:
        last -= 1
        left -= len(starts[last])
    cut = lines[last - 1]
    begin = _start_of_sentence(cut, starts[last - 1][-left]) if left else len(cut)
    return [*lines[:first], "…", cut[begin:], *lines[last:]]


def _start_of_sentence(line: str, cue: int) -> int:
    """Return where the sentence of a cue starts, or its clause if that is far away."""
    near = max(cue - _CONTEXT_CHARS, 0)
    for boundary in (_SENTENCE_END, _CLAUSE_START):
        ends = [end.end() for end in boundary.finditer(line, near, cue)]
        if ends or near == 0:
            return ends[-1] if ends else 0
    return cue


def _is_aside(line: str, start: int, cue: Cue) -> bool:
    """Return whether a statement is about other patients than an earlier one, or recalls one."""
    before = line[max(start, cue.start - _CONTEXT_CHARS) : cue.start]
    if cue.tentative:
        return True
    about_others = (
        _ASIDE.match(line)
        or _OF_A_GROUP.search(before)
        or _LACKING.match(before)
        or _RECALLED.search(before)
    )
    return about_others is not None and not _replaces(line, start, cue)


def _replaces(line: str, start: int, cue: Cue) -> bool:
    """Return whether the words of a statement, or those right before it, correct an earlier one."""
    return bool(
        _TAKEN_BACK.match(line, start, cue.start)
        or _REPLACES.search(line, start, cue.start)
        or _REPLACES.search(line, start, cue.value)
    )


def _is_of_a_speaker(line: str, cue: Cue) -> bool:
    """Return whether a line begins with a person and a colon, which may be the statement's own."""
    speaker = _SPEAKER.match(line, 0, min(cue.value, _CONTEXT_CHARS))
    if speaker is None or _TOGETHER.search(speaker[0]):  # "Expert consensus: C"
        return False
    # "专家1的答案：B" is another's answer, "医师建议抗凝。答案：B" is the reply's own.
    return (
        speaker.end() <= cue.start or re.search(r"[,、。]|(?:에서|으로|하면)\s", speaker[0]) is None
    )


def sentences(line: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence of a line."""
    start = 0
    for end in _SENTENCE_END.finditer(line):
        if not _LABEL_ALONE.fullmatch(line, start, end.end()):  # "C. Heparin is the answer."
            yield start, end.end()
            start = end.end()
    if start < len(line):
        yield start, len(line)


def _read_sentence(
    line: str,
    start: int,
    end: int,
    following: str,
    options: OptionTexts,
    before: _Statement | None,
) -> _Statement | None:
    """Return the statement in a sentence; its value may extend past it: options may hold periods.

    Two letters in one sentence are not an answer, nor are two different labels on one line
    ("Answer: B. Answer: C."), unless the words between them correct the first.
    """
    stated: _Statement | None = None
    for cue in sorted(_cues(line, start, end, options), key=lambda cue: cue.start):
        value = line[cue.value :]
        below = not value.strip(" :*") and _announces(line, cue)
        reading = read_value(following if below else value, options, colon=cue.colon)
        if reading.sense is Sense.SILENT or is_supposed(line, start, cue, end, options):
            continue
        if cue.weak and _is_of_some(line, start, cue):
            continue
        earlier = stated or (before if cue.colon else None)
        if (
            earlier is not None
            and earlier.reading.sense is not Sense.REJECTED
            and earlier.reading.letter != reading.letter
            and not _is_corrected(line, earlier.cue, cue)
        ):
            if cue.weak and not earlier.cue.weak:
                continue
            if cue.weak == earlier.cue.weak:
                reading = SEVERAL
        stated = _Statement(cue, reading)
    return stated


def _announces(line: str, cue: Cue) -> bool:
    """Return whether a line that ends with a label announces the option on the line below."""
    if cue.announces is None:
        return _HEADING.fullmatch(line[: cue.start]) is not None
    before = line[: cue.start].lower()  # "A resposta é:"
    return cue.announces and not (_ELSEWHERE.search(before) or reviews(line))


def _is_of_some(line: str, start: int, cue: Cue) -> bool:
    """Return whether a statement says which option is the best one for some patients only."""
    about_others = _OF_SOME.match(line, start, cue.value)
    return bool(about_others or _OF_A_GROUP.search(line, cue.start, cue.value))


def _is_corrected(line: str, earlier: Cue, later: Cue) -> bool:
    """Return whether the second of two statements explicitly replaces the first."""
    final = [
        "final" in line[max(begin, 0) : cue.value].lower()
        for begin, cue in ((earlier.start - 20, earlier), (earlier.value, later))
    ]
    return final == [False, True] or _CORRECTS.search(line, earlier.value, later.start) is not None


def _cues(line: str, start: int, end: int, options: OptionTexts) -> Iterator[Cue]:
    for noun in _NOUN.finditer(line, start, end):
        before = line[max(start, noun.start() - 40) : noun.start()]
        another = (_ANOTHER if noun["english"] else _ANOTHER_FOREIGN).search(before)
        if not another and (cue := _linked(line, noun, end, options)):
            yield replace(cue, weak=True) if _is_lesser(line, noun, cue) else cue
    for match in _BOXED.finditer(line, start, end):
        yield Cue(match.start(), match.end(), colon=True)
    for match in _CHANGE.finditer(line, start, end):
        if not _is_anothers_change(line, start, match):
            yield Cue(match.start(), match.end(), colon=True)
    for match in _CHOSEN.finditer(line, start, end):
        before = line[max(start, match.start() - 10) : match.start()]
        here = _CHOSEN_HERE.search(before) is not None
        if here or not _CHOSEN_BY_OTHERS.search(before):
            weak = not here or match["supposed"] is not None
            yield Cue(match.start(), match.end(), colon=True, weak=weak)
    for sentence in (_INVERTED, _INVERTED_FOREIGN, _VERB_FIRST):
        for match in sentence.finditer(line, start, end):
            weak = sentence is not _INVERTED
            yield Cue(match.start(), match.start("value"), colon=False, weak=weak)
    label = _LINE_LABEL.match(line, start, end)
    if label and not _ANOTHER_LABEL.search(label[0]):
        before = label["before"]
        foreign = not before.isascii() or _NOUN.match(before) is not None
        own = foreign or _HEADING.fullmatch(before) is not None
        yield Cue(start, label.end(), True, weak=not own or "guess" in label[0].lower())
    label = (_UNSIGNED.match(line) or _OPTION_LABEL.match(line)) if start == 0 else None
    if label is None:
        return
    final, value = label.groupdict().get("final"), line[label.end() :]
    if final or _is_alone(value, options):
        # "Correct answer: C", and below "Answer D: Warfarin" over a remark on it
        titles = label.re is _UNSIGNED and not final and len(words(value)) > 1
        yield Cue(0, label.end(), colon=True, weak=titles)


def _is_lesser(line: str, noun: re.Match[str], cue: Cue) -> bool:
    """Return whether a label may be of another answer than the reply's, if there is one.

    "Your answer: B", not "So your answer is B"; "Dissenting answer: B"; "答案A: …" over a remark.
    """
    before = line[: noun.start()]
    if not cue.colon:
        return not before.strip() and _OVER_A_REMARK.match(line, noun.end()) is not None
    if _YOURS.fullmatch(before):
        return True
    qualified = noun["english"] and _QUALIFIED.fullmatch(before)
    return bool(qualified) and _HEADING.fullmatch(before) is None


def _is_anothers_change(line: str, start: int, change: re.Match[str]) -> bool:
    """Return whether somebody else changes an answer, or it changes in another case only."""
    before = line[max(start, change.start() - _CONTEXT_CHARS) : change.start()]
    if _OF_ANOTHER.search(change[0]) or _ASKED_TO.search(before):
        return True
    if change["whose"]:
        may_differ = change["whose"].lower() == "the" and not _HAS_CHANGED.search(change[0])
        behind = may_differ and _IN_ANOTHER_CASE.match(line, change.end())
        return bool(behind or _OF_OTHERS_FIRST.match(before))
    by_another = _BY_ANOTHER.search(before) and not _TOGETHER.search(before)
    return bool(by_another and not _OF_US.search(change[0]))


def _is_alone(value: str, options: OptionTexts) -> bool:
    """Return whether a line ends in an option: "Answer B: heparin would …" may discuss several."""
    option = re.fullmatch(r"\W*(?P<letter>[A-J])\b\W*(?P<text>.*)", value)
    if option is None:
        return False
    return not option["text"] or option["letter"] in options.exactly(option["text"])


def _linked(line: str, noun: re.Match[str], end: int, options: OptionTexts) -> Cue | None:
    """Return the cue for the first link after a noun that is followed by an option."""
    last = None
    stop = min(end, noun.end() + _LINK_CHARS)
    for link in islice(_LINK.finditer(line, noun.end(), stop), _MOST_LINKS):
        if _ELSEWHERE.search(_CHOICES.sub("", line[noun.end() : link.start()])):
            break
        colon, tentative = bool(link["sign"]), bool(link["tentative"])
        whole = not colon or _IN_BRACKETS.fullmatch(line, noun.end(), link.start()) is not None
        announces = True if whole and not noun["english"] else None
        # "答案解析:" below an answer announces none
        explains = not (whole or noun["english"] or line[link.end() :].strip(" :*"))
        weak = bool(noun["best"]) or explains
        last = Cue(noun.start(), link.end(), colon, tentative, weak, announces)
        if read_value(line[link.end() :], options, colon=last.colon).sense is not Sense.SILENT:
            return last
    if last is None and not line[noun.end() :].strip(" .*"):
        # a heading, the letter below
        title = len(line) <= _LONGEST_TITLE and not line.endswith(".")
        announces = None if noun["english"] else title
        return Cue(noun.start(), len(line), True, weak=bool(noun["best"]), announces=announces)
    return last


def is_supposed(line: str, start: int, cue: Cue, end: int, options: OptionTexts) -> bool:
    """Return whether a statement is not asserted: denied, assumed, asked, quoted, or an example."""
    before = line[max(start, cue.start - _CONTEXT_CHARS) : cue.start]
    before = _BUT.split(before)[-1]
    if _DENIED.search(_CLAUSE_START.split(before)[-1]) or _SUPPOSED.search(before):
        return True
    behind = line[cue.value : min(end, cue.value + _CONTEXT_CHARS)]
    reported = (
        (_REPORTED.search(before) and not _BESIDE_A_REPORT.search(before))
        or _QUOTED.search(before)
        or _is_of_a_speaker(line, cue)
        or _ATTRIBUTED.search(behind)
        or (_BY_A_PERSON.search(before) and _SAYS_BEHIND.match(behind))
    )
    if reported and not (_TOGETHER.search(before) or _AGREES.search(behind)):
        return True
    if _ASKED.match(before) or behind.rstrip(" \"')").endswith(("?", "؟")) or _JOKE.search(behind):
        return True
    if cue.tentative and (_OF_A_CASE.match(before) or _OF_A_CASE.match(behind)):
        return True
    in_general = _GENERAL.search(before) and _THEN_TURNS.match(line, cue.value)
    if in_general or _OF_OTHERS.match(line, cue.value):
        return True
    denied_behind = _LABEL_DENIED_BEHIND if cue.colon else _DENIED_BEHIND
    if (label := _VALUE_LETTER.match(behind)) and denied_behind.match(
        behind, label.end() + options.own_text(label["letter"], behind[label.end() :])
    ):
        return True
    if cue.colon:
        of_another = _ANOTHER_CASE.match(before)
        return of_another is not None and not _replaces(line, start, cue)
    return bool(_CONDITION.search(behind) or _WRONG_BEHIND.match(behind))
