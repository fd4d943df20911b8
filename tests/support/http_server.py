"""A small HTTP/1.1 server for tests: keep-alive, chunked bodies, and ways to break a reply."""

import asyncio
import http
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import httptools

_NO_LINGER = struct.pack("ii", 1, 0)
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in http.HTTPStatus
}
JSON = "application/json"
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, read whole.

    Attributes:
        method: ``GET``, ``POST`` and so on.
        path: Without the query.
        query: What follows ``?``, undecoded.
        headers: Names in lower case.
        body: Decoded from its chunks if it was sent in chunks.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class HttpConnection(asyncio.Protocol):
    """One connection: parses requests, answers them one after the other.

    The handler is awaited once for every request and answers through the methods of this class.
    If the client goes away meanwhile, the handler is cancelled.

    Attributes:
        handler: Called with the request and this connection.
        connections: The set of open connections, which this one joins and leaves.
        lost: Set when the connection is no more.
    """

    def __init__(
        self,
        handler: Callable[[HttpRequest, "HttpConnection"], Awaitable[None]],
        connections: set["HttpConnection"],
    ) -> None:
        self.handler = handler
        self.connections = connections
        self.lost = asyncio.Event()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[HttpRequest | None, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._keep_alive = True

    # -- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._waiting.clear()
        self.connections.discard(self)
        self.lost.set()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._enqueue(None, keep_alive=False)

    # -- httptools callbacks --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        path, _, query = self._url.decode("latin-1").partition("?")
        request = HttpRequest(
            method=self._parser.get_method().decode("latin-1"),
            path=path,
            query=query,
            headers=self._headers,
            body=b"".join(self._body),
        )
        self._enqueue(request, keep_alive=self._parser.should_keep_alive())

    def _enqueue(self, request: HttpRequest | None, *, keep_alive: bool) -> None:
        """Queue a request, or the refusal of a malformed one."""
        self._waiting.append((request, keep_alive))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer_waiting())

    async def _answer_waiting(self) -> None:
        try:
            while self._waiting:
                request, self._keep_alive = self._waiting.popleft()
                if request is None:
                    self.reply(400, b'{"error": {"message": "this is not HTTP"}}')
                else:
                    await self.handler(request, self)
                if not self._keep_alive:
                    self.close()
        finally:
            self._task = None

    # -- answering ------------------------------------------------------------------------------

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that answers requests now, if there is one."""
        return self._task

    def reply(
        self,
        status: int,
        body: bytes,
        *,
        content_type: str = JSON,
        headers: Iterable[tuple[str, str]] = (),
        sent: int | None = None,
    ) -> None:
        """Send a reply.

        Args:
            status: HTTP status.
            body: The whole body; its length becomes Content-Length.
            content_type: Media type of the body.
            headers: Further headers.
            sent: How many bytes of the body really to send; None means all.
        """
        length = ("content-length", str(len(body)))
        head = self._head(status, content_type, [length, *headers])
        self._write(head + (body if sent is None else body[:sent]))

    def begin_stream(self) -> None:
        """Send the head of a reply whose events follow by :meth:`send_events`."""
        chunked = ("transfer-encoding", "chunked")
        self._write(self._head(200, EVENT_STREAM, [chunked, ("cache-control", "no-cache")]))

    def send_events(self, events: Iterable[bytes]) -> None:
        """Send server-sent events, each as a chunk of its own."""
        self._write(b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events))

    def end_stream(self) -> None:
        """End a reply begun with :meth:`begin_stream`."""
        self._write(b"0\r\n\r\n")

    def close(self) -> None:
        """Close the connection when what was written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Break the connection so that the client sees 'connection reset by peer'."""
        if self._transport is None:
            return
        # Lingering for no time makes the kernel send RST instead of FIN.
        peer = self._transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.abort()

    def _head(self, status: int, content_type: str, headers: list[tuple[str, str]]) -> bytes:
        line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Unknown\r\n"
        keep = "keep-alive" if self._keep_alive else "close"
        rest = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"{line}content-type: {content_type}\r\nconnection: {keep}\r\n{rest}\r\n".encode()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


class HttpServer:
    """Listens on the loopback interface and runs one handler for all requests.

    Attributes:
        connections: The connections that are open now.
        port: Where it listens, once started.
    """

    def __init__(self, handler: Callable[[HttpRequest, HttpConnection], Awaitable[None]]) -> None:
        self.connections: set[HttpConnection] = set()
        self.port = 0
        self._handler = handler
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1; ``port`` 0 takes any that is free."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(self._handler, self.connections),
            "127.0.0.1",
            port,
            backlog=1024,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, break the open connections and wait for their handlers to end."""
        if self._server is None:
            return
        self._server.close()
        open_now = list(self.connections)
        tasks = [connection.task for connection in open_now if connection.task is not None]
        for connection in open_now:
            connection.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(connection.lost.wait() for connection in open_now))
        await self._server.wait_closed()
