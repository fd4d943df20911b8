"""The HTTP transport of the SDKs: no redirects, a size limit for replies, uniform errors.

The exceptions of an HTTP library for a response that is not valid HTTP, or that breaks off, differ
by version and by place. This module converts all of them to `httpx2` errors, which all callers
handle.
"""

from __future__ import annotations

import asyncio
import re
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.connection_errors import proxy_error, why_unreachable
from mdagents_llm.wire import Endpoint

KEEP_ALIVE = 4.0
"""Seconds for which an idle connection is reused; vLLM and other servers on uvicorn close it after
5."""
MOST_BYTES = 32 * 2**20
"""Maximum bytes of a reply, whole or streamed, after decompression; a long one has some 100 kB."""
_MOST_BYTES_OF_A_BATCH = 2**30
"""Maximum bytes of the results of a batch, which have a reply to each of up to 10,000 calls."""
_OF_A_BATCH = re.compile(r"/files/[^/]+/content$|/batches/[^/]+(?:/results)?$")
"""Path of a batch: at OpenAI that of its results, at Anthropic and Gemini that of the batch."""

CONNECT_TIMEOUT = 10.0
"""Seconds after which a connection that is not made has failed."""
PROBES = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (
            ("TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE", 30),
            ("TCP_KEEPINTVL", 30),
            ("TCP_KEEPCNT", 4),
        )
        if hasattr(socket, name)
    ),
]
"""Options of sockets that keep silent connections alive while a model thinks: routers forget one
after a minute or more (NAT), and its reply never comes."""
MOST_CONNECTIONS = 1_000
"""Maximum number of connections; `Gate` enforces the real limit."""
ENCODINGS = "gzip, deflate"
"""Encodings of a reply that are asked for."""
_EITHER_FORM = 32 + zlib.MAX_WBITS  # zlib detects gzip or zlib format itself
_WITHOUT_HEADER = -zlib.MAX_WBITS
_GZIP = b"\x1f\x8b"
_LENGTH_OF_A_HEADER = 2  # bytes that tell the form
_MOST_MEMBERS = 1_000  # of a gzip body; programs that write several write a few
_LONGEST_REASON = 80  # characters
_PIECE = 65_536  # bytes to decompress at a time


def sending(endpoint: Endpoint, keep_alive: float = KEEP_ALIVE) -> dict[str, Any]:
    """Return the transport arguments of an SDK client, which never retries.

    Args:
        endpoint: Endpoint that the client calls.
        keep_alive: Seconds for which an idle connection may be reused.
    """
    limits = httpx2.Limits(
        max_connections=MOST_CONNECTIONS,
        max_keepalive_connections=MOST_CONNECTIONS,
        keepalive_expiry=keep_alive,
    )
    timeout = httpx2.Timeout(endpoint.attempt_timeout, connect=CONNECT_TIMEOUT)
    if getproxies() and not goes_around_proxies(endpoint):
        client = httpx2.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)
    else:
        has_tls = not endpoint.base_url.lower().startswith("http:")
        transport = _OnUse(
            lambda: httpx2.AsyncHTTPTransport(verify=has_tls, limits=limits, socket_options=PROBES)
        )
        client = httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False)
    return {"max_retries": 0, "timeout": timeout, "http_client": guarded(client)}


def goes_around_proxies(endpoint: Endpoint) -> bool:
    """Return whether the proxies of the environment are not meant for an endpoint."""
    return endpoint.is_own or is_in_no_proxy(endpoint.base_url)


def is_in_no_proxy(base_url: str) -> bool:
    """Return whether NO_PROXY, or a setting of the system, excepts an address from the proxies.

    Python knows names and addresses; networks (`10.0.0.0/8`) and URLs are read here, as by httpx2.
    """
    parts = urlsplit(base_url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return bool(parts.hostname)
    return any(_excepts(entry.strip(), parts) for entry in getproxies().get("no", "").split(","))


def _excepts(entry: str, parts: SplitResult) -> bool:
    """Return whether an entry of NO_PROXY is `*`, or a network or a URL that has an address."""
    try:
        if "://" in entry:
            named = urlsplit(entry)
            is_there = named.port in (None, parts.port) and named.hostname == parts.hostname
            return is_there and named.scheme in (parts.scheme, "all")
        return entry == "*" or ip_address(parts.hostname or "") in ip_network(entry, strict=False)
    except ValueError:
        return False


def guarded(
    client: httpx2.AsyncClient,
    around: Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport] = lambda guard: guard,
) -> httpx2.AsyncClient:
    """Wrap all transports of a client, including those of proxies, in a `_Guard`.

    Args:
        client: Client to change.
        around: Function that wraps each guard in a further transport.
    """
    # Passed as arguments, they would replace the SDK's own transports and the user's proxies.
    client._transport = around(_Guard(client._transport))  # noqa: SLF001
    client._mounts = {  # noqa: SLF001
        pattern: transport and around(_Guard(transport, is_proxy=True))
        for pattern, transport in client._mounts.items()  # noqa: SLF001
    }
    return client


class _OnUse(httpx2.AsyncBaseTransport):
    """Transport that is made for its first request, which takes 40 ms.

    The calls of a run have connections of their own (`providers.pool`).
    """

    def __init__(self, make: Callable[[], httpx2.AsyncBaseTransport]) -> None:
        self._make = make
        self._made: httpx2.AsyncBaseTransport | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._made is None:
            self._made = self._make()
        return await self._made.handle_async_request(request)

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.aclose()


class _Guard(httpx2.AsyncBaseTransport):
    """Transport that refuses redirects, limits the size of replies, and unifies errors.

    Args:
        inner: Transport of the requests.
        is_proxy: Whether it connects to a proxy.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, is_proxy: bool = False) -> None:
        self._inner = inner
        self._is_proxy = is_proxy

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = ENCODINGS
        try:
            with known_errors():
                response = await self._inner.handle_async_request(request)
        except (httpx2.ProxyError, httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if not self._is_proxy:
                raise
            said = str(error) if isinstance(error, httpx2.ProxyError) else why_unreachable(error)
            raise proxy_error(request.url.host, said) from error
        if response.has_redirect_location:
            await response.aclose()
            raise redirected(request.url, response.headers["location"])
        encoding = response.headers.pop("content-encoding", "")
        if encoding:
            response.headers.pop("content-length", None)
        response.stream = LimitedBody(response.stream, request.url, encoding)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class LimitedBody(httpx2.AsyncByteStream):
    """The decompressed body of a reply, limited in size.

    Args:
        inner: Body as it arrives.
        url: Address that was asked.
        encoding: `Content-Encoding` of the body; empty without one.
    """

    def __init__(self, inner: Any, url: httpx2.URL, encoding: str) -> None:
        self._inner = inner
        self._host = url.host
        self._encoding = encoding
        self._most = _MOST_BYTES_OF_A_BATCH if _OF_A_BATCH.search(url.path) else MOST_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        unpack = self._unpacking()
        with known_errors():
            async for packed in self._inner:
                for piece in unpack(packed):
                    received += len(piece)
                    if received > self._most:
                        raise self._refused(f"more than {self._most >> 20} MiB")
                    yield piece
                    # Decompressing a zip bomb must not block other tasks.
                    if received > _PIECE:
                        await asyncio.sleep(0)

    def _unpacking(self) -> Callable[[bytes], Any]:
        if not self._encoding:
            return lambda packed: (packed,)
        encodings = [one.strip() for one in self._encoding.lower().split(",")]
        applied = [one for one in encodings if one not in ("", "identity")]
        if not applied:
            return lambda packed: (packed,)
        if applied not in (["gzip"], ["x-gzip"], ["deflate"]):
            named = self._encoding[:_LONGEST_REASON]
            raise self._refused(f"a body in an encoding that was not asked for ({named})")
        unpacker: Any = None
        members, held = 0, b""

        def unpack(packed: bytes) -> Any:
            nonlocal unpacker, members, held
            packed, held = held + packed, b""
            while packed:
                if unpacker is None:
                    if len(packed) < _LENGTH_OF_A_HEADER:
                        held = packed
                        return
                    if members and not packed.startswith(_GZIP):  # padding
                        return
                    members += 1
                    if members > _MOST_MEMBERS:
                        raise self._refused(f"more than {_MOST_MEMBERS:,} gzip members")
                    is_raw = applied == ["deflate"] and not _has_header(packed)
                    unpacker = zlib.decompressobj(_WITHOUT_HEADER if is_raw else _EITHER_FORM)
                yield unpacker.decompress(packed, _PIECE)
                packed = unpacker.unconsumed_tail
                if unpacker.eof:  # a gzip body may have several members (RFC 1952, 2.2)
                    packed, unpacker = unpacker.unused_data, None

        return unpack

    def _refused(self, what: str) -> ProviderError:
        return ProviderError(f"{self._host} sent {what}", kind=ErrorKind.BAD_BODY)

    async def aclose(self) -> None:
        """Close the response."""
        with known_errors():
            await self._inner.aclose()


def _has_header(packed: bytes) -> bool:
    """Return whether a body is in zlib's form or gzip; some servers send "deflate" without it."""
    first, second = packed[0], packed[1]
    is_zlib = first & 0x0F == zlib.DEFLATED and (256 * first + second) % 31 == 0  # RFC 1950
    return is_zlib or packed.startswith(_GZIP)


@contextmanager
def known_errors() -> Iterator[None]:
    """Convert any other exception of an HTTP library to an `httpx2` error."""
    try:
        yield
    except (httpx2.HTTPError, ProviderError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:_LONGEST_REASON]
        message = f"what came is no valid HTTP ({type(error).__name__}: {said})"
        raise httpx2.RemoteProtocolError(message) from error


def redirected(asked: httpx2.URL, location: str) -> ProviderError:
    """Return the error for a redirect, which would send key and prompt to another address."""
    try:
        target = asked.join(location)
        where = str(target.copy_with(userinfo=b"", query=None, fragment=None))
    except (httpx2.InvalidURL, ValueError):
        where = "an address that is none"
    message = (
        f"{asked.host} redirects to {where}, which is not followed; if that is right, give its "
        "beginning as the base URL (--model-base-url, or the provider's variable)"
    )
    return ProviderError(message, kind=ErrorKind.REDIRECTED)
