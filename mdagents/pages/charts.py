"""Charts of a report as inline SVG in the text color of the page.

Each mark has a title with its numbers, which browsers show as a tooltip and screen readers speak.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from mdagents.scoring.formatting import interval, percent, points
from mdagents.scoring.group import Group
from mdagents.scoring.pairs import Pair
from mdagents.scoring.statistics import Calibration

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Okabe and Ito's palette, which color-blind readers can distinguish.
RIGHT, WRONG, UNANSWERED, NEUTRAL = "#009E73", "#D55E00", "#999999", "#0072B2"
_OUTCOMES = {"right": RIGHT, "wrong": WRONG, "unanswered": UNANSWERED, "skipped": "#DDDDDD"}

_WIDTH = 4.8  # inches of 72 pixels: the widest chart that a narrow window shows at full size
_ROW = 0.42  # inches for each row of bars
TEXT = 13
"""Size of all text, in pixels."""

_SQUARE = 173  # pixels of a scale up to 100%
_TEXT_HEIGHT = 9  # height of a line of text, on that scale
_LINE = 16  # characters in a line of a name
INK = "#010203"
"""Placeholder of the page's text color until the SVG is written."""

_MARK = "mark:"


def accuracy_chart(groups: Mapping[str, Group]) -> Markup:
    """Draw the accuracy of each group with its 95% confidence interval and a tick at chance."""
    axes = _rows(list(groups))
    for place, (name, group) in enumerate(groups.items()):
        _point(axes, name, group, y=place)
        if group.chance is not None:
            ends = [place - 0.3, place + 0.3]
            (tick,) = axes.plot([100 * group.chance] * 2, ends, color=INK, linewidth=1)
            entitle(tick, f"{name}: chance {percent(group.chance)}")
    axes.set_xlim(0, 100)
    axes.set_xlabel("%, with 95% interval; | is chance")
    return as_svg(axes)


def cost_chart(groups: Mapping[str, Group], front: Sequence[str] = ()) -> Markup:
    """Draw tokens per question against accuracy.

    Args:
        groups: Name -> figures; groups with unknown tokens are left out.
        front: Names of the groups on the Pareto front, which a line joins.
    """
    from matplotlib.ticker import MaxNLocator

    axes = _square()
    known = {n: g for n, g in groups.items() if g.n and g.tokens_per_question is not None}
    places = {
        name: (group.tokens_per_question or 0, 100 * (group.accuracy or 0))
        for name, group in known.items()
    }
    for name, (tokens, _) in places.items():
        _point(axes, name, known[name], x=tokens)
    _name_points(axes, places)
    best = sorted(places[name] for name in front if name in places)
    axes.plot([x for x, _ in best], [y for _, y in best], color=NEUTRAL, linewidth=0.8)
    axes.margins(x=0.1)
    fewest, most = (end(x for x, _ in places.values()) for end in (min, max)) if places else (0, 0)
    if fewest < most / 2 or fewest == most:  # else most of the chart would be empty
        axes.set_xlim(left=0)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_xlabel("tokens per question")
    axes.set_ylabel("accuracy, %")
    return as_svg(axes)


def outcome_chart(outcomes: Mapping[str, Mapping[str, int]]) -> Markup:
    """Draw the number of questions at each level by outcome.

    Args:
        outcomes: Level -> `right`, `wrong`, `unanswered`, `skipped` -> number of questions.
    """
    axes = _rows(list(outcomes))
    for place, (level, counted) in enumerate(outcomes.items()):
        left = 0
        for outcome, colour in _OUTCOMES.items():
            count = counted.get(outcome, 0)
            if count:
                title = f"{level}: {count:,} {outcome} of {sum(counted.values()):,}"
                _bar(axes, place, count, title, color=colour, left=left, height=0.6)
            left += count
    named = [o for o in _OUTCOMES if any(counted.get(o) for counted in outcomes.values())]
    _legend(axes, {outcome: _OUTCOMES[outcome] for outcome in named})
    _count(axes)
    return as_svg(axes)


def calibration_chart(calibration: Calibration) -> Markup:
    """Draw stated confidence against accuracy; a larger point stands for more answers."""
    axes = _square()
    axes.plot([0, 100], [0, 100], color=UNANSWERED, linewidth=0.8, linestyle="--")
    bins = [b for b in calibration.bins if b.n]
    stated = [100 * (b.confidence or 0) for b in bins]
    reached = [100 * (b.accuracy or 0) for b in bins]
    axes.plot(stated, reached, color=NEUTRAL, linewidth=0.8)
    for x, y, of_bin in zip(stated, reached, bins, strict=True):
        size = (20 + 180 * of_bin.n / calibration.n) ** 0.5
        (point,) = axes.plot(x, y, "o", markersize=size, color=NEUTRAL, clip_on=False, zorder=3)
        entitle(
            point,
            f"stated {percent(of_bin.confidence)}, right {percent(of_bin.accuracy)}: "
            f"{of_bin.n:,} answers",
        )
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_xlabel("stated confidence, %")
    axes.set_ylabel("accuracy, %")
    return as_svg(axes)


def letter_chart(by_gold: Mapping[str, Group], answered: Mapping[str, int]) -> Markup:
    """Draw how often each letter is the right option and how often it is answered.

    Args:
        by_gold: Presented letter of the right option -> figures.
        answered: Presented letter -> number of answers.
    """
    letters = sorted({*by_gold, *answered})
    axes = _rows(letters)
    for place, letter in enumerate(letters):
        group, given = by_gold.get(letter), answered.get(letter, 0)
        if group:
            upper, right = place - 0.2, f"{group.correct:,} of {group.n:,} answered right"
            title = f"{letter} is the right option: {right}"
            _bar(axes, upper, group.n, title, color=UNANSWERED)
            _bar(axes, upper, group.correct, title, color=RIGHT)
        _bar(axes, place + 0.2, given, f"{letter} was answered {given:,} times", color=NEUTRAL)
    _legend(axes, {"right option": UNANSWERED, "answered right": RIGHT, "answer given": NEUTRAL})
    _count(axes)
    return as_svg(axes)


def difference_chart(pairs: Mapping[str, Pair]) -> Markup:
    """Draw differences in accuracy with their 95% confidence intervals, by name of the pair."""
    axes = _rows(list(pairs))
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, (name, pair) in enumerate(pairs.items()):
        across = [pair.difference_low, pair.difference, pair.difference_high]
        ends = interval(pair.difference_low, pair.difference_high, "+.1f")
        title = f"{name}: {points(pair.difference, '+.1f')} points (95% interval {ends})"
        draw_interval(axes, [100 * x for x in across], [place] * 3, title)
    axes.set_xlabel("points, with 95% interval")
    return as_svg(axes)


def _point(
    axes: Axes, name: str, group: Group, *, x: float | None = None, y: float | None = None
) -> None:
    """Draw a group's accuracy with its interval: horizontal in row `y`, or vertical at `x`."""
    if group.accuracy is None or group.accuracy_low is None or group.accuracy_high is None:
        return
    values = [100 * v for v in (group.accuracy_low, group.accuracy, group.accuracy_high)]
    ends = interval(group.accuracy_low, group.accuracy_high)
    title = f"{name}: {percent(group.accuracy)} of {group.n:,} right (95% interval {ends})"
    if y is not None:
        draw_interval(axes, values, [y] * 3, title)
    elif x is not None:
        draw_interval(axes, [x] * 3, values, f"{title}, {x:,.0f} tokens per question")


def draw_interval(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    title: str,
    *,
    color: str = NEUTRAL,
    marker: str = "o",
) -> Line2D:
    """Draw a point and the interval around it: lower end, point, upper end."""
    (mark,) = axes.plot(
        x, y, marker=marker, markevery=[1], color=color, linewidth=2, clip_on=False, zorder=3
    )
    entitle(mark, title)
    return mark


def _name_points(axes: Axes, places: Mapping[str, tuple[float, float]]) -> None:
    """Label points (x, y from 0 to 100), stacking the labels so that they do not overlap."""
    middle = sum(x for x, _ in places.values()) / max(len(places), 1)
    highest = {"left": 0.0, "right": 0.0}  # top of the labels on each side so far
    for name, (x, y) in sorted(places.items(), key=lambda place: place[1][1]):
        text = _broken(name)
        height = _TEXT_HEIGHT * (1 + text.count("\n"))
        side = "left" if x < middle or len(places) == 1 else "right"
        at = max(y, highest[side] + height / 2)
        highest[side] = at + height / 2
        axes.annotate(
            text,
            (x, y),
            xytext=((12 if side == "left" else -12), (at - y) / 100 * _SQUARE),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=TEXT,
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.5},
        )


def _bar(
    axes: Axes, y: float, width: float, title: str, *, color: str, left: float = 0,
    height: float = 0.36,
) -> None:  # fmt: skip
    (bar,) = axes.barh(
        y, width, left=left, color=color, height=height, edgecolor=INK, linewidth=0.5
    )
    entitle(bar, title)


def entitle(mark: Artist, text: str) -> None:
    """Give a mark a title, which screen readers also speak."""
    mark.set_gid(_MARK + " ".join(text.split()))


def _legend(axes: Axes, colours: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.legend(
        handles=[
            Patch(facecolor=colour, edgecolor=INK, linewidth=0.5, label=name)
            for name, colour in colours.items()
        ],
        loc="outside upper left",
        ncols=2,  # longer lines would not fit
        frameon=False,
        fontsize=TEXT,
        handlelength=1,
        columnspacing=1,
    )


def _count(axes: Axes) -> None:
    """Make the x axis count questions."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("questions")


def _broken(name: str) -> str:
    """Return a name in at most two lines; the title of its mark has the full name."""
    lines = textwrap.wrap(name, _LINE, max_lines=2, placeholder="…")
    return "\n".join(lines)


def _rows(names: Sequence[str]) -> Axes:
    """Return axes with a row for each name, the first at the top."""
    labels = [_broken(name) for name in names]
    height = _ROW * (1.4 if any("\n" in label for label in labels) else 1)
    axes = empty_axes(_WIDTH, 1.1 + height * len(names))
    axes.set_yticks(range(len(names)), labels)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=True, axis="x", alpha=0.25)
    return axes


def _square() -> Axes:
    axes = empty_axes(_WIDTH, 1 + _SQUARE / 72)
    axes.grid(visible=True, alpha=0.25)
    return axes


def empty_axes(width: float, height: float) -> Axes:
    """Return the axes of a new chart.

    Args:
        width: Width of the chart, in inches of 72 pixels.
        height: Height of the chart, in inches of 72 pixels.
    """
    # Imported here: the import takes a second, and only drawing needs it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    axes.set_axisbelow(True)
    axes.xaxis.label.set_fontsize(TEXT)
    axes.yaxis.label.set_fontsize(TEXT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def as_svg(axes: Axes) -> Markup:
    """Return the chart of some axes as SVG for a page."""
    import matplotlib as mpl

    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.tick_params(colors=INK, labelsize=TEXT)
    figure = axes.get_figure(root=True)
    assert figure is not None
    for text in figure.findobj(mpl.text.Text):
        text.set_color(INK)
        text.set_parse_math(False)  # a name is not a formula
    file = io.StringIO()
    # Text stays text, and equal charts are equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mdagents"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # matplotlib has escaped names and texts. Ids of groups other than marks are unused, and would
    # repeat in every chart.
    svg = re.sub(f'<g id="{_MARK}(.*?)">', r'<g role="img" aria-label="\1"><title>\1</title>', svg)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    return Markup(svg.replace(INK, "currentColor"))
