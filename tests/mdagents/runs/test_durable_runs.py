"""Runs that cannot be lost: killed, interrupted, out of room, out of budget, replayed."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
import pytest

from mdagents.cli.score import main as score
from mdagents.records.line_log import LineLog
from mdagents.records.manifest import RunManifest
from mdagents.records.store import RunStore
from mdagents.runs.forecast import forecast
from mdagents.runs.options import read_config, read_options
from mdagents.runs.program import main
from mdagents.scoring import rows
from mdagents_llm.config import parse_environment
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider, FaultPlan
from tests.support.sweeps import seeds
from tests.support.whole_runs import SAMPLE, Run, program, records

pytestmark = pytest.mark.process

BASIC = ("--num-samples", "6", "--difficulty", "basic")


def manifest() -> RunManifest:
    (file,) = Path("output").glob("*/run.json")
    return RunManifest.model_validate_json(file.read_bytes())


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """The record without what depends on when, and how often, the run was interrupted."""
    return {k: v for k, v in record.items() if k not in ("wall_seconds", "restart")}


def ledger_rows() -> list[dict[str, Any]]:
    (file,) = Path("output").glob("*/calls.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


# -- going on ---------------------------------------------------------------------------------


def test_a_finished_run_is_shown_without_a_call(provider: FakeProvider, run: Run) -> None:
    _, first, _ = run(*BASIC)
    calls = len(provider.calls)
    status, second, err = run(*BASIC)
    assert (status, second) == (0, first)
    assert len(provider.calls) == calls
    assert "no call was made" in err


def test_fresh_keeps_the_earlier_run_under_a_dated_name(run: Run) -> None:
    run(*BASIC)
    _, _, err = run(*BASIC, "--fresh")
    assert "the earlier run of this name was kept as" in err
    assert len(list(Path("output").glob("*.json"))) == 2
    assert len(list(Path("output").glob("*/samples.jsonl"))) == 2


def test_an_array_older_than_its_records_is_never_scored(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public report: a log of an earlier start is read in place of the whole one
    (UKGovernmentBEIS/inspect_ai issue 4933)."""
    run(*BASIC, "--max-samples", "1", "--token-limit", "5000")
    (array,) = Path("output").glob("*.json")
    folder = array.with_suffix("")
    few = len(json.loads(array.read_bytes()))
    assert few < 6

    def full(store: RunStore) -> Iterator[bytes]:
        yield b"["
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:  # a kill at the end leaves the same files
        patch.setattr(RunStore, "_array", full)
        status, out, _ = run(*BASIC)
    assert status == 1
    assert len(json.loads(array.read_bytes())) == few
    assert f"records: {folder}\n" in out
    assert out.splitlines()[-2].endswith(f" --input {folder}")
    os.utime(array, (2e9, 2e9))  # as a copy or a checkout may leave it
    assert rows.newest_output(Path("output")) == folder
    for path in (array, folder):
        assert len(rows.read_output(path).rows) == 6
    assert score(["--input", str(array)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{array} is older than the records in {folder}, which were read instead" in shown
    assert run(*BASIC)[1].splitlines()[-2].endswith(f" --input {array}")
    assert rows.read_output(array).path == array


def test_an_edited_record_is_scored_by_default(run: Run) -> None:
    run(*BASIC)
    (samples,) = Path("output").glob("*/samples.jsonl")
    array = samples.parent.with_suffix(".json")
    assert rows.newest_output(Path("output")) == array
    array.write_text(json.dumps(json.loads(array.read_bytes())[2:]))
    assert len(rows.read_output(rows.newest_output(Path("output"))).rows) == 4
    os.utime(array, (1e9, 1e9))  # older than the edit, also where a clock ticks slowly
    samples.write_bytes(b"".join(samples.read_bytes().splitlines(keepends=True)[1:]))
    assert len(rows.read_output(rows.newest_output(Path("output"))).rows) == 5


@pytest.mark.parametrize("rows_kept", [None, 0, 3])
def test_a_ledger_that_lost_rows_does_not_give_a_limit_back(
    provider: FakeProvider, run: Run, rows_kept: int | None
) -> None:
    """Public reports: a limit counts from 0 after each start (OpenHands/OpenHands issue 8858,
    UKGovernmentBEIS/inspect_ai pull request 2845)."""
    limited = (*BASIC, "--max-samples", "1", "--token-limit", "5000", "--cache", "off")
    run(*limited)
    (ledger,) = Path("output").glob("*/calls.jsonl")
    manifest, whole = ledger.with_name("run.json").read_bytes(), ledger.read_bytes()
    lines = whole.splitlines(keepends=True)
    ledger.unlink()
    if rows_kept is not None:
        ledger.write_bytes(b"".join(lines[:rows_kept]))
    calls = len(provider.calls)
    status, _, err = run(*limited)
    assert (status, len(provider.calls)) == (2, calls)
    assert err.splitlines()[-1] == (
        f"error: {ledger} holds {rows_kept or 0} of the {len(lines)} replies that this run has "
        "had, so that totals and limits would be wrong; put the file back, or take spent out of "
        "run.json to go on without the lost ones, or start with --fresh, which keeps this run "
        "under another name"
    )
    assert ledger.with_name("run.json").read_bytes() == manifest, "what was paid stays known"
    killed = json.loads(manifest) | {"spent": {}}
    ledger.with_name("run.json").write_text(json.dumps(killed))
    if not rows_kept:
        assert run(*limited)[0] == 2, "the records of a start that was killed count as well"
    ledger.write_bytes(whole + lines[0])  # after a kill, it has more rows than `run.json` counts
    assert run(*limited)[0] == 1
    assert len(provider.calls) == calls, "the limit is still reached"


@pytest.mark.parametrize("power_failed", [True, False])
def test_a_run_goes_on_without_rows_that_nobody_can_put_back(
    provider: FakeProvider, run: Run, *, power_failed: bool
) -> None:
    """A power failure takes the last rows; and a damaged row can only be deleted."""
    run(*BASIC, "--cache", "off")
    (ledger,) = Path("output").glob("*/calls.jsonl")
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-1]))
    path = ledger.with_name("run.json")
    started = json.loads(path.read_bytes()) | {"finished": False}
    if power_failed:
        started["spent"] = {}  # as a start writes it
    else:
        del started["spent"]
    path.write_text(json.dumps(started))
    calls = len(provider.calls)
    assert run(*BASIC, "--cache", "off")[0] == 0
    assert len(provider.calls) == calls
    assert manifest().spent.calls == calls - 1


def test_errors_are_answered_again_on_request_only(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("context_length", match="Your role: arbitrator")
    run(*BASIC)
    assert Counter(r["status"] for r in records()) == {"answered": 5, "api_error": 1}
    calls = len(provider.calls)
    run(*BASIC)
    assert len(provider.calls) == calls
    status, out, _ = run(*BASIC, "--retry-errors")
    assert status == 0
    assert Counter(r["status"] for r in records()) == {"answered": 6}
    assert len(provider.calls) == calls + 1, "the rest of that question came from the cache"
    assert manifest().totals.questions == 6
    assert "status: answered 6" in out
    assert len(manifest().invocations) == 2


def test_answers_that_lack_votes_are_named_and_completed_on_request(
    provider: FakeProvider, run: Run
) -> None:
    votes = ("--num-samples", "6", "--method", "cot_sc", "--exaid", "off", "--max-retries", "0")
    provider.fail_next("500", times=3)
    status, out, err = run(*votes)
    lacking = [record for record in records() if record["left_out"]]
    assert status == 0
    assert {turn["status"] for record in lacking for turn in record["left_out"]} == {"api_error"}
    assert Counter(record["status"] for record in records()) == {"answered": 6}
    assert manifest().totals.incomplete == len(lacking) > 0
    said = f"answers of a team that went on without a turn that ended in api_error: {len(lacking)}"
    assert said in " ".join(out.split())
    assert "a turn that ended in api_error; --retry-errors answers" in err.splitlines()[-1]
    calls = len(provider.calls)
    _, out, err = run(*votes, "--retry-errors")
    assert len(provider.calls) == calls + 3, "all other votes came from the cache"
    assert not any(record["left_out"] for record in records())
    assert manifest().totals.incomplete == 0
    assert "went on without" not in out
    assert run(*votes, "--retry-errors")[1] == out
    assert len(provider.calls) == calls + 3


def test_a_run_that_was_stopped_for_longer_than_a_timeout_loses_nothing(
    provider: FakeProvider,
) -> None:
    # Ctrl-Z and `fg`, `docker pause`, or a cluster that suspends jobs (spur 275).
    hold = provider.hold()
    process = program(provider, *BASIC, "--attempt-timeout", "1", "--timeout", "2")
    hold.wait(1)
    process.send_signal(signal.SIGSTOP)
    hold.release()
    time.sleep(4)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert [record["status"] for record in records()] == ["answered"] * 6
    assert {row["outcome"] for row in ledger_rows()} == {"ok"}, "each reply was read"


def test_another_process_is_refused_while_one_writes(provider: FakeProvider, run: Run) -> None:
    hold = provider.hold("Your role: arbitrator")
    process = program(provider, "--data-dir", str(REPOSITORY / "data"), *BASIC)
    hold.wait(1)
    status, _, err = run(*BASIC)
    assert status == 2
    assert "another process is writing to output/" in err
    process.kill()
    process.communicate()
    hold.release()
    assert run(*BASIC)[0] == 0, "a dead holder never blocks"


def test_a_run_is_locked_until_its_result_is_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start with --fresh moves the files of a run that nobody holds."""
    read, tried = rows.read_output, []

    def read_beside_another_start(path: Path) -> rows.RunOutput:
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(path / ".lock", blocking=False).acquire()
        tried.append(path)
        return read(path)

    monkeypatch.setattr(rows, "read_output", read_beside_another_start)
    assert run(*BASIC)[0] == 0
    assert len(tried) == 1
    monkeypatch.undo()
    filelock.FileLock(tried[0] / ".lock", blocking=False).acquire()


@pytest.mark.skipif(os.name == "nt", reason="Windows renames no folder with an open file")
def test_fresh_holds_the_earlier_run_until_it_is_renamed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*BASIC)
    rename, tried = Path.rename, []

    def rename_beside_another_start(path: Path, target: Path) -> Path:
        if path.is_dir():
            with pytest.raises(filelock.Timeout):
                filelock.FileLock(path / ".lock", blocking=False).acquire()
            tried.append(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_beside_another_start)
    assert run(*BASIC, "--fresh")[0] == 0
    assert len(tried) == 1


def test_a_run_with_other_questions_under_the_same_name_is_refused(run: Run) -> None:
    Path("a").mkdir()
    lines = SAMPLE.read_text().splitlines(keepends=True)
    Path("a/mine.jsonl").write_text("".join(lines[:2]))
    arguments = ("--dataset", "a/mine.jsonl", "--difficulty", "basic", "--exaid", "full_exaid")
    assert run(*arguments)[0] == 0
    Path("a/mine.jsonl").write_text("".join(lines[2:4]))
    status, _, err = run(*arguments)
    assert status == 2
    assert "holds a run that differs in items_hash" in err
    assert run(*arguments, "--fresh")[0] == 0


def test_resume_by_name_and_the_newest_unfinished(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("quota", times=3, match=lambda request: request.index >= 12)
    status, _, err = run(*BASIC, "--seed", "3", "--max-samples", "1", "--cache", "off")
    assert status == 1
    assert "is out of reach" in err
    name = manifest().name
    assert run("--resume", "--cache", "off", "--limit", "1")[0] == 2, "--num-samples is the run's"
    assert run("--resume")[0] == 0
    assert manifest().finished
    assert len(records()) == 6
    assert run("--resume", name)[0] == 0


def test_resume_passes_over_copies_and_what_is_no_run(provider: FakeProvider, run: Run) -> None:
    assert run(*BASIC, "--token-limit", "1")[0] == 1
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    aside = Path(f"{folder}.20261130T120000.000000")  # as --fresh names an earlier run
    shutil.copytree(folder, aside)
    broken = Path("output/broken/run.json")
    broken.parent.mkdir()
    broken.touch()
    for number, path in enumerate((aside / "run.json", broken)):
        os.utime(path, (2e9 + number, 2e9 + number))
    status, _, err = run("--resume")
    assert status == 0
    first, second = (line for line in err.splitlines() if "was passed over" in line)
    assert first.startswith(f"NOTE: a run was passed over: {broken} cannot be read as a run")
    assert second == f"NOTE: {aside} was passed over: it is a copy of run {folder.name}"
    assert len(records()) == 6
    assert run("--resume")[0] == 2, "none is unfinished"


def test_the_records_say_what_ended_in_errors(provider: FakeProvider, run: Run) -> None:
    run(*BASIC, "--cache", "off")
    (samples,) = Path("output").glob("*/samples.jsonl")
    lines = [json.loads(line) for line in samples.read_bytes().splitlines()]
    lines[0] |= {"status": "api_error", "predicted": None, "correct": None, "error": "edited"}
    samples.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    calls = len(provider.calls)
    assert run(*BASIC, "--cache", "off")[0] == 0
    assert len(provider.calls) == calls
    assert run(*BASIC, "--cache", "off", "--retry-errors")[0] == 0
    assert len(provider.calls) > calls
    assert [record["status"] for record in records()] == ["answered"] * 6


def test_a_data_set_is_the_same_however_its_folder_is_typed(
    provider: FakeProvider, run: Run
) -> None:
    """A public report: a final slash changes the name (octue/octue-sdk-python issue 501)."""
    folder = Path("data/mine")
    folder.mkdir(parents=True)
    shutil.copyfile(SAMPLE, folder / "test.jsonl")
    flags = ("--data-dir", "data", "--num-samples", "2", "--difficulty", "basic", "--cache", "off")
    assert run(*flags, "--dataset", "mine")[0] == 0
    calls = len(provider.calls)
    for spelled in ("mine/", "./mine", "./mine/", "Mine/"):
        assert run(*flags, "--dataset", spelled)[0] == 0
    (array,) = Path("output").glob("*.json")
    assert "_mine_" in array.stem
    # Earlier versions named the run as the data set was typed.
    before = array.stem.replace("_mine_", "_mine-_")
    array.rename(array.with_stem(before))
    array.with_suffix("").rename(array.with_name(before))
    written = Path(f"output/{before}/run.json")
    written.write_text(written.read_text().replace(array.stem, before).replace('"mine"', '"mine/"'))
    for spelled in ("mine/", "mine"):
        assert run(*flags, "--dataset", spelled)[0] == 0
    assert run("--data-dir", "data", "--dataset", "mine", "--resume", before)[0] == 0
    assert len(provider.calls) == calls
    assert [path.stem for path in Path("output").glob("*.json")] == [before]


def test_resume_takes_up_the_run_in_the_folder_that_it_names(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--num-samples", "2", "--difficulty", "basic")
    run(*flags, "--output-dir", "a", "--token-limit", "1")
    (there,) = Path("a").glob("*/run.json")
    name = there.parent.name
    run(*flags, "--token-limit", "1")
    assert run("--resume", f"a/{name}")[0] == 0
    assert RunManifest.model_validate_json(there.read_bytes()).finished
    assert not manifest().finished, "the run of the same name in output/"
    monkeypatch.setenv("MDAGENTS_OUTPUT_DIR", "elsewhere")
    assert run("--resume", f"a/{name}")[0] == 0, "the folder that was typed wins"
    status, _, err = run("--resume", f"a/{name}", "--output-dir", "c")
    assert status == 2
    assert err == f"error: --resume a/{name} is not in --output-dir c; leave one of them out\n"
    status, _, err = run("--resume", f"b/{name}")
    assert (status, err) == (2, f"error: there is no run {name} in b; see --output-dir\n")


@pytest.mark.parametrize("source", ["variable", "flag", "file", ".env"])
def test_the_home_folder_is_found_where_no_shell_names_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    """Public reports: a folder named ~ is made (OPM/opm-simulators issue 5063, airtasker/spot
    issue 97)."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    flags: tuple[str, ...] = ("--num-samples", "1", "--difficulty", "basic")
    if source == "variable":
        monkeypatch.setenv("MDAGENTS_OUTPUT_DIR", "~/runs")
    elif source == "flag":
        flags = (*flags, "--output-dir=~/runs")
    elif source == "file":
        Path("flags.yaml").write_text("output-dir: ~/runs\n")
        flags = (*flags, "--run-config", "flags.yaml")
    else:
        Path(".env").write_text("MDAGENTS_OUTPUT_DIR=~/runs\n")
    assert run(*flags)[0] == 0
    assert not Path("~").exists()
    assert len(records(tmp_path / "home/runs")) == 1


def test_a_renamed_run_is_to_be_named_back(provider: FakeProvider, run: Run) -> None:
    assert run("--difficulty", "basic", "--num-samples", "2", "--token-limit", "1")[0] == 1
    folder = Path("output") / manifest().name
    folder.rename(folder.with_name("other"))
    status, _, err = run("--resume")
    assert status == 2
    assert f"the run was named {folder.name}; rename its folder" in err


def test_resume_asks_for_a_file_outside_this_folder(
    run: Run, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    lines = SAMPLE.read_text().splitlines(keepends=True)
    for name, own in (("mine", lines[:2]), ("of_others", lines[2:4])):
        (outside / name).mkdir()
        (outside / name / "q.jsonl").write_text("".join(own))
    mine, of_others = outside / "mine" / "q.jsonl", outside / "of_others" / "q.jsonl"
    assert run("--dataset", str(mine), "--difficulty", "basic", "--token-limit", "1")[0] == 1
    folder = Path("output") / manifest().name
    assert str(outside) not in (folder / "run.json").read_text()
    assert main(["--resume"], skip=[], show_interaction_table=False) == 2
    assert capsys.readouterr().err == (
        f"error: --resume {folder} needs the file q.jsonl of its --dataset, which is not here; "
        "add --dataset FOLDER/q.jsonl\n"
    )
    _, _, err = run("--resume", "--dataset", str(of_others))
    assert f"--resume {folder} differs from these settings in items_hash" in err
    _, _, err = run("--resume", "--dataset", str(mine), "--seed", "3")
    assert "in options; leave out --resume to start another run" in err
    assert not manifest().finished
    assert run("--resume", "--dataset", str(mine), "--token-limit", "100000")[0] == 0
    assert manifest().finished


def test_epochs_have_replies_of_their_own(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "2", "--difficulty", "basic", "--epochs", "3")
    found = records()
    assert [(r["question_id"], r["epoch"]) for r in found] == [
        (id_, epoch) for epoch in (1, 2, 3) for id_ in ("sample-001", "sample-002")
    ]
    assert len(provider.calls) == 6 * 5
    assert len({r["case_id"] for r in found}) == 6


# -- kills ------------------------------------------------------------------------------------


def start(provider: FakeProvider, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable, str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE), "--num-samples",
            "8", "--max-samples", "2", "--output-dir", str(folder), "--display", "none", *arguments,
        ],
        env={
            "PATH": os.environ["PATH"],
            "MDAGENTS_EXAID": "off",
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": provider.openai_base_url,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("cache", ["on", "off"])
def test_killed_at_random_moments_it_ends_like_an_uninterrupted_run(
    provider: FakeProvider, cache: str
) -> None:
    provider.latency = 0.002
    assert start(provider, Path("whole"), "--cache", "off").wait(60) == 0
    expected = [timeless(record) for record in records(Path("whole"))]
    needed, asked = len(provider.calls), {call.text for call in provider.calls}

    attempts = seeds(12)
    kills = 0
    for attempt in attempts:
        rng = random.Random(f"{cache}-{attempt}")
        folder = Path(f"killed-{attempt}")
        provider.reset()
        process = start(provider, folder, "--cache", cache)
        provider.wait_for_calls(rng.randrange(1, needed - 5))
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        kills += process.returncode == -signal.SIGKILL
        kept = sum(file.read_bytes().count(b"\n") for file in folder.glob("*/samples.jsonl"))
        before = Counter(call.text for call in provider.calls if call.outcome == "ok")
        provider.reset()
        assert start(provider, folder, "--cache", cache).wait(60) == 0
        again = Counter(call.text for call in provider.calls)
        redone = sum((before & again).values())
        # Two questions are under way, with at most four calls each: the assistants of the two
        # teams that work at once. With the cache off all calls of both are made again.
        limit = 2 * 4 if cache == "on" else 2 * 41
        assert redone <= limit, f"{redone} calls were made again after {kept} records"
        assert [timeless(record) for record in records(folder)] == expected
        assert set(before | again) == asked, "both together ask what one run asks, and no more"
    assert kills >= len(attempts) - 1, "most kills must hit a run that is under way"


def test_a_torn_line_is_dropped(provider: FakeProvider, run: Run) -> None:
    run(*BASIC)
    expected = [timeless(record) for record in records()]
    (samples,) = Path("output").glob("*/samples.jsonl")
    lines = samples.read_bytes().splitlines(keepends=True)
    samples.write_bytes(b"".join(lines[:-1]) + lines[-1][:100])
    (file,) = Path("output").glob("*/run.json")
    file.write_text(manifest().model_copy(update={"finished": False}).model_dump_json())
    calls = len(provider.calls)
    assert run(*BASIC)[0] == 0
    assert [timeless(record) for record in records()] == expected
    assert len(provider.calls) == calls, "the reply of the lost record came from the cache"


def test_totals_are_those_of_the_ledger_over_all_invocations(
    provider: FakeProvider, run: Run
) -> None:
    provider.fail_next("context_length", times=2, match="Your role: arbitrator")
    run(*BASIC)
    run(*BASIC, "--retry-errors")
    whole, rows = manifest(), ledger_rows()
    fresh = [row for row in rows if not row["cached"] and row["outcome"] == "ok"]
    assert whole.spent.calls == len(fresh)
    assert whole.spent.input_tokens == sum(r["input_tokens"] for r in fresh)
    assert whole.spent.input_tokens == provider.totals.input
    assert whole.spent.output_tokens == provider.totals.output
    assert whole.spent.failed_attempts == 2
    assert whole.spent.cached_calls == sum(row["cached"] for row in rows) == 8
    assert whole.totals.total_tokens == sum(r["token_usage"]["total_tokens"] for r in records())


# -- runs that could not work -----------------------------------------------------------------


def test_a_run_that_could_not_work_is_not_finished(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("context_length", times=99)
    status, out, err = run(*BASIC)
    assert status == 1
    assert "api_error 6" in out
    last = err.splitlines()[-1]
    assert last.startswith("stopped: 6 of 6 questions ended in api_error (400 from 127.0.0.1")
    assert last.endswith("--num-samples 6 --difficulty basic")
    assert not manifest().finished
    provider.forget_faults()
    status, out, _ = run(*BASIC)
    assert status == 0
    assert "status: answered 6" in out
    assert manifest().finished


def test_a_run_with_a_few_errors_is_finished(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("context_length", times=3, match="Your role: arbitrator")
    assert run(*BASIC)[0] == 0, "half is not more than half"
    assert manifest().finished
    calls = len(provider.calls)
    run(*BASIC)
    assert len(provider.calls) == calls


def test_an_endpoint_that_refuses_connections_ends_the_run(
    provider: FakeProvider, run: Run
) -> None:
    provider.stop()
    status, out, err = run(*BASIC, "--max-retries", "1")
    assert status == 1
    assert out == ""
    (last,) = [line for line in err.splitlines() if line.startswith("stopped")]
    place = provider.openai_base_url.split("/")[2]
    assert f"is out of reach: {place} cannot be reached: Connection refused; to resume:" in last
    assert last.endswith("--max-retries 1")


def test_a_run_without_a_record_does_not_block_the_corrected_command(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MDAGENTS_EXAID")  # with all defaults the name holds no hash
    right = provider.openai_base_url
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert run(*BASIC, "--max-retries", "0")[0] == 1
    monkeypatch.setenv("OPENAI_BASE_URL", right)
    status, _, err = run(*BASIC)
    assert status == 0
    assert "the earlier run of this name was kept as" in err
    assert len([p for p in Path("output").glob("*/run.json")]) == 2


def test_a_run_that_is_finished_says_how_its_errors_are_answered(
    provider: FakeProvider, run: Run
) -> None:
    provider.fail_next("context_length", match="Your role: arbitrator")
    status, _, err = run(*BASIC)
    assert status == 0
    assert err.splitlines()[-1] == (
        "1 question ended in api_error; --retry-errors answers it again"
    )


@pytest.mark.parametrize("url", ["localhost:8000/v1", "127.0.0.1/v1", "http://", "http://x:port"])
def test_an_address_that_is_none_is_wrong_use(
    run: Run, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    status, _, err = run(*BASIC, "--model-base-url", url)
    assert status == 2
    assert f"--model-base-url {url} must begin with http:// or https://" in err
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    status, _, err = run(*BASIC)
    assert status == 2
    assert f"OPENAI_BASE_URL {url} must begin with http:// or https://" in err


def test_the_command_that_goes_on_does_not_start_anew(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("401", times=9)
    _, _, err = run(*BASIC, "--fresh")
    assert err.splitlines()[-1].endswith("--num-samples 6 --difficulty basic")


# -- replay -----------------------------------------------------------------------------------


def test_a_finished_run_is_replayed_without_network_or_key(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.fail_next("cut_off", match="Your role: arbitrator")
    provider.fail_next("invalid_schema", match="Your task: choose exactly")
    run("--num-samples", "3", "--model", "openai/gpt-4o-mini")
    expected = [timeless(record) for record in records()]
    calls = len(provider.calls)
    provider.stop()
    monkeypatch.delenv("OPENAI_API_KEY")
    status, _, _ = run(
        "--num-samples", "3", "--model", "openai/gpt-4o-mini", "--cache", "only", "--fresh"
    )
    assert status == 0
    replayed = max(Path("output").glob("*.json"), key=lambda file: file.stat().st_mtime)
    assert [timeless(record) for record in json.loads(replayed.read_text())] == expected
    assert len(provider.calls) == calls


def test_a_replay_of_what_was_never_recorded_says_so_in_one_line(run: Run) -> None:
    status, out, err = run(*BASIC, "--cache", "only")
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("stopped: there is no recorded reply to begin with: --cache only")
    assert not list(Path("output").glob("*.json"))


def test_a_replay_with_only_the_replies_of_other_runs_answers_nothing(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "advanced")
    status, out, err = run(*BASIC, "--sample-id", "sample-004", "--cache", "only")
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("stopped: there is no recorded reply to begin with")
    assert run(*BASIC, "--sample-id", "sample-004")[0] == 0, "the run is not in the way of another"


def test_a_replay_of_a_part_is_an_error_for_each_other_question(run: Run) -> None:
    run(*BASIC)
    status, _, err = run("--num-samples", "8", "--difficulty", "basic", "--cache", "only")
    assert status == 0
    assert "2 questions ended in api_error" in err
    (array,) = Path("output").glob("*_8samples*.json")
    missing = [r for r in json.loads(array.read_text()) if r["status"] == "api_error"]
    assert len(missing) == 2
    assert all("no recorded reply" in record["error"] for record in missing)


def test_a_replay_ends_as_the_run_did_whatever_had_gone_wrong(
    provider: FakeProvider, run: Run
) -> None:
    provider.fail_next("context_length", match="Your role: arbitrator")
    provider.faults = FaultPlan(
        {"500": 0.2, "reset": 0.05, "malformed_json_body": 0.05, "refusal": 0.02,
         "cut_off": 0.05, "invalid_schema": 0.1, "fenced": 0.1}
    )  # fmt: skip
    flags = ("--num-samples", "18", "--max-retries", "1", "--exaid", "turn_end")
    run(*flags)
    recorded = {r["question_id"]: r for r in records()}
    statuses = Counter(record["status"] for record in recorded.values())
    assert {"answered", "api_error"} <= set(statuses)
    assert any(r["left_out"] for r in recorded.values() if r["status"] == "answered")
    run(*flags, "--fresh", "--cache", "only")
    newest = max(Path("output").glob("*.json"), key=lambda file: file.stat().st_mtime)
    replayed = {r["question_id"]: r for r in json.loads(newest.read_text())}
    for record in (*recorded.values(), *replayed.values()):
        del record["wall_seconds"]
    assert replayed == recorded


# -- budgets ----------------------------------------------------------------------------------


def test_a_token_limit_stops_the_run_and_a_higher_one_goes_on(
    provider: FakeProvider, run: Run
) -> None:
    status, _, err = run(*BASIC, "--token-limit", "4000", "--max-samples", "1")
    assert status == 1
    assert "stopped at a limit of the run" in err
    spent = manifest().spent.total_tokens
    assert 4000 <= spent <= 4000 + 2000, "over it by the calls under way at the most"
    assert not manifest().finished
    assert Counter(r["status"] for r in records())["limit"] <= 1
    assert run(*BASIC, "--token-limit", "1000000")[0] == 0
    assert {r["status"] for r in records()} == {"answered"}
    assert len(records()) == 6
    assert len(provider.calls) == 6 * 5


def test_no_call_is_sent_once_the_run_has_reached_its_limit(
    provider: FakeProvider, run: Run
) -> None:
    provider.latency = 0.05
    flags = ("--num-samples", "30", "--difficulty", "basic", "--max-connections", "4")
    status, _, err = run(*flags, "--token-limit", "8000")
    assert status == 1
    assert "stopped at a limit of the run" in err
    rows = sorted(ledger_rows(), key=lambda row: str(row["started_at"]))
    spent = manifest().spent.total_tokens
    largest = max(row["input_tokens"] + row["output_tokens"] for row in rows)
    assert 8000 <= spent <= 8000 + 4 * largest, "over it by the calls under way at the most"


def test_a_cost_limit_counts_earlier_invocations(run: Run) -> None:
    assert run(*BASIC, "--cost-limit", "0.001", "--max-samples", "1")[0] == 1
    spent = manifest().spent.cost_usd
    assert spent is not None
    assert 0.001 <= spent < 0.002
    assert run(*BASIC, "--cost-limit", "0.001")[0] == 1
    assert manifest().spent.cost_usd == spent


def test_limits_of_a_question_end_that_question_only(provider: FakeProvider, run: Run) -> None:
    status, out, _ = run(*BASIC, "--sample-token-limit", "1200")
    assert status == 0
    assert {r["status"] for r in records()} == {"limit"}
    assert "limit 6" in out
    assert all("--sample-token-limit 1200" in r["error"] for r in records())
    assert all(r["token_usage"]["total_tokens"] >= 1200 for r in records())


def test_a_question_that_takes_too_long(provider: FakeProvider, run: Run) -> None:
    with provider.hold("Your role: arbitrator"):
        run("--num-samples", "1", "--difficulty", "basic", "--sample-time-limit", "0.3")
    (record,) = records()
    assert record["status"] == "limit"
    assert "--sample-time-limit 0.3" in record["error"]


@pytest.mark.parametrize(("allowed", "finished"), [("1", 3), ("0.5", 5)])
def test_too_many_errors_stop_the_run(
    provider: FakeProvider, run: Run, allowed: str, finished: int
) -> None:
    provider.fail_next("context_length", times=9, match="Your role: arbitrator")
    status, _, err = run(*BASIC, "--fail-on-error", allowed, "--max-samples", "1")
    assert status == 1
    assert "more api errors than --fail-on-error allows" in err
    assert len(records()) == (2 if allowed == "1" else 4)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("401", "401"), ("404_model", "404"), ("quota", "429"), ("api_key_invalid", "401")],
)
def test_a_fatal_error_stops_the_run_with_one_line(
    provider: FakeProvider, run: Run, fault: str, message: str
) -> None:
    provider.fail_next(fault, times=99)
    status, _, err = run("--num-samples", "30", "--max-samples", "4")
    assert status == 1
    last = err.splitlines()[-1]
    assert last.startswith(f"stopped: openai/gpt-4o-mini is out of reach: {message}")
    assert len(provider.calls) <= 4
    assert records() == []


def test_a_share_of_errors_is_of_the_whole_run_however_often_it_was_started(
    provider: FakeProvider, run: Run
) -> None:
    flags = ("--num-samples", "10", "--difficulty", "basic", "--max-samples", "1")
    provider.fail_next("context_length", times=2, match="Your role: arbitrator")
    provider.fail_next("quota", times=3, match=lambda request: request.index > 25)
    assert run(*flags, "--cache", "off")[0] == 1
    assert 2 <= len(records()) < 10
    provider.fail_next("context_length", times=1, match="Your role: arbitrator")
    status, _, err = run(*flags, "--cache", "off", "--fail-on-error", "0.31")
    assert status == 0, err


def test_storms_lose_nothing(provider: FakeProvider, run: Run) -> None:
    provider.faults = FaultPlan(
        {"429": 0.2, "500": 0.05, "truncated_body": 0.05, "reset": 0.03, "hang": 0.02},
        retry_after=0.01,
        hang_seconds=60,
    )
    status, _, _ = run(
        "--num-samples",
        "20",
        "--difficulty",
        "basic",
        "--attempt-timeout",
        "2",
        "--display",
        "none",
    )
    assert status == 0
    assert {r["status"] for r in records()} == {"answered"}
    assert not any(r["left_out"] for r in records())
    booked = sum(row["input_tokens"] + row["output_tokens"] for row in ledger_rows())
    assert booked == provider.totals.input + provider.totals.output


# -- room -------------------------------------------------------------------------------------


def test_a_line_that_cannot_be_written_leaves_no_part(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "x.jsonl", syncs=True)
    log.append(b"one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(b"one\ntw"), before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            log.append(b"two")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.close()
    assert (tmp_path / "x.jsonl").read_bytes() == b"one\n"


@pytest.mark.parametrize(("cache", "blocks"), [("off", 24), ("on", 96)])
def test_a_full_disk_stops_cleanly_with_what_is_finished_kept(
    provider: FakeProvider, run: Run, cache: str, blocks: int
) -> None:
    # A limit on the size of files does what a full disk does, without needing one.
    process = subprocess.run(
        ["bash", "-c", f'ulimit -f {blocks}; trap "" XFSZ; exec "$@"', "-", sys.executable,
         str(REPOSITORY / "main.py"), "--dataset", str(SAMPLE), "--num-samples", "30",
         "--difficulty", "basic", "--cache", cache, "--max-samples", "1"],
        env={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "k", "MDAGENTS_EXAID": "off",
             "PYTHONDONTWRITEBYTECODE": "1",  # half a .pyc would outlive this test
             "OPENAI_BASE_URL": provider.openai_base_url},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert process.stderr.splitlines()[-1].startswith("stopped: cannot write to ")
    (samples,) = Path("output").glob("*/samples.jsonl")
    kept = [json.loads(line) for line in samples.read_text().splitlines()]
    assert 0 < len(kept) < 30
    assert run("--num-samples", "30", "--difficulty", "basic", "--cache", cache)[0] == 0
    assert len(records()) == 30


# -- forecast ---------------------------------------------------------------------------------


def test_a_forecast_makes_no_call_and_is_near_the_run(provider: FakeProvider, run: Run) -> None:
    status, out, _ = run(*BASIC, "--dry-run")
    assert status == 0
    assert provider.calls == []
    assert not Path("output").exists()
    assert "the whole run: 30 calls" in out
    assert "wall time: not known" in out
    assert re.search(r"calls, \d+,\d00 tokens in", out), "a forecast has three digits"
    run(*BASIC)
    _, out, _ = run(*BASIC, "--dry-run")
    sent = int(out.split("30 calls, ")[1].split(" tokens in")[0].replace(",", ""))
    assert sent == pytest.approx(provider.totals.input, rel=0.25)
    received = int(out.split("tokens in, ")[1].split(" out")[0].replace(",", ""))
    assert received == pytest.approx(provider.totals.output, rel=0.05)
    assert "from 1 earlier run of these models" in out
    assert "wall time: less than a minute at" in out


@pytest.mark.parametrize(
    ("model", "cost"), [("gpt-4o-mini", " USD"), ("openai/nobody-knows-me", "price not known")]
)
def test_what_many_questions_would_cost_is_told_without_a_key(model: str, cost: str) -> None:
    arguments = ["--dataset", str(SAMPLE), "--model", model]
    config = read_config(read_options(arguments, {}), ())
    told = forecast(config, parse_environment({})).cost_of(1000)
    assert told.endswith(cost)
    assert len(told) < 25


def test_a_forecast_counts_paid_replies_and_undecided_answers_of_a_pilot(run: Run) -> None:
    ten = ("--num-samples", "10", "--difficulty", "basic")
    run(*ten)
    _, out, _ = run(*ten, "--dry-run")
    before = int(out.split("the whole run: ")[1].split(" calls")[0])
    (samples,) = Path("output").glob("*/samples.jsonl")
    ledger = samples.with_name("calls.jsonl")
    # Each question had one truncated reply more: it was paid for, so that ten calls are to come.
    of_case = {row["case_id"]: row for row in map(json.loads, ledger.read_text().splitlines())}
    with ledger.open("a") as file:
        for row in of_case.values():
            file.write(json.dumps(row | {"outcome": "truncated"}) + "\n")
    first, *others = samples.read_text().splitlines()
    undecided = json.dumps(json.loads(first) | {"status": "parse_error"})
    samples.write_text("\n".join([undecided, *others]) + "\n")
    _, out, _ = run(*ten, "--dry-run")
    assert f"the whole run: {before + 10} calls" in out


def test_epochs_of_one_question_are_not_further_questions_of_a_pilot(run: Run) -> None:
    """Five questions in two epochs say less than ten questions."""
    epochs = ("--difficulty", "basic", "--epochs", "2")
    run(*epochs, "--num-samples", "5")
    _, out, _ = run(*epochs, "--num-samples", "5", "--dry-run")
    assert "with these settings" not in out
    run(*epochs, "--num-samples", "10")
    _, out, _ = run(*epochs, "--num-samples", "10", "--dry-run")
    assert "the whole run from 10 questions with these settings" in " ".join(out.split())
    assert "20 questions to answer" in out


def test_a_forecast_of_an_adaptive_run_shows_every_level(run: Run) -> None:
    _, out, _ = run("--dry-run")
    assert all(len(line) <= 80 for line in out.splitlines())
    assert re.search(r"^cost per 1,000 questions: \S+–\S+ USD$", out, re.MULTILINE)
    rows = {line.split("|")[1].strip(): line for line in out.splitlines() if line.startswith("|")}
    assert "6 " in rows["basic"]
    assert "9–42" in rows["intermediate"]
    assert "15 " in rows["advanced"]
