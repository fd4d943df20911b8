"""Pictures that hold a code word in their pixels, so that only a model that sees them knows it.

The picture is three gray bands side by side, each black, gray or white: a number to base 3 that
survives scaling, JPEG and conversion to gray. Its index in `WORDS` is the word.
"""

from __future__ import annotations

import io
import random
import re
from typing import Any

WORDS = (
    "amber", "basalt", "cedar", "dahlia", "ember", "fjord", "garnet", "heather", "indigo", "jasper",
    "kelp", "lichen", "marble", "nectar", "onyx", "pewter", "quartz", "russet", "saffron", "topaz",
    "umber", "velvet", "willow", "xenon", "yarrow", "zephyr",
)  # fmt: skip
"""Code words; each begins with its own letter. Option texts hold them, so that a picture names an
option wherever shuffling puts it."""
_BANDS = 3
_LEVELS = (0, 128, 255)
_GRAIN = 0.2


def coded_picture(
    word: str, size: tuple[int, int] = (300, 200), format: str = "PNG", *, grain: bool = False
) -> bytes:
    """Return an encoded picture that holds a code word.

    Args:
        word: The word, or its letter, A to Z.
        size: Width and height in pixels.
        format: Format of Pillow: PNG, JPEG, WEBP, GIF, …
        grain: Whether noise makes the file large: as PNG, about 2.5 bytes a pixel.
    """
    image = coded_image(word, size)
    if grain:
        from PIL import Image

        noise = random.Random(word).randbytes(3 * size[0] * size[1])
        image = Image.blend(image.convert("RGB"), Image.frombytes("RGB", size, noise), _GRAIN)
    out = io.BytesIO()
    image.save(out, format)
    return out.getvalue()


def coded_image(word: str, size: tuple[int, int] = (300, 200)) -> Any:
    """Return the picture as an image of Pillow, in gray."""
    from PIL import Image

    number = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(word[0].upper())
    image = Image.new("L", size)
    for band in range(_BANDS):
        level = _LEVELS[number // len(_LEVELS) ** band % len(_LEVELS)]
        ends = [size[0] * place // _BANDS for place in (band, band + 1)]
        image.paste(level, (ends[0], 0, ends[1], size[1]))
    return image


def word_in(image: Any) -> str:
    """Return the code word of an image of Pillow; empty if its bands are no word."""
    small = image.convert("L").reduce(1).resize((9, 3), 4)  # 4: the mean of a box
    digits = []
    for band in range(_BANDS):
        level = small.getpixel((3 * band + 1, 1))
        digits.append(min(range(len(_LEVELS)), key=lambda n: abs(_LEVELS[n] - level)))
    number = sum(digit * len(_LEVELS) ** band for band, digit in enumerate(digits))
    return WORDS[number] if number < len(WORDS) else ""


def letter_of(prompt: str, word: str) -> str:
    """Return the presented letter of the option that holds a word; empty without one.

    Options stand on lines like `B) Biopsy shows amber`; of several questions the last counts.
    """
    found = re.findall(rf"^([A-Z])\) .*\b{re.escape(word)}\b", prompt, re.MULTILINE)
    return found[-1] if found else ""
