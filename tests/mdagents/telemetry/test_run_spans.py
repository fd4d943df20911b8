"""The spans of runs, as a collector on loopback gets them."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

import mdagents
from mdagents import RunConfig
from mdagents.runs.engines.messages import Told, unpacked
from mdagents.runs.engines.process_workers import ProcessPost
from mdagents_llm.errors import EndpointDown
from mdagents_llm.telemetry import call_spans
from mdagents_llm.telemetry.call_spans import as_messages, name_of
from tests.fake_provider import FakeProvider, FaultPlan
from tests.mdagents.telemetry.conftest import BASIC, ledger, questions_file
from tests.support.otlp import Collector, Span
from tests.support.whole_runs import SAMPLE, Run, records

SECRET = "Mr Doe of Elm Street"
_NAMES = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
CONVENTIONS = {*_NAMES, "gen_ai.usage.cache_write.input_tokens"}
"""Names of the conventions; the package's last version lacks one of v0.1.0."""
FAULTS = FaultPlan(
    {"429": 0.05, "500": 0.05, "reset": 0.02, "malformed_json_body": 0.02, "refusal": 0.03,
     "empty": 0.02, "cut_off": 0.03, "invalid_schema": 0.05, "truncated_body": 0.02},
    retry_after=0.0,
)  # fmt: skip


def outcome(call: Span) -> str:
    """The outcome of a call as in the ledger."""
    if call.attributes.get("mdagents.aborted"):
        return "aborted"
    reasons = {"stop": "ok", "length": "truncated", "content_filter": "refused"}
    (reason,) = call.attributes.get("gen_ai.response.finish_reasons", [""])
    return reasons.get(reason) or str(call.attributes["error.type"])


def check_sums(collector: Collector, rows: list[dict[str, Any]]) -> None:
    """Compare the sums over all spans with those over the rows."""
    assert len(collector.calls) == len(rows)
    paid = [row for row in rows if not row["cached"]]
    reused = [row for row in rows if row["cached"]]
    parts = {
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
        "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
        "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    }
    for of_row, of_span in parts.items():
        assert collector.sum(of_span) == sum(row[of_row] for row in paid), of_span
    for name in ("input_tokens", "output_tokens"):
        assert collector.sum(f"mdagents.reused.{name}") == sum(row[name] for row in reused)
    for of_span, some in (("mdagents.cost_usd", paid), ("mdagents.reused.cost_usd", reused)):
        cost = math.fsum(row["cost_usd"] for row in some)
        assert collector.sum(of_span) == pytest.approx(cost)
    outcomes = Counter(map(outcome, collector.calls))
    assert outcomes == Counter(row["outcome"] for row in rows)


def check_tree(collector: Collector) -> None:
    """Check that each span is below the one that it belongs to, and within its time."""
    above = {"chat": "invoke_agent", "invoke_agent": "invoke_workflow", "invoke_workflow": "run"}
    for span in collector.spans:
        parent = collector.parent_of(span)
        kind = above.get(span.name.split()[0])
        assert (parent and parent.name.split()[0]) == kind, span
        assert span.start <= span.end
        is_of_exaid = span.attributes.get("gen_ai.agent.name") in ("summarizer", "buffer_agent")
        if parent is not None and not is_of_exaid:
            assert parent.start <= span.start, span
            assert span.end <= parent.end, span
        names = {name for name in span.attributes if name.startswith("gen_ai.")}
        assert names <= CONVENTIONS


def test_a_question_is_one_tree(provider: FakeProvider, run: Run, collector: Collector) -> None:
    provider.prompt_cache, provider.reasoning_tokens = True, 7
    assert run("--difficulty", "intermediate", "--num-samples", "1", "--otel")[0] == 0
    check_tree(collector)
    check_sums(collector, ledger())
    assert {span.trace for span in collector.spans} == {collector.spans[0].trace}
    (root,) = collector.named("run ")
    (question,) = collector.questions
    (record,) = records()
    assert root.attributes["mdagents.outcome"] == "finished"
    assert question.name == "invoke_workflow mdagents"
    assert question.attributes["gen_ai.workflow.name"] == "mdagents"
    assert question.attributes["mdagents.question.id"] == record["question_id"]
    assert question.attributes["mdagents.answer"] == record["predicted"]
    agents = {span.attributes["gen_ai.agent.name"] for span in collector.named("invoke_agent")}
    assert {"Recruiter", "Moderator"} < agents
    kinds = {span.name.split()[0]: span.kind for span in collector.spans}
    assert kinds == {"run": 1, "invoke_workflow": 1, "invoke_agent": 1, "chat": 3}
    for call in collector.calls:
        assert call.name == "chat gpt-4o-mini"
        assert call.attributes["gen_ai.provider.name"] == "openai"
        assert call.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert collector.paths == ["/v1/traces"] * len(collector.paths)
    assert {resource["service.name"] for resource in collector.resources} == {"mdagents"}


@pytest.mark.sweep
def test_sums_are_those_of_the_ledger_on_100_questions_with_faults(
    provider: FakeProvider, run: Run, collector: Collector
) -> None:
    provider.faults, provider.prompt_cache = FAULTS, True
    status, _, err = run(*BASIC, "--dataset", questions_file(100), "--exaid", "turn_end")
    assert status in (0, 1), err
    check_tree(collector)
    check_sums(collector, ledger())
    failed = [span for span in collector.calls if span.is_error]
    assert len(failed) > 20
    assert all(span.attributes["error.type"] for span in failed)
    assert "summarizer" in {span.attributes.get("gen_ai.agent.name") for span in collector.spans}
    assert len(collector.questions) == 100
    by_id = {record["question_id"]: record for record in records()}
    scores = []
    for question in collector.questions:
        record = by_id[question.attributes["mdagents.question.id"]]
        (score,) = [e.attributes for e in question.events if e.name.startswith("gen_ai.eval")]
        scores.append(score["gen_ai.evaluation.score.value"])
        assert scores[-1] == float(bool(record["correct"]))
        assert question.is_error == (record["status"] != "answered")
        assert question.attributes["mdagents.status"] == record["status"]
    totals = json.loads(next(Path("output").glob("*/run.json")).read_text())["totals"]
    assert sum(scores) == totals["correct"]
    assert collector.named("run ")[0].attributes["mdagents.accuracy"] == sum(scores) / len(scores)


def test_replies_of_the_cache_are_marked_and_cost_nothing(run: Run, collector: Collector) -> None:
    flags = (*BASIC, "--num-samples", "2")
    run(*flags)
    paid = collector.sum("mdagents.cost_usd")
    assert paid > 0
    collector.spans.clear()
    assert run(*flags, "--fresh", "--cache", "only")[0] == 0
    assert {call.attributes["mdagents.cached"] for call in collector.calls} == {True}
    assert {call.kind for call in collector.calls} == {1}, "nothing was sent"
    assert collector.sum("gen_ai.usage.input_tokens") == 0
    assert collector.sum("mdagents.reused.cost_usd") == pytest.approx(paid)


def test_attempts_are_spans_with_the_kind_of_their_error(
    provider: FakeProvider, run: Run, collector: Collector
) -> None:
    provider.fail_next("500")
    provider.fail_next("invalid_schema", match="Your role: arbitrator")
    flags = (*BASIC, "--num-samples", "1", "--max-connections", "1")
    assert run(*flags)[0] == 0
    first, second = sorted(collector.calls, key=lambda span: span.start)[:2]
    assert (first.is_error, first.attributes["error.type"]) == (True, "server_error")
    assert "gen_ai.usage.input_tokens" not in first.attributes
    assert (second.is_error, second.attributes["mdagents.attempt"]) == (False, 2)
    assert first.parent == second.parent
    (arbitrator,) = collector.named("invoke_agent Arbitrator")
    below = [span for span in collector.calls if span.parent == arbitrator.id]
    assert len(below) == 2, "a re-ask"
    assert not any("mdagents.attempt" in span.attributes for span in below)
    assert not arbitrator.is_error


def test_a_question_without_a_reply_is_an_error(
    provider: FakeProvider, run: Run, collector: Collector
) -> None:
    provider.fail_next("context_length", times=9)
    run(*BASIC, "--num-samples", "1")
    (question,) = collector.questions
    assert (question.is_error, question.attributes["error.type"]) == (True, "api_error")
    assert question.description == "", "the message may quote a prompt"
    score = question.events[-1].attributes
    assert score["gen_ai.evaluation.score.label"] == "api_error"
    assert score["gen_ai.evaluation.score.value"] == 0
    assert collector.named("run ")[0].attributes["error.type"] == "could_not_work"


def secret_questions() -> str:
    line = {
        "id": "q-1",
        "question": f"{SECRET} has bleeding gums. Which vitamin is lacking?",
        "options": {"A": f"Retinol {SECRET}", "B": "Thiamine", "C": "Ascorbic acid"},
        "answer_idx": "C",
    }
    Path("secret.jsonl").write_text(json.dumps(line))
    return "secret.jsonl"


@pytest.mark.parametrize(
    ("flags", "variable", "is_sent"),
    [
        ((), "", False),
        ((), "NO_CONTENT", False),
        ((), "EVENT_ONLY", False),
        (("--otel-text",), "", True),
        ((), "SPAN_ONLY", True),
        ((), "span_and_event", True),
        ((), "true", True),
    ],
)
def test_text_is_sent_on_request_alone_and_keys_never(
    flags: tuple[str, ...], variable: str, is_sent: bool, provider: FakeProvider, run: Run,
    collector: Collector, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    provider.when("Ascorbic", {"reasoning": f"{SECRET} lacks it."})
    provider.fail_next("context_length", match="Your role: arbitrator")
    if variable:
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", variable)
    run(*BASIC, *flags, "--dataset", secret_questions(), "--exaid", "turn_end")
    everything = b"".join(collector.bodies)
    assert (SECRET.encode() in everything) is is_sent
    assert b"test-key" not in everything
    assert not any("test-key" in value for one in collector.headers for value in one.values())
    if is_sent:
        call = collector.calls[0].attributes
        system, user = json.loads(call["gen_ai.input.messages"])
        assert (system["role"], user["role"]) == ("system", "user")
        assert SECRET in user["parts"][0]["content"]
        (reply,) = json.loads(call["gen_ai.output.messages"])
        assert (reply["role"], reply["finish_reason"]) == ("assistant", "stop")
        assert SECRET in collector.questions[0].attributes["gen_ai.input.messages"]
    assert not any("prompt" in row or "reply" in row for row in ledger()), "calls.jsonl is as ever"


def test_odd_text_and_names_lose_no_batch(
    provider: FakeProvider, run: Run, collector: Collector
) -> None:
    long = {"role": "Cardio\u202elogist " + "x" * 300, "expertise": "Hearts \x00"}
    provider.when("recruit", {"experts": [long, long, long]})
    provider.when("Ascorbic", {"reasoning": "so \x00 \u2028 \U0001f9e0"})
    _, _, err = run(*BASIC, "--otel-text", "--dataset", secret_questions())
    assert "--otel" not in err, err
    check_tree(collector)
    assert all(len(span.name) < 100 and span.name.isprintable() for span in collector.spans)
    assert json.loads(as_messages([("user", "half \ud83e")]))[0]["parts"][0]["content"][-1] == "�"
    assert name_of("half \ud83e") == "half"


def test_each_question_can_be_a_trace(run: Run, collector: Collector) -> None:
    assert run(*BASIC, "--num-samples", "3", "--otel-traces", "question")[0] == 0
    (root,) = collector.named("run ")
    assert len({question.trace for question in collector.questions} | {root.trace}) == 4
    assert all(question.links == [root.trace] for question in collector.questions)
    assert all(question.parent == b"" for question in collector.questions)
    check_sums(collector, ledger())


def test_an_error_of_ours_costs_the_spans_alone(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(call_spans, "of_call", broken)
    status, _, err = run(*BASIC, "--num-samples", "2", "--display", "log")
    assert status == 0
    assert (
        err.count("--otel: no more spans are made: ZeroDivisionError; answers are not affected")
        == 1
    )
    assert [record["watched"]["error"] for record in records()] == [None, None]


def test_the_same_run_with_and_without(run: Run, collector: Collector) -> None:
    flags = ("--difficulty", "intermediate", "--num-samples", "2", "--cache", "off")
    assert run(*flags, "--output-dir", "with", "--otel", "--otel-text")[0] == 0
    assert run(*flags, "--output-dir", "without")[0] == 0
    with_, without = records(Path("with")), records(Path("without"))
    for record in (*with_, *without):
        del record["wall_seconds"]
    assert with_ == without


def test_the_python_api(provider: FakeProvider, run: Run, collector: Collector) -> None:
    config = RunConfig(
        dataset=str(SAMPLE), difficulty="basic", num_samples=1, exaid="off", otel=True
    )
    with pytest.warns(UserWarning, match="written for this project"):
        result = mdagents.run(config)
    check_tree(collector)
    assert collector.named("run ")[0].attributes["mdagents.run"] == result.manifest.name


def test_a_run_is_below_the_span_of_the_program_that_started_it(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    assert run(*BASIC, "--num-samples", "1")[0] == 0
    (root,) = collector.named("run ")
    assert (root.trace.hex(), root.parent.hex()) == ("ab" * 16, "cd" * 8)
    assert {span.trace for span in collector.spans} == {root.trace}
    collector.spans.clear()
    monkeypatch.setenv("TRACEPARENT", "none of the W3C's")
    status, _, err = run(*BASIC, "--num-samples", "1", "--fresh")
    assert (status, err.count("--otel: TRACEPARENT is in no form of the W3C's")) == (0, 1)
    assert collector.named("run ")[0].parent == b""


@pytest.mark.parametrize(
    ("propagators", "is_below"),
    [
        ("baggage, tracecontext", True),
        (" tracecontext ", True),
        (" ", True),
        ("tracecontext, None", False),
        ("baggage", False),
    ],
)
def test_the_list_of_propagators_may_have_blanks(
    run: Run,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    propagators: str,
    is_below: bool,
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    monkeypatch.setenv("OTEL_PROPAGATORS", propagators)
    assert run(*BASIC, "--num-samples", "1")[0] == 0
    (root,) = collector.named("run ")
    assert (root.parent.hex() == "cd" * 8) == is_below


async def test_one_question_of_the_python_api(
    provider: FakeProvider, run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    config = RunConfig(model="gpt-4o-mini", otel=True)
    record = await mdagents.answer("Which vitamin?", ["A", "B"], team="basic", config=config)
    (question,) = collector.questions
    assert (question.trace.hex(), question.parent.hex()) == ("ab" * 16, "cd" * 8)
    assert question.attributes["mdagents.answer"] == record.predicted
    assert len(collector.calls) == record.calls > 0
    assert collector.sum("gen_ai.usage.input_tokens") == record.token_usage.input_tokens
    provider.fail_next("401")
    with pytest.raises(EndpointDown):
        await mdagents.answer("Which vitamin?", ["A", "B"], team="basic", config=config)
    assert collector.questions[-1].attributes["error.type"] == "EndpointDown"
    assert collector.calls[-1].attributes["error.type"] == "auth"


def test_flags_without_effect_are_refused(run: Run) -> None:
    for flag in (("--otel-text",), ("--otel-traces", "question")):
        status, _, err = run(*flag)
        assert (status, err.count("\n")) == (2, 1)
        assert "without --otel no spans are made" in err


def test_without_the_extra_one_line_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name
        for name in sys.modules
        if name.startswith(("mdagents.telemetry", "mdagents_llm.telemetry"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.sdk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    status, _, err = run("--otel")
    assert (status, err.count("\n")) == (2, 1)
    assert "--otel needs opentelemetry" in err
    assert "[opentelemetry]" in err
    assert not Path("output").exists()


@pytest.mark.process
def test_worker_processes(provider: FakeProvider, run: Run, collector: Collector) -> None:
    provider.faults = FAULTS
    flags = ("--num-samples", "8", "--processes", "2", "--exaid", "turn_end")
    status, _, err = run(*BASIC, *flags)
    assert status in (0, 1), err
    check_tree(collector)
    check_sums(collector, ledger())
    assert len(collector.questions) == 8
    names = [span.attributes.get("gen_ai.agent.name") for span in collector.spans]
    assert "summarizer" in names


@pytest.mark.process
def test_events_of_worker_processes_have_the_times_of_the_worker(
    provider: FakeProvider, run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: set[int] = set()  # times of events at the workers, in ns

    async def report_late(self: ProcessPost, message: bytes) -> bytes:
        report = await exchange(self, message)
        made = unpacked(report)  # a greeting, or a report
        happened = [one for _, one in getattr(made, "messages", ()) if isinstance(one, Told)]
        told.update(one.at_ms * 1_000_000 for one in happened)
        await asyncio.sleep(0.05 * bool(happened))
        return report

    exchange = ProcessPost.exchange
    monkeypatch.setattr(ProcessPost, "exchange", report_late)
    assert run(*BASIC, "--num-samples", "2", "--processes", "2")[0] == 0
    check_tree(collector)
    assert len(collector.questions) == 2
    for question in collector.questions:
        events = {event.name: event.at for event in question.events}
        assert {"mdagents.routed", "mdagents.recruited"} < events.keys()
        assert {events["mdagents.routed"], events["mdagents.recruited"]} <= told
