"""Fonts of this machine for text that the font of figures does not cover."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

_FIRST = "sans-serif"  # DejaVu Sans, which matplotlib brings along
_BOXES = re.compile("last ?resort|blank|fallback", re.IGNORECASE)
"""Names of fonts that have a box for each character."""
_UNREADABLE = (OSError, RuntimeError, NotImplementedError)
"""What matplotlib raises for a font that is damaged, of pictures, or removed since."""


def families_for(text: str) -> list[str]:
    """Return the font families for a text; the first that has a character draws it."""
    return [_FIRST, *_further_families(_uncovered(text))]


def without_font(text: str) -> str:
    """Return the characters that no font of this machine has, each once and sorted."""
    uncovered = _uncovered(text)
    for family in _further_families(uncovered):
        uncovered -= installed_fonts()[family]
    return "".join(map(chr, sorted(uncovered)))


def _uncovered(text: str) -> frozenset[int]:
    """Return the code points of the visible characters that the first font lacks."""
    if text.isascii():
        return frozenset()
    return frozenset(ord(one) for one in text if one.isprintable()) - _covered_first()


@cache
def _covered_first() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=[_FIRST]))).get_charmap())


def _further_families(uncovered: frozenset[int]) -> list[str]:
    """Return the families that cover most of some characters, as few as possible."""
    families = []
    while uncovered:
        covered = {
            family: uncovered & characters for family, characters in installed_fonts().items()
        }
        best = max(covered, key=lambda family: len(covered[family]))
        if not covered[best]:
            break
        families.append(best)
        uncovered -= covered[best]
    return families


@cache
def installed_fonts() -> dict[str, frozenset[int]]:
    """Return the families of regular fonts and their code points, sans serif first."""
    return dict(sorted(_read_fonts(), key=lambda font: ("sans" not in font[0].lower(), font[0])))


def _read_fonts() -> Iterator[tuple[str, frozenset[int]]]:
    from matplotlib.font_manager import findSystemFonts, fontManager, get_font

    # matplotlib keeps its list of fonts, so that it lacks those that were installed later.
    for path in {*findSystemFonts()} - {entry.fname for entry in fontManager.ttflist}:
        with suppress(*_UNREADABLE):
            fontManager.addfont(path)
    for entry in fontManager.ttflist:
        is_regular = entry.style == "normal" and entry.weight == 400
        if is_regular and not _BOXES.search(entry.name):
            with suppress(*_UNREADABLE):
                yield entry.name, frozenset(get_font(entry.fname).get_charmap())
