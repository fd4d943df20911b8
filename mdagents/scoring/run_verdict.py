"""The result of a run in words: what was run, the result in a sentence, and its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdagents.datasets.sources import published_size
from mdagents.scoring.agreement import Agreement, majority_is_right
from mdagents.scoring.fields import text_of
from mdagents.scoring.formatting import chance_in_words, counts, interval, p_equation, percent
from mdagents.scoring.report import ALL, Report
from mdagents.scoring.run_names import described
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import (
    SIGNIFICANT,
    SMALLEST_FOR_COEFFICIENTS,
    SMALLEST_FOR_RATES,
    mcnemar_exact,
)
from mdagents.settings import Status
from mdagents_llm.text import counted


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The result of a run in words."""

    title: str
    """Model, data set, method and number of questions, as far as they are known."""
    sentence: str
    """The result in at most 20 words."""
    limits: Sequence[str]
    """At most two lines: uncertainty and scope; what the teams changed, and what failed."""


def run_verdict(
    report: Report, manifest: Mapping[str, Any], rows: Sequence[ScoredRow] = ()
) -> RunVerdict:
    """Put the result of a run into words.

    Args:
        report: The figures of the run.
        manifest: Contents of the run's `run.json`; may be empty.
        rows: Rows of the run. The sentence says if they were asked without pictures, and tests by
            question what the teams changed.
    """
    limits = [
        _uncertainty(report, manifest),
        " ".join([*_of_teams(report, rows), *_failures(report)]),
    ]
    return RunVerdict(
        title=" · ".join([*described(manifest), _questions(report)]),
        sentence=_sentence(report, manifest, rows),
        limits=list(filter(None, limits)),
    )


def _questions(report: Report) -> str:
    questions = report.overall.questions or report.overall.skipped
    epochs = report.repeats.epochs if report.repeats is not None else 1
    times = f", {epochs} epochs" if epochs > 1 else ""
    return counted(questions, "question") + times


def _sentence(report: Report, manifest: Mapping[str, Any], rows: Sequence[ScoredRow]) -> str:
    group, panel = report.overall, report.agreement[ALL]
    if not group.n:
        return f"All {group.skipped:,} questions were skipped."
    if not group.answered:
        return f"None of the {group.n:,} questions was answered."
    qualifiers = "".join(_qualifiers(report, rows))
    if group.questions < SMALLEST_FOR_RATES:
        return f"{group.correct} of {group.n} right{qualifiers}: too few for a percentage."
    right = f"{percent(group.accuracy)} right"
    selected = manifest.get("item_ids")
    if manifest.get("finished") is False and isinstance(selected, list):
        of_all = f" after {group.questions:,} of {len(selected):,} questions"
        return f"So far {right}{of_all}{qualifiers}."
    if not panel.n:
        return f"{right}{qualifiers}, without a panel of experts."
    return f"{right}{qualifiers}. {_effect(report, rows)}"


def _qualifiers(report: Report, rows: Sequence[ScoredRow]) -> list[str]:
    """Return clauses on failed questions and on questions asked without their pictures."""
    group = report.overall
    failed = group.n - group.answered
    with_pictures = [row for row in rows if row.pictures and row.status != Status.SKIPPED]
    lacking = sum(row.pictures_sent < row.pictures for row in with_pictures)
    if lacking == len(with_pictures):
        pictures = ", asked without pictures" if lacking else ""
    else:
        pictures = f", {lacking:,} asked without their pictures" if lacking else ""
    return [f", {failed:,} failed" if failed else "", pictures]


def _effect(report: Report, rows: Sequence[ScoredRow]) -> str:
    """Return what the teams changed, given enough questions, in one sentence."""
    panel = report.agreement[ALL]
    if _panels(report) < SMALLEST_FOR_COEFFICIENTS:
        return "Too few panels to tell whether the teams helped."
    changed, gained = panel.rescued + panel.overturned, panel.rescued - panel.overturned
    if not changed:
        return "The teams changed no majority."
    better, worse = _questions_changed(panel, rows)
    is_same_sign = (better - worse) * gained > 0
    if is_same_sign and mcnemar_exact(worse=worse, better=better) < SIGNIFICANT:
        what = "gained" if gained > 0 else "lost"
        return f"The teams {what} {abs(gained):,} answers, a significant effect."
    majorities = counted(changed, "majority", "majorities")
    return f"The teams changed {majorities}, with no significant effect."


def _panels(report: Report) -> int:
    """Return the number of judged questions; epochs add answers and no questions."""
    return min(report.agreement[ALL].n, report.overall.questions)


def _questions_changed(panel: Agreement, rows: Sequence[ScoredRow]) -> tuple[int, int]:
    """Return at how many questions the teams gained, and at how many they lost.

    Args:
        panel: Counts of answers, which are used without rows.
        rows: Rows behind `panel`; the epochs of a question count by the sign of their sum.
    """
    net = Counter[str]()
    for row in rows:
        if row.status == Status.ANSWERED and len(row.first_opinions) >= 2:
            majority = majority_is_right(row)
            net[row.question_id] += 0 if majority is None else row.correct - majority
    better = sum(n > 0 for n in net.values()) if rows else panel.rescued
    worse = sum(n < 0 for n in net.values()) if rows else panel.overturned
    return better, worse


def _uncertainty(report: Report, manifest: Mapping[str, Any]) -> str:
    group, name = report.overall, text_of(manifest, "dataset")
    parts = []
    if group.questions >= SMALLEST_FOR_RATES:
        parts.append(f"95% interval {interval(group.accuracy_low, group.accuracy_high)}")
    if group.chance is not None:
        parts.append(chance_in_words(group.chance))
    published = published_size(name)
    if published is not None and group.questions < published:
        parts.append(f"{group.questions:,} of the {published:,} published {name} questions")
    line = "; ".join(parts)
    return f"{line[:1].upper()}{line[1:]}." if line else ""


def _of_teams(report: Report, rows: Sequence[ScoredRow]) -> list[str]:
    panel = report.agreement[ALL]
    if _panels(report) < SMALLEST_FOR_COEFFICIENTS:
        return []
    ties = ""
    if panel.no_majority:
        ties = f" Of {panel.no_majority} splits, {panel.no_majority_right} were settled right."
    better, worse = _questions_changed(panel, rows)
    p = _unbroken(p_equation(mcnemar_exact(worse=worse, better=better)))
    return [
        f"Teams rescued {panel.rescued} of {panel.wrong_majority} wrong majorities, overturned "
        f"{panel.overturned} of {panel.right_majority} right ones ({p}).{ties}"
    ]


def _unbroken(words: str) -> str:
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _failures(report: Report) -> list[str]:
    usual = (Status.ANSWERED, Status.SKIPPED)
    failed = {name: n for name, n in report.status_counts.items() if name not in usual}
    return (
        [f"Failed questions count as wrong: {counts(failed)}.".replace("_", " ")] if failed else []
    )
