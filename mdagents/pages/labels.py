"""Places labels beside marks so that they cover no label, mark or line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import ceil, hypot

Box = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels."""

Point = tuple[float, float]

GAP = 9
"""Pixels between a mark's center and a label beside it."""

_STEP = 8  # pixels between candidate places
_RINGS = 12
_LINE = 1.5  # half the width that a line takes


def boxes_of_line(points: Sequence[Point]) -> list[Box]:
    """Return boxes that cover a line through points."""
    boxes = []
    for (x1, y1), (x2, y2) in pairwise(points):
        is_straight = abs(x1 - x2) < 1 or abs(y1 - y2) < 1
        parts = 1 if is_straight else max(1, ceil(hypot(x2 - x1, y2 - y1) / 6))
        for part in range(parts):
            a, b = part / parts, (part + 1) / parts
            xs = sorted((x1 + a * (x2 - x1), x1 + b * (x2 - x1)))
            ys = sorted((y1 + a * (y2 - y1), y1 + b * (y2 - y1)))
            boxes.append((xs[0] - _LINE, ys[0] - _LINE, xs[1] + _LINE, ys[1] + _LINE))
    return boxes


_RADIUS = 6  # pixels of a mark


def overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes share an area."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def place_labels(
    marks: Sequence[Point], sizes: Sequence[Point], bounds: Box, *,
    lines: Sequence[Box] = (),
) -> list[tuple[Box, Sequence[Point]] | None]:  # fmt: skip
    """Search a place for the label of each mark, the nearest one first.

    Args:
        marks: Centers of the marks.
        sizes: (width, height) of their labels.
        bounds: Area in which labels lie.
        lines: Boxes that labels avoid where they can, as leaders avoid labels.

    Returns:
        For each label its box and its leader, a line of two points, or none if the label is beside
        its mark; None where no place is free.
    """
    taken = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in marks]
    labels: list[Box] = []
    leaders: list[Box] = []
    found: list[tuple[Box, Sequence[Point]] | None] = [None] * len(marks)
    for number in sorted(range(len(marks)), key=lambda n: marks[n]):
        mark, size = marks[number], sizes[number]
        for avoided, crossed in (((*lines, *leaders), labels), (leaders, labels), ((), ())):
            found[number] = next(
                (
                    (box, leader)
                    for box, leader in _candidates(mark, size, bounds)
                    if not any(overlap(box, other) for other in (*taken, *labels, *avoided))
                    and not any(
                        overlap(part, label) for part in boxes_of_line(leader) for label in crossed
                    )
                ),
                None,
            )
            if found[number]:
                break
        if placed := found[number]:
            labels.append(placed[0])
            leaders += boxes_of_line(placed[1])
    return found


def _candidates(mark: Point, size: Point, bounds: Box) -> Iterator[tuple[Box, Sequence[Point]]]:
    """Yield boxes with their leaders, nearest first."""
    (x, y), (width, height) = mark, size
    beside = [(x + GAP, y - height / 2), (x - GAP - width, y - height / 2),
              (x - width / 2, y - GAP - height), (x - width / 2, y + GAP)]  # fmt: skip
    steps = range(-_RINGS, _RINGS + 1)
    moved = []
    for rise, shift in product(steps, steps):
        left = x + GAP if shift >= 0 else x - GAP - width
        if rise:
            moved.append((left + shift * _STEP, y + rise * _STEP - height / 2))
    moved.sort(key=lambda at: _distance(mark, (*at, at[0] + width, at[1] + height)))
    for place, (left, top) in enumerate([*beside, *moved]):
        box = (left, top, left + width, top + height)
        if left < bounds[0] or top < bounds[1] or box[2] > bounds[2] or box[3] > bounds[3]:
            continue
        yield box, [] if place < len(beside) else [_edge(mark, box), _nearest(mark, box)]


def _edge(mark: Point, box: Box) -> Point:
    """Return where a leader to a box leaves its mark."""
    share = min(1.0, (GAP - 2) / max(_distance(mark, box), 1.0))
    x, y = _nearest(mark, box)
    return mark[0] + share * (x - mark[0]), mark[1] + share * (y - mark[1])


def _nearest(mark: Point, box: Box) -> Point:
    """Return the point of a box that is nearest to a mark."""
    x, y = mark
    return min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])


def _distance(mark: Point, box: Box) -> float:
    x, y = _nearest(mark, box)
    return hypot(x - mark[0], y - mark[1])
