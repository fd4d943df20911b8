"""Draws accuracy against tokens for runs and for the policies over them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING

from markupsafe import Markup

from mdagents.pages.charts import (
    INK,
    RIGHT,
    TEXT,
    UNANSWERED,
    as_svg,
    draw_interval,
    empty_axes,
    entitle,
)
from mdagents.scoring.formatting import interval, percent
from mdagents.scoring.group import Group
from mdagents.scoring.policies import Kind
from mdagents.scoring.what_if import Curve, FamilyOutcome, Reached, WhatIf

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 8.6, 6.4  # inches of 72 pixels
_COLOURS = ("#E69F00", "#CC79A7", "#56B4E9")  # of families, from Okabe and Ito's palette
_OTHER = "#D55E00"  # color of families without a threshold
_OTHERS = 2  # maximum number of families without a threshold
_LOGARITHMIC = 20  # ratio of most to fewest tokens that makes the scale logarithmic
_WIDE = 100  # ratio that leaves fewer ticks for each power of ten
_LEGEND = 76  # characters in a line
_GAP = 9  # pixels between a point and its label
_POINT = 4  # half the width of a point, in pixels
_LETTER = 0.6  # width of a letter, as a share of the text height


Box = tuple[float, float, float, float]
"""(left, bottom, right, top) in pixels."""


def policy_chart(what_if: WhatIf) -> Markup:
    """Draw the runs, random mixes of them, the best policy families, the choice and the oracle."""
    axes = empty_axes(_WIDTH, _HEIGHT)
    axes.grid(visible=True, alpha=0.25)
    legend: dict[str, Artist] = {}
    _draw_coins(axes, what_if, legend)
    _draw_families(axes, what_if, legend)
    for name, group in what_if.runs.items():
        _draw_run(axes, name, group)
    choice = what_if.choice
    if choice is not None:
        what = "chosen by cross-validation"
        legend[what] = _draw_reached(axes, what, choice.reached, color=RIGHT, marker="D")
    legend["oracle (a bound)"] = _draw_reached(
        axes, "oracle", what_if.oracle, color=UNANSWERED, marker="^"
    )
    _set_scales(axes, what_if)
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.legend(
        legend.values(),
        [textwrap.shorten(name, _LEGEND, placeholder=" …") for name in legend],
        loc="outside upper left", frameon=False, fontsize=TEXT, handlelength=1.8,
    )  # fmt: skip
    _name_points(axes, what_if)
    return as_svg(axes)


def _place(group: Group) -> tuple[float, float]:
    return group.tokens_per_question or 0.0, 100 * (group.accuracy or 0.0)


def _place_of(reached: Reached) -> tuple[float, float]:
    return reached.tokens_per_question, 100 * reached.accuracy


def _draw_coins(axes: Axes, what_if: WhatIf, legend: dict[str, Artist]) -> None:
    corners = [_place(what_if.runs[name]) for name in what_if.coin]
    if len(corners) > 1:
        # Drawn point by point: on a logarithmic scale a random mix is a curve.
        steps = [step / 50 for step in range(51)]
        path = [
            (x + step * (right - x), y + step * (top - y))
            for (x, y), (right, top) in pairwise(corners)
            for step in steps
        ]
        (line,) = axes.plot(*zip(*path, strict=True), color=UNANSWERED, linewidth=1.2)
        entitle(line, f"coins between {', '.join(what_if.coin)}: none between runs reaches more")
        legend["coin between runs"] = line


def _draw_families(axes: Axes, what_if: WhatIf, legend: dict[str, Artist]) -> None:
    colours = iter(_COLOURS)
    others = 0
    for outcome in what_if.families:
        curve = outcome.curve
        if curve is not None and curve.band is not None:
            colour = next(colours)
            legend[f"{outcome.name} (in hindsight)"] = _draw_curve(axes, outcome, curve, colour)
        elif outcome.reached and outcome.kind is not Kind.ALWAYS and curve is None:
            others += 1
            if others <= _OTHERS:
                marker = "sP"[others - 1]
                legend[outcome.name] = _draw_reached(
                    axes, outcome.name, outcome.reached, color=_OTHER, marker=marker
                )


def _draw_curve(axes: Axes, outcome: FamilyOutcome, curve: Curve, colour: str) -> Artist:
    points = sorted(
        zip(
            curve.tokens_per_question, curve.accuracy, curve.thresholds, curve.band or (),
            strict=True,
        )
    )  # fmt: skip
    tokens = [x for x, *_ in points]
    (line,) = axes.plot(
        tokens, [100 * y for _, y, *_ in points], color=colour, linewidth=1.4, linestyle="--"
    )
    entitle(line, f"{outcome.name}, over all thresholds: its best point is chosen in hindsight")
    band = axes.fill_between(
        tokens,
        [100 * low for *_, (low, _) in points],
        [100 * high for *_, (_, high) in points],
        color=colour,
        alpha=0.13,
        linewidth=0,
    )
    entitle(band, f"{outcome.name}: 95% interval at each threshold")
    drawn = set()
    for x, y, threshold, (low, high) in points:
        if (x, y) in drawn:  # equal points: the lowest threshold is named
            continue
        drawn.add((x, y))
        (mark,) = axes.plot(x, 100 * y, "o", markersize=3, color=colour)
        entitle(
            mark,
            f"{outcome.name}, from {threshold:.2f}, in hindsight: {percent(y)} right "
            f"(95% interval {interval(low, high)}), {x:,.0f} tokens per question",
        )
    return line


def _draw_run(axes: Axes, name: str, group: Group) -> None:
    ends = interval(group.accuracy_low, group.accuracy_high)
    x, y = _place(group)
    draw_interval(
        axes,
        [x] * 3,
        [100 * (group.accuracy_low or 0), y, 100 * (group.accuracy_high or 0)],
        f"{name}: {percent(group.accuracy)} of {group.n:,} right (95% interval {ends}), "
        f"{x:,.0f} tokens per question",
    )


def _draw_reached(axes: Axes, name: str, reached: Reached, *, color: str, marker: str) -> Artist:
    x, _ = _place_of(reached)
    ends = interval(reached.accuracy_low, reached.accuracy_high)
    values = (reached.accuracy_low, reached.accuracy, reached.accuracy_high)
    mark = draw_interval(
        axes,
        [x] * 3,
        [100 * value for value in values],
        f"{name}: {percent(reached.accuracy)} right (95% interval {ends}), "
        f"{x:,.0f} tokens per question",
        color=color,
        marker=marker,
    )
    mark.set_markersize(9)
    return mark


def _set_scales(axes: Axes, what_if: WhatIf) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    tokens = [x for x, _ in map(_place, what_if.runs.values())]
    if min(tokens) > 0 and max(tokens) > _LOGARITHMIC * min(tokens):
        axes.set_xscale("log")
        steps = (1, 2, 5) if max(tokens) < _WIDE * min(tokens) else (1, 3)
        axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=12))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("tokens per question (logarithmic)")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel("tokens per question")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.margins(x=0.12)
    axes.set_ylabel("accuracy, %")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0), min(high, 100))


def _name_points(axes: Axes, what_if: WhatIf) -> None:
    """Label the points where a label covers no other label or point."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # lays out the figure, so that positions are known
    scale = 72 / figure.dpi

    def pixels(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y)) * scale
        return float(across), float(up)

    taken: list[Box] = []
    for group in what_if.runs.values():
        x, y = pixels(*_place(group))
        taken.append((x - _POINT, y - _POINT, x + _POINT, y + _POINT))
        ends = group.accuracy_low or 0, group.accuracy_high or 0
        low, high = (pixels(_place(group)[0], 100 * end)[1] for end in ends)
        taken.append((x - 1, low, x + 1, high))
    if what_if.choice is not None:
        x, y = pixels(*_place_of(what_if.choice.reached))
        taken.append((x - _POINT, y - _POINT, x + _POINT, y + _POINT))
    inside = axes.get_window_extent()
    leftmost, rightmost = inside.x0 * scale, inside.x1 * scale
    for name, group in sorted(what_if.runs.items(), key=lambda run: _place(run[1])):
        x, y = pixels(*_place(group))
        width = len(name) * TEXT * _LETTER
        fitting = (
            way
            for way in _ways(width)
            if leftmost < x + way[0] < rightmost - width
            and not _covers(_box(x, y, *way, width), taken)
        )
        left, rise = next(fitting, (_GAP, 0.0))
        taken.append(_box(x, y, left, rise, width))
        axes.annotate(
            name, _place(group), xytext=(left, rise), textcoords="offset points", ha="left",
            va="center", fontsize=TEXT, zorder=4,
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.5} if rise else None,
        )  # fmt: skip


def _ways(width: float) -> Iterator[tuple[float, float]]:
    """Yield (left end, middle) offsets of a label from its point, in pixels, nearest first."""
    for step, side in product(range(14), (1, -1)):
        for left in (_GAP, -_GAP - width):
            yield left, side * step * TEXT * 0.75


def _box(x: float, y: float, left: float, rise: float, width: float) -> Box:
    return x + left, y + rise - TEXT / 2, x + left + width, y + rise + TEXT / 2


def _covers(box: Box, taken: list[Box]) -> bool:
    return any(
        box[0] < right and left < box[2] and box[1] < top and bottom < box[3]
        for left, bottom, right, top in taken
    )
