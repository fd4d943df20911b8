"""Which option a model's reply chose, or none: never a letter that the reply does not commit to.

The rules, in order. The first with something to say decides; it may say that the reply commits
itself to nothing, and then no weaker rule is asked.

0. Thoughts are dropped (:mod:`mdagents.answers.text`); an error text is no reply.
1. The answer field of the last JSON object (:mod:`mdagents.answers.fields`), unless a final
   statement behind the object corrects it.
2. The last final statement: "Answer: C", a boxed letter (:mod:`mdagents.answers.statements`).
3. A last line that is only an option (:mod:`mdagents.answers.lines`).
4. All that argues for an option or shows one, if it is the same one: "I would choose C", an option
   that is ticked, emphasised, on a line of its own, or opens the reply.
5. Answers that the reply reports of others (:mod:`mdagents.answers.voice`), if they agree.
6. The one option whose text occurs.

Whether a letter in a text is an option's label is decided in :mod:`mdagents.answers.value` only.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from mdagents.answers.fields import answer_field, read_fields
from mdagents.answers.lines import OptionLine, marked_options, opening_option, option_lines
from mdagents.answers.statements import Statements, emphasised
from mdagents.answers.text import Line, OptionTexts, clean, plain_lines, without_thoughts
from mdagents.answers.value import SILENT, UNDECIDED, Reading, Sense, is_denied, read_value


class ParseMethod(StrEnum):
    """How the answer was found."""

    STRUCTURED = "structured"
    """The answer field of a JSON object."""
    STATEMENT = "statement"
    """A sentence or label that commits the reply to an option."""
    LINE = "line"
    """A line that is only an option, or an option that opens the reply."""
    OPTION_TEXT = "option_text"
    """The text of one option occurs, and of no other."""
    NONE = "none"
    """The reply does not choose."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The option that a reply chose."""

    letter: str | None
    """A presented letter of the question, or None if the reply does not choose one."""
    method: ParseMethod
    """How it was found."""
    text_mismatch: bool = False
    """Whether the text next to the letter is that of another option; the letter counts."""


_NO_ANSWER = ParsedAnswer(None, ParseMethod.NONE)


def parse_answer(text: str, options: Mapping[str, str]) -> ParsedAnswer:
    """Returns the option that a reply chose.

    Never raises, for any text, and takes time in proportion to the text's length up to
    :data:`mdagents.answers.text.MAX_CHARS`, of which it reads the end.

    Args:
        text: A model's reply, as it wrote it.
        options: Presented letter (A to J) to option text, in the order of presentation.

    Returns:
        The letter, which is always a key of `options`, and the rule that found it. The letter is
        None for an error text, a refusal, a choice of several options or of one that the question
        does not have, and for prose that chooses none.
    """
    texts = OptionTexts(options)
    said = without_thoughts(text)
    if not texts.letters or not said.strip():
        return _NO_ANSWER
    answer = _decide(said, texts)
    return _NO_ANSWER if answer is None else answer


# --- the rules -----------------------------------------------------------------------------------

Finding = ParsedAnswer | None
"""What a rule found: an answer, `_NO_ANSWER` if no other rule shall look, None if it is silent."""


class _Reply:
    """One reply in the forms that the rules read.

    Args:
        said: The reply without a reasoning model's thoughts.
        options: The options of the question.
    """

    def __init__(self, said: str, options: OptionTexts) -> None:
        self.options = options
        self.text = clean(said)
        self.lines = _transcript(plain_lines(self.text))
        self.statements = Statements(self.lines, options)

    @cached_property
    def body(self) -> str:
        """The reply without markup."""
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def option_lines(self) -> list[OptionLine]:
        """The lines that are only an option, without those that list the options back."""
        return option_lines(self.lines, self.options)


def _decide(said: str, options: OptionTexts) -> Finding:
    if _is_error(said):
        return None
    fields = read_fields(said)
    field = _agreed(_read_field(answer, options) for answer in fields.answers)
    if field.sense is not Sense.SILENT:
        # What a model adds behind its JSON may correct it: "wait, the answer is D".
        added = _final_statement(_Reply(fields.tail, options))
        return added or _answer(field, ParseMethod.STRUCTURED)
    reply = _Reply(fields.prose, options)
    return _first(_RULES, reply)


def _first(rules: Iterable[Callable[[_Reply], Finding]], reply: _Reply) -> Finding:
    return next((found for rule in rules if (found := rule(reply)) is not None), None)


def _final_statement(reply: _Reply) -> Finding:
    """The last of the sentences that say that they are the answer."""
    decided = reply.statements.final()
    return None if decided is None else _answer(decided, ParseMethod.STATEMENT)


def _closing_line(reply: _Reply) -> Finding:
    """The last line, if it is only an option: what a reply ends with overrules its discussion."""
    if not reply.option_lines or reply.option_lines[-1].index != len(reply.lines) - 1:
        return None
    reading = _agreed(line.reading for line in reply.option_lines)
    return None if reading.letter is None else _answer(reading, ParseMethod.LINE)


def _support(reply: _Reply) -> Finding:
    """Whatever else argues for an option, if all of it argues for the same one."""
    by_method = {
        ParseMethod.STATEMENT: [
            *reply.statements.supporting(),
            *emphasised(reply.text, reply.options),
            *marked_options(reply.lines, reply.options),
        ],
        ParseMethod.LINE: [
            *(line.reading for line in reply.option_lines),
            *opening_option(reply.lines, reply.options),
        ],
    }
    chosen = [
        (method, reading)
        for method, readings in by_method.items()
        for reading in readings
        if reading.sense is Sense.CHOSEN
    ]
    if not chosen:
        return _NO_ANSWER if any(by_method[ParseMethod.STATEMENT]) else None
    if len({reading.letter for _, reading in chosen}) > 1:
        return _NO_ANSWER
    mismatch = any(reading.text_mismatch for _, reading in chosen)
    return ParsedAnswer(chosen[0][1].letter, chosen[0][0], mismatch)


def _reported_answers(reply: _Reply) -> Finding:
    """Labelled answers of named experts, if nothing else is there and they agree.

    A model that speaks in a role may put the role in front: "Cardiologist: Answer: C".
    """
    reading = _agreed(reply.statements.reported())
    if reading.sense is Sense.SILENT:
        return None
    return _answer(reading, ParseMethod.STATEMENT)


def _option_text(reply: _Reply) -> Finding:
    """The one option whose text is a line of its own or else occurs anywhere."""
    lines = [letters for line in reply.lines if (letters := reply.options.exactly(line.text))]
    found = frozenset[str]().union(*lines)
    found = found or _opening_word(reply)
    if not found and not _REFUSAL.search(reply.body) and not _is_torn(reply):
        found = reply.options.occurring(reply.body)
    return ParsedAnswer(next(iter(found)), ParseMethod.OPTION_TEXT) if len(found) == 1 else None


def _opening_word(reply: _Reply) -> frozenset[str]:
    """An option such as "yes" that opens the reply, set off from the rest: "Yes, …"."""
    first = reply.lines[0].text if reply.lines else ""
    named = reply.options.at_start(first)
    set_off = re.match(r"\s?[,.;:!–—]", first[named.end :])
    return named.letters if set_off and reply.options.is_everyday(named.letters) else frozenset()


_STATEMENT_RULES = (_final_statement, _closing_line, _support, _reported_answers)
_RULES = (*_STATEMENT_RULES, _option_text)


def _answer(reading: Reading, method: ParseMethod) -> ParsedAnswer:
    if reading.sense is not Sense.CHOSEN:
        return _NO_ANSWER
    return ParsedAnswer(reading.letter, method, reading.text_mismatch)


def _agreed(readings: Iterable[Reading]) -> Reading:
    """The reading that all of several share, leaving out those that say nothing."""
    told = [reading for reading in readings if reading.sense is not Sense.SILENT]
    if not told:
        return SILENT
    same = len({reading.letter for reading in told}) == 1 and told[0].sense is Sense.CHOSEN
    return told[0] if same else UNDECIDED


# --- structured field ----------------------------------------------------------------------------


def _read_field(value: object, options: OptionTexts) -> Reading:
    if isinstance(value, str):
        return _read_field_text(value, options)
    if isinstance(value, int | float):
        letters = options.exactly(str(value))
        return Reading(Sense.CHOSEN, min(letters)) if len(letters) == 1 else UNDECIDED
    if isinstance(value, list):
        return _agreed(_read_field(item, options) for item in value[:10])
    if isinstance(value, dict):
        inner = answer_field(value)
        if inner is None and len(value) == 1:
            return _read_field(next(iter(value)), options)  # {"C": "Heparin"}
        return SILENT if inner is None else _read_field(inner, options)
    return SILENT


def _read_field_text(value: str, options: OptionTexts) -> Reading:
    """Reads a field like a short reply: `majority_vote` holds "Answer: C) …" and what led there."""
    reply = _Reply(value, options)
    if _is_error(value) or not reply.lines:
        return SILENT if not reply.lines else UNDECIDED
    found = _first(_STATEMENT_RULES, reply)
    if found is not None:
        sense = Sense.UNDECIDED if found.letter is None else Sense.CHOSEN
        return Reading(sense, found.letter, found.text_mismatch)
    reading = read_value(reply.body, options)
    if reading.sense is Sense.SILENT and (text := _option_text(reply)):
        return Reading(Sense.CHOSEN, text.letter)
    placeholder = reading.sense is Sense.SILENT and _PLACEHOLDER.fullmatch(value.strip()[:100])
    return reading if placeholder or reading.sense is Sense.CHOSEN else UNDECIDED


# A field that still holds the prompt's description of it.
_PLACEHOLDER = re.compile(
    r"<.*>|\[.*\]|\.*|…|(?i:string|letter|x)|(?:\(?[A-J]\)?[\s/|,]*(?:or )?){3,10}"
)


# --- what is no answer ---------------------------------------------------------------------------

# Only where a reply starts: "refractive error" is a diagnosis, "Error: …" is a program speaking.
_ERROR = re.compile(
    r"\W*(?:(?:\w+\.)*\w*(?:error|exception)\s?(?:[:(\]]|\d|code\b|-\s|\Z)"
    r"|(?:an? )?(?:\w+ )?error (?:has )?occurred(?:\s?[.:,(]|\s\w+ (?:\w+ing|the \w+)\b|\Z)"
    r"|(?:an? )?(?:\w+ )?error (?:while |during |in )?(?:process|generat|call|fetch|pars)ing\b"
    r"|traceback \(|<!doctype|<html|<head|<\?xml|http(?:/\d(?:\.\d)?)? ?[45]\d\d\b"
    r"|[45]\d\d\s(?:client|server|service|internal|bad|gateway|too|not|unauthorized|forbidden)"
    r"|(?:rate|token|usage) limit|quota (?:exceeded|exhausted)|too many requests"
    r"|service (?:is )?(?:temporarily )?(?:un|over)\w+|internal server|bad gateway|gateway time"
    r"|(?:request|connection|read|operation) (?:timed? ?out|timeout|refused|reset|aborted|failed)"
    r"|failed to (?:get|generate|fetch|connect|parse|obtain|process|call|retrieve|load|decode)"
    r"|(?:api|model|llm) (?:call|request|overloaded|is overloaded|unavailable)|timeout\b"
    r"|unauthorized|forbidden|access denied|invalid api|resource_?exhausted|overloaded_error"
    r"|[\"']?error[\"']?\s?:(?!\s?(?:null|none|false|\"\"|'')))",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\bas an ai\b|\b(?:I|we) (?:cannot|can not|am (?:unable|not able)|are (?:unable|not able)"
    r"|do not (?:know|have enough)|am not sure|must decline|wo not|will not)\b"
    r"|\bI'm (?:sorry|unable|not (?:able|sure))|\bI am sorry\b"
    r"|\bunable to (?:answer|determine|provide|assist|choose)"
    r"|\bcannot be (?:answered|determined)|\b(?:insufficient|not enough|not sufficient) (?:data"
    r"|information|context)|\bnone of the (?:above|options|choices|given)|\bconsult (?:a|your)\b",
    re.IGNORECASE,
)
_TORN = re.compile(
    r"(?:\b(?P<noun>vitamin|vitamins|hepatitis|types?|groups?|factors?|influenza|protein|grades?"
    r"|class|stages?|phases?)\s)?(?<![\w-])(?P<one>[A-J])[)\]]?(?: ?\([^()\n]{0,80}\)?)?,? ?"
    r"(?:or|and|/|vs\.?|&)\s?(?:possibly |maybe |perhaps |option |choice )?[(\[]?"
    r"(?P<other>[A-J])(?!\w|-\w)"
)


def _is_error(said: str) -> bool:
    return _ERROR.match(said[:400]) is not None


def _is_torn(reply: _Reply) -> bool:
    """Whether the reply weighs two letters: then a text that occurs once decides nothing."""
    options, body = reply.options, reply.body
    for torn in _TORN.finditer(body):
        denied = is_denied(body[torn.end() : torn.end() + 80])
        negated = re.search(r"\b[Nn]ot\b[^.;\n]*$", body[max(torn.start() - 40, 0) : torn.start()])
        foreign = torn["noun"] and not options.exactly(f"{torn['noun']} {torn['one']}")
        known = {torn["one"], torn["other"]} <= set(options.letters)
        if known and not (denied or negated or foreign):
            return True
    return False


def _transcript(lines: list[Line]) -> list[Line]:
    """Spells out the "A:" of "Q: … A: …", which is the word answer and not the option A."""
    if not any(line.text.startswith("A:") for line in lines):
        return lines
    asked = any(re.match(r"Q(?:uestion)?\s?:", line.text) for line in lines)
    alone = re.compile(r"A:\s?(?=[(\[]?[A-J](?:[)\].:]|$))")
    return [
        Line("Answer:" + line.text[2:], line.bold)
        if line.text.startswith("A:") and (asked or alone.match(line.text))
        else line
        for line in lines
    ]
