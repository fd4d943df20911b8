"""From a run's traces to metrics and figures, and the help of each program."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from evals.calibration import grid, sweep
from evals.cli.calibrate import main as calibrate
from evals.cli.compute_metrics import main as compute_metrics
from evals.cli.import_upstream import main as import_upstream
from evals.cli.make_manifest import main as make_manifest
from evals.cli.make_stoplists import main as make_stoplists
from evals.cli.plot import main as plot
from evals.cli.replay import main as replay
from evals.cli.run_all import main as run_all
from evals.cli.validate_logs import main as validate
from evals.concepts import TermExtractor
from evals.metrics_records import AggregateMetrics
from evals.report import metrics_table
from evals.run_logs import read_run_log
from exaid_core.trace.files import RecordError
from exaid_core.trace.traces import read_trace
from exaid_core.trace.traces import write_trace as write_trace_file
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.evals.conftest import META, write_trace
from tests.support.trace_events import ends, says, starts

Options = Callable[..., list[str]]

PROGRAMS = (
    "calibrate",
    "compute_metrics",
    "import_upstream",
    "make_manifest",
    "make_stoplists",
    "plot",
    "replay",
    "run_all",
    "validate_logs",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = import_module(f"evals.cli.{name}").main
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert f"python -m evals.cli.{name}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["--no-such-option"])
    assert stopped.value.code == 2


def test_the_page_names_each_program() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "evals.md").read_text(encoding="utf-8")
    for name in PROGRAMS:
        assert f"evals.cli.{name}" in page


@pytest.mark.sweep
def test_run_all(traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    options = [str(traces), "--variants", "V0,V1", *model_options()]
    assert run_all(options) == 0
    told = capsys.readouterr().out
    assert "M4 coverage" in told
    figures = {path.name for path in (traces / "figures").iterdir()}
    assert figures == {
        "coverage_against_budget.png",
        "cost_against_coverage.png",
        "latency.png",
        "ablation.png",
    }
    metrics = sorted((traces / "metrics").iterdir())
    assert validate([*map(str, metrics), str(traces / "exaid.manifest.jsonl")]) == 0
    before = {path: path.read_bytes() for path in traces.rglob("*") if path.is_file()}
    assert run_all(options) == 0  # nothing is replayed, everything comes out the same
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert [path for path in changed if ".cache" not in path.parts] == []


@pytest.mark.sweep
def test_a_read_only_folder_is_not_written_to(
    traces: Path, tmp_path: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run_all([str(traces), "--out", str(out), *model_options()]) == 0
    for name in ("data", "metrics"):
        (out / name).rename(traces / name)
    before = sorted(traces.rglob("*"))
    traces.chmod(0o555)
    capsys.readouterr()
    try:
        for main in (run_all, replay, make_manifest, compute_metrics, plot, import_upstream):
            options = model_options() if main in (run_all, replay) else []
            assert main([str(traces), *options]) == 2, main
            told = f"error: {traces} is read-only: say with --out where to write\n"
            assert capsys.readouterr().err == told
        assert sorted(traces.rglob("*")) == before
        elsewhere = str(tmp_path / "elsewhere")
        assert run_all([str(traces), "--out", elsewhere, *model_options()]) == 0
        assert sorted(traces.rglob("*")) == before
    finally:
        traces.chmod(0o755)


@pytest.mark.sweep
def test_a_folder_of_others_is_told_before_it_is_written_to(
    traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [str(traces), "--variants", "V1", *model_options()]
    told = f"note: output goes into {traces}, which is no run of main.py; see --out\n"
    for expected in (told, ""):  # the second time it holds what was made
        assert run_all(options) == 0
        assert capsys.readouterr().err == expected
    (traces / "exaid.manifest.jsonl").unlink()
    (traces / "run.json").write_text("{}")
    assert run_all(options) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.sweep
def test_metrics_and_figures_are_the_same_bytes(
    traces: Path, tmp_path: Path, model_options: Options
) -> None:
    assert replay([str(traces), "--variants", "V1,V2", *model_options()]) == 0
    for name in ("one", "two"):
        out = tmp_path / name
        assert compute_metrics([str(traces), "--out", str(out / "metrics")]) == 0
        assert plot([str(out), "--format", "svg"]) == 0
    for one in sorted((tmp_path / "one").rglob("*.*")):
        assert (
            one.read_bytes() == (tmp_path / "two" / one.relative_to(tmp_path / "one")).read_bytes()
        )
    aggregate = json.loads((tmp_path / "one" / "metrics" / "aggregate.metrics.jsonl").read_text())
    assert list(aggregate["variants"]) == ["V1", "V2"]
    variants = {f"V{n}": aggregate["variants"]["V1"] for n in range(5)}
    table = metrics_table(AggregateMetrics.model_validate(aggregate | {"variants": variants}), 20)
    assert all(len(line) <= 80 for line in table.splitlines())
    assert {d["variant"] for d in aggregate["paired_differences"]} == {"V2"}


def one_spaced(table: str) -> str:
    """The table with columns as narrow as can be, whatever is in their other rows."""
    return re.sub(" +", " ", table)


def test_a_variant_with_fewer_cases_is_named(
    traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay([str(traces), "--variants", "V0,V1", *model_options()]) == 0
    assert compute_metrics([str(traces)]) == 0
    assert "| cases | 2 | 2 |" in one_spaced(capsys.readouterr().out)
    (traces / "data" / "runs" / "V1" / "case-2.jsonl.gz").unlink()
    assert compute_metrics([str(traces)]) == 1
    shown = capsys.readouterr()
    assert "| cases | 2 | 1 of 2 |" in one_spaced(shown.out)
    (line,) = shown.err.splitlines()
    assert line == (
        "error: V1 has metrics of 1 of 2 cases, so its means are not those of the other variants; "
        "without case-2"
    )


@pytest.mark.sweep
def test_metrics_of_other_traces_are_refused(
    traces: Path, tmp_path: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay([str(traces), "--variants", "V1", *model_options()]) == 0
    other = tmp_path / "other"
    write_trace(other, "case-1", pause_ms=1)
    write_trace(other, "case-2")
    assert compute_metrics([str(traces), "--traces", str(other)]) == 2
    assert "the hashes differ" in capsys.readouterr().err
    (other / "case-2.trace.jsonl.gz").unlink()
    write_trace(other, "case-1")  # that of the run log: it alone is measured
    assert compute_metrics([str(traces), "--traces", str(other)]) == 1
    shown = capsys.readouterr()
    assert "V1/case-2.jsonl.gz: of case-2, whose trace is not among those given" in shown.err
    assert "| cases | 1 |" in one_spaced(shown.out)


def test_without_run_logs_there_are_no_metrics(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compute_metrics([str(traces)]) == 2
    assert "make them with evals.cli.replay" in capsys.readouterr().err
    assert plot([str(traces)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.sweep
def test_scispacy_is_not_replaced_by_anything(
    traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay([str(traces), "--variants", "V1", *model_options()]) == 0
    assert compute_metrics([str(traces), "--extractor", "scispacy"]) == 2
    assert "pip install scispacy==0.5.4 spacy==3.7.4" in capsys.readouterr().err


# Manifest


def test_manifest(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (traces / "run.json").write_text(json.dumps({"config_hash": "a" * 64}))
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for out in (one, two):
        url = ["--mac-fork-url", "https://example.org/mac"]
        decoding = ["--decoding", '{"temperature": 0.5}']
        assert make_manifest([str(traces), "--out", str(out), *url, *decoding]) == 0
    assert one.read_bytes() == two.read_bytes()
    _, origin, first, second, totals = map(json.loads, one.read_text().splitlines())
    assert origin["config_hash"] == "sha256:" + "a" * 64
    assert origin["mac_fork_url"] == "https://example.org/mac"
    assert origin["decoding"]["temperature"] == 0.5
    assert (first["case_id"], second["case_id"]) == ("case-1", "case-2")
    assert totals["total_turns"] == 6
    assert make_manifest([str(traces), "--decoding", "{}"]) == 2
    assert "decoding" in capsys.readouterr().err


def test_a_manifest_is_of_one_run_and_has_each_case_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(tmp_path, "case-1").rename(tmp_path / "copy.trace.jsonl.gz")
    for case_id in ("case-1", "case-2"):
        write_trace(tmp_path, case_id)
    write_trace(tmp_path, "case-3", mas_run_id="mas_2")
    assert make_manifest([str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "case-3.trace.jsonl.gz line 1: of another run than most: mas_run_id mas_2" in shown.err
    assert "copy.trace.jsonl.gz line 1: case_id: of case-1, as " in shown.err
    assert ": 2 traces, 6 turns" in shown.out


# Calibration


@pytest.mark.sweep
def test_calibration(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "calibration.png"
    options = ["--min-words", "5,35", "--max-words", "10,90", "--figure", str(figure)]
    assert calibrate([str(traces), *options]) == 0
    told = capsys.readouterr().out
    assert "chunk of V3: " in told
    assert all(len(line) <= 80 for line in told.splitlines() if line.startswith(("|", "+")))
    assert "35/10" not in told  # not possible
    assert figure.stat().st_size > 0


def test_a_figure_has_a_known_format(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate([str(traces), "--figure", "figure.txt"]) == 2
    assert "must end in one of png, svg, pdf" in capsys.readouterr().err


@pytest.mark.sweep
def test_smaller_chunks_are_more_and_come_sooner(traces: Path) -> None:
    read = [read_trace(path) for path in sorted((traces / "traces").iterdir())]
    small, large = sweep(read, grid([5, 35], [90]), TermExtractor())
    assert small.flushes_per_case > large.flushes_per_case
    assert small.wait_ms is not None
    assert large.wait_ms is not None
    assert small.wait_ms < large.wait_ms
    assert small.median_ctu is not None
    assert large.median_ctu is not None
    assert small.median_ctu < large.median_ctu
    assert small.cost_ctu > large.cost_ctu
    assert small.whole_terms is not None
    assert large.whole_terms is not None
    assert 0 < small.whole_terms <= large.whole_terms <= 1
    with pytest.raises(ConfigError):
        grid([90], [10])


def test_a_calibration_has_no_figures_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A turn without content has no chunk; "Hello." is one chunk, the end of its turn, and names no
    # concept.
    for text, wait_ms in (("TERMINATE", "–"), ("Hello.", "0")):
        events = [starts(1, "a", 0, 900), says(1, "a", 1, text, 1000), ends(1, "a", 2, 1000)]
        path = tmp_path / "case-1.trace.jsonl.gz"
        write_trace_file(path, events, case_id="case-1", **META)
        figure = tmp_path / "calibration.png"
        options = ["--min-words", "35", "--max-words", "90", "--figure", str(figure)]
        assert calibrate([str(path), *options]) == 0
        (row,) = (line for line in capsys.readouterr().out.splitlines() if "| 35/90" in line)
        median_ctu, whole_terms, wait = (cell.strip() for cell in row.split("|")[4:7])
        assert (median_ctu, whole_terms, wait) == ("–", "–", wait_ms)
        path.unlink()


@pytest.mark.sweep
def test_a_threshold_of_stoplists_is_a_share(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_stoplists([str(traces), "--out", str(tmp_path), "--threshold", "90"]) == 2
    assert "--threshold must be" in capsys.readouterr().err
    assert make_stoplists([str(traces), "--out", str(tmp_path), "--generated-at", "noon"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# Older run logs


def single_record(**changes: Any) -> dict[str, Any]:
    return {
        "schema_name": "exaid.run",
        "schema_version": "1.2.0",
        "case_id": "case-1",
        "variant_id": "V1",
        "summary_events": [
            {
                "event_id": "case-1-V1-se-000",
                "start_seq": 1,
                "end_seq": 9,
                "summary_semantics_text": "Pneumonia.",
                "summary_ctu": 3,
                "llm_usage": {"prompt_ctu": 10, "completion_ctu": 3},
                "latency_ms": 7,
            }
        ],
        **changes,
    }


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".jsonl.gz"])
def test_single_record_files_are_read(traces: Path, suffix: str) -> None:
    folder = traces / "data" / "runs" / "V1"
    folder.mkdir(parents=True)
    indent = 1 if suffix == ".json" else None
    text = json.dumps(single_record(), indent=indent).encode()
    path = folder / f"case-1{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    assert read_run_log(path).events[0].covered(range(100)) == frozenset(range(1, 10))
    assert validate([str(path)]) == 0
    assert compute_metrics([str(traces)]) == 0
    (line,) = (traces / "metrics" / "per_case.metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["m2_output_ctu"] == 3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (single_record(summary_events=7), "summary_events: not a list"),
        (single_record(summary_events=[{}]), "summary_events: start_seq: Field required"),
        (single_record() | {"summary_events": [], "flushes": 7}, "line 1: flushes: not a list"),
        (single_record(schema_version="9.0"), "a run log begins with a run_meta record"),
        (
            {"record_type": "run_meta", "schema_version": "2.0.0"},
            "exaid.run '2.0.0' cannot be read, only 1.2 to 1.5",
        ),
    ],
)
def test_run_logs_that_cannot_be_read(
    tmp_path: Path, content: dict[str, Any], expected: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(content))
    with pytest.raises(RecordError, match=expected):
        read_run_log(path)
    assert validate([str(path)]) == 1


def test_a_log_of_1_3_is_read_without_the_fields_of_1_5(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    meta = {
        "record_type": "run_meta",
        "schema_version": "1.3.0",
        "case_id": "case-1",
        "variant_id": "V0",
    }
    event = {
        "record_type": "summary_event",
        "event_index": 0,
        "event_id": "case-1-V0-se-000",
        "case_id": "case-1",
        "variant_id": "V0",
        "start_seq": 0,
        "end_seq": 5,
        "schema_ok": True,
        "summary_semantics_text": "Fever.",
        "summary_ctu": 2,
    }
    path.write_text(f"{json.dumps(meta)}\n{json.dumps(event)}\n")
    assert read_run_log(path).events[0].text == "Fever."
    assert validate([str(path)]) == 0
    path.write_text(f"{json.dumps(meta)}\n{json.dumps(event | {'event_index': 1})}\n")
    assert validate([str(path)]) == 1
    path.write_text(f"{json.dumps(meta)}\n{json.dumps(event | {'record_type': ['what']})}\n")
    with pytest.raises(RecordError, match=r"line 2: record_type: \['what'\] is none of a run log"):
        read_run_log(path)
