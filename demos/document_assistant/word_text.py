"""Reads a Word document as text, in its order."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.marked_text import HIDDEN_TEXT, plain_text
from demos.document_assistant.word_equations import UNREAD, linear_form
from demos.document_assistant.word_forms import control_state, field_choice
from demos.document_assistant.word_lists import ListNumbers
from demos.document_assistant.word_styles import Styles

_BOX = "txbxContent"
_NOT_SHOWN = ("del", "moveFrom", "Fallback")
"""Elements of WordprocessingML: deleted and moved text, and the second form of a text box."""
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_DELETED = {"tr": f"{_W}trPr/{_W}del", "tc": f"{_W}tcPr/{_W}cellDel"}
_SYMBOLS = {0xA3: "≤", 0xB3: "≥", 0xB1: "±", 0xB4: "×", 0xB0: "°", 0x6D: "μ", 0x61: "α", 0x62: "β",
            0x67: "γ", 0x44: "Δ", 0xB9: "≠", 0xBB: "≈", 0xAE: "→", 0xB7: "•"}  # fmt: skip
_CHECK_MARKS = {0xA8: "☐", 0x6F: "☐", 0xFE: "☑", 0xFD: "☒", 0xFC: "✓", 0xFB: "✗"}
_FONTS = {"Symbol": _SYMBOLS, "Wingdings": _CHECK_MARKS}
"""Font -> code without F000 -> character."""
_HEADINGS = ("Heading", "Title")
_SIGNS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def word_blocks(content: io.BytesIO) -> Iterator[str]:
    """Yield the headers, paragraphs, text boxes, tables and footers of a Word document."""
    import docx

    document = docx.Document(content)
    reader = _Reader(document)
    yield from reader.margins("header")
    yield from reader.blocks(document.element.body, document)
    yield from reader.margins("footer")


class _Reader:
    """Reads the parts of one document, in their order."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._styles = Styles(document)
        self._lists = ListNumbers(document, self._styles)

    def margins(self, kind: str) -> Iterator[str]:
        """Yield the different headers or footers of a document, each once, as `Header: …`."""
        told: set[str] = set()
        has_even = self._document.settings.odd_and_even_pages_header_footer
        for section in self._document.sections:
            names = [kind]
            names += [f"first_page_{kind}"] if section.different_first_page_header_footer else []
            names += [f"even_page_{kind}"] if has_even else []
            for name in names:
                margin = getattr(section, name)
                if margin.is_linked_to_previous:  # the same as in the section before, or none
                    continue
                text = "\n".join(self.blocks(margin._element, margin))  # noqa: SLF001 - boxes need the XML
                if text and text not in told:
                    told.add(text)
                    yield f"{kind.title()}: {text}"

    def blocks(self, element: Any, story: Any) -> Iterator[str]:
        """Yield the paragraphs and tables in an element of WordprocessingML, in order.

        Args:
            element: Element that contains paragraphs, perhaps within others.
            story: Document, header or footer that the element belongs to.
        """
        from docx.text.paragraph import Paragraph

        begun, last = "", ""  # a paragraph whose end is deleted goes on in the next one
        for child in element:
            tag = _tag(child)
            if begun.strip() and tag not in ("p", *_NOT_SHOWN) and _has_paragraph(child):
                yield plain_text(begun)
                begun = ""
            if tag == "tbl":
                rows = (
                    " | ".join(
                        "\n".join(self.blocks(cell, story)).strip() for cell in _all(row, "tc")
                    )
                    for row in _all(child, "tr")
                )
                yield "\n".join(rows)
            elif tag == "p":
                begun += "".join(self._words(child, child.find(f"{_W}pPr/{_W}pStyle")))
                if child.find(f"{_W}pPr/{_W}rPr/{_W}del") is None:
                    label = self._lists.label(child)
                    text, begun = plain_text(begun), ""
                    if text.strip() and text != last:
                        style = Paragraph(child, story).style
                        is_heading = str(style.name if style else "").startswith(_HEADINGS)
                        yield f"{'# ' * is_heading}{f'{label} ' if label else ''}{text}"
                    last = text if text == HIDDEN_TEXT else ""  # one note for many paragraphs
                for box in _boxes(child):
                    yield from self.blocks(box, story)
            elif tag not in _NOT_SHOWN:
                yield from self.blocks(child, story)
        if begun.strip():
            yield plain_text(begun)

    def _words(self, element: Any, style: Any) -> Iterator[str]:
        """Yield the marked text in a paragraph, also of links, fields and accepted insertions.

        Args:
            element: The paragraph, or an element in it.
            style: Element that names the style of the paragraph, or None.
        """
        for child in element:
            tag = _tag(child)
            if child.tag == f"{_W}r":
                text = "".join(self._words(child, style))
                yield self._styles.shown(text, child, style)
            elif tag == "t":
                yield child.text or ""
            elif child.tag == f"{_M}oMath":
                yield linear_form(child)
            elif tag in _SIGNS:
                yield _SIGNS[tag]
            elif known := _special(child):
                yield known
            elif tag not in _NOT_SHOWN and tag not in ("pPr", "rPr", _BOX):
                yield from self._words(child, style)


def _special(element: Any) -> str:
    """Return what an element without text of its own shows; empty for other elements."""
    tag = _tag(element)
    if tag == "sym":
        return _symbol(element)
    if tag == "fldChar":
        return field_choice(element)
    if tag == "sdt":
        return control_state(element)
    is_equation = (
        tag == "instrText" and (element.text or "").lstrip().upper().startswith("EQ ")
    ) or (tag == "OLEObject" and str(element.get("ProgID")).startswith("Equation"))
    return UNREAD if is_equation else ""


def _symbol(element: Any) -> str:
    try:
        code = int(element.get(f"{_W}char", ""), 16)
        character = chr(code)
    except (ValueError, OverflowError):  # no code of a character
        return "\ufffd"
    if (font := element.get(f"{_W}font")) in _FONTS:
        return _FONTS[font].get(code & 0xFF, "\ufffd")
    return "\ufffd" if 0xF000 <= code <= 0xF0FF else character  # a drawing of some font


def _all(element: Any, *tags: str) -> Iterator[Any]:
    """Yield the rows of a table, or the cells of a row, also those within other elements."""
    for child in element:
        if _tag(child) in tags:
            if child.find(_DELETED[_tag(child)]) is None:
                yield child
        elif _tag(child) not in (*_NOT_SHOWN, "tbl"):
            yield from _all(child, *tags)


def _has_paragraph(element: Any) -> bool:
    return next(element.iter(f"{_W}p"), None) is not None


def _boxes(element: Any) -> Iterator[Any]:
    """Yield the text boxes in a paragraph; those within another are part of it."""
    for child in element:
        if _tag(child) == _BOX:
            yield child
        elif _tag(child) not in _NOT_SHOWN:
            yield from _boxes(child)


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
