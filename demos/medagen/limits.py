"""What a client may ask of the server: how often, how much, and how many at once."""

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
"""Names whose rate is known: the one that asked last the longest ago is forgotten."""
_SITE = 64
"""Bits of an IPv6 address that its owner does not choose freely (RFC 6177)."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    per_minute: int = 30
    """Requests that a client may make, and likewise a user."""
    burst: int = 10
    """Requests that may come at once."""
    turns: int = 200
    """Turns under way at once, of all clients together."""
    sockets: int = 1_000
    """Chats open at once."""
    body: int = LONGEST_MESSAGE
    """Bytes of the body of a request."""


class LimitError(BenchError):
    """A client reached a limit; the message is for the client.

    Args:
        message: One sentence.
        status: Of HTTP.
        retry_after: Whole seconds until it is worth trying again.
    """

    def __init__(self, message: str, status: int, retry_after: int) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Rates:
    """A token bucket for each of many names.

    Args:
        per_minute: Tokens that come back.
        burst: Tokens of a full bucket, which a name has that is not known.
        monotonic: The clock, seconds.
        most: Names that are remembered.
    """

    def __init__(
        self, per_minute: int, burst: int, monotonic: Callable[[], float], most: int = _REMEMBERED
    ) -> None:
        self._per_second = per_minute / 60
        self._burst = burst
        self._monotonic = monotonic
        self._most = most
        self._buckets: dict[str, tuple[float, float]] = {}
        """Name -> tokens, and when they were counted; the last to ask is the last."""

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        now = self._monotonic()
        tokens, counted = self._buckets.pop(name, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - counted) * self._per_second)
        is_there = tokens >= 1
        self._buckets[name] = (tokens - is_there, now)
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return 0.0 if is_there else (1 - tokens) / self._per_second


class Admission:
    """Lets requests in, or refuses them.

    Clients are told apart by their address and users by their id, in tables of their own: ids are
    free, and to make up many must not push an address out of its table.

    Args:
        limits: What is allowed.
        monotonic: The clock, seconds.
    """

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._clients = Rates(limits.per_minute, limits.burst, monotonic)
        self._users = Rates(limits.per_minute, limits.burst, monotonic)
        self.turns = 0
        """Under way."""
        self.sockets = 0
        """Open."""

    def check_client(self, host: str) -> None:
        """Count a request of an address.

        Raises:
            LimitError: There were too many.
        """
        _check(self._clients, _site_of(host))

    def check_user(self, user_id: str) -> None:
        """Count a request of a user.

        Raises:
            LimitError: There were too many.
        """
        _check(self._users, user_id)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a place for a turn.

        Raises:
            LimitError: There is none.
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
        """Hold a place for a chat.

        Raises:
            LimitError: There is none.
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
    """Refuses a body that is too long, without reading it.

    Args:
        app: What answers.
        most: Bytes.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have it answered."""
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
        # The server would read the rest, were the connection to be used again.
        return HTTPException(413, sentence, {"connection": "close"})
