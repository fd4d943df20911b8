"""A drawing in pixels, rendered by matplotlib: SVG for a page, and SVG, PDF and PNG for a paper.

Pages get the colors of their theme; exported files get the fixed ones of `COLORS`, which are
safe for color-blind readers. Each mark may have a title with its numbers, which browsers show as a
tooltip and screen readers speak.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from mdagents.pages.fonts import families_for
from mdagents.scoring.formatting import number

if TYPE_CHECKING:
    from matplotlib.artist import Artist

COLORS: Mapping[str, str] = {
    "text": "#17212b", "text2": "#4b5967", "text3": "#5e6b78", "line": "#e1e6ec", "page": "#ffffff",
    "blue": "#0b6aa3", "blue-fill": "#0b6aa2", "blue-soft": "#dcebf5",
    "green": "#00714f", "green-fill": "#14946e", "green-soft": "#d3ece2",
    "orange": "#a24400", "orange-fill": "#d4621a", "orange-soft": "#fbe2d0",
    "grey-fill": "#768492", "grey-soft": "#e8ecf0",
}  # fmt: skip
"""Custom property of base.css -> color of exported files. No two are equal."""

COLUMN = 3.3
"""Width of an exported figure in inches: a column of a two-column paper."""

TEXT, SMALL = 13, 12
"""Sizes of text in pixels: labels, and axes."""

PERCENT = (0.0, 100.0)
"""Ends of an axis of shares."""

_NOTEBOOK, _NOTEBOOK_INCHES = 760, 6.6
"""Width in pixels of a figure in a notebook, and in inches: 660 pixels at 100 dpi."""

PHONE = 368
"""Width in pixels of a figure on a phone, and of exported ones."""

_MARK = "mark:"


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A figure that is drawn at each width, not scaled."""

    title: str
    """Name of the measure."""
    note: str
    """Unit, interval and denominator."""
    draw: Callable[[int], Canvas]
    """Draws the figure at a width in pixels."""
    widths: Sequence[int]
    """Widths in pixels for windows from narrow to broad, one to three."""
    choice: str = ""
    """Baseline of the figure if a page has one for each of several; empty without a choice."""

    @property
    def name(self) -> str:
        """Name of the figure in file names."""
        return re.sub(r"[\W_]+", "-", self.title.lower()).strip("-")

    def drawings(self) -> Markup:
        """Return the drawings for all windows, of which the style sheet shows one."""
        shares = {
            1: ["narrow mid broad"],
            2: ["narrow", "mid broad"],
            3: ["narrow", "mid", "broad"],
        }
        windows = shares[len(self.widths)]
        return Markup("").join(
            self.draw(width).as_svg(window, self.title)
            for width, window in zip(self.widths, windows, strict=True)
        )

    def __repr__(self) -> str:
        return f"<Figure {self.title!r}>"

    def _repr_png_(self) -> bytes:
        """Return the picture that a notebook shows, on white in each theme."""
        return self.draw(min(self.widths, key=lambda width: abs(width - _NOTEBOOK))).save(
            "png", inches=_NOTEBOOK_INCHES, dpi=100
        )

    def export(self, form: str) -> bytes:
        """Return the figure as `svg`, `pdf` or `png`, in the width of a column of a paper."""
        return self.draw(PHONE).save(form)


class Canvas:
    """A drawing in pixels from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        # Imported here: the import takes a second, and only drawing needs it.
        from matplotlib.figure import Figure as Drawing

        self.width, self.height = width, height
        self._drawing = Drawing(figsize=(width / 72, height / 72))
        self.texts: list[str] = []
        """Texts of the drawing."""
        self._sized: list[tuple[Any, float]] = []
        """(text or line, size in pixels), to scale them in exported files."""

    def _add(self, mark: Artist, title: str) -> None:
        # Otherwise matplotlib draws all lines, such as those of a grid, over all dots.
        mark.set_zorder(len(self._drawing.get_children()))
        if title:
            mark.set_gid(_MARK + " ".join(title.split()))
        self._drawing.add_artist(mark)

    def line(
        self, points: Sequence[tuple[float, float]], color: str, width: float = 1,
        *, dotted: bool = False, title: str = "",
    ) -> None:  # fmt: skip
        """Draw a line through points."""
        from matplotlib.lines import Line2D

        xs, ys = zip(*(self._share(x, y) for x, y in points), strict=True)
        mark = Line2D(xs, ys, color=COLORS[color], linewidth=width, solid_capstyle="round",
                      linestyle=(0, (1.4, 2)) if dotted else "-",
                      transform=self._drawing.transFigure)  # fmt: skip
        self._sized.append((mark, width))
        self._add(mark, title)

    def rectangle(
        self, x: float, y: float, width: float, height: float, color: str, title: str = ""
    ) -> None:
        """Draw a filled rectangle from its top left corner."""
        from matplotlib.patches import Rectangle

        left, bottom = self._share(x, y + height)
        mark = Rectangle((left, bottom), width / self.width, height / self.height,
                         facecolor=COLORS[color], linewidth=0,
                         transform=self._drawing.transFigure)  # fmt: skip
        self._add(mark, title)

    def area(
        self, points: Sequence[tuple[float, float]], color: str, title: str = "", *,
        alpha: float = 0.13,
    ) -> None:  # fmt: skip
        """Draw a translucent polygon, such as the band of a curve."""
        from matplotlib.patches import Polygon

        mark = Polygon([self._share(x, y) for x, y in points], facecolor=COLORS[color], alpha=alpha,
                       linewidth=0, transform=self._drawing.transFigure)  # fmt: skip
        self._add(mark, title)

    def dot(
        self, x: float, y: float, color: str, *, radius: float = 5, hollow: bool = False,
        title: str = "",
    ) -> None:  # fmt: skip
        """Draw a dot, or a ring in the color of the page."""
        from matplotlib.patches import Ellipse

        width = 2 if hollow else 0
        mark = Ellipse(self._share(x, y), 2 * radius / self.width, 2 * radius / self.height,
                       facecolor=COLORS["page" if hollow else color], edgecolor=COLORS[color],
                       linewidth=width, transform=self._drawing.transFigure)  # fmt: skip
        self._sized.append((mark, width))
        self._add(mark, title)

    def text(
        self, x: float, y: float, text: str, color: str = "text", *, anchor: str = "left",
        size: float = TEXT, bold: bool = False,
    ) -> None:  # fmt: skip
        """Write a line of text whose middle is at the height `y`."""
        from matplotlib.text import Text

        # Lower-case letters are centered at 0.36 of the size above the base line.
        mark = Text(*self._share(x, y + 0.36 * size), text, color=COLORS[color], fontsize=size,
                    ha=anchor, va="baseline", **_font(text, bold=bold),
                    parse_math=False, transform=self._drawing.transFigure)  # fmt: skip
        self.texts.append(text)
        self._sized.append((mark, size))
        self._add(mark, "")

    def _share(self, x: float, y: float) -> tuple[float, float]:
        return x / self.width, 1 - y / self.height

    def as_svg(self, style_class: str, label: str) -> Markup:
        """Return the drawing as SVG for a page, in the colors of its theme."""
        svg = self.save("svg").decode()
        head = (
            f'<svg class="{style_class}" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="group" '
            f'aria-label="{escape(label)}">'
        )
        svg = head + svg[svg.index(">", svg.index("<svg")) + 1 :]
        # matplotlib has escaped the titles. Ids of groups other than marks are unused, and would
        # repeat in every figure.
        svg = re.sub(
            f'<g id="{_MARK}(.*?)">', r'<g role="img" aria-label="\1"><title>\1</title>', svg
        )
        svg = re.sub(r'<g id="[^"]*"', "<g", svg)
        svg = re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 var(--sans)", svg)
        for name, color in COLORS.items():
            svg = svg.replace(color, f"var(--{name})")
        return Markup(svg.strip())

    def save(self, form: str, *, inches: float = COLUMN, dpi: int = 300) -> bytes:
        """Return the drawing as `svg` in pixels, or as `pdf` or `png`.

        Args:
            form: `svg`, `pdf` or `png`.
            inches: Width of a PDF or PNG.
            dpi: Resolution of a PNG.
        """
        import matplotlib as mpl

        scale = 1 if form == "svg" else 72 * inches / self.width
        for mark, size in self._sized:
            (mark.set_fontsize if hasattr(mark, "set_fontsize") else mark.set_linewidth)(
                scale * size
            )
        self._drawing.set_size_inches(scale * self.width / 72, scale * self.height / 72)
        file = io.BytesIO()
        settings: Any = {
            "svg.fonttype": "none", "svg.hashsalt": "mdagents",  # text stays text; equal files
            # Fonts are embedded as TrueType, or as outlines if one of the machine may be of another
            # kind, as Noto Sans CJK (https://github.com/matplotlib/matplotlib/issues/20870).
            "pdf.fonttype": 42 if all(len(families_for(text)) == 1 for text in self.texts) else 3,
        }  # fmt: skip
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        with mpl.rc_context(settings), _without_warnings():
            self._drawing.savefig(file, format=form, dpi=dpi if form == "png" else 72,
                                  transparent=form != "png", metadata=metadata)  # fmt: skip
        content = file.getvalue()
        if form == "svg":
            content = re.sub(rb"<metadata>.*?</metadata>", b"", content, flags=re.DOTALL)
        return content


@cache
def width_of(text: str, size: float = TEXT, *, bold: bool = False) -> float:
    """Return the width of a text in pixels, in the font of exported files."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    of = _font(text, bold=bold)
    with _without_warnings():
        font = get_font(
            [findfont(FontProperties(family=[name], weight=of["weight"])) for name in of["family"]]
        )
        font.set_size(size, 72)
        font.set_text(text)
    return float(font.get_width_height()[0]) / 64


def _font(text: str, *, bold: bool) -> dict[str, Any]:
    """Return the font of a text for matplotlib; a font of the machine may not have a bold face."""
    families = families_for(text)
    return {"family": families, "weight": "bold" if bold and len(families) == 1 else "normal"}


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore warnings of matplotlib about fonts.

    The program names characters without a font in one line, and a font need not be regular.
    """
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
            yield
    finally:
        log.setLevel(level)


def shortened(text: str, width: float, size: float = TEXT) -> str:
    """Return a text cut to a width in pixels."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to pixels, on a linear or a logarithmic axis."""

    low: float
    high: float
    start: float
    """Pixel of `low`."""
    end: float
    """Pixel of `high`."""
    ticks: tuple[float, ...]
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        from math import log

        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = log(low), log(high), log(max(value, self.low))
        return self.start + (at - low) / (high - low) * (self.end - self.start)


def fitted(
    values: Sequence[float], start: float, end: float, *, steps: int = 5,
    within: tuple[float, float] | None = None,
) -> Scale:  # fmt: skip
    """Return a linear scale from tick to tick around the values.

    Args:
        values: Values that the axis holds.
        start: Pixel of its lower end.
        end: Pixel of its upper end.
        steps: Number of steps between ticks, at most.
        within: Ends that the axis does not exceed, such as 0 and 100 percent.
    """
    from math import floor, log10

    from matplotlib.ticker import MaxNLocator

    low, high = min(values, default=0), max(values, default=1)
    if high - low <= max(1e-12, 1e-6 * max(abs(low), abs(high))):  # equal up to rounding
        low, high = low - 1, high + 1
    found = MaxNLocator(steps, steps=[1, 2, 5, 10], min_n_ticks=2).tick_values(low, high)
    digits = 6 - floor(log10(high - low))
    ticks = [round(float(tick), digits) for tick in found]
    if within is not None:
        ticks = [tick for tick in ticks if within[0] <= tick <= within[1]]
    return Scale(ticks[0], ticks[-1], start, end, tuple(ticks))


def fitted_amounts(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a scale of amounts: logarithmic if they span more than a decade."""
    low, high = min(values), max(values)
    if high <= 0:
        return fitted([0, 1], start, end, steps=4)
    if low <= 0 or high <= 10 * low:
        return fitted([0.94 * low, 1.06 * high], start, end, steps=4)
    low, high = 0.8 * low, 1.25 * high
    powers = [10.0**power for power in range(-9, 12)]
    leads = (1, 2, 5) if high < 100 * low else (1, 3) if high < 1000 * low else (1,)
    ticks = [lead * power for power in powers for lead in leads if low <= lead * power <= high]
    return Scale(low, high, start, end, tuple(ticks), is_log=True)


def tick_text(value: float, form: str = "") -> str:
    """Return a value as an axis shows it: without superfluous zeros, with a true minus."""
    return number(value, form or ",.10g")
