"""Subprocess that parses an uploaded file within limits: reads stdin and prints JSON.

The first line of stdin is JSON with the kind of the file and the limits; the file follows.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from demos.document_assistant.pdf_pages import pdf_pages
from demos.document_assistant.refused import RefusedError
from demos.document_assistant.sheet_rows import sheet_rows
from demos.document_assistant.word_text import word_blocks

_MOST_PARTS = 5_000  # maximum number of parts of an archive
_STRICT = b"http://purl.oclc.org/ooxml/"
"""Names of the strict form of Office files."""
_FORMS = {
    ".docx": '"Word Document (.docx)", not as "Strict Open XML Document"',
    ".xlsx": '"Excel Workbook (.xlsx)", not as "Strict Open XML Spreadsheet"',
}
_LIBRARIES = {".pdf": "pypdf", ".docx": "docx", ".xlsx": "openpyxl"}


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
    except RefusedError as error:
        answer = {"refused": str(error)}
    except (MemoryError, ImportError):  # out of memory, perhaps while the library imports a module
        answer = {"refused": "needs too much memory to read"}
    except Exception as error:  # noqa: BLE001 - parsers raise whatever a broken file makes them
        why = f"is broken ({type(error).__name__}); save it again as {order['kind']}"
        if isinstance(error, KeyError) and order["kind"] == ".docx":  # Word saves it like that
            why = "is broken: a part is missing; copy its content into a new document"
        answer = {"refused": why}
    json.dump(answer, sys.stdout)


def _read(content: io.BytesIO, order: dict[str, Any]) -> str:
    """Return the text of the file; each page of a PDF after the first begins with a form feed."""
    most = order["characters"]
    if order["kind"] == ".pdf":
        return _joined("\n\n\f", pdf_pages(content, order["pages"]), most)
    _check_archive(content, order)
    if order["kind"] == ".docx":
        return _joined("\n\n", word_blocks(content), most)
    return _joined("\n", sheet_rows(content, order["cells"]), most).lstrip("\n")


def _joined(between: str, parts: Iterator[str], most: int) -> str:
    """Join the parts into one text within the limit, which the parent process can hold."""
    text: list[str] = []
    count = 0
    for part in parts:
        text.append(part)
        count += len(part) + len(between)
        if count > most:
            raise RefusedError(f"has more than {most:,} characters")
    return between.join(text)


def _check_archive(content: io.BytesIO, order: dict[str, Any]) -> None:
    """Refuse an archive with oversized parts before a library unpacks them, or in the strict form.

    A part that is larger than declared is truncated by `zipfile` and then fails its checksum.
    """
    with zipfile.ZipFile(content) as archive:
        parts = archive.infolist()
        most = order["unpacked_megabytes"] * 1_000_000
        if len(parts) > _MOST_PARTS:
            raise RefusedError(f"is made of {len(parts):,} parts; at most {_MOST_PARTS:,} are read")
        if sum(part.file_size for part in parts) > most:
            raise RefusedError(f"unpacks to more than {order['unpacked_megabytes']} MB")
        for part in parts:
            if part.file_size > 1_000_000 + order["ratio"] * part.compress_size:
                raise RefusedError(f"has a part packed more than {order['ratio']} to 1")
            if part.flag_bits & 1:
                raise RefusedError("has a password; save it without one")
            # Without its zero bytes, UTF-16 reads as ASCII.
            if part.filename.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(
                part
            ).replace(b"\0", b""):
                raise RefusedError(
                    "has an XML part with declarations of its own, which is not read"
                )
            if part.filename == "_rels/.rels" and _STRICT in archive.read(part):
                form = _FORMS[order["kind"]]
                raise RefusedError(f"is in the strict form, which is not read; save it as {form}")
    content.seek(0)


if __name__ == "__main__":
    main()
