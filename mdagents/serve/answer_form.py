"""The form in which a prompt asks for the answer, and the answer in that form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LABELED = re.compile(r"\b(answer)\s*:\s*(?:\$?LETTER\b|[\[<]LETTER[\]>])", re.IGNORECASE)
_PLACEHOLDER = r"(?:answer|choice|letter|option)(?:[_ ](?:id|letter))?"
_PHRASE = re.compile(
    rf"(\bthe answer is|\banswer:) \(\[{_PLACEHOLDER}\]\)"
    r"( \[(?:answer|option)[_ ](?:string|text)\])?",
    re.IGNORECASE,
)
"""A phrase with letter and, perhaps, text: `the answer is ([option_id]) [answer_string]`."""
_TAGS = re.compile(
    r"(\bonly\b[^.\n]{0,40})?<((?:final[_ ])?answer)>([^<>\n]{0,60})</\2>", re.IGNORECASE
)
_OF_TEXT = re.compile(r"\b(?:text|sentence|explanation|reasons?|json)\b", re.IGNORECASE)
_WHOLE = re.compile(r"\bentire (?:content of your )?(?:response|reply|answer)\b", re.IGNORECASE)
_ONLY_LETTER = re.compile(
    r"\b(?:only|just)\b.{0,40}\bletter\b|\bletter (?:only|alone)\b|\bletter answer\b"
    r"|\b(?:single|one) letter\b",
    re.IGNORECASE,
)
_WORD = (
    r"(?:answer|answering|give|giving|output|provide|providing|reply|replying|respond|responding"
    r"|return|state|write|with|by|the|an?|your|capital|choice|correct|option) "
)
_MORE_THAN_LETTER = re.compile(
    rf"\b(?:do not|don['’]t|never|not|instead of|rather than) (?:{_WORD}){{0,5}}"
    rf"(?:(?:just|merely|one|only|simply|single) (?:{_WORD}|single ){{0,4}}letter\b"
    r"|letter (?:alone|only)\b)"
    r"|\bnicht (?:allein|bloß|nur) [^.\n]{0,30}buchstabe"
    r"|\bpas (?:juste|que|seulement|uniquement) [^.\n]{0,30}lettre\b"
    r"|\bno (?:\w+ )?(?:s[óo]lo|solamente|únicamente) [^.\n]{0,30}letra\b"
    r"|不要[仅只][^。\n]{0,8}字母",
    re.IGNORECASE,
)
"""A request for more than the letter: `Do not answer with only the letter.`"""
_CUE = re.compile(
    r"^\W*(?:(?:the )?(?:correct |final |best )?answer(?: is)?|(?!.*answer)[^:：]+[:：])\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Form of an answer."""

    last_line: str
    """Template of the last line with `{}` for the letter, and perhaps `{text}` for the text of the
    option: `ANSWER: {}`."""
    is_alone: bool = False
    """Whether nothing else may stand in the reply."""

    def is_cut_by(self, stop: str, letters: Iterable[str]) -> bool:
        """Return whether an answer could lose its letter by a text before which it ends.

        Args:
            stop: Such a text.
            letters: Letters of the options.
        """
        before = self.last_line.index("{}")
        answers = (self.last_line.replace("{}", letter) for letter in letters)
        return any(0 <= answer.find(stop) <= before for answer in answers)

    def write(self, letter: str, text: str, analysis: str, stop: Sequence[str] = ()) -> str:
        """Return the reply.

        Args:
            letter: Letter of the option.
            text: Text of the option.
            analysis: Reasons of the team; empty without any.
            stop: Texts before which the reply ends. An analysis that contains one is left out, so
                that the answer is not cut off.
        """
        answer = self.last_line.replace("{}", letter).replace("{text}", text)
        whole = answer if self.is_alone or not analysis else f"{analysis}\n\n{answer}"
        if any(end in whole for end in stop):
            whole = answer
        return whole[: min((whole.find(end) for end in stop if end in whole), default=None)]


def form_of(instructions: str, ending: str, text: str = "") -> AnswerForm:
    """Return the form that a prompt asks for; by default the analysis, then `Answer: C`.

    Args:
        instructions: Instructions of the prompt about the form of the answer.
        ending: Last line of the prompt after the options, such as `Answer:`.
        text: Text of the question, in which a phrase or tags may be asked for as well.
    """
    if labeled := _LABELED.search(instructions):
        return AnswerForm(f"{labeled[1]}: {{}}", is_alone=bool(_WHOLE.search(instructions)))
    prompt = f"{text}\n{instructions}"
    if phrase := _PHRASE.search(prompt):
        return AnswerForm(f"{phrase[1]} ({{}}){' {text}' if phrase[2] else ''}")
    tags = list(_TAGS.finditer(prompt))
    if tags and not _OF_TEXT.search(tags[-1][3]):
        only, name = tags[-1][1], tags[-1][2]
        is_alone = bool(only or _WHOLE.search(instructions))
        within = "\\boxed{{}}" if "\\boxed" in prompt else "{}"
        return AnswerForm(f"<{name}>{within}</{name}>", is_alone)
    if "the answer is (x)" in instructions.lower():
        return AnswerForm("The answer is ({}).")
    if "\\boxed" in instructions:
        return AnswerForm("\\boxed{{}}")
    is_more = _MORE_THAN_LETTER.search(prompt) is not None
    is_letter = _ONLY_LETTER.search(_MORE_THAN_LETTER.sub("", instructions)) is not None
    if is_letter or (_CUE.search(ending) and not is_more):
        return AnswerForm("{}", is_alone=True)
    if "step by step" in ending.lower():
        return AnswerForm("The answer is ({}).")
    return AnswerForm("Answer: {}")
