"""Replies of Gemini as gateways send them, in the form that the SDK reads.

The SDK reads a stream whose events begin with `data: `, or one object. It takes an error in place
of a reply for an empty reply.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx2

from mdagents_llm.files.json_text import compact_json, parse_json
from mdagents_llm.providers.error_body import raise_error_in
from mdagents_llm.providers.event_stream import (
    DONE,
    EventStream,
    is_stream,
    read_events,
    whole_json,
)


class GeminiBodies(httpx2.AsyncBaseTransport):
    """Transport that converts the bodies of replies; other responses are unchanged.

    A body raises `ErrorInReplyError` for an error in place of a reply, and ValueError for a body
    that is not JSON.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        response = await self._inner.handle_async_request(request)
        if response.is_success:
            if request.url.path.endswith(":streamGenerateContent"):
                response.stream = _Converted(response.stream, _chunks)
            elif request.url.path.endswith(":generateContent"):
                response.stream = _Converted(response.stream, _whole)
        return response

    async def aclose(self) -> None:
        """Close the transport."""
        await self._inner.aclose()


class _Converted(httpx2.AsyncByteStream):
    """A body that a function converts."""

    def __init__(
        self, inner: Any, convert: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]
    ) -> None:
        self._inner = inner
        self._convert = convert

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._convert(aiter(self._inner))

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _chunks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for data in read_events(pieces):
        if data.startswith(DONE):
            return
        value = parse_json(data)
        texts: Iterable[bytes] = map(compact_json, _checked(value))
        if not isinstance(value, list):
            texts = [data.replace("\n", " ").encode()]
        for text in texts:
            yield b"data: " + text + b"\n\n"


async def _whole(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    content = b"".join([piece async for piece in pieces])
    if not is_stream(content):
        chunks = _checked(whole_json(content))
    else:
        stream = EventStream()
        events = [*stream.feed(content), *stream.end()]
        texts = (data for data in events if not data.startswith(DONE))
        chunks = [chunk for text in texts for chunk in _checked(parse_json(text))]
    yield compact_json(_merged(chunks))


def _checked(value: Any) -> list[Any]:
    """Return the replies of a parsed body, or the chunks of one.

    Raises:
        ErrorInReplyError: One is an error.
    """
    chunks = value if isinstance(value, list) else [value]
    for chunk in chunks:
        raise_error_in(chunk, "candidates")
    return chunks


def _merged(chunks: list[Any]) -> Any:
    """Return the chunks of a stream as one reply; a later field replaces an earlier one."""
    if len(chunks) == 1:
        return chunks[0]
    merged: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[Any] = []
    for chunk in chunks:
        merged |= chunk
        for piece in (chunk.get("candidates") or ())[:1]:
            candidate |= piece
            parts += (piece.get("content") or {}).get("parts") or ()
    return merged | {"candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}
