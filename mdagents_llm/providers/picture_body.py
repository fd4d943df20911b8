"""Pictures in request bodies: sent in pieces, so that all calls share one encoded copy.

A body holds a `PictureText` where its JSON has the text of a picture. `pieces` serializes the rest
and leaves that text as it is; `plain` makes an ordinary body of it, for SDKs and batches.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Any

from pydantic_core import to_json

from mdagents_llm.chat import ChatMessage
from mdagents_llm.pictures import ImageDetail, Picture

Pieces = list[bytes | str]
"""Parts of a JSON body in their order: JSON as bytes, and ASCII texts that need no escape."""

_MARK = secrets.token_hex(16)  # no prompt can hold it
_SLICE = 65_536  # characters that are encoded at a time


class PictureText:
    """Text of a picture in a request body.

    Args:
        before: Text that precedes the Base64 text of the picture.
        picture: The picture.
    """

    __slots__ = ("before", "picture")

    def __init__(self, before: str, picture: Picture) -> None:
        self.before = before
        self.picture = picture

    def __str__(self) -> str:
        return self.before + self.picture.base64


def data_uri(picture: Picture) -> PictureText:
    """Return the data URI of a picture."""
    return PictureText(f"data:{picture.media_type};base64,", picture)


def content_of(message: ChatMessage) -> object:
    """Return the content of a message in a chat completion: its text, or a list of parts.

    https://platform.openai.com/docs/guides/images-vision
    """
    if not message.pictures:
        return message.content
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": data_uri(part), **detail_of(part)}}
        for part in message.parts()
    ]


def detail_of(picture: Picture) -> dict[str, str]:
    """Return the field that asks for a resolution; empty if the endpoint chooses."""
    return {} if picture.detail is ImageDetail.AUTO else {"detail": picture.detail.value}


def pieces(body: object) -> Pieces:
    """Return a body as JSON in pieces; one piece if it has no picture."""
    found: list[PictureText] = []

    def mark(value: Any) -> str:
        found.append(value)
        return _MARK

    first, *rest = to_json(body, fallback=mark).split(_MARK.encode())
    parts: Pieces = [first]
    for text, after in zip(found, rest, strict=True):
        parts += [text.before, text.picture.base64, after]
    return parts


async def slices(parts: Pieces) -> AsyncIterator[bytes]:
    """Yield the bytes of a body, without a copy of a whole picture."""
    for part in parts:
        for start in range(0, len(part), _SLICE):
            piece = part[start : start + _SLICE]
            yield piece.encode("ascii") if isinstance(piece, str) else piece


def joined(parts: Pieces) -> bytes:
    """Return the bytes of a body."""
    return b"".join(part.encode("ascii") if isinstance(part, str) else part for part in parts)


def plain(value: Any) -> Any:
    """Return a body with the texts of its pictures as strings."""
    match value:
        case PictureText():
            return str(value)
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
    return value


def has_pictures(body: object) -> bool:
    """Return whether a body, or a part of one, holds a picture."""
    match body:
        case PictureText():
            return True
        case dict():
            return any(map(has_pictures, body.values()))
        case list():
            return any(map(has_pictures, body))
    return False


def any_picture(messages: Iterable[ChatMessage]) -> Picture | None:
    """Return the first picture of a prompt; None if it has none."""
    return next((picture for message in messages for picture in message.pictures), None)
