"""Pictures are decoded within limits, and passed on without what else was in the file."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from demos.medagen.fetch import ImageRefusedError
from demos.medagen.images import reencoded


def picture(kind: str, size: tuple[int, int] = (60, 40), **more: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(out, kind, **more)
    return out.getvalue()


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
async def test_kinds(kind: str) -> None:
    found = opened(await reencoded(picture(kind)))
    assert (found.format, found.size) == ("JPEG", (60, 40))


async def test_metadata_is_dropped_and_the_picture_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90°
    exif[0x010F] = "camera of ann"
    exif.get_ifd(0x8825)[2] = (10.0, 45.0, 3.0)  # GPS
    content = picture("JPEG", exif=exif)
    assert b"camera of ann" in content
    made = await reencoded(content)
    assert opened(made).size == (40, 60)
    assert b"camera of ann" not in made
    assert not opened(made).getexif()


@pytest.mark.sweep
async def test_a_large_picture_becomes_small() -> None:
    assert opened(await reencoded(picture("PNG", (4_000, 2_000)))).size == (1_024, 512)


async def test_an_animation_is_its_first_frame() -> None:
    frames = [Image.new("RGB", (20, 20), color) for color in ((255, 0, 0), (0, 0, 255))]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:])
    red, _, blue = opened(await reencoded(out.getvalue())).getpixel((5, 5))  # type: ignore[misc]
    assert red > 200 > blue


def bomb(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes that says that it is large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + crc

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\x00" * 100_000))
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no JPEG, PNG or WebP"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no JPEG, PNG or WebP"),
        (b"<html>", "no JPEG, PNG or WebP"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "no JPEG, PNG or WebP"),
        (picture("GIF"), "no JPEG, PNG or WebP"),
        (picture("BMP"), "no JPEG, PNG or WebP"),
        (picture("TIFF"), "no JPEG, PNG or WebP"),
        (picture("PNG")[:60], "broken"),
        (picture("JPEG")[:400], "broken"),
        (bomb(60_000, 60_000), "more than 20,000,000 pixels"),
        (bomb(5_000, 5_000), "more than 20,000,000 pixels"),
    ],
)
async def test_what_is_no_picture(content: bytes, told: str) -> None:
    with pytest.raises(ImageRefusedError, match=told):
        await reencoded(content)


@pytest.mark.sweep
@given(st.binary(max_size=400), st.integers(0, 600), st.sampled_from(["JPEG", "PNG", "WEBP"]))
async def test_broken_files_are_refused_or_read(noise: bytes, at: int, kind: str) -> None:
    content = bytearray(picture(kind))
    content[at : at + len(noise)] = noise
    with contextlib.suppress(ImageRefusedError):
        assert opened(await reencoded(bytes(content))).format == "JPEG"
