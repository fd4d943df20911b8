"""Only holders of the token are answered; sockets open for pages of this server or for no page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from mdagents_llm.web.address import LOOPBACK, listen
from mdagents_llm.web.guard import guards
from mdagents_llm.web.serve import server_of

TOKEN = "t0ken"


async def _greet(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


async def _named(request: Request) -> Response:
    return PlainTextResponse(request.path_params["name"])


@pytest.fixture(params=["", TOKEN], ids=["loopback", "token"])
async def port(request: pytest.FixtureRequest) -> AsyncIterator[int]:
    """The port of a server, with a token or without."""
    app = Starlette(
        routes=[WebSocketRoute("/ws", _greet), Route("/of/{name}", _named)],
        middleware=guards(LOOPBACK, request.param),
    )
    place = listen("", 0)
    with place.socket:
        server = server_of(app, 1)
        serving = asyncio.create_task(server.serve(sockets=[place.socket]))
        yield place.port
        server.should_exit = True
        await serving


async def _status(port: int, query: str = f"?token={TOKEN}", **headers: str) -> int:
    """Open a socket; return the status of the answer, 101 when it is opened."""
    url = f"ws://127.0.0.1:{port}/ws{query}"
    try:
        async with connect(url, additional_headers=headers, proxy=None) as socket:
            assert await socket.recv() == "hello"
    except InvalidStatus as refused:
        answer = refused.response
    else:
        return 101
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.status_code


async def test_the_origin_must_be_this_server(port: int) -> None:
    assert await _status(port) == 101
    assert await _status(port, Origin=f"http://127.0.0.1:{port}") == 101
    for other in (
        "https://evil.example",
        f"http://127.0.0.1:{port + 1}",
        f"http://localhost:{port}",
        f"http://127.0.0.1:{port}@evil.example",
        "null",
        "http://[",
    ):
        assert await _status(port, Origin=other) == 403, other


@pytest.mark.parametrize("port", [TOKEN], indirect=True)
async def test_the_token_is_asked_for(port: int) -> None:
    assert await _status(port, "") == 401
    assert await _status(port, "?token=x") == 401
    assert await _status(port, "", Cookie=f"token-{port}={TOKEN}") == 101
    assert await _status(port, "", Cookie=f"token-{port + 1}={TOKEN}") == 401
    assert await _status(port, Accept="text/html") == 101


@pytest.mark.parametrize("port", [TOKEN], indirect=True)
async def test_a_refusal_says_how_the_token_is_given(port: int) -> None:
    """RFC 9110, section 15.5.2; czlonkowski/n8n-mcp#604 misses the header."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for key in ("", f"Basic {TOKEN}", "Bearer x", TOKEN):
            refused = await client.get("/of/x", headers={"authorization": key} if key else {})
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer realm=")
        given = await client.get("/of/x", headers={"authorization": f"bearer {TOKEN}"})
    assert (given.status_code, given.text) == (200, "x")


async def test_a_slash_at_the_end_leads_to_no_other_scheme(port: int) -> None:
    """Kludex/starlette#1396: the redirect of a page behind TLS led to http://."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answer = await client.get("/of/x/", params={"token": TOKEN})
    assert (answer.status_code, answer.text) == (200, "x")


@pytest.mark.parametrize("port", [TOKEN], indirect=True)
@pytest.mark.parametrize(
    "path", ["50%25", "50%2541", "a%0D%0Ab", "a%3Fb%23c", "a%3Bb%27", "%C3%A9"]
)
async def test_a_name_stays_in_the_address_without_the_token(path: str, port: int) -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        address = f"/of/{path}?a=1%26b&token={TOKEN}"
        answer = await client.get(address, headers={"accept": "text/html"})
        assert answer.headers["refresh"] == f"0; url=/of/{path}?a=1%26b"


async def test_another_host_is_refused(port: int) -> None:
    url = f"ws://evil.example:{port}/ws?token={TOKEN}"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, host="127.0.0.1", port=port, proxy=None):
            pass
    assert refused.value.response.status_code == 400


async def test_a_message_that_is_too_long_ends_the_connection() -> None:
    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        message = await socket.receive()
        assert message["type"] == "websocket.disconnect"

    place = listen("", 0)
    with place.socket:
        server = server_of(Starlette(routes=[WebSocketRoute("/ws", echo)]), 1)
        serving = asyncio.create_task(server.serve(sockets=[place.socket]))
        async with connect(f"ws://127.0.0.1:{place.port}/ws", proxy=None) as socket:
            await socket.send("x" * (2**16 + 1))
            await socket.wait_closed()
            assert socket.close_code == 1009
        server.should_exit = True
        await serving


async def test_who_leaves_within_a_request_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """modelcontextprotocol/python-sdk#3469: such a client was logged as an error of the server."""
    has_left = asyncio.Event()

    async def read(request: Request) -> Response:
        try:
            return PlainTextResponse(await request.body())
        finally:
            has_left.set()

    place = listen("", 0)
    with place.socket:
        server = server_of(Starlette(routes=[Route("/", read, methods=["POST"])]), 1)
        serving = asyncio.create_task(server.serve(sockets=[place.socket]))
        _, writer = await asyncio.open_connection("127.0.0.1", place.port)
        writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx")
        await writer.drain()
        writer.close()
        await asyncio.wait_for(has_left.wait(), 10)
        server.should_exit = True
        await serving
    assert not caplog.records
