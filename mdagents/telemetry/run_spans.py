"""The spans of one run: that of the run, and below it those of its questions.

    run DATASET
      invoke_workflow METHOD         a question, as in `question_spans`

What is interrupted ends with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdagents.agents.case import make_case_id
from mdagents.records.summaries import ItemKey
from mdagents.telemetry.question_spans import Placing, QuestionSpans, harmless
from mdagents_llm.extras import needs_extra
from mdagents_llm.telemetry.call_spans import FAILED, Attributes, name_of, now_ns
from mdagents_llm.telemetry.light_spans import LightTracer

with needs_extra("opentelemetry", "--otel"):
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Tracer, set_span_in_context


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about a run that its spans state."""

    name: str
    dataset: str
    method: str
    model: str
    """Model of the experts, as it was asked for."""
    questions: int
    """Number of questions times epochs."""
    version: str
    """Version of this program."""

    @property
    def attributes(self) -> Attributes:
        """Attributes of the span of the run."""
        return {
            "mdagents.run": self.name,
            "mdagents.dataset": self.dataset,
            "mdagents.method": self.method,
            "mdagents.model": self.model,
            "mdagents.questions": self.questions,
        }


class RunSpans(QuestionSpans):
    """Observes a run and makes its spans; a subscriber of `RunRecorder`.

    Args:
        tracer: Tracer of the spans.
        facts: Facts about the run.
        parent: Context in which the span of the run begins.
        with_text: Whether spans hold the text of questions, prompts and replies.
        per_question: Whether each question is a trace of its own, with a link to that of the run.
        say: Displays a line.
    """

    def __init__(
        self,
        tracer: Tracer | LightTracer,
        facts: RunFacts,
        *,
        parent: Context,
        with_text: bool,
        per_question: bool,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(tracer, with_text=with_text, say=say)
        self._is_over = False
        self._span = tracer.start_span(
            f"run {name_of(facts.dataset)}",
            parent,
            attributes=facts.attributes,
            start_time=now_ns(),
        )
        self._context = set_span_in_context(self._span)
        self._place = Placing(
            method=facts.method,
            parent=Context() if per_question else self._context,
            attributes={"mdagents.run": facts.name, "mdagents.dataset": facts.dataset},
            links=[Link(self._span.get_span_context())] if per_question else [],
        )

    def _placing(self, case_id: str) -> Placing:
        return self._place

    def _context_without_question(self) -> Context:
        return self._context

    @harmless
    def restarted(self, item: ItemKey) -> None:
        """End the span of a question whose worker died."""
        self._interrupted(make_case_id(*item), "worker_lost")

    @harmless
    def finish(self, outcome: str, accuracy: float | None = None) -> None:
        """End all spans; only the first call has an effect.

        Args:
            outcome: Outcome of the run.
            accuracy: Accuracy of the run so far, 0 to 1; None without a scored question.
        """
        if self._is_over:
            return
        self._is_over = True
        for case_id in tuple(self._questions):
            self._interrupted(case_id, "interrupted")
        for question in self._decided.values():
            self._end_steps(question)
        self._span.set_attribute("mdagents.outcome", outcome)
        if accuracy is not None:
            self._span.set_attribute("mdagents.accuracy", accuracy)
        if outcome != "finished":
            self._span.set_attribute("error.type", outcome)
            self._span.set_status(FAILED)
        self._span.end(max(now_ns(), self._until))
