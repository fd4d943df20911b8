"""Passage retrieval by keywords (BM25), by embeddings, and by both."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import numpy as np
from sqlalchemy import (
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.ext.asyncio import AsyncConnection

from demos.toolkit.database import Database
from exaid_core.tokenizer import is_spaced, word_spans
from mdagents_llm.embeddings import Embedder

_RANK = 60
"""Constant k of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""
_DEPTH = 50
"""Number of top ranks that each list contributes."""
_MOST_WORDS = 64
"""Maximum number of words of a query that are searched."""
_BREAK = "\u200b"
"""Zero width space: separates words in the stored text of scripts without spaces."""
_LANGUAGES = {"english": "porter unicode61 remove_diacritics 2", "simple": "unicode61"}
"""PostgreSQL text search configuration -> SQLite FTS5 tokenizer."""

_TABLES = MetaData()
_PASSAGES = Table(
    "passages",
    _TABLES,
    Column("number", Integer, primary_key=True),
    Column("collection", String(64), nullable=False),
    Column("scope", String(64), nullable=False),
    Column("id", String(200), nullable=False),
    Column("document", String(200), nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("vector", LargeBinary),
    Column("words", TSVECTOR().with_variant(Text(), "sqlite")),
    Index("passages_by_id", "collection", "scope", "id", unique=True),
)


class By(StrEnum):
    """Methods of finding passages."""

    WORDS = "bm25"
    MEANING = "embeddings"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document."""

    id: str
    document: str
    """Id of the document that contains the passage."""
    text: str
    title: str = ""
    scope: str = ""
    """Scope that a search must name to find the passage, such as a session; empty is shared."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by a search."""

    passage: Passage
    score: float
    """Reciprocal rank fusion score; comparable only within one search."""
    ranks: Mapping[str, int]
    """Method -> rank from 1, for the methods that found the passage."""


class HybridRetriever:
    """Passages of one collection in a database.

    Args:
        database: Database that stores the passages; its owner closes it.
        collection: Name of the collection.
        embedder: Model that computes vectors; None searches by words only.
        language: `english` matches stems of words; `simple` matches whole words of any language.
    """

    def __init__(
        self,
        database: Database,
        collection: str,
        *,
        embedder: Embedder | None = None,
        language: str = "english",
    ) -> None:
        if language not in _LANGUAGES:
            raise ValueError(f"language is {language!r}; it is one of {', '.join(_LANGUAGES)}")
        self._database = database
        self._collection = collection
        self._embedder = embedder
        self._language = language
        self._words = f"passage_words_{language}"

    @property
    def ways(self) -> tuple[By, ...]:
        """Available search methods."""
        return tuple(By) if self._embedder else (By.WORDS,)

    async def __aenter__(self) -> Self:
        """Create the tables.

        Raises:
            ConfigError: The database cannot be used.
        """
        tokenizer = _LANGUAGES[self._language]
        extra = {
            "sqlite": f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._words} USING fts5("
            f"title, body, content='', tokenize='{tokenizer}')",
            "postgresql": "CREATE INDEX IF NOT EXISTS passages_by_words "
            "ON passages USING gin (words)",
        }
        await self._database.make(_TABLES, extra)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Do nothing; the owner of the database closes it."""

    async def add(self, passages: Sequence[Passage]) -> None:
        """Add passages, replacing those with the same id and scope.

        Unchanged passages are skipped at no cost.

        Args:
            passages: Passages to add; the last one with a given id and scope wins.
        """
        wanted = {(passage.scope, passage.id): passage for passage in passages}
        async with self._database.read() as connection:
            there = await self._digests(connection, wanted)
        new = {key: p for key, p in wanted.items() if there.get(key) != self._digest(p)}
        if not new:
            return
        vectors: Sequence[bytes | None] = [None] * len(new)
        if self._embedder:
            texts = [f"{p.title}\n{p.text}" for p in new.values()]
            rows = await asyncio.to_thread(self._embedder.passages, texts)
            vectors = [row.tobytes() for row in rows]
        async with self._database.begin() as connection:
            await self._drop(connection, tuple_(_PASSAGES.c.scope, _PASSAGES.c.id).in_(new))
            for passage, vector in zip(new.values(), vectors, strict=True):
                await self._insert(connection, passage, vector)

    async def documents(self, scope: str = "") -> list[str]:
        """Return the sorted ids of the documents that have passages in a scope."""
        query = select(_PASSAGES.c.document).where(self._within([scope])).distinct()
        async with self._database.read() as connection:
            return sorted((await connection.execute(query)).scalars())

    async def remove(self, document: str, *, scope: str = "") -> None:
        """Remove all passages of a document."""
        async with self._database.begin() as connection:
            of_it = (_PASSAGES.c.document == document) & (_PASSAGES.c.scope == scope)
            await self._drop(connection, of_it)

    async def search(
        self, query: str, *, k: int = 5, scopes: Collection[str] = ("",), by: By = By.BOTH
    ) -> list[Hit]:
        """Return the passages that match a query, best first.

        Args:
            query: Any text.
            k: Maximum number of passages.
            scopes: Scopes to search.
            by: Search method; without an embedder, `BOTH` searches by words.

        Raises:
            ValueError: `by` is `MEANING` and there is no embedder.
        """
        if by is By.MEANING and self._embedder is None:
            raise ValueError("there is no embedder: search by words")
        lists: dict[str, list[int]] = {}
        async with self._database.read() as connection:
            if by is not By.MEANING and (words := _words_of(query)):
                lists[By.WORDS.value] = await self._by_words(connection, words, scopes)
            if by is not By.WORDS and self._embedder and query.strip():
                found = await self._by_meaning(connection, self._embedder, query, scopes)
                lists[By.MEANING.value] = found
            ranks: dict[int, dict[str, int]] = defaultdict(dict)
            for way, numbers in lists.items():
                for rank, number in enumerate(numbers, start=1):
                    ranks[number][way] = rank
            scores = {n: sum(1 / (_RANK + r) for r in of.values()) for n, of in ranks.items()}
            best = sorted(scores, key=lambda number: (-scores[number], number))[:k]
            rows = await connection.execute(select(_PASSAGES).where(_PASSAGES.c.number.in_(best)))
            passages = {
                row.number: Passage(
                    row.id, row.document, _joined(row.text), _joined(row.title), row.scope
                )
                for row in rows
            }
        return [Hit(passages[n], scores[n], ranks[n]) for n in best if n in passages]

    async def _by_words(
        self, connection: AsyncConnection, words: Sequence[str], scopes: Collection[str]
    ) -> list[int]:
        if self._database.is_postgres:
            asked = func.to_tsquery(self._language, " | ".join(f"'{word}'" for word in words))
            query = select(_PASSAGES.c.number).where(
                self._within(scopes), _PASSAGES.c.words.op("@@")(asked)
            )
            rank = func.ts_rank_cd(_PASSAGES.c.words, asked, 1)
            query = query.order_by(rank.desc(), _PASSAGES.c.number)
        else:
            found = text(
                f"SELECT rowid AS number, bm25({self._words}, 2.0, 1.0) AS score "
                f"FROM {self._words} WHERE {self._words} MATCH :asked"
            ).columns(_PASSAGES.c.number, Column("score", Integer))
            hits = found.bindparams(asked=" OR ".join(f'"{word}"' for word in words)).subquery()
            query = (
                select(_PASSAGES.c.number)
                .join(hits, hits.c.number == _PASSAGES.c.number)
                .where(self._within(scopes))
                .order_by(hits.c.score, _PASSAGES.c.number)
            )
        return list((await connection.scalars(query.limit(_DEPTH))).all())

    async def _by_meaning(
        self,
        connection: AsyncConnection,
        embedder: Embedder,
        query: str,
        scopes: Collection[str],
    ) -> list[int]:
        of_it = select(_PASSAGES.c.number, _PASSAGES.c.vector).where(
            self._within(scopes), _PASSAGES.c.vector.is_not(None)
        )
        rows = (await connection.execute(of_it.order_by(_PASSAGES.c.number))).all()
        if not rows:
            return []
        asked = (await asyncio.to_thread(embedder.queries, [query]))[0]
        numbers = np.array([row.number for row in rows])
        vectors = np.frombuffer(b"".join(row.vector for row in rows), dtype=np.float32)
        nearness = vectors.reshape(len(rows), -1) @ asked
        return [int(number) for number in numbers[np.argsort(-nearness, kind="stable")[:_DEPTH]]]

    def _within(self, scopes: Collection[str]) -> Any:
        return (_PASSAGES.c.collection == self._collection) & _PASSAGES.c.scope.in_(scopes)

    async def _digests(
        self, connection: AsyncConnection, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], str]:
        query = select(_PASSAGES.c.scope, _PASSAGES.c.id, _PASSAGES.c.digest).where(
            self._within({scope for scope, _ in keys})
        )
        rows = await connection.execute(query)
        return {(row.scope, row.id): row.digest for row in rows}

    def _digest(self, passage: Passage) -> str:
        made_by = self._embedder.name if self._embedder else ""
        texts = (_divided(passage.title), _divided(passage.text))
        parts = (passage.document, *texts, self._language, made_by)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    async def _insert(
        self, connection: AsyncConnection, passage: Passage, vector: bytes | None
    ) -> None:
        title, body = (_divided(one.replace("\0", " ")) for one in (passage.title, passage.text))
        row = {
            "collection": self._collection,
            "scope": passage.scope,
            "id": passage.id,
            "document": passage.document,
            "title": title,
            "text": body,
            "digest": self._digest(passage),
            "vector": vector,
        }
        if self._database.is_postgres:
            words = func.to_tsvector(self._language, f"{title}\n{body}".replace(_BREAK, " "))
            await connection.execute(insert(_PASSAGES).values(**row, words=words))
            return
        done = await connection.execute(insert(_PASSAGES).values(row))
        (number,) = done.inserted_primary_key or (None,)
        await connection.execute(
            text(f"INSERT INTO {self._words} (rowid, title, body) VALUES (:number, :title, :body)"),
            {"number": number, "title": title, "body": body},
        )

    async def _drop(self, connection: AsyncConnection, which: Any) -> None:
        of_it = which & (_PASSAGES.c.collection == self._collection)
        if not self._database.is_postgres:
            query = select(_PASSAGES.c.number, _PASSAGES.c.title, _PASSAGES.c.text).where(of_it)
            for row in (await connection.execute(query)).all():
                # The FTS5 index is contentless: deleting a row requires the original texts.
                forget = (
                    f"INSERT INTO {self._words} ({self._words}, rowid, title, body) "
                    "VALUES ('delete', :number, :title, :body)"
                )
                values = {"number": row.number, "title": row.title, "body": row.text}
                await connection.execute(text(forget), values)
        await connection.execute(delete(_PASSAGES).where(of_it))


def _words_of(query: str) -> list[str]:
    """Return the distinct words of a query: letters and digits only, without query syntax."""
    words = re.findall(r"[^\W_]+", _divided(query[: 100 * _MOST_WORDS].casefold()))
    return list(dict.fromkeys(words))[:_MOST_WORDS]


def _divided(text: str) -> str:
    """Return a text with `_BREAK` before each word, if a part of it is in a script without spaces.

    The tokenizers of both databases take such a part for a single word, and split at `_BREAK`.
    """
    if is_spaced(text):
        return text
    starts = [start for start, _ in word_spans(text)]
    return _BREAK.join(text[start:end] for start, end in pairwise([0, *starts, len(text)]))


def _joined(text: str) -> str:
    """Return the text that `_divided` divided."""
    return text.replace(_BREAK, "")
