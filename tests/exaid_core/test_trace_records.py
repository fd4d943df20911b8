"""The models of trace files and run logs against examples and real files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from exaid_core.trace.files import read_records
from exaid_core.trace.records import (
    LAST_MS,
    StreamDelta,
    TraceMeta,
    TraceRecord,
    TurnBoundary,
    content_hash,
)
from exaid_core.trace.run_records import (
    BufferAction,
    BufferDecision,
    RunMeta,
    RunRecord,
    SummaryEvent,
    TokengateFlush,
    decision_id,
    event_id,
)
from mdagents_llm.clock import ms_of, timestamp_of
from tests.conftest import REAL_TRACES, SHARED

trace_record: TypeAdapter[TraceRecord] = TypeAdapter(TraceRecord)
run_record: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)

H = "sha256:" + "a1" * 32
CASE: dict[str, Any] = {"case_id": "case-7"}
OF_RUN = CASE | {"variant_id": "V0", "timestamp": "2025-12-21T10:30:00.500Z"}
USAGE = {
    "prompt_ctu": 35,
    "completion_ctu": 5,
    "provider_prompt_tokens": None,
    "provider_completion_tokens": 7,
    "model_id": "gpt-4o-mini",
}

TRACE_META = CASE | {
    "record_type": "trace_meta",
    "schema_version": "2.0.0",
    "mas_run_id": "mas_1d5b227a_gpt4omini",
    "mac_commit": "1d5b227a",
    "model": "gpt-4o-mini",
    "created_at": "2025-12-24T22:26:50.697088+00:00",
    "t0_emitted_ms": 1766615129741,
}
STREAM_DELTA = CASE | {
    "record_type": "stream_delta",
    "seq": 1,
    "turn_id": 1,
    "agent_id": "expert-1-surgeon",
    "delta_text": "Fever",
    "t_emitted_ms": 1766615129741,
    "t_rel_ms": 0,
}
TURN_BOUNDARY = CASE | {
    "record_type": "turn_boundary",
    "seq": 0,
    "turn_id": 1,
    "agent_id": "expert-1-surgeon",
    "boundary": "start",
    "t_ms": 1766615128535,
    "t_rel_ms": -1206,
}
RUN_META = CASE | {
    "record_type": "run_meta",
    "schema_name": "exaid.run",
    "schema_version": "1.5.0",
    "created_at": "2025-12-21T10:30:00.000Z",
    "variant_id": "V0",
    "mas_run_id": "mas_1d5b227a_gpt4omini",
    "eval_run_id": "eval-V0-b2c3d4e5-8d45cbb1",
    "history_k": 3,
    "trace_file_hash": H,
    "trace_dataset_hash": H,
    "tokengate_config_hash": H,
    "concept_extractor": {"name": "embedded", "version": "1", "terminology_hash": H},
    "stoplists_provenance": {
        "stop_entities_hash": H,
        "stop_cuis_hash": H,
        "stoplist_df_report_hash": H,
        "stoplists_generated_at": "2025-12-21T10:00:00Z",
    },
    "timestamp_derivation": {
        "method": "trace_t_emitted_ms",
        "fallback_method": "run_start_time_plus_seq",
        "derived_from_t_emitted": 45,
        "derived_from_fallback": 0,
        "missing_t_emitted_ms_count": 0,
    },
    "determinism": {
        "gzip_mtime": 0,
        "json_sort_keys": True,
        "json_separators": [",", ":"],
    },
}
TOKENGATE_FLUSH = OF_RUN | {
    "record_type": "tokengate_flush",
    "flush_index": 0,
    "start_seq": 0,
    "end_seq": 10,
    "accumulated_ctu": 45,
}
BUFFER_DECISION = OF_RUN | {
    "record_type": "buffer_decision",
    "decision_index": 0,
    "decision_id": "case-7-V0-bd-000",
    "input_ctu": 35,
    "decision": "summarize",
    "llm_usage": USAGE,
}
SUMMARY_EVENT = OF_RUN | {
    "record_type": "summary_event",
    "event_index": 1,
    "event_id": "case-7-V0-se-001",
    "start_seq": 11,
    "end_seq": 15,
    "trigger_type": "buffer_agent",
    "summary_history_event_ids": ["case-7-V0-se-000"],
    "summarizer_input_hash": H,
    "limits_ok": True,
    "failure_mode": None,
    "schema_ok": True,
    "summary_semantics_text": "Patient presents with fever",
    "summary_ctu": 7,
    "llm_usage": USAGE,
}
"""Each record with its required fields, and no other."""

MINIMAL: list[tuple[TypeAdapter[Any], type[BaseModel], dict[str, Any]]] = [
    (trace_record, TraceMeta, TRACE_META),
    (trace_record, StreamDelta, STREAM_DELTA),
    (trace_record, TurnBoundary, TURN_BOUNDARY),
    (run_record, RunMeta, RUN_META),
    (run_record, TokengateFlush, TOKENGATE_FLUSH),
    (run_record, BufferDecision, BUFFER_DECISION),
    (run_record, SummaryEvent, SUMMARY_EVENT),
]

OPTIONAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        TRACE_META,
        {
            "exaid_commit": "unknown",
            "decoding": {"temperature": 1.0, "top_p": None, "max_tokens": 4096, "seed": 1},
            "t0_definition": "t_emitted_ms of first stream_delta record",
            "stub_mode": False,
            "total_turns": 16,
            "total_deltas": 4434,
        },
    ),
    (TURN_BOUNDARY, {"boundary": "end", "content_hash": H, "content_hash_input": "UTF-8 bytes"}),
    (
        RUN_META,
        {
            "trigger_policy": "full_exaid",
            "concept_extractor": {
                "name": "scispacy",
                "version": "1",
                "terminology_hash": None,
                "spacy_version": "3.7.4",
                "scispacy_version": "0.5.4",
                "scispacy_model": "en_core_sci_sm",
                "linker_name": "umls",
                "linker_kb_version": "2023AB",
                "linker_resolve_abbreviations": True,
                "linker_max_entities_per_mention": 10,
                "linker_threshold": 0.7,
                "cui_score_threshold": 0.7,
                "max_k": 10,
                "min_entity_len": 3,
                "concept_representation": "cui",
                "cui_normalization": "uppercase",
            },
        },
    ),
    (RUN_META, {"trace_file_hash": None, "trace_dataset_hash": None, "stoplists_provenance": {}}),
    (TOKENGATE_FLUSH, {"trigger_reason": "end_of_trace", "text_hash": H}),
    (
        BUFFER_DECISION,
        {
            "start_seq": 0,
            "end_seq": 10,
            "covered": [0, 1],
            "trigger": "topic_shift",
            "filter_results": {
                "completeness_passed": True,
                "value_passed": False,
                "novelty_passed": None,
            },
            "latency_ms": 500,
            "failure_mode": "timeout",
            "trigger_mismatch": True,
        },
    ),
    (
        SUMMARY_EVENT,
        {
            "source_seqs": [11, 12, 15],
            "latest_summary_event_id": "case-7-V0-se-000",
            "failure_mode": "length_limit_violation",
            "schema_error": None,
            "summary_content": {
                "status_action": "a",
                "key_findings": "b",
                "differential_rationale": "c",
                "uncertainty_confidence": "d",
                "recommendation_next_step": "e",
                "agent_contributions": "f",
            },
            "truncated_fields": ["key_findings"],
            "full_texts": {"key_findings": "b and c"},
            "unsupported_terms": ["5 mg"],
            "dissent_missing": True,
            "clipped": True,
            "alerts": ["cardiac arrest"],
            "alert_missing": True,
            "emptied_fields": ["agent_contributions"],
            "part": 1,
            "covered": [0, 2],
            "remarks": ["no next step"],
            "new_buffer_text_hash": H,
            "latency_ms": 1250,
        },
    ),
]

WRONG: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (TRACE_META, {"schema_version": "2.0.1"}),
    (TRACE_META, {"case_id": "7"}),
    (TRACE_META, {"case_id": "case-7\n"}),
    (TRACE_META, {"mas_run_id": "mas-1"}),
    (TRACE_META, {"created_at": "24.12.2025"}),
    (TRACE_META, {"created_at": "2025-12-24T22:26:50"}),
    (TRACE_META, {"t0_emitted_ms": LAST_MS + 1}),
    (TRACE_META, {"total_turns": "16"}),
    (TRACE_META, {"stub_mode": 0}),
    (TRACE_META, {"decoding": {"top_p": 1.0}}),
    (STREAM_DELTA, {"turn_id": 0}),
    (STREAM_DELTA, {"seq": -1}),
    (STREAM_DELTA, {"seq": True}),
    (STREAM_DELTA, {"seq": 1.0}),
    (STREAM_DELTA, {"delta_text": None}),
    (TURN_BOUNDARY, {"boundary": "middle"}),
    (TURN_BOUNDARY, {"content_hash": H}),
    (TURN_BOUNDARY, {"boundary": "end", "content_hash": H.upper()}),
    (RUN_META, {"variant_id": "V5"}),
    (RUN_META, {"eval_run_id": "eval_1"}),
    (RUN_META, {"trigger_policy": "off"}),
    (RUN_META, {"tokengate_config_hash": None}),
    (TOKENGATE_FLUSH, {"trigger_reason": "max_tokens"}),
    (BUFFER_DECISION, {"decision_id": "case-7-V0-bd-00"}),
    (BUFFER_DECISION, {"decision_id": "case-7-V0-se-000"}),
    (BUFFER_DECISION, {"decision": "summarise"}),
    (BUFFER_DECISION, {"covered": [-1]}),
    (BUFFER_DECISION, {"covered": "01"}),
    (BUFFER_DECISION, {"filter_results": {"completeness_passed": 1, "value_passed": True}}),
    (BUFFER_DECISION, {"llm_usage": {"prompt_ctu": 1, "completion_ctu": 1}}),
    (SUMMARY_EVENT, {"failure_mode": "timeout"}),
    (SUMMARY_EVENT, {"trigger_type": "forced"}),
    (SUMMARY_EVENT, {"summary_history_event_ids": ["case-7-V0-bd-000"]}),
    (SUMMARY_EVENT, {"summary_content": {"status_action": "a"}}),
]


def adapter_of(record: Mapping[str, Any]) -> TypeAdapter[Any]:
    return next(a for a, _, known in MINIMAL if known["record_type"] == record["record_type"])


@pytest.mark.parametrize("path", REAL_TRACES, ids=lambda path: path.name)
def test_every_record_of_a_real_trace_is_valid(path: Path) -> None:
    kinds = {type(trace_record.validate_python(content)) for _, content in read_records(path)}
    assert kinds == {TraceMeta, StreamDelta, TurnBoundary}


def test_the_real_traces_are_there_or_their_folder_is_not() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared data is not here")
    assert len(REAL_TRACES) == 4


@pytest.mark.parametrize(("adapter", "model", "record"), MINIMAL)
def test_starred_fields_are_enough_and_each_is_needed(
    adapter: TypeAdapter[Any], model: type[BaseModel], record: dict[str, Any]
) -> None:
    read = adapter.validate_python(record)
    assert type(read) is model
    assert read.model_dump(mode="json", exclude_unset=True) == record
    for name in record:
        with pytest.raises(ValidationError):
            adapter.validate_python({key: record[key] for key in record if key != name})


@pytest.mark.parametrize(("adapter", "model", "record"), MINIMAL)
def test_other_properties_are_refused(
    adapter: TypeAdapter[Any], model: type[BaseModel], record: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        adapter.validate_python(record | {"mood": "good"})


@pytest.mark.parametrize(("record", "more"), OPTIONAL)
def test_optional_fields_are_read_and_kept_as_they_are(
    record: dict[str, Any], more: dict[str, Any]
) -> None:
    whole = record | more
    read = adapter_of(record).validate_python(whole)
    assert read.model_dump(mode="json", exclude_unset=True) == whole


def test_every_optional_field_is_tried() -> None:
    for _, model, record in MINIMAL:
        tried = set(record).union(*(more for known, more in OPTIONAL if known is record))
        assert tried == set(model.model_fields)


@pytest.mark.parametrize(("record", "change"), WRONG)
def test_wrong_values_are_refused(record: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        adapter_of(record).validate_python(record | change)


@pytest.mark.parametrize("adapter", [trace_record, run_record])
def test_the_json_schema_says_what_the_models_say(adapter: TypeAdapter[Any]) -> None:
    schema = adapter.json_schema()
    models = [(model, record) for known, model, record in MINIMAL if known is adapter]
    assert [entry["$ref"] for entry in schema["oneOf"]] == [
        f"#/$defs/{model.__name__}" for model, _ in models
    ]
    for model, record in models:
        definition = schema["$defs"][model.__name__]
        assert set(definition["required"]) == set(record)
    objects = [entry for entry in schema["$defs"].values() if entry["type"] == "object"]
    assert all(entry["additionalProperties"] is False for entry in objects)


def test_the_json_schema_knows_that_a_start_has_no_hash() -> None:
    boundary = trace_record.json_schema()["$defs"]["TurnBoundary"]
    assert boundary["if"] == {"properties": {"boundary": {"const": "start"}}}
    assert boundary["then"] == {"properties": {"content_hash": {"type": "null"}}}


def test_records_cannot_be_changed() -> None:
    decision = BufferDecision.model_validate(BUFFER_DECISION)
    with pytest.raises(ValidationError):
        decision.decision = BufferAction.DISCARD
    assert hash(decision) == hash(BufferDecision.model_validate(BUFFER_DECISION))


@pytest.mark.sweep
@given(
    st.from_regex(r"case-[A-Za-z0-9-]{1,20}", fullmatch=True),
    st.sampled_from(["V0", "V4"]),
    st.integers(0, 10**6),
)
def test_ids_are_those_that_the_records_ask_for(case_id: str, variant: str, index: int) -> None:
    names = {"case_id": case_id, "variant_id": variant}
    made = decision_id(case_id, variant, index)
    decision = BufferDecision.model_validate(BUFFER_DECISION | names | {"decision_id": made})
    assert decision.decision_id == made
    made = event_id(case_id, variant, index)
    event = SummaryEvent.model_validate(SUMMARY_EVENT | names | {"event_id": made})
    assert event.event_id == made


def test_ids_look_as_in_the_seed() -> None:
    assert decision_id("case-33651373", "V0", 0) == "case-33651373-V0-bd-000"
    assert event_id("case-33651373", "V0", 12) == "case-33651373-V0-se-012"
    assert event_id("case-33651373", "V0", 1234) == "case-33651373-V0-se-1234"


def test_timestamps_look_as_in_the_seed() -> None:
    assert timestamp_of(1766313001234) == "2025-12-21T10:30:01.234Z"
    assert timestamp_of(0) == "1970-01-01T00:00:00.000Z"


@given(st.integers(0, LAST_MS))
def test_timestamps_name_the_millisecond(ms: int) -> None:
    timestamp = timestamp_of(ms)
    since = datetime.fromisoformat(timestamp) - datetime(1970, 1, 1, tzinfo=UTC)
    assert since // timedelta(milliseconds=1) == ms == ms_of(timestamp)
    TraceMeta.model_validate(TRACE_META | {"created_at": timestamp})


def test_the_content_hash_is_that_of_the_joined_utf_8_text() -> None:
    expected = "sha256:" + hashlib.sha256("Fever 39 °C".encode()).hexdigest()
    assert content_hash(["Fe", "ver", "", " 39 °C"]) == expected
    assert content_hash([]) == "sha256:" + hashlib.sha256(b"").hexdigest()


@given(st.text(st.characters(codec="utf-8")), st.integers(0))
def test_the_content_hash_does_not_depend_on_where_text_is_cut(text: str, cut: int) -> None:
    cut %= len(text) + 1
    assert content_hash([text[:cut], text[cut:]]) == content_hash([text])


@pytest.mark.parametrize(
    ("text", "as_written"),
    [("a\ud83d", "a\ufffd"), ("\ude00a", "\ufffda"), ("\ud83d\ude00", "😀"), ("°", "°")],
)
def test_half_a_character_is_read_as_it_would_be_written(text: str, as_written: str) -> None:
    delta = StreamDelta.model_validate(STREAM_DELTA | {"delta_text": text})
    assert delta.delta_text == as_written
    assert content_hash([text]) == content_hash([as_written])
