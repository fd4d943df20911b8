"""Uploaded files: identified, checked, and parsed in a separate process."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from demos.document_assistant.amounts import amount_of
from demos.document_assistant.csv_rows import csv_rows
from demos.document_assistant.library import Document, kind_of, shipped
from demos.document_assistant.text_encodings import decoded, may_be_utf_16
from demos.toolkit.database import SETTING
from mdagents_llm.config import read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.regular_file import regular_file
from mdagents_llm.finishing import finished
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.processes import end_child
from mdagents_llm.text import clean, one_line, well_formed

KINDS = (".pdf", ".docx", ".xlsx", ".txt", ".md", ".csv")

_TEXT = (".txt", ".md", ".csv")
_STARTS = {".pdf": b"%PDF-", ".docx": b"PK\x03\x04", ".xlsx": b"PK\x03\x04"}
_HEADER = 1_024  # bytes in which the header of a PDF may begin
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # container of encrypted and of old Office files
_READER = "demos.document_assistant.upload_reader"
_ROOT = Path(__file__).parents[2]


class UploadError(ConfigError):
    """The file cannot be read; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an upload."""

    megabytes: int = 10
    """Maximum size of the file in MB."""
    unpacked_megabytes: int = 100
    """Maximum unpacked size of an archive in MB."""
    ratio: int = 200
    """Maximum compression ratio of a part of an archive."""
    pages: int = 200
    """Maximum number of PDF pages."""
    cells: int = 200_000
    """Maximum number of non-empty spreadsheet cells."""
    characters: int = 1_000_000
    """Maximum characters of the extracted text."""
    seconds: int = 30
    """Timeout of parsing in seconds."""
    memory_megabytes: int = 1024
    """Memory limit of the parsing process in MB."""


async def read_upload(path: Path, *, limits: Limits | None = None, scope: str) -> Document:
    """Read a file as a document.

    The parser runs in a separate process with limits on time and memory, so a malicious file can
    only crash that process. A cancellation also ends it.

    Args:
        path: PDF, Word document, spreadsheet, or text file.
        limits: Limits of the upload; None uses the defaults.
        scope: Session that the document belongs to.

    Raises:
        UploadError: The file cannot be read or exceeds a limit.
    """
    limits = limits or Limits()
    name = one_line(path.name or str(path))[:80]
    kind = path.suffix.casefold()
    content = await asyncio.to_thread(_content, path, name, limits)
    if kind in _TEXT:
        text = await asyncio.to_thread(_decoded, content, name)
    else:
        text = await _parsed(content, kind, name, limits)
    return await asyncio.to_thread(_document, path, name, text, limits, scope)


def _document(path: Path, name: str, text: str, limits: Limits, scope: str) -> Document:
    kind = path.suffix.casefold()
    text = "\f".join(map(clean, well_formed(text).split("\f"))).rstrip()
    size = len(text)
    if kind == ".csv" and size <= limits.characters:
        text = csv_rows(text).rstrip()
    if not text:
        image = "; a scanned page needs text recognition first" if kind == ".pdf" else ""
        raise UploadError(f"{name} has no text{image}")
    if size > limits.characters:
        raise UploadError(f"{name} has {size:,} characters; at most {limits.characters:,} are read")
    amount, currency = amount_of(text)
    table = kind in (".xlsx", ".csv")
    return Document(
        id=_id_of(path),
        title=name,
        kind="spreadsheet" if table else kind_of(name, text),
        text=text,
        amount=amount,
        currency=currency,
        scope=scope,
    )


def _content(path: Path, name: str, limits: Limits) -> bytes:
    kind = path.suffix.casefold()
    if kind not in KINDS and os.path.isdir(path):  # noqa: PTH112 - never raises
        raise UploadError(f"{name} is a folder; give the path of a file in it")
    if kind not in KINDS:
        raise UploadError(f"{name} is none of {', '.join(KINDS)}")
    try:
        with regular_file(path) as file:
            content = file.read(limits.megabytes * 1_000_000 + 1)
    except FileNotFoundError:
        raise UploadError(f"there is no file {one_line(str(path))[:200]}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its name has a NUL"
        raise UploadError(f"{name} cannot be read: {why}") from error
    if len(content) > limits.megabytes * 1_000_000:
        raise UploadError(f"{name} is larger than {limits.megabytes} MB")
    if not content:
        raise UploadError(f"{name} is empty")
    if content.startswith(_OLE):
        raise UploadError(f"{name} has a password or an old format; save it without, as {kind}")
    # A mark or a line of a mail program may stand before the header of a PDF, as readers allow.
    start = _STARTS.get(kind, b"")
    if start not in content[: _HEADER if kind == ".pdf" else len(start)]:
        raise UploadError(f"{name} is no {kind} file, whatever its name says")
    return content


def _decoded(content: bytes, name: str) -> str:
    is_utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in content and not is_utf_16 and not may_be_utf_16(content):
        raise UploadError(f"{name} is no text, whatever its name says")
    text = decoded(content)
    if text is None:
        raise UploadError(f"{name} is in an encoding that is not known; save it as UTF-8")
    return text


def _without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    secret = {SETTING, *load_model_configs().key_names()}
    return {name: value for name, value in variables.items() if name not in secret}


async def _parsed(content: bytes, kind: str, name: str, limits: Limits) -> str:
    order = json.dumps({"kind": kind, **asdict(limits)}).encode()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _READER),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        env=_without_secrets(read_variables()),
    )
    try:
        async with asyncio.timeout(limits.seconds):
            said, _ = await child.communicate(order + b"\n" + content)
    except TimeoutError:
        raise UploadError(f"{name} takes longer than {limits.seconds} s to read") from None
    finally:
        await finished(end_child(child))
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError:
        raise UploadError(
            f"{name} cannot be read: it needs too much memory, or is broken"
        ) from None
    if "refused" in answer:
        raise UploadError(f"{name} {one_line(str(answer['refused']))}")
    return str(answer["text"])


def _id_of(path: Path) -> str:
    """Return an id derived from a file's name, never that of a shipped document.

    Different names have different ids: if characters of a name are dropped, a digest of the name is
    appended.
    """
    plain = unicodedata.normalize("NFKD", path.name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:52].strip("_") or "upload"
    if words != f"{path.stem}_{path.suffix[1:]}":
        digest = hashlib.sha256(path.name.encode(errors="surrogateescape")).hexdigest()
        words = f"{words}_{digest[:6]}"
    return f"up_{words}" if words in shipped() else words
