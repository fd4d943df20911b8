"""Scores of a team's answers: right or wrong, how questions ended, agreement, accuracy by level."""

from __future__ import annotations

import math
from collections.abc import Sequence

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

from mdagents.inspect.names import name_in_registry
from mdagents.inspect.outcome import TeamOutcome
from mdagents.settings import Difficulty, Status

NO_ANSWER = "no_answer"
"""How a question ended that no team has finished: a limit of Inspect or an error cut it off."""
_REASONS = {
    Status.PARSE_ERROR.value: (INCORRECT, "invalid_response_format"),
    Status.TRUNCATED.value: (INCORRECT, "truncated"),
    Status.REFUSED.value: (NOANSWER, "refusal"),
}
"""Status -> (value, reason); as in exported logs, docs/how-to/inspect.md."""
_ENDS = (*(status.value for status in Status if status is not Status.SKIPPED), NO_ANSWER)


def option() -> Scorer:
    """Score the letter of a team: C or I, and N without an answer; I and N count as 0."""

    async def score(state: TaskState, target: Target) -> Score:
        outcome = store_as(TeamOutcome)
        about = {"status": outcome.status or NO_ANSWER, "level": outcome.level or None}
        if outcome.status == Status.ANSWERED:
            right = outcome.letter in target if outcome.correct is None else outcome.correct
            value = CORRECT if right else INCORRECT
            said = state.output.completion
            return Score(value=value, answer=outcome.letter, explanation=said, metadata=about)
        value, reason = _REASONS.get(outcome.status, (NOANSWER, outcome.status or NO_ANSWER))
        why = str(outcome.record.get("error") or "")
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
        outcome = store_as(TeamOutcome)
        status = outcome.status or NO_ANSWER
        is_answered = status == Status.ANSWERED
        right = outcome.letter in target if outcome.correct is None else outcome.correct
        values = {name: float(name == status) for name in _ENDS}
        agreement = outcome.agreement if is_answered else None
        values["agreement"] = math.nan if agreement is None else agreement
        for level in levels:
            is_of_level = outcome.level == level
            values[f"accuracy_{level}"] = float(is_answered and right) if is_of_level else math.nan
        return Score(value=values)

    return score


option = scorer(metrics=[accuracy(), stderr()], name=name_in_registry(option, "option"))(option)
team = scorer(metrics={"*": [share()]}, name=name_in_registry(team, "team"))(team)
