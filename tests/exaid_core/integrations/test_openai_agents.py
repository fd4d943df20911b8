"""What EXAID hears of runs of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from openai import AsyncOpenAI
from openai.types.responses import ResponseOutputText, ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from exaid_core.integrations.feed import LONGEST_DATA
from exaid_core.integrations.openai_agents import ExaidHooks
from tests.exaid_core.integrations.overhearing import Ears, listening
from tests.fake_provider import FakeProvider, Fault

QUIET = RunConfig(tracing_disabled=True)
CASE = "How is he?"


@pytest.fixture
async def chat(provider: FakeProvider) -> AsyncIterator[OpenAIChatCompletionsModel]:
    async with AsyncOpenAI(base_url=provider.openai_base_url, api_key="k", max_retries=0) as client:
        yield OpenAIChatCompletionsModel("gpt-4o-mini", client)


@function_tool
def troponin(patient: str) -> str:
    """Return the latest troponin."""
    if patient == "nobody":
        raise ValueError("there is no such patient")
    return "x" * 2 * LONGEST_DATA if patient == "long" else "2.4 ng/mL"


async def hear(agent: Agent[Any], *, streamed: bool, own: bool = False) -> tuple[Any, Ears]:
    exaid, ears = listening()
    async with exaid:
        hooks = ExaidHooks(exaid)
        result: Any
        if streamed:
            result = Runner.run_streamed(agent, CASE, hooks=hooks, run_config=QUIET)
            events = result.stream_events() if own else hooks.stream_events(result)
            seen = [event async for event in events]
            assert seen
        else:
            result = await Runner.run(agent, CASE, hooks=hooks, run_config=QUIET)
    assert exaid.tail_loss() == 0
    return result.final_output, ears


@pytest.mark.sweep
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_reply_over_http(streamed: bool, chat: OpenAIChatCompletionsModel) -> None:
    output, ears = await hear(Agent("Doctor", model=chat), streamed=streamed)
    assert ears.heard == [("Doctor", output)]


async def test_a_stream_that_is_read_without_the_hooks(chat: OpenAIChatCompletionsModel) -> None:
    output, ears = await hear(Agent("Doctor", model=chat), streamed=True, own=True)
    assert ears.heard == [("Doctor", output)]


async def test_a_streamed_reply_comes_in_pieces(
    provider: FakeProvider, chat: OpenAIChatCompletionsModel
) -> None:
    provider.when(None, "word " * 70)
    exaid, _ = listening()
    async with exaid:
        hooks = ExaidHooks(exaid)
        result = Runner.run_streamed(Agent("D", model=chat), CASE, hooks=hooks, run_config=QUIET)
        async for _ in hooks.stream_events(result):
            pass
    # Cut at a hundred words, or with the reply, is one piece; the gate cuts at sixty and a stop.
    assert len({seq for chunk in exaid.log.flushes for seq in (chunk.start_seq, chunk.end_seq)}) > 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_handoffs_and_reasoning(streamed: bool) -> None:
    thought = ResponseReasoningItem(
        id="r", type="reasoning", summary=[Summary(text="Hm.", type="summary_text")]
    )
    surgeon = Agent("Surgeon", model=ScriptedModel([[assistant_message("We operate.")]]))
    doctor = Agent(
        "Doctor",
        tools=[troponin],
        handoffs=[surgeon],
        model=ScriptedModel(
            [
                [
                    thought,
                    assistant_message("I look."),
                    function_call("troponin", {"patient": "A"}, call_id="1"),
                ],
                [function_call("transfer_to_surgeon", {}, call_id="2")],
            ]
        ),
    )
    output, ears = await hear(doctor, streamed=streamed)
    assert output == "We operate."
    said = ears.text_of("Doctor").replace(" ", "")
    assert said == (
        'Ilook.\ntroponin:{"patient":"A"}troponin→2.4ng/mLtransfer_to_surgeon:{}HandsovertoSurgeon.'
    )
    assert ears.text_of("Surgeon") == "We operate."


@pytest.mark.parametrize("streamed", [False, True])
async def test_parts_of_a_reply_are_told_apart(streamed: bool) -> None:
    """Parts and messages of a reply have no space between them (microsoft/vscode#312173)."""
    first: Any = assistant_message("Systolic BP is 7")
    first.content.append(ResponseOutputText(text="0 mL", type="output_text", annotations=[]))
    model = ScriptedModel([[first, assistant_message("No change.")]])
    _, ears = await hear(Agent("Doctor", model=model), streamed=streamed)
    assert ears.text_of("Doctor") == "Systolic BP is 7\n0 mL\nNo change."


@pytest.mark.parametrize("streamed", [False, True])
async def test_reasoning_in_tags_is_left_out(streamed: bool) -> None:
    said = assistant_message("<think>Hm. Sepsis?</think>\n\nFever.")
    call = function_call("troponin", {"patient": "A"}, call_id="1")
    model = ScriptedModel([[said, call], [assistant_message("<think>Hm.")]])
    _, ears = await hear(Agent("Doctor", model=model, tools=[troponin]), streamed=streamed)
    assert "Hm." not in ears.text_of("Doctor")
    assert ears.text_of("Doctor").startswith("Fever.\ntroponin: ")


async def test_results_that_fail_or_are_long() -> None:
    for patient, said in (("nobody", "An error occurred"), ("long", f"{LONGEST_DATA} more")):
        call = function_call("troponin", {"patient": patient}, call_id="1")
        model = ScriptedModel([[call], [assistant_message("So.")]])
        _, ears = await hear(Agent("Doctor", model=model, tools=[troponin]), streamed=False)
        assert said in ears.text_of("Doctor")
        assert len(ears.text_of("Doctor")) < LONGEST_DATA + 200


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_model_that_fails_raises_what_it_would(
    streamed: bool, provider: FakeProvider, chat: OpenAIChatCompletionsModel
) -> None:
    provider.fail_next(Fault.SERVER_ERROR)
    with pytest.raises(Exception, match="server had an error"):
        await hear(Agent("Doctor", model=chat), streamed=streamed)


async def test_a_broken_exaid_changes_nothing(chat: OpenAIChatCompletionsModel) -> None:
    class Broken:
        def on_event(self, event: object) -> None:
            raise ZeroDivisionError

    agent = Agent("Doctor", model=chat)
    for hooks in (ExaidHooks(Broken()), None):
        result = await Runner.run(agent, CASE, hooks=hooks, run_config=QUIET)
        assert result.final_output
    with pytest.raises(TypeError, match="must be an EXAID"):
        ExaidHooks(None)  # type: ignore[arg-type]


@pytest.mark.sweep
@pytest.mark.parametrize("is_one", [True, False])
async def test_many_runs_at_the_same_time(is_one: bool, chat: OpenAIChatCompletionsModel) -> None:
    exaid, ears = listening()
    shared = ExaidHooks(exaid)

    async def run(number: int) -> str:
        agent, hooks = Agent("Doctor", model=chat), shared if is_one else ExaidHooks(exaid)
        result = Runner.run_streamed(agent, f"{number}", hooks=hooks, run_config=QUIET)
        async for _ in hooks.stream_events(result):
            pass
        return str(result.final_output)

    async with exaid:
        said = await asyncio.gather(*map(run, range(20)))
    texts = [ears.text_of(agent) for agent in {agent for agent, _ in ears.heard}]
    assert sum(map(len, texts)) == sum(map(len, said))
    assert all(any(reply in text for text in texts) for reply in said), "none among another"


async def test_a_reader_that_stops_early(chat: OpenAIChatCompletionsModel) -> None:
    exaid, _ = listening()
    async with exaid:
        hooks = ExaidHooks(exaid)
        result = Runner.run_streamed(Agent("D", model=chat), CASE, hooks=hooks, run_config=QUIET)
        events = hooks.stream_events(result)
        await anext(events)
        result.cancel()
        await events.aclose()  # type: ignore[attr-defined]
    assert exaid.health.state == "ok"
