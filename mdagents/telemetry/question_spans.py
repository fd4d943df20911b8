"""The spans of questions, made from their events, their ledger rows and their records.

    invoke_workflow METHOD         a question
      invoke_agent ROLE            a turn of an agent
        chat MODEL                 an attempt at a model, or a reply from the cache
      invoke_agent summarizer      a step of EXAID
        chat MODEL

A span begins when its first child or its end is known: an event of a worker process may arrive
after the rows of its calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from exaid_core.integrations.opentelemetry import ExaidSteps
from exaid_core.trace.events import TraceEvent
from mdagents.agents.case import make_case_id
from mdagents.agents.events import (
    Event,
    ExaidStep,
    Recruited,
    Routed,
    Started,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import Question
from mdagents.records.sample import SampleRecord
from mdagents.records.summaries import ItemKey
from mdagents.settings import EXAID_ROLES
from mdagents.telemetry.attributes import EVALUATION, of_decision, of_score
from mdagents_llm.extras import needs_extra
from mdagents_llm.ledger import ABORTED, CallRow
from mdagents_llm.telemetry.call_spans import (
    FAILED,
    NS,
    Attributes,
    add_call,
    as_messages,
    name_of,
    now_ns,
    times_of,
)
from mdagents_llm.telemetry.light_spans import LightTracer
from mdagents_llm.text import well_formed

with needs_extra("opentelemetry", "--otel"):
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer, set_span_in_context

P = ParamSpec("P")
S = TypeVar("S", bound="QuestionSpans")

_DECIDED_IN_MEMORY = 1024  # questions whose late calls are still placed below them


@dataclass(frozen=True, slots=True)
class Placing:
    """Where the span of a question belongs, and what it says of its run or server."""

    method: str
    """Team or method that answers."""
    parent: Context
    """Context of the span above; an empty one for a trace of its own."""
    attributes: Attributes
    links: Sequence[Link] = ()


@dataclass(eq=False, slots=True)
class _Turn:
    """A turn of an agent."""

    agent: str
    role: str
    phase: str
    began_at: int
    """Start of the turn, in ns since 1970 UTC, like all times in this module."""
    span: Span | None = None
    context: Context | None = None
    said_until: int = 0
    """End of the latest call or piece of text; 0 before the first."""
    text: list[str] = field(default_factory=list)
    """Pieces of text; empty unless spans hold text."""
    outcome: str = ""
    """Outcome of the latest attempt."""


@dataclass(eq=False, slots=True)
class _Question:
    """A question in progress, or one of the latest decided."""

    item: ItemKey
    case_id: str
    question: Question | None
    """The question as presented; None if it ended before it was started, by a lost worker say."""
    began_at: int
    span: Span | None = None
    context: Context | None = None
    until: int = 0
    """End of the latest span below this one."""
    turns: dict[tuple[str, str], list[_Turn]] = field(default_factory=dict)
    """(`agent_id`, phase) -> turns in progress."""
    latest: dict[str, _Turn] = field(default_factory=dict)
    """`agent_id` -> its latest turn, to which late calls belong."""
    notes: list[tuple[str, Attributes, int]] = field(default_factory=list)
    """(name, attributes, time) of its events so far."""
    steps: ExaidSteps | None = None
    """Steps of EXAID; None before the first."""


def harmless(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """Decorate a method so that an error in it ends the spans, and nothing else."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self.is_broken:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self.broke(error)

    return guarded


class QuestionSpans(ABC):
    """Observes questions and makes their spans.

    Args:
        tracer: Tracer of the spans.
        with_text: Whether spans hold the text of questions, prompts and replies.
        say: Displays a line.
    """

    def __init__(
        self,
        tracer: Tracer | LightTracer,
        *,
        with_text: bool,
        say: Callable[[str], None],
    ) -> None:
        self._tracer = tracer
        self._with_text = with_text
        self._say = say
        self._case_ids: dict[ItemKey, str] = {}
        self._questions: dict[str, _Question] = {}  # by case id
        self._decided: OrderedDict[str, _Question] = OrderedDict()
        self._until = 0  # end of the latest question, in fractions of a ms
        self.is_broken = False
        """Whether an error of this program has ended the spans."""

    @abstractmethod
    def _placing(self, case_id: str) -> Placing:
        """Return where the span of a question belongs."""

    @abstractmethod
    def _context_without_question(self) -> Context:
        """Return the context of calls and steps that belong to no question."""

    def broke(self, error: Exception) -> None:
        """Stop making spans after an unexpected error, and say so."""
        self.is_broken = True
        kind = type(error).__name__
        self._say(f"--otel: no more spans are made: {kind}; answers are not affected")

    @harmless
    def happened(self, item: ItemKey, event: Event, at_ms: int) -> None:
        """Record an event of a question; an observer of its feed.

        Args:
            item: The question.
            event: The event.
            at_ms: Time of the event, in ms since 1970 UTC.
        """
        at = at_ms * NS
        case_id = self._case_ids.get(item)
        if case_id is None:
            case_id = self._case_ids[item] = make_case_id(*item)
        if isinstance(event, Started):
            self._interrupted(case_id, "restarted")
            self._decided.pop(case_id, None)
            self._questions[case_id] = _Question(item, case_id, event.question, at)
            return
        question = self._questions.get(case_id)
        match event:
            case ExaidStep():
                self._step_ended(question or self._decided.get(case_id), case_id, event, at)
            case _ if question is None:
                return
            case TraceEvent():
                self._said(question, event)
            case TurnBegan(agent, role, phase):
                turn = _Turn(agent, role, phase, at)
                question.turns.setdefault((agent, phase), []).append(turn)
                question.latest[agent] = turn
            case TurnEnded():
                self._turn_ended(question, event, at)
            case Routed(level, by):
                named = {"mdagents.difficulty": level.value} if level else {}
                attributes: Attributes = {**named, "mdagents.routed_by": by.value}
                question.notes.append(("mdagents.routed", attributes, at))
            case Recruited(members):
                attributes = {"mdagents.members": len(members)}
                question.notes.append(("mdagents.recruited", attributes, at))

    @harmless
    def booked(self, row: CallRow) -> None:
        """Record an attempt, or a reply from the cache; a subscriber of the ledger."""
        began_at, ended_at = times_of(row)
        queued_at = began_at - round(row.waited * 1e9)
        parent = self._parent_of(row, queued_at, ended_at)
        add_call(self._tracer, row, parent, with_text=self._with_text)

    @harmless
    def decided(self, record: SampleRecord) -> None:
        """End the span of a question, and state its score."""
        question = self._questions.pop(record.case_id, None)
        if question is None:
            began_at = now_ns() - round(record.wall_seconds * 1e9)
            item = record.question_id, record.epoch
            question = _Question(item, record.case_id, None, began_at)
        span = self._end_turns(question, ABORTED)
        ended_at = max(question.began_at + round(record.wall_seconds * 1e9), question.until)
        span.set_attributes(of_decision(record, with_text=self._with_text))
        if (score := of_score(record)) is not None:
            span.add_event(EVALUATION, score, ended_at)
        if record.error:
            words = well_formed(record.error) if self._with_text else None
            span.set_status(Status(StatusCode.ERROR, words))
        span.end(ended_at)
        self._until = max(self._until, ended_at)
        self._decided[record.case_id] = question
        if len(self._decided) > _DECIDED_IN_MEMORY:
            _, oldest = self._decided.popitem(last=False)
            self._end_steps(oldest)

    def _open(self, question: _Question, at: int) -> Span:
        """Return the span of a question; it begins by `at` if it is not open yet."""
        if question.span is None:
            question.began_at = min(question.began_at, at)
            question_id, epoch = question.item
            placing = self._placing(question.case_id)
            method = name_of(placing.method)
            attributes: Attributes = {
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": method,
                "gen_ai.conversation.id": question.case_id,
                **placing.attributes,
                "mdagents.question.id": well_formed(question_id),
                "mdagents.epoch": epoch,
            }
            if self._with_text and question.question is not None:
                asked = question.question.block()
                attributes["gen_ai.input.messages"] = as_messages([("user", asked)])
            question.span = self._tracer.start_span(
                f"invoke_workflow {method}",
                placing.parent,
                attributes=attributes,
                links=placing.links,
                start_time=question.began_at,
            )
            question.context = set_span_in_context(question.span)
        return question.span

    def _parent_of(self, row: CallRow, queued_at: int, ended_at: int) -> Context | None:
        """Return the context in which the span of a row begins."""
        question = self._questions.get(row.case_id) or self._decided.get(row.case_id)
        if question is None:  # it prepares several questions
            return self._context_without_question()
        self._open(question, queued_at)
        question.until = max(question.until, ended_at)
        if row.role in EXAID_ROLES:
            return self._steps(question).context_of(row.role, queued_at)
        turns = question.turns.get((row.agent, row.phase))
        turn = turns[-1] if turns else question.latest.get(row.agent)
        if turn is None or turn.phase != row.phase:
            return question.context
        turn.said_until, turn.outcome = max(turn.said_until, ended_at), row.outcome
        self._open_turn(question, turn, queued_at)
        return turn.context

    def _open_turn(self, question: _Question, turn: _Turn, at: int) -> Span:
        if turn.span is None:
            turn.began_at = min(turn.began_at, at)
            self._open(question, turn.began_at)
            role = name_of(turn.role)
            turn.span = self._tracer.start_span(
                f"invoke_agent {role}",
                question.context,
                attributes={
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": role,
                    "gen_ai.conversation.id": question.case_id,
                    "mdagents.agent.id": turn.agent,
                    "mdagents.phase": turn.phase,
                },
                start_time=turn.began_at,
            )
            turn.context = set_span_in_context(turn.span)
        return turn.span

    def _said(self, question: _Question, event: TraceEvent) -> None:
        turn = question.latest.get(event.agent_id)
        if turn is not None:
            turn.said_until = max(turn.said_until, event.t_ms * NS)
            if self._with_text:
                turn.text.append(event.text)

    def _turn_ended(self, question: _Question, event: TurnEnded, at: int) -> None:
        turns = question.turns.get((event.agent, event.phase))
        if not turns:
            return
        turn = turns.pop()
        if not turns:
            del question.turns[event.agent, event.phase]
        attributes: Attributes = {}
        if event.answer is not None:
            attributes["mdagents.answer"] = event.answer
        if event.confidence is not None:
            attributes["mdagents.confidence"] = event.confidence
        failure = ""
        if event.failed:
            failure = turn.outcome if turn.outcome not in ("", "ok") else "invalid_reply"
        self._end_turn(question, turn, failure, at, attributes)

    def _end_turn(
        self,
        question: _Question,
        turn: _Turn,
        failure: str,
        at: int,
        attributes: Attributes | None = None,
    ) -> None:
        span = self._open_turn(question, turn, turn.began_at)
        span.set_attributes(attributes or {})
        if turn.text:
            said = as_messages([("assistant", "".join(turn.text))], "error" if failure else "stop")
            span.set_attribute("gen_ai.output.messages", said)
            turn.text.clear()
        if failure:
            span.set_attribute("error.type", failure)
            span.set_status(FAILED)
        ended_at = max(turn.said_until or at, turn.began_at)
        question.until = max(question.until, ended_at)
        span.end(ended_at)

    def _end_turns(self, question: _Question, why: str) -> Span:
        """End the turns that are left of a question, add its events, and return its span."""
        for turn in [turn for turns in question.turns.values() for turn in turns]:
            self._end_turn(question, turn, why, now_ns())
        question.turns.clear()
        span = self._open(question, question.began_at)
        for name, attributes, at in question.notes:
            span.add_event(name, attributes, at)
        question.notes.clear()
        return span

    def _steps(self, question: _Question) -> ExaidSteps:
        if question.steps is None:
            question.steps = ExaidSteps(
                self._tracer, question.case_id, question.context, with_text=self._with_text
            )
        return question.steps

    def _step_ended(
        self, question: _Question | None, case_id: str, step: ExaidStep, at: int
    ) -> None:
        if question is None:  # EXAID resumes a question that an earlier start has decided
            context = self._context_without_question()
            steps = ExaidSteps(self._tracer, case_id, context, with_text=self._with_text)
            steps.ended(step.record, step.agents, at)
            return
        self._open(question, at - (step.record.latency_ms or 0) * NS)
        self._steps(question).ended(step.record, step.agents, at, question.until)

    def _end_steps(self, question: _Question) -> None:
        if question.steps is not None:
            question.steps.interrupt(max(now_ns(), question.until))

    def _interrupted(self, case_id: str, why: str) -> None:
        """End the spans of a question that has no decision."""
        question = self._questions.pop(case_id, None)
        if question is None:
            return
        span = self._end_turns(question, why)
        self._end_steps(question)
        span.set_attribute("error.type", why)
        span.set_status(FAILED)
        span.end(max(now_ns(), question.until))
