"""How the SDKs send: no redirect of a request, a limit to the size of a reply, errors by one name.

What `httpx2` and `aiohttp` raise for an answer that is no HTTP, or breaks off, differs by version
and by place. Whatever they raise leaves here as an error of `httpx2`, which all callers know.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.wire import Endpoint

KEEP_ALIVE = 4.0
"""Seconds; vLLM and other servers on uvicorn hang up after 5."""
MOST_BYTES = 32 * 2**20
"""Of a reply, whole or as a stream, after decompression; a long one has some 100 kB."""

_CONNECT_TIMEOUT = 10.0  # seconds
_MAX_CONNECTIONS = 1_000  # `Gate` keeps the real limit
_ENCODINGS = "gzip, deflate"
_EITHER_FORM = 32 + zlib.MAX_WBITS  # zlib finds out itself whether it is gzip or zlib
_LONGEST_REASON = 80  # characters
_PIECE = 65_536  # bytes that are decompressed at a time


def sending(
    endpoint: Endpoint,
    by_aiohttp: Callable[..., httpx2.AsyncClient],
    keep_alive: float = KEEP_ALIVE,
) -> dict[str, Any]:
    """Return how an SDK's client sends: no retries of its own, and by aiohttp where many do.

    Args:
        endpoint: Where to.
        by_aiohttp: The SDK's `DefaultAioHttpClient`.
        keep_alive: Seconds for which an idle connection may be used again.
    """
    limits = httpx2.Limits(
        max_connections=_MAX_CONNECTIONS,
        max_keepalive_connections=_MAX_CONNECTIONS,
        keepalive_expiry=keep_alive,
    )
    timeout = httpx2.Timeout(endpoint.attempt_timeout, connect=_CONNECT_TIMEOUT)
    # What is not closed at the end is sent by httpx2, which may be left open.
    make = by_aiohttp if endpoint.many_at_once else httpx2.AsyncClient
    client = make(timeout=timeout, limits=limits, follow_redirects=False)
    return {"max_retries": 0, "timeout": timeout, "http_client": guarded(client)}


def guarded(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Put a `_Guard` before all transports of a client, those of proxies included."""
    # Given as arguments they would take the place of the SDK's own and of the user's proxies.
    client._transport = _Guard(client._transport)  # noqa: SLF001
    client._mounts = {  # noqa: SLF001
        pattern: transport and _Guard(transport)
        for pattern, transport in client._mounts.items()  # noqa: SLF001
    }
    return client


class _Guard(httpx2.AsyncBaseTransport):
    """See the module."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = _ENCODINGS
        with _known_errors():
            response = await self._inner.handle_async_request(request)
        if response.has_redirect_location:
            await response.aclose()
            raise _redirected(request.url, response.headers["location"])
        encoding = response.headers.pop("content-encoding", "")
        if encoding:
            response.headers.pop("content-length", None)
        response.stream = _Limited(response.stream, request.url.host, encoding.strip().lower())
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Limited(httpx2.AsyncByteStream):
    """The body of a reply, decompressed, up to `MOST_BYTES`."""

    def __init__(self, inner: Any, host: str, encoding: str) -> None:
        self._inner = inner
        self._host = host
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        unpack = self._unpacking()
        with _known_errors():
            async for packed in self._inner:
                for piece in unpack(packed):
                    received += len(piece)
                    if received > MOST_BYTES:
                        raise self._refused(f"more than {MOST_BYTES >> 20} MiB")
                    yield piece
                    # A bomb must not keep others waiting while it is taken apart.
                    if received > _PIECE:
                        await asyncio.sleep(0)

    def _unpacking(self) -> Callable[[bytes], Any]:
        if self._encoding in ("", "identity"):
            return lambda packed: (packed,)
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            raise self._refused(f"a body in an encoding that was not asked for ({self._encoding})")
        unpacker = zlib.decompressobj(_EITHER_FORM)

        def unpack(packed: bytes) -> Any:
            while packed:
                yield unpacker.decompress(packed, _PIECE)
                packed = unpacker.unconsumed_tail

        return unpack

    def _refused(self, what: str) -> ProviderError:
        return ProviderError(f"{self._host} sent {what}", kind=ErrorKind.BAD_BODY)

    async def aclose(self) -> None:
        with _known_errors():
            await self._inner.aclose()


@contextmanager
def _known_errors() -> Iterator[None]:
    """Raise an error of `httpx2` for anything else that an HTTP library raises."""
    try:
        yield
    except (httpx2.HTTPError, ProviderError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:_LONGEST_REASON]
        message = f"what came is no valid HTTP ({type(error).__name__}: {said})"
        raise httpx2.RemoteProtocolError(message) from error


def _redirected(asked: httpx2.URL, location: str) -> ProviderError:
    """Return the error for a redirect, which would take key and prompt to another address."""
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
