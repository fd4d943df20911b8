"""Reads the pages of a PDF as text, with filled-in forms and notes."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.pdf_fields import filled_field
from demos.document_assistant.pdf_hidden_text import page_text
from demos.document_assistant.pdf_layers import Layers
from demos.document_assistant.pdf_objects import listed, resolved
from demos.document_assistant.refused import RefusedError


def pdf_pages(content: io.BytesIO, most: int) -> Iterator[str]:
    """Yield the text of each page, or a note in its place if the page has no text or is broken.

    Raises:
        RefusedError: The PDF has a password, more than `most` pages or no text at all, or is an XFA
            form.
    """
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError, PdfReadError

    reader = pypdf.PdfReader(content)
    try:
        # Many PDFs are encrypted without a password, only to forbid printing.
        if reader.is_encrypted and not reader.decrypt(""):
            raise RefusedError("has a password; save it without one")
        pages = len(reader.pages)
    except (DependencyError, FileNotDecryptedError):
        raise RefusedError("has a password; save it without one") from None
    if pages > most:
        raise RefusedError(f"has {pages} pages; at most {most} are read")
    catalog = reader.root_object
    xfa = RefusedError("is an XFA form, which is not read; print it to a PDF, and give that")
    is_xfa = _is_xfa_form(catalog)
    layers = Layers(catalog)
    unread, has_text = [], False
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = page_text(page, layers)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - parsers raise whatever a broken page makes them
            unread.append(error)
            text = f"(page {number} is broken and not read)"
        else:
            has_text |= bool(text)
            try:
                filled = list(_filled_in(page, layers))
            except (AttributeError, KeyError, TypeError, ValueError, PdfReadError):
                filled = ["(a form or note on this page is broken and not read)"]
            has_text |= bool(filled)
            if is_xfa and not filled and _WAITS.match(text):
                raise xfa
            text = "\n".join(filter(str.strip, [text, *filled]))
            if _RIGHT_TO_LEFT.search(text):
                text = f"(the words of this page may be in the wrong order)\n{text}"
        yield text or f"(page {number} has no text: it is empty, or a picture)"
    if not has_text:
        if unread:
            raise unread[0]
        if is_xfa:
            raise xfa
        raise RefusedError("has no text; a scanned page needs text recognition first")


_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
"""Letters of Hebrew and Arabic, whose lines many PDFs hold as they are drawn: from the left."""

_WAITS = re.compile(r"\W*please\s+wait\b|.{0,1500}?\badobe\.com\b", re.IGNORECASE | re.DOTALL)
"""What the page of an XFA form says to programs that do not show the form."""


def _is_xfa_form(catalog: Any) -> bool:
    """Return whether an XFA program may show other content than the pages."""
    from pypdf.generic import ArrayObject, DictionaryObject, StreamObject

    form = resolved(catalog.get("/AcroForm"))
    if not isinstance(form, DictionaryObject):
        return False
    if not isinstance(resolved(form.get("/XFA")), ArrayObject | StreamObject):
        return False
    return bool(resolved(catalog.get("/NeedsRendering"))) or not resolved(form.get("/Fields"))


def _filled_in(page: Any, layers: Layers) -> Iterator[str]:
    """Yield what was filled into the forms of a page, and the notes that are written on it."""
    from pypdf.generic import DictionaryObject

    told = {("", "")}
    is_struck = False
    for reference in listed(page.get("/Annots")):
        one = resolved(reference)
        if not isinstance(one, DictionaryObject) or int(one.get("/F", 0)) & _HIDDEN:
            continue
        if layers.is_off(one.get("/OC")):
            continue
        kind = one.get("/Subtype")
        is_struck |= kind == "/StrikeOut"
        if kind in ("/FreeText", *_NOTES) and "/StateModel" not in one:  # that is a state of a note
            text = _written(one)
            yield f"note: {text}" if kind in _NOTES and text.strip() else text
        if kind == "/Stamp" and (name := str(one.get("/Name", "")).removeprefix("/")).isalpha():
            yield f"stamp: {name}"
        if kind == "/Widget" and (field := filled_field(one)) not in told:
            told.add(field)  # each button of a group shows the same value
            yield field[1]
    if is_struck:
        yield "(some text of this page is struck out; it is read like the other text)"


_NOTES = ("/Text", "/Caret", "/Highlight", "/Underline", "/Squiggly", "/StrikeOut", "/Stamp",
          "/Square", "/Circle", "/Line", "/Ink", "/Polygon", "/PolyLine",
          "/FileAttachment")  # fmt: skip
"""Annotations whose text is in a window of its own."""
_LONGEST_NOTE = 100_000
"""Maximum number of characters of a note's rich text, with its markup."""
_HIDDEN = 2  # bit of an annotation's flags
_LINE_END, _MARKUP = re.compile("</p>|<br ?/?>"), re.compile("<[^<>]*>")


def _written(note: Any) -> str:
    """Return the text of a note, which may be in its rich text only."""
    if (text := str(resolved(note.get("/Contents", "")))).strip():
        return text
    rich = str(resolved(note.get("/RC", "")))
    if len(rich) > _LONGEST_NOTE:
        return f"(a note of more than {_LONGEST_NOTE:,} characters, which is not read)"
    rich = _LINE_END.sub("\n", rich)
    return html.unescape(_MARKUP.sub("", rich)).strip()
