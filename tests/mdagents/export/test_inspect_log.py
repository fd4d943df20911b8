"""Runs exported as logs of Inspect: what they say, and that Inspect reads them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mdagents.export import LogFormat, export_run
from mdagents.export.cli import main
from mdagents.export.spans import model_call
from mdagents.scoring.group import make_group
from mdagents.scoring.rows import read_output
from mdagents.scoring.scored_row import ScoredRow
from mdagents_llm.chat import ChatMessage, ChatReply, ChatRequest, StopReason, TokenUsage
from mdagents_llm.errors import BenchError
from mdagents_llm.ledger import CallRow
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

Log = dict[str, Any]
BASIC = ("--num-samples", "2", "--difficulty", "basic")
WATCHED = ("--exaid", "full_exaid")
TOKENS = ("input_tokens", "input_tokens_cache_read", "output_tokens", "total_tokens")

# Reads logs with Inspect, out of reach of the network, and says what it makes of them. Pydantic
# passes over fields that it does not know: what Inspect does not have after reading is `lost`.
READER = """
import json, socket, sys, warnings
from datetime import datetime
from pathlib import Path

def no_network(self, address):
    raise AssertionError(f"Inspect tried to connect to {address}")

socket.socket.connect = no_network
warnings.simplefilter("error")

from inspect_ai.event import timeline_build
from inspect_ai.log import convert_eval_logs, list_eval_logs, read_eval_log
from inspect_ai.scorer import SampleScore, accuracy, stderr

def lost(ours, theirs, at=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            if value is not None:
                yield from lost(value, theirs.get(name), f"{at}/{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for pair in zip(ours, theirs):
            yield from lost(*pair, at)
    elif ours != theirs and not same_time(ours, theirs):
        yield at

def same_time(ours, theirs):
    try:
        return datetime.fromisoformat(ours) == datetime.fromisoformat(theirs)
    except (TypeError, ValueError):
        return False

def as_json(log):
    return json.loads(log.model_dump_json())

read = {}
for name in sys.argv[1:]:
    log, header = read_eval_log(name), read_eval_log(name, header_only=True)
    convert_eval_logs(name, "eval", "converted")
    convert_eval_logs(f"converted/{Path(name).stem}.eval", "json", "converted")
    back = read_eval_log(f"converted/{Path(name).name}", resolve_attachments="full")
    scores = [SampleScore(score=s.scores["option"]) for s in log.samples if s.scores]
    read[name] = {
        "lost": sorted(set(lost(json.loads(Path(name).read_text()), as_json(log)))),
        "lost on the way": sorted(set(lost(as_json(log)["samples"], as_json(back)["samples"]))),
        "status": header.status,
        "header": {n: m.value for n, m in header.results.scores[0].metrics.items()},
        "recomputed": {"accuracy": accuracy()(scores), "stderr": float(stderr()(scores))},
        "agents": {
            sample.id: [span.name for span in timeline_build(sample.events).root.content
                        if span.type == "span" and span.span_type == "agent"]
            for sample in log.samples
        },
        "listed": any(info.name.endswith(name) for info in list_eval_logs("."))
    }
print(json.dumps(read))
"""


def folder(output: str = "output") -> Path:
    (found,) = Path(output).glob("*/run.json")
    return found.parent


def exported(path: Path | None = None) -> Log:
    log: Log = json.loads(export_run(path or folder(), Path("log.json")).read_bytes())
    return log


def calls_of(case_id: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder() / "calls.jsonl").read_text().splitlines()]
    return [row for row in rows if row["case_id"] == case_id]


def instant(time: str) -> datetime:
    """The time that a text stands for: Inspect writes `+00:00` where our files have `Z`."""
    found = datetime.fromisoformat(time)
    assert found.tzinfo is not None
    return found


def events(sample: Log, kind: str) -> list[Log]:
    return [event for event in sample["events"] if event["event"] == kind]


def spans(sample: Log) -> dict[str, Log]:
    return {span["id"]: span for span in events(sample, "span_begin")}


def added(usages: list[Log]) -> dict[str, int]:
    total: Counter[str] = Counter(dict.fromkeys(TOKENS, 0))
    for usage in usages:
        total.update({name: usage[name] for name in TOKENS})
    return dict(total)


def of_records(found: list[dict[str, Any]]) -> tuple[int, int]:
    """(input, output) tokens of teams and EXAID."""
    counts = [r["token_usage"] for r in found] + [r["exaid"]["token_usage"] for r in found]
    return sum(c["input_tokens"] for c in counts), sum(c["output_tokens"] for c in counts)


def three_levels(provider: FakeProvider) -> None:
    levels = iter(["basic", "intermediate", "advanced"] * 2)
    provider.when("triage officer", lambda _: {"difficulty": next(levels)})


def test_inspect_reads_the_logs(provider: FakeProvider, run: Run) -> None:
    three_levels(provider)
    provider.fail_next("context_length", match="Your role: arbitrator")
    provider.fail_next("cut_off", times=2, match="Your role: moderator")
    four = ("--num-samples", "4", "--max-samples", "1", *WATCHED, "--output-dir", "levels")
    run(*four)
    run(*four, "--cache", "only", "--fresh")
    run(*BASIC, "--log-prompts", "--sample-token-limit", "2000", "--output-dir", "logged")
    run("--method", "cot_sc", *BASIC[:2], "--output-dir", "baseline")
    Path("alone").mkdir()
    array = min(Path("levels").glob("*.json"))
    Path("alone/foreign.json").write_bytes(array.read_bytes())
    runs = [path.parent for path in Path().glob("*/*/run.json")]
    assert len(runs) == 4
    logs = [export_run(path) for path in [*runs, Path("alone/foreign.json")]]
    done = subprocess.run(
        [sys.executable, "-c", READER, *map(str, logs)],
        env={**os.environ, "HOME": str(Path.cwd()), "XDG_DATA_HOME": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout.splitlines()[-1])
    for log in logs:
        found = read[str(log)]
        assert (found["lost"], found["lost on the way"]) == ([], [])
        assert found["listed"]
        assert found["status"] == "success"
        assert found["header"] == pytest.approx(found["recomputed"])
        assert all(len(agents) > 1 for agents in found["agents"].values()) or log is logs[-1]


# What Inspect reads of an archive: log, summaries, and the table of samples that Scout starts from.
ARCHIVE_READER = """
import json, socket, sys, warnings

def no_network(self, address):
    raise AssertionError(f"Inspect tried to connect to {address}")

socket.socket.connect = no_network
warnings.simplefilter("error")

from inspect_ai.analysis import SampleSummary, samples_df
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

def as_json(model):
    return json.loads(model.model_dump_json())

archive, whole = sys.argv[1:]
log, summaries = read_eval_log(archive), read_eval_log_sample_summaries(archive)
warnings.simplefilter("ignore")  # Inspect calls pandas in a way that is deprecated
table = samples_df(archive, columns=SampleSummary, quiet=True)
print(json.dumps({
    "same": as_json(log) == as_json(read_eval_log(whole)),
    "alone": [as_json(read_eval_log_sample(archive, s.id, s.epoch)) == as_json(s)
              for s in log.samples],
    "summaries": [as_json(summary) for summary in summaries],
    "tokens": [int(n) for n in table["total_tokens"]],
    "messages": [int(n) for n in table["message_count"]],
    "scores": list(table["score_option"]),
    "total": sum(usage.total_tokens for usage in log.stats.model_usage.values()),
}))
"""


def test_an_archive_holds_what_scout_reads(provider: FakeProvider, run: Run) -> None:
    """Inspect Scout finds logs by `.eval` alone, and samples by the summaries in it."""
    three_levels(provider)
    run("--num-samples", "3", "--epochs", "2", *WATCHED)
    assert main([str(folder()), "--format", "eval", "--output", "log.eval"]) == 0
    exported()
    environment = {**os.environ, "HOME": str(Path.cwd()), "XDG_DATA_HOME": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", ARCHIVE_READER, "log.eval", "log.json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout.splitlines()[-1])
    assert (read["same"], read["alone"], read["messages"]) == (True, [True] * 6, [2] * 6)
    calls = [json.loads(line) for line in (folder() / "calls.jsonl").read_text().splitlines()]
    ledger = sum((call["input_tokens"] or 0) + (call["output_tokens"] or 0) for call in calls)
    assert ledger == read["total"] == sum(read["tokens"]) > 0
    right = {(row.question_id, row.epoch): row.correct for row in read_output(folder()).rows}
    scores = [summary["scores"]["option"]["value"] for summary in read["summaries"]]
    assert scores == read["scores"]
    assert {(s["id"], s["epoch"]): v == "C" for s, v in zip(read["summaries"], scores, strict=True)
            } == right  # fmt: skip
    again = export_run(folder(), Path("again.eval"), LogFormat.EVAL)
    assert again.read_bytes() == Path("log.eval").read_bytes()
    assert rows_but_place(again) == rows_but_place(Path("log.json"))
    named = export_run(folder(), None, LogFormat.EVAL)
    assert (named.parent, named.suffix) == (folder(), ".eval")


def rows_but_place(path: Path) -> list[ScoredRow]:
    return sorted(read_output(path).rows, key=lambda row: row.item)


def test_an_id_that_no_archive_can_hold(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"id": "x" * 70_000, "label": "A", "options": {"A": "3", "B": "4"}, "response": "B"}
    Path("theirs.json").write_text(json.dumps([record]))
    assert main(["theirs.json", "--format", "eval", "--output", "log.eval"]) == 2
    assert "too long for an .eval file; use --format json" in capsys.readouterr().err
    assert not Path("log.eval").exists()


def test_the_same_run_gives_the_same_bytes(run: Run) -> None:
    run(*BASIC, *WATCHED)
    first = export_run(folder())
    assert first.parent == folder()
    before = first.read_bytes()
    assert export_run(folder() / "samples.jsonl") == first
    assert export_run(Path(f"{folder()}.json")) == first
    assert first.read_bytes() == before
    ids = [event["uuid"] for sample in json.loads(before)["samples"] for event in sample["events"]]
    assert len(set(ids)) == len(ids)


def test_tokens_are_counted_as_inspect_counts_them(provider: FakeProvider, run: Run) -> None:
    provider.prompt_cache = True
    three_levels(provider)
    run("--num-samples", "3", "--max-samples", "1", *WATCHED)
    log, found = exported(), records()
    for sample, record in zip(log["samples"], found, strict=True):
        sums = added(list(sample["model_usage"].values()))
        assert sums == added(list(sample["role_usage"].values()))
        assert sums == added([e["output"]["usage"] for e in events(sample, "model")])
        cached = sum(row["cached_input_tokens"] for row in calls_of(record["case_id"]))
        assert sums["input_tokens_cache_read"] == cached
        read, written = of_records([record])
        assert (sums["input_tokens"] + cached, sums["output_tokens"]) == (read, written)
        assert sums["total_tokens"] == read + written
        of_exaid = {"summarizer", "buffer_agent"} & sample["role_usage"].keys()
        exaid = added([sample["role_usage"][role] for role in of_exaid])
        assert exaid["total_tokens"] == record["exaid"]["token_usage"]["total_tokens"]
    of_samples = [usage for s in log["samples"] for usage in s["model_usage"].values()]
    spent = added(list(log["stats"]["model_usage"].values()))
    assert spent == added(of_samples)
    assert spent["input_tokens_cache_read"] == provider.totals.cached_input > 0


def test_every_call_is_once_in_the_turn_of_its_agent(provider: FakeProvider, run: Run) -> None:
    three_levels(provider)
    provider.fail_next("500", times=3, match="You are")
    provider.fail_next("invalid_schema", match="Your role: arbitrator")
    run("--num-samples", "3", "--max-samples", "1", *WATCHED)
    for sample in exported()["samples"]:
        case_id = sample["metadata"]["case_id"]
        in_span = spans(sample)
        calls = events(sample, "model")
        rows = calls_of(case_id)
        assert Counter(
            (row["agent"], instant(row["started_at"]), row["outcome"]) for row in rows
        ) == Counter(
            (c["metadata"]["agent"], instant(c["timestamp"]), c["metadata"]["outcome"])
            for c in calls
        )
        for call in calls:
            span = in_span[call["span_id"]]
            of_exaid = call["role"] in ("summarizer", "buffer_agent")
            assert span["type"] == "agent"
            assert span["name"] == ("exaid" if of_exaid else call["metadata"]["agent"])
            if not of_exaid:
                assert span["metadata"]["description"] == call["metadata"]["phase"]
                replied = call["metadata"]["outcome"] == "ok"
                assert bool(call["output"].get("completion")) is replied or call is not calls[-1]
    failed = [c for s in exported()["samples"] for c in events(s, "model") if "error" in c]
    assert [c["error"] for c in failed] == ["server_error"] * 3
    assert all(c["output"]["choices"] == [] for c in failed)


def test_spans_nest_and_are_in_one_piece(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "advanced", *WATCHED)
    (sample,) = exported()["samples"]
    open_spans: list[str] = []
    for event in sample["events"]:
        if event["event"] == "span_begin":
            assert event.get("parent_id") == (open_spans[-1] if open_spans else None)
            open_spans.append(event["id"])
        assert event["span_id"] == open_spans[-1]
        if event["event"] == "span_end":
            assert event["id"] == open_spans.pop()
    assert not open_spans
    top = [span["name"] for span in spans(sample).values() if "parent_id" not in span]
    assert top == ["init", "solvers", "scorers"]
    assert sample["started_at"] <= min(event["timestamp"] for event in sample["events"])
    assert sample["completed_at"] >= max(event["timestamp"] for event in sample["events"])


def test_a_summary_follows_the_turn_it_is_of(run: Run) -> None:
    run(*BASIC, *WATCHED)
    for sample, record in zip(exported()["samples"], records(), strict=True):
        in_span = spans(sample)
        shown = []
        for before, event in pairwise(sample["events"]):
            if event["event"] == "info":
                shown.append(event["data"])
                assert event["source"] == "exaid"
                assert before["event"] in ("span_end", "info")
                if before["event"] == "span_end":
                    assert in_span[before["id"]]["name"] in event["data"]["agents"]
        expected = [
            {k: v for k, v in s.items() if k != "event_id"} for s in record["exaid"]["summaries"]
        ]
        assert sorted(map(str, shown)) == sorted(map(str, expected))
        assert shown


@pytest.mark.parametrize(
    ("fault", "status", "value", "reason"),
    [
        ("refusal", "refused", "N", "refusal"),
        ("cut_off", "truncated", "I", "truncated"),
        ("invalid_schema", "parse_error", "I", "invalid_response_format"),
        ("context_length", "api_error", "N", "api_error"),
    ],
)
def test_what_is_no_answer_is_scored_as_wrong(
    provider: FakeProvider, run: Run, fault: str, status: str, value: str, reason: str
) -> None:
    provider.fail_next(fault, times=2, match="Your role: arbitrator")
    run("--num-samples", "1", "--difficulty", "basic")
    log = exported()
    (sample,) = log["samples"]
    score = sample["scores"]["option"]
    assert (score["value"], score["answer"], score["reason"]) == (value, "", reason)
    assert score["metadata"] == {"status": status}
    (score_event,) = events(sample, "score")
    assert score_event["score"] == score
    assert ("error" in sample) is (status == "api_error")
    assert len(events(sample, "error")) == (status == "api_error")
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0
    assert log["results"]["scores"][0]["scored_samples"] == 1
    stops = {
        e["output"]["choices"][0]["stop_reason"]
        for e in events(sample, "model")
        if e["output"]["choices"]
    }
    assert stops - {"stop"} == {"refused": {"content_filter"}, "truncated": {"max_tokens"}}.get(
        status, set()
    )


def test_an_answer_is_scored_by_its_letter(run: Run) -> None:
    run("--num-samples", "6", "--difficulty", "basic")
    log = exported()
    for sample, record in zip(log["samples"], records(), strict=True):
        score = sample["scores"]["option"]
        assert score["value"] == ("C" if record["correct"] else "I")
        assert score["answer"] == record["predicted"]
        assert sample["target"] == record["label"]
        assert sample["choices"] == list(record["options"].values())
        assert sample["output"]["completion"].endswith(record["response"]["final_answer"])
    accuracy = log["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert accuracy == make_group(read_output(folder()).rows).accuracy


def test_several_epochs(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "4", "--epochs", "2", "--method", "zero_shot")
    log = exported()
    keys = [(sample["epoch"], sample["id"]) for sample in log["samples"]]
    assert keys == sorted(keys)
    assert len(set(keys)) == 8
    assert log["results"]["total_samples"] == 8
    (score,) = log["results"]["scores"]
    assert score["reducer"] == "mean"
    shares = [
        sum(r["correct"] for r in records() if r["question_id"] == id_) / 2
        for id_ in {r["question_id"] for r in records()}
    ]
    assert len(set(shares)) > 1
    metrics = {name: metric["value"] for name, metric in score["metrics"].items()}
    assert metrics["accuracy"] == make_group(read_output(folder()).rows).accuracy
    assert metrics["stderr"] == pytest.approx(statistics.stdev(shares) / 2)


def test_a_limit_is_a_limit(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic", "--sample-token-limit", "300")
    (sample,) = exported()["samples"]
    assert sample["limit"] == {
        "type": "token", "limit": 300.0, "reason": records()[0]["error"],
    }  # fmt: skip
    (event,) = events(sample, "sample_limit")
    assert (event["type"], event["message"]) == ("token", records()[0]["error"])
    assert "error" not in sample


def test_skipped_questions_have_no_score(provider: FakeProvider, run: Run) -> None:
    three_levels(provider)
    run("--num-samples", "3", "--max-samples", "1", "--skip", "advanced")
    log = exported()
    scored = ["scores" in sample for sample in log["samples"]]
    assert scored == [True, True, False]
    (score,) = log["results"]["scores"]
    assert (score["scored_samples"], score["unscored_samples"]) == (2, 1)
    assert score["metrics"]["accuracy"]["value"] == make_group(read_output(folder()).rows).accuracy


def test_kept_replies_stand_in_the_turns_of_the_recorded_trace(run: Run) -> None:
    run(*BASIC, *WATCHED)
    run(*BASIC, *WATCHED, "--cache", "only", "--fresh")
    replayed = next(p.parent for p in Path("output").glob("*/run.json") if "." not in p.parent.name)
    for sample in exported(replayed)["samples"]:
        in_span = spans(sample)
        calls = events(sample, "model")
        ends = {event["id"]: event["timestamp"] for event in events(sample, "span_end")}
        assert calls
        for call in calls:
            span = in_span[call["span_id"]]
            assert call["cache"] == "read"
            assert span["name"] in (call["metadata"]["agent"], "exaid")
            assert span["timestamp"] <= call["timestamp"] <= ends[call["span_id"]]
            assert call["metadata"]["replayed_at"] > call["timestamp"]


def test_an_earlier_attempt_is_kept_apart(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("context_length", match="Your role: arbitrator")
    run("--num-samples", "1", "--difficulty", "basic")
    run("--num-samples", "1", "--difficulty", "basic", "--retry-errors")
    log = exported()
    (sample,) = log["samples"]
    (record,) = records()
    earlier = [i for i, span in spans(sample).items() if span["name"] == "other attempt 1"]
    in_earlier = [e for e in events(sample, "model") if e["span_id"] in earlier]
    assert "context_length" in {event.get("error") for event in in_earlier}
    assert len(events(sample, "model")) == len(calls_of(record["case_id"]))
    used = added(list(sample["model_usage"].values()))["total_tokens"]
    assert used == record["token_usage"]["total_tokens"]
    spent = added(list(log["stats"]["model_usage"].values()))["total_tokens"]
    assert spent == sum(r["input_tokens"] + r["output_tokens"] for r in calls_of(record["case_id"]))


def test_prompts_and_replies_where_they_were_logged(provider: FakeProvider, run: Run) -> None:
    provider.fail_next("invalid_schema", match="Your role: arbitrator")
    run("--num-samples", "1", "--difficulty", "basic", "--log-prompts")
    (sample,) = exported()["samples"]
    *_, asked, again = events(sample, "model")
    assert [m["role"] for m in asked["input"]] == ["system", "user"]
    assert [m["role"] for m in again["input"]] == ["system", "user", "assistant", "user"]
    assert json.loads(again["output"]["completion"])["answer"] == records()[0]["predicted"]
    run("--num-samples", "1", "--difficulty", "basic", "--output-dir", "unlogged")
    (sample,) = exported(folder("unlogged"))["samples"]
    assert all(event["input"] == [] for event in events(sample, "model"))
    assert (
        events(sample, "model")[-1]["output"]["completion"].splitlines()[-1].startswith("Answer: ")
    )


def test_an_unusable_attempt_is_an_error_that_was_paid() -> None:
    request = ChatRequest((ChatMessage("user", "?"),), max_tokens=5)
    reply = ChatReply("", TokenUsage(50, 10), StopReason.STOP, "m")
    call = CallRow.of(
        request, reply, provider="p", model="m", price=lambda _: None,
        started_at="2026-01-01T00:00:00+00:00", failure="bad_body",
    )  # fmt: skip
    event = model_call(call, "The text of the turn.", None)
    assert (event.error, event.output.completion) == ("unusable", "")
    assert event.output.usage is not None
    assert event.output.usage.total_tokens == 60


def test_an_array_alone_says_what_its_records_say(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "intermediate", *WATCHED)
    (record,) = records()
    Path("elsewhere.json").write_text(json.dumps([record]))
    log = exported(Path("elsewhere.json"))
    assert log["eval"]["created"] == "1970-01-01T00:00:00+00:00"
    assert log["status"] == "success"
    (sample,) = log["samples"]
    assert {o["agent"] for o in record["opinions"]} <= {s["name"] for s in spans(sample).values()}
    said = [event["data"] for event in events(sample, "info")]
    for statement in (*record["opinions"], *record["interactions"], *record["exaid"]["summaries"]):
        assert statement in said
    used = added(list(sample["model_usage"].values()))
    assert used["total_tokens"] == sum(of_records([record]))


def test_a_file_of_another_program(tmp_path: Path) -> None:
    Path("theirs.json").write_text(
        json.dumps(
            [
                {"question": "2+2?", "label": "B", "options": ["(A) 3", "(B) 4"],
                 "response": {"majority_vote": "Answer: B) 4"}, "difficulty": "moderate"},
                {"question": "3+3? \ud800", "label": "A", "options": {"A": "6", "B": "7"},
                 "response": "no idea"},
            ]
        )
    )  # fmt: skip
    log = exported(Path("theirs.json"))
    values = [sample["scores"]["option"]["value"] for sample in log["samples"]]
    assert values == ["C", "I"]
    assert [sample["id"] for sample in log["samples"]] == ["sample_1", "sample_2"]
    assert log["eval"]["model"] == "unknown"


def test_a_run_that_did_not_finish(run: Run) -> None:
    run(*BASIC)
    path = folder() / "run.json"
    manifest = json.loads(path.read_text())
    manifest["finished"] = False
    manifest["item_ids"].append("not-yet")
    path.write_text(json.dumps(manifest))
    log = exported()
    assert log["status"] == "cancelled"
    assert (log["results"]["total_samples"], log["results"]["logged_samples"]) == (3, 2)
    manifest["invocations"][-1]["ended_at"] = None
    path.write_text(json.dumps(manifest))
    log = exported()
    assert (log["status"], log["stats"]["completed_at"]) == ("error", "")
    assert "killed" in log["error"]["message"]


def test_what_the_log_says_of_the_run(run: Run) -> None:
    run(*BASIC, "--sample-token-limit", "100000")
    manifest = json.loads((folder() / "run.json").read_text())
    spec = exported()["eval"]
    assert spec["task"] == spec["dataset"]["name"] == manifest["dataset"]
    assert spec["dataset"]["sample_ids"] == manifest["item_ids"]
    assert spec["model"] == "openai/gpt-4o-mini"
    assert spec["config"]["token_limit"] == 100_000
    assert spec["metadata"]["config_hash"] == manifest["config_hash"]
    assert spec["packages"] == manifest["package_versions"]
    assert instant(spec["created"]) == instant(manifest["invocations"][0]["started_at"])


def test_a_question_without_a_trace_shows_its_calls(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    before = exported()["samples"][0]
    (folder() / "trace_journal.jsonl").unlink()
    sample = exported()["samples"][0]
    assert len(events(sample, "model")) == len(events(before, "model"))
    assert sample["model_usage"] == before["model_usage"]


def test_a_turn_without_its_call_shows_what_was_said(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    (folder() / "calls.jsonl").unlink()
    (sample,) = exported()["samples"]
    said = [event for event in events(sample, "info") if event["source"] == "arbitrator"]
    assert said[0]["data"].splitlines()[-1].startswith("Answer: ")
    used = added(list(sample["model_usage"].values()))["total_tokens"]
    assert used == records()[0]["token_usage"]["total_tokens"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "trace_journal.jsonl",
            b"nonsense\n",
            "trace_journal.jsonl line 1: is not a trace of a case",
        ),
        ("calls.jsonl", b'{"agent": 1}\n', "calls.jsonl line 1 is not a row of a ledger"),
        ("samples.jsonl", b"{\n", "samples.jsonl line 1 is not JSON"),
        ("samples.jsonl", b"", "samples.jsonl holds no finished question"),
        ("run.json", b"{}", "run.json cannot be read as a run of this version"),
    ],
)
def test_a_damaged_run_is_named_in_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], name: str, content: bytes, message: str
) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    (path,) = folder().glob(name)
    path.write_bytes(content)
    there = set(Path().rglob("*"))
    assert main([str(folder())]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert set(Path().rglob("*")) == there, "no part of a log is left"


def test_wrong_use(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["nowhere"]) == 2
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path), "--output", "run.eval"]) == 2
    assert main([str(tmp_path), "--output", "run.json", "--format", "eval"]) == 2
    assert main([str(tmp_path), "--card", "--format", "eval"]) == 2
    lines = capsys.readouterr().err.splitlines()
    nowhere, folder_without, wrong_name, wrong_format, card = lines
    assert nowhere == "error: nowhere cannot be read: No such file or directory"
    assert "samples.jsonl cannot be read" in folder_without
    assert "(--format eval writes an archive), so its name must end in .json" in wrong_name
    assert "must end in .eval" in wrong_format
    assert "leave it out with --card" in card


def test_a_number_that_json_does_not_have_is_unknown() -> None:
    record = {"question": "2+2?", "label": "B", "options": {"A": "3", "B": "4"}, "response": "B",
              "votes": {"B": float("nan")}, "wall_seconds": float("inf"),
              "token_usage": {"input_tokens": float("nan"), "output_tokens": 2}}  # fmt: skip
    Path("theirs.json").write_text(json.dumps([record]))
    assert main(["theirs.json", "--output", "log.json"]) == 0
    (sample,) = json.loads(Path("log.json").read_text())["samples"]
    assert sample["metadata"]["votes"] == {"B": None}
    assert "time" not in sample["output"]
    (usage,) = sample["model_usage"].values()
    assert (usage["input_tokens"], usage["output_tokens"]) == (0, 2)


def test_tokens_under_the_names_of_another_program() -> None:
    record = {"question": "2+2?", "label": "B", "options": {"A": "3", "B": "4"}, "response": "B",
              "token_usage": {"prompt_tokens": 12, "completion_tokens": 3}}  # fmt: skip
    Path("theirs.json").write_text(json.dumps([record]))
    assert main(["theirs.json", "--output", "log.json"]) == 0
    (sample,) = json.loads(Path("log.json").read_text())["samples"]
    (usage,) = sample["model_usage"].values()
    assert (usage["input_tokens"], usage["output_tokens"]) == (12, 3)


WITHOUT_INSPECT = """
import sys
sys.modules["inspect_ai"] = None
from mdagents.cli.commands import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_inspect_one_line_says_how_to_get_it(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    there = set(Path().rglob("*"))
    program = [sys.executable, "-c", WITHOUT_INSPECT]
    done = subprocess.run(
        [*program, "export", str(folder())], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(f"{sys.executable} -m pip install 'mdagents-bench[inspect]'")
    assert set(Path().rglob("*")) == there
    subprocess.run([*program, "score", "--input", str(folder())], capture_output=True, check=True)
    subprocess.run([*program, "export", "--help"], capture_output=True, check=True)


def test_a_log_that_cannot_be_written(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    Path("taken").write_text("a file, not a folder")
    with pytest.raises(BenchError, match=r"cannot write taken/log\.json"):
        export_run(folder(), Path("taken/log.json"))


def test_the_script(run: Run) -> None:
    run("--num-samples", "1", "--difficulty", "basic")
    program = [sys.executable, "-m", "mdagents", "export"]
    done = subprocess.run(
        [*program, str(folder()), "--output", "made/log.json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "made/log.json\n"
    assert json.loads(Path("made/log.json").read_bytes())["version"] == 2
