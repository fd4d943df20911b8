"""Why an expert changed its answer: messages since its last answer, and the argument in them.

Only a debate has changes that others may have caused. Arguments are searched for in messages of
senders who held the new answer when they wrote. If nobody held it, or no message supports it, no
cause is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exaid_core.checks.cue_files import normal
from exaid_core.checks.dissent import named_options, stated_answer
from exaid_core.checks.normal_form import Wording
from mdagents.agents.streaming import PREFIXES
from mdagents.live.case import Delivered, Flip, LiveCase, Turn
from mdagents.pages.sentences import Quote, Sources, spoken
from mdagents.scoring.audit.findings import Findings, wording

_NAMED = 0.5
"""Share of the weight of an option's words that a sentence must exceed to name it."""
_IN_COMMON = 0.15
"""Share of the weight of an explanation's words that a sentence must exceed."""

_FEWEST_IN_COMMON = 2
"""Minimum number of shared words; a single one may occur in any sentence."""

_OF_A_ROUND = re.compile(r"round-(\d+)-")


@dataclass(frozen=True, slots=True)
class Cause:
    """A change of an answer, with the evidence for its cause."""

    flip: Flip
    said: Quote | None
    """Sentence in which the expert explains the new answer, or else states it; None without one."""
    messages: tuple[Delivered, ...]
    """Messages since the expert's last answer; those from holders of the new answer first."""
    because: Quote | None
    """Sentence of a sender's turn that argues for the new answer; None without one."""
    has_new_finding: bool | None
    """Whether one of the messages names a finding of the case that nobody had named before; None
    without messages, and where the question is not known."""


def causes(case: LiveCase) -> tuple[Cause, ...]:
    """Return the changes of answers in a question, in order, each with its cause."""
    question = case.question
    findings = Findings(question.text, question.options.values()) if question else None
    return tuple(_cause(case, flip, findings) for flip in case.flips)


def _cause(case: LiveCase, flip: Flip, findings: Findings | None) -> Cause:
    option = case.question.options.get(flip.after, "") if case.question else ""
    own = case.turns[flip.turn]
    answer = _answer_line(own.text, flip.after)
    explanation = own.text[: answer[0]] if answer else own.text
    said = _naming(explanation, flip.after, option) or answer
    received = _received(case, flip)
    holders = [one for one in received if _held(case, one) == flip.after]
    argued = [place for one in holders if (place := _place(case, one))]
    because = next(_arguments(case, argued, flip.after, option, explanation), None)
    return Cause(
        flip,
        Quote(flip.turn, *said) if said else None,
        (*holders, *(one for one in received if one not in holders)),
        because,
        _has_new_finding(case, findings, received),
    )


def _has_new_finding(
    case: LiveCase, findings: Findings | None, received: Sequence[Delivered]
) -> bool | None:
    """Return whether messages name a finding that no earlier turn names, as an audit counts it."""
    written = [one.said_in for one in received if one.said_in is not None]
    if findings is None or not written:
        return None
    earlier = set[str]().union(
        *(findings.named(wording(turn.text)) for turn in case.turns[: min(written)])
    )
    return any(findings.named(wording(one.message.text)) - earlier for one in received)


def _arguments(
    case: LiveCase, argued: list[Quote], letter: str, option: str, explanation: str
) -> Iterator[Quote]:
    """Yield sentences of messages that name an answer, then those that its explanation took up.

    Args:
        case: The question.
        argued: Places of the messages in their senders' turns.
        letter: Letter of the answer.
        option: Text of the answer.
        explanation: Explanation by the expert who changed to the answer.
    """
    texts = [case.turns[place.turn].text[place.start : place.end] for place in argued]
    named = [_naming(text, letter, option) for text in texts]
    common = (_taken_up(text, explanation) for text in texts)
    for found in (named, common):
        for place, span in zip(argued, found, strict=True):
            if span:
                yield Quote(place.turn, place.start + span[0], place.start + span[1])


def _received(case: LiveCase, flip: Flip) -> list[Delivered]:
    """Return the messages that an expert received since its last answer, in order."""
    answered = [
        turn for turn in case.turns[: flip.turn] if turn.agent == flip.agent and turn.answer
    ]
    since = _round(answered[-1]) if answered else None
    until = _round(case.turns[flip.turn])
    if since is None or until is None:
        return []
    return [
        one
        for one in case.messages
        if one.message.recipient == flip.agent and since < one.message.round <= until
    ]


def _held(case: LiveCase, sent: Delivered) -> str | None:
    """Return the answer that the sender of a message held when it wrote."""
    message = sent.message
    answers = [
        turn.answer
        for turn in case.turns
        if turn.agent == message.sender
        and turn.answer
        and (round_ := _round(turn)) is not None
        and round_ < message.round
    ]
    return answers[-1] if answers else None


def _round(turn: Turn) -> int | None:
    """Return the debate round of a turn: 0 for first opinions, None outside a debate."""
    if turn.phase == "opinion":
        return 0
    found = _OF_A_ROUND.match(turn.phase)
    return int(found[1]) if found else None


def _place(case: LiveCase, sent: Delivered) -> Quote | None:
    """Return the place of a message in the sender's turn; None if it is not found."""
    message = sent.message
    numbers = {member.agent: number for number, member in enumerate(case.members, start=1)}
    to = PREFIXES["messages", "text"].format(to=numbers.get(message.recipient, 0))
    if sent.said_in is None:
        return None
    text = case.turns[sent.said_in].text
    start = text.find(message.text, max(text.find(to + message.text), 0))
    return None if start < 0 else Quote(sent.said_in, start, start + len(message.text))


def _answer_line(text: str, letter: str) -> tuple[int, int] | None:
    """Return (start, end) of the last sentence if it states this answer, else None."""
    for last in spoken(text).sentences[-1:]:
        if stated_answer(text[last.start : last.end]) == letter:
            return last.start, last.end
    return None


def _naming(text: str, letter: str, option: str) -> tuple[int, int] | None:
    """Return (start, end) of the last sentence that names an option by letter, else by words."""
    for one in reversed(spoken(text).sentences):
        if letter in named_options(normal(text[one.start : one.end])):
            return one.start, one.end
    return _having(text, option, _NAMED)


def _taken_up(text: str, explanation: str) -> tuple[int, int] | None:
    """Return (start, end) of the sentence that shares the most words with an explanation."""
    span = _having(text, explanation, _IN_COMMON)
    if span is None:
        return None
    shared = Wording(text[span[0] : span[1]]).about & Wording(explanation).about
    return span if len(shared) >= _FEWEST_IN_COMMON else None


def _having(text: str, phrase: str, enough: float) -> tuple[int, int] | None:
    """Return (start, end) of the sentence that matches most of a phrase, if it is enough."""
    found = Sources({0: text}).best(phrase, enough)
    return (found.start, found.end) if found else None
