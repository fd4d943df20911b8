"""Runs that EXAID watches: what it writes, and that it never changes what the team does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.files import read_records
from exaid_core.trace.run_records import RunRecord
from exaid_core.trace.traces import read_trace
from tests.mdagents.test_run import SAMPLE, Run, records, run
from tests.support.fake_provider import FakeProvider

__all__ = ["run"]  # a fixture

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
        assert covered == {delta.seq for turn in trace.turns for delta in turn.deltas}
        assert record["watched"] == {"tail_loss": 0.0, "missed_alerts": 0, "error": None}
        assert bool(record["exaid"]["decisions"]) == (policy not in ("turn_end", "no_buffer"))
        assert record["exaid"]["token_usage"]["total_tokens"] > 0


def test_tokens_of_exaid_have_an_account_of_their_own(provider: FakeProvider, run: Run) -> None:
    run(*SIX)
    run(*SIX, "--exaid", "full_exaid", "--output-dir", "watched")
    alone, watched = records(), records(Path("watched"))
    assert of_the_team(alone) == of_the_team(watched)
    of_teams = sum(record["token_usage"]["total_tokens"] for record in alone + watched)
    of_exaid = sum(record["exaid"]["token_usage"]["total_tokens"] for record in watched)
    assert of_exaid > 0
    sent = provider.totals.input + provider.totals.output
    assert of_teams + of_exaid == sent, "each output folder has a cache of its own"


def lying(provider: FakeProvider) -> None:
    provider.when_text(
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


def test_a_stuck_exaid_delays_no_answer(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdagents.watching.DRAIN", 0.2)
    off = answers(run)
    hold = provider.hold(OF_EXAID)
    assert answers(run, "--exaid", "full_exaid", "--max-connections", "8") == off
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
    arguments = ("--model-role", "summarizer=gpt-4o", "--exaid", "full_exaid")
    run("--num-samples", "1", "--difficulty", "basic", *arguments)
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
    assert [r["status"] for r in found][:3] == ["answered"] * 3
    assert all(r["watched"]["tail_loss"] == 1.0 for r in found[:3])
    assert {f"{r['case_id']}.trace.jsonl.gz" for r in found} <= {
        file.name for file in (folder() / "traces").iterdir()
    }


def test_a_replay_says_the_same_when_fields_came_in_another_order(
    provider: FakeProvider, run: Run
) -> None:
    provider.when_text(
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
