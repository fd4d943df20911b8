"""A page in a real browser: Chromium without a window, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
"""The browser; None where no browser is installed."""

_ANSWER_WITHIN = 60.0  # seconds, on a busy machine


class Key(IntEnum):
    """A key by its name in the DOM, with its code on Windows, which the protocol wants."""

    Escape = 27
    ArrowLeft = 37
    ArrowRight = 39


class Tab:
    """A tab of the browser.

    Attributes:
        problems: What the page's console said of errors, a script that was refused included.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.problems: list[str] = []
        self._socket = socket
        self._calls = 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._calls += 1
        number = self._calls
        await self._socket.send_json({"id": number, "method": method, "params": params})
        message = await self._next(lambda message: message.get("id") == number)
        assert "error" not in message, f"{method}: {message['error']}"
        result: dict[str, Any] = message["result"]
        return result

    async def open(self, address: str) -> None:
        """Open an address and wait until the page is loaded."""
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=address)
        await self._next(lambda message: message.get("method") == "Page.loadEventFired")

    async def value(self, script: str) -> Any:
        """What an expression is worth in the page; of a promise, what it comes to."""
        result = await self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        await self.value(
            "new Promise(done => {"
            f"const look = () => ({condition}) ? done() : setTimeout(look, 10); look(); }})"
        )

    async def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first element that a CSS selector finds."""
        x, y = await self.value(
            f"(() => {{ const found = document.querySelector({selector!r});"
            "found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def press(self, key: Key) -> None:
        """Press a key."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key.name,
                code=key.name,
                windowsVirtualKeyCode=key.value,
            )

    async def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message that is wanted."""
        while True:
            message: dict[str, Any] = await self._socket.receive_json(timeout=_ANSWER_WITHIN)
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(str(message["params"]))
            if wanted(message):
                return message


@contextlib.asynccontextmanager
async def browser_tab(folder: Path) -> AsyncIterator[Tab]:
    """A tab of a browser that keeps what it must in `folder`."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
        "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        port = await asyncio.wait_for(_port(process), _ANSWER_WITHIN)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as response:
                tabs = await response.json()
            address = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        process.kill()
        await process.communicate()


async def _port(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        found = re.search(rb"DevTools listening on ws://[^:]*:(\d+)/", line)
        if found:
            return found[1].decode()
    raise AssertionError(f"{CHROMIUM} ended before it listened")
