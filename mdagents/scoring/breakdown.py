"""Error analysis: accuracy by a field of the data set, the router's level or experts' agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from mdagents.scoring.group import Group, by_question, correct_answers, make_group, scored
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import SMALLEST_FOR_RATES, fisher_exact, holm
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean

LEVEL, AGREEMENT = "level", "agreement"
"""Groupings that every run of the teams has, besides the fields of its data set."""

NOT_STATED = "not stated"
"""Group of the questions that lack the field or the level."""


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Answers with one value of a property, compared with the questions of all others."""

    value: str
    figures: Group
    p: float | None
    """Two-sided p-value of Fisher's exact test against the other questions; None for a group or a
    rest of fewer than `SMALLEST_FOR_RATES` questions, and if epochs of a question are in different
    groups. A question asked in several epochs is right if most of its answers are."""
    p_holm: float | None
    """`p` with Holm's adjustment over the tested groups; of two groups it is the same `p`."""
    wrong: list[str]
    """Ids of the questions of which most answers in the group are not right."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A run's accuracy by one property of its questions."""

    by: str
    """Field of the data set, `level` or `agreement`."""
    groups: list[QuestionGroup]
    """Groups by size, the largest first."""


def groupings(rows: Sequence[ScoredRow]) -> list[str]:
    """Return the properties by which the rows of a run can be grouped."""
    fields = dict.fromkeys(name for row in rows for name, _ in row.fields)
    return [
        *fields,
        *([LEVEL] if any(row.difficulty for row in rows) else []),
        *([AGREEMENT] if any(len(row.last_opinions) > 1 for row in rows) else []),
    ]


def make_breakdown(rows: Sequence[ScoredRow], by: str) -> Breakdown:
    """Group the answers of a run and test each group against the rest.

    Each answer is in the group of its own value: the level and the agreement may differ by epoch.

    Args:
        rows: Rows of the run.
        by: Field of the data set, `level` or `agreement`; a field of that name counts first.

    Raises:
        ConfigError: No row has the property.
    """
    known = groupings(rows)
    if by not in known:
        has = f"this run has {', '.join(known)}" if known else "this run has nothing to group by"
        older = "; records up to version 1.4.0 keep no fields of the data set"
        raise ConfigError(f"--group-by {by}: {has}{did_you_mean(by, known)}{older}")
    value = _value_of(by, rows)
    answers = scored(rows)
    of_groups: dict[str, list[ScoredRow]] = {}
    for row in answers:
        of_groups.setdefault(value(row), []).append(row)
    of_questions = {name: by_question(inside) for name, inside in of_groups.items()}
    questions = by_question(answers)
    is_divided = sum(map(len, of_questions.values())) > len(questions)
    all_right = sum(map(_is_right, questions))
    groups = []
    for name, inside in sorted(of_questions.items(), key=lambda entry: -len(entry[1])):
        size, rest = len(inside), len(questions) - len(inside)
        right = sum(map(_is_right, inside))
        p = None
        if min(size, rest) >= SMALLEST_FOR_RATES and not is_divided:
            other = all_right - right
            p = fisher_exact(right, size - right, other, rest - other)
        figures = make_group(of_groups[name])
        groups.append(QuestionGroup(name, figures, p, None, _wrong(inside)))
    return Breakdown(by, _adjusted(groups))


def wrong_questions(rows: Iterable[ScoredRow]) -> list[str]:
    """Return the ids of the questions without a right answer in most epochs, also failed ones."""
    return _wrong(by_question(scored(list(rows))))


def _wrong(questions: Iterable[Sequence[ScoredRow]]) -> list[str]:
    return [answers[0].question_id for answers in questions if not _is_right(answers)]


def _is_right(answers: Sequence[ScoredRow]) -> bool:
    """Return whether most answers to a question, one for each epoch, are right."""
    return 2 * correct_answers(answers) > len(answers)


def _value_of(by: str, rows: Sequence[ScoredRow]) -> Callable[[ScoredRow], str]:
    if any(name == by for row in rows for name, _ in row.fields):
        return lambda row: dict(row.fields).get(by, NOT_STATED)
    if by == LEVEL:
        return lambda row: row.difficulty or NOT_STATED
    return _agreement


def _agreement(row: ScoredRow) -> str:
    """Return how far the experts, or teams, agree at the end."""
    held = row.last_opinions
    if len(held) < 2:
        return "fewer than two opinions"
    most = max(map(held.count, held))
    if most == len(held):
        return "all agree"
    return "majority" if 2 * most > len(held) else "split"


def _adjusted(groups: Sequence[QuestionGroup]) -> list[QuestionGroup]:
    if len(groups) == 2:  # one comparison, seen from both sides
        return [replace(group, p_holm=group.p) for group in groups]
    adjusted = iter(holm([group.p for group in groups if group.p is not None]))
    return [group if group.p is None else replace(group, p_holm=next(adjusted)) for group in groups]
