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

_MOST_PARTS = 5_000  # maximum number of parts of an archive
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
        answer = {"refused": f"is broken ({type(error).__name__})"}
    json.dump(answer, sys.stdout)


def _read(content: io.BytesIO, order: dict[str, Any]) -> str:
    most = order["characters"]
    if order["kind"] == ".pdf":
        return _joined("\n\n", _pages(content, order["pages"]), most)
    _check_archive(content, order)
    if order["kind"] == ".docx":
        return _joined("\n\n", _blocks(content), most)
    return _joined("\n", _rows(content, order["cells"]), most)


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
    from pypdf.errors import DependencyError, FileNotDecryptedError

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
    for page in reader.pages:
        yield page.extract_text()


def _blocks(content: io.BytesIO) -> Iterator[str]:
    """Yield the paragraphs and tables of a Word document in order."""
    import docx
    from docx.table import Table

    for block in docx.Document(content).iter_inner_content():
        if isinstance(block, Table):
            rows = (" | ".join(cell.text.strip() for cell in row.cells) for row in block.rows)
            yield "\n".join(rows)
        elif block.text.strip():
            heading = str(block.style.name if block.style else "").startswith(("Heading", "Title"))
            yield f"{'# ' * heading}{block.text}"


def _rows(content: io.BytesIO, most: int) -> Iterator[str]:
    """Yield the rows of a spreadsheet, with a heading before each sheet."""
    import openpyxl

    values = openpyxl.load_workbook(content, read_only=True, data_only=True)
    content.seek(0)
    formulas = openpyxl.load_workbook(content, read_only=True)
    count = 0
    # `worksheets` holds sheets of cells only; chart sheets have no cells.
    for sheet, its_formulas in zip(values.worksheets, formulas.worksheets, strict=True):
        for one in (sheet, its_formulas):
            one.reset_dimensions()  # the size stated in the file may be wrong or a whole sheet
        yield f"\n# {sheet.title}\n"
        for row, written in zip(sheet.iter_rows(), its_formulas.iter_rows(), strict=True):
            cells = [_cell(one.value, two.value) for one, two in zip(row, written, strict=True)]
            count += sum(map(bool, cells))
            if count > most:
                raise _RefusedError(f"has more than {most:,} cells")
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                yield " | ".join(cells)


def _cell(value: object, written: object) -> str:
    if value is None and isinstance(written, str) and written.startswith("="):
        return f"(no stored result of {written})"
    return "" if value is None else str(value).strip()


if __name__ == "__main__":
    main()
