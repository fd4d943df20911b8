"""The status of a question, or of a turn, that ended in an error."""

from __future__ import annotations

from mdagents.settings import Status
from mdagents_llm.chat import StopReason
from mdagents_llm.errors import (
    BenchError,
    LimitExceeded,
    PictureError,
    ProviderError,
    StructuredOutputError,
    UnexpectedError,
)


def status_of(error: BenchError) -> Status:
    """Return the status of a question or a turn that ended in `error`."""
    match error:
        case LimitExceeded():
            return Status.LIMIT
        case StructuredOutputError(stop_reason=StopReason.REFUSAL):
            return Status.REFUSED
        case StructuredOutputError(stop_reason=StopReason.LENGTH):
            return Status.TRUNCATED
        case StructuredOutputError():
            return Status.PARSE_ERROR
        case ProviderError() | UnexpectedError() | PictureError():
            return Status.API_ERROR
        case _:
            raise error
