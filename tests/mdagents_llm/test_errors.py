"""Errors go from process to process with all that they hold."""

from __future__ import annotations

import pickle

import pytest

from mdagents_llm.chat import StopReason, TokenUsage
from mdagents_llm.errors import (
    BenchError,
    EndpointDown,
    ErrorKind,
    LimitExceeded,
    ProviderError,
    StructuredOutputError,
)


@pytest.mark.parametrize(
    "error",
    [
        EndpointDown("no such model"),
        LimitExceeded("a limit", origin=ValueError("of another program")),
        ProviderError("full", kind=ErrorKind.RATE_LIMIT, status=429, retry_after=2.0),
        StructuredOutputError(
            "no JSON", text="Yes.", usage=TokenUsage(1, 2), stop_reason=StopReason.STOP
        ),
    ],
)
def test_errors_can_be_pickled_with_notes(error: BenchError) -> None:
    error.add_note("During task with name 'triage'")  # as LangGraph does
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))
    assert {name: repr(value) for name, value in vars(copy).items()} == {
        name: repr(value) for name, value in vars(error).items()
    }
