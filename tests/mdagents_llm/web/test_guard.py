"""Sockets open only for holders of the token, from pages of this server or from no page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
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


@pytest.fixture(params=["", TOKEN], ids=["loopback", "token"])
async def port(request: pytest.FixtureRequest) -> AsyncIterator[int]:
    """The port of a server, with a token or without."""
    app = Starlette(
        routes=[WebSocketRoute("/ws", _greet)], middleware=guards(LOOPBACK, request.param)
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
