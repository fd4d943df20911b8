"""The fake provider through Anthropic's own SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from tests.fake_provider import FakeProvider
from tests.fake_provider.batches import BatchStatus

PROMPT = "Which vitamin prevents scurvy? Answer A or B."
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["A", "B"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.fixture
async def client(provider: FakeProvider) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(
        api_key="any", base_url=provider.anthropic_base_url, max_retries=0
    ) as client:
        yield client


def asked(text: str = PROMPT, **options: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"model": "claude-test", "max_tokens": 300, "messages": [message], **options}


async def test_a_message_whole_and_streamed(provider: FakeProvider, client: AsyncAnthropic) -> None:
    whole = await client.messages.create(**asked(system="Be brief."))
    async with client.messages.stream(**asked(system="Be brief.")) as stream:
        texts = [text async for text in stream.text_stream]
        last = await stream.get_final_message()
    assert whole.content[0].type == "text"
    assert "".join(texts) == whole.content[0].text
    assert len(texts) > 1
    assert last.usage.output_tokens == whole.usage.output_tokens
    assert (whole.stop_reason, last.stop_reason) == ("end_turn", "end_turn")
    assert provider.calls[0].roles == ("system", "user")


async def test_a_tool_that_is_forced_carries_the_schema(client: AsyncAnthropic) -> None:
    tool = {"name": "reply", "input_schema": SCHEMA}
    options = asked(tools=[tool], tool_choice={"type": "tool", "name": "reply"})
    whole = await client.messages.create(**options)
    async with client.messages.stream(**options) as stream:
        last = await stream.get_final_message()
    for message in (whole, last):
        assert message.stop_reason == "tool_use"
        (block,) = message.model_dump()["content"]
        assert block["type"] == "tool_use"
        assert block["input"]["answer"] in ("A", "B")


async def test_an_output_format_does_so_too(client: AsyncAnthropic) -> None:
    shape = {"format": {"type": "json_schema", "schema": SCHEMA}}
    whole = await client.messages.create(**asked(output_config=shape))
    assert whole.content[0].type == "text"
    assert whole.content[0].text in ('{"answer": "A"}', '{"answer": "B"}')


async def test_what_is_marked_is_written_and_then_read(client: AsyncAnthropic) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}

    async def ask(end: str, beginning: str) -> anthropic.types.Usage:
        blocks = [{"type": "text", "text": beginning, **mark}, {"type": "text", "text": end}]
        message = {"role": "user", "content": blocks}
        reply: anthropic.types.Message = await client.messages.create(
            **asked() | {"messages": [message]}
        )
        return reply.usage

    long, short = "The patient has a fever. " * 200, "The patient has a fever."
    first, second = await ask("What now?", long), await ask("And then?", long)
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens == 1250
    assert (first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0)
    assert first.input_tokens < 10
    assert (await ask("What now?", short)).cache_creation_input_tokens == 0


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", anthropic.RateLimitError),
        ("529", anthropic.OverloadedError),
        ("401", anthropic.AuthenticationError),
        ("404_model", anthropic.NotFoundError),
        ("500", anthropic.InternalServerError),
    ],
)
async def test_errors_are_those_of_the_sdk(
    provider: FakeProvider, client: AsyncAnthropic, fault: str, error: type[Exception]
) -> None:
    provider.fail_next(fault)
    with pytest.raises(error):
        await client.messages.create(**asked())


async def test_a_field_that_is_not_the_apis_is_refused(client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="seed: Extra inputs are not permitted"):
        await client.messages.create(**asked(), extra_body={"seed": 1})


async def test_a_batch_from_its_creation_to_its_results(
    provider: FakeProvider, client: AsyncAnthropic
) -> None:
    provider.batches.held = True
    requests: Any = [{"custom_id": f"r{n}", "params": asked(f"{n}: {PROMPT}")} for n in range(3)]
    made = await client.messages.batches.create(requests=requests)
    assert (made.processing_status, made.request_counts.processing) == ("in_progress", 3)
    provider.fail_next("500", match="1: Which")
    provider.batches.held = False
    done = await client.messages.batches.retrieve(made.id)
    assert (done.processing_status, done.request_counts.errored) == ("ended", 1)
    results = {
        one.custom_id: one.result async for one in await client.messages.batches.results(made.id)
    }
    assert [results[f"r{n}"].type for n in range(3)] == ["succeeded", "errored", "succeeded"]
    assert results["r0"].message.usage.service_tier == "batch"  # type: ignore[union-attr]
    assert [batch.id async for batch in client.messages.batches.list()] == [made.id]
    assert [call.batch for call in provider.calls] == [made.id] * 3


async def test_a_batch_that_is_cancelled_and_one_that_expires(
    provider: FakeProvider, client: AsyncAnthropic
) -> None:
    requests: Any = [{"custom_id": f"r{n}", "params": asked()} for n in range(2)]
    provider.batches.held = True
    made = await client.messages.batches.create(requests=requests)
    await client.messages.batches.cancel(made.id)
    assert provider.batches.all[0].status is BatchStatus.CANCELLED
    provider.batches.held, provider.batches.expiring = False, 1
    late = await client.messages.batches.create(requests=requests)
    await asyncio.sleep(0)
    counts = (await client.messages.batches.retrieve(late.id)).request_counts
    assert (counts.succeeded, counts.expired) == (1, 1)
    kinds = [one.result.type async for one in await client.messages.batches.results(made.id)]
    assert kinds == ["canceled", "canceled"]
