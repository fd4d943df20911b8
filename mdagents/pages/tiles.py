"""Tiles of a run: accuracy, money, tokens and time at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup

from mdagents.pages.run_card import wall_time
from mdagents.scoring.fields import count_of, number_of, object_of
from mdagents.scoring.formatting import UNKNOWN, interval, percent, usd
from mdagents.scoring.group import Group, scored
from mdagents.scoring.report import Report
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.statistics import SMALLEST_FOR_RATES

_BINS = 17  # bars of the histogram
_GAP = 2  # between bars, in a drawing of 240 × 24
_WIDTH, _HEIGHT = 240, 24
_NOTHING = Markup()


@dataclass(frozen=True, slots=True)
class Tile:
    """A value with a drawing and a note below it."""

    label: str
    value: str
    unit: str = ""
    drawing: Markup = _NOTHING
    note: str = ""


def tiles_of_run(report: Report, run: RunOutput) -> list[Tile]:
    """Return the four tiles of a run; unknown values are shown as `-`."""
    return [_accuracy(report.overall), _paid(run), _tokens(run), _time(run)]


def _accuracy(group: Group) -> Tile:
    if group.questions < SMALLEST_FOR_RATES or group.accuracy_low is None:
        return Tile("Accuracy", f"{group.correct} of {group.n}", note="too few for a percentage")
    ends = interval(group.accuracy_low, group.accuracy_high)
    low, middle, high = (
        f"{100 * (share or 0):.1f}%"
        for share in (group.accuracy_low, group.accuracy, group.accuracy_high)
    )
    chance = _NOTHING
    if group.chance is not None:
        at = f"{100 * group.chance:.1f}%"
        chance = Markup('<line x1="{0}" y1="4" x2="{0}" y2="20" class="stroke-chance"/>').format(at)
    drawing = Markup(
        '<svg aria-hidden="true"><line x1="0" y1="12" x2="100%" y2="12" class="stroke-line"/>{}'
        '<line x1="{}" y1="12" x2="{}" y2="12" class="stroke-blue"/>'
        '<circle cx="{}" cy="12" r="5" class="fill-blue"/></svg>'
    ).format(chance, low, high, middle)
    return Tile("Accuracy", percent(group.accuracy), "", drawing, f"{ends}, 95% interval")


def _paid(run: RunOutput) -> Tile:
    spent = object_of(run.manifest, "spent")
    paid, exaid = number_of(spent.get("cost_usd")), number_of(spent.get("exaid_cost_usd"))
    if paid is None:
        return Tile("Paid", UNKNOWN, note="price not known" if spent else "not recorded")
    if not exaid:
        return Tile("Paid", usd(paid), "USD")
    teams = paid - exaid
    note = f"teams {usd(teams)} · EXAID {usd(exaid)}"
    return Tile("Paid", usd(paid), "USD", _split(teams, exaid), note)


def _tokens(run: RunOutput) -> Tile:
    rows = scored(run.rows)
    unknown = sum(row.total_tokens is None for row in rows)
    if unknown == len(rows):
        return Tile("Tokens", UNKNOWN, note="not recorded")
    if unknown:
        return Tile(
            "Tokens", UNKNOWN, note=f"not recorded for {unknown:,} of {len(rows):,} answers"
        )
    teams = sum(row.total_tokens or 0 for row in run.rows)
    exaid = sum(row.exaid_tokens or 0 for row in run.rows)
    value, unit = _in_words(teams + exaid)
    spent = object_of(run.manifest, "spent")
    paid = sum(count_of(spent.get(name)) or 0 for name in ("input_tokens", "output_tokens"))
    # More with replies that were thrown away, fewer with those from the cache.
    also = f" · paid for {_short(paid)}" if paid and paid != teams + exaid else ""
    if not exaid:
        return Tile("Tokens", value, unit, note=f"teams only{also}")
    note = f"teams {_short(teams)} · EXAID {_short(exaid)}{also}"
    return Tile("Tokens", value, unit, _split(teams, exaid), note)


def _short(tokens: float) -> str:
    return " ".join(_in_words(tokens)).strip().replace("million", "M")


def _in_words(tokens: float) -> tuple[str, str]:
    return (f"{tokens / 1e6:.2f}", "million") if tokens >= 1e6 else (f"{tokens:,.0f}", "")


def _time(run: RunOutput) -> Tile:
    seconds = [row.wall_seconds for row in run.rows if row.wall_seconds is not None]
    took = wall_time(run.manifest)
    note = f"median {median(seconds):,.1f} s per question" if seconds else ""
    return Tile(
        "Time", took.removeprefix("0:").removeprefix("0") or UNKNOWN, "", _histogram(seconds), note
    )


def _split(first: float, second: float) -> Markup:
    """Draw a bar of two parts."""
    width = (_WIDTH - _GAP) * first / ((first + second) or 1)
    return Markup(
        '<svg viewBox="0 0 {w} {h}" preserveAspectRatio="none" aria-hidden="true">'
        '<rect y="8" width="{a:.1f}" height="8" class="fill-blue"/>'
        '<rect x="{b:.1f}" y="8" width="{c:.1f}" height="8" class="fill-blue-soft"/></svg>'
    ).format(w=_WIDTH, h=_HEIGHT, a=width, b=width + _GAP, c=_WIDTH - _GAP - width)


def _histogram(values: Sequence[float]) -> Markup:
    if len(set(values)) < 2:
        return _NOTHING
    low, high = min(values), max(values)
    counts = [0] * _BINS
    for value in values:
        counts[min(math.floor((value - low) / (high - low) * _BINS), _BINS - 1)] += 1
    step = _WIDTH / _BINS
    bars = Markup("").join(
        Markup(
            '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="fill-blue"/>'
        ).format(place * step, _HEIGHT * (1 - n / max(counts)), step - _GAP,
                 _HEIGHT * n / max(counts))
        for place, n in enumerate(counts)
    )  # fmt: skip
    return Markup(
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(_WIDTH, _HEIGHT, bars)
