"""Keeps replies, so that no call is paid for twice and a finished run can be replayed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from infra.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from infra.clock import Clock
from infra.errors import (
    RETRYABLE_KINDS,
    ConfigError,
    ErrorKind,
    NothingRecorded,
    ProviderError,
    StorageError,
)
from infra.json_schema import reply_schema
from infra.ledger import CallRow, Ledger, Price

_SCHEMA_VERSION = 1
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


class ReplyStore:
    """Replies in an SQLite file in WAL mode, written by this process alone.

    The first reply to a request stays, also when two processes ask at the same time. A truncated
    reply and the error in which a request ended are kept for replays only, so that these end as the
    run did: a live run asks again, and the new reply takes their place.

    Args:
        path: The file; made, with its folder, if it is not there.

    Raises:
        ConfigError: The file cannot be opened, or another process writes to it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_used = False
        """Whether a kept reply has been found since the file was opened."""
        self.asking: dict[str, asyncio.Future[None]] = {}
        """Key of a request that is being asked -> done when it is no longer."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=5.0)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # survives a kill; a power cut may not
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS reply "
                "(key TEXT PRIMARY KEY, truncated INTEGER NOT NULL, content TEXT NOT NULL)"
                "WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"the cache {path} cannot be opened: {error}; see --cache") from error

    def get(self, key: str, *, truncated_too: bool) -> ChatReply | None:
        """Return the reply kept under `key`; truncated ones and errors only if they are wanted.

        Raises:
            ProviderError: The error that was kept.
        """
        row = self._db.execute(
            "SELECT content FROM reply WHERE key = ? AND truncated <= ?", (key, truncated_too)
        ).fetchone()
        if row is None:
            return None
        self.is_used = True
        content = json.loads(row[0])
        if "error" in content:
            kind = ErrorKind(content.get("kind", ErrorKind.CONTEXT_LENGTH))  # of older files
            raise ProviderError(content["error"], kind=kind)
        return ChatReply(
            text=content["text"],
            usage=TokenUsage(**content["usage"]),
            stop_reason=StopReason(content["stop_reason"]),
            model=content["model"],
            latency=content["latency"],
            cached=True,
            batched=content.get("batched", False),
        )

    async def claim(self, key: str) -> ChatReply | None:
        """See `Replies`; truncated replies and errors do not count."""
        reply = self.get(key, truncated_too=False)
        while reply is None and (asking := self.asking.get(key)) is not None:
            await asyncio.shield(asking)
            reply = self.get(key, truncated_too=False)
        if reply is None:
            self.asking[key] = asyncio.get_running_loop().create_future()
        return reply

    def release(self, key: str) -> None:
        """See `Replies`."""
        self.asking.pop(key).set_result(None)

    def is_empty(self) -> bool:
        """Return whether no reply was ever kept."""
        return self._db.execute("SELECT 1 FROM reply LIMIT 1").fetchone() is None

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
        self._put(key, content, for_replays_only=reply.stop_reason is StopReason.LENGTH)

    def put_error(self, key: str, error: ProviderError) -> None:
        """Keep the error in which a request ended.

        Raises:
            StorageError: The error cannot be written.
        """
        content = {"version": _SCHEMA_VERSION, "error": str(error), "kind": error.kind.value}
        self._put(key, content, for_replays_only=True)

    def _put(self, key: str, content: dict[str, object], *, for_replays_only: bool) -> None:
        row = (key, for_replays_only, json.dumps(content, ensure_ascii=False))
        try:
            self._db.execute(
                "INSERT INTO reply VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "truncated = excluded.truncated, content = excluded.content WHERE truncated",
                row,
            )
        except sqlite3.Error as error:
            raise StorageError(f"cannot write to the cache {self._path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()


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
        """See `ChatModel.generate`; a kept reply is given to `on_text` as one delta."""
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
            self._replies.put(key, reply)
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
        """See `ChatModel.generate`; the reply is given to `on_text` as one delta.

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
        log_prompts: Whether a row holds prompt and reply.
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
        log_prompts: bool = False,
    ) -> None:
        self._ledger = ledger
        self._row = partial(
            CallRow.of,
            provider=provider,
            model=name,
            price=price,
            batch_price=batch_price,
            log_prompts=log_prompts,
        )
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
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
