"""What a program sees of an EXAID whose models fail, and what that costs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from exaid_core import EXAID, ExaidConfig
from exaid_core.ctu import ctu
from exaid_core.health import Failure, HealthState
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import SummaryDraft
from exaid_core.trace.events import EventKind, TraceEvent
from mdagents_llm.chat import ChatReply, StopReason, TokenUsage
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import (
    ConfigError,
    EndpointDown,
    ErrorKind,
    ProviderError,
    StructuredOutputError,
)
from mdagents_llm.llm_registry import get_llm
from tests.exaid_core.models import (
    DOWN,
    SHIFT,
    STABLE,
    WAIT,
    Outcome,
    Slow,
    asks_for,
    make_exaid,
    model,
    watched_bus,
)
from tests.fake_provider import FakeProvider
from tests.support.function_model import FunctionModel
from tests.support.virtual_time import virtual_time

WRONG_KEY = ProviderError("the key is refused", kind=ErrorKind.AUTH, status=401)
OUT_OF_REACH = EndpointDown("openai/m is out of reach: nobody answers")
NULLS = SummaryDraft.model_validate({"status_action": None})
SECRET = "Mrs Smith has fever."


def failing_exaid(*outcomes: Outcome, **more: Any) -> tuple[EXAID, list[Failure]]:
    """An EXAID whose summarizer has these outcomes, and the failures that it tells of."""
    failures: list[Failure] = []
    exaid = make_exaid(model(SHIFT), model(*outcomes), on_error=failures.append, **more)
    return exaid, failures


# What can be known at once


@pytest.mark.parametrize("wrong", ["gpt-4o", 7, FunctionModel, print, object()])
@pytest.mark.parametrize("role", ["buffer_llm", "summarizer_llm"])
def test_what_is_no_model_is_refused_at_once(role: str, wrong: Any) -> None:
    models: dict[str, Any] = {"buffer_llm": model(WAIT), "summarizer_llm": model(STABLE)}
    with pytest.raises(TypeError, match=r"must be an object with the method generate") as caught:
        EXAID(**{**models, role: wrong})
    assert role.partition("_")[0] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_key_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMMARIZER_LLM_PROVIDER", "google")
    with pytest.raises(ConfigError, match="no key for google"):
        EXAID()


# What is seen later


@virtual_time
async def test_it_is_ok_before_and_after_calls_that_work() -> None:
    exaid, failures = failing_exaid(STABLE)
    assert (exaid.health.state, exaid.health.calls) == (HealthState.OK, 0)
    await exaid.received_trace("a", "Fever.")
    assert (exaid.health.state, exaid.health.calls, exaid.health.failed) == (HealthState.OK, 2, 0)
    assert failures == []
    assert exaid.health.last_failure is None


@pytest.mark.parametrize(("error", "kind"), [(WRONG_KEY, "key"), (OUT_OF_REACH, "out of reach")])
@virtual_time
async def test_what_can_only_fail_is_seen_after_one_call(error: Exception, kind: str) -> None:
    exaid, failures = failing_exaid(error)
    assert await exaid.received_trace("a", "Fever.") is None
    assert exaid.health.state is HealthState.FAILING
    assert exaid.health.last_failure == failures[0]
    assert (failures[0].source, failures[0].error) == ("summarizer", error)
    assert kind in failures[0].message


@virtual_time
async def test_three_failures_in_a_row_are_no_bad_moment() -> None:
    exaid, failures = failing_exaid(DOWN, DOWN, DOWN, STABLE)
    states = []
    for _ in range(3):
        await exaid.finalize()
        await exaid.received_trace("a", "Fever and cough since Monday, and a rash on both arms.")
        states.append(exaid.health.state)
    await exaid.finalize()
    assert HealthState.DEGRADED in states[:2]
    assert [failure.in_a_row for failure in failures] == [1, 2, 3]
    assert states[-1] is HealthState.OK, "the fourth call worked"
    assert exaid.health.failed == 3


@virtual_time
async def test_a_judge_that_fails_degrades_it_and_summaries_still_come() -> None:
    exaid = make_exaid(model(DOWN), model(STABLE))
    assert await exaid.received_trace("a", "Fever.") is None
    assert await exaid.finalize() is not None
    assert exaid.health.failed == 1
    assert exaid.health.state is HealthState.DEGRADED


@virtual_time
async def test_an_alert_without_a_summary_is_told_in_its_own_words() -> None:
    exaid, failures = failing_exaid(DOWN)
    await exaid.received_trace("nurse", "Now he is in cardiac arrest!")
    assert failures[0].alerts == ("cardiac arrest",)
    assert exaid.missed_alerts() == 1


@virtual_time
async def test_the_log_tells_of_changes_and_never_of_what_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "exaid_core")
    foreign = RuntimeError(f"cannot summarise: {SECRET}")
    exaid, _ = failing_exaid(foreign, DOWN, DOWN, DOWN, STABLE)
    for _ in range(5):
        await exaid.received_trace("a", SECRET)
        await exaid.finalize()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "EXAID is degraded: summarizer: RuntimeError"),
        ("ERROR", "EXAID is failing: summarizer: server_error, status 500"),
        ("INFO", "EXAID is ok again"),
    ]
    assert SECRET not in caplog.text


@virtual_time
async def test_an_on_error_that_raises_harms_nobody() -> None:
    def breaks(failure: Failure) -> None:
        raise RuntimeError

    exaid = make_exaid(model(DOWN), model(DOWN, STABLE), on_error=breaks)
    await exaid.received_trace("a", "Asystole.")
    assert await exaid.received_trace("a", "Asystole.") is not None


# Time


@virtual_time
async def test_no_caller_waits_longer_than_a_call_may_take() -> None:
    hanging = Slow(model(WAIT), lambda: 1e9)
    exaid = make_exaid(hanging, Slow(model(STABLE), lambda: 1e9), call_timeout=30.0)
    assert await exaid.received_trace("a", "Fever.") is None
    assert asyncio.get_running_loop().time() == 30
    failure = exaid.health.last_failure
    assert failure is not None
    assert failure.message == "no reply within 30 seconds"
    await exaid.close()
    assert asyncio.get_running_loop().time() == 60


@virtual_time
async def test_a_judge_that_hangs_is_not_waited_for_at_each_segment() -> None:
    exaid = make_exaid(Slow(model(WAIT), lambda: 1e9), model(STABLE), call_timeout=30.0)
    for _ in range(100):
        await exaid.received_trace("a", "x" * 40)
    assert asyncio.get_running_loop().time() <= 8 * 30
    assert exaid.tail_loss() < 1, "size still decides"


class Local(Slow):
    """A model that runs on this machine."""

    is_local = True


@virtual_time
async def test_a_local_model_has_as_long_as_it_takes() -> None:
    exaid = make_exaid(model(SHIFT), Local(model(STABLE), lambda: 100.0), call_timeout=30.0)
    assert await exaid.received_trace("a", "Fever.") is not None


def test_the_embedded_model_is_known_to_be_local() -> None:
    assert getattr(get_llm(LLMRole.SUMMARIZER), "is_local", None) is True


# Cost


def prompts(model: FunctionModel) -> int:
    """CTU of all prompts that the model got."""
    return sum(ctu(message.content) for each in model.requests for message in each.messages)


@pytest.mark.sweep
@pytest.mark.parametrize("outcome", [DOWN, WRONG_KEY, NULLS], ids=["500", "key", "nulls"])
@pytest.mark.parametrize("text", ["Fever and cough. " * 25, "Asystole? No, a loose lead. " * 14])
@virtual_time
async def test_a_summarizer_that_always_fails_costs_what_one_that_works_does(
    outcome: Outcome, text: str
) -> None:
    judge, works, fails = model(SHIFT), model(STABLE), model(outcome)
    for write in (works, fails):
        exaid = make_exaid(judge, write, coalesce=False)
        for _ in range(200):
            await exaid.received_trace("doctor", text)
        await exaid.finalize()
    assert exaid.tail_loss() == 1
    assert prompts(fails) < prompts(works)


@pytest.mark.sweep
@virtual_time
async def test_when_all_calls_fail_the_cost_stays_in_proportion_to_the_text() -> None:
    text = "Fever and cough. " * 25
    for count in (50, 100, 200, 400, 800):
        judge, write = model(DOWN), model(DOWN)
        exaid = make_exaid(judge, write, coalesce=False)
        for _ in range(count):
            await exaid.received_trace("doctor", text)
        await exaid.finalize()
        assert prompts(judge) + prompts(write) < 4 * count * ctu(text)


@virtual_time
async def test_a_new_alert_is_tried_at_once_even_when_all_before_it_failed() -> None:
    judge, write = model(SHIFT), model(*[DOWN] * 5, STABLE)
    exaid = make_exaid(judge, write)
    while len(write.requests) < 5:
        await exaid.received_trace("doctor", "Fever and cough. " * 25)
    summary = await exaid.received_trace("nurse", "He is in cardiac arrest.")
    assert summary is not None
    assert summary.alerts == ("cardiac arrest",)
    assert exaid.tail_loss() == 0


@virtual_time
async def test_a_finished_case_is_tried_once_more_at_its_end() -> None:
    write = model(*[DOWN] * 3, STABLE)
    exaid = make_exaid(model(WAIT), write, max_buffer_ctu=100)
    said = [
        TraceEvent(seq, 1000 * seq, 1, "doctor", EventKind.DELTA, "Fever and cough. " * 40)
        for seq in range(4)
    ]
    await exaid.take_trace(said)
    assert exaid.tail_loss() == 0


# What is no summary


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"status_action": None, "key_findings": None},
        {"status_action": "", "key_findings": "  "},
        {"status_action": "None reported", "key_findings": "N/A", "agent_contributions": "none."},
    ],
)
@virtual_time
async def test_a_summary_that_says_nothing_covers_nothing(reply: dict[str, Any]) -> None:
    nothing = SummaryDraft.model_validate({"status_action": None, **reply})
    exaid, failures = failing_exaid(nothing, STABLE)
    assert await exaid.received_trace("nurse", "He is in cardiac arrest.") is None
    assert exaid.summaries == []
    assert (exaid.tail_loss(), exaid.missed_alerts()) == (1.0, 1)
    assert failures[0].message == "the summary says nothing"
    assert exaid.log.summaries[0].schema_ok is False
    await exaid.finalize()
    assert exaid.missed_alerts() == 0


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.REFUSAL])
@virtual_time
async def test_a_reply_that_did_not_end_by_itself_covers_nothing(reason: StopReason) -> None:
    cut = SummaryDraft(status_action="Cardiac until exclud")
    reply = ChatReply("{}", TokenUsage(), reason, "m", cut)
    exaid = make_exaid(model(SHIFT), FunctionModel(lambda request: reply))
    assert await exaid.received_trace("a", "Cardiac until excluded.") is None
    assert (exaid.summaries, exaid.tail_loss()) == ([], 1.0)


# From reports of models that give no counts, or others than whole numbers:
# https://github.com/openai/openai-agents-python/issues/1179
# https://github.com/livekit/agents/pull/6763
@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (TokenUsage(10, 5), (10, 5)),
        (TokenUsage(*cast(Any, (10.0, 5.6))), (10, 6)),
        (TokenUsage(*cast(Any, (-1, float("inf")))), (None, None)),
        (TokenUsage(*cast(Any, (None, "5"))), (None, None)),
        (None, (None, None)),
    ],
)
@pytest.mark.parametrize("name", ["m", None, "\ud800"])
@virtual_time
async def test_a_summary_is_kept_whatever_its_metadata(
    usage: Any, counted: tuple[int | None, int | None], name: Any
) -> None:
    text: Any = None if name is None else "{}"
    reply = ChatReply(text, usage, StopReason.STOP, name, STABLE)
    async with make_exaid(model(SHIFT), FunctionModel(lambda request: reply)) as exaid:
        assert await exaid.received_trace("a", "Fever.") is not None
    assert exaid.health.state is HealthState.OK
    booked = exaid.log.summaries[0].llm_usage
    assert (booked.provider_prompt_tokens, booked.provider_completion_tokens) == counted


@virtual_time
async def test_a_summary_that_nobody_validated_is_validated() -> None:
    drafts = [
        SummaryDraft.model_construct(status_action=value, key_findings="Fever.")
        for value in (cast(str, None), cast(str, 5))
    ]
    replies = iter([ChatReply("", TokenUsage(), StopReason.STOP, "m", draft) for draft in drafts])
    async with make_exaid(model(SHIFT), FunctionModel(lambda request: next(replies))) as exaid:
        summary = await exaid.received_trace("a", "Fever.")
        assert summary is not None
        assert (summary.status_action, summary.key_findings) == (PLACEHOLDER, "Fever.")
        assert await exaid.received_trace("a", "Cough.") is None
        assert exaid.health.state is HealthState.DEGRADED


class MuteError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("mute")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MuteError(), "MuteError:"),
        (
            StructuredOutputError(
                "not valid",
                text=cast(str, None),
                usage=cast(TokenUsage, None),
                stop_reason=StopReason.STOP,
            ),
            "not valid",
        ),
    ],
)
@virtual_time
async def test_an_error_is_a_failure_whatever_it_holds(error: Exception, message: str) -> None:
    exaid, failures = failing_exaid(error)
    assert await exaid.received_trace("a", "Fever.") is None
    await exaid.close()
    assert {failure.message for failure in failures} == {message}


@virtual_time
async def test_a_subscriber_whose_error_cannot_be_told_harms_nobody() -> None:
    def breaks(summary: object) -> None:
        raise MuteError

    exaid, failures = failing_exaid(STABLE, on_summary=breaks)
    assert await exaid.received_trace("a", "Fever.") is not None
    assert [failure.message for failure in failures] == ["MuteError: "]


async def test_a_reply_cut_inside_its_json_is_no_summary_even_if_the_endpoint_says_stop(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    provider.when(asks_for("differential_rationale"), '{"status_action": "Cardiac until exclud')
    provider.when(asks_for("stream_state"), SHIFT.model_dump())
    async with EXAID() as exaid:
        assert await exaid.received_trace("a", "Cardiac until excluded.") is None
        assert exaid.health.state is HealthState.DEGRADED
    assert exaid.summaries == []
    assert exaid.tail_loss() == 1


# An alert that the summary leaves out


@pytest.mark.parametrize(
    ("told", "is_missing"),
    [
        ("Patient stable.", True),
        ("Cardiac arrest at 10:02, CPR begun.", False),
        ("Arrest, of the heart: cardiac.", False),
    ],
)
@virtual_time
async def test_a_summary_without_its_alert_is_flagged(told: str, is_missing: bool) -> None:
    exaid = make_exaid(model(WAIT), model(SummaryDraft(status_action=told)))
    summary = await exaid.received_trace("nurse", "The man is in cardiac arrest at 10:02; CPR.")
    assert summary is not None
    assert summary.alerts == ("cardiac arrest",)
    assert summary.alert_missing is is_missing
    assert exaid.log.summaries[0].alert_missing is (True if is_missing else None)


@virtual_time
async def test_a_quiet_text_has_no_alert_that_could_be_missing() -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE))
    bus = watched_bus(exaid)
    bus.start_turn("a").say("Fever.")
    await exaid.close(1)
    assert exaid.summaries[0].alerts == ()
    assert exaid.summaries[0].alert_missing is False


def test_the_limits_of_time_are_settings() -> None:
    assert (ExaidConfig().attempt_timeout, ExaidConfig().call_timeout) == (10.0, 30.0)
