"""Runs compared on the same questions; a study compares runs in several blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import fmean

from mdagents.records.study import StudyManifest, StudyRun
from mdagents.scoring.exaid_figures import ExaidFigures, exaid_figures
from mdagents.scoring.group import Group, by_question, make_group, scored
from mdagents.scoring.items import NothingSharedError, notices_of, shared_rows
from mdagents.scoring.pairs import Pair, make_pair
from mdagents.scoring.repeats import Repeats, repeats
from mdagents.scoring.routing import RouterReport, make_router_report
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.run_names import names_of
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import holm
from mdagents.settings import Status


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run with its figures on the compared questions."""

    number: int
    """Number of the run in its block, from 1; pairs refer to it."""
    name: str
    label: str
    """Short name that distinguishes the run from the others: in a study, that of its method."""
    path: str
    left_out: int
    """Number of scored answers of the run that are not compared."""
    status_counts: dict[str, int]
    figures: Group
    seconds_per_question: float | None
    """Mean seconds from the start of a question to its decision; None when any is unknown."""
    summaries: ExaidFigures | None
    """EXAID's figures on the compared questions; None when EXAID followed none of them."""
    pareto: bool | None
    """Whether the run is Pareto-optimal: no other run is at least as accurate with at most as many
    tokens, and better in one of the two. None when its tokens are unknown."""
    repeats: Repeats | None
    """Figures over the epochs; None with one epoch."""


@dataclass(frozen=True, slots=True)
class Block:
    """Runs compared on the questions that they share."""

    dataset: str | None
    """Label of the data set in its study; None without a study."""
    model: str | None
    """Label of the model in its study; None without a study."""
    questions: int
    answers: int
    """Number of answers of each run: `questions` times epochs."""
    notices: list[str]
    runs: list[ComparedRun]
    pairs: list[Pair]
    """All pairs of runs; in a study, the baseline with each other run."""
    router: RouterReport | None
    """Router report; None unless a routed run is compared with runs forced to the levels."""
    nobody_right: list[str]
    """Ids of the questions that no run got right in any epoch."""
    nobody_answered: list[str]
    """Ids of the questions that no run answered in any epoch."""

    @property
    def name(self) -> str:
        """Name of a study's block: the labels of its data set and model."""
        return f"{self.dataset}, {self.model}"

    def label(self, number: int) -> str:
        """Return the label of the run with a number."""
        return self.runs[number - 1].label

    def pair_name(self, pair: Pair) -> str:
        """Return the name of a pair, such as `team − single`."""
        return f"{self.label(pair.second)} − {self.label(pair.first)}"

    def shows(self, pair: Pair) -> bool:
        """Return whether a pair differs significantly, on enough questions for a verdict."""
        return pair.shows_difference(self.questions)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs of a study, or runs that a user compares, which form a single block."""

    name: str
    """Name of the study; empty without one."""
    baseline: str
    """Label of the method that the study compares the others with; empty without a study."""
    blocks: list[Block]
    missing: dict[str, str]
    """Labels of a run of the study without answers, or of a block without questions that all its
    runs have answered -> reason."""
    comparisons: int
    """Number of pairs in all blocks: the family of Holm's adjustment."""

    def place(self, block: Block) -> str:
        """Return the prefix of a sentence about a block; empty for a single block."""
        return f"{block.name}: " if len(self.blocks) > 1 else ""

    def as_dict(self) -> dict[str, object]:
        """Return the content of `{study}.json`, or without a study of `compare_….json`."""
        return asdict(self if self.name else self.blocks[0])


def compare(runs: Sequence[RunOutput], *, common: bool = False) -> Comparison:
    """Compare runs with each other on the questions they share.

    Args:
        runs: Runs to compare, at least two.
        common: Whether runs with different questions are compared on their common ones.

    Raises:
        ConfigError: The runs hold different questions, or none in common.
    """
    pairs = combinations(range(1, len(runs) + 1), 2)
    return _comparison([_block(runs, names_of(runs), pairs, common=common)])


def compare_study(study: StudyManifest, outputs: Mapping[str, RunOutput]) -> Comparison:
    """Compare the methods of a study with its baseline, on each data set with each model.

    A block covers the questions that all its runs have answered so far; without any, it is missing.

    Args:
        study: The study.
        outputs: Name -> run, for the runs of the study with at least one scored answer.
    """
    outputs = {
        name: decided for name, run in outputs.items() if scored((decided := _decided(run)).rows)
    }
    missing = {
        f"{run.dataset}, {run.model}, {run.method}": run.reason or "no question is answered yet"
        for run in study.runs
        if run.run not in outputs
    }
    of_blocks: dict[tuple[str, str], list[StudyRun]] = {}
    for run in study.runs:
        if run.run in outputs:
            of_blocks.setdefault((run.dataset, run.model), []).append(run)
    blocks = []
    for (dataset, model), runs in of_blocks.items():
        methods = [run.method for run in runs]
        numbers = {method: number for number, method in enumerate(methods, start=1)}
        first = numbers.pop(study.baseline, None)
        pairs = [(first, second) for second in numbers.values()] if first else []
        try:
            block = _block([outputs[run.run] for run in runs], methods, pairs, common=True)
        except NothingSharedError:
            missing[f"{dataset}, {model}"] = "nothing to compare yet: its runs share no question"
            continue
        blocks.append(replace(block, dataset=dataset, model=model))
    return replace(_comparison(blocks), name=study.name, baseline=study.baseline, missing=missing)


def _decided(run: RunOutput) -> RunOutput:
    """Return a run without the answers that a limit stopped, if it will ask for them again."""
    if run.manifest.get("finished", True):
        return run
    return replace(run, rows=tuple(row for row in run.rows if row.status != Status.LIMIT))


def _comparison(blocks: Sequence[Block]) -> Comparison:
    """Return blocks as a comparison, with Holm's adjustment over all their pairs."""
    p_values = [pair.mcnemar_p for block in blocks for pair in block.pairs]
    if len(p_values) > 1:
        adjusted = iter(holm(p_values))
        blocks = [
            replace(
                block,
                pairs=[replace(pair, mcnemar_p_holm=next(adjusted)) for pair in block.pairs],
            )
            for block in blocks
        ]
    return Comparison(
        name="",
        baseline="",
        blocks=list(blocks),
        missing={},
        comparisons=len(p_values),
    )


def _block(
    runs: Sequence[RunOutput],
    labels: Sequence[str],
    pairs: Iterable[tuple[int, int]],
    *,
    common: bool,
) -> Block:
    """Compare runs, without Holm's adjustment.

    Args:
        runs: Runs, at least one.
        labels: Their labels.
        pairs: Numbers, from 1, of the runs to compare.
        common: Whether runs with different questions are compared on their common ones.

    Raises:
        ConfigError: The runs hold different questions, or none in common.
    """
    shared = shared_rows(runs, common=common)
    groups = [make_group(rows) for rows in shared]
    return Block(
        dataset=None,
        model=None,
        questions=groups[0].questions,
        answers=groups[0].n,
        notices=notices_of(runs, labels, shared),
        runs=[
            _compared_run(number, run, label, rows, groups)
            for number, (run, label, rows) in enumerate(zip(runs, labels, shared, strict=True), 1)
        ],
        pairs=[
            make_pair((first, second), shared[first - 1], shared[second - 1])
            for first, second in pairs
        ],
        router=make_router_report(runs, shared),
        nobody_right=_of_nobody(shared, lambda row: row.correct),
        nobody_answered=_of_nobody(shared, lambda row: row.status == Status.ANSWERED),
    )


def _compared_run(
    number: int, run: RunOutput, label: str, rows: Sequence[ScoredRow], groups: Sequence[Group]
) -> ComparedRun:
    seconds = [row.wall_seconds for row in rows if row.wall_seconds is not None]
    return ComparedRun(
        number=number,
        name=run.name,
        label=label,
        path=str(run.path),
        left_out=len(scored(run.rows)) - len(rows),
        status_counts=dict(Counter(row.status for row in rows).most_common()),
        figures=groups[number - 1],
        seconds_per_question=fmean(seconds) if len(seconds) == len(rows) else None,
        summaries=exaid_figures([row.summarised for row in rows]),
        pareto=_is_on_front(groups[number - 1], groups),
        repeats=repeats(rows),
    )


def _is_on_front(group: Group, groups: Sequence[Group]) -> bool | None:
    """Return whether a group is on the Pareto front of accuracy and tokens; None if unknown."""
    if group.tokens_per_question is None:
        return None
    tokens = group.tokens_per_question
    return not any(
        other.tokens_per_question is not None
        and other.correct >= group.correct
        and other.tokens_per_question <= tokens
        and (other.correct > group.correct or other.tokens_per_question < tokens)
        for other in groups
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
