"""Each metric beside a few lines of code from its definition in docs/how-to/evals.md.

The other code reads the files as JSON. Of the package it uses the concept extractor alone.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import jsonschema_rs
import numpy as np
import pytest

from evals.cli.run_all import main as run_all
from evals.concepts import Concept, TermExtractor
from exaid_core.checks.alerts import find_alert
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.traces import write_trace as write_trace_file
from tests.conftest import SHARED
from tests.evals.conftest import META, read_lines
from tests.fake_provider import FakeProvider
from tests.support.trace_events import ends, says, starts

PUBLISHED_SCHEMA = SHARED / "published_exaid" / "exaid.metrics.schema.json"
VARIANTS = ("V0", "V1", "V2", "V3", "V4")
CASES = 10  # from which on there are intervals
Record = dict[str, Any]

_FINDINGS = (
    "fever", "cough", "pleural effusion", "pneumonia", "anemia", "hypotension", "nausea", "sepsis",
    "headache", "tachycardia", "jaundice", "ascites", "dyspnea", "syncope", "hematuria", "seizures",
)  # fmt: skip


def write_cases(folder: Path) -> None:
    """Cases in which two doctors speak, one of them past the other, and one hands over."""
    for case in range(CASES):
        events, seq, t_ms, size = [], count(), 1_000_000, case % 4
        first = (*(_FINDINGS[(case + i) % 16] for i in range(5 + 4 * size)), "cardiac arrest")
        texts = {
            1: ("doctor0", " ".join(f"The patient has {name}, as was seen." for name in first)),
            2: ("doctor1", " ".join(f"I ask about {name} again." for name in first[::-1])),
            3: ("doctor0", "doctor1"),
            4: ("doctor1", "In the end it is anaphylaxis with fever. " * (size + 1)),
        }
        for turns in ((1, 2), (3,), (4,)):
            pieces = {turn: re.findall(r"\S+\s*", texts[turn][1]) for turn in turns}
            events += [starts(turn, texts[turn][0], next(seq), t_ms) for turn in turns]
            for at in range(max(map(len, pieces.values()))):
                for turn in turns:
                    if at < len(pieces[turn]):
                        t_ms += 90 + 10 * size
                        events.append(says(turn, texts[turn][0], next(seq), pieces[turn][at], t_ms))
            t_ms += 17_000 * (size == 1)
            events += [ends(turn, texts[turn][0], next(seq), t_ms) for turn in turns]
        write_trace_file(
            folder / f"case-{case}.trace.jsonl.gz", events, case_id=f"case-{case}", **META
        )


def script(provider: FakeProvider) -> None:
    """Replies that differ in length, fail now and then, and say what is not in the trace."""
    numbers = count()

    def summary(request: Any) -> Any:
        number = next(numbers)
        # The long last turns of two cases have no summary; others fail with each repair.
        if json.dumps(request.body).count("In the end") > 2 or number % 11 in (4, 5, 6, 7):
            return "no summary at all"
        named = [_FINDINGS[(number + i) % 16] for i in range(1 + number % 4)]
        said = "Still the same." if number % 5 == 2 else f"They consider {', '.join(named)}."
        return dict.fromkeys(LIMITS, "None reported.") | {"status_action": said}

    judged = count()
    provider.when(
        "stream_state",
        lambda request: {
            "stream_state": ("TOPIC_SHIFT", "SAME_TOPIC_CONTINUING")[next(judged) % 3 == 0],
            "is_relevant": True,
            "is_novel": next(judged) % 4 > 0,
            "reasoning": "so",
        },
    )
    provider.when("status_action", summary)


class One:
    """One run log and its trace, as JSON."""

    extractor = TermExtractor()

    def __init__(self, run: Path, variant: str, case: str) -> None:
        log = read_lines(run / "data" / "runs" / variant / f"{case}.jsonl.gz")
        by_kind: dict[str, list[Record]] = defaultdict(list)
        for record in log:
            by_kind[record["record_type"]].append(record)
        (self.meta,) = by_kind["run_meta"]
        self.events = by_kind["summary_event"]
        self.decisions = by_kind["buffer_decision"]
        self.flushes = by_kind["tokengate_flush"]
        trace = read_lines(run / "traces" / f"{case}.trace.jsonl.gz")
        self.all_deltas = [r for r in trace if r["record_type"] == "stream_delta"]
        texts: dict[int, str] = defaultdict(str)
        agents = {delta["turn_id"]: delta["agent_id"] for delta in self.all_deltas}
        for delta in self.all_deltas:
            texts[delta["turn_id"]] += delta["delta_text"]
        labels = {*agents.values(), "terminate", ""}
        self.turns = {n: text for n, text in texts.items() if text.strip().lower() not in labels}
        self.deltas = [d for d in self.all_deltas if d["turn_id"] in self.turns]

    def concepts(self, text: str) -> frozenset[Concept]:
        return self.extractor.extract(text)

    def of(self, event: Record) -> frozenset[Concept]:
        return self.concepts(event["summary_semantics_text"] if event["schema_ok"] else "")

    @property
    def of_trace(self) -> frozenset[Concept]:
        return self.concepts("\n".join(self.turns.values()))

    @property
    def of_summaries(self) -> set[Concept]:
        return {concept for event in self.events for concept in self.of(event)}

    def window(self, event: Record) -> str:
        said: dict[int, str] = defaultdict(str)
        for delta in self.deltas:
            if event["start_seq"] <= delta["seq"] <= event["end_seq"]:
                said[delta["turn_id"]] += delta["delta_text"]
        return "\n".join(said[turn] for turn in self.turns if turn in said)

    @property
    def covered(self) -> set[int]:
        return {seq for e in self.events if e["schema_ok"] for seq in e["source_seqs"]}


def ctu(text: str) -> int:
    return (len(text) + 3) // 4


def average(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def milliseconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp() * 1000


def spread(values: list[float]) -> Record | None:
    if not values:
        return None
    ordered = sorted(values)

    def percentile(share: float) -> float:
        place = share * (len(ordered) - 1)
        low, rest = int(place), place - int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + rest * (ordered[high] - ordered[low])

    percentiles = {f"p{n}": percentile(n / 100) for n in (50, 90, 95, 99)}
    ends = {"min": ordered[0], "max": ordered[-1]}
    return {"count": len(values), "mean": fmean(values), **ends, **percentiles}


def m3(one: One) -> list[float]:
    found = [one.of(event) for event in one.events if event["schema_ok"]]
    return [len(a & b) / len(a | b) for a, b in pairwise(found) if a | b]


def m6(one: One, *, with_latest: bool) -> list[float]:
    by_id = {event["event_id"]: event for event in one.events}
    rates = []
    for event in one.events:
        if not event["schema_ok"]:
            continue
        support = one.concepts(one.window(event))
        latest = by_id.get(event["latest_summary_event_id"])
        if with_latest and latest:
            support |= one.of(latest)
        named = one.of(event)
        rates.append(len(named - support) / len(named) if named else 1.0)
    return rates


def m7b(one: One, budget: int) -> float:
    spent, named = 0, set[Concept]()
    for event in one.events:
        spent += event["summary_ctu"]
        if spent > budget:
            break
        named |= one.of(event)
    return len(named & one.of_trace) / len(one.of_trace)


def waits(one: One) -> list[float]:
    """From a delta to its first summary, one step at a time, each when its chunk is there."""
    there = {flush["flush_index"]: milliseconds(flush["timestamp"]) for flush in one.flushes}
    at_end = {flush["end_seq"]: milliseconds(flush["timestamp"]) for flush in one.flushes}
    emitted = {delta["seq"]: delta["t_emitted_ms"] for delta in one.deltas}
    free, seen, found = 0.0, set[int](), []
    left = list(one.events)
    steps: list[tuple[Record | None, Record | None]] = [
        (d, left.pop(0) if d["decision"] == "summarize" and left else None) for d in one.decisions
    ]
    steps += [(None, event) for event in left]
    for decision, event in steps:
        if decision:
            free = max(free, *(there[index] for index in decision["covered"]))
            free += decision.get("latency_ms") or 0
        elif event:
            free = max(free, at_end.get(event["end_seq"]) or emitted[event["end_seq"]])
        if event is None:
            continue
        free += event["latency_ms"]
        for seq in sorted(set(event["source_seqs"]) - seen if event["schema_ok"] else ()):
            seen.add(seq)
            found.append(free - emitted[seq])
    return found


def suppressed(one: One) -> list[bool]:
    """Whether some of a flush is in no summary, for each flush with a critical alert.

    An alert may begin in the text of its turn before the flush, which then has no alert of its own.
    """
    turn = {delta["seq"]: delta["turn_id"] for delta in one.deltas}
    agent = {delta["seq"]: delta["agent_id"] for delta in one.deltas}
    lost = []
    for flush in one.flushes:
        own = [
            delta
            for delta in one.deltas
            if flush["start_seq"] <= delta["seq"] <= flush["end_seq"]
            and delta["agent_id"] == agent[flush["start_seq"]]
        ]
        said, start = "".join(delta["delta_text"] for delta in own), flush["start_seq"]
        before = "".join(
            delta["delta_text"]
            for delta in one.deltas
            if delta["turn_id"] == turn[start] and delta["seq"] < start
        )[-400:]
        is_split = not find_alert(before) and find_alert(before + said)
        if find_alert(said) or is_split:
            lost.append(not {delta["seq"] for delta in own} <= one.covered)
    return lost


def expected_of(one: One) -> Iterator[tuple[str, Any]]:
    """Yield each field of the per-case record, as the definition has it."""
    events, decisions, flushes = one.events, one.decisions, one.flushes
    steps = [*events, *decisions]
    failed = sum(not event["schema_ok"] for event in events)
    named, known = one.of_summaries, one.of_trace
    output = sum(event["summary_ctu"] for event in events)
    yield "m1_update_count", len(events)
    yield "m2_output_ctu", output
    jaccards = m3(one)
    yield "m3_redundancy_jaccard_mean", average(jaccards)
    for tau in ("0.85", "0.90", "0.95"):
        rate = average([float(j >= float(tau)) for j in jaccards])
        yield f"m3_redundancy_threshold_rates.tau_{tau}", rate
    yield "m4_trace_coverage", len(named & known) / len(known)
    yield "m4_trace_cui_count", len(known)
    yield "m4_summary_cui_count", len(named)
    yield "m5_unsupported_global_rate", len(named - known) / len(named) if named else None
    by_summary = [one.of(event) for event in events if one.of(event)]
    yield "m5_unsupported_per_summary_mean", average([len(c - known) / len(c) for c in by_summary])
    m6a, m6b = average(m6(one, with_latest=False)), average(m6(one, with_latest=True))
    yield "m6a_mean", m6a
    yield "m6b_mean", m6b
    yield "grounding_a", None if m6a is None else 1 - m6a
    yield "grounding_b", None if m6b is None else 1 - m6b
    yield "m6_empty_count", sum(event["schema_ok"] and not one.of(event) for event in events)
    yield "faithfulness_valid_event_count", len(events) - failed
    yield "excluded_from_faithfulness_count", failed
    for budget in (250, 500, 1000, 2000):
        yield f"m7b_coverage_by_budget.ctu_{budget}", m7b(one, budget)
    of_summaries = [event["latency_ms"] for event in events]
    of_decisions = [d["latency_ms"] for d in decisions if d.get("latency_ms") is not None]
    yield "m8_summary_latency_ms_mean", average(of_summaries)
    yield "m8_buffer_decision_latency_ms_mean", average(of_decisions)
    yield "m8_summary_latency_distribution_ms", spread(of_summaries)
    yield "m8_buffer_decision_latency_distribution_ms", spread(of_decisions)
    content, control = sum(of_summaries), sum(of_decisions)
    yield "content_plane_latency_ms", content
    yield "control_plane_latency_ms", control
    yield "total_plane_latency_ms", content + control
    yield "content_plane_latency_pct", content / (content + control)
    yield "control_plane_latency_pct", control / (content + control)
    prompt = sum(step["llm_usage"]["prompt_ctu"] for step in steps)
    completion = sum(step["llm_usage"]["completion_ctu"] for step in steps)
    yield "m9_prompt_ctu_total", prompt
    yield "m9_completion_ctu_total", completion
    yield "m9_total_llm_ctu", prompt + completion
    yield "m9_buffer_decision_count", len(decisions)
    yield "m9_buffer_decision_ctu", sum(decision["input_ctu"] for decision in decisions)
    yield "m10_schema_failure_count", failed
    yield "m10_schema_failure_rate", failed / len(events)
    yield "m10_compliance_rate", 1 - failed / len(events)
    of_trace = sum(map(ctu, one.turns.values()))
    yield "trace_ctu", of_trace
    yield "compression_ratio", 1 - output / of_trace
    yield "expected_latency_ms", average(waits(one))
    letters = {d["seq"]: len(re.sub(r"\s", "", d["delta_text"])) for d in one.deltas}
    left = sum(count for seq, count in letters.items() if seq not in one.covered)
    yield "tail_loss", left / sum(letters.values())
    last = max(one.covered, default=-1)
    tail = sum(len(d["delta_text"]) for d in one.deltas if d["seq"] > last)
    yield "uncovered_tail", tail / sum(len(d["delta_text"]) for d in one.deltas)
    yield "suppression_rate", average([float(lost) for lost in suppressed(one)])
    yield "flush_count", len(flushes)
    reasons = [flush.get("trigger_reason") or "unstated" for flush in flushes]
    yield "flush_reason_counts", {reason: reasons.count(reason) for reason in reasons}
    yield (
        "flush_accumulated_ctu_distribution",
        spread([flush["accumulated_ctu"] for flush in flushes]),
    )
    times = [milliseconds(flush["timestamp"]) for flush in flushes]
    yield "flush_interval_ms_distribution", spread([float(step) for step in np.diff(times)])
    duration = one.all_deltas[-1]["t_emitted_ms"] - one.all_deltas[0]["t_emitted_ms"]
    yield "virtual_time_duration_ms", duration
    yield "trace_ctu_per_s", of_trace / duration * 1000
    yield "summary_ctu_per_s", output / duration * 1000
    yield "dataset_manifest_hash_valid", True
    yield "tokengate_config_hash_match", True
    yield "stub_trace_detected", False


NOT_HERE = {
    *("schema_name", "schema_version", "metrics_type", "case_id", "variant_id"),
    *("outlier_flags", "outlier_latency_spike", "outlier_excessive_flushes"),
    "outlier_low_coverage",
}
"""Names, and what test_outliers checks."""


def flat(record: Record) -> Record:
    """The record, with the fields of two of its parts beside the others."""
    parts = ("m3_redundancy_threshold_rates", "m7b_coverage_by_budget")
    of_parts = {f"{part}.{name}": v for part in parts for name, v in record[part].items()}
    return {name: value for name, value in record.items() if name not in parts} | of_parts


def close(value: object, expected: object) -> bool:
    if isinstance(expected, dict) and isinstance(value, dict):
        same = value.keys() == expected.keys()
        return same and all(close(value[name], expected[name]) for name in expected)
    if isinstance(expected, int | float) and isinstance(value, int | float):
        return value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    return value == expected


@pytest.mark.sweep
def test_each_metric_is_what_its_definition_says(
    tmp_path: Path, provider: FakeProvider, model_options: Callable[..., list[str]]
) -> None:
    write_cases(tmp_path / "traces")
    script(provider)
    assert run_all([str(tmp_path), "--jobs", "1", *model_options()]) == 0
    records = read_lines(tmp_path / "metrics" / "per_case.metrics.jsonl")
    assert {(r["case_id"], r["variant_id"]) for r in records} == {
        (f"case-{n}", variant) for n in range(CASES) for variant in VARIANTS
    }
    wrong = []
    varied: dict[str, set[str]] = defaultdict(set)
    for record in records:
        expected = dict(expected_of(One(tmp_path, record["variant_id"], record["case_id"])))
        found = flat(record)
        assert found.keys() == expected.keys() | NOT_HERE
        for name, value in expected.items():
            varied[name].add(json.dumps(found[name]))
            if not close(found[name], value):
                wrong.append((record["case_id"], record["variant_id"], name, found[name], value))
    assert wrong == []
    # The cases are not so simple that a metric could be a constant.
    constant = {name for name, values in varied.items() if len(values) < 2}
    assert constant <= {
        *("dataset_manifest_hash_valid", "tokengate_config_hash_match", "stub_trace_detected"),
        *(f"m3_redundancy_threshold_rates.tau_{tau}" for tau in ("0.85", "0.90", "0.95")),
    }
    outliers(records, tmp_path)
    means(records, read_lines(tmp_path / "metrics" / "aggregate.metrics.jsonl")[0], tmp_path)
    if PUBLISHED_SCHEMA.exists():
        validator = jsonschema_rs.validator_for(json.loads(PUBLISHED_SCHEMA.read_text()))
        for path in (tmp_path / "metrics").iterdir():
            assert all(validator.is_valid(record) for record in read_lines(path))


def outliers(records: list[Record], run: Path) -> None:
    """Check the flags: beyond Tukey's fences of the variant's cases."""
    for variant in VARIANTS:
        of_variant = [record for record in records if record["variant_id"] == variant]
        logs = [One(run, variant, record["case_id"]) for record in of_variant]
        values = {
            "latency_spike": [float(max(e["latency_ms"] for e in one.events)) for one in logs],
            "excessive_flushes": [float(len(one.flushes)) for one in logs],
            "low_coverage": [-record["m4_trace_coverage"] for record in of_variant],
        }
        for index, record in enumerate(of_variant):
            raised = []
            for name, all_values in values.items():
                first, third = np.quantile(all_values, 0.25), np.quantile(all_values, 0.75)
                if all_values[index] > third + 1.5 * (third - first):
                    raised.append(name)
                assert record[f"outlier_{name}"] is (name in raised)
            assert record["outlier_flags"] == raised


def means(records: list[Record], aggregate: Record, run: Path) -> None:
    """Check the means over cases, and what is pooled over events."""
    for variant in VARIANTS:
        of_variant = [record for record in records if record["variant_id"] == variant]
        logs = [One(run, variant, record["case_id"]) for record in of_variant]
        events = [event for one in logs for event in one.events]
        decisions = [d for one in logs for d in one.decisions if d.get("latency_ms") is not None]
        pairs = [j for one in logs for j in m3(one)]

        def mean(name: str, of: list[Record] = of_variant) -> float | None:
            return average([record[name] for record in of if record[name] is not None])

        failed = sum(not event["schema_ok"] for event in events)
        found = aggregate["variants"][variant]
        expected = {
            "n_cases": CASES,
            "m1_update_count_mean": mean("m1_update_count"),
            "m2_output_ctu_mean": mean("m2_output_ctu"),
            "m5_unsupported": {
                "global_rate_mean": mean("m5_unsupported_global_rate"),
                "n_excluded": sum(r["m5_unsupported_global_rate"] is None for r in of_variant),
                "per_summary_mean": mean("m5_unsupported_per_summary_mean"),
            },
            "m8_latency_ms_mean": {
                "summary": average([event["latency_ms"] for event in events]),
                "buffer_decision": average([d["latency_ms"] for d in decisions]),
            },
            "m8_latency_distribution_ms": {
                "summary": spread([event["latency_ms"] for event in events]),
                "buffer_decision": spread([d["latency_ms"] for d in decisions]),
            },
            "m10_compliance": {
                "schema_failure_rate_mean": failed / len(events),
                "compliance_rate_mean": 1 - failed / len(events),
                "schema_failure_count": failed,
                "summary_event_count": len(events),
            },
            "schema_failures": failed,
        }
        for name, value in expected.items():
            assert close(found[name], value), (variant, name)
        assert close(found["m3_redundancy"]["jaccard_mean"], average(pairs))
        assert found["m3_redundancy"]["pair_count"] == len(pairs)
        for name, field in (
            *(("m4_trace_coverage", "m4_trace_coverage"), ("m6a", "m6a_mean"), ("m6b", "m6b_mean")),
            *((same, same) for same in ("compression_ratio", "tail_loss", "uncovered_tail")),
        ):
            assert close(found[name]["mean"], mean(field))
            assert found[name]["ci_low"] <= found[name]["mean"] <= found[name]["ci_high"]
        assert found["flushes"]["count_mean"] == mean("flush_count")
        assert close(found["throughput_mean"]["trace_ctu_per_s"], mean("trace_ctu_per_s"))
        assert found["plane_latency_mean"]["control_plane_latency_ms"] == pytest.approx(
            mean("control_plane_latency_ms")
        )
    assert aggregate["computed_at"].startswith("1970-01-01T00:16:40")  # of the data, not today
