"""The form in which a prompt asks for the answer, and the answer in that form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LABELED = re.compile(r"\b(answer)\s*:\s*\$?LETTER\b", re.IGNORECASE)
_WHOLE = re.compile(r"\bentire (?:content of your )?(?:response|reply|answer)\b", re.IGNORECASE)
_ONLY_LETTER = re.compile(
    r"\b(?:only|just)\b.{0,40}\bletter\b|\bletter (?:only|alone)\b|\bletter answer\b"
    r"|\b(?:single|one) letter\b",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"^\W*(?:(?:the )?(?:correct |final |best )?answer(?: is)?|(?!.*answer)[^:：]+[:：])\W*$",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\$LETTERS\b|\b(?:all|any) that apply\b"
    r"|\bwhich (?:two|three) (?:of|are|options|answers)\b"
    r"|\bmehrfachauswahl\b|\balle (?:zutreffenden|richtigen)\b",
    re.IGNORECASE,
)
_PERHAPS_SEVERAL = re.compile(
    r"\b(?:select|choose|mark|tick|pick) (?:all|the (?:two|three)|two|three) "
    r"(?:of the )?(?:correct|right|true|best|applicable|letters|answers|options)\b"
    r"|\b(?:answer|respond|reply|write|give|list|choose|select)\b[^.\n]{0,40}"
    r"\b(?:two|three|several|multiple) letters\b",
    re.IGNORECASE,
)
_ONE = re.compile(r"\b(?:single|one) (?:best )?(?:letter|answer|option)\b", re.IGNORECASE)


def asks_for_several(prompt: str) -> bool:
    """Return whether a prompt asks for more than one letter."""
    if _SEVERAL.search(prompt):
        return True
    return _PERHAPS_SEVERAL.search(prompt) is not None and _ONE.search(prompt) is None


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Form of an answer."""

    last_line: str
    """Template of the last line with `{}` for the letter: `ANSWER: {}`."""
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

    def write(self, letter: str, analysis: str, stop: Sequence[str] = ()) -> str:
        """Return the reply.

        Args:
            letter: Letter of the option.
            analysis: Reasons of the team; empty without any.
            stop: Texts before which the reply ends. An analysis that contains one is left out, so
                that the answer is not cut off.
        """
        answer = self.last_line.replace("{}", letter)
        whole = answer if self.is_alone or not analysis else f"{analysis}\n\n{answer}"
        if any(text in whole for text in stop):
            whole = answer
        return whole[: min((whole.find(text) for text in stop if text in whole), default=None)]


def form_of(instructions: str, ending: str) -> AnswerForm:
    """Return the form that a prompt asks for; by default the analysis, then `Answer: C`.

    Args:
        instructions: Instructions of the prompt about the form of the answer.
        ending: Last line of the prompt after the options, such as `Answer:`.
    """
    if labeled := _LABELED.search(instructions):
        return AnswerForm(f"{labeled[1]}: {{}}", is_alone=bool(_WHOLE.search(instructions)))
    if "the answer is (x)" in instructions.lower():
        return AnswerForm("The answer is ({}).")
    if "\\boxed" in instructions:
        return AnswerForm("\\boxed{{}}")
    if _ONLY_LETTER.search(instructions) or _CUE.search(ending):
        return AnswerForm("{}", is_alone=True)
    if "step by step" in ending.lower():
        return AnswerForm("The answer is ({}).")
    return AnswerForm("Answer: {}")
