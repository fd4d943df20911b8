"""When the buffer agent decides that a summary is due."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest

from exaid_core.buffer_agent.buffer_agent import BufferAgent, Judgment, TraceData, TriggerReason
from exaid_core.config import ExaidConfig
from exaid_core.policy import TriggerPolicy
from exaid_core.segments import Segment
from exaid_core.summarizer_agent.summarizer_agent import SummarizerAgent
from mdagents_llm.chat import ChatModel, StopReason, TokenUsage
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import LimitExceeded, StructuredOutputError
from tests.exaid_core.models import (
    DOWN,
    NO_ALARM,
    SHIFT,
    STABLE,
    WAIT,
    Outcome,
    Slow,
    StreamState,
    analysis,
    data_blocks,
    model,
)

STATES: tuple[StreamState, ...] = ("SAME_TOPIC_CONTINUING", "TOPIC_SHIFT", "CRITICAL_ALERT")
MALFORMED = StructuredOutputError(
    "no field stream_state", text="I think so.", usage=TokenUsage(7, 3), stop_reason=StopReason.STOP
)
FAILURES = [DOWN, MALFORMED, LimitExceeded("tokens"), TimeoutError(), RuntimeError("x\ny"), STABLE]


def agent_of(judge: ChatModel, **settings: Any) -> BufferAgent:
    return BufferAgent(judge, ExaidConfig(**settings), monotonic=lambda: 0.0)


def segment(text: str, at: float = 0.0, *, is_alert: bool = False) -> Segment:
    return Segment("doctor", text, (1,), round(1000 * at), 0, (text,) if is_alert else ())


async def judged(*outcomes: Outcome, **settings: Any) -> Judgment:
    """The decision on a segment, as the model judges it."""
    agent = agent_of(model(*outcomes), **settings)
    return await agent.judge([segment("The fever is gone.")], [])


@pytest.mark.parametrize(
    ("state", "relevant", "novel", "final"), list(product(STATES, *[(True, False)] * 3))
)
async def test_the_trigger_is_computed_from_the_three_judgements(
    state: StreamState, relevant: bool, novel: bool, final: bool
) -> None:
    judgement = await judged(analysis(state, relevant=relevant, novel=novel, final=final))
    due = relevant and (state == "CRITICAL_ALERT" or (state == "TOPIC_SHIFT" and novel))
    assert judgement.triggers is due
    assert judgement.mismatch is (final is not due)
    assert judgement.reason.value == (state.lower() if due else "none")


@pytest.mark.parametrize(("state", "relevant"), list(product(STATES, (True, False))))
async def test_no_novelty_asks_for_the_other_two(state: StreamState, relevant: bool) -> None:
    judgement = await judged(
        analysis(state, relevant=relevant, novel=False, final=False),
        policy=TriggerPolicy.NO_NOVELTY,
    )
    assert judgement.triggers is (relevant and state != "SAME_TOPIC_CONTINUING")
    assert judgement.mismatch is judgement.triggers


@pytest.mark.parametrize("outcome", [NO_ALARM, WAIT, *FAILURES])
async def test_words_raise_the_alarm_whatever_the_model_makes_of_them(outcome: Outcome) -> None:
    agent = agent_of(model(outcome))
    assert await agent.addsegment("nurse", "He is in cardiac arrest.", ["- Cardiac arrest."])
    agent.flush()
    assert not await agent.addsegment("nurse", "There is no cardiac arrest.", [])


async def test_words_are_told_from_the_models_alarm() -> None:
    shift = model(SHIFT)
    judgement = await agent_of(shift).judge([segment("Asystole.", is_alert=True)], [])
    assert judgement.reason is TriggerReason.LEXICAL_ALERT
    assert not judgement.mismatch


async def test_an_alarm_without_a_summary_goes_on() -> None:
    agent = agent_of(model(NO_ALARM))
    alarm = segment("Asystole.", is_alert=True)
    assert (await agent.judge([alarm], [])).triggers
    agent.put_back(agent.take())
    assert (await agent.judge([segment("The family is here.")], [])).triggers
    agent.take()
    assert not (await agent.judge([segment("They wait outside.")], [])).triggers


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_keeps_the_segment_and_is_told(failure: Outcome) -> None:
    agent = agent_of(model(failure))
    judgement = await agent.judge([segment("The fever is gone.")], [])
    assert not judgement.triggers
    assert not judgement.mismatch
    assert judgement.asked is not None
    assert judgement.asked.reply is None
    assert judgement.asked.error
    assert "\n" not in judgement.asked.error
    assert judgement.asked.is_malformed is (failure in (MALFORMED, STABLE))
    assert agent.peek() == ["| doctor | The fever is gone."]


async def test_tokens_of_a_malformed_reply_are_counted() -> None:
    asked = (await judged(MALFORMED)).asked
    assert asked is not None
    usage = asked.usage
    assert (usage.provider_prompt_tokens, usage.provider_completion_tokens) == (7, 3)
    assert usage.completion_ctu == 3  # "I think so."


@pytest.mark.parametrize("outcome", [WAIT, DOWN])
async def test_a_full_buffer_forces_a_summary(outcome: Outcome) -> None:
    agent = agent_of(model(outcome), max_buffer_ctu=10)
    assert not (await agent.judge([segment("x" * 20), segment("x" * 20)], [])).triggers
    judgement = await agent.judge([segment("x")], [])
    assert judgement.reason is TriggerReason.BUFFER_FULL
    assert not judgement.mismatch, "the model could not know"
    agent.take()
    assert not (await agent.judge([segment("x")], [])).triggers


@pytest.mark.parametrize("outcome", [WAIT, DOWN])
async def test_an_old_buffer_forces_a_summary(outcome: Outcome) -> None:
    agent = agent_of(model(outcome), max_buffer_age=5.0)
    assert not (await agent.judge([segment("a", at=100.0)], [])).triggers
    assert not (await agent.judge([segment("b", at=105.0)], [])).triggers
    judgement = await agent.judge([segment("c", at=105.001)], [])
    assert judgement.reason is TriggerReason.BUFFER_OLD
    agent.take()
    assert not (await agent.judge([segment("d", at=200.0)], [])).triggers


async def test_text_that_is_added_alone_grows_old_as_well() -> None:
    hours = iter([0, 4_000, 5_001])
    agent = BufferAgent(model(WAIT), ExaidConfig(max_buffer_age=5.0), now_ms=lambda: next(hours))
    assert [await agent.addsegment("doctor", text, []) for text in "abc"] == [False, False, True]


async def test_what_is_new_is_told_from_what_waits() -> None:
    judge = model(WAIT)
    agent = agent_of(judge, context_ctu=6)
    for text in ("first waits", "second one waits", "third"):
        await agent.addsegment("doctor", text, ["- Fever.", "- Cough."])
    blocks = data_blocks(judge.requests[-1])
    assert blocks == [[("doctor", "second one waits")], [("doctor", "third")]]
    prompt = judge.requests[-1].messages[1].content
    assert prompt.index("- Fever.") < prompt.index("- Cough.") < prompt.index("<trace")
    assert data_blocks(judge.requests[0]) == [[("doctor", "first waits")]]


async def test_the_call_is_booked_as_the_buffer_agents() -> None:
    judge = model(WAIT)
    await BufferAgent(judge, case_id="case-7").addsegment("doctor", "Fever.", [])
    labels = judge.requests[0].labels
    assert (labels.case_id, labels.phase, labels.role) == ("case-7", "exaid", LLMRole.BUFFER_AGENT)


async def test_the_seeds_methods() -> None:
    agent = agent_of(model(SHIFT, WAIT))
    assert await agent.addsegment("doctor", "Fever.", []) is True
    assert await agent.addsegment("nurse", "| doctor | Cough.", []) is False
    segments = ["| doctor | Fever.", "| nurse | | doctor | Cough."]
    assert agent.peek() == agent.peek() == segments
    assert agent.flush() == segments
    assert agent.peek() == agent.flush() == []
    counts = [agent.get_trace_count(name) for name in ("doctor", "nurse", "Doctor")]
    assert counts == [1, 1, 0]


async def test_what_is_put_back_keeps_its_place() -> None:
    agent = agent_of(model(WAIT))
    agent.hold([segment("Fever."), segment("Cough.")])
    taken = agent.take()
    agent.hold([segment("Rash.")])
    agent.put_back(taken)
    assert agent.peek() == ["| doctor | Fever.", "| doctor | Cough.", "| doctor | Rash."]
    assert agent.get_trace_count("doctor") == 3


async def test_cancelling_a_decision_keeps_its_segments() -> None:
    agent = agent_of(Slow(model(SHIFT), lambda: 60.0))
    decision = asyncio.create_task(agent.addsegment("doctor", "Fever.", []))
    await asyncio.sleep(0)
    decision.cancel()
    await asyncio.wait([decision])
    assert agent.peek() == ["| doctor | Fever."]


async def test_traces_are_a_view_of_the_counts() -> None:
    agent = agent_of(model(WAIT))
    assert agent.traces == {}
    for name in ("doctor", "nurse", "doctor"):
        await agent.addsegment(name, "The fever is gone.", [])
    assert agent.traces == {"doctor": TraceData(count=2), "nurse": TraceData(count=1)}
    assert agent.traces["doctor"].count == agent.get_trace_count("doctor")
    agent.flush()
    assert agent.traces["doctor"].count == 2


async def test_the_names_that_the_framework_documents() -> None:
    judge = model(analysis("TOPIC_SHIFT", relevant=True, novel=True), DOWN)
    agent = BufferAgent(judge)
    assert agent.llm is agent.base_llm is judge
    assert [one.role for one in agent.flag_prompt] == ["system", "user"]
    assert agent.get_last_analysis("doctor") is None
    assert await agent.addsegment("doctor", "Fever.", [])
    assert agent.buffer == agent.peek() == ["| doctor | Fever."]
    last = agent.get_last_analysis("doctor")
    assert last is not None
    assert last.stream_state == "TOPIC_SHIFT"
    await agent.addsegment("doctor", "Cough.", [])
    assert agent.get_last_analysis("doctor") is None, "the last call failed"
    assert agent.traces["doctor"].count == 2
    summarizer = SummarizerAgent(judge)
    assert summarizer.llm is judge
    assert [one.role for one in summarizer.summarize_prompt] == ["system", "user"]
