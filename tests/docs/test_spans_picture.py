"""The picture of a trace: what its script draws, and what is in the repository."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import set_span_in_context

from scripts import draw_spans

_SECOND = 1_000_000_000  # ns


def trace() -> list[ReadableSpan]:
    """A run with one question and one call, which takes half of its time."""
    tracer = TracerProvider().get_tracer("test")
    run = tracer.start_span("run <set>", start_time=0)
    question = tracer.start_span(
        "invoke_workflow mdagents", set_span_in_context(run), start_time=0,
        attributes={"mdagents.answer": "A", "mdagents.correct": True},
    )  # fmt: skip
    call = tracer.start_span(
        "chat m", set_span_in_context(question), start_time=_SECOND,
        attributes={"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 5},
    )  # fmt: skip
    for span in (call, question, run):
        span.end(2 * _SECOND)
    spans: list[ReadableSpan] = [
        span for span in (call, question, run) if isinstance(span, ReadableSpan)
    ]
    assert len(spans) == 3
    return spans


def test_bars_are_where_the_times_are() -> None:
    root = ET.fromstring(draw_spans.svg(trace()))
    texts = [text.text for text in root.iterfind("{*}text")]
    assert [text for text in texts if text and " " in text and text[0] in "ric"] == [
        "run <set>", "invoke_workflow mdagents", "chat m",
    ]  # fmt: skip
    assert {"A, correct", "7 + 5 tokens", "2.0 s"} <= set(texts)
    _, run, question, call = root.iterfind("{*}rect")
    assert run.get("x") == question.get("x")
    assert run.get("width") == question.get("width")
    whole, part = float(run.get("width", 0)), float(call.get("width", 0))
    assert part == whole / 2
    assert float(call.get("x", 0)) == float(run.get("x", 0)) + whole / 2


def test_the_picture_of_the_page_is_one_of_a_whole_trace() -> None:
    root = ET.fromstring(draw_spans.FILE.read_text("utf-8"))
    assert root.findtext("{*}title")
    told = root.findtext("{*}desc") or ""
    assert told.startswith("run medqa-sample; below it invoke_workflow mdagents; ")
    assert told.count("invoke_agent ") == told.count("chat ") == 5
