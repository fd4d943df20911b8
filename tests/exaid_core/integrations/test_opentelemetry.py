"""Spans of what EXAID does."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import StatusCode

from exaid_core import EXAID, ExaidConfig, SyncExaid
from exaid_core.integrations.opentelemetry import ExaidSpans
from exaid_core.schema.agent_summary import SummaryDraft
from tests.exaid_core.models import DOWN, SHIFT, STABLE, WAIT, Slow, model

SECRET = "Troponin of Mr Doe is raised."
NAMES = {value for name, value in vars(gen_ai).items() if name.startswith("GEN_AI_")}


class Spans:
    """A tracer, and the spans that it has ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("tests")

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_decision_and_a_summary_are_spans() -> None:
    spans = Spans()
    drafts = SummaryDraft(status_action="Cardiac arrest, CPR.")
    slow = Slow(model(drafts), lambda: 0.05)
    exaid = EXAID(buffer_llm=model(WAIT, SHIFT), summarizer_llm=slow, case_id="case-7")
    async with exaid:
        with spans.tracer.start_as_current_span("of the caller"):
            ExaidSpans(exaid, spans.tracer)
        await exaid.received_trace("Nurse", "He sleeps.")
        await exaid.received_trace("Doctor", "He is in cardiac arrest.")
    caller, first, second, summary = spans.ended
    assert [span.name for span in (first, second, summary)] == [
        "invoke_agent buffer_agent",
        "invoke_agent buffer_agent",
        "invoke_agent summarizer",
    ]
    assert {span.parent and span.parent.span_id for span in (first, second, summary)} == {
        caller.context.span_id if caller.context else None
    }
    assert attributes(first) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "buffer_agent",
        "gen_ai.conversation.id": "case-7",
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "function",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "exaid.agents": ("Nurse",),
        "exaid.decision": "buffer",
        "exaid.trigger": "none",
        "exaid.input_ctu": 3,
    }
    assert attributes(second)["exaid.trigger"] == "lexical_alert"
    assert "gen_ai.response.model" not in attributes(second), "no model was asked"
    told = attributes(summary)
    assert told["exaid.agents"] == ("Nurse", "Doctor")
    assert (told["exaid.alerts"], told["exaid.alert_missing"]) == (1, False)
    assert summary.start_time
    assert summary.end_time
    assert summary.end_time - summary.start_time >= 49_000_000
    for span in (first, second, summary):
        assert span.status.status_code is StatusCode.UNSET
        names = {name for name in attributes(span) if not name.startswith("exaid.")}
        assert names <= NAMES


@pytest.mark.parametrize("with_text", [False, True])
async def test_no_text_is_in_a_span_unless_it_is_asked_for(with_text: bool) -> None:
    spans = Spans()
    broken = RuntimeError(f"cannot read {SECRET}")
    write = model(SummaryDraft(status_action=SECRET), broken)
    exaid = EXAID(buffer_llm=model(SHIFT, broken), summarizer_llm=write)
    async with exaid:
        ExaidSpans(exaid, spans.tracer, with_text=with_text)
        for _ in range(3):
            await exaid.received_trace("Nurse", SECRET)
    everything = json.dumps([json.loads(span.to_json()) for span in spans.ended])
    assert (SECRET in everything) is with_text
    assert ("exaid.summary.status_action" in everything) is with_text
    failed = [span for span in spans.ended if span.status.status_code is StatusCode.ERROR]
    assert {attributes(span)[error_attributes.ERROR_TYPE] for span in failed} == {
        "no_judgement",
        "unexpected_error",
    }


async def test_without_a_provider_nothing_happens() -> None:
    exaid = EXAID(buffer_llm=model(SHIFT), summarizer_llm=model(STABLE))
    async with exaid:
        ExaidSpans(exaid)
        assert await exaid.received_trace("Nurse", "Fever.") is not None


async def test_a_tracer_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def start_span(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

    exaid = EXAID(buffer_llm=model(SHIFT), summarizer_llm=model(STABLE))
    async with exaid:
        ExaidSpans(exaid, Broken())  # type: ignore[arg-type]
        with caplog.at_level(logging.WARNING, "exaid_core"):
            assert await exaid.received_trace("Nurse", "Fever.") is not None
    assert {record.message for record in caplog.records} == {
        "a watcher of EXAID's log raised ZeroDivisionError"
    }


def test_an_exaid_in_a_thread() -> None:
    spans = Spans()
    with SyncExaid(buffer_llm=model(SHIFT), summarizer_llm=model(DOWN)) as exaid:
        ExaidSpans(exaid, spans.tracer)
        exaid.received_trace("Nurse", "Fever.")
    assert [span.name.split()[1] for span in spans.ended][:2] == ["buffer_agent", "summarizer"]
    assert spans.ended[1].status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("wrong", [None, "exaid", EXAID])
def test_what_is_no_exaid_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="must be an EXAID or a SyncExaid"):
        ExaidSpans(wrong)


async def test_many_at_once_have_their_own_spans() -> None:
    spans = Spans()

    async def watch(number: int) -> None:
        exaid = EXAID(
            buffer_llm=model(SHIFT),
            summarizer_llm=model(STABLE),
            case_id=f"case-{number}",
            config=ExaidConfig(linger=0.0),
        )
        async with exaid:
            ExaidSpans(exaid, spans.tracer)
            await exaid.received_trace("Nurse", "Fever.")

    await asyncio.gather(*map(watch, range(20)))
    cases = [attributes(span)["gen_ai.conversation.id"] for span in spans.ended]
    assert sorted(set(cases)) == sorted(f"case-{number}" for number in range(20))
    assert len(cases) == 40
