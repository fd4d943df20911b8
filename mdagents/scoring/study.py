"""What a study shows: on each data set with each model, every method against the baseline."""

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
    """A method on the questions of its block."""

    method: str
    """Label."""
    run: str
    """Name."""
    figures: Group
    seconds_per_question: float | None
    """Mean time from the beginning of a question to its decision."""
    status_counts: dict[str, int]
    left_out: int
    """Scored answers of the run to questions that another run of the block lacks."""
    pareto: bool | None
    """Whether no other method of the block is as accurate with as few tokens, and better in one of
    both; None when its tokens are not known."""
    repeats: Repeats | None
    """None with one epoch."""
    between_epochs: float | None
    """Standard deviation of the accuracies of the epochs (n - 1); None with one epoch."""
    beside_baseline: Pair | None
    """This method minus the baseline, its Holm p over all of the study; None of the baseline, and
    where that has no answer."""


@dataclass(frozen=True, slots=True)
class Block:
    """One data set with one model."""

    dataset: str
    """Label, like `model`."""
    model: str
    questions: int
    answers: int
    """Of each method: `questions` times epochs."""
    notices: list[str]
    methods: list[MethodFigures]
    """In the order of the study, without those that have no answer."""
    nobody_right: list[str]
    """Ids of the questions that no method answered rightly in any epoch."""
    nobody_answered: list[str]
    """Those that no method answered at all."""


@dataclass(frozen=True, slots=True)
class StudyFigures:
    """What `{study}.json` holds."""

    name: str
    baseline: str
    blocks: list[Block]
    missing: dict[str, str]
    """Run without an answer, by its labels -> why."""
    comparisons: int
    """Methods beside the baseline in all blocks: the family of Holm's adjustment."""
    bootstrap_seed: int
    bootstrap_resamples: int

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StudyOutput:
    """A study and the results of its runs."""

    manifest: StudyManifest
    runs: Mapping[str, RunOutput]
    """Name -> a run with at least one scored answer; the others are missing."""


def study_figures(study: StudyOutput) -> StudyFigures:
    """Compute what a study shows.

    In a block the questions are those that all its runs have answered so far.

    Args:
        study: What its runs have so far.
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
    """Return the ids of the questions of which no run did something in any epoch."""
    questions = zip(*(by_question(rows) for rows in shared), strict=True)
    return [
        runs[0][0].question_id
        for runs in questions
        if not any(did(row) for answers in runs for row in answers)
    ]
