"""Renders a comparison of runs as tables: for a terminal or a page, and as the CSV of a study."""

from __future__ import annotations

import csv
from typing import TextIO

from mdagents.scoring.comparison import Block, ComparedRun, Comparison
from mdagents.scoring.formatting import (
    UNKNOWN,
    Table,
    interval,
    number,
    p_value,
    percent,
    points,
    usd,
)
from mdagents.scoring.group_text import ACCURACY, accuracy_cell, cost_cells
from mdagents.scoring.pairs import Pair
from mdagents.scoring.routing_text import router_tables
from mdagents.scoring.statistics import SMALLEST_FOR_COEFFICIENTS, SMALLEST_FOR_RATES
from mdagents_llm.files.spreadsheet import text_cell
from mdagents_llm.text import counted


def overview_tables(comparison: Comparison) -> list[Table]:
    """Return a table of the accuracy of all methods in all blocks; empty for a single block."""
    blocks = comparison.blocks
    if len(blocks) < 2:
        return []
    cells = [{run.label: _at_a_glance(run, block) for run in block.runs} for block in blocks]
    labels = dict.fromkeys(label for of_block in cells for label in of_block)
    return [
        Table(
            ["", *(block.name for block in blocks)],
            [[label, *(of_block.get(label, UNKNOWN) for of_block in cells)] for label in labels],
            title=f"accuracy; better or worse: significantly different from {comparison.baseline}",
        )
    ]


def block_tables(comparison: Comparison, *, with_pairs: bool = True) -> list[Table]:
    """Return the tables of each block: runs, pairs, epochs and the router report, if any."""
    return [
        table
        for block in comparison.blocks
        for table in (
            _run_table(block),
            *(_pair_tables(block, is_adjusted=comparison.comparisons > 1) if with_pairs else ()),
            *_epoch_tables(block),
            *router_tables(block),
        )
    ]


def difference(pair: Pair, block: Block) -> str:
    """Return the difference in points with its interval; for few questions, in answers."""
    if block.questions < SMALLEST_FOR_RATES:
        return f"{number(pair.extra_correct, '+')} of {block.answers}"
    ends = interval(pair.difference_low, pair.difference_high, "+.1f")
    return f"{points(pair.difference, '+.1f')} points ({ends})"


def write_study_csv(file: TextIO, study: Comparison) -> None:
    """Write a CSV line for each run of a study, with rates as fractions."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [
            "dataset", "model", "method", "run", "questions", "answers", "answered", "correct",
            "accuracy", "accuracy_low", "accuracy_high", "tokens_per_question",
            "usd_per_question", "calls_per_question", "seconds_per_question",
            "exaid_tokens_per_question", "difference", "difference_low", "difference_high",
            "mcnemar_p", "holm_p", "pareto", "epochs", "between_epochs", "pass_at_k",
            "all_k_right",
        ]
    )  # fmt: skip
    for block in study.blocks:
        writer.writerows(_csv_cells(block, run) for run in block.runs)


def _run_table(block: Block) -> Table:
    front = {None: UNKNOWN, True: "yes", False: ""}
    rows = [
        [
            run.label,
            accuracy_cell(run.figures),
            *cost_cells(run.figures),
            number(run.seconds_per_question, ".1f"),
            front[run.pareto],
        ]
        for run in block.runs
    ]
    chances = [run.figures.chance for run in block.runs if run.figures.chance is not None]
    chance = f", chance {percent(chances[0])}" if chances else ""
    title = f"{block.name}: " if block.dataset else ""
    return Table(
        ["", ACCURACY, "tokens", "calls", "USD/1,000", "s", "Pareto"],
        rows,
        title=f"{title}{counted(block.questions, 'question')}{chance}; tokens, calls and s per "
        "question",
    )


def _pair_tables(block: Block, *, is_adjusted: bool) -> list[Table]:
    """Return tables of the differences, and of the questions that changed with their price."""
    if not block.pairs:
        return []
    place = f"{block.name}: " if block.dataset else ""
    differences, changes = [], []
    has_prices = any(block.shows(pair) for pair in block.pairs)
    for pair in block.pairs:
        name = block.pair_name(pair)
        p_values = [pair.mcnemar_p, pair.p] if is_adjusted else [pair.mcnemar_p]
        prices = _prices(pair, block) if block.shows(pair) else [UNKNOWN] * 2
        differences.append(
            [name, difference(pair, block), *map(p_value, p_values), _detectable(pair, block)]
        )
        changes.append(
            [
                name,
                str(len(pair.wrong_to_right)),
                str(len(pair.right_to_wrong)),
                *(prices if has_prices else []),
            ]
        )
    holm = ["Holm p"] if is_adjusted else []
    prices = ["tokens/extra right", "USD/extra right"] if has_prices else []
    return [
        Table(["pair", "difference (95% interval)", "McNemar p", *holm, "detectable"], differences,
              title=f"{place}Differences in accuracy"),
        Table(["pair", "now right", "now wrong", *prices], changes,
              title=f"{place}Questions that changed"),
    ]  # fmt: skip


def _epoch_tables(block: Block) -> list[Table]:
    repeats = [(run, run.repeats) for run in block.runs if run.repeats is not None]
    rows = [
        [
            run.label,
            percent(of.pass_hat[1]),
            f"{points(of.between_epochs)} points",
            percent(of.pass_at[of.epochs]),
            percent(of.pass_hat[of.epochs]),
        ]
        for run, of in repeats
        if of.questions >= SMALLEST_FOR_RATES
    ]
    if not rows:
        return []
    epochs = max(of.epochs for _, of in repeats)
    return [
        Table(
            [f"over {epochs} epochs", "mean", "SD over epochs", "at least one right", "all right"],
            rows,
            title="Epochs",
        )
    ]


def _detectable(pair: Pair, block: Block) -> str:
    smallest = pair.minimum_detectable_difference
    if smallest is None or block.questions < SMALLEST_FOR_COEFFICIENTS:
        return UNKNOWN
    return f"{points(smallest)} points"


def _prices(pair: Pair, block: Block) -> list[str]:
    """Return the tokens and USD of an extra right answer of the better run."""
    better = block.label(pair.second if pair.difference > 0 else pair.first)
    tokens, cost = pair.tokens_per_extra_correct, pair.cost_per_extra_correct
    cells = (
        (tokens, number(tokens, ",.0f"), "needs fewer tokens"),
        (cost, usd(cost), "is cheaper"),
    )
    return [f"{better} {less}" if (price or 0) < 0 else cell for price, cell, less in cells]


def _at_a_glance(run: ComparedRun, block: Block) -> str:
    """Return the accuracy of a study's run, and whether it differs from that of the baseline."""
    enough = block.questions >= SMALLEST_FOR_RATES
    accuracy = percent(run.figures.accuracy) if enough else accuracy_cell(run.figures)
    pair = _beside_baseline(block, run)
    if pair is None or not block.shows(pair):
        return accuracy
    return f"{accuracy} {'better' if pair.difference > 0 else 'worse'}"


def _csv_cells(block: Block, run: ComparedRun) -> list[object]:
    group, epochs = run.figures, run.repeats
    pair = _beside_baseline(block, run)
    names = (block.dataset or "", block.model or "", run.label, run.name)
    return [
        *map(text_cell, names), group.questions, group.n, group.answered, group.correct,
        group.accuracy, group.accuracy_low, group.accuracy_high, group.tokens_per_question,
        group.cost_per_question, group.calls_per_question, run.seconds_per_question,
        group.exaid_tokens_per_question,
        *([pair.difference, pair.difference_low, pair.difference_high, pair.mcnemar_p, pair.p]
          if pair else [None] * 5),
        None if run.pareto is None else int(run.pareto),
        *([epochs.epochs, epochs.between_epochs, epochs.pass_at[epochs.epochs],
           epochs.pass_hat[epochs.epochs]] if epochs else [1, None, None, None]),
    ]  # fmt: skip


def _beside_baseline(block: Block, run: ComparedRun) -> Pair | None:
    """Return the pair of a study's run and the baseline; None for the baseline or without it."""
    return next((pair for pair in block.pairs if pair.second == run.number), None)
