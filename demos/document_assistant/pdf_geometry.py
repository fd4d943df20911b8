"""Places on a page of a PDF: matrices and boxes."""

from __future__ import annotations

from typing import Any

Matrix = tuple[float, float, float, float, float, float]
Box = tuple[float, float, float, float]
"""Left, low, right, high."""

SAME: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
EVERYWHERE: Box = (-1e9, -1e9, 1e9, 1e9)
NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)
_REST = 1e-6


def product(first: Any, second: Matrix) -> Matrix:
    """Return a matrix applied before another; the other alone if the first is broken."""
    try:
        a, b, c, d, x, y = map(float, first)
    except (TypeError, ValueError):
        return second
    e, f, g, h, dx, dy = second
    return (
        *(a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h),
        *(x * e + y * g + dx, x * f + y * h + dy),
    )


def placed(box: Box, matrix: Matrix) -> Box:
    """Return the upright box around a box that a matrix moves."""
    left, low, right, high = box
    a, b, c, d, dx, dy = matrix
    xs = [a * x + c * y + dx for x in (left, right) for y in (low, high)]
    ys = [b * x + d * y + dy for x in (left, right) for y in (low, high)]
    return min(xs), min(ys), max(xs), max(ys)


def is_upright(matrix: Matrix) -> bool:
    """Return whether a box that a matrix moves stays an upright box."""
    a, b, c, d, *_ = map(abs, matrix)
    straight, turned = a + d, b + c  # a quarter turn leaves a rest such as 6e-17
    return min(straight, turned) <= _REST * max(straight, turned)


def common(one: Box, other: Box) -> Box:
    """Return the part of a box that is in another; its right is left of its left if none is."""
    return (
        *(max(one[0], other[0]), max(one[1], other[1])),
        *(min(one[2], other[2]), min(one[3], other[3])),
    )


def has_area(box: Box) -> bool:
    """Return whether a box is not empty."""
    return box[0] < box[2] and box[1] < box[3]


def area(box: Any) -> float:
    """Return the area of a box."""
    left, low, right, high = map(float, box)
    return (right - left) * (high - low)


def shown_part(page: Any) -> Box:
    """Return the part of a page that is shown: its crop box within its media box."""
    boxes: list[Box] = []
    for name in ("mediabox", "cropbox"):
        try:
            left, low, right, high = map(float, getattr(page, name))
        except (TypeError, ValueError):
            continue  # a broken box
        box = (min(left, right), min(low, high), max(left, right), max(low, high))
        inner = common(boxes[-1], box) if boxes else box
        if has_area(inner):
            boxes.append(inner)
    return boxes[-1] if boxes else EVERYWHERE
