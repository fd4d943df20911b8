"""Replay: virtual time, variants, recorded replies, and cases that cannot be measured."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evals.cli.make_manifest import main as manifest
from evals.cli.replay import main as replay
from evals.cli.validate_logs import main as validate
from evals.files import file_hash
from evals.manifest import MANIFEST_FILE, provenance, read_manifest
from evals.run_logs import read_run_log
from evals.variants import FOLDER, VARIANT_IDS, load_variant
from exaid_core.token_gate.token_gate import LEGACY
from mdagents_llm.errors import ConfigError
from tests.evals.conftest import write_trace
from tests.fake_provider import FakeProvider

Options = Callable[..., list[str]]


def logs(folder: Path, variant: str = "") -> list[Path]:
    return sorted((folder / "data" / "runs").glob(f"{variant or 'V*'}/*.gz"))


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def of_kind(path: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in records(path) if record["record_type"] == kind]


@pytest.mark.sweep
def test_all_variants_give_valid_logs(traces: Path, model_options: Options) -> None:
    assert manifest([str(traces)]) == 0
    assert replay([str(traces), *model_options()]) == 0
    paths = logs(traces)
    assert len(paths) == 2 * len(VARIANT_IDS)
    assert validate([*map(str, paths), str(traces / MANIFEST_FILE)]) == 0
    dataset = provenance(read_manifest(traces / MANIFEST_FILE)).trace_dataset_hash
    for path in paths:
        meta = records(path)[0]
        trace = traces / "traces" / path.name.replace(".jsonl", ".trace.jsonl")
        assert meta["trace_file_hash"] == file_hash(trace)
        assert meta["trace_dataset_hash"] == dataset
        assert meta["variant_id"] == path.parent.name
        assert meta["concept_extractor"]["terminology_hash"].startswith("sha256:")
        assert meta["created_at"].startswith("1970-01-01T00:16:40")  # of the trace, not today


@pytest.mark.sweep
def test_a_variant_that_is_named_twice_is_replayed_once(
    traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay([str(traces), "--variants", "V1,V1,,V1", *model_options()]) == 0
    assert "2 run logs written, 0 already present, 0 failed" in capsys.readouterr().out


@pytest.mark.sweep
def test_what_the_variants_do(traces: Path, model_options: Options) -> None:
    assert replay([str(traces), *model_options()]) == 0
    path = {variant: logs(traces, variant)[0] for variant in VARIANT_IDS}
    events = {variant: of_kind(path[variant], "summary_event") for variant in VARIANT_IDS}
    flushes = {variant: of_kind(path[variant], "tokengate_flush") for variant in VARIANT_IDS}
    # V1: one summary for each turn with content, none for the label that hands over.
    assert [event["trigger_type"] for event in events["V1"]] == ["turn_end", "turn_end"]
    assert {flush["trigger_reason"] for flush in flushes["V1"]} == {"turn_end"}
    # V2: one summary for each flush.
    assert len(events["V2"]) == len(flushes["V2"]) > len(events["V1"])
    assert {event["trigger_type"] for event in events["V2"]} == {"tokengate_flush"}
    assert not of_kind(path["V2"], "buffer_decision")
    # V3: chunks of 125 CTU; a turn is shorter than that or has one of them.
    assert all(flush["accumulated_ctu"] <= 127 for flush in flushes["V3"])
    # V0, V3, V4: each segment is judged alone.
    for variant in ("V0", "V3", "V4"):
        decisions = of_kind(path[variant], "buffer_decision")
        assert [d["covered"] for d in decisions] == [[i] for i in range(len(flushes[variant]))]
        novelty = {d["filter_results"]["novelty_passed"] for d in decisions}
        assert (novelty == {None}) is (variant == "V4")
    # The same gate lets the same text through.
    hashes = [[flush["text_hash"] for flush in flushes[v]] for v in ("V0", "V2", "V4")]
    assert hashes[0] == hashes[1] == hashes[2]


@pytest.mark.sweep
def test_timers_fire_in_virtual_time(traces: Path, model_options: Options) -> None:
    # In case 2 the first turn pauses for 20 s, and silence lets text through after 15 s.
    assert replay([str(traces), "--variants", "V2", *model_options()]) == 0
    by_case = {path.name[:6]: of_kind(path, "tokengate_flush") for path in logs(traces)}
    assert "silence_timer" not in {flush["trigger_reason"] for flush in by_case["case-1"]}
    (silent,) = [f for f in by_case["case-2"] if f["trigger_reason"] == "silence_timer"]
    trace = records(traces / "traces" / "case-2.trace.jsonl.gz")
    last = next(r for r in trace if r.get("seq") == silent["end_seq"])
    at = 1000 * 60 * int(silent["timestamp"][14:16]) + round(
        1000 * float(silent["timestamp"][17:23])
    )
    assert at == last["t_emitted_ms"] + 15_000


@pytest.mark.sweep
def test_replays_from_recorded_replies_are_the_same_bytes(
    traces: Path, tmp_path: Path, model_options: Options, provider: FakeProvider
) -> None:
    provider.latency = 0.003
    assert replay([str(traces), *model_options()]) == 0
    asked = len(provider.calls)
    replies = str(traces / ".cache" / "replies.sqlite")
    for name, jobs in (("one", "1"), ("two", "8")):
        out = ["--out", str(tmp_path / name), "--replies", replies, "--jobs", jobs]
        assert replay([str(traces), *out, *model_options("--cache", "only")]) == 0
    first, second = logs(tmp_path / "one"), logs(tmp_path / "two")
    assert len(first) == len(second) == 10
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
        events = of_kind(one, "summary_event")
        assert all(event["latency_ms"] > 0 for event in events)  # that of the recording
    assert len(provider.calls) == asked


@pytest.mark.sweep
def test_replies_that_vary_can_be_replayed(
    traces: Path, tmp_path: Path, model_options: Options, provider: FakeProvider
) -> None:
    # V0 and V4 ask the same first questions at the same time; each answer is another one.
    provider.latency = 0.01
    numbers = count()
    provider.when(
        "stream_state",
        lambda request: {
            "stream_state": "TOPIC_SHIFT",
            "is_relevant": True,
            "reasoning": f"answer {next(numbers)}",
            "is_novel": next(numbers) % 3 == 0,
        },
    )
    provider.when("status_action", lambda request: {"status_action": f"Summary {next(numbers)}."})
    options = ["--variants", "V0,V4", *model_options()]
    assert replay([str(traces), *options]) == 0
    replies = ["--replies", str(traces / ".cache" / "replies.sqlite"), "--cache", "only"]
    assert replay([str(traces), "--out", str(tmp_path / "again"), *options, *replies]) == 0
    for one, two in zip(logs(traces), logs(tmp_path / "again"), strict=True):
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.sweep
def test_run_logs_that_are_there_are_kept(
    traces: Path, model_options: Options, provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [str(traces), "--variants", "V1", *model_options("--cache", "off")]
    assert replay(options) == 0
    asked = len(provider.calls)
    logs(traces)[0].unlink()
    assert replay(options) == 0
    assert "1 run logs written, 1 already present, 0 failed" in capsys.readouterr().out
    assert asked < len(provider.calls) < 2 * asked
    assert replay([*options, "--fresh"]) == 0
    assert "2 run logs written, 0 already present" in capsys.readouterr().out


@pytest.mark.sweep
def test_run_logs_of_other_settings_are_not_taken_for_these(
    traces: Path, provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    def options(model: str) -> list[str]:
        url = ["--model-base-url", provider.openai_base_url]
        return [str(traces), "--variants", "V1", "--model", model, *url]

    assert replay(options("one")) == 0
    assert replay(options("two")) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: .*V1/case-\d\.jsonl\.gz is of eval-V1-.*--fresh.*\n", error)


def test_without_a_recorded_reply_there_is_no_run_log(
    traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay([str(traces), "--variants", "V1", *model_options("--cache", "only")]) == 1
    assert logs(traces) == []
    assert capsys.readouterr().err.count("there is no recorded reply") == 2


@pytest.mark.sweep
def test_a_provider_that_is_down_is_no_failure_of_exaid(
    traces: Path, model_options: Options, provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.fail_next("401", times=1)
    options = [str(traces), "--variants", "V1", "--jobs", "1", *model_options()]
    assert replay(options) == 1
    assert "failed" in capsys.readouterr().out
    assert replay(options) == 0


@pytest.mark.sweep
def test_a_malformed_reply_is_a_failed_event(
    traces: Path, model_options: Options, provider: FakeProvider
) -> None:
    provider.when(lambda request: True, "no summary at all")
    assert replay([str(traces), "--variants", "V1", *model_options()]) == 0
    events = of_kind(logs(traces)[0], "summary_event")
    assert {event["failure_mode"] for event in events} == {"schema_validation_error"}
    assert read_run_log(logs(traces)[0]).events[0].covered(range(100)) == frozenset()


def test_the_trace_is_read_before_anything_is_asked(
    tmp_path: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_trace(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    assert replay([str(path), *model_options()]) == 2
    assert capsys.readouterr().err == f"error: {path} line 1: the compressed file is cut short\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["none"], "error: there is no none"),
        (["."], "error: no *.trace.jsonl.gz in ."),
        ([".", "--variants", "V9"], "error: there is no variant V9"),
        ([".", "--variants", ","], "error: --variants names none"),
        ([".", "--stoplists", "none"], "error: no *.trace.jsonl.gz"),
    ],
)
def test_one_line_for_what_the_user_can_put_right(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(expected)
    assert error.count("\n") == 1


def test_traces_have_to_be_those_of_the_manifest(
    traces: Path, model_options: Options, capsys: pytest.CaptureFixture[str]
) -> None:
    assert manifest([str(traces)]) == 0
    write_trace(traces / "traces", "case-2", pause_ms=5)
    assert replay([str(traces), *model_options()]) == 2
    assert "case-2.trace.jsonl.gz is not in" in capsys.readouterr().err


# Variants


def test_variants_use_the_profile_for_evaluation() -> None:
    for name in VARIANT_IDS:
        config = load_variant(name).exaid_config()
        assert (config.gate, config.history_k, config.chunk_ctu) == (LEGACY, 3, 125)
        assert not config.coalesce


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("history_k: 3", "history_k: -1"), "history_k: Input should be greater"),
        (("min_words: 35", "min_words: 350"), "do not satisfy 1 <= min_words <= max_words"),
        (("full_exaid", "turn_end"), "turn_end is the policy of V1"),
        (("description", "colour: red\ndescription"), "colour: Extra inputs"),
        (("variant_id: V0", "variant_id: ["), "while parsing"),
    ],
)
def test_a_variant_that_is_not_possible(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    text = (FOLDER / "V0.yaml").read_text()
    assert change[0] in text
    (tmp_path / "V0.yaml").write_text(text.replace(*change))
    with pytest.raises(ConfigError, match=re.escape(expected)):
        load_variant("V0", tmp_path)
