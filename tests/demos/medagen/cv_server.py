"""A small service for pictures: it says how red they are, or misbehaves as it is told to."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from PIL import Image


class CvServer:
    """What the service does, and what it saw."""

    def __init__(self) -> None:
        self.url = ""
        self.fault = ""
        """`""`, or one of `status`, `hang`, `huge`, `nan`, `text`, `above one`, `drop`."""
        self.seen: list[str] = []
        """Paths that were asked for."""
        self.open = 0
        """Connections."""

    def answer(self, picture: bytes) -> bytes:
        """Return how red a picture is, as the probability of a rash."""
        with Image.open(io.BytesIO(picture)) as opened:
            red, green, blue = opened.convert("RGB").resize((1, 1)).getpixel((0, 0))  # type: ignore[misc]
        redness = max(0.0, (red - max(green, blue)) / 255)
        found = [{"label": "clear skin", "probability": 1 - redness}]
        found.append({"label": "rash", "probability": redness})
        return json.dumps({"predictions": found, "model": "redness"}).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        self.open += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.seen.append(head.split(" ")[1])
                length = head.lower().partition("content-length: ")[2].partition("\r")[0]
                picture = await reader.readexactly(int(length))
                if self.fault == "drop":
                    return
                if self.fault == "hang":
                    await reader.read()
                    return
                status = "500 Broken" if self.fault == "status" else "200 OK"
                body = {
                    "huge": b'{"predictions": []}' + b" " * 100_000,
                    "nan": b'{"predictions": [{"label": "x", "probability": NaN}]}',
                    "text": b"<html>hello</html>",
                    "above one": b'{"predictions": [{"label": "x", "probability": 1.5}]}',
                }.get(self.fault) or self.answer(picture)
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def cv_server() -> AsyncIterator[CvServer]:
    """Serve on loopback."""
    there = CvServer()
    server = await asyncio.start_server(there.serve, "127.0.0.1", 0)
    there.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield there
    finally:
        server.close()
