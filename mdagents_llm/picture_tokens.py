"""The size of a prompt in tokens: its text by a common estimate, its pictures by vendors' rules.

What a call costs is what its reply reports; this module is for what is not sent yet. Sources, as
of November 2026:

- OpenAI: https://developers.openai.com/api/docs/guides/images-vision. Older models count tiles of
  512 px, newer ones patches of 32 px. For gpt-5-mini and gpt-5-nano the factor is the measured one;
  the guide's is larger.
- Anthropic: https://platform.claude.com/docs/en/build-with-claude/vision: patches of 28 px, about
  width times height / 784.
- Gemini: https://ai.google.dev/gemini-api/docs/media-resolution, and image-understanding for models
  up to 2.5: tiles whose side is two thirds of the shorter side, at most 768 px.
- Others: patches of 28 px as of Qwen-VL, at most 4,096; no rule that holds for all is published.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mdagents_llm.chat import ChatMessage
from mdagents_llm.pictures import ImageDetail, Picture

BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token: characters of English prose (https://platform.openai.com/tokenizer).

By characters, Chinese, Japanese and Korean would get a quarter to two fifths of their tokens.
"""


@dataclass(frozen=True, slots=True)
class _Tiles:
    """OpenAI's older rule: a base and a price of each 512 px tile after scaling."""

    base: int
    each: int

    def of(self, picture: Picture) -> int:
        if picture.detail is ImageDetail.LOW:
            return self.base
        scale = min(1.0, 2048 / max(picture.width, picture.height))
        scale *= min(1.0, 768 / (min(picture.width, picture.height) * scale))
        wide = _count(picture.width * scale, 512)
        return self.base + self.each * wide * _count(picture.height * scale, 512)


@dataclass(frozen=True, slots=True)
class _Patches:
    """Square patches, of which a picture has at most a number after scaling."""

    side: int
    most: int | None = None
    factor: float = 1.0
    most_in_high: int | None = None
    """Maximum for the detail `high`; None for the usual one."""

    def of(self, picture: Picture) -> int:
        is_high = picture.detail is ImageDetail.HIGH and self.most_in_high
        most = self.most_in_high if is_high else self.most
        width, height = picture.width / self.side, picture.height / self.side
        if most is not None and math.ceil(width) * math.ceil(height) > most:
            scale = math.sqrt(most / (width * height))
            width, height = width * scale, height * scale
            scale = min(max(1, int(width)) / width, max(1, int(height)) / height)
            width, height = width * scale, height * scale
        patches = _count(width, 1) * _count(height, 1)
        return math.ceil((patches if most is None else min(patches, most)) * self.factor)


_OPENAI: dict[str, _Tiles | _Patches] = {
    "gpt-": _Patches(32, factor=1.2, most_in_high=2_500),
    "chatgpt-": _Tiles(85, 170),
    "codex-": _Patches(32, 1_536, 1.72),
    "o1": _Tiles(75, 150),
    "o3": _Tiles(75, 150),
    "o4-mini": _Patches(32, 1_536, 1.72),
    "gpt-4": _Tiles(85, 170),
    "gpt-4o-mini": _Tiles(2_833, 5_667),
    "gpt-4.1-mini": _Patches(32, 1_536, 1.62),
    "gpt-4.1-nano": _Patches(32, 1_536, 2.46),
    "gpt-5": _Tiles(70, 140),
    "gpt-5-mini": _Patches(32, 1_536, 1.2),
    "gpt-5-nano": _Patches(32, 1_536, 1.5),
    "gpt-5.2": _Patches(32, 1_536, 1.2),
    "gpt-5.3": _Patches(32, 1_536, 1.2),
    "gpt-5.4": _Patches(32, 2_500, 1.2),
    "gpt-5.4-mini": _Patches(32, 1_536, 1.2),
    "gpt-5.4-nano": _Patches(32, 1_536, 1.2),
    "gpt-5.5": _Patches(32, 10_000, 1.2, 2_500),
    "gpt-5.6": _Patches(32, 10_000, 1.2, 2_500),
}
"""Start of the name of a model -> its rule; the longest start that fits is used."""
_CLAUDE = _Patches(28, 4_784)
_CLAUDE_BEFORE = _Patches(28, 1_568)
_BEFORE = re.compile(r"claude-(3|instant|[a-z]+-4(-[0-6])?(-\d{8}|-latest)?$)")
"""Pattern of the names of models up to Claude 4.6, which scale pictures down further."""
_GEMINI_TILE, _GEMINI_SMALL, _GEMINI_LOW = 258, 384, 64  # up to 2.5
_GEMINI_3 = {ImageDetail.LOW: 280, ImageDetail.AUTO: 1_120, ImageDetail.HIGH: 1_120}
_OTHER = _Patches(28, 4_096)


def text_tokens(text: str, *, bytes_per_token: int = BYTES_PER_TOKEN) -> float:
    """Return the estimated size of a text in tokens, not rounded.

    Args:
        text: Text in any language.
        bytes_per_token: UTF-8 bytes per token.
    """
    return len(text.encode(errors="surrogatepass")) / bytes_per_token


def prompt_tokens(
    messages: Iterable[ChatMessage], model: str = "", *, bytes_per_token: int = BYTES_PER_TOKEN
) -> float:
    """Return the estimated size of a prompt in tokens, not rounded.

    Args:
        messages: Messages of the prompt.
        model: Name of the model, with or without its provider; decides what a picture costs.
        bytes_per_token: UTF-8 bytes of text per token.
    """
    texts: list[str] = []
    pictures = 0
    for message in messages:
        texts.append(message.content)
        for picture in message.pictures:
            texts.append(picture.label)
            pictures += picture_tokens(picture, model)
    return text_tokens("".join(texts), bytes_per_token=bytes_per_token) + pictures


def picture_tokens(picture: Picture, model: str = "") -> int:
    """Return the estimated size of a picture, in tokens.

    Args:
        picture: The picture as sent.
        model: Name of the model, with or without its provider.
    """
    name = model.rpartition("/")[2].lower()
    if name.startswith("gemini-"):
        return _of_gemini(picture, name)
    if "claude" in name:
        return (_CLAUDE_BEFORE if _BEFORE.search(name) else _CLAUDE).of(picture)
    starts = [start for start in _OPENAI if name.startswith(start)]
    return (_OPENAI[max(starts, key=len)] if starts else _OTHER).of(picture)


def _of_gemini(picture: Picture, name: str) -> int:
    if not re.match(r"gemini-[12]\b", name):
        return _GEMINI_3[picture.detail]
    if picture.detail is ImageDetail.LOW:
        return _GEMINI_LOW
    if max(picture.width, picture.height) <= _GEMINI_SMALL:
        return _GEMINI_TILE
    unit = min(768, max(256, min(picture.width, picture.height) // 1.5))
    return _GEMINI_TILE * _count(picture.width, unit) * _count(picture.height, unit)


def _count(length: float, side: float) -> int:
    """Return the number of squares that cover a length, which scaling may have made inexact."""
    return max(1, math.ceil(length / side - 1e-6))
