"""The documents: those that are shipped, and what a session's user has uploaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import Column, MetaData, Row, String, Table, Text, delete, insert, select

from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever, Passage

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
_PASSAGE = 900  # characters, about: a section, or a part of a long one


@dataclass(frozen=True, slots=True)
class Document:
    """A document, as text."""

    id: str
    title: str
    kind: str
    """`invoice`, `claim`, `contract`, `letter`, `policy`, `report`, `spreadsheet`, `document`."""
    text: str
    date: date | None = None
    amount: Decimal | None = None
    """What it is about as a whole, such as the total of an invoice; None: it has none."""
    currency: str = ""
    """ISO 4217; empty: not stated."""
    scope: str = ""
    """The session of an upload; empty: shipped, for all."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a document that was found."""

    document_id: str
    title: str
    text: str


class Library:
    """The shipped documents, and uploads, which only their session sees. Made by `open`."""

    def __init__(self, database: Database, retriever: HybridRetriever) -> None:
        self._database = database
        self._retriever = retriever

    @classmethod
    async def open(cls, database: Database, retriever: HybridRetriever) -> Library:
        """Return the library of a database; the shipped documents are indexed once.

        Raises:
            ConfigError: The database cannot be used.
        """
        await database.make(_TABLES)
        await retriever.add([part for one in shipped().values() for part in _passages(one)])
        return cls(database, retriever)

    async def documents(self, scope: str = "") -> list[Document]:
        """Return the shipped documents, then those of a scope."""
        return [*shipped().values(), *(await self._uploads(scope))]

    async def document(self, id: str, scope: str = "") -> Document | None:
        """Return a document; None if there is none of that id, or only in another scope."""
        return {one.id: one for one in await self.documents(scope)}.get(id)

    async def add(self, document: Document) -> None:
        """Add an upload; it takes the place of an earlier one of its id.

        Raises:
            StorageError: It cannot be stored.
        """
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
        async with self._database.begin() as connection:
            await connection.execute(delete(_UPLOADS).where(same))
            await connection.execute(insert(_UPLOADS).values(row))
        await self._retriever.remove(document.id, scope=document.scope)
        await self._retriever.add([*_passages(document)])

    async def forget(self, scope: str) -> None:
        """Remove all uploads of a session."""
        for one in await self._uploads(scope):
            await self._retriever.remove(one.id, scope=scope)
        async with self._database.begin() as connection:
            await connection.execute(delete(_UPLOADS).where(_UPLOADS.c.scope == scope))

    async def retrieve(self, query: str, *, scope: str = "", k: int = 3) -> list[Snippet]:
        """Return the best passage of each of the documents that a query is about, best first.

        Args:
            query: Any text.
            scope: Of uploads that are looked at, too.
            k: How many documents at most.
        """
        hits = await self._retriever.search(query, k=4 * k, scopes={"", scope})
        best: dict[str, Snippet] = {}
        for hit in hits:
            found = hit.passage
            best.setdefault(found.document, Snippet(found.document, found.title, found.text))
        return [*best.values()][:k]

    async def _uploads(self, scope: str) -> Sequence[Document]:
        if not scope:
            return ()
        query = select(_UPLOADS).where(_UPLOADS.c.scope == scope).order_by(_UPLOADS.c.id)
        async with self._database.read() as connection:
            return [_upload(row) for row in await connection.execute(query)]


@cache
def shipped() -> dict[str, Document]:
    """Return the documents of this package, by their ids."""
    return {path.stem: _read(path) for path in sorted(_SHIPPED.glob("*.md"))}


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
        id_ = f"{document.id}#{number}"
        yield Passage(id_, document.id, part, document.title, document.scope)


def _parts(text: str) -> Iterator[str]:
    """Cut a text where a section begins, and a long section between its paragraphs."""
    part = ""
    for block in re.split(r"\n\s*\n", text):
        is_full = len(part) + len(block) > _PASSAGE
        if part.strip() and (block.startswith("#") or is_full):
            yield part.strip()
            part = ""
        part += f"{block}\n\n"
        while len(part) > 2 * _PASSAGE:  # a paragraph may be a whole book
            yield part[:_PASSAGE].strip()
            part = part[_PASSAGE:]
    if part.strip():
        yield part.strip()


# What is read out of an upload

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "₫": "VND"}
_CODE = r"USD|EUR|GBP|CHF|VND"
_MONEY = re.compile(
    rf"(?P<sign>[$€£₫]|\b(?:{_CODE})\b)?\s?(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"(?![\d,]*\d)\s?(?P<code>[€£₫]|(?:{_CODE})\b)?"
)
_TOTAL = re.compile(
    r"\b(?:grand total|total|amount due|balance due|total due|sum claimed)\b(?P<rest>.*)",
    re.IGNORECASE,
)
_KINDS = ("invoice", "claim", "contract", "policy", "letter", "report")


def amount_of(text: str) -> tuple[Decimal | None, str]:
    """Return the total that a document states, and its currency.

    It is the last amount with a currency behind the last `total`, `amount due` or `balance due` in
    a line. A document without such a line has none: nothing is added up.
    """
    for line in reversed(text.split("\n")):
        if match := _TOTAL.search(line):
            found = [one for one in _MONEY.finditer(match["rest"]) if one["sign"] or one["code"]]
            if found:
                mark = found[-1]["sign"] or found[-1]["code"]
                try:
                    number = Decimal(found[-1]["number"].replace(",", ""))
                except InvalidOperation:
                    continue
                return number, _CURRENCIES.get(mark, mark)
    return None, ""


def kind_of(name: str, text: str) -> str:
    """Return the kind of a document by its name, or the words at its beginning."""
    start = f"{name} {text[:300]}".casefold()
    places = {kind: start.find(kind) for kind in _KINDS if kind in start}
    return min(places, key=lambda kind: places[kind]) if places else "document"
