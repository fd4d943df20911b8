"""Shows accuracy against tokens for runs and for the policies over them."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from mdagents.pages.canvas import (
    PERCENT,
    SMALL,
    TEXT,
    Canvas,
    Figure,
    Scale,
    fitted,
    fitted_amounts,
    shortened,
    width_of,
)
from mdagents.pages.charts import FULL, draw_grid
from mdagents.pages.labels import Box, boxes_of_line, place_labels
from mdagents.scoring.formatting import interval, percent
from mdagents.scoring.what_if import FamilyOutcome, Reached, WhatIf

_CURVES = ("blue-fill", "text2", "text3")
"""Colors of the families with thresholds that are drawn, in the order of their rank."""
_HEIGHT = 420


def policy_figure(what_if: WhatIf) -> Figure:
    """Show the runs, random mixes of them, the best policies, the choice and the oracle."""
    note = "Runs (dots) and thresholds (curves) with 95% intervals."
    return Figure("Accuracy against tokens", note, partial(_policies, what_if), FULL)


def _policies(what_if: WhatIf, width: int) -> Canvas:
    curves = _curves(what_if)
    mixes = [("best random mix of two runs", "grey-fill", False)] if len(what_if.coin) > 1 else []
    keys = [
        *mixes,
        *((f"{of.name} (thresholds in hindsight)", color, True)
          for of, color in zip(curves, _CURVES, strict=False)),
    ]  # fmt: skip
    canvas = Canvas(width, _HEIGHT + 22 * len(keys))
    bottom = _HEIGHT - 46
    reached: dict[str, Reached] = {"oracle (upper bound)": what_if.oracle}
    if what_if.choice is not None:
        reached["chosen by cross-validation"] = what_if.choice.reached
    runs = {
        name: (group.tokens_per_question or 0.0, group.accuracy or 0.0,
               group.accuracy_low or 0.0, group.accuracy_high or 0.0)
        for name, group in what_if.runs.items()
    }  # fmt: skip
    points = runs | {
        name: (of.tokens_per_question, of.accuracy, of.accuracy_low, of.accuracy_high)
        for name, of in reached.items()
    }
    up = fitted([100 * share for _, *shares in points.values() for share in shares],
                bottom, 10, steps=6, within=PERCENT)  # fmt: skip
    amounts = [amount for amount, *_ in points.values()]
    amounts += [x for of in curves if of.curve for x in of.curve.tokens_per_question]
    across = fitted_amounts(amounts, 48, width - 20)
    unit = "tokens per question" + (", log scale" if across.is_log else "")
    draw_grid(canvas, across, up, unit, 22 * len(keys))
    lines: list[Box] = []
    for (x, y), (right, top) in pairwise([runs[name][:2] for name in what_if.coin]):
        # Drawn point by point: on a logarithmic scale a random mix is a curve.
        path = [(across(x + step * (right - x) / 20), up(100 * (y + step * (top - y) / 20)))
                for step in range(21)]  # fmt: skip
        canvas.line(path, "grey-fill", 1.5, title=f"random mixes of {', '.join(what_if.coin)}")
        lines += boxes_of_line(path)
    for of, color in zip(curves, _CURVES, strict=False):
        lines += _draw_curve(canvas, across, up, of, color)
    for name, (amount, accuracy, low, high) in points.items():
        is_run = name in runs
        x, y = across(amount), up(100 * accuracy)
        ends = [(x, up(100 * low)), (x, up(100 * high))]
        of_n = f" of {what_if.runs[name].n:,}" if is_run else ""
        title = (
            f"{name}: {percent(accuracy)}{of_n} right "
            f"(95% interval {interval(low, high)}), {amount:,.0f} tokens per question"
        )
        canvas.line(ends, "blue-fill" if is_run else "text3", 1)
        lines += boxes_of_line(ends)
        canvas.dot(x, y, "blue-fill" if is_run else "text3", hollow=name not in runs, radius=5,
                   title=title)  # fmt: skip
    words = {name: shortened(name, 0.45 * width) for name in points}
    places = place_labels(
        [(across(x), up(100 * y)) for x, y, *_ in points.values()],
        [(width_of(word), TEXT + 3) for word in words.values()],
        (46, 2, width, bottom),
        lines=lines,
    )
    for word, place in zip(words.values(), places, strict=True):
        if place is not None:
            (left, top, _, low_end), leader = place
            if leader:
                canvas.line(leader, "text3", 0.75)
            canvas.text(left, (top + low_end) / 2, word)
    for row, (meaning, color, dotted) in enumerate(keys):
        y = _HEIGHT + 22 * row + 4
        canvas.line([(2, y), (26, y)], color, 1.5, dotted=dotted)
        canvas.text(36, y, shortened(meaning, width - 40, SMALL), "text2", size=SMALL)
    return canvas


def _draw_curve(
    canvas: Canvas, across: Scale, up: Scale, of: FamilyOutcome, color: str
) -> list[Box]:
    """Draw a family over its thresholds, with its band, and return what the line covers."""
    curve = of.curve
    assert curve is not None
    assert curve.band is not None
    steps = sorted(
        zip(curve.tokens_per_question, curve.accuracy, curve.thresholds, curve.band, strict=True)
    )
    path = [(across(x), up(100 * y)) for x, y, *_ in steps]
    low, high = ([(across(x), up(100 * ends[side])) for x, _, _, ends in steps] for side in (0, 1))
    canvas.area([*low, *reversed(high)], color, f"{of.name}: 95% interval at each threshold")
    title = f"{of.name}, over all thresholds: its best point is chosen in hindsight"
    canvas.line(path, color, 1.5, dotted=True, title=title)
    marked = set()
    for x, y, threshold, ends in steps:
        if (x, y) not in marked:  # of equal points, the lowest threshold is named
            marked.add((x, y))
            title = (f"{of.name}, from {threshold:.2f}, in hindsight: {percent(y)} right "
                     f"(95% interval {interval(*ends)}), {x:,.0f} tokens per question")  # fmt: skip
            canvas.dot(across(x), up(100 * y), color, radius=2, title=title)
    return boxes_of_line(path)


def _curves(what_if: WhatIf) -> list[FamilyOutcome]:
    """Return the families with thresholds that cross-validation ranks best."""
    return [of for of in what_if.families if of.curve is not None and of.curve.band is not None][
        : len(_CURVES)
    ]
