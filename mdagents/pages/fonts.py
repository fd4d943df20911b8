"""Fonts of this machine for text that the font of figures does not cover."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache

_FIRST = "sans-serif"  # DejaVu Sans, which matplotlib brings along
_BOXES = re.compile("last ?resort|blank|bmp fallback", re.IGNORECASE)
"""Names of fonts that have a box for each character; Droid Sans Fallback has letters."""
_WEIGHTS = (400, 500, 300)
"""Weights of fonts for text, the best first: regular, medium and light."""
_UNREADABLE = (OSError, RuntimeError, ValueError)
"""What matplotlib raises for a font that is damaged, has been removed, or consists of pictures."""


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
    """Return the families of upright fonts and their code points: by weight, sans serif first."""
    from matplotlib.font_manager import findSystemFonts, fontManager, get_font

    # matplotlib keeps its list of fonts, so that it lacks those that were installed later.
    for path in {*findSystemFonts()} - {entry.fname for entry in fontManager.ttflist}:
        with suppress(*_UNREADABLE):
            fontManager.addfont(path)
    faces = [
        (_WEIGHTS.index(entry.weight), "sans" not in entry.name.lower(), entry.name, entry.fname)
        for entry in fontManager.ttflist
        if entry.style == "normal" and entry.weight in _WEIGHTS and not _BOXES.search(entry.name)
    ]
    fonts: dict[str, frozenset[int]] = {}
    for *_, name, path in sorted(faces):
        if name not in fonts:
            with suppress(*_UNREADABLE):
                fonts[name] = frozenset(get_font(path).get_charmap())
    return fonts
