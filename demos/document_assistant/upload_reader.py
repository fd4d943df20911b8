"""Subprocess that parses an uploaded file within limits: reads stdin and prints JSON.

The first line of stdin is JSON with the kind of the file and the limits; the file follows.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

_MOST_PARTS = 5_000  # maximum number of parts of an archive
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
_LIBRARIES = {".pdf": "pypdf", ".docx": "docx", ".xlsx": "openpyxl"}


class _RefusedError(Exception):
    """The file is refused; the message continues a sentence that starts with the file's name."""


def main() -> None:
    """Read stdin and print JSON with `text`, or with the reason in `refused`."""
    order = json.loads(sys.stdin.buffer.readline())
    content = io.BytesIO(sys.stdin.buffer.read())
    import_module(_LIBRARIES[order["kind"]])  # before the limits, which are meant for the file
    memory = order["memory_megabytes"] * 1_000_000
    with contextlib.suppress(ValueError):  # macOS does not support this limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"], order["seconds"]))
    try:
        answer = {"text": _read(content, order)}
    except _RefusedError as error:
        answer = {"refused": str(error)}
    except (MemoryError, ImportError):  # out of memory, perhaps while the library imports a module
        answer = {"refused": "needs too much memory to read"}
    except Exception as error:  # noqa: BLE001 - parsers raise whatever a broken file makes them
        why = f"is broken ({type(error).__name__}); save it again as {order['kind']}"
        answer = {"refused": why}
    json.dump(answer, sys.stdout)


def _read(content: io.BytesIO, order: dict[str, Any]) -> str:
    """Return the text of the file; each page of a PDF after the first begins with a form feed."""
    most = order["characters"]
    if order["kind"] == ".pdf":
        return _joined("\n\n\f", _pages(content, order["pages"]), most)
    _check_archive(content, order)
    if order["kind"] == ".docx":
        return _joined("\n\n", _word_document(content), most)
    return _joined("\n", _rows(content, order["cells"]), most).lstrip("\n")


def _joined(between: str, parts: Iterator[str], most: int) -> str:
    """Join the parts into one text within the limit, which the parent process can hold."""
    text: list[str] = []
    count = 0
    for part in parts:
        text.append(part)
        count += len(part) + len(between)
        if count > most:
            raise _RefusedError(f"has more than {most:,} characters")
    return between.join(text)


def _check_archive(content: io.BytesIO, order: dict[str, Any]) -> None:
    """Refuse an archive with oversized parts before a library unpacks them.

    A part that is larger than declared is truncated by `zipfile` and then fails its checksum.
    """
    with zipfile.ZipFile(content) as archive:
        parts = archive.infolist()
        most = order["unpacked_megabytes"] * 1_000_000
        if len(parts) > _MOST_PARTS:
            raise _RefusedError(
                f"is made of {len(parts):,} parts; at most {_MOST_PARTS:,} are read"
            )
        if sum(part.file_size for part in parts) > most:
            raise _RefusedError(f"unpacks to more than {order['unpacked_megabytes']} MB")
        for part in parts:
            if part.file_size > 1_000_000 + order["ratio"] * part.compress_size:
                raise _RefusedError(f"has a part packed more than {order['ratio']} to 1")
            if part.flag_bits & 1:
                raise _RefusedError("has a password; save it without one")
            # Without its zero bytes, UTF-16 reads as ASCII.
            if part.filename.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(
                part
            ).replace(b"\0", b""):
                raise _RefusedError(
                    "has an XML part with declarations of its own, which is not read"
                )
    content.seek(0)


def _pages(content: io.BytesIO, most: int) -> Iterator[str]:
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError, PdfReadError

    reader = pypdf.PdfReader(content)
    try:
        # Many PDFs are encrypted without a password, only to forbid printing.
        if reader.is_encrypted and not reader.decrypt(""):
            raise _RefusedError("has a password; save it without one")
        pages = len(reader.pages)
    except (DependencyError, FileNotDecryptedError):
        raise _RefusedError("has a password; save it without one") from None
    if pages > most:
        raise _RefusedError(f"has {pages} pages; at most {most} are read")
    unread, has_text = [], False
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = page.extract_text()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - parsers raise whatever a broken page makes them
            unread.append(error)
            text = f"(page {number} is broken and not read)"
        else:
            has_text |= bool(text)
            try:
                filled = list(_filled_in(page))
            except (AttributeError, KeyError, TypeError, ValueError, PdfReadError):
                filled = ["(a form or note on this page is broken and not read)"]
            has_text |= bool(filled)
            text = "\n".join(filter(str.strip, [text, *filled]))
            if _RIGHT_TO_LEFT.search(text):
                text = f"(the words of this page may be in the wrong order)\n{text}"
        yield text or f"(page {number} has no text: it is empty, or a picture)"
    if not has_text:
        if unread:
            raise unread[0]
        raise _RefusedError("has no text; a scanned page needs text recognition first")


_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
"""Letters of Hebrew and Arabic, whose lines many PDFs hold as they are drawn: from the left."""


def _filled_in(page: Any) -> Iterator[str]:
    """Yield what was filled into the forms of a page, and the notes that are written on it."""
    from pypdf.generic import DictionaryObject

    told: set[str] = set()
    for reference in _listed(page.get("/Annots")):
        one = _resolved(reference)
        if not isinstance(one, DictionaryObject) or int(one.get("/F", 0)) & _HIDDEN:
            continue
        if one.get("/Subtype") == "/FreeText":
            yield str(_resolved(one.get("/Contents", "")))
        if one.get("/Subtype") == "/Widget" and (line := _filled_field(one)) not in told:
            told.add(line)  # each button of a group shows the same value
            yield line


_HIDDEN = 2  # bit of an annotation's flags
_PASSWORD = 1 << 13  # bit of a field's flags


def _filled_field(widget: Any) -> str:
    """Return the name and the value of a field; empty without a value."""
    names: list[str] = []
    value: Any = None
    flags, field = 0, widget
    for _ in range(8):  # the parts of a field may stand in its parents
        if not hasattr(field, "get"):
            break
        names += [str(_resolved(field["/T"]))] if "/T" in field else []
        value = _resolved(field.get("/V")) if value is None else value
        flags |= int(field.get("/Ff", 0))
        field = _resolved(field.get("/Parent"))
    if flags & _PASSWORD:
        return ""
    values = [_value(_resolved(one)) for one in _listed(value)]
    said = ", ".join(filter(None, values))
    return f"{names[0] if names else 'field'}: {said}" if said else ""


def _value(value: Any) -> str:
    from pypdf.generic import NameObject

    if isinstance(value, NameObject):  # of a button
        return "" if value == "/Off" else value.removeprefix("/")
    return value if isinstance(value, str) else ""


def _listed(value: Any) -> list[Any]:
    value = _resolved(value)
    return list(value) if isinstance(value, list) else [value]


def _resolved(value: Any) -> Any:
    return value.get_object() if hasattr(value, "get_object") else value


def _word_document(content: io.BytesIO) -> Iterator[str]:
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


def _rows(content: io.BytesIO, most: int) -> Iterator[str]:
    """Yield the rows of a spreadsheet, with a heading before each sheet; hidden ones are named."""
    import openpyxl

    values = openpyxl.load_workbook(content, read_only=True, data_only=True, rich_text=True)
    content.seek(0)
    formulas = openpyxl.load_workbook(content, read_only=True)
    count = 0
    # `worksheets` holds sheets of cells only; chart sheets have no cells.
    for sheet, its_formulas in zip(values.worksheets, formulas.worksheets, strict=True):
        for one in (sheet, its_formulas):
            one.reset_dimensions()  # the size stated in the file may be wrong or a whole sheet
        yield f"\n# {sheet.title}\n"
        if sheet.sheet_state != "visible":
            yield "(a hidden sheet, which is not read)"
            continue
        for row, written in zip(sheet.iter_rows(), its_formulas.iter_rows(), strict=True):
            cells = [cell_text(one.value, two.value) for one, two in zip(row, written, strict=True)]
            count += sum(map(bool, cells))
            if count > most:
                raise _RefusedError(f"has more than {most:,} cells")
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield " | ".join(cells)


def cell_text(value: object, written: object) -> str:
    """Return the text of a cell, given its value and what is written in it, perhaps a formula."""
    from openpyxl.cell.rich_text import CellRichText, TextBlock

    if value is None and isinstance(written, str) and written.startswith("="):
        return f"(no stored result of {written})"
    if value is None and written is not None:  # a formula of an array or a data table
        return f"(no stored result of ={str(getattr(written, 'text', None) or '…').lstrip('=')})"
    if isinstance(value, CellRichText):
        return "".join(
            f"^{part.text}"
            if isinstance(part, TextBlock)
            and part.font.vertAlign == "superscript"
            and _EXPONENT.fullmatch(part.text)
            else str(part)
            for part in value
        ).strip()
    return "" if value is None else str(value).strip()


if __name__ == "__main__":
    main()
