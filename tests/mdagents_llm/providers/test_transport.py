"""Answers that are no HTTP, redirects, replies without end: each costs one call, and no more."""

from __future__ import annotations

import gzip
import json
import socket
import socketserver
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest

from mdagents_llm.chat import CallLabels, ChatMessage, ChatModel, ChatRequest
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers import sending
from mdagents_llm.providers.anthropic_client import AnthropicClient
from mdagents_llm.providers.gemini_client import GeminiClient
from mdagents_llm.providers.openai_client import OpenAIClient
from mdagents_llm.wire import Client, Endpoint

KEY = "sk-of-this-test-0123456789"
CLOSED = 1  # a port on which nothing listens
CLIENTS: dict[str, type[Any]] = {
    "openai": OpenAIClient,
    "anthropic": AnthropicClient,
    "gemini": GeminiClient,
}
OK = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
EVENTS = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
MALFORMED = {
    "chunk that is none": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n",
    "chunk that is none, later": f"{EVENTS}6\r\ndata: \r\nZZZ\r\n".encode(),
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
    "no HTTP": b"hello\r\n\r\n",
    "another version": b"HTTP/2 200\r\n\r\n",
    "an alert of TLS": bytes([21, 3, 3, 0, 2, 2, 70]),
    "GOAWAY of HTTP/2": bytes([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    "bad header": b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    "5,000 headers": OK.encode() + b"".join(b"x-%d: 1\r\n" % n for n in range(5_000)) + b"\r\n{}",
    "no gzip": f"{OK}content-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello".encode(),
    "unknown encoding": f"{OK}content-encoding: zstd\r\ncontent-length: 5\r\n\r\nhello".encode(),
    "nested body": f"{OK}content-length: 200000\r\n\r\n".encode() + b"[" * 200_000,
    "nested error": b"HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: 200000"
    b"\r\n\r\n" + b"[" * 200_000,
    "body that ends early": f'{OK}content-length: 500\r\n\r\n{{"id":'.encode(),
    "nothing": b"",
}


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


@contextmanager
def serving(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Serve bytes to every request; yield (port, what was received)."""
    received: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            received.append(self.request.recv(1 << 20))
            with suppress(OSError):  # the client has hung up
                self.request.sendall(answer)

    with _Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1], received
        server.shutdown()


@contextmanager
def model_at(wire: str, port: int) -> Iterator[tuple[ChatModel, Client]]:
    path = "/v1" if wire == "openai" else ""
    client: Client = CLIENTS[wire](Endpoint(f"http://127.0.0.1:{port}{path}", KEY, 20.0))
    yield client.model("some-model", ModelInfo()), client


LABELS = CallLabels("case", "phase", "agent", "expert")


async def fail(wire: str, port: int, *, streams: bool) -> ProviderError:
    request = ChatRequest((ChatMessage("user", "my chest hurts"),), 100, labels=LABELS)
    with model_at(wire, port) as (model, client):
        try:
            with pytest.raises(ProviderError) as caught:
                await model.generate(request, (lambda _: None) if streams else None)
        finally:
            await client.aclose()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.sweep
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streaming"])
@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("wire", CLIENTS)
async def test_what_is_no_http_costs_one_attempt(wire: str, name: str, streams: bool) -> None:
    with serving(MALFORMED[name]) as (port, _):
        error = await fail(wire, port, streams=streams)
    assert error.retryable, f"{error.kind}: {error}"


@pytest.mark.parametrize(
    "head",
    [
        # A gateway that passes both on: openstreetmap/operations 910, TorSpider 23.
        "content-length: {length}\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: {length}",
        # httpx 740 and httpx2 268.
        "content-length: {length}\r\ncontent-length: {length}",
        "content-length: {length}, {length}",
    ],
)
async def test_a_length_that_is_said_twice_costs_one_attempt(head: str) -> None:
    answer = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}
    body = json.dumps(answer).encode()
    length = len(body)
    if "chunked" in head:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (length, body)
    request = ChatRequest((ChatMessage("user", "my chest hurts"),), 100, labels=LABELS)
    served = f"{OK}{head.format(length=length)}\r\n\r\n".encode() + body
    with serving(served) as (port, _), model_at("openai", port) as (model, client):
        with pytest.raises(ProviderError) as caught:
            await model.generate(request)
        assert caught.value.retryable
        assert (await model.generate(request)).text == "hello"
        await client.aclose()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streaming"])
@pytest.mark.parametrize("wire", CLIENTS)
async def test_no_redirect_is_followed(wire: str, streams: bool, status: int) -> None:
    with serving(b"") as (elsewhere, received):
        place = f"http://user:secret@localhost:{elsewhere}/v1?key={KEY}"
        answer = f"HTTP/1.1 {status} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n"
        with serving(answer.encode()) as (port, _):
            error = await fail(wire, port, streams=streams)
    assert received == []
    assert error.kind is ErrorKind.REDIRECTED
    assert not error.retryable
    assert f"http://localhost:{elsewhere}/v1" in str(error)
    assert KEY not in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("scheme", "answer", "kind", "said"),
    [
        # Public reports: ragas 940 and Bard-API 245, Auto-PPT 1, chatgpt-clone 77.
        ("https", "407 Proxy Authentication Required", ErrorKind.PROXY, "http://USER:PASSWORD@"),
        ("http", "407 Proxy Authentication Required", ErrorKind.PROXY, "http://USER:PASSWORD@"),
        ("https", "400 Bad Request", ErrorKind.PROXY, "a proxy blocks models.invalid (400 Bad"),
        ("https", "403 Forbidden", ErrorKind.PROXY, "add models.invalid to NO_PROXY"),
        ("https", "502 Bad Gateway", ErrorKind.UNREACHABLE, "over the proxy: 502 Bad Gateway"),
        ("https", None, ErrorKind.UNREACHABLE, "models.invalid cannot be reached over the proxy"),
        ("http", None, ErrorKind.UNREACHABLE, "models.invalid cannot be reached over the proxy"),
    ],
)
@pytest.mark.parametrize("wire", CLIENTS)
async def test_a_proxy_that_makes_no_connection_is_named(
    wire: str,
    scheme: str,
    answer: str | None,
    kind: ErrorKind,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(f"HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n".encode()) as (proxy, _):
        place = f"http://user:secret@127.0.0.1:{proxy if answer else CLOSED}"
        monkeypatch.setenv("HTTPS_PROXY", place)
        monkeypatch.setenv("HTTP_PROXY", place)
        client = CLIENTS[wire](Endpoint(f"{scheme}://models.invalid/v1", KEY, 20.0))
        request = ChatRequest((ChatMessage("user", "my chest hurts"),), 100, labels=LABELS)
        with pytest.raises(ProviderError) as caught:
            await client.model("some-model", ModelInfo()).generate(request)
        await client.aclose()
    assert (caught.value.kind, said in str(caught.value)) == (kind, True), str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("many_at_once", [False, True])
@pytest.mark.parametrize("wire", CLIENTS)
async def test_a_silent_connection_is_kept_alive(
    wire: str, many_at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Public reports: openai-python 3269 and python-genai 2705.
    options: list[tuple[int, ...]] = []

    class Socket(socket.socket):
        def setsockopt(self, *option: Any) -> None:
            options.append(option)
            super().setsockopt(*option)

    monkeypatch.setattr(socket, "socket", Socket)
    with serving(b"") as (port, _):
        options.clear()  # those of the server
        endpoint = Endpoint(f"http://127.0.0.1:{port}", KEY, 20.0, many_at_once=many_at_once)
        client = CLIENTS[wire](endpoint)
        request = ChatRequest((ChatMessage("user", "my chest hurts"),), 100, labels=LABELS)
        with pytest.raises(ProviderError):
            await client.model("some-model", ModelInfo()).generate(request)
        await client.aclose()
    assert set(sending.PROBES) <= set(options)


@pytest.mark.sweep
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streaming"])
@pytest.mark.parametrize("wire", CLIENTS)
async def test_a_reply_has_a_limit_after_decompression(
    wire: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MOST_BYTES", 1 << 20)
    bomb = gzip.compress(b'{"choices": "' + b"a" * (1 << 24))
    for status in ("200 OK", "500 No"):
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n"
        with serving(f"{head}content-length: {len(bomb)}\r\n\r\n".encode() + bomb) as (port, _):
            error = await fail(wire, port, streams=streams)
        assert error.kind is ErrorKind.BAD_BODY, str(error)
        assert "more than 1 MiB" in str(error)


def _whole(body: bytes) -> bytes:
    return body


def _in_two_members(body: bytes) -> bytes:
    return gzip.compress(body[:40]) + gzip.compress(body[40:]) + bytes(512)  # and padding


def _without_header(body: bytes) -> bytes:
    return zlib.compress(body, wbits=-zlib.MAX_WBITS)


@pytest.mark.parametrize(
    ("head", "pack"),
    [
        pytest.param("content-encoding: gzip", gzip.compress, id="gzip"),
        pytest.param("content-encoding: deflate", zlib.compress, id="deflate"),
        # Public reports: aiohttp 7157, reqwest 524, axios 5497.
        pytest.param("content-encoding: gzip", _in_two_members, id="gzip in two members"),
        pytest.param("content-encoding: deflate", _without_header, id="deflate without a header"),
        pytest.param("content-encoding: identity, GZIP", gzip.compress, id="two encodings"),
        pytest.param("content-encoding: identity", _whole, id="identity"),
        # Public reports: aiohttp 2304, 3862 and 13397.
        pytest.param(f"content-security-policy: {'x' * 34_000}", _whole, id="a long header"),
        pytest.param("\r\n".join(f"x-limit-{n}: 1" for n in range(300)), _whole, id="300 headers"),
    ],
)
async def test_a_reply_is_read_as_the_sdk_reads_it(
    head: str, pack: Callable[[bytes], bytes]
) -> None:
    body = json.dumps(
        {
            "model": "some-model",
            "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
        }
    ).encode()
    packed = pack(body)
    start = f"{OK}{head}\r\ncontent-length: {len(packed)}\r\n\r\n"
    labels = CallLabels("case", "phase", "agent", "expert")
    with (
        serving(start.encode() + packed) as (port, _),
        model_at("openai", port) as (model, client),
    ):
        reply = await model.generate(
            ChatRequest((ChatMessage("user", "Hello?"),), 100, labels=labels)
        )
        await client.aclose()
    assert reply.text == "hello"


@pytest.mark.parametrize("pieces", [1, 2, 3, 10_000])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, _in_two_members, _without_header])
async def test_a_compressed_body_may_be_cut_anywhere(
    pack: Callable[[bytes], bytes], pieces: int
) -> None:
    body = b"some words that repeat, " * 40
    packed = pack(body)
    size = max(1, len(packed) // pieces)

    async def arriving() -> AsyncIterator[bytes]:
        for start in range(0, len(packed), size):
            yield packed[start : start + size]

    encoding = "deflate" if pack in (zlib.compress, _without_header) else "gzip"
    limited = sending.LimitedBody(arriving(), httpx2.URL("http://host/v1"), encoding)
    assert b"".join([piece async for piece in limited]) == body


async def test_a_body_of_endless_members_is_refused() -> None:
    async def arriving() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield gzip.compress(b"")

    limited = sending.LimitedBody(arriving(), httpx2.URL("http://host/v1"), "gzip")
    with pytest.raises(ProviderError, match="more than 1,000 gzip members"):
        [piece async for piece in limited]


@pytest.mark.parametrize(
    ("path", "has_room"),
    [
        ("/v1/files/file-1/content", True),
        ("/v1/messages/batches/msgbatch_1/results", True),
        ("/v1beta/batches/b1", True),
        ("/v1/chat/completions", False),
    ],
)
async def test_the_results_of_a_batch_may_be_larger_than_a_reply(
    path: str, has_room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A step of 500 questions with 5 calls each has 2,500 replies; with thoughts, of 30 kB each.
    monkeypatch.setattr(sending, "MOST_BYTES", 1 << 16)
    head = f"{OK}content-length: {1 << 18}\r\n\r\n"
    with serving(head.encode() + b"x" * (1 << 18)) as (port, _):
        async with sending.guarded(httpx2.AsyncClient()) as client:
            if has_room:
                assert len((await client.get(f"http://127.0.0.1:{port}{path}")).content) == 1 << 18
            else:
                with pytest.raises(ProviderError, match="sent more than 0 MiB"):
                    await client.get(f"http://127.0.0.1:{port}{path}")
