"""Results of a study: every method against the baseline, on each data set with each model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev

from mdagents.records.study import StudyManifest, StudyRun
from mdagents.scoring.compare import is_on_front, notices_of
from mdagents.scoring.group import Group, by_question, make_group, scored
from mdagents.scoring.items import shared_rows
from mdagents.scoring.pairs import Pair, make_pair
from mdagents.scoring.repeats import Repeats, repeats
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import holm
from mdagents.settings import Status
from mdagents_llm.bootstrap import RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """Figures of a method on the questions of its block."""

    method: str
    """Label of the method."""
    run: str
    """Name of the run."""
    figures: Group
    seconds_per_question: float | None
    """Mean seconds from the start of a question to its decision; None when any is unknown."""
    status_counts: dict[str, int]
    left_out: int
    """Number of scored answers of the run to questions that another run of the block lacks."""
    pareto: bool | None
    """Whether the method is Pareto-optimal in its block: no other method is as accurate with as few
    tokens, and better in one of the two. None when its tokens are unknown."""
    repeats: Repeats | None
    """Figures over the epochs; None with one epoch."""
    between_epochs: float | None
    """Standard deviation of accuracy between epochs (n - 1); None with one epoch."""
    beside_baseline: Pair | None
    """Comparison of this method minus the baseline, Holm-adjusted over the whole study; None for
    the baseline itself, and when the baseline has no answers."""


@dataclass(frozen=True, slots=True)
class Block:
    """Results on one data set with one model."""

    dataset: str
    """Label of the data set; `model` is a label as well."""
    model: str
    questions: int
    answers: int
    """Number of answers of each method: `questions` times epochs."""
    notices: list[str]
    methods: list[MethodFigures]
    """Methods in the order of the study, without those that have no answers."""
    nobody_right: list[str]
    """Ids of the questions that no method got right in any epoch."""
    nobody_answered: list[str]
    """Ids of the questions that no method answered in any epoch."""


@dataclass(frozen=True, slots=True)
class StudyFigures:
    """The content of `{study}.json`."""

    name: str
    baseline: str
    blocks: list[Block]
    missing: dict[str, str]
    """Labels of a run without answers -> reason."""
    comparisons: int
    """Number of comparisons with the baseline in all blocks: the family of Holm's adjustment."""
    bootstrap_seed: int
    bootstrap_resamples: int

    def as_dict(self) -> dict[str, object]:
        """Return the figures as JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """A study and the results of its runs."""

    manifest: StudyManifest
    runs: Mapping[str, RunOutput]
    """Name -> run, for the runs with at least one scored answer."""


def study_figures(study: StudyOutput) -> StudyFigures:
    """Compute the figures of a study.

    A block covers the questions that all its runs have answered so far.

    Args:
        study: The study with the results of its runs so far.
    """
    manifest = study.manifest
    missing = {
        f"{run.dataset}, {run.model}, {run.method}": run.reason or "no question is answered yet"
        for run in manifest.runs
        if run.run not in study.runs
    }
    of_blocks: dict[tuple[str, str], list[StudyRun]] = {}
    for run in manifest.runs:
        if run.run in study.runs:
            of_blocks.setdefault((run.dataset, run.model), []).append(run)
    blocks = [
        _block(dataset, model, runs, manifest.baseline, study.runs)
        for (dataset, model), runs in of_blocks.items()
    ]
    pairs = [m.beside_baseline for b in blocks for m in b.methods if m.beside_baseline]
    adjusted = iter(holm([pair.mcnemar_p for pair in pairs]))
    return StudyFigures(
        name=manifest.name,
        baseline=manifest.baseline,
        blocks=[_adjusted(block, lambda: next(adjusted)) for block in blocks],
        missing=missing,
        comparisons=len(pairs),
        bootstrap_seed=SEED,
        bootstrap_resamples=RESAMPLES,
    )


def _adjusted(block: Block, next_p: Callable[[], float]) -> Block:
    return replace(
        block,
        methods=[
            replace(method, beside_baseline=replace(pair, mcnemar_p_holm=next_p()))
            if (pair := method.beside_baseline)
            else method
            for method in block.methods
        ],
    )


def _block(
    dataset: str,
    model: str,
    runs: Sequence[StudyRun],
    baseline: str,
    outputs: Mapping[str, RunOutput],
) -> Block:
    of_runs = [outputs[run.run] for run in runs]
    shared = shared_rows(of_runs, common=True) if len(runs) > 1 else [scored(of_runs[0].rows)]
    groups = [make_group(rows) for rows in shared]
    methods = [run.method for run in runs]
    of_baseline = shared[methods.index(baseline)] if baseline in methods else None
    return Block(
        dataset=dataset,
        model=model,
        questions=groups[0].questions,
        answers=groups[0].n,
        notices=notices_of(of_runs, methods, shared),
        methods=[
            _method(run, rows, group, len(scored(output.rows)) - len(rows), groups, of_baseline)
            for run, rows, group, output in zip(runs, shared, groups, of_runs, strict=True)
        ],
        nobody_right=_of_nobody(shared, lambda row: row.correct),
        nobody_answered=_of_nobody(shared, lambda row: row.status == Status.ANSWERED),
    )


def _method(
    run: StudyRun,
    rows: Sequence[ScoredRow],
    group: Group,
    left_out: int,
    groups: Sequence[Group],
    baseline: Sequence[ScoredRow] | None,
) -> MethodFigures:
    of_epochs = repeats(rows)
    seconds = [row.wall_seconds for row in rows if row.wall_seconds is not None]
    return MethodFigures(
        method=run.method,
        run=run.run,
        figures=group,
        seconds_per_question=fmean(seconds) if len(seconds) == len(rows) else None,
        status_counts=dict(Counter(row.status for row in rows).most_common()),
        left_out=left_out,
        pareto=is_on_front(group, groups),
        repeats=of_epochs,
        between_epochs=stdev(epoch.accuracy for epoch in of_epochs.by_epoch.values())
        if of_epochs is not None
        else None,
        beside_baseline=make_pair((1, 2), baseline, rows)
        if baseline is not None and baseline is not rows
        else None,
    )


def _of_nobody(
    shared: Sequence[Sequence[ScoredRow]], did: Callable[[ScoredRow], bool]
) -> list[str]:
    """Return the ids of the questions for which `did` is false for all runs and epochs."""
    questions = zip(*(by_question(rows) for rows in shared), strict=True)
    return [
        runs[0][0].question_id
        for runs in questions
        if not any(did(row) for answers in runs for row in answers)
    ]
