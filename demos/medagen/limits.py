"""Limits of the server's clients: request rate, body size and concurrency."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mdagents_llm.errors import BenchError
from mdagents_llm.web.serve import LONGEST_MESSAGE

_REMEMBERED = 10_000
"""Maximum number of names in a rate table; the least recently used is forgotten first."""
_SITE = 64
"""Prefix length of an IPv6 site in bits; its owner freely chooses the rest (RFC 6177)."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    per_minute: int = 30
    """Maximum requests per minute of a client and, counted separately, of a user."""
    burst: int = 10
    """Maximum requests in a burst, at most `per_minute`."""
    turns: int = 200
    """Maximum turns in progress, for all clients together."""
    sockets: int = 1_000
    """Maximum open chats."""
    body: int = LONGEST_MESSAGE
    """Maximum bytes of a request body."""


class LimitError(BenchError):
    """A client reached a limit; the message is shown to the client.

    Args:
        message: One sentence.
        status: HTTP status code.
        retry_after: Whole seconds until a retry is worthwhile.
    """

    def __init__(self, message: str, status: int, retry_after: int) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Rates:
    """Token buckets, one per name.

    Args:
        per_minute: Tokens added per minute.
        burst: Capacity of a bucket; an unknown name starts with a full bucket.
        monotonic: Clock in seconds.
        most: Maximum number of names that are remembered.
    """

    def __init__(
        self, per_minute: int, burst: int, monotonic: Callable[[], float], most: int = _REMEMBERED
    ) -> None:
        self._per_second = per_minute / 60
        self._burst = burst
        self._monotonic = monotonic
        self._most = most
        self._buckets: dict[str, tuple[float, float]] = {}
        """Name -> (tokens, time in seconds when they were counted), least recently used first."""

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        now = self._monotonic()
        tokens, counted = self._buckets.pop(name, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - counted) * self._per_second)
        is_there = tokens >= 1
        self._buckets[name] = (tokens - is_there, now)
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return 0.0 if is_there else (1 - tokens) / self._per_second


class Admission:
    """Admits or refuses requests.

    Clients are identified by address and users by id, in separate tables: ids are free, and someone
    who invents many of them must not push an address out of its table.

    Args:
        limits: Limits of the server.
        monotonic: Clock in seconds.
    """

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        burst = min(limits.burst, limits.per_minute)
        self._clients = Rates(limits.per_minute, burst, monotonic)
        self._users = Rates(limits.per_minute, burst, monotonic)
        self.turns = 0
        """Number of turns in progress."""
        self.sockets = 0
        """Number of open chats."""

    def check_client(self, host: str) -> None:
        """Count a request of a client address.

        Raises:
            LimitError: The client has exceeded its request rate.
        """
        _check(self._clients, _site_of(host))

    def check_user(self, user_id: str) -> None:
        """Count a request of a user.

        Raises:
            LimitError: The user has exceeded the request rate.
        """
        _check(self._users, user_id)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a slot for a turn.

        Raises:
            LimitError: All slots are taken.
        """
        if self.turns >= self._limits.turns:
            raise LimitError("too many people are asking at once; try again in a moment", 503, 5)
        self.turns += 1
        try:
            yield
        finally:
            self.turns -= 1

    @contextmanager
    def socket(self) -> Iterator[None]:
        """Hold a slot for a chat.

        Raises:
            LimitError: All slots are taken.
        """
        if self.sockets >= self._limits.sockets:
            raise LimitError("too many chats are open; try again in a moment", 503, 15)
        self.sockets += 1
        try:
            yield
        finally:
            self.sockets -= 1


def _check(rates: Rates, name: str) -> None:
    if wait := math.ceil(rates.take(name)):
        seconds = "a second" if wait == 1 else f"{wait} seconds"
        raise LimitError(f"too many requests; try again in {seconds}", 429, wait)


def _site_of(host: str) -> str:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    return str(ipaddress.ip_network((address, _SITE), strict=False))


class BodyLimit:
    """ASGI middleware that refuses request bodies that are too long, without reading them.

    Args:
        app: Wrapped ASGI app.
        most: Maximum bytes of a body.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the app, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._most:
            error = self._error()
            answer = JSONResponse({"error": error.detail}, error.status_code, error.headers)
            await answer(scope, receive, send)
            return
        got = 0

        async def receive_part() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > self._most:
                raise self._error()
            return message

        await self._app(scope, receive_part, send)

    def _error(self) -> HTTPException:
        sentence = f"the request is too long; send at most {self._most:,} bytes"
        # Close the connection: to reuse it, the server would have to read the rest of the body.
        return HTTPException(413, sentence, {"connection": "close"})
