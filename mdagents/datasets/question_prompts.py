"""Reads a multiple-choice question out of a prompt, as evaluation programs write them.

Known forms: lm-evaluation-harness (`Question: … A. … Answer:`), Inspect's `multiple_choice`,
simple-evals, HELM and MMLU-Pro. Examples before the question and instructions about the form of
the answer are separated from it; every other text stays part of the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdagents.datasets.listed_options import (
    ANY_MARK,
    IN_ONE_LINE,
    Mark,
    marks_in,
    option_lists,
    rare_list,
    shuffled_list,
    texts_of,
)
from mdagents_llm.answers.phrases import any_of, pattern

_INSTRUCTION = re.compile(
    r"\bletter answer\b|the answer is \(X\)|\\boxed|(?-i:\bLETTERS?\b)", re.IGNORECASE
)
"""Sentences about the form of the answer, which no agent needs."""
_PERHAPS_INSTRUCTION = re.compile(
    r"multiple[ -]choice questions?\b"
    r"|\b(?:think|reason|work) (?:it through )?step[ -]by[ -]step\b"
    r"|\b(?:only|just|single|corresponding) (?:the )?(?:capital )?letter\b",
    re.IGNORECASE,
)
"""Sentences about the form of the answer, unless they tell of a person: `He can read only the
letter E`."""
_PERSON = re.compile(
    r"\b(?:s?he|him|his|her|patients?|(?:wo)?m[ae]n|boys?|girls?|child(?:ren)?|students?"
    r"|therapists?|\w+-old)\b",
    re.IGNORECASE,
)
_ADDRESSING = re.compile(
    r"(?:^\W*(?:(?:please|then|and|first|now|\w+ly),? )?|[,;:] (?:please |then |and )?)"
    r"(?:let['’]?s|let us|think|reason|answer|respond|reply|give|choose|select|output|provide)\b"
    r"|^\W*(?:solve|read|use|consider|write|here|below|this is|the following"
    r"|you(?: are|['’]re| will| should| must))\b"
    r"|\byour (?:\w+ )?(?:answer|response|reply|output)\b",
    re.IGNORECASE,
)
"""Sentences to whoever answers, which may speak of a person as well: `Think step by step about the
patient.`"""
_REQUEST = re.compile(
    r"^\W*(?:please )?(?:answer|respond|reply|choose|select|pick|give|output|return|write|state|end"
    r"|finish|conclude)\b.{0,80}\b(?:letter|option|choice|answer|one|json)\b",
    re.IGNORECASE,
)
"""Requests for an answer after the options. Before them, "Choose the best answer" may be the
question itself."""
_PIECE = re.compile(r"(?<=[.!?])(?=\s)|(?=\n)")
"""Place between two sentences or lines."""
_ENGLISH = r"(?:the )?(?:correct |final |best )?answer"
_FOREIGN = rf"(?:{any_of('answer', 'label answer')}|คำตอบ|回答)"
_CUE = pattern(rf"^\W*(?:{_ENGLISH}\b(?: is)?\s*:?|{_FOREIGN}(?:\s?{any_of('is')})?\s?[:：])")
"""A line that begins the answer: `Answer:`, `Answer: Let's think step by step.`, `答案：B`."""
_NOUN = rf"(?:{any_of('english answer')}|{_FOREIGN})"
_LETTER = r"(?-i:[A-J])(?![A-Za-z0-9'’])"
_GIVEN = rf"[^\w\n]{{0,6}}(?<=[:：=>])[^\w\n]{{0,6}}{_LETTER}"
_ANSWER = re.compile(
    rf"^[^\w\n]*(?:{_ENGLISH}(?: is)?|{_FOREIGN})\s?[*_]*[:：][ \t*_]*[^\s*_]"
    r"|^[ \t]*A(?: is)?\s*:[ \t]*\S"
    # "The correct answer is (B)", "答案是B", "Response: B", "<answer>B", `"answer": "B"`
    rf"|^[^\w\n]*(?:\w+ ){{0,3}}?{_NOUN}\s?{any_of('is')}[^\w\n]{{0,6}}{_LETTER}"
    rf"|^[^\w\n]*(?:\w+ ){{0,2}}?{_NOUN}{_GIVEN}[ \t]*(?:$|[^\w\s])"
    rf"|^[^\w\n]*(?:{any_of('label')}|output){_GIVEN}(?:[.)：:]|[^\w\n]*$)"
    # the letter below a heading, unlike an option
    rf"|^[^\w\n]*(?:\w+ ){{0,2}}?{_NOUN}[^\w\n]{{0,6}}\n"
    rf"\s*(?:\({_LETTER}\)|[*_]*{_LETTER}[*_]*)[ \t]*$"
    rf"|\\boxed\{{\W{{0,3}}(?:text\{{)?{_LETTER}",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that answers an example."""
_LABEL = re.compile(
    r"^[ \t]*(?:(?:question|q)\b[ \t]*\d*[ \t]*[:.)]|<question>)\s*", re.IGNORECASE | re.MULTILINE
)
_CONTEXT = re.compile(
    r"^[ \t*#]*(?:abstract|background|(?:clinical )?(?:case|scenario|vignette)|context|passage)\b"
    r"(?: \d+)?(?: \([^()\n]{1,40}\))?[ \t*]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins what a question is about: `Context (PubMed abstract):`."""
_EXAMPLE = re.compile(
    r"^[^\n:：]{0,80}\b(?:example|exemplar)s?\b[^\n.:：]{0,40}[.:：]?[ \t*>]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins an example: `Example 1:`, `Here are examples:`."""
_AGE = re.compile(r"\b\d+[ -](?:day|month|week|year)s?[ -]old\b", re.IGNORECASE)
_LIST_LABEL = re.compile(
    r"^[ \t]*(?:answer )?(?:options|choices)[ \t]*:[ \t]*\Z", re.IGNORECASE | re.MULTILINE
)
_LABELED = re.compile(r"^\w+:\s")
_CUE_IN_LINE = re.compile(
    rf"(?<=\s)[*_]*(?:{_ENGLISH}|{_FOREIGN}|(?-i:A(?:ssistant|SSISTANT)))\s?[*_]*[:：]"
    r"(?=\W*$| let['’]?s think\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""What asks for the answer in the line of the last option: `… (D) Zinc Answer: (`."""
_CLOSING_TAG = re.compile(r"</(\w+)>\Z")
_SPEAKER = re.compile(r"\W*(?:assistant|response|output)\s?[*_]*[:：]\W*", re.IGNORECASE)
"""A line that begins the reply, and says nothing about its form: `ASSISTANT:`."""
_LINE_END = re.compile(r"[\u0085\u2028\u2029]|\r(?!\n)")
"""Ends of lines other than `\\n`."""
_BLANK = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class PromptedQuestion:
    """A question as a prompt asks it."""

    text: str
    """Text of the question, without its options, its label and instructions."""
    options: Mapping[str, str]
    """Letter from A, in uppercase -> text; empty if the prompt has none after the letter."""
    is_lowercase: bool
    """Whether the prompt marks its options by lowercase letters."""
    has_examples: bool
    """Whether solved examples before the question were left out."""
    lead: str
    """Text in front of solved examples; empty without any."""
    instructions: str
    """Instructions about the form of the answer; empty without any."""
    ending: str
    """Last line after the options, such as `Answer:`; empty without one."""


def read_prompt(prompt: str) -> PromptedQuestion | None:
    """Return the last question of a prompt; None if the prompt lists no options.

    Args:
        prompt: Text of the prompt.
    """
    prompt = _LINE_END.sub("\n", prompt)
    mark, marks = _last_list(prompt)
    if not marks:
        return None
    start = _after_examples(prompt, mark)
    if start:
        _, asked = _last_list(prompt[start:])
        start, marks = (start, asked) if asked else (0, marks)
    lead = _before_examples(prompt[:start], mark)
    listed = start + marks[0].start
    shared = _shared_context(lead, prompt[len(lead) : listed], prompt[start:listed])
    _, told = without_instructions(lead)
    prompt = prompt[start:]
    texts = texts_of(prompt, marks)
    is_empty = _is_last_empty(prompt, marks, texts)
    texts[-1], after = ("", texts[-1]) if is_empty else _split_last(prompt[: marks[0].start], texts)
    text, instructions = _question_of(prompt[: marks[0].start])
    kept, more, ending = _after_options(after)
    whole = "\n\n".join(filter(None, [shared, text, kept]))
    return PromptedQuestion(
        text=whole,
        options=dict(sorted(zip([mark.letter.upper() for mark in marks], texts, strict=True))),
        is_lowercase=marks[0].letter.islower(),
        has_examples=start > 0,
        lead=lead,
        instructions="\n".join(filter(None, [*told, *instructions, *more])),
        ending=ending,
    )


def _last_list(text: str) -> tuple[re.Pattern[str], Sequence[Mark]]:
    """Return the last list of options in a text, empty without one, after the pattern of a mark."""
    mark = ANY_MARK if (lists := option_lists(text, ANY_MARK)) else IN_ONE_LINE
    lists = lists or option_lists(text, mark)
    in_order: Sequence[Mark] = lists[-1] if lists else ()
    shuffled = shuffled_list(text, ANY_MARK) or shuffled_list(text, IN_ONE_LINE)
    marks = max(in_order, shuffled, key=len)
    return (mark, marks) if marks else rare_list(text) or (mark, ())


def _after_examples(prompt: str, mark: re.Pattern[str]) -> int:
    """Return where the question begins after solved examples; 0 if there are none.

    An example is a list of options with an answer below it, and another list follows.

    Args:
        prompt: Text of the prompt.
        mark: Pattern of a mark.
    """
    marks = marks_in(prompt, mark)
    of_a, of_b = ([one for one in marks if one.letter.upper() == letter] for letter in "AB")
    if not (of_a and of_b):
        return 0
    begins = {one[0].start for one in option_lists(prompt, mark)}  # unlike "A: B", an answer
    first = max(of_a[0].end, of_b[0].end)
    last = min(of_a[-1].start, of_b[-1].start)
    ends = [
        one.end()
        for one in _ANSWER.finditer(prompt, first)
        if one.end() <= last and one.start() not in begins
    ]
    if not ends:
        return 0
    listed = max(one.start for one in marks if one.start < ends[-1])
    answer = next(end for end in ends if end > listed)  # others may be text of the question
    labels = list(_LABEL.finditer(prompt, answer, last))
    if labels:
        label = labels[-1].start()
        context = _CONTEXT.search(prompt, answer, label)
        return context.start() if context else label
    gap = _BLANK.search(prompt, ends[-1], last)
    if gap is not None:
        return gap.end()
    line = prompt.find("\n", ends[-1], last)
    return line + 1 if line >= 0 else 0


def _before_examples(examples: str, mark: re.Pattern[str]) -> str:
    """Return the text in front of the first example: before its label or, without one, paragraph.

    Args:
        examples: Text in front of the question that is asked; empty without examples.
        mark: Pattern of a mark.
    """
    listed = next((one.start for one in marks_in(examples, mark)), 0)
    if label := _LABEL.search(examples, 0, listed):
        return examples[: label.start()]
    gaps = list(_BLANK.finditer(examples, 0, listed))
    return examples[: gaps[-1].end()] if gaps else ""


def _shared_context(lead: str, rest: str, asked: str) -> str:
    """Return what all questions are about; empty if one has, or may have, a context of its own.

    Args:
        lead: Text in front of the examples.
        rest: Text behind it up to the last options.
        asked: The end of it: the question that is asked.
    """
    has_labels = _LABEL.match(rest) is not None
    if _contexts(rest, has_labels):
        return ""
    example = _EXAMPLE.search(lead)
    contexts = _contexts(lead[: example.start()] if example else lead, has_labels)
    has_patient = _AGE.search(asked) is not None
    return "\n\n".join(one for one in contexts if not (has_patient and _AGE.search(one)))


def _contexts(text: str, has_labels: bool) -> list[str]:
    """Return the paragraphs that say what a question is about.

    Args:
        text: Text.
        has_labels: Whether questions have labels, so that a patient in front of them is not theirs.
    """
    paragraphs = map(str.strip, _BLANK.split(text))
    return [one for one in paragraphs if _CONTEXT.match(one) or (has_labels and _is_patient(one))]


def _is_patient(paragraph: str) -> bool:
    """Return whether a paragraph describes a patient, without a label or a request."""
    is_told = _LABELED.match(paragraph) or _ADDRESSING.search(paragraph)
    return _AGE.search(paragraph) is not None and not is_told


def _is_last_empty(prompt: str, marks: Sequence[Mark], texts: Sequence[str]) -> bool:
    """Return whether the text after the last mark begins too far below it to be its option.

    No other option then has as many line breaks between its mark and its text, and there is a blank
    line before it, or it is an instruction or begins with a label (`Note:`).
    """
    breaks = [
        prompt.count("\n", mark.end, prompt.index(text, mark.end))
        for mark, text in zip(marks, texts, strict=True)
    ]
    if breaks[-1] <= max(breaks[:-1]):
        return False
    line = texts[-1].partition("\n")[0]
    not_options = (_REQUEST, _CUE, _LABELED)
    if breaks[-1] > 1 or _is_instruction(line):
        return True
    return any(one.search(line) for one in not_options)


def _split_last(question: str, texts: Sequence[str]) -> tuple[str, str]:
    """Return the last option, and the text after it.

    The option ends at a blank line, an `Answer:` or an instruction. If all other options are one
    line each, so is the last one. A closing tag or quotation mark that only the last one has is
    that of the whole question.

    Args:
        question: Text before the options.
        texts: Text after each mark.
    """
    last = texts[-1]
    ends = [len(last)]
    if gap := _BLANK.search(last):
        ends.append(gap.start())
    offset = 0
    is_short = not any("\n" in text for text in texts[:-1])
    for number, line in enumerate(last.splitlines(keepends=True)):
        if number and (is_short or _CUE.search(line) or _is_instruction(line)):
            ends.append(offset)
            break
        offset += len(line)
    if cue := _CUE_IN_LINE.search(last, 0, min(ends)):
        ends.append(cue.start())
    place = 0
    for piece in _PIECE.split(last[: min(ends)]):
        if '"' in piece or "“" in piece:  # an option that quotes someone
            break
        if place and _is_instruction(piece):
            ends.append(place)
            break
        place += len(piece)
    end = min(ends)
    option, after = last[:end].strip(), last[end:].strip()
    others = "".join(texts[:-1])
    tag = _CLOSING_TAG.search(option)
    if tag and "</" not in others and f"<{tag[1]}" not in option:
        option = option[: tag.start()].rstrip()
    if option.count('"') % 2 and question.count('"') % 2 and '"' not in others:
        option = option.removesuffix('"')
    return option, after


def _is_instruction(text: str) -> bool:
    """Return whether a sentence or line is about the form of the answer."""
    if _INSTRUCTION.search(text):
        return True
    is_told = _PERSON.search(text) is not None and _ADDRESSING.search(text) is None
    return _PERHAPS_INSTRUCTION.search(text) is not None and not is_told


def without_instructions(text: str) -> tuple[str, list[str]]:
    """Return a text without its sentences about the form of the answer, and these sentences."""
    kept: list[str] = []
    instructions: list[str] = []
    for piece in _PIECE.split(text):
        is_one = _is_instruction(piece) and not _LABEL.search(piece)
        (instructions if is_one else kept).append(piece)
    rest = re.sub(r"\n[ \t]*(?:\n[ \t]*)+", "\n\n", "".join(kept)).strip()
    return rest, [piece.strip() for piece in instructions]


def _question_of(text: str) -> tuple[str, list[str]]:
    """Return the question in the text before its options, and instructions."""
    text = _LIST_LABEL.sub("", text.rstrip()).rstrip()
    question, instructions = without_instructions(text)
    question = question or text.strip()
    labels = list(_LABEL.finditer(question))
    if len(labels) == 1:  # at the start, or after a context such as an abstract
        question = question[: labels[0].start()] + question[labels[0].end() :]
    return question.strip(), instructions


def _after_options(text: str) -> tuple[str, list[str], str]:
    """Return (what belongs to the question, instructions, last line) of the text after options."""
    # MedQA has questions with a stray quotation mark after the last option.
    lines = [
        line
        for line in map(str.strip, text.splitlines())
        if re.search(r"\w", _CLOSING_TAG.sub("", line)) and not _SPEAKER.fullmatch(line)
    ]
    ending = lines.pop() if lines and _CUE.search(lines[-1]) else ""
    kept = [
        line
        for line in lines
        if not (_is_instruction(line) or _REQUEST.search(line) or _CUE.search(line))
    ]
    instructions = [line for line in lines if line not in kept]
    if "step" in ending.lower() or _is_instruction(ending) or _REQUEST.search(ending):
        instructions.append(ending)
    return "\n".join(kept), instructions, ending
