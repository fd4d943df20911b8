"""Runs in experiment trackers: MLflow's own store on disk, and the offline form of wandb."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from mdagents.export.cli import main
from mdagents.export.tracked import track_run
from mdagents.records.calls import read_calls
from tests.support.whole_runs import Run

pytestmark = pytest.mark.process  # both trackers take seconds to load


@pytest.fixture
def finished(run: Run) -> Path:
    """The folder of a run of three questions of two levels."""
    assert run("--num-samples", "3", "--difficulty", "basic,advanced")[0] == 0
    (manifest,) = Path("output").glob("*/run.json")
    return manifest.parent


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty store."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return Path("mlruns").resolve().as_uri()


def runs_of(store: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=store)
    (experiment,) = [e for e in client.search_experiments() if e.name == "mdagents"]
    return list(client.search_runs([experiment.experiment_id]))


def test_metrics_are_sums_of_the_ledger_and_params_hold_no_path(finished: Path) -> None:
    tracked = track_run(finished)
    rows = [row for _, row in read_calls(finished / "calls.jsonl")]
    assert tracked.metrics["tokens"] == sum(row.usage.total_tokens for row in rows)
    assert tracked.metrics["calls"] == len(rows)
    assert tracked.metrics["questions"] == 3
    assert tracked.metrics["basic/questions"] + tracked.metrics["advanced/questions"] == 3
    assert 0 <= tracked.metrics["accuracy_low"] <= tracked.metrics["accuracy"] <= 1
    everything = json.dumps([dict(tracked.params), dict(tracked.tags), dict(tracked.files)])
    assert str(Path.cwd()) not in everything
    assert "test-key" not in everything
    record = json.loads((finished / "samples.jsonl").read_text().splitlines()[0])
    assert record["question"][:60] not in everything


def test_a_run_is_written_once_however_often_it_is_exported(
    finished: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(finished), "--mlflow", store, "--study", "trial"]) == 0
    assert main([str(finished), "--mlflow", store]) == 0
    assert "http" not in capsys.readouterr().out
    parent, child = sorted(runs_of(store), key=lambda run: len(run.data.metrics))
    assert child.info.run_name == finished.name
    assert child.info.status == "FINISHED"
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert child.data.metrics == pytest.approx(dict(track_run(finished).metrics))
    assert child.data.params == dict(track_run(finished).params)
    files = sorted(path.name for path in Path("mlruns").rglob("artifacts/*"))
    assert files == ["card.json", "card.md", "scores.csv", "summary.json"]


def test_a_run_in_progress_is_brought_up_to_date(finished: Path, store: str) -> None:
    path = finished / "run.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"finished": False}))
    assert main([str(finished), "--mlflow", store]) == 0
    assert runs_of(store)[0].info.status == "RUNNING"
    path.write_text(json.dumps(manifest))
    assert main([str(finished), "--mlflow", store]) == 0
    (made,) = runs_of(store)
    assert (made.info.status, made.data.tags["mdagents.finished"]) == ("FINISHED", "true")


def test_a_run_in_mlflow_ends_when_it_ended(finished: Path, store: str) -> None:
    path = finished / "run.json"
    manifest = json.loads(path.read_text())
    manifest["invocations"][-1] |= {
        "started_at": "2026-01-01T00:00:00.000Z",
        "ended_at": "2026-01-01T00:00:20.500Z",
    }
    stopped = json.loads(json.dumps(manifest))
    stopped["invocations"][-1]["reason"] = "stopped at a limit of the run"
    for content, status in (
        (stopped | {"finished": False}, "KILLED"),
        (manifest, "FINISHED"),
        (manifest, "FINISHED"),
    ):
        path.write_text(json.dumps(content))
        assert main([str(finished), "--mlflow", store, "--study", "trial"]) == 0
        assert len(runs_of(store)) == 2
        for made in runs_of(store):
            assert made.info.end_time - made.info.start_time == 20_500
        (child,) = [made for made in runs_of(store) if "mlflow.parentRunId" in made.data.tags]
        assert child.info.status == status


@pytest.mark.parametrize("uri", ["databricks", "databricks-uc"])
def test_names_of_databricks_are_addresses(
    finished: Path, uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def refusing(tracking_uri: str) -> None:
        asked.append(tracking_uri)
        raise MlflowException("no access")

    monkeypatch.setattr("mlflow.MlflowClient", refusing)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    capsys.readouterr()
    assert main([str(finished), "--mlflow"]) == 1
    assert asked == [uri]
    assert "MLflow at the store: no access" in capsys.readouterr().err


def test_a_metric_that_falls_is_the_one_that_is_shown(finished: Path, store: str) -> None:
    samples = finished / "samples.jsonl"
    records = [json.loads(line) for line in samples.read_text().splitlines()]
    for letters in ("right", "wrong"):
        for record in records:
            other = next(letter for letter in record["options"] if letter != record["label"])
            record["predicted"] = record["label"] if letters == "right" else other
            record["response"] = {"final_answer": f"{record['predicted']})"}
        samples.write_text("".join(json.dumps(record) + "\n" for record in records))
        assert main([str(finished), "--mlflow", store]) == 0
        (made,) = runs_of(store)
        assert made.data.metrics["accuracy"] == (letters == "right")


def test_a_status_that_no_question_has_any_more_is_zero(finished: Path, store: str) -> None:
    samples = finished / "samples.jsonl"
    before = samples.read_text()
    (first, *rest) = map(json.loads, before.splitlines())
    failed = first | {"status": "api_error", "error": "500", "predicted": None}
    samples.write_text("".join(json.dumps(record) + "\n" for record in (failed, *rest)))
    assert main([str(finished), "--mlflow", store]) == 0
    samples.write_text(before)
    assert main([str(finished), "--mlflow", store]) == 0
    (made,) = runs_of(store)
    counts = {name: n for name, n in made.data.metrics.items() if name.startswith("status/")}
    assert counts == {"status/api_error": 0, "status/answered": 3}


@pytest.mark.parametrize("study", ["it's", 'it\'s "the" \\ one', "100%_"])
def test_the_name_of_a_study_may_hold_any_mark(finished: Path, store: str, study: str) -> None:
    for name in (study, f"{study}, again", study):
        assert main([str(finished), "--mlflow", store, "--study", name]) == 0
    made = runs_of(store)
    assert len(made) == 3
    (child,) = [run for run in made if "mlflow.parentRunId" in run.data.tags]
    (parent,) = [run for run in made if run.data.tags.get("mdagents.parent") == study]
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id


def test_a_repetition_with_the_same_settings_is_another_run(finished: Path, store: str) -> None:
    again = finished.with_name(f"{finished.name}_again")
    shutil.copytree(finished, again)
    path = again / "run.json"
    manifest = json.loads(path.read_text())
    manifest["invocations"][0]["started_at"] = "2026-01-01T00:00:00.000Z"
    path.write_text(json.dumps(manifest | {"name": again.name}))
    assert main([str(finished), str(again), "--mlflow", store]) == 0
    assert len(runs_of(store)) == 2


def test_nothing_goes_where_a_server_redirects_to(finished: Path) -> None:
    reached: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reached.append(self.path)
            self.send_response(307)
            self.send_header("location", f"http://localhost:{self.server.server_port}/elsewhere")  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        command = [sys.executable, "-m", "mdagents", "export", str(finished), "--mlflow", address]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        server.shutdown()
    assert ended.returncode == 1, ended.stdout
    assert reached
    assert not [path for path in reached if "elsewhere" in path]


def test_a_server_that_is_not_there_is_said_in_a_line(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:secret@127.0.0.1:9")
    capsys.readouterr()
    assert main([str(finished), "--mlflow"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "error: MLflow at 127.0.0.1 cannot be reached: Connection refused"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--mlflow"], "--mlflow needs the address of a server, or MLFLOW_TRACKING_URI"),
        (["--mlflow", "here"], "must be the address of a tracking server"),
        (["--mlflow", "http://h", "--wandb"], "give one of them"),
        (["--mlflow", "http://h", "--card"], "leave them out"),
        (["--study", "x"], "--experiment and --study belong to"),
        (["--wandb", "{run}"], "--wandb is '{run}', which is a run; name the folder to write to"),
    ],
)
def test_wrong_use_is_said_in_a_line(
    finished: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    flags = [flag.format(run=finished) for flag in flags]
    assert main([str(finished), *flags]) == 2
    assert said.format(run=finished) in capsys.readouterr().err
    assert not (finished / "wandb").exists()


def test_wandb_writes_offline_what_it_will_upload(finished: Path) -> None:
    assert main([str(finished), "--wandb", "w", "--study", "trial"]) == 0
    (file,) = Path("w/wandb").glob("offline-run-*/*.wandb")
    written, tracked = file.read_bytes(), track_run(finished)
    assert tracked.identity[:16] in file.name
    for text in ("trial", finished.name, *tracked.metrics, *tracked.params.values()):
        assert text.encode() in written, text
    assert json.dumps(tracked.metrics["accuracy"]).encode() in written
    assert str(Path.cwd()).encode() not in written
    assert b"requirements.txt" not in written, "it lists the packages of this machine"
    assert not list(Path("w").rglob("requirements.txt"))
