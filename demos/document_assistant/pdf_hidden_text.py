"""Reads the text of a PDF page that is drawn, without text that a reader cannot see."""

from __future__ import annotations

from typing import Any

_INVISIBLE = (3, 7)
"""Modes of drawing text: neither filled nor outlined."""
_PICTURE = 0.5
"""Part of the page that pictures cover on a scan, whose invisible text was recognized in them."""
_SHOWS = (b"Tj", b"TJ", b"'", b'"')


def page_text(page: Any) -> str:
    """Return the text of a page, with a note if invisible text is left out.

    The invisible text of a scan, and of a page without other text, is what its picture shows.

    Args:
        page: Page of pypdf.
    """
    drawing = _Drawing(page, is_blanking=False)
    text = str(page.extract_text(**drawing.visitors()))
    width, height = float(page.mediabox.width), float(page.mediabox.height)
    if not drawing.has_invisible or drawing.pictures > _PICTURE * width * height:
        return text
    blanked = _Drawing(page, is_blanking=True)
    visible = str(page.extract_text(**blanked.visitors())).strip()
    return f"{visible}\n(hidden text, which is not read)" if visible else text


class _Drawing:
    """Follows how a page is drawn: its mode of drawing text, and the area of its pictures.

    Args:
        page: Page of pypdf.
        is_blanking: Whether invisible text is removed before pypdf reads it.
    """

    def __init__(self, page: Any, *, is_blanking: bool) -> None:
        self._is_blanking = is_blanking
        self._resources = [page.get("/Resources")]
        self._state = (0, 1.0)  # mode of drawing text, area of the unit square
        self._saved: list[tuple[int, float]] = []
        self._forms: list[tuple[tuple[int, float], list[tuple[int, float]]]] = []
        self.has_invisible = False
        self.pictures = 0.0
        """Area of the pictures, in the units of the page."""

    def visitors(self) -> dict[str, Any]:
        """Return the callbacks for pypdf."""
        return {"visitor_operand_before": self._before, "visitor_operand_after": self._after}

    def _before(self, operator: bytes, operands: Any, *_: object) -> None:
        mode, area = self._state
        if operator == b"q":
            self._saved.append(self._state)
        elif operator == b"Q" and self._saved:
            self._state = self._saved.pop()
        elif operator == b"Tr" and operands and isinstance(operands[0], int):
            self._state = (operands[0], area)
        elif operator == b"cm":
            self._state = (mode, area * _scale(operands))
        elif operator == b"INLINE IMAGE":
            self.pictures += area
        elif operator == b"Do" and operands:
            self._enter(operands[0])
        elif operator in _SHOWS and mode in _INVISIBLE:
            self.has_invisible = True
            if self._is_blanking:
                operands.clear()

    def _enter(self, name: Any) -> None:
        """Count a picture, or follow a form, which is a drawing within the drawing."""
        self._forms.append((self._state, self._saved))
        resources = self._resources[-1]
        objects = _resolved(_resolved(resources).get("/XObject")) if resources else None
        drawn = _resolved(objects.get(name)) if objects else None
        mode, area = self._state
        if drawn is not None and drawn.get("/Subtype") == "/Image":
            self.pictures += area
        if drawn is not None and "/Matrix" in drawn:
            self._state = (mode, area * _scale(_resolved(drawn["/Matrix"])))
        self._saved = []
        self._resources.append(drawn.get("/Resources", resources) if drawn is not None else None)

    def _after(self, operator: bytes, operands: Any, *_: object) -> None:
        if operator == b"Do" and operands:
            self._state, self._saved = self._forms.pop()
            self._resources.pop()


def _scale(matrix: Any) -> float:
    """Return the factor by which a matrix changes areas; 1 for a broken matrix."""
    try:
        a, b, c, d = map(float, matrix[:4])
    except (TypeError, ValueError):
        return 1.0
    return abs(a * d - b * c)


def _resolved(value: Any) -> Any:
    return value.get_object() if hasattr(value, "get_object") else value
