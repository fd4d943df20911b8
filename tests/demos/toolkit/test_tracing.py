"""The spans of the companion systems: one tree each, below the caller's span, without text."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from demos.cdss_example.demo_cdss import main
from demos.toolkit.tracing import open_spans, workflow
from tests.demos.cdss_example.team import script
from tests.demos.document_assistant.programs import environment
from tests.fake_provider import FakeProvider
from tests.support.document_model import document_model
from tests.support.otlp import Collector, Span

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        yield server


def tree_of(collector: Collector, *, is_within: bool = True) -> Span:
    """Check the tree below the caller's span, and return its only root."""
    (root,) = collector.questions
    assert (root.trace.hex(), root.parent.hex()) == (TRACE, SPAN)
    for span in collector.spans:
        parent = collector.parent_of(span)
        assert span.trace == root.trace
        assert (parent is None) == (span is root), span
        if parent is not None and is_within:
            assert parent.start <= span.start <= span.end <= parent.end, (span, parent)
    return root


def agents_of(collector: Collector) -> set[str]:
    return {span.attributes["gen_ai.agent.name"] for span in collector.named("invoke_agent ")}


async def test_a_span_lasts_as_long_as_its_workflow_after_the_clock_is_set_back(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: right() - 8_000_000_000)
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    async with open_spans("cdss", variables, wanted=True) as spans:
        with workflow(spans, "cdss"):
            pass
    (root,) = collector.spans
    assert root.end - root.start < 1_000_000_000


def test_a_case_of_the_cdss_is_one_tree_with_exaid(
    provider: FakeProvider, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    monkeypatch.setenv("TRACEPARENT", PARENT)
    script(provider, ["laboratory", "cardiology", "synthesis"])
    assert main(["--case", "fever", "--otel"]) == 0
    root = tree_of(collector, is_within=False)
    assert root.name == "invoke_workflow cdss"
    assert {"orchestrator", "laboratory", "cardiology", "synthesis"} < agents_of(collector)
    assert "summarizer" in agents_of(collector)
    above = [collector.parent_of(call) for call in collector.calls]
    assert {span.name.split()[0] for span in above if span} == {"invoke_agent"}
    assert len(collector.calls) == len(provider.calls)
    assert collector.sum("gen_ai.usage.input_tokens") == provider.totals.input
    assert collector.sum("gen_ai.usage.output_tokens") == provider.totals.output
    assert collector.resources[0]["service.name"] == "cdss"
    assert b"troponin" not in b"".join(collector.bodies).lower()
    collector.bodies.clear()
    assert main(["--case", "fever"]) == 0
    assert collector.bodies == []


@pytest.mark.process
def test_a_turn_of_the_document_assistant_is_one_tree(
    provider: FakeProvider, collector: Collector, tmp_path: Path
) -> None:
    provider.when(None, document_model)
    flags = ("--no-embeddings", "--otel", "--session", "Ann")
    done = subprocess.run(
        [sys.executable, "-m", "demos.document_assistant", *flags],
        cwd=tmp_path,
        env=environment(provider, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, TRACEPARENT=PARENT),
        input="What was the total operating expense of product line B in March?\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1,238,450" in done.stdout
    assert tree_of(collector).name == "invoke_workflow document_assistant"
    assert agents_of(collector) == {"classify_intent", "qa_agent"}
    assert len(collector.calls) == len(provider.calls)
    assert collector.sum("gen_ai.usage.input_tokens") == provider.totals.input
    everything = b"".join(collector.bodies)
    assert not any(word in everything for word in (b"Ann", b"expense", b"test-key"))


@pytest.mark.process
def test_a_message_to_medagen_is_below_the_span_of_its_client(
    provider: FakeProvider, collector: Collector, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "demos.medagen.server", "--view-port", "0", "--no-open", "--otel"],
        cwd=tmp_path,
        env=environment(
            provider,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
        ),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found
            answered = httpx2.post(
                f"{found[0]}api/health-check",
                json={"text": "My little finger itches", "user_id": "ann"},
                headers={"traceparent": PARENT},
                timeout=60,
            )
            assert answered.status_code == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert tree_of(collector).name == "invoke_workflow medagen"
    assert len(collector.calls) == len(provider.calls) > 0
    everything = b"".join(collector.bodies)
    assert not any(word in everything for word in (b"finger", b"ann", b"test-key"))
