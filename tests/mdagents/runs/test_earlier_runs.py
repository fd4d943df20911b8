"""Runs that an earlier version began are continued, replayed and scored by this one."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from mdagents.records.sample import SCHEMA_VERSION
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process

RUNS = REPOSITORY / "tests" / "fixtures" / "runs"
PORT = 18713
"""Port of the provider that the runs were made with: a base URL is part of a run's identity."""
WITH_THEIR_PROMPTS = """\
import runpy, sys
from pathlib import Path
from exaid_core import prompts as of_exaid
from mdagents_llm.model_configs import load_model_configs
from mdagents.agents import prompts as of_teams
_, folder, *sys.argv = sys.argv
of_exaid.PROMPTS.__init__(Path(folder) / "exaid_prompts")
of_teams.PROMPTS.__init__(Path(folder) / "team_prompts")
load_model_configs().models.pop("local/smollm2-135m-instruct")
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program with the prompts of that time, which are part of a run's identity, and with the
embedded model treated as any local one, as it was then."""


def unpack(name: str) -> None:
    with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
        archive.extractall(filter="data")


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [
            *(sys.executable, "-c", WITH_THEIR_PROMPTS, str(RUNS)),
            *(str(REPOSITORY / program), *arguments),
        ],
        env=bare_environment(
            PYTHONPATH=str(REPOSITORY),
            HOME=str(Path.cwd()),
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL=f"http://127.0.0.1:{PORT}/v1",
        ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def main(*arguments: str) -> subprocess.CompletedProcess[str]:
    data = ("--data-dir", str(REPOSITORY / "data"), "--display", "none")
    return python("main.py", *data, *arguments)


def only(pattern: str) -> Path:
    (path,) = Path().glob(pattern)
    return path


SINCE_THEN = {
    "emptied_fields": [],
    "clipped": False,
    "alerts": [],
    "alert_missing": False,
    "remarks": [],
}
"""Fields that summaries have had since the runs were made, and what they were."""


def records(path: Path, *, without: tuple[str, ...]) -> list[dict[str, Any]]:
    found = json.loads(path.read_bytes())
    for record in found:
        exaid = record["exaid"]
        exaid["summaries"] = [{**SINCE_THEN, **summary} for summary in exaid["summaries"]]
        exaid["token_usage"].pop("cost_usd", None)  # not known of the runs that were made before
        record["token_usage"] = {"cache_write_tokens": 0} | record["token_usage"]
        if "majority_vote" in (record["response"] or {}):
            record["response"].pop("analysis", None)  # not kept of the intermediate team then
    since: dict[str, Any] = {"rungs": [], "pictures": []}
    found = [since | record | {"schema_version": SCHEMA_VERSION} for record in found]
    without = (*without, "restart", "fields")  # the other fields of a question were not kept then
    return [{k: v for k, v in record.items() if k not in without} for record in found]


def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(only("output/*samples/run.json").read_bytes())
    return loaded


@pytest.mark.parametrize("arguments", [("--num-samples", "12"), ("--resume",)])
def test_a_run_that_was_killed_half_way_is_continued(arguments: tuple[str, ...]) -> None:
    unpack("adaptive")
    before, samples = manifest(), only("output/*/samples.jsonl")
    finished = samples.read_bytes()
    assert finished.count(b"\n") == 5
    with FakeProvider(port=PORT):
        main(*arguments)
    after = manifest()
    assert samples.read_bytes().startswith(finished), "what was finished stays as it was"
    assert samples.read_bytes().count(b"\n") == 12
    parts = ("wall_seconds", "exaid", "watched")
    undisturbed = records(Path("undisturbed.json"), without=parts)
    assert records(only("output/*.json"), without=parts) == undisturbed
    assert after["finished"]
    for name in ("name", "config_hash", "items_hash", "prompt_hashes", "models"):
        assert after[name] == before[name], name
    assert len(after["invocations"]) == 2
    assert after["spent"]["cached_calls"] > before["spent"]["cached_calls"], (
        "replies that were paid for are used again"
    )
    assert after["totals"]["exaid"]["questions"] == 12


@pytest.mark.parametrize(
    ("name", "arguments", "changed"),
    [
        ("baseline", ("--num-samples", "6", "--method", "cot_sc"), ()),
        (
            "embedded",
            ("--model", "local", "--num-samples", "1", "--difficulty", "basic"),
            # The first of its summaries repeats itself, which is left out by now, and later prompts
            # of EXAID hold that summary.
            ("exaid", "watched"),
        ),
    ],
)
def test_a_finished_run_is_replayed_and_scored(
    name: str, arguments: tuple[str, ...], changed: tuple[str, ...]
) -> None:
    unpack(name)
    before, array, table = manifest(), only("output/*.json"), only("evaluation/*.csv")
    expected = records(array, without=("wall_seconds", *changed))
    scores = list(csv.reader(table.read_text(encoding="utf-8").splitlines()))
    main("--cache", "only", "--fresh", *arguments)
    assert records(array, without=("wall_seconds", *changed)) == expected
    after = manifest()
    assert after["config_hash"] == before["config_hash"]
    assert after["spent"]["calls"] == 0
    if not changed:
        assert after["spent"]["cached_calls"] == before["spent"]["calls"]
    python("evaluate_text_output.py", "--input", str(array))
    again = list(csv.reader(table.read_text(encoding="utf-8").splitlines()))
    assert again[0][: len(scores[0])] == scores[0]  # new columns come after those of a version
    assert {row[scores[0].index("parse_method")] for row in again[1:]} == {"recorded"}
    others = {"wall_seconds", "parse_method", *(["exaid_tokens"] if "exaid" in changed else [])}
    same = [n for n, column in enumerate(scores[0]) if column not in others]
    assert [[row[n] for n in same] for row in again] == [[row[n] for n in same] for row in scores]


def test_a_baseline_that_earlier_versions_called_adaptive_is_found() -> None:
    unpack("baseline")
    folder = only("output/*samples")
    assert "_adaptive_cot_sc_" in folder.name
    for arguments in (("--num-samples", "6", "--method", "cot_sc"), ("--resume", folder.name)):
        assert "this run is already finished" in main(*arguments).stderr
    main("--cache", "only", "--num-samples", "3", "--method", "cot_sc")
    new = {path.name for path in Path("output").glob("*samples")} - {folder.name}
    assert new == {folder.name.replace("_adaptive_", "_").replace("_6s", "_3s")}
