"""Encoded pictures for tests, small and of known pixels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import (
    UID,
    ExplicitVRLittleEndian,
    RLELossless,
    SecondaryCaptureImageStorage,
    generate_uid,
)

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)


def two_colors(width: int = 64, height: int = 32) -> Image.Image:
    """Return a picture whose left half is red and whose right half is blue."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def png(color: tuple[int, int, int] = RED, side: int = 32) -> bytes:
    return encoded(Image.new("RGB", (side, side), color))


def dicom(pixels: np.ndarray[Any, Any] | None, syntax: str = "", **tags: Any) -> bytes:
    """Return a DICOM file with the header of a patient, and other or further tags."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    header = Dataset()
    header.file_meta = meta
    header.SOPClassUID = meta.MediaStorageSOPClassUID
    header.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    header.PatientName = "Doe^Jane"
    header.PhotometricInterpretation = "MONOCHROME2"
    header.SamplesPerPixel = 1
    header.PixelRepresentation = 0
    if pixels is not None:
        shape = pixels.shape[1:] if "NumberOfFrames" in tags else pixels.shape
        header.Rows, header.Columns = shape[:2]
        header.BitsAllocated = 8 * pixels.dtype.itemsize
        header.BitsStored = 12 if header.BitsAllocated == 16 else 8
        header.HighBit = header.BitsStored - 1
        header.PixelData = pixels.tobytes()
        header["PixelData"].VR = "OW"
    for name, value in tags.items():
        setattr(header, name, value)
    if syntax == RLELossless:
        header.compress(RLELossless)
    elif syntax:
        header.file_meta.TransferSyntaxUID = UID(syntax)
    out = io.BytesIO()
    header.save_as(out, enforce_file_format=True)
    return out.getvalue()
