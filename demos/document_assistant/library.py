"""The document library: shipped documents and the uploads of sessions."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import Column, MetaData, Row, String, Table, Text, delete, insert, select

from demos.document_assistant.pieces import pieces_of
from demos.toolkit.database import Database, LockTakenError
from demos.toolkit.retrieval import HybridRetriever, Passage
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.matching import matching

MOST_UPLOADS = 50
"""Maximum number of uploads in a session."""
MOST_CHARACTERS = 5_000_000
"""Maximum characters of all uploads of a session together."""

_SHIPPED = Path(__file__).parent / "documents"
_TABLES = MetaData()
_UPLOADS = Table(
    "uploads",
    _TABLES,
    Column("scope", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("title", Text, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("date", String(10), nullable=False),
    Column("text", Text, nullable=False),
    Column("amount", String(64), nullable=False),
    Column("currency", String(8), nullable=False),
)
_FILES = Table(
    "upload_files",
    _TABLES,
    Column("scope", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("file", String(64), nullable=False),
)
"""Digest of the path of the file that an upload was read from."""
_PASSAGE = 900  # approximate characters of a passage: a section, or a part of a long one
_HITS = 100  # passages that a search considers
_PATIENCE = 60.0  # seconds to wait for another process that is indexing


@dataclass(frozen=True, slots=True)
class Document:
    """A document as text."""

    id: str
    title: str
    kind: str
    """`invoice`, `claim`, `contract`, `letter`, `policy`, `report`, `spreadsheet`, `document`."""
    text: str
    date: date | None = None
    amount: Decimal | None = None
    """Overall amount, such as the total of an invoice; None if it has none."""
    currency: str = ""
    """ISO 4217 code; empty if not stated."""
    scope: str = ""
    """Session of an upload; empty for a shipped document, which all sessions see."""

    @property
    def version(self) -> str:
        """Identifier of the id, title and text; earlier documents with the same id differ in it."""
        said = "\0".join((self.id, self.title, self.text))
        return f"{self.id}@{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A passage found in a document."""

    document_id: str
    title: str
    text: str


class Library:
    """The shipped documents, and uploads that only their session sees.

    Create a library with `open`. Passages are indexed by document version, and hits of a version
    that no longer exists are ignored. An upload is therefore available completely or not at all,
    however its indexing ends, and after an update of this package no search finds the former text
    of a shipped document.
    """

    def __init__(self, database: Database, retriever: HybridRetriever) -> None:
        self._database = database
        self._retriever = retriever

    @classmethod
    async def open(cls, database: Database, retriever: HybridRetriever) -> Library:
        """Return the library of a database; the shipped documents are indexed once.

        Raises:
            ConfigError: The database cannot be used, or another process kept indexing for too long.
        """
        await database.make(_TABLES)
        library = cls(database, retriever)
        async with library._alone("shipped documents"):
            await retriever.add([part for one in shipped().values() for part in _passages(one)])
        return library

    async def documents(self, scope: str = "") -> list[Document]:
        """Return the shipped documents, followed by the uploads of a scope."""
        return [*shipped().values(), *(await self._uploads(scope))]

    async def document(self, id: str, scope: str = "") -> Document | None:
        """Return a document; None if no document with this id is visible in the scope."""
        if id in shipped():
            return shipped()[id]
        return next(iter(await self._uploads(scope, id)), None)

    async def add(self, document: Document, *, path: Path | None = None) -> Document:
        """Add an upload and return it, perhaps with a number after its id and title.

        An upload with the same id is replaced, unless it is known to be another file: then both are
        kept, and the new one gets the number.

        Args:
            document: Upload to add.
            path: File that it was read from; None if it is no file.

        Raises:
            ConfigError: The session would exceed its upload limits, or another process kept adding
                documents for too long.
            StorageError: The upload cannot be stored.
            ValueError: The document has no scope or has the id of a shipped document.
        """
        if not document.scope or document.id in shipped():
            raise ValueError(f"{document.id} is no upload")
        async with self._alone(f"uploads of {document.scope}"):
            return await self._add(document, _digest(path) if path else "")

    async def _add(self, document: Document, file: str) -> Document:
        if file:
            document = _numbered(document, file, await self._files(document.scope))
        uploads = {one.id: one for one in await self._uploads(document.scope)}
        earlier = uploads.pop(document.id, None)
        if len(uploads) >= MOST_UPLOADS:
            raise ConfigError(f"a session has at most {MOST_UPLOADS} uploads; start another one")
        if sum(len(one.text) for one in (*uploads.values(), document)) > MOST_CHARACTERS:
            raise ConfigError(
                f"the uploads of a session have at most {MOST_CHARACTERS:,} characters together; "
                "start another one"
            )
        row = {
            "scope": document.scope,
            "id": document.id,
            "title": document.title,
            "kind": document.kind,
            "date": document.date.isoformat() if document.date else "",
            "text": document.text,
            "amount": "" if document.amount is None else str(document.amount),
            "currency": document.currency,
        }
        same = (_UPLOADS.c.scope == document.scope) & (_UPLOADS.c.id == document.id)
        await self._retriever.add([*_passages(document)])
        async with self._database.begin() as connection:  # from here on the upload is visible
            await connection.execute(delete(_UPLOADS).where(same))
            await connection.execute(insert(_UPLOADS).values(row))
            if file:
                is_its = (_FILES.c.scope == document.scope) & (_FILES.c.id == document.id)
                known = {"scope": document.scope, "id": document.id, "file": file}
                await connection.execute(delete(_FILES).where(is_its))
                await connection.execute(insert(_FILES).values(known))
        if earlier and earlier.version != document.version:
            await self._retriever.remove(earlier.version, scope=document.scope)
        return document

    async def forget(self, scope: str) -> None:
        """Remove all uploads of a session."""
        async with self._alone(f"uploads of {scope}"):
            for one in await self._uploads(scope):
                await self._retriever.remove(one.version, scope=scope)
            async with self._database.begin() as connection:
                for table in (_UPLOADS, _FILES):
                    await connection.execute(delete(table).where(table.c.scope == scope))

    async def retrieve(self, query: str, *, scope: str = "", k: int = 3) -> list[Snippet]:
        """Return the best passage of each document that matches a query, best first.

        Args:
            query: Any text.
            scope: Session whose uploads are also searched; empty searches none.
            k: Maximum number of documents.
        """
        there = {(one.scope, one.version): one for one in await self.documents(scope)}
        best: dict[str, Snippet] = {}
        # Search everything, then only shipped documents: one long upload may fill all hits.
        for scopes in ({"", scope}, {""}):
            for hit in await self._retriever.search(query, k=_HITS, scopes=scopes):
                version = hit.passage.id.rpartition("#")[0]
                document = there.get((hit.passage.scope, version))
                if document:
                    found = Snippet(document.id, document.title, hit.passage.text)
                    best.setdefault(document.id, found)
            if len(best) >= k or not scope:
                break
        return [*best.values()][:k]

    async def _uploads(self, scope: str, id: str | None = None) -> Sequence[Document]:
        if not scope:
            return ()
        query = select(_UPLOADS).where(_UPLOADS.c.scope == scope).order_by(_UPLOADS.c.id)
        async with self._database.read() as connection:
            rows = await connection.execute(
                query if id is None else query.where(_UPLOADS.c.id == id)
            )
            return [_upload(row) for row in rows]

    async def _files(self, scope: str) -> dict[str, str]:
        """Return id -> digest of the file, for uploads whose file is known."""
        query = select(_FILES.c.id, _FILES.c.file).where(_FILES.c.scope == scope)
        async with self._database.read() as connection:
            return {row.id: row.file for row in await connection.execute(query)}

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """Hold the lock for changes to documents, across all tasks and processes."""
        try:
            async with self._database.lock(name, patience=_PATIENCE):
                yield
        except LockTakenError:
            raise ConfigError("another process adds documents all the time; try again") from None


@cache
def shipped() -> dict[str, Document]:
    """Return id -> document, for the documents of this package."""
    return {path.stem: _read(path) for path in matching(_SHIPPED, "*.md")}


def _read(path: Path) -> Document:
    _, head, text = path.read_text(encoding="utf-8").split("---\n", 2)
    known: dict[str, Any] = yaml.safe_load(head)
    return Document(
        path.stem,
        known["title"],
        known["kind"],
        text.strip(),
        known["date"],
        Decimal(str(known["amount"])) if "amount" in known else None,
        known.get("currency", ""),
    )


def _numbered(document: Document, file: str, files: Mapping[str, str]) -> Document:
    """Return an upload under the first id that no other file has."""
    number, id_ = 1, document.id
    while files.get(id_, file) != file:
        number += 1
        id_ = f"{document.id}_{number}"
    if number == 1:
        return document
    return replace(document, id=id_, title=f"{document.title} ({number})")


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()


def _upload(row: Row[Any]) -> Document:
    return Document(
        row.id,
        row.title,
        row.kind,
        row.text,
        date.fromisoformat(row.date) if row.date else None,
        Decimal(row.amount) if row.amount else None,
        row.currency,
        row.scope,
    )


def _passages(document: Document) -> Iterator[Passage]:
    for number, part in enumerate(_parts(document.text), start=1):
        id_ = f"{document.version}#{number}"
        # Versions of an upload are removed individually; a shipped document has only one at a time.
        indexed_as = document.version if document.scope else document.id
        yield Passage(id_, indexed_as, part, document.title, document.scope)


def _parts(text: str) -> Iterator[str]:
    """Split a text at section headings, and long sections between paragraphs."""
    part = ""
    for block in re.split(r"\n\s*\n", text):
        is_full = len(part) + len(block) > _PASSAGE
        if part.strip() and (block.startswith("#") or is_full):
            yield part.strip()
            part = ""
        part += f"{block}\n\n"
        if len(part) > 2 * _PASSAGE:  # a single paragraph may be as long as a book
            *whole, part = pieces_of(part, _PASSAGE)
            yield from filter(None, (piece.strip() for piece in whole))
    if part.strip():
        yield part.strip()


_KINDS = ("invoice", "claim", "contract", "policy", "letter", "report")


def kind_of(name: str, text: str) -> str:
    """Return the kind of a document, judged by its name and its first words."""
    start = f"{name} {text[:300]}".casefold()
    places = {kind: start.find(kind) for kind in _KINDS if kind in start}
    return min(places, key=lambda kind: places[kind]) if places else "document"
