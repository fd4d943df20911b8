"""Figures of an audit: from first opinions to the decision, what turned it, and its controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import cos, pi

from mdagents.pages.canvas import SMALL, Canvas, Figure, fitted, shortened, width_of
from mdagents.pages.charts import HALF, draw_interval, draw_key, draw_vertical_axis, names_width
from mdagents.scoring.audit.audit import Audit, Caused
from mdagents.scoring.audit.controls import TAKES_AWAY, Control
from mdagents.scoring.audit.measures import TURNED, Turned
from mdagents.scoring.audit.observed import Side
from mdagents.scoring.formatting import interval, number, p_equation, percent, points

_SIDES = (Side.RIGHT, Side.SPLIT, Side.WRONG)
_COLORS = {Side.RIGHT: "green", Side.SPLIT: "grey", Side.WRONG: "orange"}
_STAGES = ("First opinions", "Last opinions", "Decision")
_BROAD = 500
_HEIGHT, _GAP, _BAR, _HEAD = 260, 14, 10, 36  # pixels
_STEPS = 24  # points of the edge of a band


def flow_figure(audit: Audit) -> Figure:
    """Show how majorities became decisions."""
    return Figure(
        "From first opinions to the decision",
        "Answers. Full color marks what the teams changed or settled; pale bands stayed.",
        partial(_flow, audit.flow),
        HALF,
    )


def _flow(flow: Mapping[str, int], width: int) -> Canvas:
    canvas = Canvas(width, _HEAD + _HEIGHT + 2 * _GAP + 8)
    paths = [(tuple(map(Side, name.split(">"))), count) for name, count in flow.items()]
    total = sum(count for _, count in paths) or 1
    scale = _HEIGHT / total
    left, right = (96, width - 108) if width >= _BROAD else (72, width - 84)
    columns = [left, (left + right - _BAR) / 2, right - _BAR]
    stacks = [Counter[Side]() for _ in _STAGES]
    for sides, count in paths:
        for stack, side in zip(stacks, sides, strict=True):
            stack[side] += count
    tops = [_tops(stack, scale) for stack in stacks]
    paths.sort(key=lambda path: [_SIDES.index(side) for side in path[0]])
    for step in (0, 1):
        leaves, arrives = dict(tops[step]), dict(tops[step + 1])
        ends = {}
        for sides, count in sorted(
            paths, key=lambda path: [_SIDES.index(path[0][step + 1]), *map(_SIDES.index, path[0])]
        ):
            ends[sides] = arrives[sides[step + 1]]
            arrives[sides[step + 1]] += count * scale
        for sides, count in paths:
            start, end, height = leaves[sides[step]], ends[sides], count * scale
            leaves[sides[step]] += height
            changed = sides[0] is not sides[2]
            color = f"{_COLORS[sides[2]]}-{'fill' if changed else 'soft'}"
            band = _band(columns[step] + _BAR, columns[step + 1], start, end, height)
            canvas.area(band, color, _title(sides, count), alpha=0.85 if changed else 0.7)
    for place, (x, stack) in enumerate(zip(columns, stacks, strict=True)):
        anchor = ("left", "center", "right")[place]
        at = (0.0, x + _BAR / 2, float(width))[place]
        canvas.text(at, 10, _STAGES[place], "text2", anchor=anchor)
        for side, count in stack.items():
            top, height = tops[place][side], count * scale
            title = f"{_STAGES[place]}: {count:,} {side}"
            canvas.rectangle(x, top, _BAR, max(height, 1), f"{_COLORS[side]}-fill", title)
            _label(canvas, place, (x, top + height / 2), side, count, total)
    return canvas


def _tops(stack: Mapping[Side, int], scale: float) -> dict[Side, float]:
    """Return the top of each part of a column in pixels."""
    tops, y = {}, float(_HEAD)
    for side in _SIDES:
        tops[side] = y
        if stack.get(side):
            y += stack[side] * scale + _GAP
    return tops


def _band(
    left: float, right: float, start: float, end: float, height: float
) -> list[tuple[float, float]]:
    """Return the outline of a band that bends from one height to another."""
    steps = [step / _STEPS for step in range(_STEPS + 1)]
    upper = [
        (left + (right - left) * t, start + (end - start) * (1 - cos(pi * t)) / 2) for t in steps
    ]
    return [*upper, *((x, y + height) for x, y in reversed(upper))]


def _label(
    canvas: Canvas, place: int, at: tuple[float, float], side: Side, count: int, total: int
) -> None:
    x, y = at
    color = {"green": "green", "orange": "orange"}.get(_COLORS[side], "text2")
    if place == 1:
        _plate(canvas, x + _BAR + 4, y, f"{count:,}", color)
        return
    name = str(side) if side is Side.SPLIT else f"{side} majority" if place == 0 else str(side)
    name = name if place or canvas.width >= _BROAD else str(side)
    anchor, at_x = ("right", x - 8) if place == 0 else ("left", x + _BAR + 8)
    words = f"{count:,}" if place == 0 else f"{count:,} · {percent(count / total)}"
    canvas.text(at_x, y - 7, shortened(name, 96, SMALL), color, anchor=anchor, size=SMALL)
    canvas.text(at_x, y + 8, words, color, anchor=anchor, size=SMALL, bold=True)


def _plate(canvas: Canvas, x: float, y: float, text: str, color: str) -> None:
    """Write a small text on a plate in the color of the page, over lines and bands."""
    canvas.rectangle(x, y - 8, width_of(text, SMALL) + 6, 16, "page")
    canvas.text(x + (3 if x else 0), y, text, color, size=SMALL)


def _title(sides: Sequence[Side], count: int) -> str:
    return f"{count:,}: {sides[0]} at first, {sides[1]} at last, decision {sides[2]}"


def turned_figure(turned: Mapping[str, Caused]) -> Figure:
    """Show what turned majorities, to wrong on the left and to right on the right."""
    return Figure(
        "What turned the majorities",
        "What the experts who changed had read just before. One change can count in several rows.",
        partial(_turned, turned),
        HALF,
    )


def _turned(turned: Mapping[str, Caused], width: int) -> Canvas:
    is_broad = width >= _BROAD  # else names are above the bars
    row, names = (40, names_width([*TURNED.values()], width)) if is_broad else (56, 0.0)
    canvas = Canvas(width, 28 + row * len(Turned))
    most = max([1, *(max(of.to_right, of.to_wrong) for of in turned.values())])
    middle = names + (width - names) / 2
    room = (width - names) / 2 - 32
    canvas.text(middle - 12, 10, "to wrong", "orange", anchor="right", size=SMALL)
    canvas.text(middle + 12, 10, "to right", "green", size=SMALL)
    canvas.line([(middle, 20), (middle, canvas.height)], "text3")
    for place, one in enumerate(Turned):
        y = 28 + row * (place + 1) - 20
        of = turned[one]
        if is_broad:
            canvas.text(0, y, shortened(TURNED[one], names - 8))
        else:
            _plate(canvas, 0, y - 20, TURNED[one], "text2")
        for count, sign, color, words in (
            (of.to_wrong, -1, "orange", "to wrong"),
            (of.to_right, 1, "green", "to right"),
        ):
            length = room * count / most
            x = middle - length if sign < 0 else middle
            if count:
                title = f"{TURNED[one]}: {count:,} {words}"
                canvas.rectangle(x, y - 9, length, 18, f"{color}-fill", title)
            anchor = "right" if sign < 0 else "left"
            canvas.text(middle + sign * (length + 8), y, f"{count:,}", color, anchor=anchor)
    return canvas


def controls_figure(audit: Audit) -> Figure:
    """Show the difference of each control from the run."""
    return Figure(
        "Controls",
        "The same questions with one thing taken away: points against this run, paired, with 95% "
        "interval.",
        partial(_controls, audit.controls),
        HALF,
    )


def _controls(controls: Sequence[Control], width: int) -> Canvas:
    row, top = 52, 8
    canvas = Canvas(width, top + row * len(controls) + 54)
    left = names_width([control.peers for control in controls], width)
    right = width - (168 if width >= _BROAD else 56)
    ends = [100 * end for of in controls for end in (of.low, of.difference, of.high)]
    scale = fitted([0, *ends], left, right - 12, steps=5)
    bottom = canvas.height - 54
    draw_vertical_axis(canvas, scale, top, bottom, form="+g")
    canvas.line([(scale(0), top), (scale(0), bottom)], "text3", 1.5)
    for place, of in enumerate(controls):
        y = top + row * place + 22
        span = interval(of.low, of.high, "+.1f")
        title = (
            f"{of.peers}, {TAKES_AWAY.get(of.peers, '')}: {points(of.difference, '+.1f')} points "
            f"(95% interval {span}), {p_equation(of.mcnemar_p_holm)}"
        )
        bold = of.is_significant
        canvas.text(0, y, of.peers, bold=bold)
        low, middle, high = (scale(100 * end) for end in (of.low, of.difference, of.high))
        draw_interval(canvas, low, middle, high, y, title, is_filled=bold)
        canvas.text(width, y, points(of.difference, "+.1f"), bold=bold, anchor="right")
        if width >= _BROAD:
            tokens = number(of.tokens_per_question, ",.0f")
            told = f"{percent(of.accuracy)} right · {tokens} tokens"
            canvas.text(width, y + 16, told, "text3", anchor="right", size=SMALL)
        what = TAKES_AWAY.get(of.peers, "")
        if width_of(what, SMALL) < right:
            _plate(canvas, 0, y + 16, what, "text3")
    draw_key(canvas, "significant after Holm", "not significant")
    return canvas
