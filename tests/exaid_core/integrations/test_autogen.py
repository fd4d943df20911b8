"""What EXAID hears of teams of AutoGen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import zip_longest
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import (
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
)
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_agentchat.ui import Console
from autogen_core import FunctionCall
from autogen_core.models import CreateResult

from exaid_core.integrations.autogen import overheard
from tests.exaid_core.integrations.autogen_client import NOTHING, OpenAIChatCompletionClient
from tests.exaid_core.integrations.overhearing import listening
from tests.fake_provider import FakeProvider, Fault


class Client(OpenAIChatCompletionClient):
    """Calls a tool first, if it has one."""

    async def create(self, messages: Any, **settings: Any) -> CreateResult:
        if settings.get("tools") and messages[-1].type == "UserMessage":
            call = FunctionCall(id="1", name="troponin", arguments='{"patient": "A"}')
            return CreateResult(
                finish_reason="function_calls", content=[call], usage=NOTHING, cached=False,
                thought="Hm.",
            )  # fmt: skip
        return await super().create(messages, **settings)


@pytest.fixture
async def client(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Client, None]:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = Client("gpt-4o-mini")
    yield model
    await model.close()


async def troponin(patient: str) -> str:
    """Return the latest troponin."""
    return "2.4 ng/mL"


def team(client: Client, **settings: Any) -> RoundRobinGroupChat:
    agents: list[Any] = [
        AssistantAgent(name, client, system_message=f"You are {name}.", **settings)
        for name in ("Triage", "Cardiology")
    ]
    return RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(3))


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_team_is_heard_and_goes_on_as_without(streamed: bool, client: Client) -> None:
    without = await team(client, model_client_stream=streamed).run(task="How is he?")
    exaid, ears = listening()
    async with exaid:
        stream = team(client, model_client_stream=streamed).run_stream(task="How is he?")
        items = [item async for item in overheard(exaid, stream)]
    result = items[-1]
    assert isinstance(result, TaskResult)
    said = [(message.source, message.to_text()) for message in result.messages]
    assert said == [(message.source, message.to_text()) for message in without.messages]
    assert ears.heard == said[1:], "all but the task, each once"


@pytest.mark.parametrize("streamed", [False, True])
async def test_reasoning_in_tags_is_left_out(
    streamed: bool, client: Client, provider: FakeProvider
) -> None:
    provider.when(None, "<think>Hm. Sepsis?</think>\n\nFever.")
    exaid, ears = listening()
    async with exaid:
        stream = team(client, model_client_stream=streamed).run_stream(task="How is he?")
        async for _ in overheard(exaid, stream):
            pass
    assert ears.heard == [("Triage", "Fever."), ("Cardiology", "Fever.")]


@pytest.mark.parametrize("has_thought", [False, True])
async def test_agents_of_one_name_that_stream_at_the_same_time(has_thought: bool) -> None:
    """Agents of parallel teams may share a name; ids tell them apart (microsoft/autogen#6969)."""

    async def stream() -> AsyncGenerator[object, None]:
        texts = {"1": "BP is 70/40, shock.", "2": "No change, he is stable."}
        for pair in zip_longest(*texts.values(), fillvalue=""):
            for number, letter in zip(texts, pair, strict=True):
                yield ModelClientStreamingChunkEvent(
                    content=letter, source="expert", full_message_id=number
                )
        for number, text in reversed(texts.items()):
            if has_thought:  # after it, the message has another id
                yield ThoughtEvent(content="Hm.", source="expert", id=number)
                number = f"new {number}"
            yield TextMessage(content=text, source="expert", id=number)
        yield TextMessage(content="Agreed.", source="expert")

    exaid, ears = listening()
    async with exaid:
        async for _ in overheard(exaid, stream()):
            pass
    assert ears.text_of("expert") == "BP is 70/40, shock.Agreed."
    assert ears.text_of("expert (2)") == "No change, he is stable."


async def test_tools_and_their_results(client: Client) -> None:
    agent = AssistantAgent("Doctor", client, tools=[troponin])
    exaid, ears = listening()
    async with exaid:
        result = await Console(
            overheard(exaid, agent.run_stream(task="How is he?")), no_inline_images=True
        )
    assert isinstance(result, TaskResult)
    assert ears.heard == [("Doctor", 'troponin: {"patient": "A"}troponin → 2.4 ng/mL')]


async def test_what_is_said_to_hand_over_is_said_once() -> None:
    class Transferring(OpenAIChatCompletionClient):
        def __init__(self) -> None:
            self.calls = [FunctionCall(id="1", name="transfer_to_surgeon", arguments="{}")]

        async def create(self, messages: Any, **settings: Any) -> CreateResult:
            content: Any = [self.calls.pop()] if self.calls else "I operate."
            return CreateResult(finish_reason="stop", content=content, usage=NOTHING, cached=False)

    client = Transferring()
    to_surgeon = Handoff(target="surgeon", message="Please operate.")
    agents: list[Any] = [
        AssistantAgent("doctor", client, handoffs=[to_surgeon]),
        AssistantAgent("surgeon", client),
    ]
    exaid, ears = listening()
    async with exaid:
        async for _ in overheard(exaid, Swarm(agents, max_turns=2).run_stream(task="How is he?")):
            pass
    call, result = "transfer_to_surgeon: {}", "transfer_to_surgeon → Please operate."
    assert ears.heard == [("doctor", call + result), ("surgeon", "I operate.")]


async def test_a_failure_is_raised_as_without(provider: FakeProvider, client: Client) -> None:
    provider.fail_next(Fault.SERVER_ERROR)
    exaid, _ = listening()
    async with exaid:
        with pytest.raises(Exception, match="server had an error"):
            async for _ in overheard(exaid, team(client).run_stream(task="How is he?")):
                pass
    assert exaid.health.state == "ok"


async def test_a_reader_that_stops_closes_the_stream() -> None:
    closed = asyncio.Event()

    async def stream() -> AsyncGenerator[object, None]:
        try:
            yield object()
            yield object()
        finally:
            closed.set()

    exaid, ears = listening()
    async with exaid:
        items = overheard(exaid, stream())
        await anext(items)
        await items.aclose()
    assert closed.is_set()
    assert ears.heard == []


async def test_what_is_no_exaid_is_refused_and_a_broken_one_changes_nothing(client: Client) -> None:
    class Broken:
        def on_event(self, event: object) -> None:
            raise ZeroDivisionError

    with pytest.raises(TypeError, match="must be an EXAID"):
        overheard(None, team(client).run_stream(task="?"))  # type: ignore[arg-type]
    items = [item async for item in overheard(Broken(), team(client).run_stream(task="?"))]
    assert isinstance(items[-1], TaskResult)
