"""Pictures over each wire: the fake provider decodes what arrives, and answers from the pixels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mdagents_llm.chat import CallLabels, ChatMessage, ChatModel, ChatRequest
from mdagents_llm.endpoints import Runtime
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.layers.retry import RetryPolicy
from mdagents_llm.ledger import CallRow, Logged
from mdagents_llm.pictures import ImageDetail
from tests.fake_provider import FakeProvider, answer_from_pixels, letter_from_pixels
from tests.mdagents_llm.providers.test_provider_contract import (
    WIRES,
    Choice,
    model_over,
    over,
    served_by,
    the_sum_of,
)
from tests.support.pictures import picture_of

EXEMPLARS = "Earlier questions: none.\n\n"
QUESTION = "Question:\nWhat does it show?\nA) Findings of cedar\nB) Findings of amber\nC) No"
REQUEST = ChatRequest(
    messages=(
        ChatMessage("system", "You answer questions."),
        ChatMessage("user", QUESTION, pictures=(picture_of("amber"),)),
    ),
    max_tokens=200,
    labels=CallLabels("case-1", "opinion", "expert-1", "expert"),
)


def asking(**changes: Any) -> ChatRequest:
    """Return the request with another user message."""
    system, user = REQUEST.messages
    return replace(REQUEST, messages=(system, replace(user, **changes)))


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    """Each wire in turn."""
    return str(request.param)


@pytest.fixture
async def model(
    wire: str, make_runtime: Callable[..., Runtime], provider: FakeProvider
) -> AsyncIterator[ChatModel]:
    """The model of the wire, whose provider insists on pictures and answers from them."""
    provider.must_see = lambda request: True
    provider.field_policy = answer_from_pixels
    provider.when(lambda request: request.schema is None, letter_from_pixels)
    settings = {"retry": RetryPolicy(max_retries=0), "logged": Logged(prompts=True)}
    async with aclosing(over(wire, make_runtime, **settings)) as registry:
        yield model_over(wire, registry, provider)


def seen(provider: FakeProvider) -> list[tuple[str, int, str]]:
    """Return (word, offset, text before) of the pictures of the last call."""
    call = provider.calls[-1]
    return [(one.word, one.at, call.messages[one.message][: one.at]) for one in call.pictures]


async def test_one_picture_is_seen_and_counted(
    provider: FakeProvider, model: ChatModel, rows: list[CallRow]
) -> None:
    """It stands before the text; the ledger counts its tokens, and logs no byte of it."""
    reply = await model.generate(REQUEST)
    assert reply.text == "B"
    assert seen(provider) == [("amber", 0, "")]
    assert provider.calls[0].text.endswith(QUESTION)
    assert reply.usage.input_tokens > 258
    assert the_sum_of(rows) == served_by(provider)
    (picture,) = REQUEST.messages[1].pictures
    assert rows[0].prompt is not None
    assert f"[picture {picture.sha256}: image/png, 300x200" in rows[0].prompt[1]
    assert picture.base64[:40] not in json.dumps(rows[0].as_dict())


async def test_several_pictures_keep_their_labels_and_order(
    provider: FakeProvider, model: ChatModel
) -> None:
    """Each label stands before its picture, whatever the format of the file."""
    formats = ("PNG", "JPEG", "WEBP", "GIF")
    pictures = tuple(
        picture_of(word, format=format, label=f"Picture {number}")
        for number, (word, format) in enumerate(
            zip(("kelp", "onyx", "zephyr", "cedar"), formats, strict=True), start=1
        )
    )
    assert (await model.generate(asking(pictures=pictures))).text == "A"
    assert [word for word, _, _ in seen(provider)] == ["kelp", "onyx", "zephyr", "cedar"]
    before = [text for _, _, text in seen(provider)]
    assert [text.count("Picture") for text in before] == [1, 2, 3, 4]
    assert before[3].endswith("Picture 4:")
    assert [one.media_type for one in provider.calls[0].pictures] == [
        f"image/{format.lower()}" for format in formats
    ]


async def test_a_picture_stands_at_its_offset(provider: FakeProvider, model: ChatModel) -> None:
    """Text before the offset precedes it; at the end of the text, it is last."""
    for offset in (len(EXEMPLARS), len(EXEMPLARS + QUESTION)):
        request = asking(content=EXEMPLARS + QUESTION, pictures_at=offset)
        assert (await model.generate(request)).text == "B"
        assert seen(provider) == [("amber", offset, (EXEMPLARS + QUESTION)[:offset])]
        assert provider.calls[-1].messages[-1] == EXEMPLARS + QUESTION


async def test_a_streamed_reply_sees_the_picture(provider: FakeProvider, model: ChatModel) -> None:
    """Streaming changes nothing about pictures."""
    texts: list[str | None] = []
    assert (await model.generate(REQUEST, texts.append)).text == "B"
    assert provider.calls[0].streamed
    assert texts == ["B"]


async def test_a_structured_reply_sees_the_picture(
    provider: FakeProvider, model: ChatModel
) -> None:
    """So do the re-ask after a bad reply and the schema in the prompt."""
    provider.fail_next("invalid_schema")
    provider.fail_next("400_schema_unsupported", match=lambda request: provider.calls != [])
    request = replace(REQUEST, schema=Choice)
    for _ in range(2):
        reply = await model.generate(request)
        assert isinstance(reply.parsed, Choice)
        assert reply.parsed.answer == "B"
    assert len(provider.calls) >= 3
    assert all(call.pictures for call in provider.calls)


@pytest.mark.parametrize("detail", [ImageDetail.LOW, ImageDetail.HIGH])
async def test_detail_is_sent_where_there_is_such_a_setting(
    provider: FakeProvider, model: ChatModel, wire: str, detail: ImageDetail
) -> None:
    """Anthropic has none; the others get it in their own words."""
    await model.generate(asking(pictures=(picture_of("amber", detail=detail),)))
    (picture,) = provider.calls[0].pictures
    expected = "" if "anthropic" in wire else detail.value
    assert picture.detail.lower().removeprefix("media_resolution_") == expected


async def test_a_model_without_eyes_ends_the_run(
    provider: FakeProvider, model: ChatModel, rows: list[CallRow]
) -> None:
    """Although it has replied to a question without a picture; the line says what to do."""
    provider.must_see = None
    await model.generate(asking(pictures=()))
    provider.fail_next("400_images", times=2)
    with pytest.raises(EndpointDown, match=r"takes no pictures.*--images drop") as caught:
        await model.generate(REQUEST)
    assert "\n" not in str(caught.value)
    assert [row.outcome for row in rows] == ["ok", "images_refused"]


async def test_a_bad_picture_costs_its_question_alone(
    provider: FakeProvider, model: ChatModel, rows: list[CallRow]
) -> None:
    """It is not sent again, and the next question is answered."""
    provider.fail_next("400_bad_image")
    with pytest.raises(ProviderError) as caught:
        await model.generate(REQUEST)
    assert caught.value.kind is ErrorKind.BAD_REQUEST
    assert (await model.generate(REQUEST)).text == "B"
    assert [row.outcome for row in rows] == ["bad_request", "ok"]


async def test_the_prompts_of_two_agents_begin_with_the_same_bytes(
    provider: FakeProvider, model: ChatModel
) -> None:
    """Up to the end of the question, pictures included, so that prompt caches hit."""
    for persona in ("You are a radiologist.", "You are a surgeon."):
        content = f"{QUESTION}\n\n{persona}"
        await model.generate(asking(content=content, shared=(len(QUESTION),)))
    shared = json.dumps(QUESTION)[1:-1]
    beginnings = set[str]()
    for call in provider.calls:
        said = next(
            call.body[name] for name in ("messages", "input", "contents") if name in call.body
        )
        beginning, question, _ = json.dumps(said).partition(shared)
        beginnings.add(beginning + question)
    (beginning,) = beginnings
    assert picture_of("amber").base64[:100] in beginning.replace("-", "+").replace("_", "/")


async def test_breakpoints_of_a_prompt_cache_stand_right_with_pictures(
    provider: FakeProvider, make_runtime: Callable[..., Runtime]
) -> None:
    """A marked prefix that ends where the pictures begin ends before them, later ones after."""
    ends = (len(EXEMPLARS), len(EXEMPLARS + QUESTION))
    content = f"{EXEMPLARS}{QUESTION}\n\nTask."
    request = asking(content=content, shared=ends, pictures_at=len(EXEMPLARS))
    async with aclosing(over("anthropic", make_runtime)) as registry:
        await model_over("anthropic", registry, provider).generate(request)
    call = provider.calls[0]
    assert call.cache_marks is not None
    system = len(call.messages[0])
    assert [mark - system for mark in call.cache_marks] == list(ends)
    kinds = [block["type"] for block in call.body["messages"][0]["content"]]
    assert kinds == ["text", "image", "text", "text"]


@pytest.mark.sweep
@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini"])
async def test_many_calls_share_a_large_picture(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], wire: str
) -> None:
    """A picture larger than any buffer arrives whole over each of many connections."""
    large = picture_of("amber", (1_200, 800), grain=True)
    assert large.bytes > 2_000_000
    provider.when(None, letter_from_pixels)
    async with aclosing(over(wire, make_runtime)) as registry:
        model = model_over(wire, registry, provider)
        calls = [model.generate(asking(pictures=(large,))) for _ in range(4)]
        replies = await asyncio.gather(*calls)
    assert [reply.text for reply in replies] == ["B"] * 4
    assert {call.pictures[0].bytes for call in provider.calls} == {large.bytes}


async def test_a_cached_reply_belongs_to_its_picture(
    provider: FakeProvider, make_runtime: Callable[..., Runtime], tmp_path: Path
) -> None:
    """Requests that differ only in a picture, its label or its detail have separate replies."""
    provider.must_see = lambda request: True
    provider.when(None, letter_from_pixels)
    with closing(ReplyStore(tmp_path / "replies.sqlite")) as replies:
        async with aclosing(over("openai", make_runtime, replies=replies)) as registry:
            model = model_over("openai", registry, provider)
            for expected, word in (("B", "amber"), ("A", "cedar"), ("B", "amber")):
                request = asking(pictures=(picture_of(word),))
                assert (await model.generate(request)).text == expected
            assert len(provider.calls) == 2
            for changed in ({"label": "Picture 1"}, {"detail": ImageDetail.LOW}):
                await model.generate(asking(pictures=(picture_of("amber", **changed),)))
            assert len(provider.calls) == 4
