"""EXAID by its public methods."""

from __future__ import annotations

import asyncio

import pytest

from exaid_core import EXAID, AgentSummary
from exaid_core.schema.agent_summary import SummaryDraft
from exaid_core.token_gate.token_gate import GateProfile
from mdagents_llm.chat import ChatRequest
from mdagents_llm.config import LLMRole
from mdagents_llm.llm_registry import RoleModels
from tests.exaid_core.models import (
    NO_ALARM,
    SHIFT,
    STABLE,
    WAIT,
    Said,
    Slow,
    make_exaid,
    model,
    newest_block,
    watched_bus,
)
from tests.support.virtual_time import virtual_time

WORDS = GateProfile(min_words=4, max_words=6, silence_timer=1.0, max_wait_timeout=4.0)


# Documented behaviour


@virtual_time
async def test_a_trace_may_bring_a_summary() -> None:
    exaid = make_exaid(model(WAIT, WAIT, SHIFT), model(STABLE))
    assert exaid.latest_summary() == "No summaries yet."
    assert exaid.get_all_summaries() == []
    assert await exaid.received_trace("DoctorAgent", "Reviewing patient symptoms") is None
    assert await exaid.received_trace("DoctorAgent", "Ordering lab tests") is None
    assert exaid.latest_summary() == "No summaries yet."
    summary = await exaid.received_trace("DoctorAgent", "Lab results received")
    assert isinstance(summary, AgentSummary)
    assert summary.status_action == STABLE.status_action
    assert exaid.latest_summary() is summary
    assert exaid.get_all_summaries() == exaid.summaries == [summary]


@virtual_time
async def test_lists_of_summaries_are_copies() -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE))
    await exaid.received_trace("a", "Fever.")
    exaid.get_all_summaries().clear()
    assert len(exaid.get_all_summaries()) == 1


@virtual_time
async def test_the_old_name_of_the_agent_id_is_deprecated() -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE))
    with pytest.warns(DeprecationWarning, match="agent_id") as warned:
        summary = await exaid.received_trace(id="DoctorAgent", text="Fever.")
    assert warned[0].filename == __file__
    assert summary is not None
    assert summary.agents == ("DoctorAgent",)
    await exaid.received_trace(agent_id="DoctorAgent", text="Cough.")
    assert exaid.get_agent_trace_count("DoctorAgent") == 2


@pytest.mark.parametrize("agent_id", ["", "  ", "two\nlines", "x" * 101, "\u202e", None])
@virtual_time
async def test_an_agent_id_that_cannot_be_shown_is_refused(agent_id: str) -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE))
    with pytest.raises(ValueError, match="agent id"):
        await exaid.received_trace(agent_id, "Fever.")
    if agent_id is not None:
        with pytest.raises(ValueError, match="agent id"):
            await exaid.on_new_token(agent_id, "Fever.")
    assert exaid.log.flushes == []


@virtual_time
async def test_tokens_come_together_before_they_are_judged() -> None:
    judge = model(SHIFT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS)
    tokens = ["Patient", " presents", " with", " chest", " pain", ".", " ", "History", " of"]
    summaries = [await exaid.on_new_token("DoctorAgent", token) for token in tokens]
    assert [summary is not None for summary in summaries] == [False] * 5 + [True] + [False] * 3
    assert [newest_block(request) for request in judge.requests] == [
        [("DoctorAgent", "Patient presents with chest pain.")]
    ]
    await exaid.flush_agent("DoctorAgent")
    assert len(judge.requests) == 1, "what is parked is not judged"
    assert exaid.buffer_agent.peek() == ["| DoctorAgent |  History of"]
    await exaid.flush_agent("DoctorAgent")
    await exaid.flush_agent("nobody")
    last = await exaid.finalize()
    assert last is exaid.latest_summary()
    assert exaid.buffer_agent.peek() == []


@virtual_time
async def test_finalize_summarises_what_is_left() -> None:
    exaid = make_exaid(model(WAIT), model(STABLE), gate=WORDS)
    await exaid.received_trace("a", "Fever.")
    await exaid.on_new_token("b", "Cough")
    await exaid.on_new_token("c", " \n")
    summary = await exaid.finalize()
    assert summary is not None
    assert summary.agents == ("a", "b")
    assert await exaid.finalize() is None, "nothing is left"
    assert exaid.get_all_summaries() == [summary]


@virtual_time
async def test_finalize_without_any_text() -> None:
    judge, write = model(SHIFT), model(STABLE)
    assert await make_exaid(judge, write).finalize() is None
    assert judge.requests == write.requests == []


@virtual_time
async def test_summaries_are_found_by_the_exact_id_of_an_agent() -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE))
    for agent in ("expert-1", "expert-10", "Expert-1", "expert-1"):
        await exaid.received_trace(agent, f"{agent} and expert-2 have spoken.")
    first, *others, last = exaid.summaries
    assert exaid.get_summaries_by_agent("expert-1") == [first, last]
    assert exaid.get_summaries_by_agent("expert-10") == others[:1]
    assert exaid.get_summaries_by_agent("Expert-1") == others[1:]
    for nobody in ("expert", "expert-2", ""):
        assert exaid.get_summaries_by_agent(nobody) == []


@virtual_time
async def test_traces_are_counted_by_agent() -> None:
    exaid = make_exaid(model(WAIT), model(STABLE), gate=WORDS)
    for _ in range(3):
        await exaid.received_trace("a", "Fever.")
    for token in ("One", " two", " three", " four.", " Five"):
        await exaid.on_new_token("b", token)
    assert [exaid.get_agent_trace_count(agent) for agent in "abc"] == [3, 1, 0]
    await asyncio.sleep(2)  # the silence lets the last word through
    assert exaid.get_agent_trace_count("b") == 2
    await exaid.on_new_token("c", "Six")
    await exaid.flush_agent("c")
    await exaid.on_new_token("c", "Seven")
    await exaid.finalize()
    assert exaid.get_agent_trace_count("c") == 2


@virtual_time
async def test_without_arguments_it_takes_the_models_of_the_roles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = {LLMRole.BUFFER_AGENT: model(SHIFT), LLMRole.SUMMARIZER: model(STABLE)}
    monkeypatch.setattr(RoleModels, "model", lambda self, role: models[role])
    assert await EXAID().received_trace("DoctorAgent", "Fever.") is not None
    assert [len(each.requests) for each in models.values()] == [1, 1]


@virtual_time
async def test_summaries_are_shown_as_they_come() -> None:
    shown: list[AgentSummary] = []
    exaid = make_exaid(model(SHIFT), model(STABLE), on_summary=shown.append)
    for text in ("Fever.", "Cough."):
        await exaid.received_trace("a", text)
        assert shown == exaid.summaries


# Provenance of a summary


async def summary_of(draft: SummaryDraft, *said: Said) -> AgentSummary:
    """The summary of traces that all come before the decision."""
    quiet = [WAIT] * (len(said) - 1)
    exaid = make_exaid(model(*quiet, SHIFT), model(draft))
    for agent, text in said:
        summary = await exaid.received_trace(agent, text)
    assert summary is not None
    return summary


@virtual_time
async def test_sources_are_exact_when_agents_speak_at_once() -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE), gate=WORDS)
    bus = watched_bus(exaid)
    one, two = bus.start_turn("one"), bus.start_turn("two")  # 0, 1
    for word in ("a ", "b ", "c "):
        one.say(word)  # 2, 4, 6
        two.say(word)  # 3, 5, 7
    one.end()  # 8
    await asyncio.sleep(0.1)
    two.say("d.")  # 9
    await asyncio.sleep(0.1)
    assert [summary.source_seqs for summary in exaid.summaries] == [
        ((2, 2), (4, 4), (6, 6)),
        ((3, 3), (5, 5), (7, 7), (9, 9)),
    ]
    assert [summary.agents for summary in exaid.summaries] == [("one",), ("two",)]


@virtual_time
async def test_empty_and_blank_pieces_are_no_sources() -> None:
    judge = model(SHIFT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS)
    for token in ("", "One two", "", " three four."):  # 0 to 3
        await exaid.on_new_token("a", token)
    assert exaid.summaries[0].source_seqs == ((1, 1), (3, 3))
    for text in ("", " \n\t "):
        assert await exaid.received_trace("a", text) is None
    assert len(judge.requests) == 1, "nothing is no reason to ask"
    assert exaid.buffer_agent.peek() == []


@virtual_time
async def test_terms_without_support_are_flagged() -> None:
    draft = SummaryDraft(status_action="Bisoprolol 5 mg started.", key_findings="Pulse 128.")
    said = ("doctor", "The pulse is 128.")
    assert (await summary_of(draft, said)).unsupported_terms == ("Bisoprolol", "5 mg")
    more = ("doctor", "Start bisoprolol 5mg.")
    assert (await summary_of(draft, said, more)).unsupported_terms == ()


@virtual_time
async def test_the_latest_summary_supports_the_next_and_no_earlier_one_does() -> None:
    pulse = SummaryDraft(status_action="Pulse 128.")
    exaid = make_exaid(model(SHIFT), model(pulse, pulse, STABLE, pulse))
    said = ["The pulse is 128.", "Fever.", "Cough.", "Rash."]
    for text in said:
        await exaid.received_trace("doctor", text)
    flagged = [summary.unsupported_terms for summary in exaid.summaries]
    assert flagged == [(), (), (), ("128",)]


@virtual_time
async def test_what_was_made_up_gains_no_support_by_being_repeated() -> None:
    dose = SummaryDraft(status_action="Bisoprolol 5 mg started.")
    exaid = make_exaid(model(SHIFT), model(dose))
    for text in ("Fever.", "Cough.", "Start bisoprolol 5 mg.", "Rash."):
        await exaid.received_trace("doctor", text)
    flagged = [summary.unsupported_terms for summary in exaid.summaries]
    assert flagged == [("Bisoprolol", "5 mg"), ("Bisoprolol", "5 mg"), (), ()]


@virtual_time
async def test_disagreement_that_is_not_told_is_flagged() -> None:
    said = [("one", "Infection.\nAnswer: A"), ("two", "Infarction.\nAnswer: B")]
    assert (await summary_of(STABLE, *said)).dissent_missing
    told = SummaryDraft(agent_contributions="one holds A, two holds B")
    assert not (await summary_of(told, *said)).dissent_missing
    persuaded = ("two", "On reflection:\nAnswer: A")
    assert not (await summary_of(STABLE, *said, persuaded)).dissent_missing


# The past in prompts


def section(request: ChatRequest, title: str) -> list[str]:
    """The lines below a title of the prompt."""
    lines = iter(request.messages[1].content.split("\n"))
    for line in lines:
        if line == f"{title}:":
            break
    return list(iter(lambda: next(lines), ""))


@virtual_time
async def test_a_prompt_holds_the_latest_summary_and_a_few_before() -> None:
    drafts = [SummaryDraft(status_action=f"State {letter}.") for letter in "abcdef"]
    judge, write = model(SHIFT), model(*drafts)
    exaid = make_exaid(judge, write, history_k=2)
    for letter in "abcdef":
        await exaid.received_trace("doctor", f"It is {letter}.")
    first, second, *_, last = write.requests
    assert section(first, "Earlier summaries") == ["(none)"]
    assert section(first, "Latest summary") == ["No summaries yet."]
    assert section(second, "Earlier summaries") == ["(none)"]
    assert section(second, "Latest summary") == ["- State a."]
    assert section(last, "Earlier summaries") == ["- State c.", "- State d."]
    assert section(last, "Latest summary") == ["- State e."]
    assert section(judge.requests[0], "Latest summaries") == ["No summaries yet."]
    told = [f"- State {letter}." for letter in "cde"]
    assert section(judge.requests[-1], "Latest summaries") == told
    event = exaid.log.summaries[-1]
    assert event.summary_history_event_ids == ("case-live-V0-se-002", "case-live-V0-se-003")
    assert event.latest_summary_event_id == "case-live-V0-se-004"


@virtual_time
async def test_the_past_has_a_limit_of_size() -> None:
    drafts = [SummaryDraft(status_action=letter * 38) for letter in "abcd"]  # 10 CTU as a line
    write = model(*drafts)
    exaid = make_exaid(model(SHIFT), write, history_ctu=29)
    for _ in range(5):
        await exaid.received_trace("doctor", "Fever.")
    assert section(write.requests[-1], "Earlier summaries") == ["- " + "b" * 38, "- " + "c" * 38]
    assert section(write.requests[-1], "Latest summary") == ["- " + "d" * 38]
    assert len(exaid.log.summaries[-1].summary_history_event_ids) == 2


# When decisions are made


@virtual_time
async def test_published_text_waits_for_company() -> None:
    judge = model(WAIT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS, linger=0.5)
    bus = watched_bus(exaid)
    for seconds in (0.0, 0.3, 0.3):
        await asyncio.sleep(seconds)
        bus.start_turn("doctor").say("It is fever and cough.")
    await asyncio.sleep(1)
    assert [decision.covered for decision in exaid.log.decisions] == [(0, 1), (2,)]


@pytest.mark.parametrize(("longest", "then"), [(60.0, 3.0), (1.0, 1.0), (0.1, 0.5)])
@virtual_time
async def test_slow_decisions_let_more_text_come_together(longest: float, then: float) -> None:
    judge = model(WAIT)
    slow = Slow(judge, lambda: 3.0)
    exaid = make_exaid(slow, model(STABLE), gate=WORDS, linger=0.5, longest_linger=longest)
    bus = watched_bus(exaid)
    bus.start_turn("doctor").say("It is fever and cough.")
    await asyncio.sleep(10)
    bus.start_turn("doctor").say("It is fever and rash.")
    await asyncio.sleep(then + 2.99)
    assert len(judge.requests) == 1
    await asyncio.sleep(0.02)
    assert len(judge.requests) == 2


@virtual_time
async def test_an_alarm_does_not_wait_and_neither_does_a_trace() -> None:
    judge, write = model(NO_ALARM), model(STABLE)
    exaid = make_exaid(judge, write, gate=WORDS, linger=60.0)
    bus = watched_bus(exaid)
    bus.start_turn("nurse").say("He is in cardiac arrest.")
    await asyncio.sleep(0.001)
    assert (len(judge.requests), len(write.requests)) == (0, 1), "no model is asked about it"
    await exaid.received_trace("doctor", "Fever.")
    assert asyncio.get_running_loop().time() < 1
    assert len(exaid.summaries) == 1


@virtual_time
async def test_silence_lets_text_through() -> None:
    judge = model(SHIFT)
    exaid = make_exaid(judge, model(STABLE), gate=WORDS)
    bus = watched_bus(exaid)
    turn = bus.start_turn("doctor")
    turn.say("Fever ")
    await asyncio.sleep(0.9)
    turn.say("and ")
    await asyncio.sleep(0.9)
    assert judge.requests == []
    await asyncio.sleep(0.2)
    assert newest_block(judge.requests[0]) == [("doctor", "Fever and ")]
    (flush,) = exaid.log.flushes
    assert flush.trigger_reason == "silence_timer"
    assert flush.timestamp == "2025-12-24T18:13:21.900Z"
    assert exaid.summaries[0].source_seqs == ((1, 2),)
    turn.say("cough")
    await asyncio.sleep(1.1)
    assert len(exaid.log.flushes) == 2, "the timer runs again after each flush"


@virtual_time
async def test_tokens_are_let_through_by_silence_too() -> None:
    exaid = make_exaid(model(SHIFT), model(STABLE), gate=WORDS)
    assert await exaid.on_new_token("doctor", "Fever") is None
    await asyncio.sleep(1.1)
    assert exaid.summaries[0].agents == ("doctor",)


@virtual_time
async def test_an_alarm_that_the_gate_cuts_in_two_is_heard() -> None:
    exaid = make_exaid(model(NO_ALARM), model(STABLE), gate=WORDS)
    bus = watched_bus(exaid)
    turn = bus.start_turn("nurse")
    for word in ["The patient is now in card", "iac arrest", " and we begin resuscitation"]:
        turn.say(word)
        await asyncio.sleep(0.1)
    assert [decision.trigger for decision in exaid.log.decisions] == ["none", "lexical_alert"]
    turn.say(" as one should by the book")
    turn.end()
    await asyncio.sleep(0.1)
    assert exaid.log.decisions[-1].trigger == "none", "once is enough"
    bus.start_turn("nurse").say("Arrest warrants are no matter of ours")
    await asyncio.sleep(0.1)
    assert exaid.log.decisions[-1].trigger == "none", "another turn is another text"
