"""Published logs of earlier forms: imported, measured, set beside the published metrics."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evals.cli.compute_metrics import main as compute_metrics
from evals.cli.import_upstream import main as import_upstream
from evals.cli.make_manifest import main as make_manifest
from evals.cli.replay import main as replay
from evals.cli.validate_logs import main as validate
from evals.variants import FOLDER, VARIANT_IDS, load_variant
from exaid_core.trace.records import hash_of
from mdagents_llm.errors import ConfigError
from tests.conftest import REAL_TRACES, SHARED
from tests.evals.conftest import read_lines, write_trace

Options = Callable[..., list[str]]
Record = dict[str, Any]

PUBLISHED = SHARED / "published_exaid"

PUBLISHED_GATE = "sha256:67d6303e2d249654e8b08c0e82635bc840c23e200ae76cb6c0546fe564596253"
"""`tokengate_config_hash` of the published run logs."""

# These depend on the concept extractor, or on how deltas are joined to text.
OTHER_CONCEPTS = ("m3_", "m4_", "m5_", "m6a_", "m6b_", "m7b_")
OTHER_TEXT = ("trace_ctu", "trace_ctu_per_s")
OF_ALL_36_CASES = ("outlier_",)


def write(path: Path, records: list[Record]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def published_form(records: list[Record], variant: str) -> list[Record]:
    """A run log as the authors of the format published theirs."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    records = list(map(json.loads, text.replace('"case-1', '"case-1.trace').splitlines()))
    for record in records:
        record.pop("covered", None)
        record.pop("source_seqs", None)
    meta = records[0]
    meta["concept_extractor"] = {
        "scispacy_version": "0.5.4",
        "scispacy_model": "en_core_sci_sm",
        "entity_types_kept": ["ALL"],
    }
    if variant == "V1":  # turns had no flush, and began and ended with their boundaries
        records = [r for r in records if r["record_type"] != "tokengate_flush"]
        for record in records[1:]:
            record["start_seq"] -= 1
            record["end_seq"] += 1
    if variant == "V0":
        meta["schema_version"] = "1.4.0"
        for name in ("trace_file_hash", "trace_dataset_hash", "tokengate_config_hash"):
            del meta[name]
        for record in records:
            if record["record_type"] == "summary_event":
                record["summarizer_input_text"] = "Everything."
                for name in ("trigger_type", "summarizer_input_hash", "limits_ok"):
                    del record[name]
            if record["record_type"] == "tokengate_flush":
                record["trigger_reason"] = None
    if variant == "V2":
        single = {k: v for k, v in meta.items() if k != "record_type"}
        single["schema_version"] = "1.2.1"
        kinds = {"tokengate_flushes": "tokengate_flush", "summary_events": "summary_event"}
        for name, kind in kinds.items():
            single[name] = [r for r in records if r["record_type"] == kind]
        return [single]
    return records


@pytest.fixture
def published(traces: Path, tmp_path: Path, model_options: Options) -> Path:
    """A folder in the published form; beside it, in `run`, the same logs in the present form."""
    (traces / "traces" / "case-2.trace.jsonl.gz").unlink()
    assert make_manifest([str(traces)]) == 0
    assert replay([str(traces), *model_options()]) == 0
    folder = tmp_path / "published"
    for variant in ("V0", "V1", "V2", "V3", "V4"):
        records = read_lines(traces / "data" / "runs" / variant / "case-1.jsonl.gz")
        path = folder / "runs" / variant / "case-1.trace.jsonl.gz"
        write(path, published_form(records, variant))
    manifest = read_lines(traces / "exaid.manifest.jsonl")
    manifest[2]["case_id"] += ".trace"
    write(folder / "manifest.jsonl", manifest)
    write(folder / "per_case.metrics.jsonl", [{"schema_name": "exaid.metrics"}])
    (folder / "notes.txt").write_text("Read me.")
    write_trace(folder / "traces", "case-1")
    return folder


def per_case(folder: Path) -> dict[str, Record]:
    return {r["variant_id"]: r for r in read_lines(folder / "metrics" / "per_case.metrics.jsonl")}


@pytest.mark.sweep
def test_logs_of_earlier_forms_are_imported_and_measured_alike(
    published: Path, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert import_upstream([str(published)]) == 0
    told = capsys.readouterr().out
    out = published / "imported"
    assert f"{out}: 6 of 6 run logs and manifests imported, 1 traces copied" in told
    counted = dict(
        line.strip().split(" x ", 1)[::-1] for line in told.splitlines() if " x " in line
    )
    for change, count in {
        "schema_version: 1.4.0, now 1.5.0": "1",
        "schema_version: 1.2.1, now 1.5.0": "1",
        "one record in all (exaid.run 1.2) made one a line": "1",
        "concept_extractor.name: not there, now scispacy": "5",
        "concept_extractor.entity_types_kept: left out, the present form does not have it": "5",
        "tokengate_config_hash: not there, now the hash of `null`": "1",
        "start_seq: no delta (the boundary of a turn), now the delta next to it": "2",
    }.items():
        assert counted[change] == count, told
    assert "left alone, neither run log, manifest nor trace: notes.txt, per_case" in told
    logs = sorted(map(str, out.rglob("*.jsonl*")))
    assert validate(logs) == 0
    assert compute_metrics([str(traces)]) == compute_metrics([str(out)]) == 0
    before, after = per_case(traces), per_case(out)
    for variant, record in before.items():
        same = {k: v for k, v in record.items() if after[variant][k] == v}
        differs = record.keys() - same.keys()
        expected = {
            "V0": {
                "flush_reason_counts",
                "dataset_manifest_hash_valid",
                "tokengate_config_hash_match",
            },
            # Without flushes, a turn is there with its last delta and not with its end.
            "V1": {"expected_latency_ms", *(n for n in record if n.startswith("flush_"))},
        }
        assert differs <= expected.get(variant, set()), variant


def test_a_log_that_cannot_be_imported_does_not_stop_the_others(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = published / "runs"
    path = folder / "V4" / "case-1.trace.jsonl.gz"
    records = read_lines(path)
    records[1]["accumulated_ctu"] = "many"
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(b"\n" + text.encode()))
    cut = folder / "V3" / "case-1.trace.jsonl.gz"
    cut.write_bytes(cut.read_bytes()[:200])
    write(folder / "V1" / "again.jsonl", read_lines(folder / "V1" / "case-1.trace.jsonl.gz"))
    capsys.readouterr()
    assert import_upstream([str(published)]) == 1
    shown = capsys.readouterr()
    assert f"error: {path} line 3: tokengate_flush.accumulated_ctu: Input should" in shown.err
    assert f"error: {cut} line 1: the compressed file is cut short" in shown.err
    assert " line 1: case_id: of the same case and variant as" in shown.err
    assert "4 of 6 run logs and manifests imported" in shown.out


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("run_meta", "concept_extractor", "x"),
        ("run_meta", "concept_extractor", {"cui_score_threshold": 1e400}),
        ("run_meta", "trigger_policy", []),
        ("run_meta", "mas_run_id", {"a": 1}),
        ("run_meta", "case_id", 7),
        ("buffer_decision", "llm_usage", 3),
        ("buffer_decision", "latency_ms", 1e400),
        ("summary_event", "llm_usage", [1, "a"]),
        ("summary_event", "summary_semantics_text", -1),
        ("summary_event", "start_seq", 1.5),
    ],
)
def test_a_field_of_another_type_is_named(
    published: Path, capsys: pytest.CaptureFixture[str], kind: str, field: str, value: object
) -> None:
    path = published / "runs" / "V4" / "case-1.trace.jsonl.gz"
    records = read_lines(path)
    at = next(i for i, record in enumerate(records) if record["record_type"] == kind)
    records[at][field] = value
    write(path, records).write_bytes(
        gzip.compress(gzip.decompress(path.read_bytes()).replace(b"Infinity", b"1e999"))
    )
    capsys.readouterr()
    assert import_upstream([str(published)]) == 1
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith(f"error: {path} line {at + 1}: ")
    assert field in line
    assert "5 of 6 run logs and manifests imported" in shown.out


@pytest.mark.parametrize(
    "nulls",
    [
        {"filter_results": {"completeness_passed": None, "value_passed": None}},
        {"filter_results": {"completeness_passed": None, "value_passed": True}},
        {"filter_results": {}},
        {"filter_results": None},
        {"filter_results": None, "failure_mode": None},
        {"filter_results": {"value_passed": None, "novelty_passed": None}, "failure_mode": "429"},
    ],
)
def test_a_decision_without_judgments_is_a_failed_call(published: Path, nulls: Record) -> None:
    path = published / "runs" / "V4" / "case-1.trace.jsonl.gz"
    records = read_lines(path)
    number = next(i for i, r in enumerate(records) if r["record_type"] == "buffer_decision")
    records[number] |= {"latency_ms": 2099, "decision": "buffer"} | nulls
    write(path, records)
    assert import_upstream([str(published)]) == 0
    imported = published / "imported" / "data" / "runs" / "V4" / "case-1.jsonl.gz"
    failed, *others = (r for r in read_lines(imported) if r["record_type"] == "buffer_decision")
    assert failed["filter_results"] is None
    assert failed["failure_mode"] == (nulls.get("failure_mode") or "the judge gave no judgement")
    assert all(one.get("failure_mode") is None for one in others), "novelty alone may be null"
    assert validate([str(imported)]) == 0


def test_a_decision_that_asked_no_model_has_not_failed(published: Path) -> None:
    path = published / "runs" / "V0" / "case-1.trace.jsonl.gz"
    records = read_lines(path)
    for record in records:
        if record["record_type"] == "buffer_decision":
            record |= {"filter_results": None, "latency_ms": None}
    write(path, records)
    assert import_upstream([str(published)]) == 0
    imported = read_lines(published / "imported" / "data" / "runs" / "V0" / "case-1.jsonl.gz")
    decisions = [record for record in imported if record["record_type"] == "buffer_decision"]
    assert decisions
    assert all(record.get("failure_mode") is None for record in decisions)


def test_a_span_in_which_the_trace_has_no_delta(published: Path) -> None:
    path = published / "runs" / "V4" / "case-1.trace.jsonl.gz"
    records = read_lines(path)
    for record in records[1:]:
        record |= {"start_seq": 10**6 + 9, "end_seq": 10**6}
    records.append(records[1] | {"flush_index": 9, "start_seq": 10**6, "end_seq": 10**6})
    write(path, records)
    assert import_upstream([str(published)]) == 0


def test_what_is_no_published_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_upstream([str(tmp_path / "none")]) == 2
    assert import_upstream([str(tmp_path)]) == 2
    (tmp_path / "file.json").write_text("{}")
    assert import_upstream([str(tmp_path / "file.json")]) == 2
    assert import_upstream([str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" /")[0] for line in lines] == [
        "error: there is no",
        "error: no run log and no manifest in",
        f"error: {tmp_path / 'file.json'} is no folder".split(" /")[0],
        "error: no run log and no manifest in",
    ]


# Logs as they are


def test_published_logs_have_to_be_imported_first(
    published: Path, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (published / "data").mkdir()
    (published / "runs").rename(published / "data" / "runs")
    capsys.readouterr()
    assert compute_metrics([str(published)]) == 2
    error = capsys.readouterr().err
    assert "line 1: case_id: it ends in .trace" in error
    assert "evals.cli.import_upstream" in error
    assert error.count("\n") == 1


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("summary_event", "summary_ctu", -1),
        ("summary_event", "summary_ctu", 10**400),
        ("summary_event", "start_seq", "first"),
        ("summary_event", "schema_ok", None),
        ("summary_event", "latency_ms", -5),
        ("summary_event", "latency_ms", 1e300),
        ("summary_event", "source_seqs", [1, None]),
        ("summary_event", "llm_usage", {"prompt_ctu": 1.5}),
        ("tokengate_flush", "timestamp", "noon"),
        ("tokengate_flush", "timestamp", "2025-01-01T00:00:00"),
        ("tokengate_flush", "trigger_reason", 7),
        ("buffer_decision", "covered", 3),
        ("buffer_decision", "input_ctu", []),
        ("run_meta", "variant_id", "V9"),
        ("run_meta", "created_at", "today"),
    ],
)
def test_a_field_of_a_log_is_named(
    published: Path,
    traces: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    field: str,
    value: object,
) -> None:
    path = traces / "data" / "runs" / "V0" / "case-1.jsonl.gz"
    records = read_lines(path)
    at = next(i for i, record in enumerate(records) if record["record_type"] == kind)
    records[at][field] = value
    write(path, records)
    capsys.readouterr()
    assert compute_metrics([str(traces)]) == 1
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith(f"error: {path} line {at + 1}: {field}")
    assert list(per_case(traces)) == ["V1", "V2", "V3", "V4"]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("summary_event", {"end_seq": 10**12, "source_seqs": None}),
        ("summary_event", {"start_seq": 50, "end_seq": 3, "source_seqs": None}),
        ("summary_event", {"source_seqs": [10**9], "summary_semantics_text": None}),
        ("summary_event", {"llm_usage": None, "latency_ms": 12.5}),
        ("tokengate_flush", {"end_seq": 10**12, "timestamp": "1970-01-01T00:00:00Z"}),
        ("tokengate_flush", {"timestamp": "0001-01-01T00:00:00Z"}),
        ("buffer_decision", {"covered": [10**9], "decision": "?"}),
    ],
)
def test_odd_values_are_measured(
    published: Path, traces: Path, kind: str, changes: dict[str, object]
) -> None:
    path = traces / "data" / "runs" / "V0" / "case-1.jsonl.gz"
    records = read_lines(path)
    for record in records:
        if record["record_type"] == kind:
            record.update(changes)
    write(path, records)
    assert compute_metrics([str(traces)]) == 0


# The published logs themselves


def test_the_shipped_published_gate_is_that_of_the_published_logs() -> None:
    for variant in VARIANT_IDS:
        settings = load_variant(variant, FOLDER.with_name("published"))
        gate = settings.token_gate.model_dump()
        as_published = {name: int(value) for name, value in gate.items()} | {"enabled": True}
        text = json.dumps(as_published, sort_keys=True, separators=(",", ":"))
        assert hash_of(text.encode()) == PUBLISHED_GATE
        assert settings.trigger_policy is load_variant(variant).trigger_policy


def test_a_file_of_a_variant_without_settings_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "V0.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"V0\.yaml: Input should be "):
        load_variant("V0", tmp_path)


@pytest.mark.sweep
@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published logs are not here")
def test_the_published_metrics_come_out_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "imported"
    options = ["--traces", *map(str, REAL_TRACES), "--out", str(out)]
    assert import_upstream([str(PUBLISHED), *options]) == 0
    logs = [path for path in out.rglob("*.jsonl*") if "traces" not in path.parts]
    assert len(logs) == 17
    assert validate(list(map(str, logs))) == 0
    assert compute_metrics([str(out)]) == 1, "the fourth case was published under V4 alone"
    ours = {
        (r["case_id"], r["variant_id"]): r
        for r in read_lines(out / "metrics" / "per_case.metrics.jsonl")
    }
    theirs = read_lines(PUBLISHED / "per_case.metrics.jsonl")
    assert len(theirs) == 15
    assert len(ours) == 16, "one more log than metrics were published of"
    (log,) = (path for path in logs if "case-38803759" in path.name)
    decisions = [r for r in read_lines(log) if r["record_type"] == "buffer_decision"]
    unjudged = [r for r in decisions if r.get("filter_results") is None]
    assert [r["failure_mode"] for r in unjudged] == ["the judge gave no judgement"]
    assert {r["schema_version"] for r in theirs} == {"2.2.0"}
    assert {r["schema_version"] for r in ours.values()} == {"2.3.0"}
    may_differ = ("schema_version", *OTHER_CONCEPTS, *OTHER_TEXT, *OF_ALL_36_CASES, "case_id")
    for record in theirs:
        own = ours[record["case_id"].removesuffix(".trace"), record["variant_id"]]
        assert record.keys() <= own.keys()
        for name, value in record.items():
            if name.startswith(may_differ):
                continue
            if isinstance(value, dict | float):
                assert own[name] == pytest.approx(value), name
            else:
                assert own[name] == value, name
