"""Reads a Word document as text, in its order."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

_BOX = "txbxContent"
_NOT_SHOWN = ("del", "moveFrom", "Fallback")
"""Elements of WordprocessingML: deleted and moved text, and the second form of a text box."""
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_EXPONENT = re.compile(r"[-+−]?\d+")
_SYMBOLS = {0xA3: "≤", 0xB3: "≥", 0xB1: "±", 0xB4: "×", 0xB0: "°", 0x6D: "μ", 0x61: "α", 0x62: "β",
            0x67: "γ", 0x44: "Δ", 0xB9: "≠", 0xBB: "≈", 0xAE: "→", 0xB7: "•"}  # fmt: skip
"""Code in the font Symbol, without F000 -> character."""
_SIGNS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def word_blocks(content: io.BytesIO) -> Iterator[str]:
    """Yield the headers, paragraphs, text boxes, tables and footers of a Word document."""
    import docx

    document = docx.Document(content)
    yield from _margins(document, "header")
    yield from _blocks(document.element.body, document)
    yield from _margins(document, "footer")


def _margins(document: Any, kind: str) -> Iterator[str]:
    """Yield the different headers or footers of a document, each once, as `Header: …`."""
    told: set[str] = set()
    has_even = document.settings.odd_and_even_pages_header_footer
    for section in document.sections:
        names = [kind]
        names += [f"first_page_{kind}"] if section.different_first_page_header_footer else []
        names += [f"even_page_{kind}"] if has_even else []
        for name in names:
            margin = getattr(section, name)
            if margin.is_linked_to_previous:  # the same as in the section before, or none
                continue
            text = "\n".join(_blocks(margin._element, margin))  # noqa: SLF001 - boxes need the XML
            if text and text not in told:
                told.add(text)
                yield f"{kind.title()}: {text}"


def _blocks(element: Any, story: Any) -> Iterator[str]:
    """Yield the paragraphs and tables in an element of WordprocessingML, in order.

    Args:
        element: Element that contains paragraphs, perhaps within others.
        story: Document, header or footer that the element belongs to.
    """
    from docx.text.paragraph import Paragraph

    for child in element:
        tag = _tag(child)
        if tag == "tbl":
            rows = (
                " | ".join("\n".join(_blocks(cell, story)).strip() for cell in _all(row, "tc"))
                for row in _all(child, "tr")
            )
            yield "\n".join(rows)
        elif tag == "p":
            text = "".join(_words(child))
            if text.strip():
                style = Paragraph(child, story).style
                heading = str(style.name if style else "").startswith(("Heading", "Title"))
                yield f"{'# ' * heading}{text}"
            for box in _boxes(child):
                yield from _blocks(box, story)
        elif tag not in _NOT_SHOWN:
            yield from _blocks(child, story)


def _words(element: Any) -> Iterator[str]:
    """Yield the text in a paragraph, also that of links, fields and accepted insertions."""
    raised = ""  # a number in superscript so far, of which Word often makes several runs
    for child in element:
        if child.tag == f"{_W}r" and (more := _raised(child)):
            raised += more
            continue
        if raised:
            yield _exponent(raised)
            raised = ""
        tag = _tag(child)
        if tag == "t":
            yield child.text or ""
        elif child.tag == f"{_W}sym":
            yield _symbol(child)
        elif child.tag == f"{_M}f":  # a fraction of an equation
            over, under = (
                "".join(text for part in child.iter(_M + name) for text in _words(part))
                for name in ("num", "den")
            )
            yield f"({over})/({under})"
        elif child.tag == f"{_M}sup":
            yield _exponent("".join(_words(child)))
        elif tag in _SIGNS:
            yield _SIGNS[tag]
        elif tag not in _NOT_SHOWN and tag not in ("pPr", "rPr", _BOX):
            yield from _words(child)
    if raised:
        yield _exponent(raised)


def _raised(run: Any) -> str:
    """Return the text of a run in superscript; empty for other runs."""
    place = run.find(f"{_W}rPr/{_W}vertAlign")
    if place is None or place.get(f"{_W}val") != "superscript":
        return ""
    return "".join(text.text or "" for text in run.iter(f"{_W}t"))


def _exponent(text: str) -> str:
    """Return a raised text; a number gets a mark, since 10⁹ is another number than 109."""
    return f"^{text}" if _EXPONENT.fullmatch(text) else text


def _symbol(element: Any) -> str:
    try:
        code = int(element.get(f"{_W}char", ""), 16)
        character = chr(code)
    except (ValueError, OverflowError):  # no code of a character
        return "\ufffd"
    if element.get(f"{_W}font") == "Symbol":
        return _SYMBOLS.get(code & 0xFF, "\ufffd")
    return "\ufffd" if 0xF000 <= code <= 0xF0FF else character  # a drawing of some font


def _all(element: Any, *tags: str) -> Iterator[Any]:
    """Yield the rows of a table, or the cells of a row, also those within other elements."""
    for child in element:
        if _tag(child) in tags:
            yield child
        elif _tag(child) not in (*_NOT_SHOWN, "tbl"):
            yield from _all(child, *tags)


def _boxes(element: Any) -> Iterator[Any]:
    """Yield the text boxes in a paragraph; those within another are part of it."""
    for child in element:
        if _tag(child) == _BOX:
            yield child
        elif _tag(child) not in _NOT_SHOWN:
            yield from _boxes(child)


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
