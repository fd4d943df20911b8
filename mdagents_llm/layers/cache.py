"""Keeps replies, so that no call is paid for twice and a finished run can be replayed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.clock import Clock
from mdagents_llm.errors import (
    RETRYABLE_KINDS,
    ErrorKind,
    NothingRecorded,
    ProviderError,
    StorageError,
)
from mdagents_llm.files.printing import print_line
from mdagents_llm.files.private import make_private_file
from mdagents_llm.json_schema import reply_schema
from mdagents_llm.ledger import CallRow, Ledger, Logged, Price

_SCHEMA_VERSION = 1
_PATIENCE = 5.0  # seconds
_KEPT_ERRORS = RETRYABLE_KINDS | {ErrorKind.CONTEXT_LENGTH, ErrorKind.BAD_REQUEST}
"""Errors of a request; the others are of the account or of the model, and end a run."""


NOTHING_RECORDED = (
    "there is no recorded reply to begin with: --cache only replays what the same command without "
    "it has recorded"
)


class CacheMode(StrEnum):
    """How kept replies are used."""

    OFF = "off"
    ON = "on"
    """A kept reply is used again; a new one is kept."""
    ONLY = "only"
    """Only kept replies are used, and no provider is asked."""


class Replies(Protocol):
    """Kept replies, of which each is asked for once at a time."""

    async def claim(self, key: str) -> ChatReply | None:
        """Return the reply to a request; None: the caller asks, and must `release` the key.

        Waits while another asks for the same.
        """
        ...

    def put(self, key: str, reply: ChatReply) -> None:
        """Keep a reply.

        Raises:
            StorageError: It cannot be written.
        """

    def put_error(self, key: str, error: ProviderError) -> None:
        """Keep the error in which a request ended; raises like `put`."""

    def release(self, key: str) -> None:
        """Let others ask, after `claim` has returned None, whatever came of it."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ReplyStore:
    """Replies in an SQLite file in WAL mode, written by this process alone.

    The first reply to a request stays, also when two processes ask at the same time. A truncated
    reply and the error in which a request ended are kept for replays only, so that these end as the
    run did: a live run asks again, and the new reply takes their place.

    A broken cache ends no run. A damaged file is kept under a dated name, and what can be read of
    it goes into a new one. Where no file can be used, replies are kept in memory.

    Args:
        path: The file; made, with its folder, if it is not there.
        say: Shows the user a line about a broken cache.
        now: The time, for the name of a damaged file.
        patience: Seconds that a writer waits for another process.
    """

    def __init__(
        self,
        path: Path,
        say: Callable[[str], object] = print_line,
        now: Callable[[], datetime] = _utc_now,
        patience: float = _PATIENCE,
    ) -> None:
        self._path = path
        self._say = say
        self._now = now
        self._patience = patience
        self.is_used = False
        """Whether a kept reply has been found since the file was opened."""
        self.asking: dict[str, asyncio.Future[None]] = {}
        """Key of a request that is being asked -> done when it is no longer."""
        self._unwritten: list[_Row] = []  # while another process locks the file
        self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        """Open the file; in its place a new one if it is damaged, or memory if it is of no use."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._connected_to_file()
        except sqlite3.Error as error:
            if _is_damage(error):
                return self._renewed()
            return self._in_memory(str(error))
        except OSError as error:
            return self._in_memory(error.strerror or str(error))

    def _connected_to_file(self) -> sqlite3.Connection:
        # One that is there keeps its mode: its owner may share it with a group.
        make_private_file(self._path, tightens=False)
        self._status = self._path.stat()
        return _connected(str(self._path), self._patience)

    def _in_memory(self, why: str) -> sqlite3.Connection:
        self._say(f"NOTE: the cache {self._path} cannot be used ({why}): this run keeps no replies")
        return _connected(":memory:", self._patience)

    def _renewed(self) -> sqlite3.Connection:
        """Open a new file with what can be read of the damaged one, which gets a dated name."""
        kept = self._path.with_name(f"{self._path.name}.damaged-{self._now():%Y%m%dT%H%M%S.%f}")
        try:
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").rename(f"{kept}{suffix}")
            db = self._connected_to_file()
        except (OSError, sqlite3.Error) as error:
            return self._in_memory(str(error))
        db.execute("BEGIN")
        db.executemany("INSERT OR IGNORE INTO reply VALUES (?, ?, ?)", _readable_rows(kept))
        db.execute("COMMIT")
        self._say(
            f"NOTE: the cache {self._path} was damaged and is kept as {kept.name}; "
            f"{db.total_changes:,} of its replies could be read and are used"
        )
        return db

    def _renew(self) -> None:
        """Go on with a new file, unless another process has put one there already."""
        try:
            is_ours = os.path.samestat(self._status, self._path.stat())
        except FileNotFoundError:
            is_ours = False
        self._db.close()
        self._db = self._renewed() if is_ours else self._opened()

    def get(self, key: str, *, truncated_too: bool) -> ChatReply | None:
        """Return the reply kept under `key`; truncated ones and errors only if they are wanted.

        Raises:
            ProviderError: The error that was kept.
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
            "SELECT CAST(content AS BLOB) FROM reply WHERE key = ? AND truncated <= ?",
            (key, truncated_too),
        ).fetchone()
        return found

    def _forget(self, key: str) -> None:
        """Make room for the reply in the place of a row that holds none."""
        with suppress(sqlite3.Error):
            self._db.execute("DELETE FROM reply WHERE key = ?", (key,))

    async def claim(self, key: str) -> ChatReply | None:
        """Return the kept reply, once nobody else asks for it; None: the caller must ask.

        Truncated replies and errors are not kept replies; see `Replies.claim`.
        """
        reply = self.get(key, truncated_too=False)
        while reply is None and (asking := self.asking.get(key)) is not None:
            await asyncio.shield(asking)
            reply = self.get(key, truncated_too=False)
        if reply is None:
            self.asking[key] = asyncio.get_running_loop().create_future()
        return reply

    def release(self, key: str) -> None:
        """Let those go on who wait for the reply that the caller has asked for."""
        self.asking.pop(key).set_result(None)

    def is_empty(self) -> bool:
        """Return whether no reply was ever kept."""
        try:
            return self._db.execute("SELECT 1 FROM reply LIMIT 1").fetchone() is None
        except sqlite3.Error as error:
            if not _is_damage(error):
                return False
            self._renew()
            return self.is_empty()

    def put(self, key: str, reply: ChatReply) -> None:
        """Keep a reply; once this returns, a kill of this process cannot lose it.

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
        if reply.reasoning:
            content["reasoning"] = reply.reasoning
        self._put(key, content, for_replays_only=reply.stop_reason is StopReason.LENGTH)

    def put_error(self, key: str, error: ProviderError) -> None:
        """Keep the error in which a request ended.

        Raises:
            StorageError: The error cannot be written.
        """
        content = {"version": _SCHEMA_VERSION, "error": str(error), "kind": error.kind.value}
        self._put(key, content, for_replays_only=True)

    def _put(self, key: str, content: dict[str, object], *, for_replays_only: bool) -> None:
        text = json.dumps(content, ensure_ascii=False)
        self._unwritten.append((key, for_replays_only, text))
        try:
            try:
                self._write()
            except sqlite3.Error as error:
                if not _is_damage(error):
                    raise
                self._renew()
                self._write()
        except sqlite3.Error as error:
            if _code(error) != sqlite3.SQLITE_BUSY:
                self._unwritten.clear()
                raise StorageError(f"cannot write to the cache {self._path}: {error}") from error
            # Written with the next one; waiting for it each time would hold up all calls.
            self._db.execute("PRAGMA busy_timeout = 0")

    def _write(self) -> None:
        """Write what is not written yet."""
        self._db.executemany(
            "INSERT INTO reply VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
            "truncated = excluded.truncated, content = excluded.content WHERE truncated",
            self._unwritten,
        )
        self._unwritten.clear()

    def close(self) -> None:
        """Close the file."""
        try:
            if self._unwritten:
                self._db.execute(f"PRAGMA busy_timeout = {1000 * self._patience:.0f}")
                self._write()
        except sqlite3.Error as error:
            count = len(self._unwritten)
            self._say(f"NOTE: the cache {self._path} did not take {count} replies: {error}")
        self._db.close()


_NO_REPLY = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_Row = tuple[str, int, str]
"""(key, whether it is for replays only, content)"""


def _connected(path: str, patience: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=patience)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # survives a kill; a power cut may not
        db.execute(
            "CREATE TABLE IF NOT EXISTS reply "
            "(key TEXT PRIMARY KEY, truncated INTEGER NOT NULL, content TEXT NOT NULL)"
            "WITHOUT ROWID"
        )
        db.execute("SELECT key, truncated, content FROM reply LIMIT 0")  # it may be another table
    except BaseException:
        db.close()
        raise
    return db


def _is_damage(error: sqlite3.Error) -> bool:
    """Return whether a file is no cache, or one that is broken; not that it is locked, or full."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code of SQLite; 0 for an error of Python's module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _readable_rows(path: Path) -> Iterator[_Row]:
    """Yield the rows of a damaged file that can be read, those before and those behind the damage.

    Where there is none in the way of reading, each is yielded twice.
    """
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA writable_schema = ON")  # a file that is cut off is read, too
            for key, truncated, content in db.execute(
                "SELECT CAST(key AS BLOB), truncated, CAST(content AS BLOB) FROM reply "
                f"ORDER BY key {order}"
            ):
                with suppress(*_NO_REPLY):
                    _kept_in(content)
                    yield key.decode(), int(truncated), content.decode()


def _kept_in(content: bytes) -> ChatReply | ProviderError:
    """Return what a row keeps.

    Raises:
        ValueError: It keeps something else; so do the other errors of `_NO_REPLY`.
    """
    kept = json.loads(content)
    if "error" in kept:
        kind = ErrorKind(kept.get("kind", ErrorKind.CONTEXT_LENGTH))  # of older files
        return ProviderError(kept["error"], kind=kind)
    usage = TokenUsage(**kept["usage"])
    counts = (getattr(usage, name) for name in TokenUsage.__slots__)
    batched, estimated = kept.get("batched", False), kept.get("usage_estimated", False)
    if not (
        isinstance(kept["text"], str)
        and isinstance(kept["model"], str)
        and type(kept["latency"]) in (int, float)
        and isinstance(batched, bool)
        and isinstance(estimated, bool)
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
        reasoning=kept.get("reasoning", ""),
    )


class Cache:
    """Answers from the kept replies where it can; else asks the model and keeps its reply.

    Of equal requests at once, in all runs that share the store, one is asked; the others wait for
    its reply, and ask themselves if none is kept.

    Args:
        inner: The model that is asked.
        replies: Those that are kept.
        hits: Hands over the replies that are used again.
    """

    def __init__(self, inner: ChatModel, replies: Replies, hits: Hits) -> None:
        self._inner = inner
        self._replies = replies
        self._hits = hits

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the kept reply, or ask for one and keep it; see `ChatModel.generate`.

        A kept reply is given to `on_text` as one delta.
        """
        key = self._hits.key(request)
        kept = await self._replies.claim(key)
        if kept is not None:
            return self._hits.hand_over(request, kept, on_text)
        try:
            reply = await self._inner.generate(request, on_text)
        except ProviderError as error:
            if error.kind in _KEPT_ERRORS:
                self._replies.put_error(key, error)
            raise
        else:
            shown = reply.reasoning if self._hits.keeps_reasoning else ""
            self._replies.put(key, replace(reply, reasoning=shown))
            return reply
        finally:
            self._replies.release(key)


class Replay:
    """Answers from the kept replies alone, and asks nobody.

    Args:
        store: The replies.
        hits: Hands them over.
    """

    def __init__(self, store: ReplyStore, hits: Hits) -> None:
        self._store = store
        self._hits = hits

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the recorded reply, given to `on_text` as one delta; see `ChatModel.generate`.

        Raises:
            ProviderError: `cache_miss`: no reply to this request is kept; or the error in which the
                request ended when it was made.
            NothingRecorded: No reply to the first request is kept, with or without a schema.
        """
        reply = self._store.get(self._hits.key(request), truncated_too=True)
        if reply is not None:
            return self._hits.hand_over(request, reply, on_text)
        # A run that had to ask for JSON in the prompt is looked for with a schema first.
        if not self._store.is_used and request.schema is None:
            raise NothingRecorded(NOTHING_RECORDED)
        message = "there is no recorded reply to this request (--cache only)"
        raise ProviderError(message, kind=ErrorKind.CACHE_MISS)


class Hits:
    """Hands over kept replies of a model, with a row in the ledger for each.

    Args:
        ledger: Gets the rows.
        provider: Name of the provider, for the row.
        model: Identity of the model: the same name at two endpoints is two models.
        name: The model that was asked for, for the row.
        price: Of the model, for the cost of a reply.
        clock: For the row.
        batch_price: Likewise, of a reply that was had in a batch.
        logged: What texts a row holds; hidden reasoning is kept with a reply only where it is one.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        provider: str,
        model: str,
        name: str,
        price: Price | None,
        clock: Clock,
        batch_price: Price | None = None,
        logged: Logged = Logged(),
    ) -> None:
        self._ledger = ledger
        self._row = partial(
            CallRow.of,
            provider=provider,
            model=name,
            price=price,
            batch_price=batch_price,
            logged=logged,
        )
        self.keeps_reasoning = logged.reasoning
        self._model = model
        self._clock = clock

    def key(self, request: ChatRequest) -> str:
        """Return under what the reply to a request is kept."""
        return cache_key(self._model, request)

    def hand_over(
        self, request: ChatRequest, reply: ChatReply, on_text: OnText | None
    ) -> ChatReply:
        """Return a kept reply as the answer to a request."""
        if on_text is not None and reply.text:
            on_text(reply.text)
        self._ledger.add(self._row(request, reply, started_at=self._clock.timestamp()))
        return reply


def cache_key(model: str, request: ChatRequest) -> str:
    """Hash all that a reply depends on (SHA-256): model, parameters, messages, schema, repeat.

    Labels are left out: the same question asked by another run has the same reply.
    """
    content = [
        model,
        request.temperature,
        request.max_tokens,
        request.seed,
        request.repeat,
        None if request.schema is None else reply_schema(request.schema),
        [[message.role, message.content] for message in request.messages],
    ]
    if request.headroom is not None:
        content.append(request.headroom)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
