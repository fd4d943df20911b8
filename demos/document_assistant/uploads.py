"""Uploaded files: identified, checked, and parsed in a separate process."""

from __future__ import annotations

import asyncio
import contextlib
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
_INTACT = 3
"""Characters beyond ASCII that show for each damaged place that a text is UTF-8."""
_RAREST_ZEROS = 50
"""Maximum number of bytes for each zero of a UTF-16 text: spaces, line ends and digits have one."""
_NONSENSE = re.compile(
    r"(?=[^\x00-\x7f\s«»‹›“”„‘’‚–—…•€°]{5})(?!(.)\1{4})|[^\W\d_][¿¹²³¼½¾¸¤¦¬¯][^\W\d_]"
    r"|(?=[À-ÿ][à-ÿ]{3})(?!(.)\2{3}|[áæéíðóöúýþ]{4})|[ÂÃ][¡-º¼-¿]|â€"
    # Chinese and Korean
    r"|[À-ÿ][¡-¦¨-ª¬-¯±-¶¸-º¼-¿][À-ÿ]|(?=[À-ÿ]{4})[À-ÿ]?[À-Þ]+[à-ÿ]"
    # Mac Roman, DOS and TCVN3, whose letters are signs or capitals within a word
    r"|[a-zß-ÿ][§©£¥¢†‡‰ˆ˜‹›‚][a-zß-ÿ]|\A[^“]*[a-zß-ÿ][”„][a-zß-ÿ]|[a-z](?:[ŠŽŸ][a-z]|[ŽŸ]\b)"
    r"|(?<!\S)ˆ(?!\S)"
    # Turkish, Lithuanian and Latvian, with letters of Icelandic where Icelandic has none
    r"|þ(?=[b-df-hk-np-qs-tw-xz])|[a-z]{2}þ\b|\bð[a-zà-ÿ]|ðý\b"
    r"|[ðþ]\w{0,20}[üç]|[üç]\w{0,20}[ðþ]"
    # Hungarian, with õ where Portuguese and Estonian have none
    r"|õ(?!e)\w{0,20}[áéíóú]|[áéíóú]\w{0,20}õ(?!e)"
    # the euro sign of ISO-8859-15
    r"|[0-9]\s?¤|¤\s?[0-9]"
)
"""What Windows-1252 makes of other encodings: five different letters and signs beyond ASCII in a
row, or four letters in lower case that are not Icelandic, a sign within a word, the first bytes
of UTF-8, or letters that no language of Windows-1252 has in these places."""
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
        text = _decoded(content, name)
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
    """Decode a text: UTF-16 with a byte order mark, UTF-8, or else Windows-1252.

    U+FFFD stands where UTF-8 is damaged. A text of which Windows-1252 makes words of accented
    letters alone is in another encoding.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode("utf-16")
    if b"\0" in content and not _may_be_utf_16(content):
        raise UploadError(f"{name} is no text, whatever its name says")
    text = content.decode("utf-8-sig", errors="replace")
    if "\0" not in text and _is_utf_8(content, text):
        return text
    with contextlib.suppress(UnicodeDecodeError):
        text = content.decode("cp1252")
        if "\0" not in text and not _NONSENSE.search(text):
            return text
    raise UploadError(f"{name} is in an encoding that is not known; save it as UTF-8")


def _may_be_utf_16(content: bytes) -> bool:
    """Return whether many zeros are the first, or the second, bytes of characters."""
    less, more = sorted(half.count(0) for half in (content[::2], content[1::2]))
    return not less and len(content) % 2 == 0 and _RAREST_ZEROS * more >= len(content)


def _is_utf_8(content: bytes, text: str) -> bool:
    """Return whether a text is UTF-8, damaged in a few places at most or cut within a character."""
    replaced = text.count("\ufffd")
    damaged = replaced - content.count("\ufffd".encode())
    intact = len(text) - len(text.encode("ascii", errors="ignore")) - replaced
    is_cut = damaged and text.endswith("\ufffd")
    return not damaged or intact > _INTACT * (damaged - is_cut)


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
