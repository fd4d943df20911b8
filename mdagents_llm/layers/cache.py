"""The reply cache: no call is paid for twice, and a finished run can be replayed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache, partial
from typing import Protocol

from pydantic import BaseModel
from pydantic_core import to_json

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.clock import Clock
from mdagents_llm.errors import RETRYABLE_KINDS, ErrorKind, NothingRecorded, ProviderError
from mdagents_llm.json_schema import reply_schema
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.ledger import CallRow, Ledger, Logged, PriceOf

_KEPT_ERRORS = RETRYABLE_KINDS | {ErrorKind.CONTEXT_LENGTH, ErrorKind.BAD_REQUEST}
"""Errors of a single request, which are cached; others concern the account or the model, and end a
run."""

NOTHING_RECORDED = (
    "there is no recorded reply to begin with: --cache only replays what the same command without "
    "it has recorded"
)


class CacheMode(StrEnum):
    """The use of cached replies."""

    OFF = "off"
    ON = "on"
    """Cached replies are reused, and new ones are cached."""
    ONLY = "only"
    """Only cached replies are used, without calls to a provider."""


class Replies(Protocol):
    """Cached replies, with at most one call at a time for each key."""

    async def claim(self, key: str) -> ChatReply | None:
        """Return the cached reply; if None, the caller makes the call and must `release` the key.

        This waits while another caller makes the same call.
        """
        ...

    def put(self, key: str, reply: ChatReply) -> None:
        """Cache a reply.

        Raises:
            StorageError: The reply cannot be written.
        """

    def put_error(self, key: str, error: ProviderError) -> None:
        """Cache the error in which a request ended.

        Raises:
            StorageError: The error cannot be written.
        """

    def release(self, key: str) -> None:
        """Release a key after `claim` has returned None, whether or not the call succeeded."""


class Cache:
    """Layer that answers from cached replies; on a miss it calls the model and caches the reply.

    Of identical concurrent requests, in all runs that share the store, one is sent; the others wait
    for its reply, and are sent in turn if none is cached.

    Args:
        inner: Model to call on a miss.
        replies: Cached replies.
        hits: Delivery of cached replies.
    """

    def __init__(self, inner: ChatModel, replies: Replies, hits: Hits) -> None:
        self._inner = inner
        self._replies = replies
        self._hits = hits

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request with the cached reply, or call the model and cache its reply.

        A cached reply is passed to `on_text` as one delta.
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
            is_kept = self._hits.keeps_reasoning or not reply.reasoning
            self._replies.put(key, reply if is_kept else replace(reply, reasoning=""))
            return reply
        finally:
            self._replies.release(key)


class Replay:
    """Model that answers from recorded replies alone, without calls to a provider.

    Args:
        store: Recorded replies.
        hits: Delivery of recorded replies.
    """

    def __init__(self, store: ReplyStore, hits: Hits) -> None:
        self._store = store
        self._hits = hits

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request with the recorded reply, passed to `on_text` as one delta.

        Raises:
            ProviderError: No reply is recorded (`cache_miss`), or the request ended in this error
                when it was recorded.
            NothingRecorded: No reply to the first request is recorded, with or without a schema.
        """
        reply = self._store.get(self._hits.key(request), truncated_too=True)
        if reply is not None:
            return self._hits.hand_over(request, reply, on_text)
        # A request recorded with the schema in the prompt is looked up with a native schema first.
        if not self._store.is_used and request.schema is None:
            raise NothingRecorded(NOTHING_RECORDED)
        message = "there is no recorded reply to this request (--cache only)"
        raise ProviderError(message, kind=ErrorKind.CACHE_MISS)


class Hits:
    """Delivers the cached replies of a model, with a ledger row for each.

    Args:
        ledger: Ledger for the rows.
        provider: Name of the provider, for the row.
        model: Identity of the model: the same name at two endpoints is two models.
        name: Name of the requested model, for the row.
        price: Price of the model, for the cost of a reply.
        clock: Clock for the row.
        logged: Texts to include in a row; hidden reasoning is cached only if it is included.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        provider: str,
        model: str,
        name: str,
        price: PriceOf,
        clock: Clock,
        logged: Logged = Logged(),
    ) -> None:
        self._ledger = ledger
        self._row = partial(CallRow.of, provider=provider, model=name, price=price, logged=logged)
        self.keeps_reasoning = logged.reasoning
        self._model = model
        self._clock = clock

    def key(self, request: ChatRequest) -> str:
        """Return the cache key of a request."""
        return cache_key(self._model, request)

    def hand_over(
        self, request: ChatRequest, reply: ChatReply, on_text: OnText | None
    ) -> ChatReply:
        """Return a cached reply as the answer to a request, and record its row."""
        if on_text is not None and reply.text:
            on_text(reply.text)
        self._ledger.add(self._row(request, reply, started_at=self._clock.timestamp()))
        return reply


def cache_key(model: str, request: ChatRequest) -> str:
    """Return the SHA-256 of everything that a reply depends on.

    These are model, parameters, messages with their pictures, schema and repeat. Labels are
    excluded: the same request by another run has the same reply.
    """
    settings = [model, request.temperature, request.max_tokens, request.seed, request.repeat]
    parts = [
        json.dumps(settings, ensure_ascii=False, separators=(",", ":"))[1:-1].encode(),
        _schema_text(request.schema),
        to_json([[message.role, message.content] for message in request.messages]),
    ]
    if request.headroom is not None:
        parts.append(b"%d" % request.headroom)
    if pictures := [
        [place, message.pictures_at, *picture.identity]
        for place, message in enumerate(request.messages)
        for picture in message.pictures
    ]:
        parts.append(to_json(pictures))
    return hashlib.sha256(b"[" + b",".join(parts) + b"]").hexdigest()


@lru_cache(maxsize=512)
def _schema_text(schema: type[BaseModel] | None) -> bytes:
    return to_json(None if schema is None else reply_schema(schema))
