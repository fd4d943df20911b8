"""Reads a Word document as text, in its order."""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.marked_text import HIDDEN_TEXT, plain_text
from demos.document_assistant.symbol_fonts import UNKNOWN, drawn
from demos.document_assistant.table_rows import row_line
from demos.document_assistant.word_equations import UNREAD, linear_form
from demos.document_assistant.word_fields import in_codes
from demos.document_assistant.word_forms import control_state, field_choice
from demos.document_assistant.word_lists import ListNumbers
from demos.document_assistant.word_names import M, W, local_name
from demos.document_assistant.word_styles import Styles

_BOX = "txbxContent"
_NOT_SHOWN = ("del", "moveFrom", "Fallback")
"""Elements of WordprocessingML: deleted and moved text, and the second form of a text box."""
_DELETED = {"tr": f"{W}trPr/{W}del", "tc": f"{W}tcPr/{W}cellDel"}
_EMBEDDED = "(an embedded document, which is not read)"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_WIDEST = 63
"""Maximum number of columns of a table in Word."""
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
        self._in_codes = in_codes(document.element.body)

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
                element = margin._element  # noqa: SLF001 - boxes need the XML
                self._in_codes |= in_codes(element)
                text = "\n".join(self.blocks(element, margin))
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

        begun, last = "", ""  # a paragraph that goes on in the next one
        for child in element:
            tag = local_name(child)
            if begun.strip() and tag not in ("p", *_NOT_SHOWN) and _has_paragraph(child):
                yield plain_text(begun)
                begun = ""
            if tag == "tbl":
                yield "\n".join(self._rows(child, story))
            elif tag == "altChunk":
                yield _EMBEDDED
            elif tag == "p":
                begun += "".join(self._words(child, child.find(f"{W}pPr/{W}pStyle")))
                if not _goes_on(child):
                    label = self._lists.label(child)
                    text, begun = plain_text(begun), ""
                    if text.strip() and text != last:
                        style = Paragraph(child, story).style
                        is_heading = str(style.name if style else "").startswith(_HEADINGS)
                        yield f"{'# ' if is_heading else ''}{f'{label} ' if label else ''}{text}"
                    last = text if text == HIDDEN_TEXT else ""  # one note for many paragraphs
                for box in _boxes(child):
                    yield from self.blocks(box, story)
            elif tag not in _NOT_SHOWN:
                yield from self.blocks(child, story)
        if begun.strip():
            yield plain_text(begun)

    def _rows(self, table: Any, story: Any) -> Iterator[str]:
        """Yield the rows of a table, each in a line unless the table has one column.

        A column in which no cell begins is left out, so that the cells of a column stand below each
        other also beside merged cells.
        """
        rows: list[dict[int, str]] = []
        above = set[int]()  # columns whose cell may go on in the next row
        for row in _all(table, "tr"):
            rows.append({})
            column = _count(row.find(f"{W}trPr/{W}gridBefore"), 0)
            merged, before = set[int](), ""
            for cell in _all(row, "tc"):
                down, right = _merge(cell, "vMerge"), _merge(cell, "hMerge")
                is_part = down == "continue" and column in above
                is_part |= right == "continue" and bool(before)
                text = "" if is_part else "\n".join(self.blocks(cell, story)).strip()
                rows[-1][column] = text
                merged |= {column} if down else set()
                column, before = column + _count(cell.find(f"{W}tcPr/{W}gridSpan"), 1), right
            above = merged
        columns = sorted({column for row in rows for column in row})
        for row in rows:
            last = bisect_right(columns, max(row, default=-1))
            shown = [row.get(column, "") for column in columns[:last]]
            yield "".join(shown) if len(columns) == 1 else row_line(shown)

    def _words(self, element: Any, style: Any) -> Iterator[str]:
        """Yield the marked text in a paragraph, also of links, fields and accepted insertions.

        Args:
            element: The paragraph, or an element in it.
            style: Element that names the style of the paragraph, or None.
        """
        for child in element:
            tag = local_name(child)
            if child in self._in_codes:
                continue
            if child.tag == f"{W}r":
                text = "".join(self._words(child, style))
                yield self._styles.shown(text, child, style)
            elif tag == "t":
                yield self._styles.drawn(child.text or "", child, style)
            elif child.tag == f"{M}oMath":
                yield linear_form(child)
            elif tag in _SIGNS:
                yield _SIGNS[tag]
            elif known := _special(child):
                yield known
            elif tag == "ruby":  # a reading, which is drawn above the word, follows it
                for part, form in (("rubyBase", "{}"), ("rt", "({})")):
                    for inner in child.iterchildren(f"{W}{part}"):
                        if words := "".join(self._words(inner, style)):
                            yield form.format(words)
            elif tag not in _NOT_SHOWN and tag not in ("pPr", "rPr", _BOX):
                yield from self._words(child, style)


def _special(element: Any) -> str:
    """Return what an element without text of its own shows; empty for other elements."""
    tag = local_name(element)
    if tag == "sym":
        return _symbol(element)
    if tag == "fldChar":
        return field_choice(element)
    if tag == "sdt":
        return control_state(element)
    if tag == "textpath":  # a watermark or another drawn word
        return str(element.get("string", ""))
    if tag == "subDoc":
        return _EMBEDDED
    if element.tag == _DIAGRAM:
        return "(a diagram, which is not read)"
    if tag == "OLEObject":
        return UNREAD if str(element.get("ProgID")).startswith("Equation") else _EMBEDDED
    is_equation = tag == "instrText" and (element.text or "").lstrip().upper().startswith("EQ ")
    return UNREAD if is_equation else ""


def _symbol(element: Any) -> str:
    try:
        character = chr(int(element.get(f"{W}char", ""), 16))
    except (ValueError, OverflowError):  # no code of a character
        return UNKNOWN
    return drawn(character, element.get(f"{W}font"))


def _count(element: Any, least: int) -> int:
    """Return a number of columns that an element states; `least` if it states none."""
    value = "" if element is None else element.get(f"{W}val", "")
    return max(least, min(int(value), _WIDEST)) if re.fullmatch("[0-9]{1,9}", value) else least


def _merge(cell: Any, name: str) -> str:
    """Return whether a cell begins or continues a merged one: `restart`, `continue` or nothing."""
    found = cell.find(f"{W}tcPr/{W}{name}")
    return "" if found is None else str(found.get(f"{W}val", "continue"))


def _all(element: Any, *tags: str) -> Iterator[Any]:
    """Yield the rows of a table, or the cells of a row, also those within other elements."""
    for child in element:
        if local_name(child) in tags:
            if child.find(_DELETED[local_name(child)]) is None:
                yield child
        elif local_name(child) not in (*_NOT_SHOWN, "tbl"):
            yield from _all(child, *tags)


def _goes_on(paragraph: Any) -> bool:
    """Return whether the next paragraph goes on: the end is deleted, or it is a large initial."""
    frame = paragraph.find(f"{W}pPr/{W}framePr")
    is_initial = frame is not None and frame.get(f"{W}dropCap", "none") != "none"
    return is_initial or paragraph.find(f"{W}pPr/{W}rPr/{W}del") is not None


def _has_paragraph(element: Any) -> bool:
    return next(element.iter(f"{W}p"), None) is not None


def _boxes(element: Any) -> Iterator[Any]:
    """Yield the text boxes in a paragraph; those within another are part of it."""
    for child in element:
        if local_name(child) == _BOX:
            yield child
        elif local_name(child) not in _NOT_SHOWN:
            yield from _boxes(child)
