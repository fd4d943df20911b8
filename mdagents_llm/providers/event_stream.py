"""Event streams (server-sent events) as servers and gateways send them.

The format is https://html.spec.whatwg.org/multipage/server-sent-events.html. Beyond it, this
module reads an event that the next event ends instead of a blank line, a complete one that the
stream's end ends, and JSON without a field name, such as the error of a gateway.
"""

from __future__ import annotations

import asyncio
import json
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from typing import Any

from mdagents_llm.files.json_text import parse_json

DONE = "[DONE]"
"""Data of the event that ends a stream."""
LONGEST_END = 3.0
"""Seconds to wait for the rest of a stream, such as its usage, after its finish reason."""
_IGNORED = "ping"  # name of an event that only keeps the connection alive
_FIELD = re.compile(rb"(?:data|event|id|retry)?:")


class EventStream:
    """Splits the bytes of a stream into the data of its events.

    Comments, events without data and those that keep a connection alive are left out, also comments
    that a gateway passes on as data.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # beginning of a line
        self._has_return = False  # whether the last piece ended in a carriage return
        self._is_first = True  # whether no line was read yet
        self._name = ""
        self._data: list[str] = []
        self._is_bare = False  # whether the data has no field name

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of the events that a piece completes; bytes that are no UTF-8 are `�`."""
        if self._has_return or b"\r" in piece:
            piece = self._without_returns(piece)
        *lines, rest = piece.split(b"\n")
        found: list[str] = []
        if lines and self._rest:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest = []
        for line in lines:
            self._read(line.decode(errors="replace"), found)
        if rest:
            self._rest.append(rest)
        return found

    def end(self) -> list[str]:
        """Return the data of the last events; one that was cut off is dropped."""
        found = self.feed(b"\n")
        self._dispatch(found, is_last=True)
        return found

    def _without_returns(self, piece: bytes) -> bytes:
        """Return a piece with each end of a line as a line feed."""
        if self._has_return:
            piece = b"\r" + piece
        self._has_return = piece.endswith(b"\r")
        if self._has_return:
            piece = piece[:-1]  # a line feed may follow
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, line: str, found: list[str]) -> None:
        if self._is_first:
            line, self._is_first = line.removeprefix("\ufeff"), False
        if not line:
            self._dispatch(found)
        elif line.startswith("data:"):
            text = line[5:].removeprefix(" ")
            if self._data and (self._is_bare or self._ends_before(text)):
                self._dispatch(found)
            self._data.append(text)
        elif line.startswith("event:"):
            if self._data and (self._is_bare or self._data[-1].endswith("}")):
                self._dispatch(found)
            self._name = line[6:].strip()
        elif self._is_bare or line.lstrip()[:1] in ("{", "["):
            if self._data and (not self._is_bare or self._ends_before(line)):
                self._dispatch(found)
            self._is_bare = True
            self._data.append(line)

    def _ends_before(self, text: str) -> bool:
        """Return whether the data is complete; in JSON, no `{` or `[` follows a `}`."""
        return self._data[-1].endswith("}") and text.startswith(("{", "["))

    def _dispatch(self, found: list[str], *, is_last: bool = False) -> None:
        data = "\n".join(self._data)
        is_comment = data.startswith(":")
        is_certain = not (self._is_bare or is_last) or data.startswith(DONE)
        is_data = is_certain or _is_json(data)
        if data and not is_comment and is_data and self._name != _IGNORED:
            found.append(data)
        self._name, self._data, self._is_bare = "", [], False


async def read_events(pieces: AsyncIterator[bytes], beginning: bytes = b"") -> AsyncIterator[str]:
    """Yield the data of the events of a stream.

    Args:
        pieces: Content of the stream as it arrives.
        beginning: Content that was already taken from `pieces`.
    """
    stream = EventStream()
    for data in stream.feed(beginning):
        yield data
    async for piece in pieces:
        for data in stream.feed(piece):
            yield data
    for data in stream.end():
        yield data


class Extent:
    """Extent of the text of a stream, without reasoning, and whether a finish reason ended it.

    Some servers send a finish reason with each piece of the text, which says nothing of its end.
    One before any text may be that of the reasoning.
    """

    def __init__(self) -> None:
        self.pieces = 0
        """Number of pieces so far."""
        self.has_ended = False
        """Whether a finish reason came after text without one."""
        self._has_begun = False

    def note(self, finish: object) -> None:
        """Note the finish reason of a chunk whose text was added; None or empty without one."""
        if finish:
            self.has_ended = self._has_begun
        elif self.pieces:
            self._has_begun = True


async def until_end(
    events: AsyncIterator[Any],
    extent: Extent,
    broken: tuple[type[Exception], ...],
) -> AsyncIterator[Any]:
    """Yield the events of a stream, which ends soon after its finish reason.

    A gateway may leave it open without an end marker, with comments that keep it alive
    (https://github.com/maximhq/bifrost/issues/6784), or break it off. If more text follows a finish
    reason, it says nothing about the end.

    Args:
        events: Events of the stream, or its chunks.
        extent: Extent of the text, which the caller updates.
        broken: Exceptions that mean that the connection broke.
    """
    async for event in events:
        yield event
        if extent.has_ended:
            break
    else:
        return
    pieces, due = extent.pieces, asyncio.get_running_loop().time() + LONGEST_END
    while extent.pieces == pieces:
        try:
            async with asyncio.timeout_at(due):
                event = await anext(events)
        except (StopAsyncIteration, TimeoutError):
            return
        except broken:
            return
        yield event
    async for event in events:
        yield event


def is_stream(content: bytes) -> bool:
    """Return whether a content, or its beginning, is an event stream, whatever its type says."""
    return _FIELD.match(_without_mark(content)) is not None


def is_bare(content: bytes) -> bool:
    """Return whether a content, or its beginning, is JSON without a field name."""
    return _without_mark(content).startswith((b"{", b"["))


def whole_json(content: bytes) -> Any:
    """Return the JSON value of a content, after which a gateway may add the end of a stream.

    Bytes that are no UTF-8 become `�`.

    Raises:
        ValueError: The content is not JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        return parse_json(content)
    except ValueError:
        text = _without_mark(content).decode(errors="replace")
        value, end = json.JSONDecoder().raw_decode(text)
        rest = text[end:].strip()
        if rest and not is_stream(rest.encode()):
            raise
        return value


def _without_mark(content: bytes) -> bytes:
    """Return a content without a byte order mark and space at its beginning."""
    return content.removeprefix(BOM_UTF8).lstrip()


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True
