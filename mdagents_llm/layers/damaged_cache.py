"""Reads what can be read of a damaged file of the reply cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path


def readable_rows(path: Path) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield (key, whether for replays only, content) of each row before and after the damage.

    A row may be yielded more than once, and its values may have other types. Older files store the
    rows by key and have no `rowid`.
    """
    for order in ("rowid", "rowid DESC", "key", "key DESC"):
        for found in (_scanned(path, order), _one_by_one(path, order)):
            with suppress(sqlite3.Error):
                yield from found


def _scanned(path: Path, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield the rows up to the one before the first that cannot be read."""
    with _damaged(path) as db:
        yield from db.execute(f"SELECT key, truncated, content FROM reply ORDER BY {order}")


def _one_by_one(path: Path, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield each row that can be found by its rowid or key, wherever others cannot be read."""
    column = order.split()[0]
    query = f"SELECT key, truncated, content FROM reply WHERE {column} = ?"
    with _damaged(path) as db:
        for (place,) in db.execute(f"SELECT {column} FROM reply ORDER BY {order}"):
            with suppress(sqlite3.Error, UnicodeDecodeError):
                yield from db.execute(query, (place.decode() if column == "key" else place,))


@contextmanager
def _damaged(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")  # allows reading a truncated file
        db.text_factory = bytes
        yield db
