"""Runs with EXAID: what it writes, and that it never changes what the team does."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.files import read_records
from exaid_core.trace.run_records import RunRecord
from exaid_core.trace.traces import read_trace
from mdagents.records.store import RunStore
from mdagents.scoring.rows import read_output
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import SAMPLE, Run, program, records

pytestmark = pytest.mark.process

POLICIES = ("full_exaid", "turn_end", "no_buffer", "no_tokengate", "no_novelty")
SIX = ("--num-samples", "6")
EXAIDS_OWN = ("exaid", "watched", "wall_seconds")
OF_EXAID = "physician in charge"
"""What both prompts of EXAID say and no prompt of a team."""


def folder() -> Path:
    (found,) = Path("output").glob("*/run.json")
    return found.parent


def of_the_team(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k not in EXAIDS_OWN} for record in found]


def answers(run: Run, *arguments: str) -> list[dict[str, Any]]:
    """The records of a run in an output folder of its own, without what is EXAID's own."""
    output = Path(f"output-{len(list(Path().glob('output-*')))}")
    status, _, err = run(*SIX, "--output-dir", str(output), *arguments)
    assert status == 0, err
    return of_the_team(records(output))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_writes_summaries_traces_and_logs(
    provider: FakeProvider, run: Run, policy: str
) -> None:
    run(*SIX, "--exaid", policy)
    for record in records():
        case = record["case_id"]
        trace = read_trace(folder() / "traces" / f"{case}.trace.jsonl.gz")
        assert len(trace.turns) >= record["calls"]
        log = [
            TypeAdapter(RunRecord).validate_python(content)
            for _, content in read_records(folder() / "exaid" / f"{case}.jsonl.gz")
        ]
        events = [entry for entry in log if entry.record_type == "summary_event"]
        summaries = record["exaid"]["summaries"]
        assert summaries
        assert [s["event_id"] for s in summaries] == [e.event_id for e in events]
        for summary in summaries:
            assert all(0 < len(summary[name]) <= limit for name, limit in LIMITS.items())
            assert summary["agents"]
        covered = {seq for event in events for seq in event.source_seqs or ()}
        clinical = [turn for turn in trace.turns if turn.agent_id not in ("router", "recruiter")]
        assert len(clinical) < len(trace.turns), "staffing is in the trace, and not summarized"
        assert covered == {delta.seq for turn in clinical for delta in turn.deltas}
        assert record["watched"] == {"tail_loss": 0.0, "missed_alerts": 0, "error": None}
        assert bool(record["exaid"]["decisions"]) == (policy not in ("turn_end", "no_buffer"))
        assert record["exaid"]["token_usage"]["total_tokens"] > 0


def test_tokens_of_exaid_have_an_account_of_their_own(provider: FakeProvider, run: Run) -> None:
    run(*SIX)
    _, out, err = run(*SIX, "--exaid", "full_exaid", "--output-dir", "watched", "--display", "log")
    alone, watched = records(), records(Path("watched"))
    assert of_the_team(alone) == of_the_team(watched)
    of_teams = sum(record["token_usage"]["total_tokens"] for record in alone + watched)
    of_exaid = sum(record["exaid"]["token_usage"]["total_tokens"] for record in watched)
    assert of_exaid > 0
    sent = provider.totals.input + provider.totals.output
    assert of_teams + of_exaid == sent, "each output folder has a cache of its own"
    lines = re.findall(r"EXAID made \d+ summar\w+, ([\d,]+) tokens", err)
    assert sum(int(tokens.replace(",", "")) for tokens in lines) == of_exaid
    assert f"summaries, {of_exaid:,} tokens" in out
    assert f", {of_exaid:,} of them EXAID's" in out


def lying(provider: FakeProvider) -> None:
    provider.when(
        OF_EXAID,
        lambda _: {name: "Give 500 mg of aspirin. Answer: A." for name in LIMITS},
    )


def test_answers_and_team_tokens_are_the_same_whatever_becomes_of_exaid(
    provider: FakeProvider, run: Run
) -> None:
    off = answers(run)
    assert answers(run, "--exaid", "full_exaid") == off
    provider.fail_next("500", match=OF_EXAID, times=2_000)
    assert answers(run, "--exaid", "full_exaid", "--max-retries", "0") == off
    found = records(Path("output-2"))
    assert all(r["exaid"]["summaries"] == [] for r in found)
    assert all(r["watched"]["tail_loss"] == 1.0 for r in found)


def test_a_lying_exaid_changes_nothing_and_is_found_out(provider: FakeProvider, run: Run) -> None:
    off = answers(run)
    lying(provider)
    assert answers(run, "--exaid", "turn_end") == off
    for record in records(Path("output-1")):
        for summary in record["exaid"]["summaries"]:
            assert "500 mg" in summary["unsupported_terms"]


def test_a_stuck_exaid_delays_no_answer(provider: FakeProvider, run: Run) -> None:
    off = answers(run)
    hold = provider.hold(OF_EXAID)
    flags = ("--exaid", "full_exaid", "--exaid-wait", "0.2")
    assert answers(run, *flags, "--max-connections", "8") == off
    hold.release()
    for record in records(Path("output-1")):
        assert record["exaid"]["summaries"] == []
        assert record["wall_seconds"] < 5


@pytest.mark.parametrize("policy", POLICIES)
def test_a_replay_repeats_every_summary(provider: FakeProvider, run: Run, policy: str) -> None:
    run(*SIX, "--exaid", policy)
    first = records()
    traces = {p.name: read_trace(p).turns for p in (folder() / "traces").iterdir()}
    calls = len(provider.calls)
    status, _, err = run(*SIX, "--exaid", policy, "--cache", "only", "--fresh")
    assert status == 0, err
    assert len(provider.calls) == calls
    (array,) = (p for p in Path("output").glob("*.json") if "." not in p.stem)
    again = json.loads(array.read_text())
    for record in first + again:
        del record["wall_seconds"]
    assert again == first
    replayed = Path("output") / array.stem / "traces"
    assert {p.name: read_trace(p).turns for p in replayed.iterdir()} == traces


def test_a_replay_without_a_recording_leaves_exaid_out(run: Run) -> None:
    run(*SIX)
    status, _, err = run(*SIX, "--exaid", "full_exaid", "--cache", "only")
    assert status == 0
    assert "no recorded run for EXAID to follow" in err
    newest = max(Path("output").glob("*.json"), key=lambda p: p.stat().st_mtime)
    assert all(r["exaid"]["summaries"] == [] for r in json.loads(newest.read_text()))


def test_a_turn_that_failed_is_closed_and_the_retry_is_a_new_turn(
    provider: FakeProvider, run: Run
) -> None:
    provider.fail_next("stream_error", match="Your role: arbitrator")
    run("--num-samples", "1", "--difficulty", "basic", "--exaid", "full_exaid")
    (file,) = (folder() / "traces").iterdir()
    turns = [turn for turn in read_trace(file).turns if turn.agent_id == "arbitrator"]
    assert len(turns) == 2
    assert turns[1].text.startswith(turns[0].text)
    assert turns[1].text.splitlines()[-1].startswith("Answer: ")


def test_no_raw_json_is_published(run: Run) -> None:
    run(*SIX, "--exaid", "full_exaid")
    for file in (folder() / "traces").iterdir():
        for turn in read_trace(file).turns:
            assert turn.text.strip()
            assert "{" not in turn.text
            assert '"reasoning"' not in turn.text


def test_the_files_are_deterministic_gzip(run: Run) -> None:
    run("--num-samples", "1", "--exaid", "full_exaid")
    for file in [*(folder() / "traces").iterdir(), *(folder() / "exaid").iterdir()]:
        assert file.read_bytes()[4:8] == b"\0\0\0\0", "no time of writing"
        assert gzip.decompress(file.read_bytes()).endswith(b"\n")


def test_models_of_exaid_by_role(provider: FakeProvider, run: Run) -> None:
    provider.latency = 0.2  # the second text of the case comes late enough to be judged
    arguments = ("--model-role", "summarizer=gpt-4o", "--exaid", "full_exaid")
    run("--num-samples", "1", "--difficulty", "advanced", *arguments)
    (record,) = records()
    assert record["model"] == "gpt-4o-mini", "the models of the team"
    rows = [json.loads(line) for line in (folder() / "calls.jsonl").read_text().splitlines()]
    by_role = {row["role"]: row["model_requested"] for row in rows}
    assert by_role["summarizer"] == "gpt-4o"
    assert by_role["buffer_agent"] == by_role["expert"] == "gpt-4o-mini"


def test_sample_limits_count_the_team_only(provider: FakeProvider, run: Run) -> None:
    arguments = ("--num-samples", "2", "--difficulty", "basic")
    run(*arguments)
    used = max(r["token_usage"]["total_tokens"] for r in records())
    limit = ("--sample-token-limit", str(used + 1))
    run(*arguments, *limit, "--exaid", "full_exaid", "--output-dir", "watched")
    assert [r["status"] for r in records(Path("watched"))] == ["answered", "answered"]


def test_what_is_decided_is_recorded_when_the_endpoint_goes_down(
    provider: FakeProvider, run: Run
) -> None:
    for line in SAMPLE.read_text().splitlines()[3:6]:
        provider.fail_next("401", match=json.loads(line)["question"][:60], times=100)
    hold = provider.hold(OF_EXAID)
    arguments = ("--difficulty", "basic", "--max-samples", "1", "--exaid", "full_exaid")
    status, _, err = run(*SIX, *arguments)
    hold.release()
    assert status == 1
    assert "Traceback" not in err
    found = records()
    assert [r["status"] for r in found] == ["answered"] * 3
    assert all(r["exaid"]["summaries"] == [] for r in found)
    assert {f"{r['case_id']}.trace.jsonl.gz" for r in found} == {
        file.name for file in (folder() / "traces").iterdir()
    }
    provider.forget_faults()
    status, _, err = run(*SIX, *arguments)
    assert status == 0
    assert "EXAID      resumes 3 questions decided before" in err
    finished = records()
    assert of_the_team(finished)[:3] == of_the_team(found)
    assert all(r["exaid"]["summaries"] for r in finished)
    assert all(r["watched"]["tail_loss"] == 0 for r in finished)
    assert all(r["exaid"]["token_usage"]["total_tokens"] > 0 for r in finished)


def test_a_replay_says_the_same_when_fields_came_in_another_order(
    provider: FakeProvider, run: Run
) -> None:
    provider.when(
        "decide whether it helps the panel",
        lambda _: (
            '{"messages": [{"to": 2, "text": "hi you"}], "reason": "why", "participate": true}'
        ),
    )
    arguments = ("--num-samples", "1", "--difficulty", "intermediate", "--exaid", "full_exaid")
    run(*arguments)
    (first,) = records()
    (trace,) = (folder() / "traces").iterdir()
    assert any(turn.text == "To Expert 2: hi you\nwhy" for turn in read_trace(trace).turns)
    assert run(*arguments, "--cache", "only", "--fresh")[0] == 0
    (array,) = (p for p in Path("output").glob("*.json") if "." not in p.stem)
    (again,) = json.loads(array.read_text())
    assert again["watched"]["error"] is None
    assert again["exaid"] == first["exaid"]


def test_an_attempt_without_a_record_leaves_the_files_of_the_one_with_a_record(
    provider: FakeProvider, run: Run
) -> None:
    one = ("--num-samples", "1", "--difficulty", "basic", "--exaid", "full_exaid", "--cache", "off")
    provider.fail_next("context_length", match="Your role: arbitrator")
    run(*one)
    (before,) = records()
    assert before["status"] == "api_error"
    files = {path: path.read_bytes() for path in folder().glob("*/*.gz")}
    assert len(files) == 2
    provider.fail_next("401", times=99)
    status, _, _ = run(*one, "--retry-errors")
    assert status == 1
    assert records() == [before]
    assert {path: path.read_bytes() for path in folder().glob("*/*.gz")} == files


# -- beside the run ---------------------------------------------------------------------------


def lines(name: str) -> list[dict[str, Any]]:
    """The lines that are whole: a program may be about to write the last one."""
    *whole, _torn = (folder() / name).read_text().split("\n")
    return [json.loads(line) for line in whole]


def test_a_record_is_there_at_the_decision_and_what_exaid_made_of_it_follows(
    provider: FakeProvider, run: Run
) -> None:
    hold = provider.hold(OF_EXAID)
    watched = (*SIX, "--exaid", "full_exaid")
    process = program(provider, "--data-dir", str(REPOSITORY / "data"), *watched)
    with process:
        hold.wait(6)
        while len(lines("samples.jsonl")) < 6:
            assert process.poll() is None
        assert lines("summaries.jsonl") == []
        process.kill()
    hold.release()
    kept = lines("samples.jsonl")
    status, out, err = run(*watched)
    assert status == 0
    assert "EXAID      resumes 6 questions decided before" in err
    assert "EXAID:   6 of 6 questions summarized" in out
    assert lines("samples.jsonl") == kept, "nothing was answered again"
    made = {line["question_id"]: line for line in lines("summaries.jsonl")}
    for record in records():
        assert record["exaid"] == made[record["question_id"]]["exaid"]
        assert record["watched"] == {"tail_loss": 0.0, "missed_alerts": 0, "error": None}
    totals = json.loads((folder() / "run.json").read_text())["totals"]
    of_exaid = [record["exaid"]["token_usage"]["total_tokens"] for record in records()]
    assert totals["exaid_tokens"] == sum(of_exaid) > 0
    assert totals["exaid"]["questions"] == totals["exaid"]["summarised"] == 6
    assert totals["exaid"]["summaries"] == sum(len(r["exaid"]["summaries"]) for r in records())


def test_the_folder_of_a_run_and_its_array_score_the_same(run: Run) -> None:
    run(*SIX, "--exaid", "full_exaid")
    of_folder = read_output(folder())
    (array,) = Path("output").glob("*.json")
    of_array = read_output(array)
    assert {row.item: row for row in of_folder.rows} == {row.item: row for row in of_array.rows}
    by_item = {row.item: record for row, record in of_array.records()}
    assert all(by_item[row.item] == record for row, record in of_folder.records())
    assert all((row.exaid_tokens or 0) > 0 for row in of_folder.rows)


def test_a_question_that_is_answered_again_is_summarised_again(
    provider: FakeProvider, run: Run
) -> None:
    two = ("--num-samples", "3", "--difficulty", "basic", "--exaid", "full_exaid")
    provider.fail_next("context_length", match="Your role: arbitrator")
    run(*two)
    (failed,) = [r["question_id"] for r in records() if r["status"] == "api_error"]
    run(*two, "--retry-errors")
    made = [(line["question_id"], line["attempt"]) for line in lines("summaries.jsonl")]
    assert sorted(attempt for id_, attempt in made if id_ == failed) == [1, 2]
    assert len(made) == 4
    (record,) = [r for r in records() if r["question_id"] == failed]
    assert record["status"] == "answered"
    said = {agent for summary in record["exaid"]["summaries"] for agent in summary["agents"]}
    assert "arbitrator" in said, "the summaries are of the answer that counts"
    totals = json.loads((folder() / "run.json").read_text())["totals"]
    assert totals["exaid"]["questions"] == 3


def test_exaid_is_off_where_nobody_talks_to_anybody(provider: FakeProvider, run: Run) -> None:
    os.environ.pop("MDAGENTS_EXAID")
    for method in ("zero_shot", "cot", "cot_sc"):
        output = ("--output-dir", method)
        assert run("--num-samples", "2", "--method", method, *output)[0] == 0
        (written,) = Path(method).glob("*.json")
        assert written.name == f"gpt-4o-mini_sample_{method}_2samples.json"
    assert all(OF_EXAID not in call.text for call in provider.calls)
    assert run("--num-samples", "2", "--method", "cot_sc", "--exaid", "turn_end")[0] == 0
    assert any(OF_EXAID in call.text for call in provider.calls), "it was asked for"
    assert run("--num-samples", "2", "--output-dir", "teams")[0] == 0
    assert all(r["exaid"]["summaries"] for r in records(Path("teams")))


def test_what_is_left_out_at_the_end_is_said_with_its_cause(
    provider: FakeProvider, run: Run
) -> None:
    hold = provider.hold(OF_EXAID)
    status, out, _ = run(*SIX, "--exaid", "full_exaid", "--exaid-wait", "0")
    assert status == 0
    assert "EXAID:   0 of 6 questions summarized, 0 summaries" in out
    assert "text left out of 6 questions: no time was left for it (--exaid-wait)" in out
    hold.release()
    calls = len(provider.calls)
    status, _, err = run(*SIX, "--exaid", "full_exaid")
    assert "no call was made" in err, "what was given up stays so"
    assert len(provider.calls) == calls


def test_a_failing_exaid_says_why_nothing_is_summarised(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("500", match=OF_EXAID, times=2_000)
    status, out, _ = run(*SIX, "--exaid", "full_exaid", "--max-retries", "0")
    assert status == 0
    assert "EXAID:   0 of 6 questions summarized" in out
    assert "text left out of 6 questions: no summary: 500 from 127.0.0.1" in out


def test_more_questions_than_exaid_keeps_in_memory(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdagents.runs.engines.exaid_queue.MOST_IN_MEMORY", 3)
    hold = provider.hold(OF_EXAID)
    threading.Timer(2.0, hold.release).start()
    flags = ("--num-samples", "20", "--difficulty", "basic", "--max-connections", "40")
    status, out, _ = run(*flags, "--exaid", "full_exaid")
    assert status == 0
    assert "EXAID:   20 of 20 questions summarized" in out
    assert all(r["watched"]["tail_loss"] == 0 for r in records())
    assert sum(line["is_complete"] for line in lines("summaries.jsonl")) == 20


def test_a_limit_of_the_run_leaves_summaries_to_a_start_with_a_higher_one(
    provider: FakeProvider, run: Run
) -> None:
    watched = ("--num-samples", "20", "--difficulty", "basic", "--exaid", "full_exaid")
    hold = provider.hold(OF_EXAID)
    threading.Timer(1.5, hold.release).start()
    status, _, err = run(*watched, "--token-limit", "40000", "--max-connections", "4")
    assert status == 1
    assert "stopped at a limit of the run" in err
    assert all("--token-limit" not in (r["watched"]["error"] or "") for r in records())
    status, out, _ = run(*watched)
    assert status == 0
    assert "EXAID:   20 of 20 questions summarized" in out
    assert "left out" not in out
    assert all(r["watched"]["tail_loss"] == 0 for r in records())


@pytest.mark.parametrize("wait", ["0", "0.4"])
def test_a_run_whose_summaries_were_cut_is_replayed_as_it_was(
    provider: FakeProvider, run: Run, wait: str
) -> None:
    provider.latency = 0.2
    flags = (*SIX, "--exaid", "full_exaid", "--max-connections", "4")
    assert run(*flags, "--exaid-wait", wait)[0] == 0
    first = records()
    calls = len(provider.calls)
    assert run(*flags, "--cache", "only", "--fresh")[0] == 0
    assert len(provider.calls) == calls
    (array,) = (p for p in Path("output").glob("*.json") if "." not in p.stem)
    again = json.loads(array.read_text())
    assert [r["exaid"]["summaries"] for r in again] == [r["exaid"]["summaries"] for r in first]
    assert [r["exaid"]["decisions"] for r in again] == [r["exaid"]["decisions"] for r in first]
    assert not any("no recorded reply" in (r["watched"]["error"] or "") for r in again)


def test_a_run_is_not_finished_without_its_array(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(store: RunStore) -> Iterator[bytes]:
        yield b"["
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "_array", full)
        status, _, err = run(*SIX, "--exaid", "full_exaid")
    assert status == 1
    assert "No space left on device" in err.splitlines()[-1]
    assert run(*SIX, "--exaid", "full_exaid")[0] == 0
    assert len(records()) == 6


def test_skipped_questions_leave_nothing_out(provider: FakeProvider, run: Run) -> None:
    provider.when("triage officer", lambda _: {"difficulty": "basic"})
    status, out, _ = run(*SIX, "--exaid", "full_exaid", "--skip", "basic")
    assert status in (0, 1)
    assert "left out" not in out


@pytest.mark.parametrize("wait", ["0", "600"])
def test_what_was_made_of_a_suspended_case_is_kept_whatever_comes(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    monkeypatch.setattr("mdagents.runs.engines.exaid_queue.MOST_IN_MEMORY", 1)
    provider.latency = 0.02
    flags = (
        *("--num-samples", "12", "--difficulty", "intermediate", "--exaid", "full_exaid"),
        *("--cache", "off", "--max-connections", "3"),
    )
    assert run(*flags, "--token-limit", "70000")[0] == 1
    answered = {r["case_id"] for r in records() if r["status"] == "answered"}  # others begin anew
    last = {line["case_id"]: line for line in lines("summaries.jsonl")}
    left = {k: line for k, line in last.items() if k in answered and not line["is_complete"]}
    made = {case: line["exaid"]["summaries"] for case, line in left.items()}
    assert any(made.values()), "something had been paid for"

    status, _, err = run(*flags, "--exaid-wait", wait)  # with 0 there is no time to read files
    assert status == 0, err
    found = {record["case_id"]: record for record in records()}
    for case, summaries in made.items():
        assert found[case]["exaid"]["summaries"][: len(summaries)] == summaries
