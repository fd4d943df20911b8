"""Reads the picture of a DICOM file as a radiologist's viewer would show it at first.

Only pixels leave this module; no field of the header does. Of several frames the middle one is
shown: of a stack it is a slice through the body, where the first is often empty.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra

if TYPE_CHECKING:
    from PIL import Image
    from pydicom import Dataset

_DEFLATED = b"1.2.840.10008.1.2.1.99"
"""Transfer syntax whose data set would be inflated as a whole, whatever its size."""
_MOST_FRAMES = 100_000

_Array = np.ndarray[Any, Any]


def is_dicom(content: bytes) -> bool:
    """Return whether a file is in DICOM's format, by its 128 bytes and mark."""
    return content[128:132] == b"DICM"


@dataclass(frozen=True, slots=True)
class DicomPicture:
    """A DICOM file whose header was read."""

    header: Dataset
    where: str
    """Place of the file, for messages."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return int(self.header.Columns), int(self.header.Rows)

    @property
    def frames(self) -> int:
        """Number of frames."""
        return int(self.header.get("NumberOfFrames") or 1)

    @property
    def is_annotated(self) -> bool:
        """Whether the header says that annotations, such as a name, are part of the pixels."""
        return str(self.header.get("BurnedInAnnotation", "")).strip().upper() == "YES"

    def decode(self) -> Image.Image:
        """Return the middle frame, in mode L or RGB.

        Raises:
            ConfigError: The compression needs a package that is not installed.
        """
        from PIL import Image
        from pydicom.pixels.processing import apply_color_lut
        from pydicom.pixels.utils import pixel_array

        header = self.header
        frame = self.frames // 2
        try:
            pixels = pixel_array(header, index=frame)
        except (RuntimeError, NotImplementedError) as error:
            syntax = header.file_meta.TransferSyntaxUID
            raise ConfigError(
                f"the picture {self.where} is DICOM compressed as {syntax.name}, for which no "
                "decoder works here: save it uncompressed, or pip install 'pylibjpeg[all]' "
                f"({(str(error).splitlines() or [''])[0][:80]})"
            ) from None
        if header.PhotometricInterpretation == "PALETTE COLOR":
            pixels = apply_color_lut(pixels, header)
        if pixels.ndim == 3:
            bits = 8 * pixels.dtype.itemsize
            return Image.fromarray((pixels >> (bits - 8)).astype(np.uint8)[..., :3])
        shown = self._windowed(pixels, frame)
        if header.PhotometricInterpretation == "MONOCHROME1":
            shown = 1 - shown
        return Image.fromarray((shown * 255).round().astype(np.uint8))

    def _windowed(self, pixels: _Array, frame: int) -> _Array:
        """Return gray values in 0 to 1, by the lookup table or the window of the file."""
        from pydicom.pixels.processing import apply_modality_lut

        header = self.header
        groups = list(_groups(header, frame))
        rescale = next((one for one in groups if "RescaleSlope" in one), header)
        values = np.asarray(apply_modality_lut(pixels, rescale))
        if header.get("VOILUTSequence") and np.issubdtype(values.dtype, np.integer):
            return _looked_up(values, header.VOILUTSequence[0])
        values = np.nan_to_num(values.astype(np.float32))
        for group in groups:
            center, width = (_first(group.get(f"Window{name}")) for name in ("Center", "Width"))
            if center is not None and width is not None and width >= 1:
                shown = _in_window(values, center, width, str(group.get("VOILUTFunction", "")))
                # A window outside all values is a mistake of the file: it would show one gray.
                if np.ptp(shown) or not np.ptp(values):
                    return shown
        padding = header.get("PixelPaddingValue")
        meant = values[pixels != padding] if isinstance(padding, int) else values
        if not meant.size:
            meant = values
        return _between(values, float(meant.min()), float(meant.max()))


def open_dicom(content: bytes, where: str) -> DicomPicture:
    """Return a DICOM file whose header was read.

    Args:
        content: The file.
        where: Place of the file, for messages.

    Raises:
        ConfigError: It has no picture, or is compressed as a whole.
    """
    with needs_extra("images", "a picture in DICOM's format"):
        from pydicom import dcmread

    if _DEFLATED in content:
        raise ConfigError(f"the picture {where} is deflated DICOM; save it uncompressed")
    header = dcmread(io.BytesIO(content))
    if "PixelData" not in header or not header.get("Rows") or not header.get("Columns"):
        raise ConfigError(f"the picture {where} is DICOM without a picture, such as a report")
    opened = DicomPicture(header, where)
    if not 0 < opened.frames <= _MOST_FRAMES:
        raise ConfigError(f"the picture {where} has {opened.frames:,} frames")
    return opened


def _groups(header: Dataset, frame: int) -> Iterator[Dataset]:
    """Yield where a window or a rescale slope may be: for the frame, for all frames, at the top."""
    for name, place in (
        ("PerFrameFunctionalGroupsSequence", frame),
        ("SharedFunctionalGroupsSequence", 0),
    ):
        sequence = header.get(name)
        if sequence and place < len(sequence):
            for inner in ("FrameVOILUTSequence", "PixelValueTransformationSequence"):
                yield from (sequence[place].get(inner) or ())[:1]
    yield header


def _first(value: Any) -> float | None:
    """Return the first of one or several numbers; None if there is none."""
    if value is None or value == "":
        return None
    first = value if isinstance(value, int | float) else next(iter(value), None)
    number = None if first is None else float(first)
    return number if number is not None and np.isfinite(number) else None


def _between(values: _Array, low: float, high: float) -> _Array:
    return ((values - low) / (high - low or 1)).clip(0, 1)


def _looked_up(values: _Array, table: Dataset) -> _Array:
    """Return gray values in 0 to 1 by a lookup table, DICOM PS3.3, C.11.2.1.1."""
    entries, first, bits = map(int, table.LUTDescriptor)
    data = table.LUTData
    if isinstance(data, bytes):
        data = np.frombuffer(data, np.uint8 if len(data) == entries else "<u2")
    grays = np.asarray(data, np.float32)
    places = (values.astype(np.int64) - first).clip(0, len(grays) - 1)
    return _between(grays[places], 0, 2**bits - 1)


def _in_window(values: _Array, center: float, width: float, function: str) -> _Array:
    """Return gray values in 0 to 1 by DICOM PS3.3, C.11.2.1.2 and C.11.2.1.3."""
    if function == "SIGMOID":
        exponent = (-4 * (values - center) / width).clip(-80, 80)
        result: _Array = 1 / (1 + np.exp(exponent))
        return result
    if function == "LINEAR_EXACT":
        return _between(values, center - width / 2, center + width / 2)
    if width == 1:
        return (values > center - 0.5).astype(np.float32)
    return _between(values, center - width / 2, center + width / 2 - 1)
