"""The size of pictures in tokens, by the examples that vendors and measurements give."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.chat import ChatMessage, ChatRequest, TokenUsage
from mdagents_llm.picture_tokens import picture_tokens, prompt_tokens, text_tokens
from mdagents_llm.pictures import ImageDetail, Picture
from mdagents_llm.providers.checks import estimated_usage

MODELS = (
    "openai/gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "o3", "o4-mini", "gpt-5", "gpt-5-mini",
    "gpt-5.4", "gpt-5.6-sol", "gpt-6-sol", "anthropic/claude-haiku-4-5", "claude-opus-4-7",
    "google/gemini-2.5-flash", "gemini-3-flash-preview", "vllm/Qwen3-VL-8B", "",
)  # fmt: skip


def sized(width: int, height: int, detail: ImageDetail = ImageDetail.AUTO) -> Picture:
    """Return a picture of a size, without content."""
    return Picture("", "image/png", width, height, "0" * 64, detail=detail)


def test_the_examples_of_the_vendors() -> None:
    """Tiles, patches with their budgets and factors, and fixed numbers."""
    low, high = ImageDetail.LOW, ImageDetail.HIGH
    for model, picture, tokens in (
        ("gpt-4o", sized(1024, 1024), 765),
        ("openai/gpt-4o", sized(2048, 4096), 1105),
        ("gpt-4o", sized(4096, 8192, low), 85),
        ("openrouter/openai/gpt-4o-mini", sized(1024, 1024), 2833 + 4 * 5667),
        ("gpt-5", sized(1024, 1024), 70 + 4 * 140),
        ("gpt-4.1-mini", sized(1024, 1024), 1659),
        ("gpt-4.1-mini", sized(1800, 2400), 2353),
        ("gpt-5-mini", sized(1280, 720), 1104),
        ("gpt-5-mini", sized(2048, 768), 1844),
        ("gpt-6-sol", sized(4032, 3024), 14_364),
        ("gpt-6-sol", sized(2560, 1440, high), 2931),
        ("gpt-5.5", sized(4032, 3024), 11_868),
        ("claude-opus-4-7", sized(1024, 1024), 1369),
        ("claude-sonnet-5", sized(1920, 1080), 2691),
        ("claude-haiku-4-5", sized(256, 256), 100),
        ("gemini-2.5-flash-lite", sized(384, 384), 258),
        ("gemini-2.5-pro", sized(960, 540), 6 * 258),
        ("gemini-2.5-pro", sized(3000, 2000), 4 * 3 * 258),
        ("gemini-3-flash-preview", sized(100, 100), 1120),
        ("google/gemini-4-argon", sized(100, 100, low), 280),
    ):
        assert picture_tokens(picture, model) == tokens, (model, picture)


@given(
    st.sampled_from(MODELS),
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.sampled_from(ImageDetail),
)
def test_every_picture_has_a_size_within_reason(
    model: str, width: int, height: int, detail: ImageDetail
) -> None:
    """A strip of one pixel and a picture of 400 megapixels both have one."""
    tokens = picture_tokens(sized(width, height, detail), model)
    assert tokens >= 1
    if "gpt-6" not in model and "gemini-2" not in model:
        assert tokens <= 48_169


def test_a_prompt_is_its_text_and_its_pictures() -> None:
    """Labels count as text; without pictures it is the text alone, as it always was."""
    text = ChatMessage("user", "x" * 400)
    assert prompt_tokens([text]) == 100
    assert prompt_tokens([text], "gpt-4o", bytes_per_token=3) == 400 / 3
    request = ChatRequest((ChatMessage("user", "x" * 401),), max_tokens=1)
    assert estimated_usage(request, "y" * 5) == TokenUsage(101, 2), "rounded up"
    shown = ChatMessage("user", "x" * 400, pictures=(sized(1024, 1024),) * 2)
    assert prompt_tokens([text, shown], "gpt-4o") == 200 + 2 * 765


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("All human beings are born free and equal in dignity and rights.", (13, 13)),
        ("人人生而自由，在尊严和权利上一律平等。", (21, 15)),
        ("すべての人間は、生まれながらにして自由である。", (23, 18)),
        ("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", (41, 24)),
        ("Все люди рождаются свободными и равными в своем достоинстве и правах.", (35, 17)),
        ("يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.", (37, 18)),
    ],
    ids=["en", "zh", "ja", "ko", "ru", "ar"],
)  # fmt: skip
def test_a_text_has_about_as_many_tokens_in_all_languages(
    text: str, tokens: tuple[int, int]
) -> None:
    """Counts of cl100k_base and o200k_base; at four characters a token, Chinese has a quarter."""
    assert 0.8 * min(tokens) <= text_tokens(text) <= 1.25 * max(tokens)
    request = ChatRequest((ChatMessage("user", text),), max_tokens=1)
    assert estimated_usage(request, text).total_tokens == 2 * math.ceil(text_tokens(text))
    assert prompt_tokens(request.messages) == text_tokens(text)
    assert text_tokens("\ud800") == 3 / 4, "half a surrogate pair"
