"""Image blocks of LangChain messages: each becomes a picture, or is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from mdagents_llm.errors import ConfigError
from mdagents_llm.langchain.messages import prompt_of
from mdagents_llm.pictures import ImageDetail
from tests.support.pictures import picture_of

PICTURE = picture_of("amber", format="JPEG")
URI = f"data:image/jpeg;base64,{PICTURE.base64}"
TEXT = {"type": "text", "text": "What is it?"}


def test_the_forms_of_all_vendors_are_read() -> None:
    """The type is that of the bytes, whatever the block says."""
    blocks: tuple[dict[str, Any], ...] = (
        {"type": "image_url", "image_url": {"url": URI}},
        {"type": "image_url", "image_url": URI},
        {"type": "image", "base64": PICTURE.base64, "mime_type": "image/png"},
        {"type": "image", "source_type": "base64", "data": PICTURE.base64},
        {"type": "image", "source": {"type": "base64", "data": PICTURE.base64}},
        {"type": "image", "url": URI},
        {"type": "input_image", "image_url": URI},
    )
    for block in blocks:
        (message,) = prompt_of([HumanMessage([block, TEXT])])
        assert message.content == "What is it?"
        assert message.pictures == (PICTURE,)
    (message,) = prompt_of([HumanMessage([*blocks, TEXT])])
    assert len(message.pictures) == len(blocks)
    low = {"type": "image_url", "image_url": {"url": URI, "detail": "low"}}
    (message,) = prompt_of([HumanMessage([low])])
    assert message.pictures[0].detail is ImageDetail.LOW


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}},
        {"type": "image", "source_type": "url", "url": "https://a.b/c.png"},
        {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}},
        {"type": "image", "file_id": "file-1"},
        {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
        {"type": "image"},
        {"type": "image", "base64": 7},
        {"type": "image", "base64": "no Base64!"},
        {"type": "image", "base64": "bm8gcGljdHVyZQ=="},
        {"type": "image_url", "image_url": None},
    ],
)
def test_a_block_without_a_picture_is_refused(block: dict[str, Any]) -> None:
    """Nothing is dropped, and no address is followed."""
    with pytest.raises(ConfigError, match="content block of type 'image") as caught:
        prompt_of([HumanMessage([block, TEXT])])
    assert "\n" not in str(caught.value)


def test_only_a_user_shows_pictures() -> None:
    """No endpoint takes them elsewhere."""
    block = {"type": "image", "base64": PICTURE.base64}
    call = {"id": "1", "name": "look", "args": {}}
    for message in (
        AIMessage([block]),
        ToolMessage([block], tool_call_id="1"),
    ):
        with pytest.raises(ConfigError, match="content block of type 'image'"):
            prompt_of([HumanMessage("?"), AIMessage("", tool_calls=[call]), message])
