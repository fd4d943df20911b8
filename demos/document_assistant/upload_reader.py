"""Reads an uploaded file in a process of its own: stdin to text in JSON, within limits.

The first line of stdin is JSON: the kind of the file and the limits; the file follows.
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

_LIBRARIES = {".pdf": "pypdf", ".docx": "docx", ".xlsx": "openpyxl"}


class _RefusedError(Exception):
    """The file is not read; the message goes on where its name ends."""


def main() -> None:
    """Answer with `text`, or with why not in `refused`."""
    order = json.loads(sys.stdin.buffer.readline())
    content = io.BytesIO(sys.stdin.buffer.read())
    import_module(_LIBRARIES[order["kind"]])  # before there are limits, which are for the file
    memory = order["memory_megabytes"] * 1_000_000
    with contextlib.suppress(ValueError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"], order["seconds"]))
    try:
        answer = {"text": _read(content, order)}
    except _RefusedError as error:
        answer = {"refused": str(error)}
    except (MemoryError, ImportError):  # a module of its library found no room
        answer = {"refused": "needs too much memory to read"}
    except Exception as error:  # noqa: BLE001 - parsers raise whatever a broken file makes them
        answer = {"refused": f"is broken ({type(error).__name__})"}
    json.dump(answer, sys.stdout)


def _read(content: io.BytesIO, order: dict[str, Any]) -> str:
    if order["kind"] == ".pdf":
        return _pdf(content, order["pages"])
    _check_archive(content, order)
    if order["kind"] == ".docx":
        return "\n\n".join(_blocks(content))
    return "\n".join(_rows(content, order["cells"]))


def _check_archive(content: io.BytesIO, order: dict[str, Any]) -> None:
    """Refuse an archive whose parts are too large, before a library unpacks them.

    A part that is larger than it says is cut by `zipfile`, which then finds its checksum wrong.
    """
    with zipfile.ZipFile(content) as archive:
        parts = archive.infolist()
        most = order["unpacked_megabytes"] * 1_000_000
        if len(parts) > 5_000 or sum(part.file_size for part in parts) > most:
            raise _RefusedError(f"unpacks to more than {order['unpacked_megabytes']} MB")
        for part in parts:
            if part.file_size > 1_000_000 + order["ratio"] * part.compress_size:
                raise _RefusedError(f"has a part packed more than {order['ratio']} to 1")
            if part.flag_bits & 1:
                raise _RefusedError("has a password; save it without one")
            if part.filename.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(part):
                raise _RefusedError(
                    "has an XML part with declarations of its own, which is not read"
                )
    content.seek(0)


def _pdf(content: io.BytesIO, most: int) -> str:
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError

    reader = pypdf.PdfReader(content)
    try:
        # Many are encrypted without a password, only to forbid printing.
        if reader.is_encrypted and not reader.decrypt(""):
            raise _RefusedError("has a password; save it without one")
        pages = len(reader.pages)
    except (DependencyError, FileNotDecryptedError):
        raise _RefusedError("has a password; save it without one") from None
    if pages > most:
        raise _RefusedError(f"has {pages} pages; at most {most} are read")
    return "\n\n".join(page.extract_text() for page in reader.pages)


def _blocks(content: io.BytesIO) -> Iterator[str]:
    """Yield paragraphs and tables of a Word document in their order."""
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
    """Yield the rows of a spreadsheet, a heading before each sheet."""
    import openpyxl

    values = openpyxl.load_workbook(content, read_only=True, data_only=True)
    content.seek(0)
    formulas = openpyxl.load_workbook(content, read_only=True)
    count = 0
    for name in values.sheetnames:
        yield f"\n# {name}\n"
        both = zip(values[name].iter_rows(), formulas[name].iter_rows(), strict=True)
        for row, written in both:
            cells = [_cell(one.value, two.value) for one, two in zip(row, written, strict=True)]
            count += len(cells)
            if count > most:
                raise _RefusedError(f"has more than {most:,} cells")
            if any(cells):
                yield " | ".join(cells)


def _cell(value: object, written: object) -> str:
    if value is None and isinstance(written, str) and written.startswith("="):
        return f"(no stored result of {written})"
    return "" if value is None else str(value).strip()


if __name__ == "__main__":
    main()
