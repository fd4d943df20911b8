"""Doors to the OpenTelemetry spans of a companion system; without `--otel` they lead nowhere.

    invoke_workflow cdss             a case, a turn of a conversation, a message
      invoke_agent cardiology        a node of a graph
        chat MODEL                   an attempt at a model
      invoke_agent summarizer        a step of EXAID
        chat MODEL

Spans hold names, times and tokens, and nothing that users, agents or models said.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from mdagents_llm.terminal.printing import print_line

if TYPE_CHECKING:
    from demos.toolkit.program_spans import Conversation, ProgramSpans
    from exaid_core import EXAID

P = ParamSpec("P")
T = TypeVar("T")

_CONVERSATION: ContextVar[Conversation | None] = ContextVar("conversation", default=None)


def add_otel_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--otel` to the flags of a program."""
    parser.add_argument("--otel", action="store_true",
        help="send spans to an OpenTelemetry collector; OTEL_* variables say where")  # fmt: skip


@asynccontextmanager
async def open_spans(
    service: str, variables: Mapping[str, str], *, wanted: bool
) -> AsyncIterator[ProgramSpans | None]:
    """Make the spans of a program, and send them until the end of the context.

    Args:
        service: Name of the program in the spans.
        variables: Environment, as returned by `mdagents_llm.config.read_variables`.
        wanted: Whether the user has given `--otel`; yields None without it.

    Raises:
        ConfigError: A package is missing, or a standard variable cannot be used.
    """
    if not wanted:
        yield None
        return
    from demos.toolkit.program_spans import ProgramSpans  # needs the extra
    from mdagents_llm.telemetry.export import Export

    export = Export(variables, "", print_line, with_text=False, service=service)
    try:
        yield ProgramSpans(export.tracer, variables, print_line)
    finally:
        print_line(await export.close())


@contextmanager
def workflow(spans: ProgramSpans | None, name: str, conversation: str = "") -> Iterator[None]:
    """Make the span of a case, a turn or a message; those of agents and calls are below it.

    Args:
        spans: Spans of the program; None makes none.
        name: Name of the workflow.
        conversation: Id of the conversation, which tells nothing of its user.
    """
    if spans is None:
        yield
        return
    with spans.workflow(name, conversation) as opened:
        token = _CONVERSATION.set(opened)
        try:
            yield
        finally:
            _CONVERSATION.reset(token)


def agent(name: str, work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Return a node of a graph that makes the span of its agent.

    Args:
        name: Name of the agent.
        work: The node.
    """

    async def spanned(*args: P.args, **kwargs: P.kwargs) -> T:
        conversation = _CONVERSATION.get()
        if conversation is None:
            return await work(*args, **kwargs)
        with conversation.agent(name):
            return await work(*args, **kwargs)

    # LangGraph reads the parameters of a node, which for an object are those of its call.
    is_function = hasattr(work, "__code__")
    return wraps(work if is_function else type(work).__call__.__get__(work))(spanned)


def observe(exaid: EXAID) -> None:
    """Make the spans of the steps of an EXAID, below the workflow in which this is called."""
    conversation = _CONVERSATION.get()
    if conversation is not None:
        conversation.observe(exaid)
