"""Answers that only the pixels of a request's pictures tell."""

from __future__ import annotations

import re
from typing import Any

from tests.fake_provider.chat_api import SeenRequest
from tests.fake_provider.schema_filler import MISSING, FieldPath
from tests.support.pictures import letter_of


def answer_from_pixels(request: SeenRequest, path: FieldPath) -> Any:
    """Return the letter that the pictures show, for each field `answer`; MISSING for others.

    A `RequestFieldPolicy`: `provider.field_policy = answer_from_pixels`.
    """
    return letter_from_pixels(request) or MISSING if path[-1:] == ("answer",) else MISSING


def letter_from_pixels(request: SeenRequest) -> str:
    """Return the presented letter of the right option; empty if no picture tells it.

    It is the option whose text holds the code word of a picture. Where options are pictures
    themselves (`B) [Picture 3]`), it is the one whose picture holds a word of the question.
    """
    for picture in request.pictures:
        if picture.word and (letter := letter_of(request.text, picture.word)):
            return letter
    for picture in request.pictures:
        before = request.messages[picture.message][: picture.at]
        labels = re.findall(r"Picture \d+", before)
        if labels and re.search(rf"\b{picture.word}\b", request.text):
            lines = re.findall(rf"^([A-Z])\) .*\[{labels[-1]}\]", request.text, re.MULTILINE)
            if lines:
                return str(lines[-1])
    return ""
