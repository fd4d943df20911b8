"""The fake provider sees what is in the pictures that it gets."""

from __future__ import annotations

import base64
import io

import pytest
from openai import BadRequestError
from PIL import Image

from tests.fake_provider import FakeProvider, letter_from_pixels
from tests.fake_provider.conftest import Ask
from tests.fake_provider.openai_api import OpenAIApi
from tests.support.pictures import WORDS, coded_picture, word_in

OPTIONS = "A) Biopsy shows cedar\nB) Biopsy shows amber\nC) none of these"


def _part(content: bytes, kind: str = "png") -> dict[str, object]:
    uri = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    return {"type": "image_url", "image_url": {"url": uri}}


def test_a_word_survives_scaling_and_lossy_formats() -> None:
    """All words are read from pictures that were compressed, scaled, stretched or grainy."""
    for word in WORDS:
        for form in ("PNG", "JPEG", "WEBP", "GIF"):
            image = Image.open(io.BytesIO(coded_picture(word, (90, 60), form)))
            assert word_in(image) == word
            assert word_in(image.resize((33, 200))) == word
        assert word_in(Image.open(io.BytesIO(coded_picture(word, grain=True)))) == word


async def test_it_answers_from_the_pixels(provider: FakeProvider, ask_openai: Ask) -> None:
    """The reply is the letter of the option whose word is in the picture."""
    provider.when(None, lambda request: letter_from_pixels(request) or "?")
    parts = [_part(coded_picture("amber")), {"type": "text", "text": OPTIONS}]
    reply = await ask_openai(parts)
    assert reply.choices[0].message.content == "B"
    parts = [_part(coded_picture("C", format="JPEG"), "jpeg"), {"type": "text", "text": OPTIONS}]
    assert (await ask_openai(parts)).choices[0].message.content == "A"
    (seen,) = provider.calls[0].pictures
    assert (seen.word, seen.size, seen.media_type) == ("amber", (300, 200), "image/png")
    assert provider.calls[0].input_tokens > provider.calls[0].usage.output + 258


async def test_options_may_be_pictures(provider: FakeProvider, ask_openai: Ask) -> None:
    """Where the options are pictures, the question names the word."""
    provider.when(None, lambda request: letter_from_pixels(request) or "?")
    parts: list[object] = []
    for number, word in enumerate(("cedar", "amber"), start=1):
        parts += [{"type": "text", "text": f"Picture {number}:"}, _part(coded_picture(word))]
    text = "Which one shows amber?\nA) [Picture 1]\nB) [Picture 2]"
    reply = await ask_openai([*parts, {"type": "text", "text": text}])
    assert reply.choices[0].message.content == "B"


async def test_bytes_that_are_no_picture_are_refused(
    provider: FakeProvider, ask_openai: Ask
) -> None:
    """A body that is not what its media type says gets a 400."""
    for content, kind in ((b"nothing", "png"), (coded_picture("amber"), "jpeg")):
        with pytest.raises(BadRequestError, match="image"):
            await ask_openai([_part(content, kind)])


def test_a_missing_picture_is_a_failure_of_the_test() -> None:
    """With `must_see`, a request without its picture ends in the test's own error."""
    provider = FakeProvider()
    provider.must_see = lambda request: True
    body = {"model": "any", "messages": [{"role": "user", "content": OPTIONS}]}
    request = OpenAIApi().read(0, "", body)
    with pytest.raises(AssertionError, match="without its picture"):
        provider.answer(request, None, "")
