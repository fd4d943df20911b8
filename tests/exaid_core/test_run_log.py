"""The run log: what EXAID did, in records that a reader can trust."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from exaid_core.exaid import EXAID
from exaid_core.policy import TriggerPolicy
from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from exaid_core.token_gate.token_gate import GateProfile
from exaid_core.trace.bus import TraceBus
from exaid_core.trace.files import read_records, write_gz
from exaid_core.trace.run_records import (
    BufferDecision,
    RunMeta,
    RunRecord,
    SummaryEvent,
    TokengateFlush,
)
from mdagents_llm.chat import StopReason, TokenUsage
from mdagents_llm.errors import StructuredOutputError
from tests.exaid_core.models import (
    DOWN,
    SHIFT,
    STABLE,
    WAIT,
    Outcome,
    analysis,
    make_exaid,
    model,
)
from tests.support.virtual_time import now_ms, virtual_time

GATE = GateProfile(min_words=3, max_words=5, silence_timer=1.0, max_wait_timeout=4.0)
RECORD: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
META = {
    "created_at": "2025-12-24T22:26:50Z",
    "mas_run_id": "mas_1",
    "eval_run_id": "eval-live-1",
}
TOO_LONG = SummaryDraft(key_findings="fever " * 40)
MALFORMED = StructuredOutputError(
    "none of the fields", text="{}", usage=TokenUsage(7, 3), stop_reason=StopReason.STOP
)
TALK = [
    ("one", "Fever since \udcff Monday. "),
    ("two", "Cough "),
    ("one", "No rash. Pulse 128. "),
    ("two", "without sputum, nothing else.\n"),
    ("one", "Answer: A"),
    ("two", "Answer: B"),
]


async def logged(
    judge: Sequence[Outcome] = (SHIFT,), write: Sequence[Outcome] = (STABLE,), **settings: Any
) -> EXAID:
    """An EXAID that has followed a short case to its end."""
    exaid = make_exaid(model(*judge), model(*write), case_id="case-7", gate=GATE, **settings)
    bus = TraceBus(now_ms)
    bus.subscribe(exaid.on_event)
    turns = {agent: bus.start_turn(agent) for agent in ("one", "two")}
    for agent, text in TALK:
        turns[agent].say(text)
        await asyncio.sleep(0.25)
    for turn in turns.values():
        turn.end()
    await exaid.close(10)
    return exaid


def records_of(exaid: EXAID) -> list[RunRecord]:
    """The records as a reader of the file gets them."""
    return [RECORD.validate_python(json.loads(line)) for line in exaid.log.lines(**META)]


@pytest.mark.parametrize("policy", TriggerPolicy)
@pytest.mark.parametrize(
    ("judge", "write"),
    [
        ([SHIFT], [STABLE]),
        ([WAIT, SHIFT], [TOO_LONG]),
        ([DOWN], [DOWN]),
        ([MALFORMED, SHIFT], [MALFORMED, STABLE]),
    ],
)
@virtual_time
async def test_every_record_is_one_of_exaid_run(
    policy: TriggerPolicy, judge: Sequence[Outcome], write: Sequence[Outcome]
) -> None:
    exaid = await logged(judge, write, policy=policy, chunk_ctu=5)
    meta, *records = records_of(exaid)
    assert isinstance(meta, RunMeta)
    assert meta.trigger_policy is policy
    assert meta.variant_id == f"V{list(TriggerPolicy).index(policy)}"
    kinds = [type(record) for record in records]
    counts = [kinds.count(kind) for kind in (TokengateFlush, BufferDecision, SummaryEvent)]
    assert (
        kinds
        == [TokengateFlush] * counts[0] + [BufferDecision] * counts[1] + [SummaryEvent] * counts[2]
    )
    assert {record.case_id for record in records if not isinstance(record, RunMeta)} == {"case-7"}
    assert counts[0] > 0
    assert (counts[1] > 0) is (policy not in (TriggerPolicy.TURN_END, TriggerPolicy.NO_BUFFER))

    flushes, decisions, events = exaid.log.flushes, exaid.log.decisions, exaid.log.summaries
    assert [flush.flush_index for flush in flushes] == list(range(counts[0]))
    variant = meta.variant_id
    assert [(decision.decision_index, decision.decision_id) for decision in decisions] == [
        (index, f"case-7-{variant}-bd-{index:03d}") for index in range(counts[1])
    ]
    assert [(event.event_index, event.event_id) for event in events] == [
        (index, f"case-7-{variant}-se-{index:03d}") for index in range(counts[2])
    ]
    for records_of_a_kind in (flushes, decisions, events):
        assert all(one.timestamp <= other.timestamp for one, other in pairwise(records_of_a_kind))
    covered = [index for decision in decisions for index in decision.covered or ()]
    assert all(one < other for one, other in pairwise(covered))


@virtual_time
async def test_a_flush_says_what_was_let_through() -> None:
    exaid = await logged()
    first = exaid.log.flushes[0]
    text = TALK[0][1]
    assert first.model_dump(mode="json", exclude_unset=True) == {
        "record_type": "tokengate_flush",
        "case_id": "case-7",
        "variant_id": "V0",
        "timestamp": "2025-12-24T18:13:20.000Z",
        "flush_index": 0,
        "start_seq": 2,
        "end_seq": 2,
        "accumulated_ctu": -(-len(text) // 4),
        "trigger_reason": "boundary_cue",
        "text_hash": "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    }
    last_of_all = exaid.log.flushes[-1]
    assert (last_of_all.start_seq, last_of_all.end_seq) == (7, 7)
    assert last_of_all.trigger_reason == "turn_end"


@virtual_time
async def test_a_decision_says_how_it_came_about() -> None:
    exaid = await logged([analysis("TOPIC_SHIFT", novel=False, final=True)])
    first = exaid.log.decisions[0]
    assert first.decision == "buffer"
    assert first.trigger == "none"
    assert first.trigger_mismatch is True
    assert first.filter_results is not None
    assert first.filter_results.model_dump() == {
        "completeness_passed": True,
        "value_passed": True,
        "novelty_passed": False,
    }
    assert (first.start_seq, first.end_seq, first.covered) == (2, 2, (0,))
    assert first.input_ctu == exaid.log.flushes[0].accumulated_ctu
    assert first.failure_mode is None
    assert first.llm_usage.provider_prompt_tokens == 10
    assert first.llm_usage.model_id == "function"


@virtual_time
async def test_a_failed_decision_has_no_judgements() -> None:
    exaid = await logged([DOWN])
    asked = [decision for decision in exaid.log.decisions if decision.latency_ms is not None]
    assert asked
    for decision in asked:
        assert decision.filter_results is None
        assert decision.failure_mode == "the provider is down"
        assert decision.trigger_mismatch is False
        assert decision.llm_usage.provider_prompt_tokens is None
        assert decision.llm_usage.completion_ctu == 0


@virtual_time
async def test_novelty_is_not_judged_without_it() -> None:
    exaid = await logged([analysis("TOPIC_SHIFT", novel=False)], policy=TriggerPolicy.NO_NOVELTY)
    for decision in exaid.log.decisions:
        assert decision.decision == "summarize"
        assert decision.filter_results is not None
        assert decision.filter_results.novelty_passed is None


@pytest.mark.parametrize(
    ("policy", "trigger"),
    [
        (TriggerPolicy.FULL_EXAID, "buffer_agent"),
        (TriggerPolicy.TURN_END, "turn_end"),
        (TriggerPolicy.NO_BUFFER, "tokengate_flush"),
        (TriggerPolicy.NO_TOKENGATE, "buffer_agent"),
        (TriggerPolicy.NO_NOVELTY, "buffer_agent"),
    ],
)
@virtual_time
async def test_a_summary_says_what_asked_for_it(policy: TriggerPolicy, trigger: str) -> None:
    exaid = await logged(policy=policy, coalesce=False)
    assert exaid.log.summaries
    assert {event.trigger_type.value for event in exaid.log.summaries} == {trigger}
    if policy is TriggerPolicy.TURN_END:
        assert [event.source_seqs for event in exaid.log.summaries] == [(2, 4, 6), (3, 5, 7)]
        assert {flush.trigger_reason for flush in exaid.log.flushes} == {"turn_end"}


@virtual_time
async def test_chunks_of_a_fixed_size_have_no_reason_of_the_gate() -> None:
    exaid = await logged(policy=TriggerPolicy.NO_TOKENGATE, chunk_ctu=5)
    *chunks, last = [flush for flush in exaid.log.flushes if flush.start_seq % 2]
    assert {chunk.trigger_reason for chunk in chunks} == {None}
    assert all(chunk.accumulated_ctu >= 5 for chunk in chunks)
    assert last.trigger_reason == "turn_end"


@virtual_time
async def test_a_summary_event_is_the_summary_that_was_shown() -> None:
    exaid = await logged(write=[TOO_LONG, SummaryDraft(status_action="Give 5 mg.")])
    events = exaid.log.summaries
    assert len(events) == len(exaid.summaries)
    for event, summary in zip(events, exaid.summaries, strict=True):
        assert event.summary_content is not None
        assert event.summary_content.model_dump() == {
            name: getattr(summary, name) for name in LIMITS
        }
        assert event.summary_semantics_text == summary.semantics_text()
        assert event.summary_ctu == -(-len(summary.semantics_text()) // 4)
        assert event.unsupported_terms == summary.unsupported_terms
        assert event.truncated_fields == summary.truncated_fields
        assert event.dissent_missing is summary.dissent_missing
        ranges = [range(first, last + 1) for first, last in summary.source_seqs]
        assert event.source_seqs == tuple(seq for numbers in ranges for seq in numbers)
        assert (event.start_seq, event.end_seq) == (event.source_seqs[0], event.source_seqs[-1])
    assert events[0].latest_summary_event_id is None
    for before, event in pairwise(events):
        assert event.latest_summary_event_id == before.event_id
    assert events[0].limits_ok, "the repair was in time"
    assert events[0].unsupported_terms == ("5 mg",)


@virtual_time
async def test_a_cut_is_a_violation_of_a_limit() -> None:
    event = (await logged(write=[TOO_LONG])).log.summaries[0]
    assert (event.limits_ok, event.schema_ok) == (False, True)
    assert event.failure_mode == "length_limit_violation"
    assert event.truncated_fields == ("key_findings",)
    assert event.llm_usage.provider_prompt_tokens == 20, "the repair is counted"


@pytest.mark.parametrize(
    ("outcome", "failure"),
    [(DOWN, "unexpected_error"), (MALFORMED, "schema_validation_error")],
)
@virtual_time
async def test_a_failed_summary_is_an_event_without_content(outcome: Outcome, failure: str) -> None:
    exaid = await logged(write=[outcome])
    assert exaid.summaries == []
    for event in exaid.log.summaries:
        assert event.failure_mode == failure
        assert (event.schema_ok, event.schema_error) == (False, str(outcome))
        assert (event.summary_semantics_text, event.summary_ctu) == ("", 0)
        assert event.summary_content is None
        assert event.latest_summary_event_id is None
        assert event.source_seqs


@pytest.mark.parametrize("policy", TriggerPolicy)
def test_the_same_talk_gives_the_same_bytes(policy: TriggerPolicy, tmp_path: Path) -> None:
    @virtual_time
    async def written(name: str) -> bytes:
        exaid = await logged(
            [WAIT, SHIFT, DOWN], [TOO_LONG, DOWN, STABLE], policy=policy, chunk_ctu=5
        )
        write_gz(tmp_path / name, exaid.log.lines(**META))
        return (tmp_path / name).read_bytes()

    assert written("one.gz") == written("two.gz")
    records = [content for _, content in read_records(tmp_path / "one.gz")]
    assert records[0]["record_type"] == "run_meta"
    assert all(list(record) == sorted(record) for record in records)


@virtual_time
async def test_the_settings_are_in_the_head() -> None:
    (one,) = [json.loads(line) for line in make_exaid(model(WAIT), model(STABLE)).log.lines(**META)]
    exaid = make_exaid(model(WAIT), model(STABLE), gate=GATE, history_k=1)
    (other,) = [json.loads(line) for line in exaid.log.lines(**META)]
    assert (one["history_k"], other["history_k"]) == (3, 1)
    assert one["tokengate_config_hash"] != other["tokengate_config_hash"]
    assert one["determinism"] == {
        "gzip_mtime": 0,
        "json_separators": [",", ":"],
        "json_sort_keys": True,
    }
    assert {name: one[name] for name in META} == META
