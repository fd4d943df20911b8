"""Every metric on a case that was worked out by hand, and the means over cases."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from evals.aggregate import aggregate, bootstrap, flag_outliers
from evals.concepts import Concept, TermExtractor
from evals.figures import draw_metrics
from evals.metrics import CaseMeasures, jaccard, measure
from evals.metrics_records import AggregateMetrics, PerCaseMetrics
from evals.report import metrics_table, number
from evals.run_logs import Chunk, Decision, Event, Meta, RunLogFile, Usage
from evals.trace_text import TraceText
from exaid_core.trace.run_records import ConceptExtractorInfo, StoplistsProvenance
from exaid_core.trace.traces import read_trace, write_trace
from tests.evals.conftest import META
from tests.support.trace_events import ends, says, starts


class Letters:
    """Concepts are words like c1 and x1."""

    info = ConceptExtractorInfo(name="letters", version="1", terminology_hash=None)

    def extract(self, text: str) -> frozenset[Concept]:
        return frozenset(map(Concept, re.findall(r"\b[cx]\d+\b", text)))


# The trace: ten concepts, two turns, and one turn that only hands over to b.
#
#   seq   turn  t_ms  text                        characters
#   1     1 a   1000  "c1 c2 "                     6
#   2     1 a   2000  "c3 c4 cardiac arrest "     21
#   3     1 a   3000  "c5 c6 "                     6
#   4     1 a   4000  "c7 c8"                      5      turn 1: 38 characters, 10 CTU
#   7     2 a   4500  "b"                          (no content: the label of an agent)
#   10    3 b   5000  "c9 "                        3
#   11    3 b   6000  "c10 anaphylaxis"           15      turn 3: 18 characters,  5 CTU
#                                          content: 56 characters, 15 CTU
@pytest.fixture
def trace(tmp_path: Path) -> TraceText:
    first = ["c1 c2 ", "c3 c4 cardiac arrest ", "c5 c6 ", "c7 c8"]
    events = [
        starts(1, "a", 0, 900),
        *(says(1, "a", seq, text, 1000 * seq) for seq, text in enumerate(first, start=1)),
        ends(1, "a", 5, 4100),
        starts(2, "a", 6, 4400),
        says(2, "a", 7, "b", 4500),
        ends(2, "a", 8, 4600),
        starts(3, "b", 9, 4900),
        says(3, "b", 10, "c9 ", 5000),
        says(3, "b", 11, "c10 anaphylaxis", 6000),
        ends(3, "b", 12, 6100),
    ]
    path = tmp_path / "case-1.trace.jsonl.gz"
    write_trace(path, events, case_id="case-1", **META)
    return TraceText.of(read_trace(path))


# The log: three short summaries and one failed event.
#
#   event  window  concepts         latest  ctu  ms   prompt/completion
#   0      1-2     c1 c2 x1         -       200  100  10/1
#   1      3-3     c1 c2 c5         0       100  200  20/2
#   2      4-4     failed           1         0  300  30/3
#   3      4-10    c7 c9 c1         1       300  400  40/4
#
# Decisions to summarise: one on 1-2 (3 CTU, 10 ms, 5/1), one on 3-3 (4 CTU, 30 ms, 7/1); the last
# two events come without one, as when a case ends.
def make_log(**changes: Any) -> RunLogFile:
    def chunk(index: int, start: int, end: int, second: int) -> Chunk:
        return Chunk(
            flush_index=index,
            timestamp=f"1970-01-01T00:00:0{second}.000Z",
            start_seq=start,
            end_seq=end,
        )

    def event(index: int, window: tuple[int, int], text: str, **more: Any) -> Event:
        return Event(
            event_id=f"case-1-V0-se-{index:03d}",
            start_seq=window[0],
            end_seq=window[1],
            summary_semantics_text=text,
            latency_ms=100 * (index + 1),
            llm_usage=Usage(prompt_ctu=10 * (index + 1), completion_ctu=index + 1),
            **more,
        )

    log = RunLogFile(
        Path("case-1.jsonl.gz"),
        Meta(schema_version="1.5.0", case_id="case-1", variant_id="V0"),
        (
            chunk(0, 1, 2, 2),
            chunk(1, 3, 3, 3),
            chunk(2, 4, 4, 4),
            chunk(3, 10, 10, 5),
            chunk(4, 11, 11, 6),
        ),
        (
            Decision(
                start_seq=1,
                end_seq=2,
                decision="summarize",
                input_ctu=3,
                latency_ms=10,
                llm_usage=Usage(prompt_ctu=5, completion_ctu=1),
            ),
            Decision(
                start_seq=3,
                end_seq=3,
                covered=(1,),
                decision="summarize",
                input_ctu=4,
                latency_ms=30,
                llm_usage=Usage(prompt_ctu=7, completion_ctu=1),
            ),
        ),
        (
            event(0, (1, 2), "c1 c2 x1", summary_ctu=200),
            event(
                1, (3, 3), "c1 c2 c5", summary_ctu=100, latest_summary_event_id="case-1-V0-se-000"
            ),
            event(2, (4, 4), "c6", schema_ok=False, latest_summary_event_id="case-1-V0-se-001"),
            event(
                3,
                (4, 10),
                "c7 c9 c1",
                summary_ctu=300,
                source_seqs=(4, 10),
                latest_summary_event_id="case-1-V0-se-001",
            ),
        ),
    )
    return replace(log, **changes)


@pytest.fixture
def measures(trace: TraceText) -> CaseMeasures:
    return measure(make_log(), trace, Letters())


def test_m1_m2_updates_and_their_size(measures: CaseMeasures) -> None:
    # Four events, the failed one included; 200 + 100 + 0 + 300.
    assert measures.record.m1_update_count == 4
    assert measures.record.m2_output_ctu == 600


def test_m3_redundancy(measures: CaseMeasures) -> None:
    # {c1 c2 x1}, {c1 c2 c5}: 2 of 4. The failed one is left out: {c1 c2 c5}, {c7 c9 c1}: 1 of 5.
    assert list(measures.jaccards) == [0.5, 0.2]
    assert measures.record.m3_redundancy_jaccard_mean == pytest.approx(0.35)
    rates = measures.record.m3_redundancy_threshold_rates
    assert rates.model_dump() == {"tau_0.85": 0, "tau_0.90": 0, "tau_0.95": 0}


def test_m3_takes_two_summaries_and_is_not_defined_for_two_empty_ones(trace: TraceText) -> None:
    log = make_log()
    assert (
        measure(
            replace(log, events=log.events[:1]), trace, Letters()
        ).record.m3_redundancy_jaccard_mean
        is None
    )
    assert jaccard(frozenset(), frozenset()) is None


def test_m3_does_not_fall_with_failures_and_summaries_without_concepts(trace: TraceText) -> None:
    log = make_log()
    same, failed = log.events[0], log.events[2]
    empty = same.model_copy(update={"summary_semantics_text": "Stable."})

    def m3(*events: Event) -> tuple[float | None, float | None]:
        record = measure(replace(log, events=events), trace, Letters()).record
        return record.m3_redundancy_jaccard_mean, record.m3_redundancy_threshold_rates.tau_095

    assert m3(same, same, same, same) == (1, 1)
    assert m3(same, failed, same, failed) == (1, 1)  # one pair
    assert m3(same, same, empty, empty) == (0.5, 0.5)  # 1, 0 for a summary that repeats nothing
    assert m3(empty, empty, empty) == (None, None)
    assert m3(failed, failed, same) == (None, None)


def test_m3_rates_count_from_the_threshold_on(trace: TraceText) -> None:
    log = make_log()
    same = replace(log, events=(log.events[0], log.events[0], log.events[1]))
    rates = measure(same, trace, Letters()).record.m3_redundancy_threshold_rates
    assert rates.model_dump() == {"tau_0.85": 0.5, "tau_0.90": 0.5, "tau_0.95": 0.5}


def test_m4_coverage(measures: CaseMeasures) -> None:
    # Of ten concepts c1 c2 c5 c7 c9; x1 is not in the trace, c6 is in the failed one only.
    assert measures.record.m4_trace_cui_count == 10
    assert measures.record.m4_summary_cui_count == 6
    assert measures.record.m4_trace_coverage == 0.5


def test_m5_unsupported(measures: CaseMeasures) -> None:
    # x1 of six; by summary 1/3, 0, 0.
    assert measures.record.m5_unsupported_global_rate == pytest.approx(1 / 6)
    assert measures.record.m5_unsupported_per_summary_mean == pytest.approx(1 / 9)


def test_m6_unsupported_by_window(measures: CaseMeasures) -> None:
    # Windows {c1-c4}, {c5 c6}, {c7 c8 c9}: 1/3 (x1), 2/3 (c1 c2), 1/3 (c1). With the latest
    # summary as well: 1/3 (no summary yet), 0, 0. The failed event is left out.
    record = measures.record
    assert record.m6a_mean == pytest.approx(4 / 9)
    assert record.m6b_mean == pytest.approx(1 / 9)
    assert record.grounding_a == pytest.approx(5 / 9)
    assert record.grounding_b == pytest.approx(8 / 9)
    assert record.faithfulness_valid_event_count == 3
    assert record.excluded_from_faithfulness_count == 1
    assert record.m6_empty_count == 0


def test_m6_of_an_empty_summary_is_not_perfect(trace: TraceText) -> None:
    # 1/3 as before, and 1 for the summary without concepts.
    log = make_log()
    empty = log.events[1].model_copy(update={"summary_semantics_text": "None reported."})
    record = measure(replace(log, events=(log.events[0], empty)), trace, Letters()).record
    assert record.m6a_mean == pytest.approx(2 / 3)
    assert record.m6b_mean == pytest.approx(2 / 3)
    assert record.m6_empty_count == 1
    assert record.m5_unsupported_per_summary_mean == pytest.approx(1 / 3)


@pytest.mark.sweep
def test_m6b_is_never_above_m6a(trace: TraceText) -> None:
    # "MS" is multiple sclerosis unless the text says otherwise, as the latest summary does. The
    # window names the MS of the second summary: 0 of 1 is unsupported, whatever comes before.
    first, second = trace.turns
    said = replace(first, deltas=(first.deltas[0]._replace(text="MS is suspected. "),))
    window = replace(trace, turns=(said, second))
    latest, event = make_log().events[:2]
    latest = latest.model_copy(update={"summary_semantics_text": "Mitral stenosis (MS)."})
    changes = {"start_seq": 1, "end_seq": 1, "summary_semantics_text": "MS likely."}
    event = event.model_copy(update=changes)
    extractor = TermExtractor()
    assert extractor.extract("MS likely.").isdisjoint(extractor.extract("Mitral stenosis (MS)."))
    record = measure(make_log(events=(latest, event)), window, extractor).record
    # The first summary's one concept is not in the window: (1 + 0) / 2.
    assert record.m6a_mean == record.m6b_mean == 0.5


def test_m7b_coverage_by_budget(measures: CaseMeasures) -> None:
    # Sizes add up to 200, 300, 300, 600: within 250 the first, {c1 c2} of ten; within 500 the
    # first three, {c1 c2 c5}; then all.
    assert measures.record.m7b_coverage_by_budget.model_dump() == {
        "ctu_250": 0.2,
        "ctu_500": 0.3,
        "ctu_1000": 0.5,
        "ctu_2000": 0.5,
    }


def test_m8_latency(measures: CaseMeasures) -> None:
    # (100 + 200 + 300 + 400) / 4, the failed one included; (10 + 30) / 2.
    assert measures.record.m8_summary_latency_ms_mean == 250
    assert measures.record.m8_buffer_decision_latency_ms_mean == 20


def test_m9_cost(measures: CaseMeasures) -> None:
    # Prompts 10 + 20 + 30 + 40 + 5 + 7, replies 1 + 2 + 3 + 4 + 1 + 1, judged 3 + 4.
    record = measures.record
    assert record.m9_prompt_ctu_total == 112
    assert record.m9_completion_ctu_total == 12
    assert record.m9_total_llm_ctu == 124
    assert record.m9_buffer_decision_count == 2
    assert record.m9_buffer_decision_ctu == 7


def test_m10_compliance(measures: CaseMeasures) -> None:
    assert measures.record.m10_schema_failure_count == 1
    assert measures.record.m10_schema_failure_rate == 0.25
    assert measures.record.m10_compliance_rate == 0.75


def test_compression(measures: CaseMeasures) -> None:
    # 600 CTU of summaries for 15 CTU of trace.
    assert measures.record.compression_ratio == 1 - 600 / 15


def test_expected_latency(measures: CaseMeasures) -> None:
    # One step at a time, each from when its text is there and the one before is done:
    #   decision 1-2   2000 +  10 = 2010
    #   event 0        2010 + 100 = 2110   seq 1: 1110, seq 2: 110
    #   decision 3-3   3000 +  30 = 3030
    #   event 1        3030 + 200 = 3230   seq 3:  230
    #   event 2        4000 + 300 = 4300   failed, covers nothing
    #   event 3        5000 + 400 = 5400   seq 4: 1400, seq 10: 400
    # (1110 + 110 + 230 + 1400 + 400) / 5
    assert measures.record.expected_latency_ms == 650


def test_expected_latency_grows_while_steps_wait_for_each_other(trace: TraceText) -> None:
    # The first summary takes until 12,000; the second, of text that was there at 3000, is next.
    log = make_log()
    slow = log.events[0].model_copy(update={"latency_ms": 9990})
    record = measure(replace(log, events=(slow, log.events[1])), trace, Letters()).record
    # 12,000 less 1000 and 2000, and 12,000 + 30 + 200 less 3000.
    assert record.expected_latency_ms == pytest.approx((11_000 + 10_000 + 9230) / 3)


def test_tail_loss(measures: CaseMeasures) -> None:
    # Covered are 1, 2, 3, 4 and 10; "c10 anaphylaxis" is 14 letters of 45.
    assert measures.record.tail_loss == 14 / 45


def test_tail_loss_counts_what_is_left_out_in_the_middle(trace: TraceText) -> None:
    # The first and the last delta are covered: of turn 1 "c3 … c8" is left out, 25 letters; of
    # turn 3 "c9 ", 2. Nothing comes after the last covered one.
    log = make_log()
    event = log.events[0].model_copy(update={"source_seqs": (1, 11)})
    record = measure(replace(log, events=(event,)), trace, Letters()).record
    assert record.tail_loss == 27 / 45
    assert record.uncovered_tail == 0


def test_a_summary_of_no_delta_covers_none(trace: TraceText) -> None:
    log = make_log()
    event = log.events[0].model_copy(update={"source_seqs": (), "start_seq": 0, "end_seq": 99})
    assert measure(replace(log, events=(event,)), trace, Letters()).record.tail_loss == 1


def test_uncovered_tail(measures: CaseMeasures) -> None:
    # Nothing covers what comes after seq 10: 15 of 56 characters.
    assert measures.record.uncovered_tail == 15 / 56


def test_suppression(measures: CaseMeasures) -> None:
    # "cardiac arrest" is covered, "anaphylaxis" is not.
    assert measures.record.suppression_rate == 0.5


def rate_of_missed_alerts(
    trace: TraceText, *chunks: tuple[int, int], covered: tuple[int, ...] = ()
) -> float | None:
    log = make_log()
    flushed = tuple(Chunk(start_seq=start, end_seq=end) for start, end in chunks)
    event = log.events[0].model_copy(update={"source_seqs": covered})
    log = replace(log, chunks=flushed, events=(event,))
    return measure(log, trace, Letters()).record.suppression_rate


def test_an_alert_split_between_chunks_is_missed(trace: TraceText) -> None:
    first, second = trace.turns
    deltas = list(first.deltas)
    deltas[1:3] = deltas[1]._replace(text="in cardiac"), deltas[2]._replace(text=" arrest c5 ")
    split = replace(trace, turns=(replace(first, deltas=tuple(deltas)), second))
    # In one chunk, in two and in three: 1 of 1 is missed.
    for chunks in ([(1, 4)], [(1, 2), (3, 4)], [(1, 2), (3, 3), (4, 4)]):
        assert rate_of_missed_alerts(split, *chunks) == 1
    assert rate_of_missed_alerts(split, (1, 2)) is None  # "arrest" is in no chunk
    # Alerts are completed in 3 to 4 and in 10 to 11; one of both is covered.
    assert rate_of_missed_alerts(split, (1, 2), (3, 4), (10, 11), covered=(3, 4)) == 0.5


def test_an_alert_is_not_put_together_from_two_turns(trace: TraceText) -> None:
    first, second = trace.turns
    ends = replace(first, deltas=(first.deltas[0]._replace(text="in cardiac"),))
    begins = replace(second, deltas=(second.deltas[0]._replace(text="arrest"),))
    assert rate_of_missed_alerts(replace(trace, turns=(ends, begins)), (1, 1), (10, 10)) is None


def test_suppression_by_turn_where_the_log_has_no_chunks(trace: TraceText) -> None:
    # Turn 1 is covered by events 0, 1 and 3; turn 3 is covered in part only.
    assert measure(make_log(chunks=()), trace, Letters()).record.suppression_rate == 0.5


def test_a_log_without_events(trace: TraceText) -> None:
    record = measure(make_log(events=(), decisions=()), trace, Letters()).record
    assert record.m1_update_count == 0
    assert record.m4_trace_coverage == 0
    assert record.m5_unsupported_global_rate is None
    assert record.m5_unsupported_per_summary_mean is None
    assert record.m6a_mean is None
    assert record.m8_summary_latency_ms_mean is None
    assert record.m10_schema_failure_rate is None
    assert record.m10_compliance_rate is None
    assert record.expected_latency_ms is None
    assert record.tail_loss == 1
    assert record.suppression_rate == 1
    assert record.compression_ratio == 1


def test_an_empty_trace() -> None:
    record = measure(make_log(events=(), decisions=(), chunks=()), TraceText(()), Letters()).record
    assert record.m4_trace_coverage is None
    assert set(record.m7b_coverage_by_budget.model_dump().values()) == {None}
    assert record.compression_ratio is None
    assert record.tail_loss is None
    assert record.uncovered_tail is None
    assert record.suppression_rate is None


def test_m5_is_not_defined_without_a_concept_in_the_summaries(trace: TraceText) -> None:
    # A failed reply, and a valid summary that names no concept: 0 of 0 is not 0.
    failed = make_log().events[2]
    stable = make_log().events[0].model_copy(update={"summary_semantics_text": "Stable."})
    for events in ((failed,), (stable,), (failed, stable)):
        record = measure(make_log(events=events), trace, Letters()).record
        assert record.m5_unsupported_global_rate is None
        assert record.m4_trace_coverage == 0
        assert record.m10_compliance_rate == sum(event.schema_ok for event in events) / len(events)


def test_a_variant_without_a_usable_reply_is_not_the_most_faithful(
    trace: TraceText, measures: CaseMeasures
) -> None:
    # V0 names x1 besides five concepts of the trace; V1 names nothing in two of its three cases.
    nothing = measure(make_log(events=make_log().events[2:3]), trace, Letters())
    v0 = [case(measures, f"case-{i}") for i in range(3)]
    v1 = [case(measures, "case-0", m5_unsupported_global_rate=0.5)]
    v1 += [case(nothing, f"case-{i}") for i in (1, 2)]
    metrics = aggregated(V0=v0, V1=v1)
    assert metrics.variants["V0"].m5_unsupported.n_excluded == 0
    assert metrics.variants["V1"].m5_unsupported.global_rate_mean == 0.5
    assert metrics.variants["V1"].m5_unsupported.n_excluded == 2
    (m5,) = (d for d in metrics.paired_differences if d.metric == "m5_unsupported_global_rate")
    assert (m5.n_cases, m5.difference.n_excluded) == (1, 2)
    assert m5.difference.mean == pytest.approx(1 / 2 - 1 / 6)
    row = next(line for line in metrics_table(metrics, 3).splitlines() if "M5 cases" in line)
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["3 of 3", "1 of 3"]
    only = aggregated(V1=v1[1:]).variants["V1"].m5_unsupported
    assert only.global_rate_mean is None


def test_a_variant_without_events_complies_with_nothing(trace: TraceText) -> None:
    silent = measure(make_log(events=()), trace, Letters())
    compliance = aggregated(V0=[silent]).variants["V0"].m10_compliance
    assert compliance.schema_failure_rate_mean is None
    assert compliance.compliance_rate_mean is None


def test_cases_of_nothing_are_drawn_without_a_value(tmp_path: Path) -> None:
    nothing = measure(make_log(events=(), decisions=(), chunks=()), TraceText(()), Letters())
    metrics = aggregated(V0=[nothing])
    assert len(draw_metrics(tmp_path, metrics, [nothing.record])) == 4
    assert AggregateMetrics.model_validate_json(metrics.model_dump_json()) == metrics
    assert PerCaseMetrics.model_validate_json(nothing.record.model_dump_json()) == nothing.record


def test_deltas_are_joined_with_nothing_and_turns_with_a_newline(trace: TraceText) -> None:
    assert trace.text == "c1 c2 c3 c4 cardiac arrest c5 c6 c7 c8\nc9 c10 anaphylaxis"
    assert trace.window(4, 10) == "c7 c8\nc9 "


# Over cases


def case(measures: CaseMeasures, case_id: str, **changes: Any) -> CaseMeasures:
    latencies = changes.pop("summary_latencies", measures.summary_latencies)
    record = measures.record.model_copy(update={"case_id": case_id, **changes})
    return replace(measures, record=record, summary_latencies=latencies)


def aggregated(**cases: list[CaseMeasures]) -> Any:
    return aggregate(
        cases,
        computed_at="2026-01-01T00:00:00Z",
        trace_dataset_hash=None,
        extractor=Letters.info,
        stoplists=StoplistsProvenance(),
        samples=500,
    )


def test_bootstrap_is_seeded_and_holds_the_mean() -> None:
    values = [0.1, 0.2, 0.3, 0.9] * 3
    interval = bootstrap(values)
    assert interval == bootstrap(values)
    assert interval.mean == pytest.approx(0.375)
    assert interval.ci_low is not None
    assert interval.ci_high is not None
    assert 0.1 <= interval.ci_low < 0.375 < interval.ci_high <= 0.9


def test_equal_values_have_no_interval() -> None:
    """One without width would read as certain (NVIDIA/garak 2076)."""
    for values in ([0.0] * 50, [1.0] * 12 + [None], [0.1 + 0.2] * 10):
        interval = bootstrap(values)
        assert interval.mean == pytest.approx(values[0])
        assert interval.ci_low is interval.ci_high is None
    assert bootstrap([0.0] * 49 + [1.0]).ci_low is not None


def test_a_number_that_rounds_to_zero_has_no_minus() -> None:
    assert [number(-0.0001), number(-0.4, 0), number(-0.001)] == ["0.000", "0", "-0.001"]


def test_there_is_no_interval_of_fewer_than_ten_values() -> None:
    for values in ([0.3], [0.1, 0.2], [0.0, 1.0] * 4 + [0.5], [0.5] * 9 + [None] * 5):
        interval = bootstrap(values)
        assert interval.mean == pytest.approx(fmean(v for v in values if v is not None))
        assert interval.ci_low is None
        assert interval.ci_high is None
    ten = bootstrap([0.0, 1.0] * 5)
    assert ten.ci_low == pytest.approx(0.2)  # 2.5th percentile of a binomial(10, 0.5): 2 of 10
    assert ten.ci_high == pytest.approx(0.8)


def test_bootstrap_leaves_out_what_is_not_known() -> None:
    values = [0.25, 0.75] * 5
    assert bootstrap([*values, None]) == bootstrap(values).model_copy(update={"n_excluded": 1})
    assert bootstrap([None]).mean is None
    assert bootstrap([None]).n_excluded == 1


def test_pooled_metrics_weigh_events_and_means_weigh_cases(measures: CaseMeasures) -> None:
    other = replace(
        case(
            measures,
            "case-2",
            m1_update_count=1,
            m10_schema_failure_count=0,
            m4_trace_coverage=0.7,
        ),
        jaccards=(),
        summary_latencies=(1250,),
    )
    variant = aggregated(V0=[measures, other]).variants["V0"]
    assert variant.m4_trace_coverage.mean == pytest.approx(0.6)
    assert variant.m1_update_count_mean == 2.5
    assert variant.m3_redundancy.jaccard_mean == pytest.approx(0.35)  # two pairs of one case
    assert variant.m3_redundancy.pair_count == 2
    assert variant.m8_latency_ms_mean.summary == 450  # 2250 ms / 5 summaries
    assert variant.m10_compliance.schema_failure_rate_mean == 0.2  # 1 of 5


def test_variants_are_compared_case_by_case(measures: CaseMeasures) -> None:
    v0 = [case(measures, f"case-{i}", m4_trace_coverage=0.05 * i) for i in range(1, 13)]
    v2 = [case(measures, f"case-{i}", m4_trace_coverage=0.05 * i + 0.2) for i in range(2, 14)]
    differences = {d.metric: d for d in aggregated(V0=v0, V2=v2).paired_differences}
    coverage = differences["m4_trace_coverage"]
    assert (coverage.variant, coverage.baseline, coverage.n_cases) == ("V2", "V0", 11)
    # The cases differ by up to 0.5, the variants by 0.2 in each: no uncertainty is left.
    assert coverage.difference.ci_low == pytest.approx(0.2)
    assert coverage.difference.ci_high == pytest.approx(0.2)


def test_a_few_cases_show_a_difference_without_an_interval(
    measures: CaseMeasures, tmp_path: Path
) -> None:
    v0 = [case(measures, f"case-{i}", m4_trace_coverage=0.1) for i in range(9)]
    v2 = [case(measures, f"case-{i}", m4_trace_coverage=0.3) for i in range(9)]
    metrics = aggregated(V0=v0, V2=v2)
    (coverage,) = (d for d in metrics.paired_differences if d.metric == "m4_trace_coverage")
    assert coverage.n_cases == 9
    assert coverage.difference.mean == pytest.approx(0.2)
    assert (coverage.difference.ci_low, coverage.difference.ci_high) == (None, None)
    (row,) = (line for line in metrics_table(metrics, 9).splitlines() if "M4 95% interval" in line)
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["–", "–"]
    assert len(draw_metrics(tmp_path, metrics, [one.record for one in (*v0, *v2)])) == 4
    assert AggregateMetrics.model_validate_json(metrics.model_dump_json()) == metrics


def test_outliers_lie_beyond_tukeys_fences(measures: CaseMeasures) -> None:
    cases = [case(measures, f"case-{i}", m4_trace_coverage=0.5 + i / 100) for i in range(7)]
    cases.append(case(measures, "case-7", m4_trace_coverage=0.1, summary_latencies=(9000,)))
    flags = {record.case_id: record.outlier_flags for record in flag_outliers(cases)}
    assert flags.pop("case-7") == ("latency_spike", "low_coverage")
    assert set(flags.values()) == {()}
    assert not any(record.outlier_flags for record in flag_outliers(cases[-3:]))


def test_cases_without_a_value_do_not_move_the_fences(measures: CaseMeasures) -> None:
    # Of 1, 1.1, 1.2, 1.3 and 2 s, quartiles are 1.1 and 1.3 and the upper fence is 1.6; with zeros
    # for the cases without a summary, they would be 0 and 1.225, and 3.0625. Of coverage, the lower
    # fence is 0.769 - 1.5 x (0.909 - 0.769) = 0.559; with zeros, it would be below 0.
    cases = [
        case(measures, f"case-{ms}", summary_latencies=(ms,), m4_trace_coverage=1000 / ms)
        for ms in (1000, 1100, 1200, 1300, 2000)
    ]
    cases += [
        case(measures, f"none-{i}", summary_latencies=(), m4_trace_coverage=None) for i in range(3)
    ]
    flags = {record.case_id: record.outlier_flags for record in flag_outliers(cases)}
    assert flags.pop("case-2000") == ("latency_spike", "low_coverage")
    assert set(flags.values()) == {()}
