"""Parses the option that a model's reply chose, if any.

The rules are strict, because a missed answer is visible in the results and a false one is not. They
apply in order; the first that matches decides, and it may decide that there is no answer:

1. the answer field of the last JSON object, unless a statement behind the object corrects it
2. the last statement ("Answer: C")
3. sentences that single out one option by its letter and its own text
4. lines that consist of one option
5. an option's full text as the whole reply or its last line
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from mdagents_llm.answers.assertions import assertions
from mdagents_llm.answers.fields import answer_field, read_fields
from mdagents_llm.answers.lines import (
    is_discussed,
    is_of_another_question,
    is_of_this_question,
    last_options,
    option_lines,
    option_lists,
    reviews,
)
from mdagents_llm.answers.phrases import any_of, pattern
from mdagents_llm.answers.statements import final_statement
from mdagents_llm.answers.text import (
    OptionTexts,
    normalized,
    plain_lines,
    without_loop,
    without_thoughts,
)
from mdagents_llm.answers.value import (
    NONE,
    SEVERAL,
    SILENT,
    Reading,
    Sense,
    is_placeholder,
    read_value,
)


class ParseMethod(StrEnum):
    """The rule that found the answer."""

    STRUCTURED = "structured"
    """The answer field of a JSON object."""
    STATEMENT = "statement"
    """A sentence or label that states the answer."""
    LINE = "line"
    """A line that consists of an option."""
    OPTION_TEXT = "option_text"
    """The reply, or its last line, is the text of one option."""
    SEVERAL = "several"
    """The reply names two or more options, which is not an answer."""
    NONE = "none"
    """The reply does not state an answer."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The option that a reply chose."""

    letter: str | None
    """Presented letter of the chosen option; None if the reply does not choose one."""
    method: ParseMethod
    """Rule that found the letter."""
    text_mismatch: bool = False
    """Whether the text next to the letter belongs to another option; the letter counts."""


_NO_ANSWER = ParsedAnswer(None, ParseMethod.NONE)
_SEVERAL_ANSWERS = ParsedAnswer(None, ParseMethod.SEVERAL)


def parse_answer(text: str, options: Mapping[str, str]) -> ParsedAnswer:
    """Return the option that a reply chose.

    This function never raises. Its run time is linear in the length of the text, of which only the
    last :data:`mdagents_llm.answers.text.MAX_CHARS` characters are read.

    Args:
        text: Reply as the model wrote it.
        options: Presented letter (A to J) -> option text, in presented order.

    Returns:
        The letter, which is always a key of `options`, and the rule that found it. The letter is
        None for an error text, a refusal, a choice of several options or of an option that the
        question does not have, and for a reply that states no answer.
    """
    texts = OptionTexts(options)
    said = without_loop(without_thoughts(text))
    if not texts.letters or not said.strip() or _is_error(said):
        return _NO_ANSWER
    reading, method = _decide(_up_to_next_question(said, texts), texts)
    if reading.sense is Sense.CHOSEN:
        return ParsedAnswer(reading.letter, method, reading.text_mismatch)
    return _NO_ANSWER if reading.sense is not Sense.SEVERAL else _SEVERAL_ANSWERS


_Decision = tuple[Reading, ParseMethod]


def _decide(said: str, options: OptionTexts) -> _Decision:
    fields = read_fields(said)
    field = _agreed(_read_field(answer, options) for answer in fields.answers)
    if field.sense is not Sense.SILENT:
        # Text after the JSON may correct it ("wait, the answer is D") or withdraw it.
        last = final_statement(_lines(fields.tail), options, field) or field
        return last, ParseMethod.STRUCTURED if last is field else ParseMethod.STATEMENT
    return _read_prose(_lines(fields.prose), options)


def _read_prose(lines: list[str], options: OptionTexts) -> _Decision:
    if stated := final_statement(lines, options):
        more = _names_more_below(stated, lines, options)
        return SEVERAL if more else stated, ParseMethod.STATEMENT
    asserted = _agreed(assertions(lines, options))
    if asserted.sense is not Sense.SILENT:
        return asserted, ParseMethod.STATEMENT
    line = _agreed(option_lines(lines, options))
    if line.sense is not Sense.SILENT:
        return line, ParseMethod.LINE
    return _read_option_text(lines, options), ParseMethod.OPTION_TEXT


def _names_more_below(stated: Reading, lines: list[str], options: OptionTexts) -> bool:
    """Return whether the statement has other options on lines of their own: "Answer: C", "D"."""
    below = last_options(lines, options)
    if all(reading.letter == stated.letter for reading in below) or len(below) == len(lines):
        return False
    stating = len(lines) - len(below) - 1
    return final_statement(lines[stating : stating + 2], options) == stated


def _read_option_text(lines: list[str], options: OptionTexts) -> Reading:
    """Read an option whose full text is the reply or its last line, unless a line is another's."""
    named = set().union(*(options.exactly(line) for line in lines))
    whole = options.exactly("\n".join(lines))
    last = options.exactly(lines[-1]) if lines else frozenset()
    if last and is_discussed(lines, len(lines) - 1):
        return SILENT  # "Current medications:" and then "Aspirin"
    chosen = whole or (last if named == last else frozenset())
    return Reading(Sense.CHOSEN, min(chosen)) if len(chosen) == 1 else SILENT


def _agreed(readings: Iterable[Reading]) -> Reading:
    """Return the reading on which all agree, ignoring silent ones; `SEVERAL` if they differ."""
    told = [reading for reading in readings if reading.sense is not Sense.SILENT]
    if not told:
        return SILENT
    return told[0] if len({(reading.sense, reading.letter) for reading in told}) == 1 else SEVERAL


def _lines(text: str) -> list[str]:
    """Return the lines without markup, with the "A:" of "Q: … A: …" expanded to "Answer:"."""
    lines = plain_lines(normalized(text))
    if not any(line.startswith("A:") for line in lines):
        return lines
    asked = any(re.match(r"Q(?:uestion)?\s?:", line) for line in lines)
    alone = re.compile(r"A:\s?(?=[(\[]?[A-J](?:[)\].:]|$))")
    return [
        "Answer:" + line[2:] if line.startswith("A:") and (asked or alone.match(line)) else line
        for line in lines
    ]


# --- structured field ----------------------------------------------------------------------------


def _read_field(value: object, options: OptionTexts, depth: int = 8) -> Reading:
    """Read the value of an answer field, which may be nested, but no deeper than a real reply's."""
    if isinstance(value, str):
        return _read_field_text(value, options)
    if isinstance(value, int | float):
        letters = options.exactly(str(value))
        return Reading(Sense.CHOSEN, min(letters)) if len(letters) == 1 else NONE
    if depth and isinstance(value, list):
        return _agreed(_read_field(item, options, depth - 1) for item in value[:10])
    if depth and isinstance(value, dict):
        inner = answer_field(value)
        if inner is None and len(value) == 1:
            inner = next(iter(value))  # {"C": "Heparin"}
        return _read_field(inner, options, depth - 1)
    return SILENT


def _read_field_text(value: str, options: OptionTexts) -> Reading:
    """Read a field like a short reply: `majority_vote` holds "Answer: C) …" with an explanation."""
    lines = _lines(value)
    if not lines or _is_error(value):
        return NONE if lines else SILENT
    reading, _ = _read_prose(lines, options)
    if reading.sense is Sense.SILENT:
        reading = read_value("\n".join(lines), options)
    silent = reading.sense is Sense.SILENT and not is_placeholder(value.strip(), options)
    return NONE if silent else reading


# --- where a reply ends --------------------------------------------------------------------------

_NEXT_QUESTION = pattern(rf"{any_of('question')}\s?[:.]|question \d{{1,3}}$|{any_of('next')}")
# Part of a reply before its answer; the start of a new question after it: "Example 2:", "Which …?".
_MAY_BE_NEXT = pattern(rf"\W*{any_of('example')}(?:\s?\d{{1,3}})?\W*(?:[:\]].*)?$|.*[?？]\W*$")
_MAY_GO_ON = re.compile(
    rf"(?im)^\W{{0,8}}(?:{any_of('question', 'next', 'example')}"
    r"|[(\[]?(?:(?:option|choice)\s[(\[]?)?A(?:\s?[).:\]、．]|\s[-–—]\s))|[?？]\W{0,4}$"
)


def _up_to_next_question(said: str, options: OptionTexts) -> str:
    """Truncate a reply where the model continues with another question.

    Such a question starts with a line such as "Question:", or a question and a list of options that
    are not this question's; after an answer, also with a line such as "Example 2:" or "Which drug
    is it?", any such list below a line that asks for one, or this question's own list. A question
    or list at the start repeats the prompt and is kept, and so is a list that weighs the options.
    """
    if not _MAY_GO_ON.search(said):
        return said
    raw = said.split("\n")
    lines: list[str] = []
    places: list[int] = []
    for place, text in enumerate(raw):
        for line in plain_lines(normalized(text)):
            lines.append(line)
            places.append(place)
    for index, behind_an_answer in islice(_ends(lines, options), _MOST_ENDS):
        before = "\n".join(raw[: places[index]])
        if not before.strip():
            continue
        if not behind_an_answer or _decide(before, options)[0].sense is not Sense.SILENT:
            return before
    return said


_MOST_ENDS = 16  # keeps the work proportional to the length of the reply


def _ends(lines: list[str], options: OptionTexts) -> Iterator[tuple[int, bool]]:
    """Yield (index of a line that may start another question, whether it must follow an answer)."""
    lists = {run.start: run for run in option_lists(lines)}
    owned = {start: is_of_this_question(lines, run, options) for start, run in lists.items()}
    for index in range(1, len(lines)):
        text, own = lines[index], owned.get(index)
        if _NEXT_QUESTION.match(text):
            listed = next((own for start, own in owned.items() if start >= index), None)
            yield index, listed is True
        elif own is False:
            before = lines[index - 1]
            if _MAY_BE_NEXT.match(before) or is_of_another_question(lines, lists[index], options):
                yield index, False
            elif not _answers(before, options):
                yield index, True
        elif own is True or (_MAY_BE_NEXT.match(text) and not reviews(text)):
            yield index, True


def _answers(line: str, options: OptionTexts) -> bool:
    """Return whether a line states an answer, or ends a JSON object, and so asks no question."""
    return not re.search(r"\w", line) or _decide(line, options)[0].sense is not Sense.SILENT


# --- error messages ------------------------------------------------------------------------------

_ERROR = pattern(
    rf"\W*(?:{any_of('error')}|(?<=<)(?:!doctype|html|head|\?xml)"
    r"|error[\"']?\s?:(?!\s?(?:null|none|false|\"\"|'')))"
)


def _is_error(said: str) -> bool:
    return _ERROR.match(said[:400]) is not None
