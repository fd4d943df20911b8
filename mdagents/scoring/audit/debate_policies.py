"""What a run would have reached with less debate, estimated from its records and its ledger.

No model is called. A policy that stops at the first opinions takes the answer of a vote on them and
pays what had been paid by then; elsewhere it takes the recorded decision. What a policy would say
differently in a debate, as `minority-first` does, records cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mdagents.scoring.audit.effort import Effort
from mdagents.scoring.audit.observed import Observed
from mdagents.scoring.group import right_by_question
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.what_if import what_if
from mdagents_llm.proportions import accuracy_interval

_FIRST, _REST = "first opinions", "debate"


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """What a policy would have reached on the audited answers."""

    name: str
    flags: str
    """How to run it; empty where no flag does."""
    correct: int
    accuracy: float
    accuracy_low: float
    """Lower end of the 95% interval."""
    accuracy_high: float
    tokens_per_question: float
    token_share: float
    """Tokens divided by those of the run."""
    threshold: float | None
    """Least confident agreement at which it stops, for new questions; its figures come from 10-fold
    cross-validation. None for a policy without one."""


def estimate_policies(
    run: RunOutput,
    rows: Sequence[ScoredRow],
    seen: Sequence[Observed],
    paid: Sequence[Effort | None],
) -> list[PolicyEstimate]:
    """Estimate policies of a run.

    Args:
        run: The run.
        rows: Its audited rows.
        seen: What was observed in each.
        paid: What each cost.

    Returns:
        The run itself, then the policies; empty where the ledger does not tell what was paid by
        the first opinions.
    """
    known = [effort for effort in paid if effort is not None]
    total = sum(effort.tokens for effort in known)
    if len(known) < len(rows) or not total:
        return []
    decided = [
        replace(row, total_tokens=effort.tokens) for row, effort in zip(rows, known, strict=True)
    ]
    voted = [
        _voted(row, one, effort.tokens - effort.tokens_after)
        for row, one, effort in zip(rows, seen, known, strict=True)
    ]
    agreed = [
        vote if one.agreed else row for vote, row, one in zip(voted, decided, seen, strict=True)
    ]
    estimates = [
        _estimate("as it was run", "", decided, total),
        _estimate("a vote on the first opinions", "--method majority_vote", voted, total),
        _estimate("no debate where all agree at first", "--debate-policy agreed", agreed, total),
    ]
    rest = [
        replace(row, total_tokens=effort.tokens_after)
        for row, effort in zip(rows, known, strict=True)
    ]
    return [*estimates, *_by_confidence(run, rest, voted, total)]


def _by_confidence(
    run: RunOutput, rest: Sequence[ScoredRow], voted: Sequence[ScoredRow], total: int
) -> list[PolicyEstimate]:
    """Return the policy that stops at confident agreement, its threshold by cross-validation.

    Args:
        run: The run.
        rest: Its decisions, at the price of what came after the first opinions.
        voted: Votes on the first opinions, at their price.
        total: Tokens of the run.

    Returns:
        The policy; empty where there are too few questions, or nothing would be saved.
    """
    runs = [
        replace(run, path=Path(f"{name}.json"), rows=tuple(rows), manifest={})
        for name, rows in ((_FIRST, voted), (_REST, rest))
    ]
    outcomes = {outcome.name: outcome for outcome in what_if(runs).families}
    outcome = outcomes.get(f"{_FIRST}, else {_REST}")
    if outcome is None or outcome.reached is None:
        return []
    reached = outcome.reached
    return [
        PolicyEstimate(
            "no debate at confident agreement",
            "",
            reached.correct,
            reached.accuracy,
            reached.accuracy_low,
            reached.accuracy_high,
            reached.tokens_per_question,
            reached.tokens_per_question * len(rest) / total,
            outcome.threshold,
        )
    ]


def _voted(row: ScoredRow, one: Observed, tokens: int) -> ScoredRow:
    first = tuple(letter for letter, count in one.first.items() for _ in range(count))
    return replace(
        row,
        response=one.vote,
        correct=one.vote in row.right_letters,
        confidence=one.vote_confidence,
        total_tokens=tokens,
        last_opinions=first,
    )


def _estimate(name: str, flags: str, rows: Sequence[ScoredRow], total: int) -> PolicyEstimate:
    right, answers = right_by_question(rows)
    low, high = accuracy_interval(right, answers)
    assert low is not None, "there is a question"
    assert high is not None, "there is a question"
    tokens = sum(row.total_tokens or 0 for row in rows)
    n = len(rows)
    return PolicyEstimate(
        name, flags, sum(right), sum(right) / n, low, high, tokens / n, tokens / total, None
    )
