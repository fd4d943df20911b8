"""The OpenTelemetry spans of a companion system, which needs the extra `opentelemetry`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from exaid_core import EXAID
from exaid_core.integrations.opentelemetry import ExaidSteps
from exaid_core.trace.run_records import BufferDecision, SummaryEvent
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import ProviderError
from mdagents_llm.extras import needs_extra
from mdagents_llm.ledger import CallRow
from mdagents_llm.telemetry.call_spans import FAILED, add_call, name_of, now_ns, times_of
from mdagents_llm.telemetry.light_spans import LightTracer
from mdagents_llm.telemetry.parents import HEADERS, of_headers, of_process

with needs_extra("opentelemetry", "--otel"):
    from opentelemetry.context import Context, attach, detach, get_current
    from opentelemetry.trace import Tracer, get_current_span, use_span
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

_EXAID = frozenset({LLMRole.BUFFER_AGENT.value, LLMRole.SUMMARIZER.value})


class ProgramSpans:
    """Makes the spans of a program; `booked` subscribes to the ledger of its models.

    Args:
        tracer: Tracer of the spans.
        variables: Environment.
        say: Displays a line.
    """

    def __init__(
        self,
        tracer: Tracer | LightTracer,
        variables: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self.tracer = tracer
        self.variables = variables
        self._parent = of_process(variables, say)
        self._steps: dict[str, _Steps] = {}  # EXAID's, by case id

    @contextmanager
    def workflow(self, name: str, conversation: str) -> Iterator[Conversation]:
        """Make the span of a workflow, below that of the client or of the program's caller."""
        current = get_current()
        has_client = get_current_span(current).get_span_context().is_valid
        opened = Conversation(self, conversation)
        parent = current if has_client else self._parent
        with opened.span("invoke_workflow", "gen_ai.workflow.name", name, parent):
            try:
                yield opened
            finally:
                for case_id in opened.cases:
                    self._steps.pop(case_id).end()

    def observe(self, exaid: EXAID, conversation: str) -> None:
        """Make the spans of the steps of an EXAID."""
        parent = ExaidSteps(self.tracer, conversation, get_current(), with_text=False)
        self._steps[exaid.log.case_id] = _Steps(exaid, parent)

    def booked(self, row: CallRow) -> None:
        """Make the span of an attempt at a model, below the current span."""
        parent, steps = get_current(), self._steps.get(row.case_id)
        if row.role in _EXAID and steps is not None:
            parent = steps.context_of(row)
        attributes = getattr(get_current_span(), "attributes", {}) or {}
        conversation = str(attributes.get("gen_ai.conversation.id", ""))
        add_call(self.tracer, replace(row, case_id=conversation), parent, with_text=False)


class Conversation:
    """The spans of one workflow.

    Args:
        spans: Spans of the program.
        name: Id of the conversation.
    """

    def __init__(self, spans: ProgramSpans, name: str) -> None:
        self._spans = spans
        self._name = name
        self.cases: list[str] = []
        """Cases that an EXAID observes."""

    def observe(self, exaid: EXAID) -> None:
        """Make the spans of the steps of an EXAID."""
        self.cases.append(exaid.log.case_id)
        self._spans.observe(exaid, self._name)

    @contextmanager
    def agent(self, name: str) -> Iterator[None]:
        """Make the span of an agent below the current one."""
        with self.span("invoke_agent", "gen_ai.agent.name", name, get_current()):
            yield

    @contextmanager
    def span(self, operation: str, named: str, name: str, parent: Context) -> Iterator[None]:
        """Make a span, which is the current one within the context."""
        span = self._spans.tracer.start_span(
            f"{operation} {name_of(name)}",
            parent,
            attributes={"gen_ai.operation.name": operation, named: name_of(name)}
            | ({"gen_ai.conversation.id": self._name} if self._name else {}),
            start_time=now_ns(),
        )
        try:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except BaseException as error:
            kind = error.kind.value if isinstance(error, ProviderError) else type(error).__name__
            span.set_attribute("error.type", kind)
            span.set_status(FAILED)
            raise
        finally:
            span.end()


class _Steps:
    """The steps of one EXAID."""

    def __init__(self, exaid: EXAID, steps: ExaidSteps) -> None:
        self._steps = steps
        self._until = 0
        exaid.log.watch(self._ended)

    def context_of(self, row: CallRow) -> Context:
        began_at, ended_at = times_of(row)
        self._until = max(self._until, ended_at)
        return self._steps.context_of(row.role, began_at - round(row.waited * 1e9))

    def _ended(self, record: BufferDecision | SummaryEvent, agents: tuple[str, ...]) -> None:
        self._steps.ended(record, agents, now_ns(), self._until)

    def end(self) -> None:
        self._steps.interrupt(max(now_ns(), self._until))


class ClientSpans:
    """Middleware: what a request causes is below the span that its client states.

    Args:
        app: The application.
        spans: Spans of the program.
    """

    def __init__(self, app: ASGIApp, spans: ProgramSpans) -> None:
        self._app = app
        self._spans = spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hold a conversation over a WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = HTTPConnection(scope).headers
        given = {name: ",".join(headers.getlist(name)) for name in HEADERS}
        token = attach(of_headers(given, self._spans.variables))
        try:
            await self._app(scope, receive, send)
        finally:
            detach(token)
