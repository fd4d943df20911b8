"""OpenTelemetry spans of EXAID's work, by the semantic conventions for generative AI.

Names follow https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/; attributes that
are not defined there begin with `exaid.`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from exaid_core.trace.run_records import BufferDecision, SummaryContent, SummaryEvent
from mdagents_llm.config import LLMRole
from mdagents_llm.extras import needs_extra

with needs_extra("opentelemetry", "ExaidSpans", ImportError):
    from opentelemetry import context as otel_context
    from opentelemetry import trace

if TYPE_CHECKING:
    from exaid_core.exaid import EXAID
    from exaid_core.sync import SyncExaid

__all__ = ["ExaidSpans", "ExaidSteps"]

Attributes = dict[str, str | int | bool | tuple[str, ...]]

_NS = 1_000_000  # nanoseconds in a millisecond


class ExaidSpans:
    """Records a span for each decision and each summary, or failed attempt at one, of an EXAID.

        async with EXAID() as exaid:
            ExaidSpans(exaid)

    A span is named `invoke_agent buffer_agent` or `invoke_agent summarizer`, starts with the model
    call and ends with its outcome. It records the model and its tokens, the agents of the text, the
    trigger of a decision, the alerts and flags of a summary, and the kind of a failure, but nothing
    that agents or models said unless `with_text`. Without a tracer provider, the overhead is
    negligible. The parent of the spans is the span that is current when this object is created.

    Args:
        exaid: EXAID whose work is traced from now on.
        tracer: Tracer that starts the spans; None uses one from the global tracer provider.
        with_text: Whether the spans include the fields of summaries and the messages of failures,
            which are about patients.

    Raises:
        TypeError: `exaid` is neither an `EXAID` nor a `SyncExaid`.
    """

    def __init__(
        self,
        exaid: EXAID | SyncExaid,
        tracer: trace.Tracer | None = None,
        *,
        with_text: bool = False,
    ) -> None:
        log = getattr(exaid, "log", None)
        if log is None or isinstance(exaid, type):
            raise TypeError(f"exaid must be an EXAID or a SyncExaid, not {exaid!r:.60}")
        self._tracer = tracer or trace.get_tracer("exaid_core")
        self._context = otel_context.get_current()
        self._with_text = with_text
        log.watch(self._take)

    def _take(self, record: BufferDecision | SummaryEvent, agents: tuple[str, ...]) -> None:
        end = time.time_ns()  # the clock of the spans around it
        span = self._tracer.start_span(
            f"invoke_agent {_role_of(record)}",
            context=self._context,
            start_time=end - (record.latency_ms or 0) * _NS,
        )
        if span.is_recording():
            describe(span, record, agents, with_text=self._with_text)
        span.end(end_time=end)


class Tracer(Protocol):
    """The part of OpenTelemetry's tracer that is used here."""

    def start_span(
        self,
        name: str,
        context: otel_context.Context | None = None,
        *,
        attributes: Any = None,
        start_time: int | None = None,
    ) -> trace.Span:
        """Start a span."""
        ...


class ExaidSteps:
    """The steps of EXAID in one case as spans, with the calls of its models below them.

    Unlike `ExaidSpans`, a step begins with its first call, so that the caller can place the span of
    the call below it; model and tokens are then on that span alone.

    Args:
        tracer: Tracer of the spans.
        case_id: Id of the case.
        parent: Context of the span above the steps.
        with_text: As for `ExaidSpans`.
    """

    def __init__(
        self, tracer: Tracer, case_id: str, parent: otel_context.Context | None, *, with_text: bool
    ) -> None:
        self._tracer = tracer
        self._case_id = case_id
        self._parent = parent
        self._with_text = with_text
        self._open: dict[str, tuple[trace.Span, otel_context.Context]] = {}  # by role

    def context_of(self, role: str, at: int) -> otel_context.Context:
        """Return the context of the step in progress of a role.

        Args:
            role: `buffer_agent` or `summarizer`.
            at: Start of the step if there is none, in ns since 1970 UTC.
        """
        return self._step(role, at)[1]

    def ended(
        self,
        record: BufferDecision | SummaryEvent,
        agents: tuple[str, ...],
        now: int,
        until: int = 0,
    ) -> None:
        """End the step of a record of EXAID's log.

        Args:
            record: Decision, or summary or attempt at one.
            agents: Agents whose text it is about.
            now: Time of the record, in ns since 1970 UTC.
            until: End of the step's latest call, if that is later.
        """
        role = _role_of(record)
        span, _ = self._step(role, now - (record.latency_ms or 0) * _NS)
        del self._open[role]
        describe(span, record, agents, with_text=self._with_text, with_usage=False)
        span.set_attribute("gen_ai.conversation.id", self._case_id)
        span.end(max(now, until))

    def interrupt(self, at: int) -> None:
        """End the steps in progress, which will have no record."""
        for span, _ in self._open.values():
            span.set_attribute("error.type", "interrupted")
            span.set_status(trace.Status(trace.StatusCode.ERROR))
            span.end(at)
        self._open.clear()

    def _step(self, role: str, at: int) -> tuple[trace.Span, otel_context.Context]:
        if role not in self._open:
            span = self._tracer.start_span(
                f"invoke_agent {role}", self._parent, start_time=at,
                attributes={
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": role,
                    "gen_ai.conversation.id": self._case_id,
                },
            )  # fmt: skip
            self._open[role] = span, trace.set_span_in_context(span)
        return self._open[role]


def _role_of(record: BufferDecision | SummaryEvent) -> str:
    is_decision = isinstance(record, BufferDecision)
    return (LLMRole.BUFFER_AGENT if is_decision else LLMRole.SUMMARIZER).value


def describe(
    span: trace.Span,
    record: BufferDecision | SummaryEvent,
    agents: tuple[str, ...],
    *,
    with_text: bool,
    with_usage: bool = True,
) -> None:
    """Set the attributes and the status of a span from a record of EXAID's log.

    Args:
        span: Span of the decision, or of the summary or attempt at one.
        record: Record of its end.
        agents: Agents whose text it is about.
        with_text: Whether to include the fields of a summary and the message of a failure.
        with_usage: Whether to include model and tokens; not if spans below this one have them.
    """
    span.set_attributes(_common(record, _role_of(record), agents))
    if with_usage:
        span.set_attributes(_usage(record))
    if isinstance(record, BufferDecision):
        span.set_attributes(_of_decision(record))
    else:
        span.set_attributes(_of_summary(record))
    failure, words = _failure(record)
    if failure:
        span.set_attribute("error.type", failure)
        span.set_status(trace.Status(trace.StatusCode.ERROR, words if with_text else None))
    if with_text and isinstance(record, SummaryEvent) and record.summary_content:
        span.set_attributes(_text(record.summary_content))


def _common(
    record: BufferDecision | SummaryEvent, agent: str, agents: tuple[str, ...]
) -> Attributes:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": record.case_id,
        "gen_ai.output.type": "json",
        "exaid.agents": agents,
    }


def _usage(record: BufferDecision | SummaryEvent) -> Attributes:
    usage = record.llm_usage
    optional = {
        "gen_ai.response.model": usage.model_id or None,
        "gen_ai.usage.input_tokens": usage.provider_prompt_tokens,
        "gen_ai.usage.output_tokens": usage.provider_completion_tokens,
    }
    return {name: value for name, value in optional.items() if value is not None}


def _of_decision(record: BufferDecision) -> Attributes:
    attributes: Attributes = {
        "exaid.decision": record.decision.value,
        "exaid.trigger": record.trigger or "none",
        "exaid.input_ctu": record.input_ctu,
    }
    return attributes


def _of_summary(record: SummaryEvent) -> Attributes:
    return {
        "exaid.trigger": record.trigger_type.value,
        "exaid.alerts": len(record.alerts or ()),
        "exaid.alert_missing": bool(record.alert_missing),
        "exaid.dissent_missing": bool(record.dissent_missing),
        "exaid.unsupported_terms": len(record.unsupported_terms or ()),
        "exaid.truncated_fields": tuple(record.truncated_fields or ()),
        "exaid.clipped": bool(record.clipped),
    }


def _failure(record: BufferDecision | SummaryEvent) -> tuple[str, str]:
    """Return the kind and message of a failure; the message may quote a model or an endpoint."""
    if isinstance(record, BufferDecision):
        return ("no_judgement", record.failure_mode) if record.failure_mode else ("", "")
    if record.schema_ok:
        return "", ""
    kind = record.failure_mode.value if record.failure_mode else "_OTHER"
    return kind, record.schema_error or ""


def _text(content: SummaryContent) -> Attributes:
    return {f"exaid.summary.{name}": value for name, value in content.model_dump().items()}
