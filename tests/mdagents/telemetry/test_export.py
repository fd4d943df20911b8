"""How spans are sent: standard variables, collectors that fail, and what a killed run leaves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mdagents_llm.telemetry import export
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.fake_provider.chat_api import SeenRequest
from tests.mdagents.telemetry.conftest import BASIC, ledger, questions_file
from tests.support.environment import bare_environment
from tests.support.otlp import Collector, Span
from tests.support.whole_runs import Run, records

FLAGS = (*BASIC, "--num-samples", "2")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_collector_that_is_not_there_costs_a_notice(
    run: Run, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", nobody)
    monkeypatch.setattr(export, "_IF_IN_TROUBLE", 0.1)
    status, _, err = run(*FLAGS, "--display", "none")
    assert status == 0
    (line,) = [line for line in err.splitlines() if "--otel" in line]
    assert line.endswith(f"spans not confirmed by {nobody}/v1/traces: Connection refused")
    assert [record["status"] for record in records()] == ["answered"] * 2


def test_a_collector_that_never_answers_ends_nothing(
    run: Run, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{silent}/api/otel?token=t0ken")
    monkeypatch.setattr(export, "_TO_SEND_THE_REST", 0.1)
    status, _, err = run(*FLAGS, "--display", "none")
    assert status == 0
    assert f"spans not confirmed by {silent}/api/otel: no answer within 0.1 s; OTEL_BSP_EX" in err
    assert "t0ken" not in err


@pytest.mark.parametrize("status", [401, 413, 503])
def test_a_collector_that_refuses_is_named_without_its_token(
    status: int, run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.status = status
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic t0ken,x-id=7")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setattr(export, "_IF_IN_TROUBLE", 0.1)
    code, _, err = run(*FLAGS, "--display", "log")
    assert code == 0
    assert collector.headers[0]["authorization"] == "Basic t0ken"
    assert collector.headers[0]["x-id"] == "7"
    said = [line for line in err.splitlines() if "--otel" in line]
    assert "spans not confirmed by" in said[-1]
    assert str(status) in said[-1] or "Unavailable" in said[-1]
    if len(said) > 1:  # it had failed before the end
        assert said[0].startswith(f"--otel: cannot send spans to {collector.url}/v1/traces: ")
        assert said[0].endswith("; answers are not affected")
    assert "t0ken" not in err
    assert "Traceback" not in err


def test_a_slow_collector_gets_the_time_that_the_variable_gives(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_TO_SEND_THE_REST", 0.01)
    monkeypatch.setenv("OTEL_BSP_EXPORT_TIMEOUT", "20000")
    collector.on_batch = lambda _: time.sleep(0.2)
    status, _, err = run(*FLAGS, "--display", "none")
    assert (status, "--otel" in err) == (0, False)
    assert len(collector.calls) == len(ledger())


@pytest.mark.parametrize(
    ("reason", "content_type"),
    [
        ("quota of the project", "application/x-protobuf"),
        ("", "application/x-protobuf"),
        # Servers that do not answer in the form of the request, opentelemetry-python 4803.
        ("quota of the project", "application/json"),
        ("", "application/json"),
        ("quota of the project", ""),
    ],
)
def test_spans_that_a_collector_rejects_are_counted(
    reason: str, content_type: str, run: Run, collector: Collector
) -> None:
    collector.rejects, collector.reason, collector.content_type = 3, reason, content_type
    status, _, err = run(*FLAGS, "--display", "none")
    assert status == 0
    (line,) = [line for line in err.splitlines() if "--otel" in line]
    assert line.startswith(f"--otel: 3 of {len(collector.spans)} spans not confirmed by ")
    assert line.endswith(f"rejected by the collector: {reason or 'it gives no reason'}")


@pytest.mark.parametrize(
    ("status", "content_type", "cause"),
    [
        # opentelemetry-cpp 1578: a proxy in front of a collector redirects to https.
        (308, "", "HTTP 308, a redirect; give the address it leads to"),
        (302, "text/html", "HTTP 302, a redirect; give the address it leads to"),
        (200, "text/html; charset=utf-8", "a web page in answer, so this is no collector"),
    ],
)
def test_what_is_no_answer_of_a_collector_confirms_nothing(
    status: int, content_type: str, cause: str, run: Run, collector: Collector
) -> None:
    collector.status, collector.content_type = status, content_type
    ended, _, err = run(*FLAGS, "--display", "none")
    assert ended == 0
    line = [line for line in err.splitlines() if "--otel" in line][-1]
    share, _, why = line.partition(" spans not confirmed by ")
    unsent, total = share.removeprefix("--otel: ").split(" of ")
    assert unsent == total != "0"
    assert why.endswith(cause)


def test_a_collector_that_is_busy_gets_its_batch_again(run: Run, collector: Collector) -> None:
    collector.status, collector.retry_after = 429, "0"

    def recover(_: list[Span]) -> None:
        collector.status = 200 if len(collector.bodies) > 1 else 429

    collector.on_batch = recover
    status, _, err = run(*FLAGS, "--display", "none")
    assert (status, "--otel" in err) == (0, False)
    assert collector.bodies[0] == collector.bodies[1]
    assert len(collector.calls) == len(ledger())


def test_headers_may_be_percent_encoded(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20dDBrZW4%3D,X-Id=a=b")
    assert run(*FLAGS)[0] == 0
    assert collector.headers[0]["authorization"] == "Basic dDBrZW4="
    assert collector.headers[0]["x-id"] == "a=b"


def test_long_texts_are_cut_where_the_standard_says_so(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "64")
    assert run(*FLAGS, "--otel-text")[0] == 0
    texts = [call.attributes["gen_ai.input.messages"] for call in collector.calls]
    assert {len(text) for text in texts} == {64}


def test_a_full_queue_drops_spans_and_says_how_many(
    provider: FakeProvider, run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    calls, many = count(1), threading.Event()

    def reply(_: SeenRequest) -> dict[str, object]:
        if next(calls) == 40:
            many.set()
        return {}

    def hold(_: list[Span]) -> None:
        many.wait(60)

    provider.when("Ascorbic", reply)
    collector.on_batch = hold
    status, _, err = run(*BASIC, "--dataset", questions_file(20), "--display", "none")
    assert (status, many.is_set()) == (0, True)
    (line,) = [line for line in err.splitlines() if "spans not confirmed" in line]
    unsent, of = (int(line.split()[place]) for place in (1, 3))
    assert unsent > 0
    assert of - unsent == len(collector.spans)
    assert "the queue was full" in line


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "--otel sends http/protobuf; unset it"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "--otel sends http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "--otel sends otlp; unset it"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "must begin with http:// or https://"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:99999", "must begin with http:// or https://"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "99999", "a variable OTEL_* cannot be used"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "5s", "OTEL_BSP_EXPORT_TIMEOUT must be 1 to 600000 ms"),
        ("OTEL_PYTHON_TRACER_PROVIDER", "nonsense", "names no provider that is installed"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "yes!", "must be NO_CONTENT"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    name: str, value: str, problem: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    status, _, err = run(*FLAGS)
    assert (status, err.count("\n")) == (2, 1), err
    assert problem in err
    assert not list(Path().glob("output/*/run.json"))


def test_variables_for_traces_override_the_general_ones(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collector() as collector:
        for name, value in {
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": " http/protobuf ",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces",
            "OTEL_TRACES_EXPORTER": " otlp ",
            "OTEL_BSP_EXPORT_TIMEOUT": " 3000 ",
        }.items():
            monkeypatch.setenv(name, value)
        status, _, err = run(*FLAGS)
        assert status == 0, err
        assert collector.spans
        assert "--otel" not in err


@pytest.mark.parametrize(
    ("of_traces", "general"),
    [("{url}/v1/traces ", "http://127.0.0.1:9"), ("  ", " {url} "), (None, "{url} ")],
)
def test_blanks_around_an_address_are_ignored(
    run: Run, monkeypatch: pytest.MonkeyPatch, of_traces: str | None, general: str
) -> None:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", general.format(url=collector.url))
        if of_traces is not None:
            address = of_traces.format(url=collector.url)
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address)
        status, _, err = run(*FLAGS)
        assert status == 0, err
        assert collector.spans
        assert "--otel" not in err
    assert os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] == general.format(url=collector.url)


@pytest.mark.parametrize("variable", ["PROTOCOL", "ENDPOINT"])
def test_the_variable_that_counts_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_TRACES_{variable}", "grpc")
    status, _, err = run(*FLAGS)
    assert status == 2
    assert f"OTEL_EXPORTER_OTLP_TRACES_{variable} " in err


def test_variables_of_env_files_and_of_the_standard_are_obeyed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "bench")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab")
    with Collector() as collector:
        Path(".env").write_text(
            f"OTEL_EXPORTER_OTLP_ENDPOINT={collector.url}/base\n"
            "OTEL_EXPORTER_OTLP_COMPRESSION=gzip\n"
        )
        assert run(*FLAGS)[0] == 0
    assert set(collector.paths) == {"/base/v1/traces"}
    assert collector.headers[0]["content-encoding"] == "gzip"
    assert collector.resources[0]["service.name"] == "bench"
    assert collector.resources[0]["deployment.environment.name"] == "lab"
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ


def test_the_sdk_can_be_switched_off(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    status, _, err = run(*FLAGS)
    assert (status, "--otel" in err, collector.bodies) == (0, False, [])


@pytest.mark.parametrize("text", [(), ("--otel-text",)])
def test_the_sampler_of_the_standard_decides(
    text: tuple[str, ...], run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    status, _, err = run(*FLAGS, *text)
    assert (status, "--otel" in err, collector.bodies) == (0, False, [])


def test_without_the_flag_nothing_is_sent(run: Run, collector: Collector) -> None:
    assert run("--difficulty", "basic", "--num-samples", "1")[0] == 0
    assert collector.bodies == []


def test_a_program_that_exports_its_spans_already_gets_them(
    run: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    assert run(*FLAGS)[0] == 0
    assert collector.bodies == []
    names = [span.name.split()[0] for span in exporter.get_finished_spans()]
    assert names.count("chat") == len(ledger())
    assert names.count("run") == 1


def test_an_interrupted_run_ends_its_spans(
    provider: FakeProvider, run: Run, collector: Collector
) -> None:
    def stop(_: SeenRequest) -> dict[str, object]:
        os.kill(os.getpid(), signal.SIGINT)
        return {}

    provider.when("Ascorbic", stop, times=1)
    status, _, _ = run(*BASIC, "--dataset", questions_file(30), "--max-samples", "1")
    assert status == 130
    (root,) = collector.named("run ")
    assert root.attributes["error.type"] == "interrupted"
    assert len(collector.questions) == len(records())
    assert len(collector.calls) == len(ledger())


@pytest.mark.process
def test_a_killed_run_loses_one_batch_at_most(provider: FakeProvider) -> None:
    batch = 16

    def kill_at_the_third(spans: list[Span]) -> None:
        if len(collector.bodies) == 3:
            program.kill()

    provider.latency = 0.01
    with Collector(on_batch=kill_at_the_third) as collector:
        program = subprocess.Popen(
            [sys.executable, str(REPOSITORY / "main.py"), *BASIC, "--dataset", questions_file(100)],
            env=bare_environment(
                MDAGENTS_EXAID="off",
                OPENAI_API_KEY="test-key",
                OPENAI_BASE_URL=provider.openai_base_url,
                OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
                OTEL_BSP_MAX_EXPORT_BATCH_SIZE=str(batch),
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert program.wait() == -signal.SIGKILL
        while len(collector.spans) < 3 * batch:  # the third is noted after the kill
            time.sleep(0.01)
    written = [json.loads(line) for line in _whole_lines()]
    missing = len(written) - len(collector.calls)
    assert len(collector.spans) == 3 * batch
    assert missing <= batch


def _whole_lines() -> list[Any]:
    (path,) = Path("output").glob("*/calls.jsonl")
    return path.read_text("utf-8").rpartition("\n")[0].splitlines()
