"""One odd trace does not stop the others, whichever program reads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.cli.calibrate import main as calibrate
from evals.cli.compute_metrics import main as compute_metrics
from evals.cli.make_manifest import main as make_manifest
from evals.cli.make_stoplists import main as make_stoplists
from evals.cli.replay import main as replay
from evals.cli.run_all import main as run_all
from evals.cli.validate_logs import main as validate
from evals.variants import load_variant
from tests.evals.conftest import SENTENCE, write_trace
from tests.fake_provider import FakeProvider
from tests.support.late_trace import end_before_last_delta

pytestmark = pytest.mark.sweep

Options = Callable[..., list[str]]


@pytest.fixture
def odd(traces: Path) -> Path:
    """A run with two good traces, one with a late delta, and three that cannot be used."""
    folder = traces / "traces"
    end_before_last_delta(write_trace(folder, "case-3"), 20)
    cut = write_trace(folder, "case-4")
    cut.write_bytes(cut.read_bytes()[:300])
    end_before_last_delta(write_trace(folder, "case-5"), 51)
    other = write_trace(folder, "case-6")
    text = gzip.decompress(other.read_bytes()).decode()
    other.write_bytes(gzip.compress(text.replace('"2.0.0"', '"3.0.0"').encode()))
    return traces


def told_of(error: str) -> list[str]:
    """The names of the files that lines of stderr begin with."""
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    return [line.split()[1].rpartition("/")[2] for line in lines]


LEFT_OUT = [f"case-{number}.trace.jsonl.gz" for number in (4, 5, 6)]


def test_each_program_uses_the_others(
    odd: Path, tmp_path: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(odd)
    for main, options in [
        (make_manifest, []),
        (calibrate, ["--min-words", "35", "--max-words", "90"]),
        (make_stoplists, ["--out", str(tmp_path / "stop")]),
        (replay, ["--variants", "V1", *model_options()]),
        (compute_metrics, []),
    ]:
        assert main([folder, *options]) == 1, main
        error = capsys.readouterr().err
        assert told_of(error) == LEFT_OUT
        assert "case-3.trace.jsonl.gz: 1 delta up to 50 ms late (seq " in error
        assert "3 of 6 traces left out, the rest is used" in error
    names = sorted(path.name for path in (odd / "data" / "runs" / "V1").iterdir())
    assert names == ["case-1.jsonl.gz", "case-2.jsonl.gz", "case-3.jsonl.gz"]
    assert len((odd / "metrics" / "per_case.metrics.jsonl").read_text().splitlines()) == 3


def test_run_all_says_it_once(
    odd: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all([str(odd), "--variants", "V0,V3", *model_options()]) == 1
    shown = capsys.readouterr()
    assert told_of(shown.err) == LEFT_OUT
    assert shown.err.count("late") == 1
    assert "6 run logs written, 0 already present, 0 failed" in shown.out
    (odd / "figures" / "ablation.png").unlink()
    assert run_all([str(odd), "--variants", "V0,V3", *model_options("--cache", "only")]) == 1
    assert "0 run logs written, 6 already present" in capsys.readouterr().out


def test_the_late_delta_is_summarised_with_its_turn(tmp_path: Path, model_options: Options) -> None:
    path = end_before_last_delta(write_trace(tmp_path), 20)
    assert replay([str(tmp_path), "--variants", "V1", *model_options()]) == 0
    log = gzip.decompress((tmp_path / "data/runs/V1/case-1.jsonl.gz").read_bytes())
    records = [json.loads(line) for line in log.splitlines()]
    flush = next(r for r in records if r["record_type"] == "tokengate_flush")
    assert flush["accumulated_ctu"] == -(-len(SENTENCE + "Blood cultures first. ") // 4)
    assert validate([str(path)]) == 0


def test_validation_notes_a_late_delta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = end_before_last_delta(write_trace(tmp_path), 20)
    assert validate([str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"{path}: note: 1 delta up to 50 ms late" in shown
    assert "1 file checked, 0 problems" in shown
    end_before_last_delta(write_trace(tmp_path), 60)
    assert validate([str(path)]) == 1
    assert "turn_id: turn 1 has ended already 60 ms before" in capsys.readouterr().out


def test_without_a_usable_trace_nothing_is_done(
    odd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2, 3):
        (odd / "traces" / f"case-{number}.trace.jsonl.gz").unlink()
    assert make_manifest([str(odd)]) == 2
    error = capsys.readouterr().err
    assert told_of(error)[:3] == LEFT_OUT
    assert error.endswith("error: none of 3 traces can be used\n")


def test_the_model_of_another_run_does_not_break_the_line(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(traces / "traces", "case-3", model="x\ny\x1b[31m" + "z" * 5000)
    assert make_manifest([str(traces)]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert "case-3.trace.jsonl.gz line 1: of another run than most: mas_run_id mas_1 with" in line
    assert line.isprintable()
    assert len(line) < 600


# Calibration


@pytest.fixture
def wordy(tmp_path: Path) -> Path:
    """A trace in which the gate lets text through twice within a turn."""
    run = tmp_path / "run"
    write_trace(run / "traces", "case-1", more=SENTENCE * 3)
    return run


def test_run_all_calibrates_the_chunks_of_v3(
    wordy: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrate([str(wordy)]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if "chunk of V3" in line)
    chunk = int(told.split()[3])
    assert chunk != 125
    options = [str(wordy), "--variants", "V0,V3", *model_options()]
    assert run_all(options) == 0
    assert told in capsys.readouterr().out
    assert load_variant("V3", wordy / "data" / "variants").chunk_ctu == chunk
    log = wordy / "data" / "runs" / "V3" / "case-1.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(log.read_bytes()).splitlines()]
    sizes = [r["accumulated_ctu"] for r in records if r["record_type"] == "tokengate_flush"]
    assert chunk <= max(sizes) <= chunk + 2
    # A replay alone goes on with these settings, one with others says so.
    assert replay(options) == 0
    capsys.readouterr()
    settings = wordy / "data" / "variants" / "V3.yaml"
    settings.write_text(settings.read_text().replace(f"chunk_ctu: {chunk}", "chunk_ctu: 125"))
    assert replay(options) == 2
    assert "other settings" in capsys.readouterr().err


def test_the_hash_of_the_chunk_is_in_the_run_log(
    wordy: Path, tmp_path: Path, model_options: Options
) -> None:
    hashes = []
    for chunk in (60, 125):
        settings, out = tmp_path / str(chunk), tmp_path / f"out-{chunk}"
        settings.mkdir()
        text = load_variant("V3").model_copy(update={"chunk_ctu": chunk}).model_dump_json()
        (settings / "V3.yaml").write_text(text)
        options = ["--variants", "V3", "--settings", str(settings), "--out", str(out)]
        assert replay([str(wordy), *options, *model_options()]) == 0
        log = gzip.decompress((out / "data/runs/V3/case-1.jsonl.gz").read_bytes())
        hashes.append(json.loads(log.splitlines()[0])["tokengate_config_hash"])
    assert len(set(hashes)) == 2


# Many at once


def test_jobs_are_under_way_at_once(
    tmp_path: Path, model_options: Options, provider: FakeProvider
) -> None:
    for number in range(20):
        write_trace(tmp_path / "traces", f"case-{number:02d}", more=f"Case {number}. ")
    provider.latency = 0.2
    options = [str(tmp_path), "--variants", "V1", "--jobs", "20", "--cache", "off"]
    assert replay([*options, *model_options()]) == 0
    assert provider.max_in_flight == 20


def test_recorded_replies_are_replayed_by_several_processes_with_the_same_bytes(
    tmp_path: Path, model_options: Options
) -> None:
    for number in range(8):
        write_trace(tmp_path / "traces", f"case-{number}", more=f"Case {number}. ")
    options = [str(tmp_path), "--variants", "V1,V2", *model_options()]
    assert replay(options) == 0
    replies = ["--cache", "only", "--replies", str(tmp_path / ".cache" / "replies.sqlite")]
    for name, jobs in (("one", "1"), ("two", "8")):
        out = ["--out", str(tmp_path / name), "--jobs", jobs]
        assert replay([*options, *replies, *out]) == 0
    made = sorted((tmp_path / "one").rglob("*.gz"))
    assert len(made) == 16
    for path in made:
        again = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_bytes() == again.read_bytes()
