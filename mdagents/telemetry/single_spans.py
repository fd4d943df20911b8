"""The spans of questions without a run: those of a server, and of `mdagents.answer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from mdagents.agents.case import make_case_id
from mdagents.agents.events import Event, Observer
from mdagents.telemetry.question_spans import Placing, QuestionSpans, harmless
from mdagents_llm.clock import epoch_ms
from mdagents_llm.errors import ProviderError
from mdagents_llm.extras import needs_extra
from mdagents_llm.telemetry.call_spans import Attributes
from mdagents_llm.telemetry.light_spans import LightTracer
from mdagents_llm.telemetry.parents import of_headers, of_process

with needs_extra("opentelemetry", "--otel"):
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer


class SingleSpans(QuestionSpans):
    """Observes single questions and makes their spans.

    Args:
        tracer: Tracer of the spans.
        variables: Environment variables.
        with_text: Whether spans hold the text of questions, prompts and replies.
        say: Displays a line.
    """

    def __init__(
        self,
        tracer: Tracer | LightTracer,
        variables: Mapping[str, str],
        *,
        with_text: bool,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(tracer, with_text=with_text, say=say)
        self._variables = variables
        self._places: dict[str, Placing] = {}  # by case id

    @contextmanager
    def observing(
        self,
        question_id: str,
        method: str,
        *,
        headers: Mapping[str, str] | None = None,
        queued: float = 0.0,
    ) -> Iterator[Observer]:
        """Make the spans of one question, whose record is told to `decided` within the context.

        Args:
            question_id: Id of the question, which no other open question has.
            method: Team or method that answers.
            headers: Headers in which a client may state its span; None: the span is below that of
                the calling program.
            queued: Seconds for which the question has waited for a place.

        Yields:
            The observer of the question's events.
        """
        item, case_id = (question_id, 1), make_case_id(question_id)
        self._place(case_id, method, headers, queued)

        def tell(event: Event) -> None:
            self.happened(item, event, epoch_ms())

        try:
            yield tell
        except BaseException as error:
            self._ended_early(case_id, error)
            raise
        finally:
            self._forget(item, case_id)

    @harmless
    def _place(
        self, case_id: str, method: str, headers: Mapping[str, str] | None, queued: float
    ) -> None:
        if headers is None:
            parent = of_process(self._variables, self._say)
        else:
            parent = of_headers(headers, self._variables)
        attributes: Attributes = {"mdagents.queued": round(queued, 3)} if queued else {}
        self._places[case_id] = Placing(method, parent, attributes)

    @harmless
    def _ended_early(self, case_id: str, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            why = "cancelled"
        elif isinstance(error, ProviderError):
            why = error.kind.value
        else:
            why = type(error).__name__
        self._interrupted(case_id, why)

    @harmless
    def _forget(self, item: tuple[str, int], case_id: str) -> None:
        self._interrupted(case_id, "interrupted")  # it has no record
        self._places.pop(case_id, None)
        self._case_ids.pop(item, None)

    def _placing(self, case_id: str) -> Placing:
        return self._places[case_id]

    def _context_without_question(self) -> Context:
        return Context()
