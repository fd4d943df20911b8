"""Policies over runs of the same questions: whose answer is used, and at what token cost.

No model is called: a policy uses recorded answers and pays the tokens of every run that it would
have queried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, permutations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mdagents.scoring.group import by_question
from mdagents.scoring.routing import REPLAYED, oracle, replayed, routed_and_forced
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status
from mdagents_llm.errors import ConfigError

THRESHOLDS = tuple(step / 20 for step in range(21))
"""Minimum agreements for accepting an answer: 0, 0.05 … 1."""

_ROUNDING = 1e-9  # tolerance, so that 2/3 of a confidence of 0.9 reaches 0.6 in floating point

Number = TypeVar("Number", np.int64, np.float64)


class Kind(StrEnum):
    """Kinds of policy families, in order of preference on ties."""

    ALWAYS = "always"
    """One run answers everything."""
    REPLAYED = "router replayed"
    """Levels chosen by a router, with the answers of the runs forced to them. The cost of the
    router's own call is not known separately and is excluded."""
    AGREEMENT = "agreement"
    """Answer of a run if its experts are in sufficient confident agreement, else that of a more
    expensive run."""
    TWO_AGREE = "two agree"
    """Answer that two runs agree on, else that of a more expensive run."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of runs to the same questions, as arrays.

    Answers are grouped by question, with its epochs together; questions are sorted by id.
    """

    names: tuple[str, ...]
    """Names of the runs."""
    rows: tuple[tuple[ScoredRow, ...], ...]
    """Rows of each run, in the order of the answers."""
    starts: NDArray[np.int64]
    """Index of the first answer to each question."""
    right: NDArray[np.int64]
    """[run, answer]: 1 if right, else 0; a missing answer is 0."""
    tokens: NDArray[np.float64]
    """[run, answer]: tokens of the answer."""
    choices: NDArray[np.int64]
    """[run, answer]: number that encodes the chosen option; -1 without an answer."""

    @classmethod
    def of(
        cls, runs: Sequence[RunOutput], names: Sequence[str], shared: Sequence[Sequence[ScoredRow]]
    ) -> Answers:
        """Return the answers of runs.

        Args:
            runs: Runs, at least one.
            names: Names of the runs.
            shared: Rows of each run for the same questions, in the same order, not empty.

        Raises:
            ConfigError: The tokens of a run are unknown.
        """
        order = sorted(range(len(shared[0])), key=lambda place: shared[0][place].item)
        rows = [tuple([of_run[place] for place in order]) for of_run in shared]
        for run, of_run in zip(runs, rows, strict=True):
            if unknown := sum(row.total_tokens is None for row in of_run):
                raise ConfigError(
                    f"{run.path} does not hold the tokens of {unknown} of {len(of_run)} answers, "
                    "so that no policy with it has a price; leave it out of --what-if"
                )
        sizes = [len(answers) for answers in by_question(rows[0])]
        numbers: dict[str, int] = {}
        return cls(
            names=tuple(names),
            rows=tuple(rows),
            starts=np.cumsum([0, *sizes[:-1]]),
            right=np.array([[int(row.correct) for row in of_run] for of_run in rows]),
            tokens=np.array([[float(row.total_tokens or 0) for row in of_run] for of_run in rows]),
            choices=np.array(
                [
                    [
                        numbers.setdefault(row.choice, len(numbers)) if row.choice else -1
                        for row in of_run
                    ]
                    for of_run in rows
                ]
            ),
        )

    def by_question(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return the sums over the answers to each question: [..., answer] -> [..., question]."""
        return np.add.reduceat(values, self.starts, axis=-1)


@dataclass(frozen=True, slots=True)
class Family:
    """Policies that differ only in a threshold, or a single policy without one."""

    kind: Kind
    name: str
    thresholds: tuple[float, ...]
    """Threshold of each policy; empty for a single policy without one."""
    right: NDArray[np.int64]
    """[policy, question]: number of right answers; one policy for each threshold."""
    tokens: NDArray[np.float64]
    """[policy, question]: tokens of all answers to the question."""

    def policy_name(self, place: int) -> str:
        """Return the name of a policy, with its threshold if it has one."""
        return f"{self.name}, from {self.thresholds[place]:.2f}" if self.thresholds else self.name


def families(answers: Answers) -> list[Family]:
    """Return all families of policies that the runs allow, sorted by kind and name.

    The result does not depend on the order of the runs.
    """
    made = [*_always(answers), *_replayed(answers), *_agreement(answers), *_two_agree(answers)]
    kinds = list(Kind)
    return sorted(made, key=lambda family: (kinds.index(family.kind), family.name))


def oracle_of(answers: Answers) -> Family:
    """Return the oracle, an upper bound that picks the best run per question in hindsight."""
    best = oracle(answers.rows)
    right = np.array([[int(row.correct) for row in best]])
    tokens = np.array([[float(row.total_tokens or 0) for row in best]])
    return _family(answers, Kind.ALWAYS, "oracle", (), right, tokens)


def agreement_of(rows: Sequence[ScoredRow]) -> list[float] | None:
    """Return the confident agreement of the experts on each row's answer, from 0 to 1.

    The value is the share of experts whose last opinion is the answer, times the stated confidence.
    For a run without any confidences it is the share alone; for a run without any opinions, the
    confidence alone. A row without an answer, or without a value that other rows of its run state,
    has 0.

    Args:
        rows: Rows of one run.

    Returns:
        One value per row; None when the run states neither opinions nor confidences.
    """
    answered = [row for row in rows if row.status == Status.ANSWERED]
    has_opinions = any(row.last_opinions for row in answered)
    has_confidence = any(row.confidence is not None for row in answered)
    if not (has_opinions or has_confidence):
        return None

    def of(row: ScoredRow) -> float:
        if row.status != Status.ANSWERED:
            return 0.0
        held = row.last_opinions
        share = held.count(row.response) / len(held) if held else float(not has_opinions)
        return share * (row.confidence or 0.0) if has_confidence else share

    return list(map(of, rows))


def _family(
    answers: Answers,
    kind: Kind,
    name: str,
    thresholds: tuple[float, ...],
    right: NDArray[np.int64],
    tokens: NDArray[np.float64],
) -> Family:
    """Return a family from arrays [policy, answer]."""
    by_question = answers.by_question
    return Family(kind, name, thresholds, by_question(right), by_question(tokens))


def _always(answers: Answers) -> Iterator[Family]:
    for place, name in enumerate(answers.names):
        one = slice(place, place + 1)
        yield _family(
            answers, Kind.ALWAYS, f"always {name}", (), answers.right[one], answers.tokens[one]
        )


def _replayed(answers: Answers) -> Iterator[Family]:
    found = routed_and_forced(answers.rows)
    if found is None:
        return
    router, forced = found
    rows = replayed(
        answers.rows[router], {level: answers.rows[place] for level, place in forced.items()}
    )
    if rows is not None:
        right = np.array([[int(row.correct) for row in rows]])
        tokens = np.array([[float(row.total_tokens or 0) for row in rows]])
        name = f"{REPLAYED} ({answers.names[router]})"
        yield _family(answers, Kind.REPLAYED, name, (), right, tokens)


def _agreement(answers: Answers) -> Iterator[Family]:
    agreements = [agreement_of(rows) for rows in answers.rows]
    for first, then in permutations(range(len(answers.names)), 2):
        agreement = agreements[first]
        if agreement is None or not _is_cheaper(answers, first, then):
            continue
        is_taken = np.array(agreement) >= np.array(THRESHOLDS)[:, np.newaxis] - _ROUNDING
        yield _family(
            answers,
            Kind.AGREEMENT,
            f"{answers.names[first]}, else {answers.names[then]}",
            THRESHOLDS,
            np.where(is_taken, answers.right[first], answers.right[then]),
            answers.tokens[first] + np.where(is_taken, 0.0, answers.tokens[then]),
        )


def _two_agree(answers: Answers) -> Iterator[Family]:
    for pair in combinations(range(len(answers.names)), 2):
        one, other = sorted(pair, key=lambda run: (answers.tokens[run].sum(), answers.names[run]))
        agree = answers.choices[one] == answers.choices[other]
        agree &= answers.choices[one] >= 0
        for then in range(len(answers.names)):
            if _is_cheaper(answers, one, then) and _is_cheaper(answers, other, then):
                asked = answers.tokens[one] + answers.tokens[other]
                yield _family(
                    answers,
                    Kind.TWO_AGREE,
                    f"{answers.names[one]} and {answers.names[other]} agree, "
                    f"else {answers.names[then]}",
                    (),
                    np.where(agree, answers.right[one], answers.right[then])[np.newaxis],
                    (asked + np.where(agree, 0.0, answers.tokens[then]))[np.newaxis],
                )


def _is_cheaper(answers: Answers, one: int, other: int) -> bool:
    return bool(answers.tokens[one].sum() < answers.tokens[other].sum())
