"""Reads the pages of a PDF as text, with filled-in forms and notes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from demos.document_assistant.pdf_hidden_text import page_text, resolved
from demos.document_assistant.refused import RefusedError


def pdf_pages(content: io.BytesIO, most: int) -> Iterator[str]:
    """Yield the text of each page, or a note in its place if the page has no text or is broken.

    Raises:
        RefusedError: The PDF has a password, more than `most` pages, or no text at all.
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
    unread, has_text = [], False
    for number, page in enumerate(reader.pages, start=1):
        try:
            text = page_text(page)
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
        raise RefusedError("has no text; a scanned page needs text recognition first")


_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
"""Letters of Hebrew and Arabic, whose lines many PDFs hold as they are drawn: from the left."""


def _filled_in(page: Any) -> Iterator[str]:
    """Yield what was filled into the forms of a page, and the notes that are written on it."""
    from pypdf.generic import DictionaryObject

    told = {("", "")}
    is_struck = False
    for reference in _listed(page.get("/Annots")):
        one = resolved(reference)
        if not isinstance(one, DictionaryObject) or int(one.get("/F", 0)) & _HIDDEN:
            continue
        kind = one.get("/Subtype")
        is_struck |= kind == "/StrikeOut"
        if kind in ("/FreeText", *_NOTES) and "/StateModel" not in one:  # that is a state of a note
            text = str(resolved(one.get("/Contents", "")))
            yield f"note: {text}" if kind in _NOTES and text.strip() else text
        if kind == "/Widget" and (field := _filled_field(one)) not in told:
            told.add(field)  # each button of a group shows the same value
            yield field[1]
    if is_struck:
        yield "(some text of this page is struck out; it is read like the other text)"


_NOTES = ("/Text", "/Caret", "/Highlight", "/Underline", "/Squiggly", "/StrikeOut")
"""Annotations whose text is in a window of its own."""
_HIDDEN = 2  # bit of an annotation's flags
_PASSWORD, _PUSH_BUTTON = 1 << 13, 1 << 16  # bits of a field's flags


def _filled_field(widget: Any) -> tuple[str, str]:
    """Return the whole name of a field, and its last name and its value; empty without a value.

    `[ ]` is no choice.
    """
    names: list[str] = []
    kind: Any = None
    value: Any = None
    flags, field = 0, widget
    for _ in range(8):  # the parts of a field may stand in its parents
        if not hasattr(field, "get"):
            break
        names += [str(resolved(field["/T"]))] if "/T" in field else []
        value = resolved(field.get("/V")) if value is None else value
        kind = field.get("/FT") if kind is None else kind
        flags |= int(field.get("/Ff", 0))
        field = resolved(field.get("/Parent"))
    if flags & _PASSWORD:
        return "", ""
    values = [_value(resolved(one)) for one in _listed(value)]
    said = ", ".join(filter(None, values))
    if kind == "/Btn" and not flags & _PUSH_BUTTON:
        said = said or "[ ]"
    name = names[0] if names else "field"
    return (".".join(reversed(names)), f"{name}: {said}") if said else ("", "")


def _value(value: Any) -> str:
    from pypdf.generic import NameObject

    if isinstance(value, NameObject):  # of a button
        return "" if value == "/Off" else value.removeprefix("/")
    return value if isinstance(value, str) else ""


def _listed(value: Any) -> list[Any]:
    value = resolved(value)
    return list(value) if isinstance(value, list) else [value]
