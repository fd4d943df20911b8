"""Figures of a run and of a comparison, each drawn for the width that it is shown at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

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
    tick_text,
    width_of,
)
from mdagents.pages.labels import Box, boxes_of_line, place_labels
from mdagents.scoring.agreement import Agreement
from mdagents.scoring.formatting import (
    chance_in_words,
    interval,
    number,
    p_equation,
    percent,
    points,
)
from mdagents.scoring.group import Group
from mdagents.scoring.pairs import Pair
from mdagents.scoring.statistics import SMALLEST_FOR_RATES, Calibration
from mdagents_llm.text import counted

HALF, QUARTER, FULL = (368, 572), (280,), (368, 760, 1192)
"""Widths in pixels of a figure that takes a half, a quarter or the whole of a page."""

_BROAD = 500  # from this width on there is room for a column of counts
_ROW, _TOP, _AXIS = 52, 8, 26  # pixels: height of a row, above the first, below the last


def accuracy_figure(title: str, groups: Mapping[str, Group], total: str = "") -> Figure:
    """Show the accuracy of groups with its 95% interval, and chance.

    Args:
        title: Name of the figure.
        groups: Name -> figures.
        total: Name of the group that is set apart; empty for none.
    """
    draw = partial(_accuracy, groups, total)
    return Figure(title, "Right answers, with 95% interval.", draw, HALF)


def _accuracy(groups: Mapping[str, Group], total: str, width: int) -> Canvas:
    ends = [
        100 * end
        for group in groups.values()
        for end in (group.accuracy_low, group.accuracy_high, group.chance)
        if end is not None
    ]
    canvas = Canvas(width, _TOP + _ROW * len(groups) + _AXIS)
    left, right = names_width(list(groups), width), width - (112 if width >= _BROAD else 60)
    scale = fitted(ends, left, right - 8, within=PERCENT)
    bottom = canvas.height - _AXIS
    draw_vertical_axis(canvas, scale, _TOP, bottom, "%")
    overall = groups.get(total) or next(iter(groups.values()))
    if overall.chance is not None:
        at = scale(100 * overall.chance)
        canvas.line([(at, _TOP), (at, bottom)], "text3", 1.5, dotted=True,
                    title=chance_in_words(overall.chance))  # fmt: skip
        canvas.text(at + 6, _TOP + 6, "chance", "text3", size=SMALL)
    for place, (name, group) in enumerate(groups.items()):
        y = _TOP + _ROW * place + 22
        is_total = name == total
        if is_total and place:
            top = _TOP + _ROW * place
            canvas.line([(0, top), (width, top)], "line")
        label = shortened(name, left - 12)
        canvas.text(0, y - 4, label, bold=is_total)
        canvas.text(0, y + 12, f"{group.questions:,} questions", "text3", size=SMALL)
        if group.accuracy is None or group.accuracy_low is None or group.accuracy_high is None:
            continue
        low, middle, high = (
            scale(100 * v) for v in (group.accuracy_low, group.accuracy, group.accuracy_high)
        )
        draw_interval(
            canvas, low, middle, high, y, _title(name, group), radius=6 if is_total else 5
        )
        canvas.text(width, y - 4, percent(group.accuracy), bold=True, anchor="right")
        if width >= _BROAD:
            canvas.text(width, y + 12, f"{group.correct:,} of {group.n:,}", "text3",
                        anchor="right", size=SMALL)  # fmt: skip
        texts = [points(group.accuracy_low), points(group.accuracy_high)]
        apart = sum(width_of(text, SMALL) for text in texts) / 2 + 8
        if high - low < apart:
            low, high = (low + high - apart) / 2, (low + high + apart) / 2
        for x, text in zip((low, high), texts, strict=True):
            canvas.text(x, y + 17, text, "text3", anchor="center", size=SMALL)
    return canvas


def changes_figure(panel: Agreement) -> Figure:
    """Show the decisions by whether the first majority was right."""
    return Figure(
        "Where the teams changed the outcome",
        "Decision by first majority. Full color marks what the debate changed.",
        partial(_changes, panel),
        HALF,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a bar: a number of questions."""

    count: int
    words: str
    color: str
    is_change: bool

    @property
    def label(self) -> str:
        return f"{self.count:,} {self.words}"


def _changes(panel: Agreement, width: int) -> Canvas:
    rows = {
        "Majority right": (
            _Part(panel.right_majority - panel.overturned, "stayed right", "green", False),
            _Part(panel.overturned, "overturned", "orange", True),
        ),
        "Majority wrong": (
            _Part(panel.rescued, "rescued", "green", True),
            _Part(panel.wrong_majority - panel.rescued, "stayed wrong", "orange", False),
        ),
        "Split": (
            _Part(panel.no_majority_right, "settled right", "green", True),
            _Part(panel.no_majority - panel.no_majority_right, "settled wrong", "orange", True),
        ),
    }
    is_broad = width >= _BROAD
    left, row_height, bar = (112, 72, 28) if is_broad else (0, 92, 28)
    canvas = Canvas(width, row_height * len(rows) + 8)
    most = max(sum(part.count for part in parts) for parts in rows.values()) or 1
    for place, (name, parts) in enumerate(rows.items()):
        count = sum(part.count for part in parts)
        top = row_height * place + (20 if is_broad else 40)
        answers = counted(count, "answer")
        if is_broad:
            canvas.text(0, top + 6, name)
            canvas.text(0, top + 22, answers, "text3", size=SMALL)
        else:
            canvas.text(0, top - 32, name, bold=True)
            canvas.text(width, top - 32, answers, "text3", anchor="right", size=SMALL)
        _stack(canvas, name, parts, left, top, (width - left - 4) / most, bar)
    return canvas


def _stack(
    canvas: Canvas, name: str, parts: Sequence[_Part], left: float, top: float, scale: float,
    height: float,
) -> None:  # fmt: skip
    """Draw a stacked bar with a label in, above or beside each part."""
    x, above = left, -12.0  # right end of the labels above the bar
    shown = [part for part in parts if part.count]
    for part in shown:
        width = max(part.count * scale - 2, 2)
        fill = f"{part.color}-fill" if part.is_change else f"{part.color}-soft"
        canvas.rectangle(x, top, width, height, fill, f"{name}: {part.label}")
        needed = width_of(part.label, bold=part.is_change)
        is_last = part is shown[-1]
        if not part.is_change and needed + 16 <= width:
            canvas.text(x + 12, top + height / 2, part.label, part.color)
        elif is_last and x + width + 8 + needed <= canvas.width:
            canvas.text(x + width + 8, top + height / 2, part.label, part.color,
                        bold=part.is_change)  # fmt: skip
        else:
            at = max(min(x, canvas.width - needed), above + 12)
            canvas.text(at, top - 10, part.label, part.color, bold=part.is_change)
            above = at + needed
        x += width + 2


def agreement_figure(groups: Mapping[str, Group]) -> Figure:
    """Show right and wrong decisions by how many experts agreed at first."""
    note = "Answers by first opinions; share right."
    return Figure("Agreement at first", note, partial(_agreement, groups), QUARTER)


def _agreement(groups: Mapping[str, Group], width: int) -> Canvas:
    canvas = Canvas(width, 56 * len(groups) + 8)
    most, left, right = max(group.n for group in groups.values()), 68.0, 52.0
    for place, (name, group) in enumerate(groups.items()):
        top = 56 * place + 16
        canvas.text(0, top + 12, name)
        scale, x = (width - left - right - 2) / most, left
        for count, what in ((group.correct, "right"), (group.n - group.correct, "wrong")):
            color = "green" if what == "right" else "orange"
            if not count:
                continue
            part = max(count * scale, 2)
            canvas.rectangle(x, top, part, 24, f"{color}-soft", f"{name}: {count:,} {what}")
            label = f"{count:,} right" if what == "right" else f"{count:,}"
            label = label if width_of(label) + 12 <= part else f"{count:,}"
            if width_of(label) + 8 <= part:
                canvas.text(x + part / 2, top + 12, label, color, anchor="center")
            x += part + 2
        is_small = group.questions < SMALLEST_FOR_RATES
        figure = f"{group.correct} of {group.n}" if is_small else percent(group.accuracy)
        canvas.text(x + 6, top + 12, figure, bold=True)
    return canvas


def calibration_figure(calibration: Calibration) -> Figure:
    """Show stated confidence against accuracy."""
    note = "Stated confidence against accuracy, %. Area of a point: answers."
    return Figure("Calibration", note, partial(_calibration, calibration), QUARTER)


def _calibration(calibration: Calibration, width: int) -> Canvas:
    bins = [b for b in calibration.bins if b.n]
    stated = [100 * (b.confidence or 0) for b in bins]
    reached = [100 * (b.accuracy or 0) for b in bins]
    canvas = Canvas(width, 204)
    across, up = (fitted([*stated, *reached], *ends, steps=4, within=PERCENT)
                  for ends in ((36, width - 12), (174, 10)))  # fmt: skip
    draw_grid(canvas, across, up)
    diagonal = [(across(end), up(end)) for end in (across.low, across.high)]
    canvas.line(diagonal, "text3", 1.5, dotted=True, title="calibrated")
    marks = [(across(x), up(y)) for x, y in zip(stated, reached, strict=True)]
    canvas.line(marks, "blue-fill", 2)
    radii = [2 + 6 * (b.n / calibration.n) ** 0.5 for b in bins]
    for mark, radius, of_bin in zip(marks, radii, bins, strict=True):
        canvas.dot(*mark, "blue-fill", radius=radius,
                   title=f"stated {percent(of_bin.confidence)}, right {percent(of_bin.accuracy)}: "
                   f"{of_bin.n:,} answers")  # fmt: skip
    middle = (across((across.low + across.high) / 2), up((up.low + up.high) / 2))
    obstacles = [*boxes_of_line(marks), *boxes_of_line(diagonal)]
    obstacles += [(x - r, y - r, x + r, y + r) for (x, y), r in zip(marks, radii, strict=True)]
    size = (width_of("calibrated", SMALL), SMALL)
    (place,) = place_labels([middle], [size], (38, 10, width - 4, 172), lines=obstacles)
    if place is not None:
        (left, top, _, bottom), leader = place
        canvas.text(left, (top + bottom) / 2, "calibrated", "text3", size=SMALL)
        if leader:
            canvas.line(leader, "text3", 0.75)
    return canvas


def position_figure(by_gold: Mapping[str, Group], answered: Mapping[str, int]) -> Figure:
    """Show how often each letter is the right option (ring) and how often it is given (dot)."""
    note = "Answers by letter: right option (ring) and answer given (dot)."
    return Figure("Answer position", note, partial(_positions, by_gold, answered), QUARTER)


def _positions(by_gold: Mapping[str, Group], answered: Mapping[str, int], width: int) -> Canvas:
    letters = sorted({*by_gold, *answered})
    counts = {letter: (by_gold[letter].n if letter in by_gold else 0, answered.get(letter, 0))
              for letter in letters}  # fmt: skip
    canvas = Canvas(width, 36 * len(letters) + 44)
    across = fitted([n for pair in counts.values() for n in pair], 28, width - 16, steps=4)
    draw_vertical_axis(canvas, across, 8, canvas.height - _AXIS)
    for place, (letter, (right, given)) in enumerate(counts.items()):
        y = 36 * place + 28
        canvas.text(0, y, letter, bold=True)
        canvas.line([(across(right), y), (across(given), y)], "grey-fill", 2)
        canvas.dot(across(given), y, "blue-fill", title=f"{letter} was answered {given:,} times")
        canvas.dot(across(right), y, "grey-fill", hollow=True, radius=4.5,
                   title=f"{letter} was the right option {right:,} times")  # fmt: skip
    return canvas


def cost_figure(
    title: str, groups: Mapping[str, Group], amounts: Mapping[str, float], unit: str,
    front: Sequence[str] = (), *, widths: Sequence[int] = FULL,
) -> Figure:  # fmt: skip
    """Show an amount per question against accuracy, with the frontier of several runs.

    Args:
        title: Name of the figure.
        groups: Name -> figures.
        amounts: Name -> amount per question; groups without one are left out.
        unit: Name of the amount.
        front: Names of the groups on the frontier, which a line joins.
        widths: Widths of the figure in pixels.
    """
    known = {name: (amounts[name], group) for name, group in groups.items() if name in amounts}
    note = "Accuracy with 95% interval."
    if front:
        note = "The line is the frontier: no cheaper run is as accurate. Bars are 95% intervals."
    return Figure(title, note, partial(_cost, known, unit, list(front)), widths)


def _cost(
    known: Mapping[str, tuple[float, Group]], unit: str, front: Sequence[str], width: int
) -> Canvas:
    is_small = width < 300
    height = 204 if is_small else 320 if width < _BROAD else 400
    canvas = Canvas(width, height)
    legend = 24 if front else 0
    up = fitted([100 * (end or 0) for _, group in known.values()
                 for end in (group.accuracy_low, group.accuracy_high)],
                height - 46 - legend, 10, steps=4 if is_small else 6, within=PERCENT)  # fmt: skip
    across = fitted_amounts([value for value, _ in known.values()], 48, width - 20)
    draw_grid(canvas, across, up, unit + (", log scale" if across.is_log else ""), legend)
    marks, lines = {}, list[Box]()
    for name, (value, group) in known.items():
        x, low, middle, high = across(value), *(up(100 * (end or 0)) for end in (
            group.accuracy_low, group.accuracy, group.accuracy_high))  # fmt: skip
        is_best = name in front or not front
        title = f"{_title(name, group)}, {value:,.4g} {unit}"
        canvas.line([(x, low), (x, high)], "blue-fill" if is_best else "grey-fill",
                    2 if not front else 1, title=title)  # fmt: skip
        lines += boxes_of_line([(x, low), (x, high)])
        marks[name] = (x, middle)
    steps = _staircase([marks[name] for name in front if name in marks], across.end)
    if steps:
        canvas.line(steps, "blue-fill", 1.25)
        lines += boxes_of_line(steps)
    for name, mark in marks.items():
        is_best = name in front or not front
        canvas.dot(*mark, "blue-fill" if is_best else "grey-fill", hollow=not is_best,
                   title=_title(name, known[name][1]))  # fmt: skip
    words = {name: shortened(name, 0.45 * width) for name in known}
    if not is_small:
        words = {name: f"{word} {percent(known[name][1].accuracy)}" for name, word in words.items()}
    places = place_labels(
        list(marks.values()),
        [(width_of(words[name], bold=name in front), TEXT + 3) for name in marks],
        (46, 2, width, height - 46 - legend),
        lines=lines,
    )
    for name, place in zip(marks, places, strict=True):
        if place is None:  # the title of the mark has it
            continue
        (left, top, _, bottom), leader = place
        if leader:
            canvas.line(leader, "text3", 0.75)
        canvas.text(left, (top + bottom) / 2, words[name], bold=name in front)
    if front:
        draw_key(canvas, "on the frontier", "a cheaper run is as accurate")
    return canvas


def _staircase(marks: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Return the line of the best accuracy for at most an amount."""
    steps: list[tuple[float, float]] = []
    for x, y in sorted(marks):
        if steps:
            steps.append((x, steps[-1][1]))
        steps.append((x, y))
    return [*steps, (end, steps[-1][1])] if steps else []


@dataclass(frozen=True, slots=True)
class Difference:
    """A run compared with the baseline of a forest plot."""

    name: str
    pair: Pair
    sign: int
    """1 if the pair is the run minus the baseline, −1 if it is the reverse."""
    is_significant: bool

    @property
    def values(self) -> tuple[float, float, float]:
        """Lower end, difference and upper end in points."""
        of = self.pair
        ends = (of.difference_low, of.difference, of.difference_high)
        low, middle, high = sorted(100 * self.sign * value + 0.0 for value in ends)
        return low, middle, high

    @property
    def now_right(self) -> int:
        """Questions that only the run got right."""
        return len(self.pair.wrong_to_right if self.sign > 0 else self.pair.right_to_wrong)

    @property
    def now_wrong(self) -> int:
        """Questions that only the baseline got right."""
        return len(self.pair.right_to_wrong if self.sign > 0 else self.pair.wrong_to_right)


def forest_figure(baseline: str, differences: Sequence[Difference], place: str = "") -> Figure:
    """Show the differences of runs from a baseline with their 95% intervals."""
    return Figure(
        f"{place}Difference from {baseline}",
        "Points of accuracy on the same questions, paired, with 95% interval.",
        partial(_forest, baseline, differences),
        FULL,
        choice=baseline,
    )


def _forest(baseline: str, differences: Sequence[Difference], width: int) -> Canvas:
    row, top = 40, 32
    canvas = Canvas(width, top + row * len(differences) + _AXIS + 28)
    names = [of.name for of in differences]
    columns = 360 if width > 1000 else 200 if width >= _BROAD else 52
    left, right = names_width(names, width), width - columns
    values = [value for of in differences for value in of.values]
    scale = fitted([0, *values], left, right - 12, steps=7 if width >= _BROAD else 4)
    bottom = canvas.height - _AXIS - 28
    draw_vertical_axis(canvas, scale, top - 8, bottom, form="+g")
    zero = scale(0)
    canvas.line([(zero, top - 8), (zero, bottom)], "text3", 1.5)
    worse, better = f"← {shortened(baseline, 90, SMALL)} better", "other run better →"
    if zero - width_of(worse, SMALL) - 8 > 0:
        canvas.text(zero - 8, 10, worse, "text3", anchor="right", size=SMALL)
    if zero + width_of(better, SMALL) + 8 < width:
        canvas.text(zero + 8, 10, better, "text3", size=SMALL)
    if width > 1000:
        canvas.text(width - 150, 10, "p", "text3", anchor="right", size=SMALL)
        canvas.text(width - 66, 10, "now wrong", "text3", anchor="right", size=SMALL)
        canvas.text(width, 10, "now right", "text3", anchor="right", size=SMALL)
    for place, of in enumerate(differences):
        y = top + row * place + 14
        bold = of.is_significant
        low, middle, high = of.values
        span = f"{number(low, '+z.1f')} to {number(high, '+z.1f')}"
        figure = number(middle, "+z.1f")
        canvas.text(0, y, shortened(of.name, left - 12), bold=bold)
        title = (
            f"{of.name} − {baseline}: {figure} points (95% interval {span}), "
            f"{p_equation(of.pair.p)}"
        )
        draw_interval(canvas, scale(low), scale(middle), scale(high), y, title, is_filled=bold)
        if width < _BROAD:
            canvas.text(width, y, figure, bold=bold, anchor="right")
            continue
        canvas.text(right + (150 if width > 1000 else columns), y, f"{figure} ({span})", bold=bold,
                    anchor="right")  # fmt: skip
        if width > 1000:
            canvas.text(width - 150, y, p_equation(of.pair.p)[2:].removeprefix("= "), "text2",
                        anchor="right")  # fmt: skip
            canvas.text(width - 66, y, f"{of.now_wrong:,}", "orange", anchor="right")
            canvas.text(width, y, f"{of.now_right:,}", "green", anchor="right")
    draw_key(canvas, "significant after Holm", "not significant")
    return canvas


def draw_key(canvas: Canvas, filled: str, hollow: str) -> None:
    """Explain filled and hollow marks below a figure."""
    y, x = canvas.height - 10, 6.0
    for words, is_hollow in ((filled, False), (hollow, True)):
        canvas.dot(x, y, "grey-fill" if is_hollow else "blue-fill", hollow=is_hollow)
        canvas.text(x + 12, y, words, "text2", size=SMALL)
        x += width_of(words, SMALL) + 36


def draw_interval(
    canvas: Canvas, low: float, middle: float, high: float, y: float, title: str, *,
    radius: float = 5, is_filled: bool = True,
) -> None:  # fmt: skip
    """Draw an estimate as a dot and its interval as a line; a ring if it is not significant."""
    color = "blue-fill" if is_filled else "grey-fill"
    canvas.line([(low, y), (high, y)], color, 2)
    canvas.dot(middle, y, color, radius=radius, hollow=not is_filled, title=title)


def _title(name: str, group: Group) -> str:
    ends = interval(group.accuracy_low, group.accuracy_high)
    return f"{name}: {percent(group.accuracy)} of {group.n:,} right (95% interval {ends})"


def names_width(names: Sequence[str], width: int) -> float:
    """Return the width of the column of names, at most a third of the figure."""
    longest = max([width_of(name) for name in names] + [width_of("1,000 questions", SMALL)])
    return min(longest + 16, width / 3)


def draw_vertical_axis(
    canvas: Canvas, scale: Scale, top: float, bottom: float, unit: str = "", form: str = ""
) -> None:
    """Draw grid lines with their values below."""
    for tick in scale.ticks:
        x = scale(tick)
        canvas.line([(x, top), (x, bottom)], "line")
        canvas.text(x, bottom + 16, tick_text(tick, "" if not tick else form) + unit, "text3",
                    anchor="center", size=SMALL)  # fmt: skip


def draw_grid(canvas: Canvas, across: Scale, up: Scale, unit: str = "", legend: float = 0) -> None:
    """Draw horizontal grid lines, and the values of both axes.

    Args:
        canvas: Where to draw.
        across: Horizontal scale.
        up: Vertical scale, in percent.
        unit: Name of the horizontal axis.
        legend: Height in pixels that is left below that name.
    """
    for tick in up.ticks:
        canvas.line([(across.start, up(tick)), (across.end, up(tick))], "line")
        canvas.text(across.start - 6, up(tick), f"{tick:g}%", "text3", anchor="right", size=SMALL)
    bottom = max(up.start, up.end)
    for tick in across.ticks:
        x = across(tick)
        canvas.line([(x, bottom), (x, bottom + 4)], "text3")
        canvas.text(x, bottom + 16, tick_text(tick), "text3", anchor="center", size=SMALL)
    if unit:
        middle = (across.start + across.end) / 2
        canvas.text(middle, canvas.height - legend - 10, unit, "text3", anchor="center", size=SMALL)
