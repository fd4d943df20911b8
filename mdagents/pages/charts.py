"""Charts of a report as SVG that is put into a page and takes the page's text colour."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from mdagents.scoring.group import Group
from mdagents.scoring.pairs import Pair
from mdagents.scoring.statistics import Calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers tell apart.
RIGHT, WRONG, UNANSWERED, NEUTRAL = "#009E73", "#D55E00", "#999999", "#0072B2"
_OUTCOMES = {"right": RIGHT, "wrong": WRONG, "unanswered": UNANSWERED, "skipped": "#DDDDDD"}

_WIDTH = 4.8  # inches
_ROW = 0.36  # inches that a row of bars takes
_LONGEST_NAME = 24  # characters
_INK = "#010203"  # stands for the page's text colour until the SVG is written


def accuracy_chart(groups: Mapping[str, Group]) -> Markup:
    """Draw the accuracy of each group with its 95 % interval, and a tick at chance level."""
    axes = _rows(list(groups))
    for place, group in enumerate(groups.values()):
        _point(axes, group, y=place)
        if group.chance is not None:
            axes.plot([100 * group.chance] * 2, [place - 0.3, place + 0.3], color=_INK, linewidth=1)
    axes.set_xlim(0, 100)
    axes.set_xlabel("accuracy, %, with 95 % interval; | is chance")
    return _svg(axes)


def cost_chart(groups: Mapping[str, Group], front: Sequence[str] = ()) -> Markup:
    """Draw tokens per question against accuracy.

    Args:
        groups: By name; those whose tokens are not known are left out.
        front: Names of those that no other one beats, to be joined by a line.
    """
    from matplotlib.ticker import MaxNLocator

    axes = _square()
    known = {n: g for n, g in groups.items() if g.n and g.tokens_per_question is not None}
    for name, group in known.items():
        _point(axes, group, x=group.tokens_per_question)
        axes.annotate(
            _short(name),
            (group.tokens_per_question or 0, 100 * (group.accuracy or 0)),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize=8,
        )
    best = sorted(
        (known[name].tokens_per_question or 0, 100 * (known[name].accuracy or 0))
        for name in front
        if name in known
    )
    axes.plot([x for x, _ in best], [y for _, y in best], color=NEUTRAL, linewidth=0.8)
    axes.margins(x=0.2)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("tokens per question")
    axes.set_ylabel("accuracy, %")
    return _svg(axes)


def outcome_chart(outcomes: Mapping[str, Mapping[str, int]]) -> Markup:
    """Draw how many questions each level got, and their outcomes.

    Args:
        outcomes: Level -> `right`, `wrong`, `unanswered`, `skipped` -> questions.
    """
    axes = _rows(list(outcomes))
    for place, counted in enumerate(outcomes.values()):
        left = 0
        for outcome, colour in _OUTCOMES.items():
            count = counted.get(outcome, 0)
            axes.barh(place, count, left=left, color=colour, height=0.6)
            left += count
    named = [o for o in _OUTCOMES if any(counted.get(o) for counted in outcomes.values())]
    for outcome in named:
        axes.barh(0, 0, color=_OUTCOMES[outcome], label=outcome)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize=8)
    axes.set_ylim(len(outcomes) - 0.5, -1.2)  # room for the legend
    axes.set_xlabel("questions")
    return _svg(axes)


def calibration_chart(calibration: Calibration) -> Markup:
    """Draw stated confidence against accuracy; the larger a point, the more answers."""
    axes = _square()
    axes.plot([0, 100], [0, 100], color=UNANSWERED, linewidth=0.8, linestyle="--")
    bins = [b for b in calibration.bins if b.n]
    stated = [100 * (b.confidence or 0) for b in bins]
    reached = [100 * (b.accuracy or 0) for b in bins]
    sizes = [20 + 180 * b.n / calibration.n for b in bins]
    axes.plot(stated, reached, color=NEUTRAL, linewidth=0.8)
    axes.scatter(stated, reached, s=sizes, color=NEUTRAL, clip_on=False, zorder=3)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_xlabel("stated confidence, %")
    axes.set_ylabel("accuracy, %")
    return _svg(axes)


def letter_chart(by_gold: Mapping[str, Group], answered: Mapping[str, int]) -> Markup:
    """Draw how often each letter is right and how often it is answered, and its accuracy.

    Args:
        by_gold: Presented letter of the right option -> figures.
        answered: Presented letter -> answers.
    """
    letters = sorted({*by_gold, *answered})
    axes = _rows(letters)
    for place, letter in enumerate(letters):
        group = by_gold.get(letter)
        axes.barh(place - 0.2, group.n if group else 0, height=0.36, color=UNANSWERED)
        axes.barh(place - 0.2, group.correct if group else 0, height=0.36, color=RIGHT)
        axes.barh(place + 0.2, answered.get(letter, 0), height=0.36, color=NEUTRAL)
    for label, colour in (
        ("right option", UNANSWERED),
        ("of these answered right", RIGHT),
        ("answer given", NEUTRAL),
    ):
        axes.barh(0, 0, color=colour, label=label)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=8)
    axes.set_ylim(len(letters) - 0.5, -1.2)
    axes.set_xlabel("questions")
    return _svg(axes)


def difference_chart(pairs: Mapping[str, Pair]) -> Markup:
    """Draw differences in accuracy with their 95 % intervals, by the name of the pair."""
    axes = _rows(list(pairs))
    axes.axvline(0, color=_INK, linewidth=0.8)
    for place, pair in enumerate(pairs.values()):
        ends = [100 * pair.difference_low, 100 * pair.difference_high]
        axes.plot(ends, [place, place], color=NEUTRAL)
        axes.plot(100 * pair.difference, place, "o", color=NEUTRAL)
    axes.set_xlabel("difference in accuracy, points, with 95 % interval")
    return _svg(axes)


def _point(axes: Axes, group: Group, *, x: float | None = None, y: float | None = None) -> None:
    """Draw a group's accuracy with its interval: across at the row `y`, or upright at `x`."""
    if group.accuracy is None or group.accuracy_low is None or group.accuracy_high is None:
        return
    ends = [100 * group.accuracy_low, 100 * group.accuracy_high]
    middle = 100 * group.accuracy
    if y is not None:
        axes.plot(ends, [y, y], color=NEUTRAL)
        axes.plot(middle, y, "o", color=NEUTRAL)
    elif x is not None:
        axes.plot([x, x], ends, color=NEUTRAL)
        axes.plot(x, middle, "o", color=NEUTRAL)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _rows(names: Sequence[str]) -> Axes:
    """Return axes with a row for each name, the first at the top."""
    axes = _axes(_WIDTH, 1.2 + _ROW * len(names))
    axes.set_yticks(range(len(names)), map(_short, names))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=True, axis="x", alpha=0.25)
    return axes


def _square() -> Axes:
    axes = _axes(_WIDTH, 3.0)
    axes.grid(visible=True, alpha=0.25)
    return axes


def _axes(width: float, height: float) -> Axes:
    # Imported here: it takes a second, and only drawing needs it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _svg(axes: Axes) -> Markup:
    import matplotlib as mpl

    for spine in axes.spines.values():
        spine.set_color(_INK)
    axes.tick_params(colors=_INK, labelsize=9)
    figure = axes.get_figure(root=True)
    assert figure is not None
    for text in figure.findobj(mpl.text.Text):
        text.set_color(_INK)
        text.set_parse_math(False)  # a name is not a formula
    file = io.StringIO()
    # Text stays text, and equal charts are equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mdagents"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return Markup(svg.replace(_INK, "currentColor"))  # matplotlib has escaped its texts
