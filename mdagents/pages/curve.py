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
    note = "Dots are runs with 95% intervals. The grey line is the best random mix of two runs."
    return Figure("Accuracy against tokens", note, partial(_policies, what_if), FULL)


def _policies(what_if: WhatIf, width: int) -> Canvas:
    curves = _curves(what_if)
    keys = len(curves) + 1
    canvas = Canvas(width, _HEIGHT + 22 * keys)
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
    draw_grid(canvas, across, up, unit, 22 * keys)
    lines: list[Box] = []
    for (x, y), (right, top) in pairwise([runs[name][:2] for name in what_if.coin]):
        # Drawn point by point: on a logarithmic scale a random mix is a curve.
        path = [(across(x + step * (right - x) / 20), up(100 * (y + step * (top - y) / 20)))
                for step in range(21)]  # fmt: skip
        canvas.line(path, "grey-fill", 1.5, title=f"random mixes of {', '.join(what_if.coin)}")
        lines += boxes_of_line(path)
    for of, color in zip(curves, _CURVES, strict=False):
        assert of.curve is not None
        steps = sorted(zip(of.curve.tokens_per_question, of.curve.accuracy, strict=True))
        path = [(across(x), up(100 * y)) for x, y in steps]
        canvas.line(path, color, 1.5, dotted=True, title=f"{of.name}, over all thresholds")
        lines += boxes_of_line(path)
    for name, (amount, accuracy, low, high) in points.items():
        is_run = name in runs
        x, y = across(amount), up(100 * accuracy)
        ends = [(x, up(100 * low)), (x, up(100 * high))]
        title = (f"{name}: {percent(accuracy)} right (95% interval {interval(low, high)}), "
                 f"{amount:,.0f} tokens per question")  # fmt: skip
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
    for row, (words_, color, dotted) in enumerate(
        [("best random mix of two runs", "grey-fill", False),
         *((f"{of.name} (thresholds in hindsight)", color, True)
           for of, color in zip(curves, _CURVES, strict=False))]
    ):  # fmt: skip
        y = _HEIGHT + 22 * row + 4
        canvas.line([(2, y), (26, y)], color, 1.5, dotted=dotted)
        canvas.text(36, y, shortened(words_, width - 40, SMALL), "text2", size=SMALL)
    return canvas


def _curves(what_if: WhatIf) -> list[FamilyOutcome]:
    """Return the families with thresholds that cross-validation ranks best."""
    return [of for of in what_if.families if of.curve is not None and of.curve.band is not None][
        : len(_CURVES)
    ]
