"""Cached replies in an SQLite file that survives kills, damage and read-only folders."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic_core import to_json

from mdagents_llm.chat import TOKEN_FIELDS, ChatReply, StopReason, TokenUsage
from mdagents_llm.errors import ErrorKind, ProviderError, StorageError
from mdagents_llm.files.json_text import parse_json
from mdagents_llm.files.private import make_private_file
from mdagents_llm.layers.damaged_cache import readable_rows
from mdagents_llm.terminal.printing import print_line
from mdagents_llm.text import counted

_SCHEMA_VERSION = 1
_PATIENCE = 5.0  # seconds to wait for another process's lock


class ReplyStore:
    """Replies in an SQLite file in WAL mode, written by this process alone.

    The first reply to a request is kept, even when two processes make the call at the same time.
    Truncated replies and errors are kept for replays only, so that a replay ends as the run did: a
    live run makes the call again, and the new reply replaces them.

    A broken cache ends no run. A damaged file is kept under a dated name, and its readable rows are
    copied to a new one. If no file can be used, replies are kept in memory; so are new replies if
    the file cannot be written.

    Args:
        path: Path of the file; created, with its folder, if missing.
        say: Function that shows the user a line about a broken cache.
        patience: Seconds that a writer waits for another process.
    """

    def __init__(
        self,
        path: Path,
        say: Callable[[str], object] = print_line,
        patience: float = _PATIENCE,
    ) -> None:
        self._path = path
        self._say = say
        self._patience = patience
        self.is_used = False
        """Whether a cached reply has been found since the file was opened."""
        self.asking: dict[str, asyncio.Future[None]] = {}
        """Key of a call in progress -> future that is done when the key is released."""
        self._unwritten: list[_Row] = []  # rows held back while another process locks the file
        self._replies = "reply"  # the table that is read, or a query for several
        self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        """Open the file; a new one instead if it is damaged, or memory if it cannot be used."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._connected_to_file()
        except sqlite3.Error as error:
            if _is_damage(error):
                return self._renewed()
            is_barred = _code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
            if is_barred and self._path.is_file():
                return self._read_only(str(error))
            return self._in_memory(str(error))
        except OSError as error:
            return self._in_memory(error.strerror or str(error))

    def _read_only(self, why: str) -> sqlite3.Connection:
        """Open a file in a folder that takes no files, as those of the WAL mode beside it."""
        file = f"{self._path.absolute().as_uri()}?mode=ro"
        for parameters in ("", "&immutable=1"):  # the first if a process has the file open
            with suppress(sqlite3.Error):
                db = sqlite3.connect(f"{file}{parameters}", uri=True, isolation_level=None)
                try:
                    db.execute(_CHECK)
                    self._keep_in_memory(db, why)
                except BaseException:
                    db.close()
                    raise
                return db
        return self._in_memory(why)

    def _connected_to_file(self) -> sqlite3.Connection:
        # An existing file keeps its mode: its owner may share it with a group.
        make_private_file(self._path, tightens=False)
        self._status = self._path.stat()
        return _connected(str(self._path), self._patience)

    def _in_memory(self, why: str) -> sqlite3.Connection:
        self._say(f"NOTE: the cache {self._path} cannot be used ({why}): this run keeps no replies")
        return _connected(":memory:", self._patience)

    def _renewed(self) -> sqlite3.Connection:
        """Rename the damaged file to a dated name, and open a new one with its readable rows."""
        now = datetime.now(UTC)
        kept = self._path.with_name(f"{self._path.name}.damaged-{now:%Y%m%dT%H%M%S.%f}")
        try:
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").rename(f"{kept}{suffix}")
            db = self._connected_to_file()
        except (OSError, sqlite3.Error) as error:
            return self._in_memory(str(error))
        db.execute("BEGIN")
        db.executemany("INSERT OR IGNORE INTO reply VALUES (?, ?, ?)", _recovered(kept))
        db.execute("COMMIT")
        self._say(
            f"NOTE: the cache {self._path} was damaged and is kept as {kept.name}; "
            f"{db.total_changes:,} of its replies could be read and are used"
        )
        return db

    def _renew(self) -> None:
        """Switch to a new file, or to the replacement that another process has already made."""
        try:
            is_ours = os.path.samestat(self._status, self._path.stat())
        except FileNotFoundError:
            is_ours = False
        self._db.close()
        self._replies = "reply"
        self._db = self._renewed() if is_ours else self._opened()

    def get(self, key: str, *, truncated_too: bool) -> ChatReply | None:
        """Return the reply cached under `key`; truncated ones and errors only if `truncated_too`.

        Raises:
            ProviderError: An error is cached under `key`.
        """
        try:
            row = self._found(key, truncated_too=truncated_too)
        except sqlite3.Error as error:
            if not _is_damage(error):
                return None
            self._renew()
            row = self._found(key, truncated_too=truncated_too)
        if row is None:
            return None
        try:
            kept = _kept_in(row[0])
        except _NO_REPLY:
            self._forget(key)
            return None
        self.is_used = True
        if isinstance(kept, ProviderError):
            raise kept
        return kept

    def _found(self, key: str, *, truncated_too: bool) -> tuple[bytes] | None:
        found: tuple[bytes] | None = self._db.execute(
            f"SELECT CAST(content AS BLOB) FROM {self._replies} WHERE key = ? AND truncated <= ?",
            (key, truncated_too),
        ).fetchone()
        return found

    def _forget(self, key: str) -> None:
        """Delete a row without a valid reply, so that a new reply can take its place."""
        with suppress(sqlite3.Error):
            self._db.execute("DELETE FROM reply WHERE key = ?", (key,))

    async def claim(self, key: str) -> ChatReply | None:
        """Return the cached reply; if None, the caller makes the call and must `release` the key.

        This waits while another caller makes the same call. Truncated replies and errors are not
        returned.
        """
        reply = self.get(key, truncated_too=False)
        while reply is None and (asking := self.asking.get(key)) is not None:
            await asyncio.shield(asking)
            reply = self.get(key, truncated_too=False)
        if reply is None:
            self.asking[key] = asyncio.get_running_loop().create_future()
        return reply

    def release(self, key: str) -> None:
        """Release a claimed key, and wake the callers that wait for its reply."""
        self.asking.pop(key).set_result(None)

    def is_empty(self) -> bool:
        """Return whether the cache has no replies."""
        try:
            return self._db.execute(f"SELECT 1 FROM {self._replies} LIMIT 1").fetchone() is None
        except sqlite3.Error as error:
            if not _is_damage(error):
                return False
            self._renew()
            return self.is_empty()

    def put(self, key: str, reply: ChatReply) -> None:
        """Cache a reply; once this returns, a kill of this process cannot lose it.

        Raises:
            StorageError: The reply cannot be written.
        """
        content = {
            "version": _SCHEMA_VERSION,
            "text": reply.text,
            "usage": reply.usage.as_dict(),
            "stop_reason": reply.stop_reason,
            "model": reply.model,
            "latency": reply.latency,
        }
        if reply.batched:
            content["batched"] = True
        if reply.usage_estimated:
            content["usage_estimated"] = True
        if reply.cost_usd is not None:
            content["cost_usd"] = reply.cost_usd
        if reply.service_tier:
            content["service_tier"] = reply.service_tier
        if reply.reasoning:
            content["reasoning"] = reply.reasoning
        self._put(key, content, for_replays_only=reply.stop_reason is StopReason.LENGTH)

    def put_error(self, key: str, error: ProviderError) -> None:
        """Cache the error in which a request ended.

        Raises:
            StorageError: The error cannot be written.
        """
        content = {"version": _SCHEMA_VERSION, "error": str(error), "kind": error.kind.value}
        self._put(key, content, for_replays_only=True)

    def _put(self, key: str, content: dict[str, object], *, for_replays_only: bool) -> None:
        text = to_json(content).decode()
        self._unwritten.append((key, for_replays_only, text))
        try:
            try:
                self._write()
            except sqlite3.Error as error:
                if _code(error) == sqlite3.SQLITE_READONLY:
                    self._keep_in_memory(self._db, str(error))
                elif _is_damage(error):
                    self._renew()
                else:
                    raise
                self._write()
        except sqlite3.Error as error:
            if _code(error) != sqlite3.SQLITE_BUSY:
                self._unwritten.clear()
                raise StorageError(f"cannot write to the cache {self._path}: {error}") from error
            # The row is written with the next one; waiting each time would delay all calls.
            self._db.execute("PRAGMA busy_timeout = 0")

    def _keep_in_memory(self, db: sqlite3.Connection, why: str) -> None:
        """Add a table in memory, which takes the new rows of a file that cannot be written."""
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute(f"CREATE TEMP TABLE {_TABLE}")
        self._replies = "(SELECT * FROM temp.reply UNION ALL SELECT * FROM main.reply)"
        self._say(f"NOTE: the cache {self._path} keeps no new replies of this run ({why})")

    def _write(self) -> None:
        """Write the pending rows."""
        self._db.executemany(
            "INSERT INTO reply VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
            "truncated = excluded.truncated, content = excluded.content WHERE truncated",
            self._unwritten,
        )
        self._unwritten.clear()

    def close(self) -> None:
        """Write the pending rows and close the file."""
        try:
            if self._unwritten:
                self._db.execute(f"PRAGMA busy_timeout = {1000 * self._patience:.0f}")
                self._write()
        except sqlite3.Error as error:
            lost = counted(len(self._unwritten), "reply", "replies")
            self._say(f"NOTE: the cache {self._path} did not take {lost}: {error}")
        self._db.close()


_NO_REPLY = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_Row = tuple[str, int, str]
"""Row of the table: (key, whether it is for replays only, content)."""


_TABLE = "reply (key TEXT PRIMARY KEY, truncated INTEGER NOT NULL, content TEXT NOT NULL)"
_CHECK = "SELECT key, truncated, content FROM reply LIMIT 0"  # of the columns


def _connected(path: str, patience: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=patience)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # survives a kill; a power cut may not
        db.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
        db.execute(_CHECK)
    except BaseException:
        db.close()
        raise
    return db


def _is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means a damaged or foreign file, not a locked file or full disk."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code of SQLite; 0 for an error of Python's `sqlite3` module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _recovered(path: Path) -> Iterator[_Row]:
    """Yield the rows of a damaged file that hold a reply or an error; some more than once."""
    for key, truncated, content in readable_rows(path):
        with suppress(*_NO_REPLY):
            _kept_in(content)
            yield key.decode(), int(truncated), content.decode()


def _kept_in(content: bytes) -> ChatReply | ProviderError:
    """Return the reply or the error that a row holds.

    Raises:
        ValueError: The row holds neither (or another of `_NO_REPLY`).
    """
    kept = parse_json(content)
    if "error" in kept:
        kind = ErrorKind(kept.get("kind", ErrorKind.CONTEXT_LENGTH))  # older files have no kind
        return ProviderError(kept["error"], kind=kind)
    usage = TokenUsage(**kept["usage"])
    counts = (getattr(usage, name) for name in TOKEN_FIELDS)
    batched, estimated = kept.get("batched", False), kept.get("usage_estimated", False)
    cost = kept.get("cost_usd")
    if not (
        isinstance(kept["text"], str)
        and isinstance(kept["model"], str)
        and type(kept["latency"]) in (int, float)
        and isinstance(batched, bool)
        and isinstance(estimated, bool)
        and type(cost) in (int, float, type(None))
        and isinstance(kept.get("service_tier", ""), str)
        and isinstance(kept.get("reasoning", ""), str)
        and all(type(count) is int for count in counts)
    ):
        raise TypeError(content)
    return ChatReply(
        text=kept["text"],
        usage=usage,
        stop_reason=StopReason(kept["stop_reason"]),
        model=kept["model"],
        latency=kept["latency"],
        cached=True,
        batched=batched,
        usage_estimated=estimated,
        cost_usd=cost,
        service_tier=kept.get("service_tier", ""),
        reasoning=kept.get("reasoning", ""),
    )
