"""Renders a study as tables and text: for a terminal, for its page, and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from mdagents.scoring.formatting import (
    UNKNOWN,
    Table,
    interval,
    number,
    p_equation,
    p_value,
    percent,
    points,
    with_minus,
    wrapped,
)
from mdagents.scoring.pairs import Pair
from mdagents.scoring.report import ACCURACY, accuracy_cell, cost_cells
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents.scoring.study import Block, MethodFigures, StudyFigures
from mdagents_llm.files.spreadsheet import text_cell

_IDS_SHOWN = 10
_RUNS_SHOWN = 4
_TOO_FEW = "too few questions to tell"


def render_study(study: StudyFigures) -> str:
    """Return a study as text for a terminal."""
    return "\n".join(
        [
            *(table.as_text() for table in study_tables(study)),
            *map(wrapped, verdicts(study)),
            *map(wrapped, study_lines(study)),
            *(wrapped(f"NOTE: {notice}") for notice in study_notices(study)),
        ]
    )


def headline(study: StudyFigures) -> str:
    """Return the main result of a study in a few words."""
    pairs = [m.beside_baseline for b in study.blocks for m in b.methods if m.beside_baseline]
    if not pairs:
        return "nothing to compare yet"
    if all(block.questions < SMALLEST_FOR_RATES for block in study.blocks):
        return _TOO_FEW
    better, worse = _shown(study)
    if not better and not worse:
        return f"no method is shown to differ from {study.baseline}"
    names = list(dict.fromkeys(method.method for _, method in better))
    parts = []
    if better:
        parts.append(f"{' and '.join(names)} better than {study.baseline}")
    if worse:
        names = list(dict.fromkeys(method.method for _, method in worse))
        parts.append(f"{' and '.join(names)} worse{'' if better else f' than {study.baseline}'}")
    return f"{'; '.join(parts)} (in {len(better) + len(worse)} of {len(pairs)} comparisons)"


def verdicts(study: StudyFigures) -> list[str]:
    """Return a sentence per block that states which methods differ significantly."""
    return [f"{_place(block, study)}{_verdict(block, study)}" for block in study.blocks]


def study_overview(study: StudyFigures) -> list[Table]:
    """Return a table of the accuracy of all methods in all blocks; empty for a single block."""
    if len(study.blocks) < 2:
        return []
    methods = dict.fromkeys(method.method for block in study.blocks for method in block.methods)
    rows = []
    for name in methods:
        of_blocks = [
            next((method for method in block.methods if method.method == name), None)
            for block in study.blocks
        ]
        cells = zip(of_blocks, study.blocks, strict=True)
        rows.append([name, *(UNKNOWN if m is None else _at_a_glance(m, b) for m, b in cells)])
    headings = ["", *(f"{block.dataset}, {block.model}" for block in study.blocks)]
    title = f"accuracy; better or worse: shown to differ from {study.baseline}"
    return [Table(headings, rows, title=title)]


def _at_a_glance(method: MethodFigures, block: Block) -> str:
    group, pair = method.figures, method.beside_baseline
    accuracy = (
        percent(group.accuracy) if block.questions >= SMALLEST_FOR_RATES else accuracy_cell(group)
    )
    if pair is None or not _is_shown(pair, block):
        return accuracy
    return f"{accuracy} {'better' if pair.difference > 0 else 'worse'}"


def study_tables(study: StudyFigures) -> list[Table]:
    """Return tables of figures, differences and epochs of the methods, for each block."""
    tables = []
    for block in study.blocks:
        title = f"{block.dataset}, {block.model}: {block.questions} questions"
        tables += [
            Table(
                ["a question", ACCURACY, "tokens", "calls", "USD/1,000", "s"],
                [_figures(method) for method in block.methods],
                title=title,
            ),
            Table(
                [f"against {study.baseline}", "difference (95% interval)", "McNemar p", "Holm p",
                 "Pareto"],
                [_difference(method, block) for method in block.methods],
            ),
            *_epoch_tables(block),
        ]  # fmt: skip
    return tables


def study_lines(study: StudyFigures) -> list[str]:
    """Return lines on the statistical methods and on the questions that no method got right."""
    lines = []
    if study.comparisons:
        lines.append(
            f"differences: paired bootstrap over questions; p: McNemar's exact test; Holm over all "
            f"{study.comparisons} comparisons of the study; Pareto: no other method is as accurate "
            "with as few tokens"
        )
    for block in study.blocks:
        for what, ids in (
            ("no method got right", block.nobody_right),
            ("no method answered", block.nobody_answered),
        ):
            if ids:
                more = f", … {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else ""
                lines.append(
                    f"{_place(block, study)}{what} {len(ids)} of {block.questions} questions: "
                    f"{', '.join(ids[:_IDS_SHOWN])}{more}"
                )
    return lines


def study_notices(study: StudyFigures) -> list[str]:
    """Return caveats to show with the figures."""
    by_reason: dict[str, list[str]] = {}
    for run, why in study.missing.items():
        by_reason.setdefault(why, []).append(run)
    missing = [
        f"missing ({why}): {'; '.join(runs[:_RUNS_SHOWN])}"
        + f"; … {len(runs) - _RUNS_SHOWN} more" * (len(runs) > _RUNS_SHOWN)
        for why, runs in by_reason.items()
    ]
    left_out = [
        f"{_place(block, study)}only the {block.questions} questions that all methods have are "
        f"compared; left out: "
        + ", ".join(f"{m.left_out} of {m.method}" for m in block.methods if m.left_out)
        for block in study.blocks
        if any(method.left_out for method in block.methods)
    ]
    notices = list(dict.fromkeys(notice for block in study.blocks for notice in block.notices))
    return [*missing, *left_out, *notices]


def as_markdown(study: StudyFigures) -> str:
    """Return the tables of a study as Markdown for a paper, with notes on the methods."""
    parts = [f"# {study.name}", headline(study), *verdicts(study)]
    parts += [
        f"{table.title}\n\n{_markdown(table.headings, table.rows)}"
        for table in study_overview(study)
    ]
    for block in study.blocks:
        beside = f"difference from {study.baseline} (95% interval)"
        headings = ["a question", ACCURACY, "tokens", "calls", "USD/1,000", "s", beside, "p (Holm)",
                    "Pareto"]  # fmt: skip
        rows = []
        for method in block.methods:
            _, difference, _, holm_p, pareto = _difference(method, block)
            rows.append([*_figures(method), difference, holm_p, pareto])
        parts.append(f"## {block.dataset}, {block.model}: {block.questions} questions")
        parts.append(_markdown(headings, rows))
        parts += [_markdown(table.headings, table.rows) for table in _epoch_tables(block)]
    lines = [*study_lines(study), *(f"NOTE: {notice}" for notice in study_notices(study))]
    parts.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts) + "\n"


def write_csv_of_study(file: TextIO, study: StudyFigures) -> None:
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
        writer.writerows(_cells(block, method) for method in block.methods)


def _cells(block: Block, method: MethodFigures) -> list[object]:
    group, pair, epochs = method.figures, method.beside_baseline, method.repeats
    names = (block.dataset, block.model, method.method, method.run)
    return [
        *map(text_cell, names), group.questions, group.n, group.answered, group.correct,
        group.accuracy, group.accuracy_low, group.accuracy_high, group.tokens_per_question,
        group.cost_per_question, group.calls_per_question, method.seconds_per_question,
        group.exaid_tokens_per_question,
        *([pair.difference, pair.difference_low, pair.difference_high, pair.mcnemar_p,
           pair.mcnemar_p_holm] if pair else [None] * 5),
        None if method.pareto is None else int(method.pareto),
        *([epochs.epochs, method.between_epochs, epochs.pass_at[epochs.epochs],
           epochs.pass_hat[epochs.epochs]] if epochs else [1, None, None, None]),
    ]  # fmt: skip


def _figures(method: MethodFigures) -> list[str]:
    group = method.figures
    seconds = number(method.seconds_per_question, ".1f")
    return [method.method, accuracy_cell(group), *cost_cells(group), seconds]


def _difference(method: MethodFigures, block: Block) -> list[str]:
    pair = method.beside_baseline
    pareto = {None: UNKNOWN, True: "yes", False: ""}[method.pareto]
    if pair is None:
        return [method.method, UNKNOWN, UNKNOWN, UNKNOWN, pareto]
    if block.questions < SMALLEST_FOR_RATES:
        return [
            method.method, f"{pair.extra_correct:+} of {block.answers}", UNKNOWN, UNKNOWN, pareto
        ]  # fmt: skip
    ends = interval(pair.difference_low, pair.difference_high, "+.1f")
    difference = f"{points(pair.difference, '+.1f')} points ({ends})"
    return [method.method, difference, p_value(pair.mcnemar_p), p_value(pair.p), pareto]


def _epoch_tables(block: Block) -> list[Table]:
    rows = []
    epochs = 0
    for method in block.methods:
        of = method.repeats
        if of is not None and of.questions >= SMALLEST_FOR_RATES:
            epochs = max(epochs, of.epochs)
            rows.append(
                [
                    method.method,
                    percent(method.figures.accuracy),
                    f"{points(method.between_epochs)} points",
                    percent(of.pass_at[of.epochs]),
                    percent(of.pass_hat[of.epochs]),
                ]
            )
    if not rows:
        return []
    headings = [f"over {epochs} epochs", "mean", "SD over epochs", "at least one right",
                "all right"]  # fmt: skip
    return [Table(headings, rows)]


def _place(block: Block, study: StudyFigures) -> str:
    """Return the prefix of a sentence about a block; empty if the study has only one block."""
    return f"{block.dataset}, {block.model}: " if len(study.blocks) > 1 else ""


_Shown = list[tuple[Block, MethodFigures]]


def _shown(study: StudyFigures) -> tuple[_Shown, _Shown]:
    """Return the methods that are significantly better and worse than the baseline."""
    shown = [
        (block, method, pair.difference)
        for block in study.blocks
        for method in block.methods
        if (pair := method.beside_baseline) is not None and _is_shown(pair, block)
    ]
    better = [(block, method) for block, method, difference in shown if difference > 0]
    worse = [(block, method) for block, method, difference in shown if difference < 0]
    return better, worse


def _is_shown(pair: Pair, block: Block) -> bool:
    return pair.shows_difference and block.questions >= SMALLEST_FOR_RATES


def _verdict(block: Block, study: StudyFigures) -> str:
    pairs = [(m.method, m.beside_baseline) for m in block.methods if m.beside_baseline]
    if not pairs:
        return f"{study.baseline} has nothing to be compared with"
    if block.questions < SMALLEST_FOR_RATES:
        return _TOO_FEW
    parts = []
    for word, sign in (("better", 1), ("worse", -1)):
        shown = [(n, p) for n, p in pairs if _is_shown(p, block) and sign * p.difference > 0]
        if shown:
            named = [f"{name} ({_figures_of(pair)})" for name, pair in shown]
            parts.append(f"{_listed(named)} {'is' if len(shown) == 1 else 'are'} {word}")
    others = [name for name, pair in pairs if not _is_shown(pair, block)]
    verdict = f"{' and '.join(parts)} than {study.baseline}" if parts else ""
    if others:
        verdict += ("; " if parts else "") + f"no significant difference for {_listed(others)}"
    return verdict


def _figures_of(pair: Pair) -> str:
    low, high = points(pair.difference_low, "+.1f"), points(pair.difference_high, "+.1f")
    return with_minus(
        f"{points(pair.difference, '+.1f')} points, 95% interval {low} to {high}, "
        f"{p_equation(pair.p)}"
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
