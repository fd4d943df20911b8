"""Whatever bytes a file has, it costs one line or is a picture that others can read."""

from __future__ import annotations

import base64
import io
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from mdagents.datasets.pictures.preparing import PictureSettings, prepare_picture
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.question_records import parse_question
from mdagents.datasets.questions import SourceQuestion
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.made_pictures import encoded, two_colors

pytestmark = pytest.mark.filterwarnings("ignore:::PIL", "ignore:::pydicom")

MODES = {
    "PNG": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"],
    "JPEG": ["L", "RGB", "CMYK"],
    "WEBP": ["RGB", "RGBA"],
    "GIF": ["P", "L"],
    "TIFF": ["1", "L", "P", "RGB", "RGBA", "CMYK", "LAB", "YCbCr", "I;16", "I", "F"],
    "BMP": ["1", "L", "P", "RGB"],
    "AVIF": ["RGB", "RGBA"],
}
FORMATS = [(form, mode) for form, modes in MODES.items() for mode in modes]


def made(form: str, mode: str, size: tuple[int, int], orientation: int) -> bytes:
    image = two_colors(*size)
    image = image.convert("L").convert(mode) if mode in ("I;16", "I", "F") else image.convert(mode)
    exif = Image.Exif()
    exif[0x0112] = orientation
    takes_exif = form in ("PNG", "JPEG", "WEBP", "TIFF", "AVIF")
    return encoded(image, form, **({"exif": exif.tobytes()} if takes_exif else {}))


def outcome(content: bytes, max_pixels: int = 100_000) -> tuple[int, int] | str:
    """Return the size as sent, or the line that refuses the picture."""
    picture = QuestionPicture(None, content=content)
    try:
        sent = prepare_picture(picture, PictureSettings(max_pixels), "")
    except ConfigError as error:
        line = str(error)
        assert "\n" not in line
        assert len(line) < 300
        return line
    image = Image.open(io.BytesIO(base64.b64decode(sent.base64)), formats=["PNG", "JPEG"])
    image.load()
    assert image.size == (sent.width, sent.height)
    assert sent.width * sent.height <= max_pixels
    assert not {"exif", "comment", "icc_profile", "xmp"} & set(image.info)
    return image.size


@given(
    st.sampled_from(FORMATS),
    st.tuples(st.integers(2, 400), st.integers(2, 400)),
    st.integers(0, 9),
    st.sampled_from([784, 10_000, 1_150_000]),
)
@settings(max_examples=60, deadline=None)
def test_every_format_size_and_orientation(
    kind: tuple[str, str], size: tuple[int, int], orientation: int, max_pixels: int
) -> None:
    width, height = size
    sent = outcome(made(*kind, size, orientation), max_pixels)
    if max(size) > 200 * min(size):
        assert "200 times" in str(sent)
        return
    assert isinstance(sent, tuple)
    turned = (
        (height, width) if orientation in (5, 6, 7, 8) and kind[0] not in ("GIF", "BMP") else size
    )
    if width * height <= max_pixels and min(size) >= 28:
        assert sent == turned
    else:
        assert (sent[0] > sent[1]) == (turned[0] > turned[1]) or abs(turned[0] - turned[1]) < 3 * 15


SAMPLES = [made(form, mode, (60, 40), 6) for form, mode in FORMATS]


def damaged(draw: Any, content: bytes) -> bytes:
    raw = bytearray(content)
    for place, value in draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=12)
    ):
        raw[place] = value
    return bytes(raw[: draw(st.integers(0, len(raw)))] if draw(st.booleans()) else raw)


@pytest.mark.sweep
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_files(data: st.DataObject) -> None:
    outcome(damaged(data.draw, data.draw(st.sampled_from(SAMPLES))))


@given(st.binary(max_size=400))
@settings(max_examples=50, deadline=None)
def test_any_bytes(content: bytes) -> None:
    outcome(content)
    outcome(bytes(128) + b"DICM" + content)


@pytest.mark.sweep
def test_every_truncation() -> None:
    for content, share in product(SAMPLES, range(1, 60)):
        outcome(content[: len(content) * share // 60])


@pytest.mark.sweep
@given(st.data())
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_damaged_files(data: st.DataObject) -> None:
    outcome(damaged(data.draw, data.draw(st.sampled_from(SAMPLES))))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["a.png", "<image 1>", "../x.png", "/etc/passwd", "[", "['a.png'", "{", ";"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "bytes", "url", "image", "type", "option", "text", "parquet"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["image", "images", "image_1", "image_2", "img_path", "question", "options", "image_a", "other"]
)


def parsed(record: dict[str, Any], folder: Path | None) -> SourceQuestion | str:
    """Return the question of a record, or the line that refuses it."""
    try:
        return parse_question(record, "x", 1, folder=folder)
    except ConfigError as error:
        return str(error)


@pytest.mark.sweep
@given(st.dictionaries(NAMES, VALUES, max_size=4))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_record(tmp_path: Any, record: dict[str, Any]) -> None:
    (tmp_path / "a.png").write_bytes(SAMPLES[4])
    base = {"question": "Which?", "options": ["yes", "no"], "answer_idx": "A"}
    for folder in (None, tmp_path):
        question = parsed(base | record, folder)
        if isinstance(question, str):
            assert "\n" not in question
            continue
        assert len(question.pictures) <= 16 or question.missing_picture
        for picture in question.pictures:
            assert picture.read()
            assert picture.option in ("", *question.options)
            assert picture.file is None or picture.file.parent == tmp_path
