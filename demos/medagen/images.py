"""Re-encodes fetched pictures: decodes them within limits and drops all other file content."""

from __future__ import annotations

import asyncio
import io
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from demos.medagen.fetch import ImageRefusedError, fetch_image

FORMATS = ("JPEG", "PNG", "WEBP")
MOST_PIXELS = 20_000_000
LONGEST_SIDE = 1_024
"""Maximum width and height, in pixels, of the picture that is passed on."""


async def picture_at(url: str) -> bytes:
    """Return the picture at a URL as JPEG.

    Raises:
        ImageRefusedError: The URL may not be fetched, or its content is not a usable picture.
    """
    return await reencoded(await fetch_image(url))


async def reencoded(content: bytes) -> bytes:
    """Return a picture as upright JPEG of at most 1,024 x 1,024 pixels, without metadata.

    Args:
        content: JPEG, PNG or WebP file; only the first frame is used.

    Raises:
        ImageRefusedError: The content is not such a picture, or it is broken or too large.
    """
    return await asyncio.to_thread(_reencoded, content)


def _reencoded(content: bytes) -> bytes:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise ImageRefusedError(f"the picture has more than {MOST_PIXELS:,} pixels")
                picture.load()
                upright = ImageOps.exif_transpose(picture).convert("RGB")
    except UnidentifiedImageError:
        raise ImageRefusedError("this is no JPEG, PNG or WebP picture") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise ImageRefusedError(f"the picture has more than {MOST_PIXELS:,} pixels") from None
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, OverflowError, IndexError):
        raise ImageRefusedError("the picture is broken") from None
    upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    out = io.BytesIO()
    upright.save(out, "JPEG", quality=90)
    return out.getvalue()
