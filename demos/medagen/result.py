"""Combines the rules, the pictures and the model's draft into the user's result.

The level is the highest of all. The model's text is only used if it passes the checks and is in the
user's language, and its advice only if it was written for no lower level. What the model says is
kept apart from the flags of the user's own words and from the instruction, which is a fixed text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demos.medagen.advice import advice, advice_in_both, not_assessed
from demos.medagen.checks import allowed, faults, is_in
from demos.medagen.react import Draft
from demos.medagen.schemas import CvFindings, Language, Level, RulesResult, TriageResult, highest
from demos.medagen.triage_rules import FOREIGN
from mdagents_llm.text import clean, one_line

_LONGEST_ITEM = 100  # characters of a flag or a condition that the model names
_MOST_ITEMS = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about a message apart from the model's judgment."""

    rules: RulesResult
    """Result of the rules on the whole conversation."""
    earlier_words: str
    """Words of an earlier message on which that level rests; empty if there are none."""
    more_rules: Sequence[RulesResult]
    """Results of the rules that the model requested as a tool."""
    level: Level | None
    """Minimum level required by pictures and by the model's calls of the rules; None if none."""
    findings: Mapping[str, CvFindings] | None
    guidelines: tuple[str, ...]
    has_picture: bool
    message: str
    """Message as the user wrote it."""


def told(
    draft: Draft | None,
    failure: str | None,
    evidence: Evidence,
    language: Language,
    session_id: str,
) -> TriageResult:
    """Return the result for the user.

    Args:
        draft: Answer of the model; None if it gave no usable one.
        failure: Why there is no draft; None if there is one.
        evidence: Evidence apart from the draft.
        language: Language of the user.
        session_id: Id of the conversation.
    """
    level = highest(_levels(draft, evidence))
    flags = [flag for one in evidence.more_rules for flag in one.red_flags]
    conditions: list[str] = []
    summary = ""
    words = ""
    if draft is not None:
        flags += _items(draft.red_flags)
        conditions = _items(draft.suspected_conditions)
        summary = _checked(draft.symptom_summary, language, level)
        if draft.triage_level is level:  # advice for a lower level would play the result down
            words = _checked(draft.recommendation, language, level)
    is_read = FOREIGN not in evidence.rules.red_flags
    return TriageResult(
        triage_level=level,
        symptom_summary=summary or (not_assessed(language) if draft is None else evidence.message),
        red_flags=evidence.rules.red_flags,
        model_flags=tuple(
            flag for flag in dict.fromkeys(flags) if flag not in evidence.rules.red_flags
        ),
        suspected_conditions=tuple(conditions),
        cv_findings=dict(evidence.findings) if evidence.findings else None,
        recommendation=advice(level, language) if is_read else advice_in_both(level),
        model_advice=words,
        earlier_words=evidence.earlier_words,
        language=language,
        session_id=session_id,
        rules=evidence.rules.fired,
        guidelines=evidence.guidelines,
        model_level=draft.triage_level if draft is not None else None,
        fallback=failure,
    )


def _levels(draft: Draft | None, evidence: Evidence) -> list[Level]:
    levels = [evidence.rules.triage_level]
    levels.append(draft.triage_level if draft is not None else Level.URGENT)
    if evidence.level is not None:
        levels.append(evidence.level)
    if evidence.has_picture:  # the picture may show more than the message says
        levels.append(Level.ROUTINE)
    return levels


def _checked(text: str, language: Language, level: Level) -> str:
    text = allowed(clean(text).strip(), level)
    return text if is_in(text, language) else ""


def _items(texts: Sequence[str]) -> list[str]:
    lines = [one_line(text)[:_LONGEST_ITEM] for text in texts]
    # A medical word by itself may look foreign, and advises nothing.
    kept = [line for line in lines if allowed(line) == line or (line.isascii() and line.isalpha())]
    return [line for line in kept if line and not faults(line)][:_MOST_ITEMS]
