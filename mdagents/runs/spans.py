"""Spans of questions that belong to no run, and whether spans hold text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import mdagents
from mdagents.agents.events import Observer, unobserved
from mdagents.runs.config import RunConfig
from mdagents_llm.config import origin_of
from mdagents_llm.errors import ConfigError
from mdagents_llm.ledger import Ledger

if TYPE_CHECKING:
    from mdagents.telemetry.single_spans import SingleSpans

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Standard variable that asks for text."""

_IN_SPANS = {
    "true": True, "1": True, "span_only": True, "span_and_event": True,
    "false": False, "0": False, "no_content": False, "event_only": False, "": False,
}  # fmt: skip
"""Value of the variable, in lower case -> whether it asks for text in spans."""


def wants_text(config: RunConfig, variables: Mapping[str, str]) -> bool:
    """Return whether spans hold text: by `--otel-text`, or by the standard variable.

    Raises:
        ConfigError: The variable has a value of another form.
    """
    if not config.otel:
        return False
    value = variables.get(CAPTURE, "").strip().lower()
    if value not in _IN_SPANS:
        raise ConfigError(
            f"{CAPTURE} {origin_of(CAPTURE)} must be NO_CONTENT, SPAN_ONLY, EVENT_ONLY, "
            "SPAN_AND_EVENT, true or false"
        )
    return config.otel_text or _IN_SPANS[value]


@asynccontextmanager
async def spans_of_questions(
    config: RunConfig, variables: Mapping[str, str], ledger: Ledger, say: Callable[[str], None]
) -> AsyncIterator[SingleSpans | None]:
    """Make the spans of questions that belong to no run, and send them; yields None without `otel`.

    Args:
        config: Configuration of the questions.
        variables: Environment variables, with those of `.env`.
        ledger: Ledger of their calls.
        say: Displays a line.

    Raises:
        ConfigError: A package is missing, or a standard variable cannot be used.
    """
    if not config.otel:
        yield None
        return
    from mdagents.telemetry.session import single_spans  # an extra that most do without

    with_text = wants_text(config, variables)
    async with single_spans(mdagents.__version__, variables, say, with_text=with_text) as spans:
        with ledger.subscribed(spans.booked):
            yield spans


@contextmanager
def observed(
    spans: SingleSpans | None,
    question_id: str,
    method: str,
    *,
    headers: Mapping[str, str] | None = None,
    queued: float = 0.0,
) -> Iterator[Observer]:
    """Yield the observer that makes the spans of a question; see `SingleSpans.observing`."""
    if spans is None:
        yield unobserved
        return
    with spans.observing(question_id, method, headers=headers, queued=queued) as tell:
        yield tell
