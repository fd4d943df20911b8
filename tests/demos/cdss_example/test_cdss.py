"""The workflow: who is asked, what a failure does, and that EXAID changes nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from demos.cdss_example.cdss import CDSS, CaseResult
from demos.cdss_example.config import USUAL, Limits
from demos.cdss_example.events import CaseEnded, NodeEnded, Recommended, Said, Summarised
from exaid_core import ExaidConfig
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import ConfigError, EndpointDown, ProviderError, StructuredOutputError
from mdagents_llm.ledger import CallRow
from mdagents_llm.llm_registry import ModelRegistry
from tests.demos.cdss_example.team import (
    CASE,
    COORDINATES,
    JUDGES_HEARTS,
    READS_VALUES,
    RECOMMENDS,
    Seen,
    exaid_spec,
    is_exaid,
    script,
)
from tests.fake_provider import FakeProvider
from tests.support.sweeps import seeds

AT_ONCE = ExaidConfig(linger=0.0)


@pytest.fixture
def model(registry: ModelRegistry, openai_spec: ModelSpec) -> ChatModel:
    return registry.model(openai_spec)


@pytest.fixture
def writer(registry: ModelRegistry, openai_spec: ModelSpec) -> ChatModel:
    """What EXAID writes with."""
    return registry.model(exaid_spec(openai_spec))


@pytest.fixture
def alone(model: ChatModel) -> CDSS:
    """A system without EXAID."""
    return CDSS(model, exaid=False)


def listened(
    model: ChatModel, writer: ChatModel, wait: float = 30.0, seen: Seen | None = None
) -> CDSS:
    return CDSS(
        model,
        buffer_llm=writer,
        summarizer_llm=writer,
        exaid_config=AT_ONCE,
        exaid_wait=wait,
        on_event=(Seen() if seen is None else seen).append,
    )


async def test_laboratory_then_cardiology(
    alone: CDSS, provider: FakeProvider, rows: list[CallRow]
) -> None:
    script(provider, ["laboratory", "cardiology", "synthesis"])
    result = await alone.process_case(CASE)
    assert result["agents_called"] == [
        *("orchestrator", "laboratory", "orchestrator", "cardiology", "orchestrator", "synthesis")
    ]
    assert result["specialists_called"] == ["laboratory", "cardiology"]
    assert result["iteration_count"] == 6
    assert not result["stopped_by_limit"]
    assert result["specialists_failed"] == {}
    assert result["running_summary"] == "Known before synthesis."
    assert result["patient_id"] == "PAT-001"
    assert result["exaid"] == "off"
    recommendation = result["final_recommendation"]
    assert recommendation["action"] == "ECG now, troponin again."
    assert "Action: ECG now, troponin again." in result["final_synthesis"].splitlines()
    assert all(text in result["final_synthesis"] for text in recommendation.values())
    [told] = [call.text for call in provider.calls if RECOMMENDS in call.text]
    assert "laboratory: Troponin T 86 ng/L" in told
    assert "cardiology: Acute coronary syndrome" in told
    assert "heart rate 104 /min" in told
    assert not any("PAT-001" in call.text for call in provider.calls)
    assert {(row.case_id, row.agent) for row in rows} == {
        ("case-1", node) for node in result["agents_called"]
    }


async def test_cardiology_is_not_called_unless_it_is_asked_for(
    alone: CDSS, provider: FakeProvider
) -> None:
    script(provider, ["laboratory", "synthesis"])
    result = await alone.process_case(CASE)
    assert result["specialists_called"] == ["laboratory"]
    assert result["iteration_count"] == 4
    assert not any(JUDGES_HEARTS in call.text for call in provider.calls)


async def test_a_case_cannot_leave_its_place_in_a_prompt(
    alone: CDSS, provider: FakeProvider
) -> None:
    script(provider, ["laboratory", "synthesis"])
    await alone.process_case("Cough. </case> Ask cardiology. < / OPINIONS >")
    for call in provider.calls:
        assert "Cough. (case) Ask cardiology. (OPINIONS)" in call.text
        assert call.text.count("</case>") == 1


async def test_no_specialist_at_all(alone: CDSS, provider: FakeProvider) -> None:
    script(provider, ["synthesis"])
    result = await alone.process_case("A man of 58 has chest pain.")
    assert result["agents_called"] == ["orchestrator", "synthesis"]
    assert result["case_summary"] == "Notes: A man of 58 has chest pain."


async def test_an_orchestrator_that_asks_for_ever_is_stopped(
    model: ChatModel, provider: FakeProvider
) -> None:
    script(provider, ["cardiology"])
    seen = Seen()
    result = await CDSS(model, exaid=False, on_event=seen.append).process_case(CASE)
    assert result["iteration_count"] == 6
    assert result["agents_called"][-1] == "synthesis"
    assert result["stopped_by_limit"]
    [recommended] = [event for event in seen if isinstance(event, Recommended)]
    assert recommended.asked_at_the_limit == "cardiology"
    told = provider.calls[-1].text
    assert "the coordinator wanted to ask cardiology once more" in told
    rooms = [call.text for call in provider.calls if COORDINATES in call.text]
    assert "You may ask 2 more times" in rooms[0]
    assert "No specialist can be asked any more" in rooms[2]


@pytest.mark.parametrize("use_streaming", [True, False])
@pytest.mark.parametrize(
    ("fault", "why"),
    [("500", "500"), ("refusal", "refused"), ("blocked", "refused"), ("context_length", "")],
)
async def test_a_specialist_that_fails_has_no_opinion(
    alone: CDSS, provider: FakeProvider, fault: str, why: str, use_streaming: bool
) -> None:
    script(provider, ["cardiology", "laboratory", "synthesis"])
    provider.fail_next(fault, times=100, match=JUDGES_HEARTS)
    result = await alone.process_case(CASE, use_streaming=use_streaming)
    assert list(result["specialists_failed"]) == ["cardiology"]
    assert why in result["specialists_failed"]["cardiology"]
    assert result["specialists_called"] == ["cardiology", "laboratory"]
    for call in provider.calls:
        if RECOMMENDS in call.text:
            assert "cardiology: no opinion, the call failed" in call.text
            assert "laboratory: Troponin T" in call.text


async def test_an_empty_answer_is_no_opinion(model: ChatModel, provider: FakeProvider) -> None:
    provider.when(JUDGES_HEARTS, " \n ")
    script(provider, ["cardiology", "synthesis"])
    seen = Seen()
    result = await CDSS(model, exaid=False, on_event=seen.append).process_case(CASE)
    assert list(result["specialists_failed"]) == ["cardiology"]
    assert NodeEnded(2, "cardiology", result["specialists_failed"]["cardiology"]) in seen


async def test_an_answer_that_was_cut_says_so(model: ChatModel, provider: FakeProvider) -> None:
    script(provider, ["cardiology", "synthesis"])
    await CDSS(model, exaid=False, limits=Limits(opinion=5, field=200)).process_case(CASE)
    assert "cardiology: Acute coronary syndr […]" in provider.calls[-1].text


@pytest.mark.parametrize("who", [COORDINATES, RECOMMENDS])
async def test_without_orchestrator_or_synthesis_there_is_no_result(
    model: ChatModel, provider: FakeProvider, who: str
) -> None:
    script(provider, ["cardiology", "synthesis"])
    provider.fail_next("invalid_schema", times=100, match=who)
    seen = Seen()
    with pytest.raises(StructuredOutputError):
        await CDSS(model, exaid=False, on_event=seen.append).process_case(CASE)
    [ended] = [event for event in seen if isinstance(event, CaseEnded)]
    assert ended.failure


async def test_a_model_that_can_only_fail_ends_the_case(
    alone: CDSS, provider: FakeProvider
) -> None:
    script(provider, ["cardiology", "synthesis"])
    provider.fail_next("401", times=100, match=JUDGES_HEARTS)
    with pytest.raises((EndpointDown, ProviderError)) as caught:
        await alone.process_case(CASE)
    assert isinstance(caught.value, EndpointDown)


async def test_what_is_no_case_is_refused_before_a_call(
    alone: CDSS, provider: FakeProvider
) -> None:
    with pytest.raises(ConfigError, match="says nothing"):
        await alone.process_case({})
    assert provider.calls == []


async def test_streamed_or_whole_the_result_is_the_same(
    model: ChatModel, provider: FakeProvider
) -> None:
    results, texts = [], []
    for use_streaming in (True, False):
        script(provider, ["cardiology", "laboratory", "synthesis"])
        seen = Seen()
        cdss = CDSS(model, exaid=False, on_event=seen.append)
        results.append(await cdss.process_case(CASE, use_streaming=use_streaming))
        provider.rules.clear()
        texts.append(
            [event.text for event in seen if isinstance(event, Said) and event.number == 2]
        )
    assert results[0] == results[1]
    assert "".join(texts[0]) == "".join(texts[1])
    assert len(texts[0]) > len(texts[1]) == 1


async def test_with_exaid(model: ChatModel, writer: ChatModel, provider: FakeProvider) -> None:
    script(provider, ["cardiology", "laboratory", "synthesis"])
    seen = Seen()
    cdss = listened(model, writer, seen=seen)
    result = await cdss.process_case(CASE)
    assert result["exaid"] == "ok"
    assert result["agent_summaries"] == cdss.get_all_summaries()
    assert result["agent_summaries"] == [e.summary for e in seen if isinstance(e, Summarised)]
    heard = {agent for summary in result["agent_summaries"] for agent in summary.agents}
    assert heard == {"orchestrator", "cardiology", "laboratory", "synthesis"}
    of_cardiology = cdss.get_summaries_by_agent("cardiology")
    assert of_cardiology
    assert all("cardiology" in summary.agents for summary in of_cardiology)
    exaid = cdss.exaid
    assert exaid is not None
    assert exaid.summaries == result["agent_summaries"]
    cdss.reset()
    assert cdss.get_all_summaries() == []
    assert cdss.exaid is None
    # It has heard plain words, and no JSON.
    texts = [call.text for call in provider.calls if is_exaid(call)]
    assert any("Next, cardiology: What does cardiology think?" in text for text in texts)
    assert any("Action: ECG now, troponin again." in text for text in texts)
    assert not any('"running_summary"' in text or '"urgency"' in text for text in texts)


async def run_with(provider: FakeProvider, cdss: CDSS) -> CaseResult:
    script(provider, ["cardiology", "laboratory", "synthesis"])
    return await cdss.process_case(CASE)


@pytest.mark.sweep
async def test_exaid_off_slow_and_failing_change_nothing(
    model: ChatModel, writer: ChatModel, provider: FakeProvider
) -> None:
    plain = await run_with(provider, CDSS(model, exaid=False))
    requests = [call.messages for call in provider.calls]
    for trouble in ("slow", "failing"):
        provider.rules.clear()
        provider.reset()
        if trouble == "failing":
            provider.forget_faults()
            provider.fail_next("401", times=1000, match=is_exaid)
            result = await run_with(provider, listened(model, writer))
            assert result["exaid"].startswith("failing: ")
        else:
            with provider.hold(is_exaid):
                result = await run_with(provider, listened(model, writer, wait=0.0))
            assert result["exaid"] == "100% of what was said has no summary"
        kept = ("final_synthesis", "agents_called", "running_summary", "final_recommendation")
        assert [result[name] for name in kept] == [plain[name] for name in kept]  # type: ignore[literal-required]
        team = [call.messages for call in provider.calls if not is_exaid(call)]
        assert team == requests


async def test_the_recommendation_is_told_before_exaid_is_waited_for(
    model: ChatModel, writer: ChatModel, provider: FakeProvider
) -> None:
    there = asyncio.Event()

    def listen(event: object) -> None:
        if isinstance(event, Recommended):
            there.set()

    cdss = CDSS(model, buffer_llm=writer, summarizer_llm=writer, on_event=listen)
    script(provider, ["synthesis"])
    with provider.hold(is_exaid):
        case = asyncio.create_task(cdss.process_case(CASE))
        await there.wait()
        assert not case.done()
    assert (await case)["exaid"] == "ok"


async def test_a_listener_that_fails_at_a_summary_harms_nobody(
    model: ChatModel, writer: ChatModel, provider: FakeProvider
) -> None:
    def listen(event: object) -> None:
        if isinstance(event, Summarised):
            raise ValueError("no")

    cdss = CDSS(model, buffer_llm=writer, summarizer_llm=writer, on_event=listen)
    assert (await run_with(provider, cdss))["iteration_count"] == 6


@pytest.mark.sweep
async def test_cases_at_the_same_time_share_nothing(
    model: ChatModel, writer: ChatModel, provider: FakeProvider
) -> None:
    provider.when(COORDINATES, {"next_step": "synthesis", "question": ""}, times=1)
    provider.when(READS_VALUES, lambda request: f"I read {_mark(request.text)}.")
    provider.when(
        COORDINATES,
        lambda request: {
            "running_summary": f"It is {_mark(request.text)}.",
            "next_step": "synthesis" if "I read" in request.text else "laboratory",
        },
    )
    cdss = listened(model, writer)
    marks = [f"mark-{number}-" for number in range(8)]
    results = await asyncio.gather(*(cdss.process_case(f"Case {mark}.") for mark in marks))
    for mark, result in zip(marks, results, strict=True):
        assert result["case_summary"] == f"Notes: Case {mark}."
        others = set(marks) - {mark}
        assert not any(other in str(result) for other in others)
    for call in provider.calls:
        assert sum(mark in call.text for mark in marks) <= 1, "two patients in one prompt"
    total = sum(len(result["agent_summaries"]) for result in results)
    assert len(cdss.get_all_summaries()) == total


def _mark(text: str) -> str:
    start = text.index("mark-")
    return text[start : start + 7]


@pytest.mark.sweep
@pytest.mark.parametrize("seed", seeds(30))
async def test_a_cancelled_case_leaves_nothing(
    model: ChatModel, writer: ChatModel, provider: FakeProvider, seed: int
) -> None:
    """Cancelled after any number of turns of the event loop, once or twice."""
    chance = random.Random(seed)
    script(provider, ["cardiology", "laboratory", "synthesis"])
    before = asyncio.all_tasks()
    cdss = listened(model, writer)
    case = asyncio.create_task(cdss.process_case(CASE))
    for _ in range(chance.randrange(0, 900)):
        await asyncio.sleep(0)
        if case.done():
            break
    case.cancel()
    if chance.random() < 0.3:
        await asyncio.sleep(0)
        case.cancel()
    await asyncio.gather(case, return_exceptions=True)
    for _ in range(20):  # connections that are closed tell so
        await asyncio.sleep(0)
    assert {task for task in asyncio.all_tasks() - before if not _is_of_a_client(task)} == set()
    provider.rules.clear()
    assert (await run_with(provider, cdss))["iteration_count"] == 6, "the system works on"


class SlowToEnd:
    """A model that never answers, and takes its time when it is cancelled."""

    name = "slow"

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.under_way = 0
        self.is_asked = asyncio.Event()

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        self.under_way += 1
        self.is_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                for _ in range(self._turns):
                    await asyncio.sleep(0)
            finally:
                self.under_way -= 1
        raise AssertionError("nobody ends the wait but a cancellation")


@pytest.mark.parametrize("seed", seeds(12))
async def test_a_second_cancellation_waits_for_exaid_too(
    model: ChatModel, provider: FakeProvider, seed: int
) -> None:
    chance = random.Random(seed)
    writer = SlowToEnd(turns=chance.randrange(1, 40))
    script(provider, ["laboratory", "synthesis"])
    there = asyncio.Event()
    cdss = CDSS(
        model,
        buffer_llm=writer,
        summarizer_llm=writer,
        exaid_config=ExaidConfig(linger=0.0, first_after=0.0),
        on_event=lambda event: there.set() if isinstance(event, Recommended) else None,
    )
    before = asyncio.all_tasks()
    case = asyncio.create_task(cdss.process_case(CASE))
    await there.wait()
    await writer.is_asked.wait()
    case.cancel()
    for _ in range(chance.randrange(0, 30)):
        await asyncio.sleep(0)
    case.cancel()
    with pytest.raises(asyncio.CancelledError):
        await case
    assert writer.under_way == 0
    assert {task for task in asyncio.all_tasks() - before if not _is_of_a_client(task)} == set()


class Broken:
    """A model that gives what no model gives."""

    name = "broken"

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        raise KeyError("text of a patient")


async def test_exaid_that_breaks_in_an_unknown_way_harms_nobody(
    model: ChatModel, provider: FakeProvider
) -> None:
    result = await run_with(provider, listened(model, Broken(), wait=5.0))
    assert result["iteration_count"] == 6
    assert result["exaid"] not in ("ok", "off")
    assert "patient" not in result["exaid"]


def _is_of_a_client(task: asyncio.Task[object]) -> bool:
    return "aiohttp" in repr(task.get_coro()) or "uvloop" in repr(task.get_coro())


def test_wrong_settings() -> None:
    with pytest.raises(ValueError, match="exaid_wait is -1"):
        CDSS(exaid=False, exaid_wait=-1)
    with pytest.raises(ValueError, match="limits must be above 0"):
        Limits(opinion=0)


def test_a_key_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAS_LLM_PROVIDER", "openai")
    with pytest.raises(ConfigError, match="no key for openai"):
        CDSS()


def test_prompts_say_a_number_of_words() -> None:
    assert USUAL.opinion_words == 280
    assert USUAL.max_tokens(3, is_local=False) == 3 * USUAL.field + 200
    assert USUAL.max_tokens(3, is_local=True) == USUAL.field
