"""Connections over aiohttp, for a run that makes many calls at once.

Below many concurrent calls, aiohttp takes half the CPU time of httpx2, whose pool looks at every
connection for every request. Redirects, size, encodings and errors are as in `sending`.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
import httpx2

from mdagents_llm.providers.picture_body import Pieces, slices
from mdagents_llm.providers.sending import (
    CONNECT_TIMEOUT,
    KEEP_ALIVE,
    MOST_CONNECTIONS,
    PROBES,
    LimitedBody,
    known_errors,
    redirected,
)
from mdagents_llm.wire import Endpoint

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LONGEST_HEADER = 65_536  # bytes of a line of the head
_MOST_HEADERS = 1_000


@dataclass(frozen=True, slots=True)
class Arrived:
    """The head of a response; its body is still to be read, and `aclose` to be called."""

    status_code: int
    headers: Mapping[str, str]
    stream: LimitedBody

    async def aclose(self) -> None:
        """Close the response; a connection whose response was not read is closed as well."""
        await self.stream.aclose()


class Pool:
    """Connections to one endpoint.

    Args:
        endpoint: Endpoint that is called.
        keep_alive: Seconds for which an idle connection may be reused.
    """

    def __init__(self, endpoint: Endpoint, keep_alive: float = KEEP_ALIVE) -> None:
        self._is_secure = not endpoint.base_url.lower().startswith("http:")
        self._keep_alive = keep_alive
        # `Attempt` limits the rest, and knows whether this process was stopped in between.
        self._timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: httpx2.URL, headers: Mapping[str, str], content: Pieces) -> Arrived:
        """Send a request and return the head of the response.

        A content of several pieces, which has pictures, is written piece by piece.

        Raises:
            httpx2.HTTPError: There is no response.
            ProviderError: The response is a redirect.
        """
        session = self._opened()
        if len(content) > 1:
            headers = {**headers, "content-length": str(sum(map(len, content)))}
        with _httpx2_errors():
            response = await session.post(
                str(url),
                data=slices(content) if len(content) > 1 else content[0],
                headers=headers,
                allow_redirects=False,
            )
        location = response.headers.get("location")
        if response.status in _REDIRECTS and location is not None:
            response.close()
            raise redirected(url, location)
        encoding = response.headers.get("content-encoding", "")
        body = LimitedBody(_Body(response), url, encoding)
        return Arrived(response.status, response.headers, body)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:  # aiohttp opens a session in a running event loop only
            connector = aiohttp.TCPConnector(
                limit=MOST_CONNECTIONS,
                keepalive_timeout=self._keep_alive,
                ssl=httpx2.create_ssl_context() if self._is_secure else True,
                socket_factory=_probing,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                # Gateways add long policies and many limits; the SDK's transport reads 100 kB.
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
                max_headers=_MOST_HEADERS,
            )
        return self._session


def _probing(address: aiohttp.AddrInfoType) -> socket.socket:
    made = socket.socket(*address[:3])
    for option in PROBES:
        made.setsockopt(*option)
    return made


class _Body:
    """The body of a response as it arrives, with the errors of `httpx2`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx2_errors():
            async for piece in self._response.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        self._response.release()


@contextmanager
def _httpx2_errors() -> Iterator[None]:
    """Convert the exceptions of aiohttp to those of `httpx2`."""
    with known_errors():
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error)) from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            raise httpx2.ReadError(str(error)) from error
