"""Reads the characters of fonts whose letters are drawn as signs, such as Symbol and Wingdings."""

from __future__ import annotations

import re

UNKNOWN = "\ufffd"

_SYMBOL = {
    **dict(enumerate(" !∀#∃%&∋()*+,−./0123456789:;<=>?", 0x20)),
    **dict(enumerate("≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_", 0x40)),
    **dict(enumerate("‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}~", 0x60)),
    **dict(enumerate("€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵", 0xA0)),
    **dict(enumerate("ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓", 0xC0)),
    **dict(enumerate("◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪", 0xE0)),
    **dict(enumerate("〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭", 0xF1)),
}
_WINGDINGS = {
    0x20: " ", 0x46: "☞", 0x4A: "☺", 0x4B: "😐", 0x4C: "☹", 0x6C: "●", 0x6E: "■", 0x6F: "☐",
    0x71: "❑", 0x72: "❒", 0x75: "◆", 0x76: "❖", 0x78: "☒", 0x9E: "·", 0x9F: "•", 0xA7: "▪",
    0xA8: "☐", 0xAB: "★", 0xD8: "➢", 0xE8: "➔", 0xEF: "⇦", 0xF0: "⇨", 0xF1: "⇧", 0xF2: "⇩",
    0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
    **dict(enumerate("⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿", 0x80)),
    **dict(enumerate("←→↑↓↖↗↙↘", 0xDF)),
}  # fmt: skip
_WINGDINGS_2 = {
    0x20: " ", 0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒",
    **dict(enumerate("⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿", 0x69)),
}  # fmt: skip
_WINGDINGS_3 = {
    0x20: " ", 0x70: "▲", 0x71: "▼", 0x74: "◀", 0x75: "▶",
    **dict(enumerate("←→↑↓↖↗↙↘", 0x66)),
}  # fmt: skip
_WEBDINGS = {0x20: " ", 0x61: "✓", 0x63: "☐", 0x67: "■", 0x72: "✗"}
_FONTS = {
    "symbol": _SYMBOL,
    "wingdings": _WINGDINGS,
    "wingdings 2": _WINGDINGS_2,
    "wingdings 3": _WINGDINGS_3,
    "webdings": _WEBDINGS,
}
"""Font -> code without F000 -> character."""
_PRIVATE = re.compile("[\uf000-\uf0ff]")
"""Codes by which programs write the drawings of such a font."""
_CODE = re.compile("[!-\x9f\xa1-\xff\uf000-\uf0ff]")
"""Codes of such a font; spaces stay spaces."""


def drawn(text: str, font: str | None) -> str:
    """Return the characters that a font draws for a text; U+FFFD for drawings that are not known.

    Args:
        text: Text as the file stores it.
        font: Name of its font; None if the file does not say.
    """
    signs = _FONTS.get((font or "").casefold())
    if signs is None:
        return _PRIVATE.sub(UNKNOWN, text)
    return _CODE.sub(lambda found: signs.get(ord(found[0]) & 0xFF, UNKNOWN), text)
