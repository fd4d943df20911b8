"""What-if results: policies evaluated on recorded runs, without settings chosen in hindsight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mdagents.scoring.cross_validation import FOLDS, SMALLEST_FOR_A_CHOICE, CrossValidation
from mdagents.scoring.group import Group, make_group, scored
from mdagents.scoring.items import notices_of, shared_rows
from mdagents.scoring.pairs import shows_difference
from mdagents.scoring.policies import Answers, Family, Kind, families, oracle_of
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.run_names import names_of
from mdagents.scoring.statistics import mcnemar_exact
from mdagents_llm.bootstrap import SEED
from mdagents_llm.proportions import Interval, accuracy_interval, difference_interval

HOW = (
    "thresholds and policies are chosen for accuracy by 10-fold cross-validation and scored on the "
    "held-out folds; the best single run is the best in hindsight, which favors it"
)
TOO_FEW = f"too few questions to choose a threshold or a policy ({SMALLEST_FOR_A_CHOICE} needed)"

_BANDS = 3  # number of families whose curve gets a confidence band


@dataclass(frozen=True, slots=True)
class Reached:
    """Accuracy and tokens of a policy."""

    correct: int
    accuracy: float
    accuracy_low: float
    """Lower end of the 95% interval, computed by `accuracy_interval`."""
    accuracy_high: float
    tokens_per_question: float
    """Tokens of all runs that the policy queries; with several epochs, per answer."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A family over its thresholds, on all questions; its best point is known only in hindsight."""

    thresholds: list[float]
    accuracy: list[float]
    tokens_per_question: list[float]
    band: list[Interval] | None
    """95% interval of the accuracy at each threshold; None except for the families that
    cross-validation ranks best."""


@dataclass(frozen=True, slots=True)
class FamilyOutcome:
    """The results of a single family of policies."""

    kind: Kind
    name: str
    reached: Reached | None
    """Cross-validated results, with the threshold of each fold chosen on the other folds. None when
    there are too few questions to choose."""
    threshold: float | None
    """Best threshold on all questions, for use on new questions; None without thresholds."""
    curve: Curve | None
    """Results by threshold; None without thresholds."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A policy minus a run, on the same questions."""

    difference: float
    """Accuracy of the policy minus that of the run, from −1 to 1."""
    low: float
    """Lower end of the 95% interval, as in a comparison over questions."""
    high: float
    mcnemar_p: float
    """Two-sided p-value of McNemar's exact test."""
    questions_better: int
    """Questions that the policy got right more often than the run."""
    questions_worse: int

    @property
    def is_shown(self) -> bool:
        """Whether the difference is statistically significant by interval and test."""
        net = self.questions_better - self.questions_worse
        # A policy is only chosen on more questions than a verdict needs.
        return shows_difference(
            (self.low, self.high), self.mcnemar_p, net=net, questions=SMALLEST_FOR_A_CHOICE
        )


@dataclass(frozen=True, slots=True)
class Coin:
    """The best random mix of two runs, in hindsight, that uses as many tokens as a policy."""

    cheaper: str
    """Name of the cheaper run."""
    dearer: str
    """Name of the more expensive run; equal to `cheaper` when a single run uses as many tokens, or
    no run is as expensive as the policy."""
    share_of_dearer: float
    accuracy: float
    difference: float
    """Accuracy of the policy minus that of the coin."""
    low: float
    """Lower end of the 95% interval, as in a comparison with the share held fixed."""
    high: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of cross-validation among all policies."""

    reached: Reached
    in_folds: dict[str, int]
    """Family -> number of folds for which it was best on the other folds, most frequent first."""
    in_hindsight: str
    """Name of the policy that is best on all questions."""
    beside_best_run: Difference
    beside_coin: Coin


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The content of `what_if_….json`."""

    questions: int
    answers: int
    """Number of answers of each run: `questions` times epochs."""
    left_out: dict[str, int]
    """Run -> number of its scored questions that other runs lack."""
    folds: int
    """Number of folds; 0 when there are too few questions to choose."""
    seed: int
    """Seed of the folds."""
    how: str
    """Description of how thresholds and policies were chosen."""
    notices: list[str]
    runs: dict[str, Group]
    """Name of a run -> its figures."""
    best_run: str
    """Run with the most right answers in hindsight; ties go to the cheapest."""
    coin: list[str]
    """Runs at the corners of the upper hull of accuracy over tokens, cheapest first: a random mix
    of two neighbors reaches any point on the line between them, and no mix exceeds it."""
    choice: Choice | None
    """Choice of cross-validation; None when there are too few questions to choose."""
    cheapest_as_good: str | None
    """Family with the fewest tokens among those with at least as many right answers as the best
    run; None when it is that run, or there are too few questions to choose."""
    oracle: Reached
    """Results of the oracle, an upper bound that picks the best run per question in hindsight."""
    families: list[FamilyOutcome]
    """Families, most accurate first."""

    def as_dict(self) -> dict[str, object]:
        """Return the results as JSON types."""
        return asdict(self)

    def outcome(self, family: str) -> FamilyOutcome:
        """Return the outcome of the family with the given name."""
        return next(outcome for outcome in self.families if outcome.name == family)


def what_if(runs: Sequence[RunOutput], *, common: bool = False) -> WhatIf:
    """Compute the results of all policies on the questions the runs share.

    Args:
        runs: Runs, at least two.
        common: Whether runs with different questions are evaluated on their common ones.

    Raises:
        ConfigError: The runs hold different questions, or the tokens of one are unknown.
    """
    shared = shared_rows(runs, common=common)
    names = names_of(runs)
    scoring = _Scoring(Answers.of(runs, names, shared))
    outcomes = scoring.outcomes()
    best = names[scoring.best_run]
    return WhatIf(
        questions=len(scoring.sizes),
        answers=len(shared[0]),
        left_out={
            name: len(scored(run.rows)) - len(rows)
            for name, run, rows in zip(names, runs, shared, strict=True)
        },
        folds=FOLDS if scoring.can_choose else 0,
        seed=SEED,
        how=HOW if scoring.can_choose else TOO_FEW,
        notices=notices_of(runs, names, shared),
        runs={name: make_group(rows) for name, rows in zip(names, shared, strict=True)},
        best_run=best,
        coin=[names[run] for run in scoring.corners],
        choice=scoring.choice() if scoring.can_choose else None,
        cheapest_as_good=_cheapest(outcomes, f"always {best}") if scoring.can_choose else None,
        oracle=scoring.oracle(),
        families=outcomes,
    )


def _cheapest(outcomes: Sequence[FamilyOutcome], best_run: str) -> str | None:
    reached = {outcome.name: outcome.reached for outcome in outcomes if outcome.reached}
    as_good = {n: r for n, r in reached.items() if r.correct >= reached[best_run].correct}
    cheapest = min(as_good, key=lambda name: as_good[name].tokens_per_question)
    return None if cheapest == best_run else cheapest


class _Scoring:
    """Evaluates the policies over the answers of runs.

    Args:
        answers: Answers of all runs.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._families = families(answers)
        self._validation = CrossValidation(
            self._families, [answers.rows[0][start].question_id for start in answers.starts]
        )
        self._right_of_runs = answers.by_question(answers.right)
        self.sizes = answers.by_question(np.ones_like(answers.right[0])).tolist()
        """Number of answers to each question."""
        self.can_choose = len(self.sizes) >= SMALLEST_FOR_A_CHOICE
        self.corners = _upper_hull(answers)
        """Runs at the corners of the upper hull, cheapest first; the last is the best run."""

    @property
    def best_run(self) -> int:
        return self.corners[-1]

    def oracle(self) -> Reached:
        bound = oracle_of(self._answers)
        return self._reached(bound.right[0], bound.tokens[0])

    def outcomes(self) -> list[FamilyOutcome]:
        """Return the outcomes of the families, most accurate first and unknown ones last."""
        outcomes = list(map(self._outcome, range(len(self._families))))
        rights = {family.name: family.right for family in self._families}
        outcomes.sort(key=_merit)
        best = [o for o in outcomes if o.curve and o.reached][:_BANDS]
        return [
            replace(o, curve=replace(o.curve, band=self._band(rights[o.name])))
            if o in best and o.curve
            else o
            for o in outcomes
        ]

    def choice(self) -> Choice:
        validation = self._validation
        chosen = validation.chosen(validation.all)
        right, tokens = validation.held_out(chosen)
        reached = self._reached(right, tokens)
        in_folds = Counter(sorted(validation.family_of(policy).name for policy in chosen))
        best = self._right_of_runs[self.best_run]
        worse, better = int((right < best).sum()), int((right > best).sum())
        return Choice(
            reached=reached,
            in_folds=dict(in_folds.most_common()),
            in_hindsight=validation.name_of(validation.best_in_hindsight(validation.all)),
            beside_best_run=Difference(
                float((right - best).sum()) / sum(self.sizes),
                *difference_interval((right - best).tolist(), self.sizes),
                mcnemar_exact(worse, better),
                questions_better=better,
                questions_worse=worse,
            ),
            beside_coin=self._coin(right, reached),
        )

    def _coin(self, right: NDArray[np.int64], reached: Reached) -> Coin:
        """Return the coin with as many tokens as the policy, and its difference from the policy."""
        n = sum(self.sizes)
        tokens = self._answers.tokens[self.corners].sum(axis=1) / n
        # For example, 1.25 sends a quarter of the questions to corner 2, the others to corner 1.
        at = float(np.interp(reached.tokens_per_question, tokens, range(len(tokens))))
        cheaper, dearer = int(at), int(np.ceil(at))
        share = at - cheaper
        of_runs = self._right_of_runs[self.corners]
        mixed = (1 - share) * of_runs[cheaper] + share * of_runs[dearer]
        accuracy = float(mixed.sum()) / n
        names = self._answers.names
        return Coin(
            names[self.corners[cheaper]],
            names[self.corners[dearer]],
            share,
            accuracy,
            reached.accuracy - accuracy,
            *difference_interval((right - mixed).tolist(), self.sizes, of_means=True),
        )

    def _outcome(self, place: int) -> FamilyOutcome:
        family, policies = self._families[place], self._validation.of_family(place)
        chosen = self._validation.chosen(policies)
        is_known = self.can_choose or not family.thresholds
        return FamilyOutcome(
            family.kind,
            family.name,
            self._reached(*self._validation.held_out(chosen)) if is_known else None,
            family.thresholds[self._validation.best_in_hindsight(policies) - policies.start]
            if family.thresholds
            else None,
            self._curve(family) if family.thresholds else None,
        )

    def _curve(self, family: Family) -> Curve:
        n = sum(self.sizes)
        return Curve(
            list(family.thresholds),
            (family.right.sum(axis=1) / n).tolist(),
            (family.tokens.sum(axis=1) / n).tolist(),
            band=None,
        )

    def _band(self, right: NDArray[np.int64]) -> list[Interval]:
        return [self._accuracy_interval(of) for of in right]

    def _reached(self, right: NDArray[np.int64], tokens: NDArray[np.float64]) -> Reached:
        """Return the results of a policy from the right answers and tokens of each question."""
        n, correct = sum(self.sizes), int(right.sum())
        return Reached(
            correct, correct / n, *self._accuracy_interval(right), float(tokens.sum()) / n
        )

    def _accuracy_interval(self, right: NDArray[np.int64]) -> Interval:
        low, high = accuracy_interval(right.tolist(), self.sizes)
        assert low is not None, "there is a question"
        assert high is not None, "there is a question"
        return low, high


def _merit(outcome: FamilyOutcome) -> tuple[int, float]:
    reached = outcome.reached
    return (1, 0.0) if reached is None else (-reached.correct, reached.tokens_per_question)


def _upper_hull(answers: Answers) -> list[int]:
    """Return the runs that no random mix of two others beats, cheapest first."""
    right, tokens = answers.right.sum(axis=1), answers.tokens.sum(axis=1)

    def slope(first: int, second: int) -> float:
        return float((right[second] - right[first]) / (tokens[second] - tokens[first]))

    corners: list[int] = []
    for run in sorted(
        range(len(right)), key=lambda run: (tokens[run], -right[run], answers.names[run])
    ):
        if corners and right[run] <= right[corners[-1]]:
            continue
        while len(corners) > 1 and slope(corners[-2], run) >= slope(*corners[-2:]):
            corners.pop()
        corners.append(run)
    return corners
