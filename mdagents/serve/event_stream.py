"""A response of server-sent events that ends as soon as its client leaves.

sse-starlette ends all streams at the first Ctrl-C, and so an answer that is nearly there; Starlette
notices that a client has left only when the next event is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_PATIENCE = 60.0
"""Maximum seconds until a client takes an event."""


class EventStreamResponse(Response):
    """Sends the events of a generator, which is closed when the client leaves.

    Args:
        events: Events, ready for the wire.
        at_end: Called at the end, however the response ends, even if it never began.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[bytes, None], at_end: Callable[[], Awaitable[None]]
    ) -> None:
        # nginx would otherwise hold events back until its buffer is full.
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events = events
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(until_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            sending.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            await self._events.aclose()
            await self._at_end()

    async def _send(self, send: Send) -> None:
        start = {
            "type": "http.response.start", "status": self.status_code, "headers": self.raw_headers,
        }  # fmt: skip
        await send(start)
        async for event in self._events:
            async with asyncio.timeout(_PATIENCE):
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_gone(receive: Receive) -> None:
    """Wait until the client has left; the body of the request was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
