# /// script
# requires-python = ">=3.11"
# dependencies = ["pillow==13.0.0", "numpy>=2.2", "pydicom==3.0.2", "scikit-image==0.26.0"]
# ///
"""Makes `--dataset vqa-sample`: twelve questions and their pictures.

    uv run scripts/make_vqa_sample.py

Three pictures come out of the wheels of scikit-image and pydicom, which the lines above name; the
others are drawn here. The result is the same each time. `SOURCE.txt` beside the questions has the
origin and license of each picture.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps

FOLDER = Path(__file__).resolve().parents[1] / "mdagents" / "datasets" / "vqa_sample"
PAPER, GRID, INK = "#fffaf8", "#f3c3c3", "#202020"
SQUARE = 25
"""Pixels of a large square of ECG paper: 0.2 s."""


def main() -> None:
    """Write the pictures and the questions."""
    pictures = FOLDER / "images"
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:  # a missing package leaves the old ones in place
        for name, write in PICTURES.items():
            write(Path(folder, name))
        for old in pictures.iterdir():
            old.unlink()
        for name in PICTURES:
            shutil.copyfile(Path(folder, name), pictures / name)
    with (FOLDER / "test.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for number, (question, options, letter, images, task, why) in enumerate(QUESTIONS, start=1):
            record = {
                "id": f"vqa-{number:03}",
                "question": question,
                "options": dict(zip("ABCD", options, strict=True)),
                "answer_idx": letter,
                "images": [f"images/{name}" for name in images],
                "meta_info": "vqa_sample",
                "task": task,
                "why": why,
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def from_package(package: str, path: str) -> Path:
    """Return the path of a file inside an installed package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is missing: run this with uv run scripts/make_vqa_sample.py")
    return Path(spec.origin).parent / path


def retina(path: Path) -> None:
    """Write a fundus photograph, smaller than its original."""
    picture = Image.open(from_package("skimage", "data/retina.jpg"))
    picture.resize((420, 420), Image.Resampling.LANCZOS).save(path, quality=85)


def turned_retina(path: Path) -> None:
    """Write the fundus photograph turned to the right, the optic disc at the top."""
    picture = Image.open(from_package("skimage", "data/retina.jpg"))
    turned = picture.transpose(Image.Transpose.ROTATE_270)
    turned.resize((320, 320), Image.Resampling.LANCZOS).save(path, quality=85)


def tissue() -> Image.Image:
    """Return a part of a stained section of the colon."""
    return Image.open(from_package("skimage", "data/ihc.png")).convert("RGB").crop((0, 0, 360, 300))


def vertebra(path: Path) -> None:
    """Write a CT slice as DICOM, with the fields that its pixels need and no others."""
    from pydicom import dcmread  # type: ignore[import-not-found,unused-ignore]

    data = dcmread(from_package("pydicom", "data/test_files/CT_small.dcm"))
    needed = {
        "SOPClassUID", "SOPInstanceUID", "Modality", "SamplesPerPixel", "Rows", "Columns",
        "PhotometricInterpretation", "PixelSpacing", "BitsAllocated", "BitsStored", "HighBit",
        "PixelRepresentation", "RescaleIntercept", "RescaleSlope", "PixelData",
    }  # fmt: skip
    for element in list(data):
        if element.keyword not in needed:
            del data[element.tag]
    data.WindowCenter, data.WindowWidth = 150, 900
    data.preamble = bytes(128)
    data.save_as(path, enforce_file_format=True)


def arrow(path: Path) -> None:
    """Write an arrow that points to the right once the file's orientation is applied."""
    picture = Image.new("RGB", (400, 260), "#e9eef5")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((40, 105, 240, 155), fill="#27496d")
    draw.polygon([(230, 50), (360, 130), (230, 210)], fill="#27496d")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter to the right
    picture.transpose(Image.Transpose.ROTATE_90).save(path, quality=90, exif=exif)


def cells(path: Path) -> None:
    """Draw twelve cells, seven of them with a nucleus."""
    picture = Image.new("RGB", (400, 300), "#fdf3ef")
    draw = ImageDraw.Draw(picture)
    for number in range(12):
        column, row = number % 4, number // 4
        x, y = 55 + 97 * column + 13 * (row % 2), 52 + 97 * row - 9 * (column % 2)
        draw.ellipse((x - 33, y - 33, x + 33, y + 33), fill="#f2b8ae", outline="#d98b7f", width=2)
        if number in (0, 2, 3, 5, 8, 9, 11):
            draw.ellipse((x - 16, y - 13, x + 12, y + 15), fill="#4b2a6b")
    picture.quantize(16).save(path)


def chart(path: Path) -> None:
    """Draw a bar chart of four days, the third one highest."""
    picture = Image.new("RGB", (400, 280), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(16)
    draw.text((12, 6), "Heart rate per minute", fill=INK, font=font)
    for mark in (0, 40, 80, 120):
        y = 240 - mark * 1.6
        draw.line((50, y, 385, y), fill="#dddddd")
        draw.text((40, y), str(mark), fill=INK, font=font, anchor="rm")
    for place, (day, rate) in enumerate(
        {"Monday": 72, "Tuesday": 88, "Wednesday": 116, "Thursday": 64}.items()
    ):
        x = 95 + 84 * place
        draw.rectangle((x - 24, 240 - rate * 1.6, x + 24, 240), fill="#3b7ea1")
        draw.text((x, 258), day, fill=INK, font=font, anchor="mm")
    picture.save(path, compression="tiff_lzw")


def ecg(path: Path, beats: Sequence[float], width: int = 500, height: int = 150) -> None:
    """Draw ECG paper with a trace that is a sum of bell curves around each beat.

    Args:
        path: Path of the file.
        beats: Times of the R waves in large squares of 0.2 s from the left edge.
        width: Width in pixels.
        height: Height in pixels.
    """
    waves = ((-0.8, 0.12, 0.22), (-0.13, -0.12, 0.05), (0, 1.0, 0.06), (0.15, -0.25, 0.06),
             (1.25, 0.28, 0.3))  # fmt: skip
    picture = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(picture)
    for x in range(0, width, SQUARE):
        draw.line((x, 0, x, height), fill=GRID)
    for y in range(0, height, SQUARE):
        draw.line((0, y, width, y), fill=GRID)
    points = []
    for step in range(4 * width):
        time = step / 4 / SQUARE
        value = sum(
            size * math.exp(-(((time - beat - shift) / spread) ** 2))
            for beat in beats
            for shift, size, spread in waves
        )
        points.append((step / 4, height * 0.68 - value * height * 0.5))
    draw.line(points, fill=INK, width=2, joint="curve")
    picture.quantize(32).save(path, optimize=True)


def person(path: Path) -> None:
    """Draw a person from the front, with a dot on the left arm: to the right in the picture."""
    picture = Image.new("RGB", (300, 380), "white")
    draw = ImageDraw.Draw(picture)
    skin = "#d8c3ae"
    draw.ellipse((115, 20, 185, 100), fill=skin, outline=INK, width=2)
    for x in (135, 165):
        draw.ellipse((x - 4, 50, x + 4, 58), fill=INK)
    draw.arc((133, 60, 167, 85), 20, 160, fill=INK, width=3)
    for box in ((108, 104, 192, 230), (66, 110, 100, 225), (200, 110, 234, 225),
                (110, 234, 146, 365), (154, 234, 190, 365)):  # fmt: skip
        draw.rounded_rectangle(box, 14, fill=skin, outline=INK, width=2)
    draw.ellipse((206, 150, 228, 172), fill="#c4161c")
    picture.quantize(32).save(path, optimize=True)


def spot(path: Path) -> None:
    """Draw a spot that is three times as long as the scale below it."""
    picture = Image.new("RGB", (420, 240), "#f0d7c6")
    draw = ImageDraw.Draw(picture)
    draw.ellipse((60, 40, 360, 150), fill="#6b3a2a")
    draw.rectangle((160, 190, 260, 197), fill=INK)
    draw.text((210, 216), "10 mm", fill=INK, font=ImageFont.load_default(18), anchor="mm")
    picture.quantize(32).save(path, optimize=True)


def even(first: float, gap: float, count: int) -> list[float]:
    """Return the times of beats at equal distances."""
    return [first + gap * number for number in range(count)]


PICTURES: Mapping[str, Callable[[Path], object]] = {
    "01.jpg": retina,
    "02.jpg": turned_retina,
    "03.jpg": lambda path: tissue().save(path, quality=85),
    "04.jpg": lambda path: ImageOps.mirror(tissue()).save(path, quality=85),
    "05.dcm": vertebra,
    "06.jpg": arrow,
    "07.gif": cells,
    "08.tif": chart,
    "09.png": lambda path: ecg(path, even(1.2, 2.5, 8)),
    "10.png": lambda path: ecg(path, even(1.2, 3, 5), 375, 125),
    "11.png": lambda path: ecg(path, even(1.0, 2.2, 7), 375, 125),
    "12.png": lambda path: ecg(path, even(1.5, 4, 4), 375, 125),
    "13.png": lambda path: ecg(path, [1, 3, 7.2, 8.9, 12.6], 375, 125),
    "14.png": person,
    "15.png": spot,
}
"""File name -> function that writes the picture."""

QUESTIONS: Sequence[tuple[str, tuple[str, str, str, str], str, tuple[str, ...], str, str]] = (
    (
        "How was this picture taken?",
        ("Ultrasound", "Fundus photography", "Computed tomography", "Light microscopy"),
        "B",
        ("01.jpg",),
        "modality",
        "Vessels and the optic disc on an orange background, seen through the pupil.",
    ),
    (
        "The optic disc is the bright spot where the vessels enter the retina. "
        "At which edge of this picture is it?",
        ("Top", "Bottom", "Left", "Right"),
        "A",
        ("02.jpg",),
        "orientation",
        "The photograph is turned: the vessels enter at the top.",
    ),
    (
        "Which staining does this section of the colon have?",
        (
            "Hematoxylin and eosin: pink with violet nuclei",
            "Periodic acid-Schiff: magenta",
            "Silver: black fibers",
            "Immunohistochemistry: brown where the antibody binds, with blue nuclei",
        ),
        "D",
        ("03.jpg",),
        "stain",
        "Diaminobenzidine is brown, the counterstain hematoxylin is blue.",
    ),
    (
        "Picture 2 shows the section of Picture 1, changed in one way. How was it changed?",
        (
            "Turned by 180 degrees",
            "Mirrored top to bottom",
            "Mirrored left to right",
            "Turned by 90 degrees",
        ),
        "C",
        ("03.jpg", "04.jpg"),
        "orientation",
        "Top and bottom are the same, left and right are exchanged.",
    ),
    (
        "Which bone does this cross-section cut in the middle of the picture?",
        ("Femur", "Patella", "Mandible", "Vertebra"),
        "D",
        ("05.dcm",),
        "organ",
        "A body, an arch around the spinal canal, and processes, between the lungs.",
    ),
    (
        "To which side of the picture does the arrow point?",
        ("Up", "Down", "Right", "Left"),
        "C",
        ("06.jpg",),
        "orientation",
        "To the right once the orientation in the file is applied; the stored pixels point up.",
    ),
    (
        "How many of the drawn cells have a dark nucleus?",
        ("5", "7", "8", "12"),
        "B",
        ("07.gif",),
        "counting",
        "Seven of twelve.",
    ),
    (
        "On which day of the chart was the heart rate highest?",
        ("Wednesday", "Monday", "Tuesday", "Thursday"),
        "A",
        ("08.tif",),
        "chart",
        "The bar of Wednesday is the tallest.",
    ),
    (
        "How many QRS complexes does this drawn ECG strip show?",
        ("6", "10", "7", "8"),
        "D",
        ("09.png",),
        "counting",
        "Eight tall narrow deflections.",
    ),
    (
        "In which of these drawn ECG strips do the distances between the QRS complexes differ?",
        ("<image 1>", "<image 2>", "<image 3>", "<image 4>"),
        "B",
        ("10.png", "13.png", "11.png", "12.png"),
        "rhythm",
        "The others have equal distances.",
    ),
    (
        "The drawing shows a person from the front, facing you. "
        "Where on the person's body is the red dot?",
        ("On the left arm", "On the right arm", "On the left leg", "On the right leg"),
        "A",
        ("14.png",),
        "side",
        "The person's left is on the right of the picture.",
    ),
    (
        "How long is the dark spot from its left to its right end, by the scale below it?",
        ("10 mm", "20 mm", "30 mm", "50 mm"),
        "C",
        ("15.png",),
        "measurement",
        "Three times the length of the scale.",
    ),
)
"""Question, options, right letter, files, task, and why the option is right."""


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
