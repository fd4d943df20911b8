"""Pictures as they are sent: what a viewer would show, without metadata, within the limits."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.picture_checks import check_pictures
from mdagents.datasets.pictures import decoding, preparing
from mdagents.datasets.pictures.preparing import PictureSettings, prepare_picture
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import Question
from mdagents_llm.errors import ConfigError
from mdagents_llm.pictures import ImageDetail, Picture
from tests.mdagents.datasets.made_pictures import BLUE, RED, WHITE, encoded, png, two_colors

pytestmark = pytest.mark.filterwarnings("ignore:::PIL", "ignore:::pydicom")
"""As in a run: `pictures.decoding` leaves out what Pillow warns of."""


def sent(content: bytes, max_pixels: int = 1_150_000) -> Picture:
    picture = QuestionPicture(None, content=content)
    return prepare_picture(picture, PictureSettings(max_pixels), "")


def shown(picture: Picture) -> Image.Image:
    """Return the pixels of a picture as a provider decodes them."""
    image = Image.open(io.BytesIO(base64.b64decode(picture.base64)))
    image.load()
    assert image.size == (picture.width, picture.height)
    assert Image.MIME[str(image.format)] == picture.media_type
    assert not set(image.info) - {"jfif", "jfif_version", "jfif_unit", "jfif_density", "dpi"}
    return image.convert("RGB")


def is_near(seen: object, meant: tuple[int, int, int], by: int = 12) -> bool:
    assert isinstance(seen, tuple)
    return all(abs(one - other) <= by for one, other in zip(seen, meant, strict=True))


def test_a_plain_file_is_sent_as_it_is() -> None:
    noise = Image.effect_noise((60, 60), 90)
    for image in (two_colors(), noise, noise.convert("1"), two_colors().convert("P")):
        for form, options in (
            ("PNG", {}), ("JPEG", {}), ("JPEG", {"progressive": True}), ("JPEG", {"quality": 30})
        ):  # fmt: skip
            if form == "PNG" or image.mode in ("L", "RGB"):
                content = encoded(image, form, **options)
                assert base64.b64decode(sent(content).base64) == content


def exif(orientation: int) -> bytes:
    data = Image.Exif()
    data[0x0112] = orientation
    data[0x010E] = "Jane Doe"
    return data.tobytes()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_is_applied(form: str, orientation: int) -> None:
    turn = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    upright = Image.new("RGB", (64, 32), WHITE)
    upright.paste(RED, (0, 0, 16, 16))
    upright.paste(BLUE, (48, 0, 64, 16))
    stored = upright.transpose(turn[orientation]) if orientation > 1 else upright
    image = shown(sent(encoded(stored, form, exif=exif(orientation))))
    assert image.size == (64, 32)
    assert is_near(image.getpixel((5, 5)), RED, 40)
    assert is_near(image.getpixel((58, 5)), BLUE, 40)
    assert is_near(image.getpixel((32, 25)), WHITE, 40)


def test_metadata_is_not_sent() -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("Patient", "Jane Doe")
    text.add_itxt("XML:com.adobe.xmp", "Jane Doe")
    jpeg = encoded(two_colors(), "JPEG", comment=b"Jane Doe")
    files = [
        encoded(two_colors(), pnginfo=text),
        jpeg,
        encoded(two_colors(), "JPEG", exif=exif(1)),
        encoded(two_colors(), "WEBP", exif=exif(1)),
        encoded(two_colors(), "TIFF", description="Jane Doe"),
        encoded(two_colors(), "GIF", comment=b"Jane Doe"),
        png() + b"PK\x03\x04 Jane Doe",  # something else after the end
        encoded(two_colors(), "JPEG") + b"<script>Jane Doe</script>",
        encoded(two_colors(), "JPEG").replace(b"JFIF\0", b"Jane\0"),
        encoded(two_colors(), "JPEG")[:-2] + b"\xff\xfe\0\x0aJane Doe\xff\xd9",
        encoded(two_colors(), icc_profile=b"Jane Doe" * 20),
        encoded(two_colors(), "PNG", save_all=True, append_images=[two_colors(32, 32)]),
    ]
    for content in files:
        out = base64.b64decode(sent(content).base64)
        assert b"Jane" not in out
        assert b"PK\x03\x04" not in out
        assert b"acTL" not in out
        assert is_near(shown(sent(content)).getpixel((2, 2)), RED)


MODES: list[tuple[Callable[[], bytes], tuple[int, int, int]]] = [
    (lambda: encoded(Image.new("1", (40, 40), 1)), WHITE),
    (lambda: encoded(Image.new("L", (40, 40), 90)), (90, 90, 90)),
    (lambda: encoded(Image.new("LA", (40, 40), (0, 0))), WHITE),
    (lambda: encoded(Image.new("LA", (40, 40), (0, 128))), (127, 127, 127)),
    (lambda: encoded(Image.new("RGBA", (40, 40), (0, 0, 0, 0))), WHITE),
    (lambda: encoded(Image.new("RGBA", (40, 40), (255, 0, 0, 255)), "WEBP"), RED),
    (lambda: encoded(Image.new("RGB", (40, 40), RED), transparency=RED), WHITE),
    (lambda: encoded(Image.new("L", (40, 40), 7), transparency=7), WHITE),
    (lambda: encoded(two_colors(40, 40).convert("P"), transparency=b"\0" * 256), WHITE),
    (lambda: encoded(Image.new("CMYK", (40, 40), (0, 255, 255, 0)), "JPEG"), (254, 0, 0)),
    (lambda: encoded(Image.new("CMYK", (40, 40), (0, 255, 255, 0)), "TIFF"), (254, 0, 0)),
    (lambda: encoded(Image.new("RGB", (40, 40), RED).convert("YCbCr"), "TIFF"), RED),
    (lambda: encoded(Image.new("I;16", (40, 40), 0x8000)), (128, 128, 128)),
    (lambda: encoded(Image.new("I;16", (40, 40), 0xFFFF), "TIFF"), WHITE),
    (lambda: encoded(Image.new("I;16B", (40, 40), 0x8000), "TIFF"), (128, 128, 128)),
    (lambda: encoded(Image.new("I", (40, 40), 200), "TIFF"), (200, 200, 200)),
    (lambda: encoded(Image.new("I", (40, 40), 32_768), "TIFF"), (128, 128, 128)),
    (lambda: encoded(Image.new("F", (40, 40), 0.5), "TIFF"), (128, 128, 128)),
    (lambda: encoded(Image.new("F", (40, 40), 100.0), "TIFF"), (100, 100, 100)),
    (lambda: encoded(Image.new("F", (40, 40), float("nan")), "TIFF"), (0, 0, 0)),
    (lambda: encoded(two_colors(40, 40), "GIF", save_all=True,
                     append_images=[Image.new("RGB", (40, 40), WHITE)] * 3), RED),
    (lambda: encoded(two_colors(40, 40), "BMP"), RED),
    (lambda: encoded(two_colors(40, 40), "AVIF"), RED),
]  # fmt: skip


@pytest.mark.parametrize(("make", "color"), MODES)
def test_every_mode_looks_as_in_a_viewer(
    make: Callable[[], bytes], color: tuple[int, int, int]
) -> None:
    assert is_near(shown(sent(make())).getpixel((3, 3)), color)


def test_sixteen_bits_keep_their_gray_levels() -> None:
    """A conversion that cuts at 255 leaves two levels of a ramp."""
    ramp = np.tile(np.arange(256, dtype=np.uint16) << 8, (40, 1))
    for form in ("PNG", "TIFF"):
        levels = shown(sent(encoded(Image.fromarray(ramp), form))).convert("L")
        assert len(set(levels.tobytes())) == 256


def test_colors_are_converted_from_their_profile() -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    content = encoded(Image.new("RGB", (40, 40), (200, 100, 50)), icc_profile=srgb)
    assert is_near(shown(sent(content)).getpixel((1, 1)), (200, 100, 50), 2)
    # A profile for another color space, or a damaged one, is ignored, as viewers do.
    for profile in (lab, srgb[:200], b"\0" * 500, srgb[:128] + b"\xff" * 400):
        content = encoded(Image.new("RGB", (40, 40), RED), icc_profile=profile)
        assert is_near(shown(sent(content)).getpixel((1, 1)), RED, 2)


@pytest.mark.parametrize(
    ("size", "max_pixels", "meant"),
    [
        ((3000, 1000), 300_000, (948, 316)),
        ((1000, 1000), 1_000_000, (1000, 1000)),
        ((9000, 60), 10_000_000, (8000, 53)),
        ((5, 4), 1_000_000, (35, 28)),
        ((2, 300), 1_000_000, (28, 4200)),
        ((5, 4), 25, (5, 4)),
        ((1, 2), 1_000_000, (28, 56)),
    ],
)
def test_sizes(size: tuple[int, int], max_pixels: int, meant: tuple[int, int]) -> None:
    for form in ("PNG", "JPEG"):
        options = {"subsampling": 0, "quality": 95} if form == "JPEG" else {}
        image = shown(sent(encoded(two_colors(*size), form, **options), max_pixels))
        assert image.size == meant
        assert is_near(image.getpixel((image.width - 1, image.height - 1)), BLUE, 60)


def test_lossless_stays_lossless_and_photographs_stay_small() -> None:
    noise = Image.merge("RGB", [Image.effect_noise((300, 300), 60) for _ in range(3)])
    assert sent(encoded(noise, "TIFF")).media_type == "image/png"
    assert sent(encoded(noise, "WEBP", lossless=True)).media_type == "image/png"
    assert sent(encoded(noise, "WEBP")).media_type == "image/jpeg"
    assert sent(encoded(noise, "JPEG", quality=95), 40_000).media_type == "image/jpeg"
    assert sent(encoded(two_colors(600, 600), "JPEG"), 40_000).media_type == "image/png"


def test_a_png_beyond_the_limit_of_vendors_becomes_a_jpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "LARGEST_PNG", 10_000)
    noise = Image.effect_noise((150, 150), 60)
    assert sent(encoded(noise, "PNG", compress_level=0)).media_type == "image/jpeg"


def test_the_identity_is_that_of_the_original() -> None:
    turned = encoded(two_colors(), "JPEG", exif=exif(6))
    assert sent(turned).sha256 == sent(turned).sha256
    assert sent(turned).sha256 != sent(turned, 1000).sha256
    assert sent(turned).sha256 != sent(encoded(two_colors(), "JPEG", exif=exif(8))).sha256
    # Recorded replies are found by it, so it must never depend on how a picture is encoded.
    original = hashlib.sha256(turned).digest()
    assert sent(turned).sha256 == hashlib.sha256(original + b"1150000").hexdigest()


HOSTILE: list[tuple[bytes, str]] = [
    (b"\0", "is damaged or in no format"),
    (b"<html><body>404 Not Found</body></html>", "is a web page"),
    (b"\n<!DOCTYPE html>", "is a web page"),
    (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "is an SVG drawing"),
    (b"%PDF-1.7\n", "is a PDF"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n", "git lfs pull"),
    (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "is HEIC; save it as JPEG or PNG"),
    (b"PK\x03\x04rest", "is a ZIP archive"),
    (b"P6 9 9 255 " + bytes(243), "is damaged or in no format"),  # PPM: not among the formats
    (b"%!PS-Adobe-3.0 EPSF-3.0\n", "is damaged or in no format"),  # would start Ghostscript
    (png()[:60], "cannot be decoded"),
    (encoded(two_colors(), "JPEG")[:-40], "cannot be decoded: image file is truncated"),
    (encoded(two_colors(), "WEBP")[:-9], "the picture in the record"),
    (encoded(Image.new("1", (1, 1))), "has 1 x 1 pixels, which vendors refuse"),
    (encoded(Image.new("1", (1, 201))), "one side may be 200 times the other"),
    (encoded(Image.new("1", (60_000, 1))), "one side may be 200 times the other"),
]


def header(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG file that claims a size, with extra chunks, and hardly any pixels."""
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    every = [(b"IHDR", size), *chunks, (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in every
    )


BOMB = zlib.compress(bytes(100 * 2**20))
HOSTILE += [
    (header(50_000, 50_000), "more than 100,000,000 pixels"),
    (header(11_000, 11_000), "11,000 x 11,000 pixels, at most 65,500 a side and 100,000,000"),
    (header(70_000, 1_000), "at most 65,500 a side"),
    (header(0, 10), "the picture in the record"),
    (header(90, 90, (b"zTXt", b"Comment\0\0" + BOMB)), "cannot be decoded: Decompressed data"),
    (header(90, 90, (b"iCCP", b"icc\0\0" + BOMB)), "cannot be decoded: Decompressed data"),
]


def tiff(width: int, height: int, tile: int = 0) -> bytes:
    """Return a TIFF file that lies about its size or its tiles."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (277, 1)]
    tags += [(322, tile), (323, tile), (324, 8), (325, 100)] if tile else [
        (273, 8), (278, height), (279, 100)
    ]  # fmt: skip
    rows = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + rows + bytes(4)


HOSTILE += [
    (tiff(9_000, 9_000), "cannot be decoded"),
    (tiff(200, 200, tile=65_536), "tiles of more pixels"),
    (tiff(20_000, 20_000), "more than 100,000,000 pixels"),
]


@pytest.mark.parametrize(("content", "line"), HOSTILE, ids=[line for _, line in HOSTILE])
def test_hostile_files_cost_one_line(content: bytes, line: str) -> None:
    with pytest.raises(ConfigError) as error:
        sent(content)
    assert line in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_the_content_decides_and_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(two_colors(), "JPEG"))
    (tmp_path / "x.jsonl").write_text(
        json.dumps({"question": "?", "options": ["y", "n"], "answer_idx": "A", "image": "a.png"})
    )
    dataset = open_dataset(str(tmp_path / "x.jsonl"), tmp_path)
    (picture,) = dataset.load(dataset.index[0]).pictures
    assert sent(picture.read()).media_type == "image/jpeg"
    assert check_pictures(dataset, dataset.index).notes == ()
    (tmp_path / "a.png").write_bytes(b"<html>")
    line = (
        r"1 of the 1 questions have a picture that cannot be sent \(first: .* line 1, id sample_1\)"
    )
    with pytest.raises(ConfigError, match=line):
        check_pictures(dataset, dataset.index)
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(ConfigError, match="larger than 64 MB"):
        picture.read()


@pytest.mark.sweep
def test_many_frames_and_pages_cost_nothing() -> None:
    frame = Image.new("P", (30, 30))
    for form in ("GIF", "TIFF"):
        frames = [Image.new("P", (30, 30), n % 200) for n in range(500)]
        content = encoded(frame, form, save_all=True, append_images=frames)
        assert shown(sent(content)).size == (30, 30)


def test_a_photograph_of_a_phone_is_its_first_picture() -> None:
    """Phones keep a second picture behind the first one in a JPEG (MPO)."""
    other = [Image.new("RGB", (64, 32), WHITE)]
    content = encoded(two_colors(), "MPO", save_all=True, append_images=other, exif=exif(3))
    image = shown(sent(content))
    assert is_near(image.getpixel((60, 3)), RED, 40)
    assert sent(content).media_type in ("image/jpeg", "image/png")


def test_labels_and_detail_are_those_of_the_question() -> None:
    one = QuestionPicture(None, content=png(), caption="front")
    other = QuestionPicture(None, content=png(), option="B")
    question = Question("q", "?", {"A": "yes", "B": ""}, "A", {}, pictures=(one, other))
    settings = PictureSettings(detail=ImageDetail.HIGH)
    prepared = [
        prepare_picture(picture, settings, label)
        for picture, label in zip(question.pictures, question.labels(), strict=True)
    ]
    assert [(p.label, p.detail) for p in prepared] == [
        ("Picture 1: front", ImageDetail.HIGH),
        ("Picture 2", ImageDetail.HIGH),
    ]
    assert prepared[0].base64 is prepared[1].base64, "prepared once"


def test_threads_prepare_a_picture_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    everyone = threading.Barrier(8, timeout=60)
    original = decoding.decode

    def counted(*given: Any) -> Image.Image:
        decoded.append(1)
        return original(*given)

    monkeypatch.setattr(decoding, "decode", counted)
    noise = encoded(Image.effect_noise((700, 700), 91), "TIFF")
    results: list[Picture | ConfigError] = []

    def work(content: bytes) -> None:
        everyone.wait()
        try:
            results.append(sent(content))
        except ConfigError as error:
            results.append(error)

    for content, tries in ((noise, {1}), (noise[:5000], set(range(1, 9)))):
        decoded.clear()
        results.clear()
        threads = [threading.Thread(target=work, args=(content,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({str(one) for one in results}) == 1
        assert len(results) == 8
        assert len(decoded) in tries


def test_memory_of_prepared_pictures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_KEPT", 0)
    sent(png(side=33))
    monkeypatch.setattr(preparing, "_KEPT", 10_000)
    first = sent(png(side=34))
    assert sent(png(side=34)).base64 is first.base64
    for side in range(35, 95):
        sent(encoded(Image.effect_noise((side, side), 50)))
    assert sent(png(side=34)).base64 is not first.base64


@pytest.mark.process
def test_without_pictures_pillow_is_not_imported() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from mdagents.datasets.pictures import preparing\n"
        "from mdagents.datasets.dataset import open_dataset\n"
        "from mdagents.datasets.picture_checks import check_pictures\n"
        "d = open_dataset('medqa-sample', Path('data')); check_pictures(d, d.index)\n"
        "print({'PIL', 'pydicom', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
