"""Combines the rules, the pictures and the model's draft into the user's result.

The level is the highest of all. The model's text is only used if it passes the checks, is in the
user's language, and was written for no lower level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demos.medagen.advice import advice, not_assessed
from demos.medagen.checks import allowed, faults, is_in
from demos.medagen.react import Draft
from demos.medagen.schemas import CvFindings, Language, Level, RulesResult, TriageResult, highest
from demos.toolkit.guard import seen

_LONGEST_ITEM = 100  # characters of a flag or a condition that the model names
_MOST_ITEMS = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about a message apart from the model's judgment."""

    rules: RulesResult
    """Result of the rules on the whole conversation."""
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
    flags = [*evidence.rules.red_flags]
    for one in evidence.more_rules:
        flags += one.red_flags
    conditions: list[str] = []
    summary = ""
    words = ""
    if draft is not None:
        flags += _items(draft.red_flags)
        conditions = _items(draft.suspected_conditions)
        summary = _checked(draft.symptom_summary, language)
        if draft.triage_level is level:  # advice for a lower level would play the result down
            words = _checked(draft.recommendation, language)
    return TriageResult(
        triage_level=level,
        symptom_summary=summary or (not_assessed(language) if draft is None else evidence.message),
        red_flags=tuple(dict.fromkeys(flags)),
        suspected_conditions=tuple(conditions),
        cv_findings=dict(evidence.findings) if evidence.findings else None,
        recommendation=f"{advice(level, language)} {words}".strip(),
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


def _checked(text: str, language: Language) -> str:
    text = allowed(" ".join(seen(text).split(" ")).strip())
    return text if is_in(text, language) else ""


def _items(texts: Sequence[str]) -> list[str]:
    lines = [" ".join(seen(text).split())[:_LONGEST_ITEM] for text in texts]
    return [line for line in lines if line and not faults(line)][:_MOST_ITEMS]
