"""Fetches a user's picture safely: no private address, no redirect, no unbounded download.

The host is resolved here, all its addresses must be public, and the connection goes to one of the
checked addresses, whatever the name resolves to by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import SplitResult, urlsplit

import h11

from mdagents_llm.errors import BenchError
from mdagents_llm.web.public_address import is_public

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Function that maps a host to its IP addresses; it raises `OSError` if there are none."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[str, str, ssl.SSLContext], Awaitable[Streams]]
"""Function that connects to an IP address, given the certificate's host name and a TLS context."""

_PORT = 443
_HEADERS = [("accept", "image/jpeg, image/png, image/webp"), ("accept-encoding", "identity")]
_MOST_ADDRESSES = 32
_LONGEST_HEADERS = 16_384  # bytes
_AT_ONCE = 65_536  # bytes per read


class ImageRefusedError(BenchError):
    """The picture cannot be fetched or read. The message is one line without the URL's query."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of a download."""

    seconds: float = 5.0
    """Maximum seconds from name resolution to the last byte."""
    size: int = 5_000_000
    """Maximum bytes of the picture."""


async def resolved(host: str) -> Sequence[str]:
    """Return the IP addresses of a host according to the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, _PORT, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


@cache
def _default_context() -> ssl.SSLContext:
    return ssl.create_default_context()


async def dialled(address: str, host: str, context: ssl.SSLContext) -> Streams:
    """Connect to an IP address and verify its certificate for the host."""
    return await asyncio.open_connection(address, _PORT, ssl=context, server_hostname=host)


async def fetch_image(
    url: str,
    *,
    limits: FetchLimits = FetchLimits(),
    resolve: Resolve = resolved,
    dial: Dial = dialled,
    context: ssl.SSLContext | None = None,
) -> bytes:
    """Return the raw content at a URL; `images.reencoded` checks that it is a picture.

    Args:
        url: `https://host/…` on port 443.
        limits: Limits of the download.
        resolve: Function that resolves the host.
        dial: Function that connects to a checked address.
        context: TLS context that verifies the certificate; None trusts the system's authorities.

    Raises:
        ImageRefusedError: The URL may not be fetched, or the download failed.
    """
    parts = _checked(url)
    host = (parts.hostname or "").rstrip(".")
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        async with asyncio.timeout(limits.seconds):
            addresses = await _public_addresses(host, resolve)
            connecting = _connected(addresses, host, dial, context or _default_context())
            reader, writer = await connecting
            try:
                return await _body(reader, writer, host, target, limits.size)
            finally:
                writer.transport.abort()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        raise ImageRefusedError(f"{host} takes longer than {limits.seconds:g} s") from None
    except ssl.SSLError:
        raise ImageRefusedError(f"{host} has no certificate that can be trusted") from None
    except (OSError, h11.ProtocolError):
        raise ImageRefusedError(f"{host} cannot be reached, or speaks no HTTP") from None


async def _public_addresses(host: str, resolve: Resolve) -> list[str]:
    try:
        addresses = list(await resolve(host))[:_MOST_ADDRESSES]
    except (OSError, UnicodeError):
        raise ImageRefusedError(f"{host} is not known") from None
    if not addresses or not all(map(is_public, addresses)):
        raise ImageRefusedError(f"{host} is no public address")
    return addresses


async def _connected(
    addresses: Sequence[str], host: str, dial: Dial, context: ssl.SSLContext
) -> Streams:
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return await dial(address, host, context)
    return await dial(addresses[-1], host, context)


async def _body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, target: str, most: int
) -> bytes:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEADERS)
    headers = [("host", host), *_HEADERS, ("connection", "close")]
    request = h11.Request(method="GET", target=target, headers=headers)
    for event in (request, h11.EndOfMessage()):
        writer.write(http.send(event) or b"")
    await writer.drain()
    body = bytearray()
    while True:
        got = http.next_event()
        if got is h11.NEED_DATA:
            http.receive_data(await reader.read(_AT_ONCE))
        elif isinstance(got, h11.Response):
            _check_head(got)
        elif isinstance(got, h11.Data):
            body += got.data
            if len(body) > most:
                raise ImageRefusedError(f"the picture has more than {most:,} bytes")
        elif not isinstance(got, h11.InformationalResponse):  # end of message
            return bytes(body)


def _check_head(response: h11.Response) -> None:
    status = response.status_code
    if status != 200:
        what = "a redirect" if 300 <= status < 400 else f"status {status}"
        raise ImageRefusedError(f"there is {what} instead of a picture")
    packed = [value for name, value in response.headers if name == b"content-encoding"]
    if any(value.strip().lower() not in (b"", b"identity") for value in packed):
        raise ImageRefusedError("the picture is packed; it must be sent as it is")


def _checked(url: str) -> SplitResult:
    """Return the parts of a URL after checking that it may be fetched."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ImageRefusedError("the address of the picture is none") from None
    if parts.scheme != "https" or not host:
        raise ImageRefusedError("the address of the picture must begin with https://")
    if parts.username is not None or parts.password is not None:
        raise ImageRefusedError("the address of the picture must have no user name in it")
    if port not in (None, _PORT):
        raise ImageRefusedError(f"the address of the picture must have port {_PORT}")
    if not url.isascii() or any(letter <= " " or letter in '\\"<>^`{|}' for letter in url):
        raise ImageRefusedError("the address of the picture must be plain letters (%20, xn--…)")
    try:
        host.encode("idna")
    except UnicodeError:
        host = "%"
    if "%" in host:
        raise ImageRefusedError("the address of the picture names no host that can be looked up")
    return parts
