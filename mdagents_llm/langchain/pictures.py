"""Reads the image blocks of LangChain messages, in its own form and in those of vendors."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
from collections.abc import Mapping
from typing import Any

from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.pictures import ImageDetail, Picture

IMAGES = frozenset({"image", "image_url", "input_image"})
"""Types of content blocks that hold a picture."""
_DATA_URI = re.compile(r"data:[^;,]*;base64,", re.IGNORECASE)
_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


def picture_of(block: Mapping[str, Any]) -> Picture:
    """Return the picture of an image block.

    Raises:
        ConfigError: The block holds an address instead of the picture, or no picture of a known
            format.
    """
    kind, encoded = block.get("type"), _encoded(block)
    if encoded is None:
        raise ConfigError(
            f"a content block of type '{kind}' holds no picture in Base64; give its content, since "
            "no address and no file ID is followed"
        )
    try:
        content = base64.b64decode(_DATA_URI.sub("", encoded, count=1), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(
            f"the picture of a content block of type '{kind}' is not valid Base64"
        ) from error
    with needs_extra("images", "an image block"):
        from PIL import Image
    try:
        image = Image.open(io.BytesIO(content), formats=tuple(_TYPES))
        media_type = _TYPES[image.format or ""]
    except (OSError, KeyError, ValueError, Image.DecompressionBombError) as error:
        raise ConfigError(
            f"the picture of a content block of type '{kind}' is none of PNG, JPEG, WebP and GIF"
        ) from error
    detail = str(_image_of(block).get("detail") or block.get("detail"))
    return Picture(
        base64.b64encode(content).decode(),
        media_type,
        *image.size,
        hashlib.sha256(content).hexdigest(),
        detail=ImageDetail(detail) if detail in [*ImageDetail] else ImageDetail.AUTO,
    )


def _encoded(block: Mapping[str, Any]) -> str | None:
    """Return the Base64 text of an image block, perhaps as a data URI; None if it has none."""
    source = block.get("source")
    given = [block.get("base64"), block.get("data"), _image_of(block).get("url"), block.get("url")]
    if isinstance(source, Mapping):  # Anthropic
        given.append(source.get("data"))
    texts = [text for text in given if isinstance(text, str) and text]
    is_address = block.get("source_type") == "url" or (
        texts and "://" in texts[0][:20] and not _DATA_URI.match(texts[0])
    )
    return None if is_address or not texts else texts[0]


def _image_of(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of `image_url`, which may also be the URL itself."""
    image = block.get("image_url")
    return image if isinstance(image, Mapping) else {"url": image}
