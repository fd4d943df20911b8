"""Scores of a team's answers: right or wrong, how questions ended, agreement, accuracy by level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    NOANSWER,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    accuracy,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState
from inspect_ai.util import store_as

from mdagents.datasets.questions import LETTERS
from mdagents.inspect.names import name_in_registry
from mdagents.inspect.outcome import TeamOutcome
from mdagents.scoring.fields import gold_of
from mdagents.settings import Difficulty, Status
from mdagents_llm.answers import parse_answer

NO_ANSWER = "no_answer"
"""How a question ended that no team has finished: a limit of Inspect or an error cut it off."""
_REASONS = {
    Status.PARSE_ERROR.value: (INCORRECT, "invalid_response_format"),
    Status.TRUNCATED.value: (INCORRECT, "truncated"),
    Status.REFUSED.value: (NOANSWER, "refusal"),
}
"""Status -> (value, reason); as in exported logs, docs/how-to/inspect.md."""
_WITHOUT_LETTER = {
    "content_filter": Status.REFUSED, "max_tokens": Status.TRUNCATED,
    "model_length": Status.TRUNCATED,
}  # fmt: skip
"""Stop reason -> status of a reply without a letter."""
_ENDS = (*(status.value for status in Status if status is not Status.SKIPPED), NO_ANSWER)


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a sample ended."""

    status: str
    """One of `_ENDS`."""
    letter: str = ""
    is_right: bool = False
    level: str = ""
    agreement: float | None = None
    error: str = ""


def _ended(state: TaskState, target: Target) -> _Ended:
    """Return how a sample ended: what a team noted, else what another solver left."""
    outcome = store_as(TeamOutcome)
    if not outcome.team:
        return _of_another_solver(state, target)
    is_right = outcome.correct
    if is_right is None:
        is_right = bool(outcome.letter) and _is_meant(outcome.letter, state, target)
    return _Ended(
        outcome.status or NO_ANSWER,
        outcome.letter,
        is_right,
        outcome.level,
        outcome.agreement,
        str(outcome.record.get("error") or ""),
    )


def _of_another_solver(state: TaskState, target: Target) -> _Ended:
    """Read the choice that Inspect's solver has marked, or else the letter of the reply."""
    if any(choice.correct is not None for choice in state.choices):
        marked = [
            letter for letter, choice in zip(LETTERS, state.choices, strict=False) if choice.correct
        ]
        letter = marked[0] if len(marked) == 1 else ""
    else:
        options = _options(state)
        letter = parse_answer(state.output.completion, options).letter or "" if options else ""
    if letter:
        return _Ended(Status.ANSWERED, letter, _is_meant(letter, state, target))
    return _Ended(_WITHOUT_LETTER.get(state.output.stop_reason, Status.PARSE_ERROR))


def _is_meant(letter: str, state: TaskState, target: Target) -> bool:
    """Return whether a target means a letter; of several choices, all would have to be given."""
    options = _options(state)
    meant = {gold_of(each, options) for each in target}
    return letter in meant and (len(meant) == 1 or not options)


def _options(state: TaskState) -> dict[str, str]:
    return {letter: one.value for letter, one in zip(LETTERS, state.choices, strict=False)}


def option() -> Scorer:
    """Score a letter: C or I, and N without an answer; I and N count as 0."""

    async def score(state: TaskState, target: Target) -> Score:
        ended = _ended(state, target)
        about = {"status": ended.status, "level": ended.level or None}
        if ended.status == Status.ANSWERED:
            value = CORRECT if ended.is_right else INCORRECT
            said = state.output.completion
            return Score(value=value, answer=ended.letter, explanation=said, metadata=about)
        value, reason = _REASONS.get(ended.status, (NOANSWER, ended.status))
        why = ended.error
        return Score(value=value, answer="", reason=reason, explanation=why, metadata=about)

    return score


def share() -> Metric:
    """Compute the mean over the samples with a value; not a number without any."""

    def compute(scores: list[SampleScore]) -> float:
        values = [score.score.as_float() for score in scores]
        return sum(values) / len(values) if values else math.nan

    return compute


share = metric(name=name_in_registry(share, "share"))(share)


def team(levels: Sequence[str] = tuple(Difficulty)) -> Scorer:
    """Score how each question ended, the agreement of its experts, and accuracy by level.

    A value is 0 or 1 for the ends, 0 to 1 for the agreement, and not a number where it means
    nothing: an agreement without an answer or of one expert alone, a level of another question.

    Args:
        levels: Levels to which questions can go.
    """

    async def score(state: TaskState, target: Target) -> Score:
        ended = _ended(state, target)
        is_answered = ended.status == Status.ANSWERED
        values = {name: float(name == ended.status) for name in _ENDS}
        agreement = ended.agreement if is_answered else None
        values["agreement"] = math.nan if agreement is None else agreement
        for level in levels:
            is_of_level = ended.level == level
            values[f"accuracy_{level}"] = (
                float(is_answered and ended.is_right) if is_of_level else math.nan
            )
        return Score(value=values)

    return score


option = scorer(metrics=[accuracy(), stderr()], name=name_in_registry(option, "option"))(option)
team = scorer(metrics={"*": [share()]}, name=name_in_registry(team, "team"))(team)
