"""Reads the text of a PDF page that is drawn, without text that a reader cannot see."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from demos.document_assistant.marked_text import HIDDEN_TEXT
from demos.document_assistant.pdf_geometry import (
    EVERYWHERE,
    NOWHERE,
    SAME,
    Box,
    Matrix,
    area,
    common,
    has_area,
    is_upright,
    placed,
    product,
    shown_part,
)
from demos.document_assistant.pdf_layers import Layers
from demos.document_assistant.pdf_objects import resolved

_CUTS = 7
"""Mode of drawing text that paints nothing, and shows what is painted through the letters later."""
_PAINTS = {0: "f", 1: "s", 2: "fs", 4: "f", 5: "s", 6: "fs"}
"""Mode of drawing text -> whether the letters are filled or outlined (stroked)."""
_SCAN = 0.5
"""Part of the page that pictures cover on a scan, whose invisible text was recognized in them."""
_MOST_PICTURES = 100
"""Number of pictures, the largest, in which invisible text is looked for."""
_MARGIN = 0.25
"""Part of the width of a picture by which text that belongs to it may begin left of it."""
_EDGE = 0.2
"""Part of the size of a text that a box over it may leave out at both ends."""
_BEYOND = 0.5
"""Part of the size of a text by which its letters may go beyond their widths, which may be 0."""
_SHOWS = (b"Tj", b"TJ", b"'", b'"')
_MOVES = (b"BT", b"Td", b"TD", b"Tm", b"T*", b"'", b'"')
_FILLS = (b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*")
_PATH_ENDS = (*_FILLS, b"S", b"s", b"n")
_POINTS = (b"m", b"l", b"c", b"v", b"y")
_GAPS = " \t\r\n\0\x03\xa0"
"""Characters of white space; 0003 is the space of many fonts with glyphs of two bytes."""
_UNIT: Box = (0.0, 0.0, 1.0, 1.0)


def page_text(page: Any, layers: Layers) -> str:
    """Return the text of a page, with a note if hidden text is left out.

    Invisible text over a picture, on a scan, and on a page without other text is what a picture
    shows. Text of a layer that is off, outside what is shown of the page, clipped away, without a
    size or under a box is always left out.

    Args:
        page: Page of pypdf.
        layers: Layers of its document.
    """
    drawing = _Drawing(page, layers)
    text = str(page.extract_text(**drawing.visitors()))
    off = {*drawing.off, *drawing.covered()}
    for hidden in ({*off, *_unseen(drawing)}, off):
        if not hidden:
            return text
        blanked = _Drawing(page, layers, hidden)
        visible = str(page.extract_text(**blanked.visitors())).strip()
        if visible:
            return f"{visible}\n{HIDDEN_TEXT}"
    return HIDDEN_TEXT


def _unseen(drawing: _Drawing) -> set[int]:
    """Return the numbers of the invisible texts that are not what a picture shows."""
    unseen = {
        number: place for number, place in drawing.unseen.items() if number not in drawing.painted
    }
    if not unseen or drawing.is_scan():
        return set()
    pictures = sorted({*drawing.pictures}, key=area)[-_MOST_PICTURES:]
    return {
        number
        for number, place in unseen.items()
        if not any(_is_over(one, *place) for one in pictures)
    }


class _State(NamedTuple):
    """What `q` saves and `Q` restores."""

    matrix: Matrix = SAME
    clip: Box = EVERYWHERE
    """Box around what is shown of a drawing."""
    is_box: bool = True
    """Whether all that is in this box is shown."""
    mode: int | float = 0
    fill: float = 1.0
    """How opaque what is filled is."""
    outline: float = 1.0
    is_mixed: bool = False
    """Whether colors are mixed with what is below them."""
    is_masked: bool = False
    is_pattern: bool = False
    is_dim: bool = False
    """Whether all that a form draws is mixed with what is below it."""
    font: Any = None
    size: float | None = None
    spacing: float = 0.0
    word_spacing: float = 0.0
    stretch: float = 1.0
    rise: float = 0.0
    cuts: tuple[int, Any] | None = None
    """Number of the text through which is painted, and those before it."""

    def is_opaque(self) -> bool:
        """Return whether nothing is seen through what is filled."""
        is_mixed = self.is_mixed or self.is_masked or self.is_pattern or self.is_dim
        return self.fill == 1 and not is_mixed


class _Drawing:
    """Follows how a page is drawn: what its text looks like, its layers, where its pictures are.

    Args:
        page: Page of pypdf.
        layers: Layers of its document.
        hidden: Numbers of the shown texts that are removed before pypdf reads them.
    """

    def __init__(self, page: Any, layers: Layers, hidden: Collection[int] = ()) -> None:
        self._layers = layers
        self._hidden = hidden
        self._resources = [page.get("/Resources")]
        self._page = shown_part(page)
        self._state = _State(clip=self._page)
        self._saved: list[_State] = []
        self._is_off = [False]  # for each marked content that has begun
        self._forms: list[tuple[_State, list[_State], list[bool]]] = []
        self._shown = 0
        self._pen = 0.0  # how far the text of a line has come
        self._path: list[tuple[Box, bool]] = []  # boxes around its parts, and if a part is a box
        self._is_clip = False
        self._fonts: dict[int, Any] = {}
        self._places: list[tuple[float, int, Box]] = []  # of texts: low, number, the letters' box
        self._boxes: list[tuple[int, Box]] = []  # painted over the texts up to a number
        self.off: set[int] = set()
        """Numbers of the texts in layers that are off, and where nothing is shown."""
        self.unseen: dict[int, tuple[float, float]] = {}
        """Number of each text that paints nothing -> its place on the page."""
        self.painted: set[int] = set()
        """Numbers of the texts through whose letters something is painted."""
        self.pictures: list[Box] = []
        """Places of the pictures on the page."""

    def visitors(self) -> dict[str, Any]:
        """Return the callbacks for pypdf."""
        return {"visitor_operand_before": self._before, "visitor_operand_after": self._after}

    def is_scan(self) -> bool:
        """Return whether pictures cover most of the page."""
        return sum(map(area, self.pictures)) > _SCAN * area(self._page)

    def covered(self) -> Iterator[int]:
        """Yield the numbers of the texts over which an opaque box is painted.

        On a scan, a box that covers most of the page may be the paper below its picture.
        """
        places = sorted(self._places)
        largest = _SCAN * area(self._page) if self._boxes and self.is_scan() else math.inf
        for last, (left, low, right, high) in self._boxes:
            if area((left, low, right, high)) > largest:
                continue
            for at in range(bisect_left(places, (low,)), len(places)):
                bottom, number, (start, _, end, top) = places[at]
                if bottom > high:
                    break
                if number <= last and left <= start and end <= right and top <= high:
                    yield number

    def _before(self, operator: bytes, operands: Any, *_: object) -> None:
        if operator == b"q":
            self._saved.append(self._state)
        elif operator == b"Q" and self._saved:
            self._state = self._saved.pop()
        elif operator == b"cm":
            self._set(matrix=product(operands, self._state.matrix))
        elif operator in _SETS:
            try:
                self._set(**_SETS[operator](operands))
            except (IndexError, TypeError, ValueError):
                return  # a broken operator sets nothing
        elif operator == b"gs" and operands:
            self._set_all(resolved(self._resource("/ExtGState", operands[0])))
        elif operator in (b"BMC", b"BDC"):
            is_off = operands[:1] == ["/OC"] and self._layers.is_off(
                self._resource("/Properties", str(operands[-1]))
            )
            self._is_off.append(self._is_off[-1] or is_off)
        elif operator == b"EMC" and len(self._is_off) > 1:
            self._is_off.pop()
        elif operator in (b"INLINE IMAGE", b"sh"):
            self._paint()
            if operator != b"sh":
                self.pictures.append(placed(_UNIT, self._state.matrix))
        elif operator == b"Do" and operands:
            self._enter(operands[0])
        elif operator in _SHOWS:
            self._shown += 1
            if self._shown in self._hidden:
                operands.clear()
        else:
            self._draw(operator, operands)

    def _after(self, operator: bytes, operands: Any, _: object, text_matrix: Any) -> None:
        if operator == b"Do" and operands:
            self._state, self._saved, self._is_off = self._forms.pop()
            self._resources.pop()
        if operator == b"Tf" and operands:
            self._set(font=self._font(resolved(self._resource("/Font", operands[0]))))
        if operator in _MOVES:
            self._pen = 0.0
        if operator in _SHOWS:  # which may move to the next line first
            self._judge([*_strings(operands)], product(text_matrix, self._state.matrix))

    def _set(self, **changes: Any) -> None:
        self._state = self._state._replace(**changes)

    def _set_all(self, settings: Any) -> None:
        """Change the state as a dictionary of several settings says."""
        if not hasattr(settings, "get"):
            return
        for key, name in (("/ca", "fill"), ("/CA", "outline")):
            if isinstance(value := resolved(settings.get(key)), int | float):
                self._set(**{name: float(value)})
        if "/BM" in settings:
            self._set(is_mixed=settings["/BM"] not in ("/Normal", "/Compatible"))
        if "/SMask" in settings:
            self._set(is_masked=settings["/SMask"] != "/None")
        if "/Font" in settings:
            self._set(font=None, size=None)

    def _draw(self, operator: bytes, operands: Any) -> None:
        """Follow the drawing of a path, which may paint over text, or clip what is drawn later."""
        state = self._state
        try:
            if operator == b"re":
                x, y, width, height = map(float, operands)
                box = placed((x, y, x + width, y + height), state.matrix)
                self._path.append((box, is_upright(state.matrix)))
            elif operator in _POINTS:
                numbers = [*map(float, operands)]
                xs, ys = numbers[::2], numbers[1::2]
                box = placed((min(xs), min(ys), max(xs), max(ys)), state.matrix)
                self._path.append((box, False))
            elif operator in (b"W", b"W*"):
                self._is_clip = True
        except (TypeError, ValueError):
            return
        if operator not in _PATH_ENDS:
            return
        if operator != b"n":
            self._paint()
        only = self._path[0] if len(self._path) == 1 else (NOWHERE, False)
        is_seen = state.is_opaque() and state.is_box and not self._is_off[-1]
        if operator in _FILLS and only[1] and is_seen:
            self._boxes.append((self._shown, common(only[0], state.clip)))
        if self._is_clip and self._path:
            lefts, lows, rights, highs = zip(*(box for box, _ in self._path), strict=True)
            around = (min(lefts), min(lows), max(rights), max(highs))
            self._set(clip=common(state.clip, around), is_box=state.is_box and only[1])
        self._path, self._is_clip = [], False

    def _paint(self) -> None:
        """Count the texts through which something is painted."""
        cuts = self._state.cuts
        while cuts and cuts[0] not in self.painted:
            self.painted.add(cuts[0])
            cuts = cuts[1]

    def _judge(self, texts: list[str | float], matrix: Matrix) -> None:
        """Note whether a text that is shown can be seen, and where it is."""
        state, number = self._state, self._shown
        size, stops = state.size, [self._pen]
        if state.font is not None and size is not None:
            for one in texts:
                stops.append(stops[-1] + _advance(one, state))
        self._pen = stops[-1]
        if not any(isinstance(one, str) and one.strip(_GAPS) for one in texts):
            return
        a, b, c, d, *place = matrix = product((1, 0, 0, 1, 0, state.rise), matrix)
        left, right = min(stops), max(stops)
        # Every letter is in the box: no font goes that far beyond the line and its widths.
        beyond = _BEYOND * abs(size or 0)
        around = placed((left - beyond, -2 * beyond, right + beyond, 3 * beyond), matrix)
        is_somewhere = state.font is None or has_area(common(around, state.clip))
        if self._is_off[-1] or size == 0 or a * d == b * c or not is_somewhere:
            self.off.add(number)
            return
        # Fonts of Type 3 paint in this mode as well.
        mode = 0 if state.mode == _CUTS and state.font is None else int(state.mode)
        paints = _PAINTS.get(mode, "")
        if not (("f" in paints and state.fill) or ("s" in paints and state.outline)):
            self.unseen[number] = (place[0], place[1])
        elif state.font is not None:
            edge = min(_EDGE * (size or 0), (right - left) / 2)
            letters = placed((left + edge, 0, right - edge, (size or 0) / 2), matrix)
            self._places.append((letters[1], number, letters))
        if mode == _CUTS:
            self._set(cuts=(number, state.cuts), is_box=False)
        elif paints:
            self._paint()

    def _font(self, named: Any) -> Any:
        """Return the widths of a font; None if its letters may be anywhere."""
        if id(named) not in self._fonts:
            try:
                from pypdf.generic._font import Font  # a private name, which may go

                is_known = named["/Subtype"] != "/Type3" and (
                    named["/Subtype"] != "/Type0" or str(named["/Encoding"]).endswith("H")
                )  # others may go from the top
                self._fonts[id(named)] = Font.from_font_resource(named) if is_known else None
            except (AttributeError, ImportError, KeyError, TypeError, ValueError):
                self._fonts[id(named)] = None
        return self._fonts[id(named)]

    def _enter(self, name: Any) -> None:
        """Count a picture, or follow a form, which is a drawing within the drawing."""
        self._forms.append((self._state, self._saved, self._is_off))
        self._paint()
        drawn = resolved(self._resource("/XObject", name))
        state = self._state
        is_off = drawn is not None and self._layers.is_off(drawn.get("/OC"))
        self._is_off = [self._is_off[-1] or is_off]
        if drawn is not None and drawn.get("/Subtype") == "/Image":
            self.pictures.append(placed(_UNIT, state.matrix))
        elif drawn is not None:
            self._set(matrix=product(resolved(drawn.get("/Matrix")), state.matrix))
            try:
                left, low, right, high = map(float, resolved(drawn.get("/BBox")))
            except (TypeError, ValueError):
                pass
            else:
                box = placed((left, low, right, high), self._state.matrix)
                is_box = state.is_box and is_upright(self._state.matrix)
                self._set(clip=common(state.clip, box), is_box=is_box)
                if state.is_masked:  # by the letters of a heading, which are drawn as a mask
                    self.pictures.append(box)
            if "/Group" in drawn:  # which is drawn as a whole
                self._set(fill=1.0, outline=1.0, is_dim=state.is_dim or not state.is_opaque())
                if not state.fill:
                    self._set(clip=NOWHERE)
        self._saved = []
        self._resources.append(
            drawn.get("/Resources", self._resources[-1]) if drawn is not None else None
        )

    def _resource(self, kind: str, name: Any) -> Any:
        resources = resolved(self._resources[-1])
        named: Any = resolved(resources.get(kind)) if hasattr(resources, "get") else None
        return named.get(name) if hasattr(named, "get") else None


_SETS: dict[bytes, Callable[[Any], dict[str, Any]]] = {
    b"Tr": lambda values: {"mode": 0 + values[0]},
    b"Tf": lambda values: {"size": float(values[1])},
    b"Tc": lambda values: {"spacing": float(values[0])},
    b"Tw": lambda values: {"word_spacing": float(values[0])},
    b"Ts": lambda values: {"rise": float(values[0])},
    b"Tz": lambda values: {"stretch": float(values[0]) / 100},
    b"g": lambda _: {"is_pattern": False},
    b"rg": lambda _: {"is_pattern": False},
    b"k": lambda _: {"is_pattern": False},
    b"cs": lambda values: {"is_pattern": values == ["/Pattern"]},
    b"scn": lambda values: {"is_pattern": isinstance(values[-1], str)},
}
"""Operator -> what it sets."""


def _strings(operands: Any) -> Iterator[str | float]:
    """Yield the strings that an operator shows, and the gaps between them."""
    for one in operands:
        if isinstance(one, list):
            yield from _strings(one)
        elif isinstance(one, str | bytes):
            yield one if isinstance(one, str) else one.decode("latin-1")
        elif isinstance(one, int | float):
            yield float(one)


def _advance(one: str | float, state: _State) -> float:
    """Return how far a text, or a gap, moves the next text in its line."""
    size = state.size or 0.0
    if not isinstance(one, str):
        return -one / 1000 * size * state.stretch
    codes = one
    if isinstance(state.font.encoding, str):
        codes = one.encode("latin-1", "replace").decode(state.font.encoding, "replace")
    width: float = state.font.get_text_width(codes) / 1000 * size + state.spacing * len(codes)
    width += state.word_spacing * one.count(" ")
    return width * state.stretch


def _is_over(box: Box, x: float, y: float) -> bool:
    """Return whether a text that begins at a place is over a picture; it may begin left of it."""
    left, low, right, high = box
    return left - _MARGIN * (right - left) <= x <= right and low <= y <= high
