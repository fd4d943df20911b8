"""The spans of a server, and the clients' spans that are their parents."""

from __future__ import annotations

import pytest

from tests.fake_provider import FakeProvider
from tests.mdagents.serve.served import MODEL, PROMPT, serving, until
from tests.support.otlp import Collector, Span

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}


def asked(collector: Collector, headers: dict[str, str], status: int = 200) -> Span:
    """The span of a question that a client has asked with these headers."""
    collector.spans.clear()
    with serving(otel=True) as served:
        assert served.post(headers=headers, json=BODY).status_code == status
        rows = served.rows()
    (question,) = collector.questions
    assert len(collector.calls) == len(rows) > 0
    for token in ("input_tokens", "output_tokens"):
        assert collector.sum(f"gen_ai.usage.{token}") == sum(row[token] for row in rows)
    assert {span.trace for span in collector.spans} == {question.trace}
    above = {"chat": "invoke_agent", "invoke_agent": "invoke_workflow"}
    for span in collector.spans:
        parent = collector.parent_of(span)
        assert (parent and parent.name.split()[0]) == above.get(span.name.split()[0])
        if parent is not None:
            assert parent.start <= span.start <= span.end <= parent.end
    return question


def test_a_question_is_below_the_span_of_its_client(collector: Collector) -> None:
    question = asked(collector, {"traceparent": PARENT, "tracestate": "vendor=1"})
    assert (question.trace.hex(), question.parent.hex()) == (TRACE, SPAN)
    assert question.name == "invoke_workflow basic"
    assert question.attributes["mdagents.status"] == "answered"
    assert question.state == "vendor=1"


def test_a_header_that_cannot_be_read_counts_as_none(collector: Collector) -> None:
    unread: list[list[tuple[str, str | bytes]]] = [
        [],
        [("traceparent", "")],
        [("traceparent", f"00-{'0' * 32}-{SPAN}-01")],
        [("traceparent", f"ff-{TRACE}-{SPAN}-01")],
        [("traceparent", f"00-{TRACE.upper()}-{SPAN}-01")],
        [("traceparent", PARENT), ("traceparent", PARENT)],
        [("traceparent", PARENT + "-" + "x" * 9000)],
        [("traceparent", b"\xff\xfe")],
        [("tracestate", "vendor=1")],
    ]
    with serving(otel=True) as served:
        for headers in unread:
            assert served.post(headers=headers, json=BODY).status_code == 200
    assert len({question.trace for question in collector.questions}) == len(unread)
    assert {question.parent for question in collector.questions} == {b""}
    assert TRACE not in {question.trace.hex() for question in collector.questions}


def test_a_client_that_does_not_sample_gets_no_spans(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsampled = {"traceparent": PARENT.removesuffix("1") + "0"}
    with serving(otel=True) as served:
        assert served.ask(PROMPT).status_code == 200
        assert served.post(headers=unsampled, json=BODY).status_code == 200
    assert len(collector.questions) == 1
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    assert asked(collector, unsampled).trace.hex() == TRACE


def test_the_headers_can_be_switched_off(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_PROPAGATORS", "none")
    assert asked(collector, {"traceparent": PARENT}).parent == b""


def test_a_question_that_fails_ends_its_spans(provider: FakeProvider, collector: Collector) -> None:
    provider.fail_next("context_length", times=9)
    question = asked(collector, {}, status=400)
    assert (question.is_error, question.attributes["error.type"]) == (True, "api_error")


def test_a_client_that_leaves_ends_its_spans(provider: FakeProvider, collector: Collector) -> None:
    with serving(otel=True) as served, provider.hold() as hold:
        with served.client(timeout=0.5) as client, pytest.raises(Exception, match="timed out"):
            client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": PROMPT}]
            )
        hold.wait(1)
        until(lambda: served.service.in_progress == 0)
    (question,) = collector.questions
    assert (question.is_error, question.attributes["error.type"]) == (True, "cancelled")


def test_text_is_in_spans_on_request_and_never_in_the_ledger(collector: Collector) -> None:
    for text in (False, True):
        collector.bodies.clear()
        with serving(otel=True, otel_text=text) as served:
            assert served.ask(PROMPT).status_code == 200
            assert not any("prompt" in row for row in served.rows())
        assert (b"sailor" in b"".join(collector.bodies)) is text


def test_a_collector_that_is_gone_costs_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    with serving(otel=True) as served:
        assert [served.ask(PROMPT).status_code for _ in range(3)] == [200] * 3
        until(lambda: bool(served.said))
        (line,) = served.said
    assert line.startswith("--otel: cannot send spans to http://127.0.0.1:1/v1/traces: ")


def test_without_the_flag_nothing_is_sent(collector: Collector) -> None:
    with serving() as served:
        assert served.ask(PROMPT).status_code == 200
    assert collector.bodies == []
