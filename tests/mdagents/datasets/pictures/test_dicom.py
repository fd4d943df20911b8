"""DICOM files look as in a radiologist's viewer, and nothing of their header is sent."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    JPEGBaseline8Bit,
    JPEGLSLossless,
    RLELossless,
)

from mdagents.datasets.pictures.dicom import open_dicom
from mdagents.datasets.pictures.preparing import PictureSettings, prepare_picture
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.made_pictures import dicom, encoded, two_colors

pytestmark = pytest.mark.filterwarnings("ignore:::PIL", "ignore:::pydicom")

RAMP = np.tile(np.arange(0, 4096, 64, dtype=np.uint16), (64, 1))
"""A 12-bit ramp from left to right, 64 x 64."""


def shown(content: bytes) -> np.ndarray[Any, Any]:
    """Return the pixels as they are sent; nothing of the header may be among the bytes."""
    picture = QuestionPicture(None, content=content)
    out = base64.b64decode(prepare_picture(picture, PictureSettings(), "").base64)
    assert b"Jane" not in out
    return np.asarray(Image.open(io.BytesIO(out)))


def test_a_window_is_applied() -> None:
    row = shown(dicom(RAMP, WindowCenter=2048, WindowWidth=1024))[0]
    assert (row[:24] == 0).all()
    assert (row[41:] == 255).all()
    assert 100 < row[32] < 155
    assert (np.diff(row.astype(int)) >= 0).all()


def test_without_a_window_the_whole_range_is_shown() -> None:
    row = shown(dicom(RAMP))[0]
    assert (row[0], row[-1]) == (0, 255)
    padded = RAMP.copy()
    padded[:, 0] = 4095
    padded[:, 1:] //= 4
    assert shown(dicom(padded, PixelPaddingValue=4095))[0][-1] > 250


def test_hounsfield_units_are_windowed_after_rescaling() -> None:
    row = shown(
        dicom(RAMP, RescaleSlope=1, RescaleIntercept=-1024, WindowCenter=40, WindowWidth=400)
    )[0]
    assert row[(1024 - 160) // 64] == 0
    assert row[(1024 + 240) // 64 + 1] == 255


def test_monochrome1_is_inverted_after_the_window() -> None:
    window: dict[str, Any] = {"WindowCenter": 2048, "WindowWidth": 1024}
    plain = shown(dicom(RAMP, **window))
    inverted = shown(dicom(RAMP, PhotometricInterpretation="MONOCHROME1", **window))
    assert (inverted.astype(int) + plain == 255).all()


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID"])
def test_window_functions(function: str) -> None:
    row = shown(dicom(RAMP, WindowCenter=[2048, 1], WindowWidth=[1024, 2], VOILUTFunction=function))
    assert abs(int(row[0][32]) - 128) < 10
    assert row[0][10] < 20 < 235 < row[0][60]


@pytest.mark.parametrize(
    ("center", "width"), [(2048, 0), (2048, -5), ("", ""), (-5000, 10), ("1e30", "1e30")]
)
def test_a_window_that_cannot_be_or_shows_nothing_is_left_out(center: Any, width: Any) -> None:
    row = shown(dicom(RAMP, WindowCenter=center, WindowWidth=width))[0]
    assert (row[0], row[-1]) == (0, 255)


def test_a_lookup_table_is_applied() -> None:
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 8]
    table.LUTData = [255 - n // 16 for n in range(4096)]
    table["LUTData"].VR = "US"
    row = shown(dicom(RAMP, VOILUTSequence=Sequence([table])))[0]
    assert (row[0], row[-1]) == (255, 3)


def test_a_damaged_lookup_table_costs_one_line() -> None:
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 8]
    with pytest.raises(ConfigError, match="cannot be decoded"):
        shown(dicom(RAMP, VOILUTSequence=Sequence([table])))


def test_the_middle_frame_is_shown() -> None:
    frames = np.stack([np.full((30, 30), value, np.uint8) for value in (10, 90, 200)])
    image = shown(dicom(frames, NumberOfFrames=3, WindowCenter=128, WindowWidth=256))
    assert abs(int(image[0, 0]) - 90) <= 1


def test_windows_of_frames() -> None:
    window = Dataset()
    window.WindowCenter, window.WindowWidth = 2048, 1024
    group = Dataset()
    group.FrameVOILUTSequence = Sequence([window])
    for name in ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"):
        tags: dict[str, Any] = {name: Sequence([group])}
        row = shown(dicom(RAMP[None], NumberOfFrames=1, **tags))[0]
        assert row[20] == 0 and row[45] == 255  # noqa: PT018 - both ends of one window


def test_colors() -> None:
    pixels = np.asarray(two_colors(40, 40))
    color: dict[str, Any] = {"SamplesPerPixel": 3, "PlanarConfiguration": 0}
    image = shown(dicom(pixels, PhotometricInterpretation="RGB", **color))
    assert tuple(image[5, 5]) == (255, 0, 0)
    ybr = np.asarray(two_colors(40, 40).convert("YCbCr"))
    image = shown(dicom(ybr, PhotometricInterpretation="YBR_FULL", **color))
    assert abs(image[5, 5].astype(int) - (255, 0, 0)).max() < 6


def test_compressed_files() -> None:
    assert (shown(dicom(RAMP, RLELossless))[0] == shown(dicom(RAMP))[0]).all()
    from pydicom.encaps import encapsulate

    jpeg = encapsulate([encoded(Image.linear_gradient("L"), "JPEG")])
    gray = np.zeros((256, 256), np.uint8)
    image = shown(dicom(gray, JPEGBaseline8Bit, PixelData=jpeg))
    assert image[0, 0] < 10 < 245 < image[255, 0]
    with pytest.raises(ConfigError, match="is DICOM compressed as JPEG-LS Lossless") as error:
        shown(dicom(gray, JPEGLSLossless, PixelData=encapsulate([b"\xff\xd8nothing"])))
    assert "\n" not in str(error.value)


def test_files_that_are_refused() -> None:
    for content, line in (
        (dicom(None), "is DICOM without a picture, such as a report"),
        (dicom(RAMP[None], NumberOfFrames=2_000_000), "has 2,000,000 frames"),
        (dicom(RAMP, Rows=30_000, Columns=30_000), "30,000 x 30,000 pixels"),
        (dicom(RAMP)[:5000], "cannot be decoded"),
        (dicom(RAMP)[:200], "the picture in the record"),
        (dicom(RAMP, BitsAllocated=7), "cannot be decoded"),
    ):
        with pytest.raises(ConfigError, match=line) as error:
            shown(content)
        assert "\n" not in str(error.value)
        assert "Jane" not in str(error.value)
    header = dcmread(io.BytesIO(dicom(RAMP)))
    header.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    out = io.BytesIO()
    header.save_as(out)
    with pytest.raises(ConfigError, match="is deflated DICOM; save it uncompressed"):
        shown(out.getvalue())


def test_burnt_in_annotations_are_known() -> None:
    assert open_dicom(dicom(RAMP, BurnedInAnnotation="YES"), "x").is_annotated
    assert not open_dicom(dicom(RAMP, BurnedInAnnotation="NO"), "x").is_annotated
    assert not open_dicom(dicom(RAMP), "x").is_annotated
