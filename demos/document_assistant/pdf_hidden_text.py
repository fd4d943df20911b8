"""Reads the text of a PDF page that is drawn, without text that a reader cannot see."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from demos.document_assistant.marked_text import HIDDEN_TEXT
from demos.document_assistant.pdf_layers import Layers
from demos.document_assistant.pdf_objects import resolved

_INVISIBLE = 3
"""Mode of drawing text: neither filled nor outlined, and nothing is painted through it."""
_SCAN = 0.5
"""Part of the page that pictures cover on a scan, whose invisible text was recognized in them."""
_MOST_PICTURES = 100
"""Number of pictures, the largest, in which invisible text is looked for."""
_MARGIN = 0.25
"""Part of the width of a picture by which text that belongs to it may begin left of it."""
_SHOWS = (b"Tj", b"TJ", b"'", b'"')
_GAPS = " \t\r\n\0\x03\xa0"
"""Characters of white space; 0003 is the space of many fonts with glyphs of two bytes."""
_SAME = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_Matrix = tuple[float, float, float, float, float, float]
_Box = tuple[float, float, float, float]


def page_text(page: Any, layers: Layers) -> str:
    """Return the text of a page, with a note if hidden text is left out.

    Invisible text over a picture, on a scan, and on a page without other text is what a picture
    shows. Text of a layer that is off is always left out.

    Args:
        page: Page of pypdf.
        layers: Layers of its document.
    """
    drawing = _Drawing(page, layers)
    text = str(page.extract_text(**drawing.visitors()))
    for hidden in ({*drawing.off, *_unseen(drawing, page)}, drawing.off):
        if not hidden:
            return text
        blanked = _Drawing(page, layers, hidden)
        visible = str(page.extract_text(**blanked.visitors())).strip()
        if visible:
            return f"{visible}\n{HIDDEN_TEXT}"
    return HIDDEN_TEXT


def _unseen(drawing: _Drawing, page: Any) -> set[int]:
    """Return the numbers of the invisible texts that are not what a picture shows."""
    if not drawing.unseen or sum(map(_area, drawing.pictures)) > _SCAN * _area(page.cropbox):
        return set()
    pictures = sorted({*drawing.pictures}, key=_area)[-_MOST_PICTURES:]
    return {
        number
        for number, place in drawing.unseen.items()
        if not any(_is_over(one, *place) for one in pictures)
    }


class _Drawing:
    """Follows how a page is drawn: its mode of drawing text, its layers, where its pictures are.

    Args:
        page: Page of pypdf.
        layers: Layers of its document.
        hidden: Numbers of the shown texts that are removed before pypdf reads them.
    """

    def __init__(self, page: Any, layers: Layers, hidden: Collection[int] = ()) -> None:
        self._layers = layers
        self._hidden = hidden
        self._resources = [page.get("/Resources")]
        self._state: tuple[object, _Matrix] = (0, _SAME)  # mode of drawing text, unit square
        self._saved: list[tuple[object, _Matrix]] = []
        self._is_off = [False]  # for each marked content that has begun
        self._forms: list[tuple[Any, Any, list[bool]]] = []
        self._shown = 0
        self.off: set[int] = set()
        """Numbers of the texts in layers that are off."""
        self.unseen: dict[int, tuple[float, float]] = {}
        """Number of each invisible text -> its place on the page."""
        self.pictures: list[_Box] = []
        """Places of the pictures on the page."""

    def visitors(self) -> dict[str, Any]:
        """Return the callbacks for pypdf."""
        return {"visitor_operand_before": self._before, "visitor_operand_after": self._after}

    def _before(self, operator: bytes, operands: Any, _: object, text_matrix: Any) -> None:
        mode, matrix = self._state
        if operator == b"q":
            self._saved.append(self._state)
        elif operator == b"Q" and self._saved:
            self._state = self._saved.pop()
        elif operator == b"Tr" and operands and isinstance(operands[0], int | float):
            self._state = (operands[0], matrix)
        elif operator == b"cm":
            self._state = (mode, _product(operands, matrix))
        elif operator in (b"BMC", b"BDC"):
            is_off = operands[:1] == ["/OC"] and self._layers.is_off(
                self._resource("/Properties", str(operands[-1]))
            )
            self._is_off.append(self._is_off[-1] or is_off)
        elif operator == b"EMC" and len(self._is_off) > 1:
            self._is_off.pop()
        elif operator == b"INLINE IMAGE":
            self.pictures.append(_square(matrix))
        elif operator == b"Do" and operands:
            self._enter(operands[0])
        elif operator in _SHOWS:
            self._shown += 1
            if any(one.strip(_GAPS) for one in _strings(operands)):
                if self._is_off[-1]:
                    self.off.add(self._shown)
                elif mode == _INVISIBLE:
                    self.unseen[self._shown] = _product(text_matrix, matrix)[4:]
            if self._shown in self._hidden:
                operands.clear()

    def _enter(self, name: Any) -> None:
        """Count a picture, or follow a form, which is a drawing within the drawing."""
        self._forms.append((self._state, self._saved, self._is_off))
        drawn = resolved(self._resource("/XObject", name))
        mode, matrix = self._state
        is_off = drawn is not None and self._layers.is_off(drawn.get("/OC"))
        self._is_off = [self._is_off[-1] or is_off]
        if drawn is not None and drawn.get("/Subtype") == "/Image":
            self.pictures.append(_square(matrix))
        if drawn is not None and "/Matrix" in drawn:
            self._state = (mode, _product(resolved(drawn["/Matrix"]), matrix))
        self._saved = []
        self._resources.append(
            drawn.get("/Resources", self._resources[-1]) if drawn is not None else None
        )

    def _after(self, operator: bytes, operands: Any, *_: object) -> None:
        if operator == b"Do" and operands:
            self._state, self._saved, self._is_off = self._forms.pop()
            self._resources.pop()

    def _resource(self, kind: str, name: Any) -> Any:
        resources = resolved(self._resources[-1])
        named: Any = resolved(resources.get(kind)) if hasattr(resources, "get") else None
        return named.get(name) if hasattr(named, "get") else None


def _strings(operands: Any) -> Iterator[str]:
    """Yield the strings that an operator shows."""
    for one in operands:
        if isinstance(one, list):
            yield from _strings(one)
        elif isinstance(one, str | bytes):
            yield one if isinstance(one, str) else one.decode("latin-1")


def _product(first: Any, second: _Matrix) -> _Matrix:
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


def _square(matrix: _Matrix) -> _Box:
    """Return the box around the unit square: left, low, right, high."""
    a, b, c, d, x, y = matrix
    return (
        *(x + min(a, 0) + min(c, 0), y + min(b, 0) + min(d, 0)),
        *(x + max(a, 0) + max(c, 0), y + max(b, 0) + max(d, 0)),
    )


def _is_over(box: _Box, x: float, y: float) -> bool:
    """Return whether a text that begins at a place is over a picture; it may begin left of it."""
    left, low, right, high = box
    return left - _MARGIN * (right - left) <= x <= right and low <= y <= high


def _area(box: Any) -> float:
    left, low, right, high = map(float, box)
    return (right - left) * (high - low)
