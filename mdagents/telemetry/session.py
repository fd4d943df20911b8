"""Opens and closes the telemetry of a run, or of single questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from mdagents.telemetry.run_spans import RunFacts, RunSpans
from mdagents.telemetry.single_spans import SingleSpans
from mdagents_llm.telemetry.export import Export
from mdagents_llm.telemetry.parents import of_process
from mdagents_llm.terminal.printing import print_line


@asynccontextmanager
async def run_spans(
    facts: RunFacts,
    variables: Mapping[str, str],
    say: Callable[[str], None],
    *,
    with_text: bool,
    per_question: bool,
) -> AsyncIterator[RunSpans]:
    """Make the spans of a run, and send them until the end of the context.

    Args:
        facts: Facts about the run.
        variables: Environment variables, with those of `.env`.
        say: Displays a line.
        with_text: Whether spans hold the text of questions, prompts and replies.
        per_question: Whether each question is a trace of its own.

    Raises:
        ConfigError: A standard variable has a value that cannot be used here.
    """
    export = Export(variables, facts.version, say, with_text=with_text)
    spans = RunSpans(
        export.tracer,
        facts,
        parent=of_process(variables, say),
        with_text=with_text,
        per_question=per_question,
        say=say,
    )
    try:
        yield spans
    finally:
        spans.finish("interrupted")
        print_line(await export.close())


@asynccontextmanager
async def single_spans(
    version: str, variables: Mapping[str, str], say: Callable[[str], None], *, with_text: bool
) -> AsyncIterator[SingleSpans]:
    """Make the spans of single questions, and send them until the end of the context.

    Args:
        version: Version of this program.
        variables: Environment variables, with those of `.env`.
        say: Displays a line.
        with_text: Whether spans hold the text of questions, prompts and replies.

    Raises:
        ConfigError: A standard variable has a value that cannot be used here.
    """
    export = Export(variables, version, say, with_text=with_text)
    try:
        yield SingleSpans(export.tracer, variables, with_text=with_text, say=say)
    finally:
        print_line(await export.close())
