"""Reads sentences that state the answer: "Answer: C", "The answer is C", a boxed letter.

Each cue is read within its sentence: text before a period neither denies nor names anything after
it. The last of several statements counts, because models correct themselves; two letters in one
sentence are not an answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from mdagents_llm.answers.lines import option_lists
from mdagents_llm.answers.text import OptionTexts
from mdagents_llm.answers.value import NONE, SEVERAL, Reading, Sense, read_value

_LINK_CHARS = 160
_MOST_LINKS = 4
_CONTEXT_CHARS = 400  # read around a statement; a looping reply may have thousands on one line

# The noun of a statement. "Option" and "choice" need a word that makes them the answer.
_NOUN = re.compile(
    r"\b(?:(?P<english>answers?(?:[ /](?:choice|option|letter))?|ans\b\.?"
    r"|(?:correct|best|right|final|appropriate|suitable|likely|chosen|selected|accurate)\s"
    r"(?:option|choice|response|selection|decision|letter)s?)"
    r"|respuesta|antwort|réponse|reponse|resposta|gabarito|đáp án|câu trả lời"
    r"|(?:opción|opcion|opção|alternativa|letra) corre\w+|(?:richtige|korrekte) (?:option|lösung)"
    r"|(?:option|lettre) correcte|phương án đúng)\b"
    r"|答案|正确选项|正確選項|正解|答え|정답",
    re.IGNORECASE,
)
# The link between the noun and the letter: a sign or a verb.
_LINK = re.compile(
    r"(?P<sign>=+>|[:=→⇒⟹|\]]|-+>|\s[-–—]+(?=\s)|[–—]|(?<=\w)-(?=[(\[]?[A-J]\b)|(?<=answer)'s(?=\s))"
    r"|\b(?P<verb>is|are|remains|becomes|(?:would|should|must|will|has to) be"
    r"|es|sería|ist|lautet|wäre|est|serait|é|seria|là)\b[ :–—-]*"
    r"|(?<=[案项項])\s?(?=[\s(]*[A-J](?![A-Za-z]))|(?P<cjk>(?:应该|應該|应当|应|應)?(?:是|为|為|选|選)|[は은])",
    re.IGNORECASE,
)
_TENTATIVE = frozenset(["would be", "sería", "wäre", "serait", "seria"])
# Words that are a label only at the start of a line and before a sign.
_LINE_LABEL = re.compile(
    r"(?:(?:\w+(?:'s)?)\s){0,2}"
    r"(?:final|correct|selected|chosen|recommended|best|decision|verdict|conclusion|vote|consensus"
    r"|choice|option|selection|pick|response|result|solution|lösung|prediction|output|assistant"
    r"|overall|majority|correction)(?:\s?\([^()]{0,30}\))?(?:\s?[:=→|](?!=)|\s[-–—]+\s)",
    re.IGNORECASE,
)
# "Answer C", "Final answer (C) aspirin": without a sign, at the start of a line.
_UNSIGNED = re.compile(
    r"(?P<final>(?:(?:the|my|our|most|final|correct|best|right) ){0,4})"
    r"(?:ans(?:wer\b|\b\.?)|respuesta|antwort|réponse|resposta|gabarito|đáp án) "
    r"(?=\W{0,3}[A-J]\b)",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\f?box(?:ed)?\b\s?")
_CHANGE = re.compile(
    r"\b(?:chang|revis|switch|amend|correct|updat)\w{1,4}\b[^.:;?!\n]{0,40}?\banswer\b[^.:;?!\n]{0,40}?"
    r"\bto\b(?=\s\W{0,3}(?:(?:option|choice)\s)?\W{0,3}[A-J]\b)",
    re.IGNORECASE,
)
_CHOSEN_CJK = re.compile(
    r"(?:故|应|應|因此|所以|我)?(?:选择|選擇|选|選)(?=[\s:(]*[A-J](?![A-Za-z]))"
)
_CHOSEN_VI = re.compile(
    r"(?:(?:vậy|do đó|nên|vì vậy),? )?chọn\s(?=(?:đáp án\s|phương án\s)?[(\[]?[A-J]\b)",
    re.IGNORECASE,
)
# "(C) heparin is the correct answer"
_INVERTED = re.compile(
    r"(?:^|(?<=[.!?]\s)|(?<=[,;:–—(])\s?|\b(?i:option|choice|answer|letter|that|so|thus|therefore|hence),?\s)"
    r"[(\[\"']?(?=[A-J]\b)(?P<value>[A-J](?:\s?[(\[)\].:,]+[^.?\n]{0,160}?)?)"
    r",?\s(?:is|must be|remains)(?:\s\w+ly)?\s(?:the|our|my)\s(?:(?:single|only|most likely)\s)?"
    r"(?:(?:correct|right|final)\s(?:answer|option|choice)|(?:best )?answer)"
    r"(?=\W*(?:$|[.,;:!]|because\b|since\b|as\b|here\b|to\b|and\b))"
)
_HEADING = re.compile(
    r"\W*(?:(?:so|thus|therefore|hence|and|the|my|our|your|final|correct|best|right|single|most"
    r"|likely|appropriate|consensus|majority|overall|consolidated|step|part|\d)\W+){0,6}$",
    re.IGNORECASE,
)

_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bDr)(?<!\bProf)(?<!\bans)(?<!\bAns)(?:[.!?;…]+(?=\s|$)|[。!?])\s*"
)
_LABEL_ALONE = re.compile(r"\W*(?:(?i:option|answer|choice)\s)?[A-J]\.\s*")
_CLAUSE_START = re.compile(
    r"[,;:—–]|\b(?:but|so|therefore|thus|hence|however|and|then)\b", re.IGNORECASE
)
# The noun refers to an option that is not the answer, or to another's answer.
_ANOTHER = re.compile(
    r"\b(?:incorrect|wrong|false|worst|eliminated|candidate|tentative|second|alternative|alternate|other|another|distractor"
    r"|tempting|least|next|possible|plausible|potential|poor|bad|common|rejected|each|every|any"
    r"|one|unlikely|third|example|sample|initial|previous|earlier|original|old|prior"
    r"|first|their|his|her|a|an|no|\w+(?<!team)(?<!panel)(?<!group)(?<!moderator)"
    r"(?<!coordinator)(?<!arbitrator)(?<!majority)(?<!patient)(?<!question)(?<!case)"
    r"(?<!here)(?<!that)(?<!it)(?<!what)(?<!let)'s)"
    r"[\s-](?:\w+\s)?$",
    re.IGNORECASE,
)
_ANOTHER_FOREIGN = re.compile(
    r"(?:\b(?:falsche|mauvaise|fausse)\s|错误|錯誤|学生的?|专家\d*的?)$", re.IGNORECASE
)
_ANOTHER_LABEL = re.compile(
    r"\b(?:not|second|third|worst|reject\w*|eliminat\w*|wrong|incorrect|example|sample|other|next|least"
    r"|alternative|previous|first|initial)\b",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:not|never|cannot|neither|nor|except|(?<!no )doubt|disagree|deny|unlikely|wrong"
    r"|incorrect|mistake to|nothing|used to think|hard|difficult|impossible"
    r"|no (?:evidence|reason|way)|nicht|kein\w*|pas|não"
    r"|không)\b|不",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:(?:might|may|could) (?:think|say|argue|believe|assume)|tempt\w*|assume|let us say"
    r"|nobody|no one|false that|I (?:said|thought)"
    r"|if(?! (?:I|we|one|you)\b)|unless|whether|suppose|assuming|falls|wenn|nếu|in the form"
    r"|respond with|reply with|e\.g\.|for example|for instance|such as|example|format)"
    r"(?:\b|(?<=\.))|如果|^\W*(?:had|were|say|si|se)\b",
    re.IGNORECASE,
)
_CONDITION_BEHIND = re.compile(
    r"\b(?:if|unless|provided|assuming|otherwise|wenn|nếu)\b|如果", re.IGNORECASE
)
_ASKED = re.compile(r"\W*(?:is|are|was|could|can|might|would|should|why)\b", re.IGNORECASE)
_PERSON = (
    r"(?:expert|agent|doctor|(?:dr|prof)\.?(?=\s)|colleague|student|panelist|reviewer|specialist|member|team|someone"
    r"|some|many|others|surgeon|nurse|pharmacist|physician|internist|clinician|resident|he|she|they"
    r"|user|\w{2,}(?:ologist|iatrist|ician))"
)
_REPORTED = re.compile(
    rf"\b{_PERSON}s?(?:\b|(?<=\.))(?:(?!\b(?:I|we)\b)[^.;\n]){{0,80}}\b(?:sa(?:ys?|id)|believe[sd]?|thinks?|thought|argue[sd]?"
    r"|claim(?:s|ed)?|state[sd]?|suggest(?:s|ed)?|propose[sd]?|answer(?:s|ed)|insist(?:s|ed)?"
    r"|maintain(?:s|ed)?|conclude[sd]?|ch[o]ose[sn]?|chose|select(?:s|ed)?|vote[sd]?|wrote|writes?"
    r"|prefer(?:s|red)?|favou?r(?:s|ed)?|asked|asks?|recommend(?:s|ed)?|pick(?:s|ed)?)\b"
    rf"|\baccording to (?:the )?{_PERSON}"
    r"|\b(?:at first|initially|on first|superficially)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    rf"\W*(?:\w+[^\w:\n]{{1,2}}){{0,3}}{_PERSON}s?(?:\b|(?<=\.))"
    r"(?:(?!\b(?:is|are|has|have|was|were|and|agrees?)\b)[^:.\n]){0,60}:",
    re.IGNORECASE,
)
# "The answer is B, said the cardiologist."
_ATTRIBUTED_BEHIND = re.compile(
    rf",?\s(?:sa(?:ys|id)|wrote|writes|according to) (?:the )?{_PERSON}\b|\bor so I thought\b"
    rf"|\bis what (?:the )?(?:\w+ )?{_PERSON} (?:said|wrote|answered)\b",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"\b(?:majority|consensus|unanim\w+|all|both|everyone)\b", re.IGNORECASE)
_MIDDLE_ELSEWHERE = re.compile(
    r"\b(?:not|never|neither|nor|no|nicht|pas|não|không|if|whether|unless|between|was|were"
    r"|incorrect\w*|err[oó]ne\w*|errad\w*|sai|excluded|form|format|explanation|rationale)\b|不|\bn'$|^\s?(?:choices|options)\b"
    r"|(?-i:(?<![\w'-])[B-HJ](?![\w'-])|(?<![\w'-])[AI](?=\s?(?:[)\]:-]|$)))",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:wait|correction|corrected|actually|no|sorry|rather|instead|but|however|change\w*"
    r"|revis\w+|switch\w*)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\W*(?:but |oh,? |hmm,? )?(?:wait|hold on|correction|scratch that|on second thought"
    r"|on reflection|actually|no(?=,)|sorry|my mistake|I (?:was|am) (?:wrong|mistaken)"
    r"|(?:but )?(?:that|this) (?:is (?:wrong|incorrect|not)|cannot)|I made a mistake"
    r"|let me (?:re-?\w+|correct)|I mean)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cue:
    """The positions of a label and of its value."""

    start: int
    value: int
    colon: bool
    tentative: bool = False
    """Whether the statement is conditional ("would be") and therefore overrides nothing."""


@dataclass(frozen=True, slots=True)
class _Statement:
    cue: Cue
    reading: Reading


def final_statement(lines: list[str], options: OptionTexts) -> Reading | None:
    """Return the reading of the last statement in a reply; None if the reply states nothing.

    A statement is withdrawn by a later denial of the same option, and by a sentence that starts
    with "Wait" or "Scratch that", unless another statement follows.

    Args:
        lines: Lines of the reply without markup.
        options: Options of the question.
    """
    decided: Reading | None = None
    listed = {index for run in option_lists(lines) for index in run}
    for number, line in enumerate(lines):
        below = number + 1 < len(lines) and number + 1 not in listed
        following = lines[number + 1] if below else ""
        labelled: _Statement | None = None
        for start, end in sentences(line):
            stated = _read_sentence(line, start, end, following, options, labelled)
            if stated is None:
                if decided is not None and _TAKEN_BACK.match(line, start, end):
                    decided = NONE
            elif stated.cue.tentative and decided is not None:
                continue  # "The answer is C. In pregnancy it would be A."
            elif stated.reading.sense is not Sense.REJECTED:
                decided = stated.reading
                labelled = stated if stated.cue.colon else None
            elif decided is not None and decided.letter == stated.reading.letter:
                decided = NONE
    return decided


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
        below = not value.strip(" :*") and _HEADING.fullmatch(line[: cue.start]) is not None
        reading = read_value(following if below else value, options, colon=cue.colon)
        if reading.sense is Sense.SILENT or is_supposed(line, start, cue, end):
            continue
        earlier = stated or (before if cue.colon else None)
        other = earlier is not None and earlier.reading.letter != reading.letter
        if earlier and other and not _is_corrected(line, earlier.cue, cue):
            reading = SEVERAL
        stated = _Statement(cue, reading)
    return stated


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
            yield cue
    for pattern in (_BOXED, _CHANGE, _CHOSEN_CJK):
        for match in pattern.finditer(line, start, end):
            yield Cue(match.start(), match.end(), colon=True)
    for inverted in _INVERTED.finditer(line, start, end):
        yield Cue(inverted.start(), inverted.start("value"), colon=False)
    label = _LINE_LABEL.match(line, start, end)
    if label and not _ANOTHER_LABEL.search(label[0]):
        yield Cue(start, label.end(), colon=True)
    if start == 0 and (unsigned := _unsigned(line, options)):
        yield unsigned
    if chosen := _CHOSEN_VI.match(line, start, end):
        yield Cue(start, chosen.end(), colon=False)


def _unsigned(line: str, options: OptionTexts) -> Cue | None:
    label = _UNSIGNED.match(line)
    if label is None:
        return None
    # "Answer B: heparin would …" may discuss one answer after another.
    option = re.fullmatch(r"\W*(?P<letter>[A-J])\b\W*(?P<text>.*)", line[label.end() :])
    alone = option and (not option["text"] or option["letter"] in options.exactly(option["text"]))
    final = re.search("final|correct", label["final"], re.IGNORECASE)
    return Cue(0, label.end(), colon=True) if alone or final else None


def _linked(line: str, noun: re.Match[str], end: int, options: OptionTexts) -> Cue | None:
    """Return the cue for the first link after a noun that is followed by an option."""
    last = None
    stop = min(end, noun.end() + _LINK_CHARS)
    for link in islice(_LINK.finditer(line, noun.end(), stop), _MOST_LINKS):
        if _MIDDLE_ELSEWHERE.search(line[noun.end() : link.start()]):
            break
        tentative = link["verb"] is not None and link["verb"].lower() in _TENTATIVE
        last = Cue(noun.start(), link.end(), link["sign"] is not None, tentative)
        if read_value(line[link.end() :], options, colon=last.colon).sense is not Sense.SILENT:
            return last
    if last is None and not line[noun.end() :].strip(" .*"):
        return Cue(noun.start(), len(line), colon=True)  # a heading, the letter below
    return last


def is_supposed(line: str, start: int, cue: Cue, end: int) -> bool:
    """Return whether a statement is not asserted: denied, assumed, asked, quoted, or an example."""
    before = line[max(start, cue.start - _CONTEXT_CHARS) : cue.start]
    before = re.split(r"\b(?:but|however)\b", before)[-1]
    clause = _CLAUSE_START.split(before)[-1]
    if _DENIED_BEFORE.search(clause) or _SUPPOSED.search(before) or _ASKED.match(before):
        return True
    if not _TOGETHER.search(before) and (
        _REPORTED.search(before) or _SPEAKER.match(line, 0, min(cue.value, _CONTEXT_CHARS))
    ):
        return True
    behind = line[cue.value : min(end, cue.value + _CONTEXT_CHARS)]
    if behind.rstrip(" \"')").endswith("?") or _ATTRIBUTED_BEHIND.search(behind):
        return True
    return not cue.colon and _CONDITION_BEHIND.search(behind) is not None
