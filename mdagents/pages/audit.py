"""The head of the page of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mdagents.pages.audit_charts import controls_figure, flow_figure, turned_figure
from mdagents.pages.report_summary import Head, Occurrence, Occurrences, sentence
from mdagents.pages.run_card import date_of, settings_table
from mdagents.pages.tiles import Tile
from mdagents.scoring.audit.audit import Audit
from mdagents.scoring.audit.measures import MEANINGS, Measure
from mdagents.scoring.audit.text import (
    HOW_COUNTED,
    audit_tables,
    left_out_lines,
    limits_of,
    net_interval,
    verdict_of,
)
from mdagents.scoring.formatting import UNKNOWN, percent, points, usd
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.run_names import described
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents_llm.text import counted

_SHOWN = 30  # occurrences of a measure on the page
_SENTENCES = 4  # of an occurrence


def head_of_audit(audit: Audit, run: RunOutput) -> Head:
    """Make the head of the page of an audit.

    Args:
        audit: The figures of the audit.
        run: The run that was audited.
    """
    title = ["Audit", *described(run.manifest), counted(audit.questions, "question")]
    result, *more = _sentences(verdict_of(audit))
    figures = [flow_figure(audit)] if audit.n else []
    if audit.changed:
        figures.append(turned_figure(audit.turned_by))
    if audit.controls:
        figures.append(controls_figure(audit))
    places = {(row.question_id, row.epoch): n for n, row in enumerate(run.rows, start=1)}
    content = audit.as_dict()
    del content["observed"]  # the JSON file beside the page has it
    return Head(
        title=" · ".join(title),
        result=result,
        limits=[" ".join([*more, *limits_of(audit)])],
        run_names=[run.name],
        notices=[sentence(notice) for notice in (*left_out_lines(audit), *audit.notices)],
        lines=[HOW_COUNTED],
        tables=[*audit_tables(audit), settings_table(run)],
        figures=figures,
        values=content,
        words=[
            "First majority",
            "Rescued",
            "Overturned",
            "Oracle gap",
            "Idle tokens",
            "Finding",
            "95% interval",
            "Holm",
        ],
        tiles=_tiles(audit),
        meta=[*filter(None, [date_of(run.manifest)]), counted(audit.n, "audited answer")],
        occurrences=_occurrences(audit, places),
        lessons=[(places[one.question_id, one.epoch], one) for one in audit.lessons],
    )


def _occurrences(audit: Audit, places: Mapping[tuple[str, int], int]) -> list[Occurrences]:
    """Return where each measure occurred, with the sentences."""
    found: dict[Measure, list[Occurrence]] = {}
    counts: Counter[Measure] = Counter()
    for one in audit.observed:
        for instance in one.instances:
            counts[instance.measure] += 1
            listed = found.setdefault(instance.measure, [])
            if len(listed) < _SHOWN:
                said = tuple((place.role or place.kind, place.said) for place in instance.places)
                number = places[one.question_id, one.epoch]
                listed.append(Occurrence(number, one.question_id, said[:_SENTENCES]))
    return [
        Occurrences(meaning.title, meaning.counts, counts[measure], found[measure])
        for measure, meaning in MEANINGS.items()
        if measure in found
    ]


def _sentences(verdict: str) -> list[str]:
    """Return the sentence with the result, and those that follow."""
    first, dot, rest = verdict.partition(". ")
    return [f"{first}.", rest] if dot else [verdict]


def _tiles(audit: Audit) -> list[Tile]:
    majorities = audit.n - audit.settled
    is_enough = audit.questions >= SMALLEST_FOR_RATES
    gap = audit.possible - audit.right
    tiles = [
        Tile(
            "Majorities changed",
            f"{audit.changed:,}",
            f"of {majorities:,}",
            note=f"{audit.to_right:,} to right · {audit.to_wrong:,} to wrong",
        ),
        Tile(
            "Net effect",
            points(audit.net_effect, "+.1f") if is_enough else UNKNOWN,
            "points",
            note=f"{net_interval(audit)}, 95% interval" if is_enough else "too few questions",
        ),
        Tile(
            "Oracle gap",
            points(gap / audit.n) if is_enough and audit.n else f"{gap:,}",
            "points" if is_enough else "answers",
            note=f"{audit.possible:,} possible · {audit.right:,} right",
        ),
    ]
    if audit.effort is None:
        return [*tiles, Tile("Idle tokens", UNKNOWN, note="the run has no ledger")]
    paid, idle = usd(audit.effort.cost_usd), usd(audit.effort.idle_cost_usd)
    share = percent(audit.effort.idle_share)
    return [
        *tiles,
        Tile("Idle tokens", share, "of the teams'", note=f"{idle} USD of {paid} changed nothing"),
    ]
