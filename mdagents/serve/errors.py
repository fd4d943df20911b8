"""Errors as clients of OpenAI's API know them: a status, and a body with message, type and code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mdagents.agents.status import status_of
from mdagents.records.sample import SampleRecord
from mdagents.settings import Status
from mdagents_llm.errors import (
    BenchError,
    EndpointDown,
    ErrorKind,
    LimitExceeded,
    MethodError,
    PictureError,
    ProviderError,
    StorageError,
    StructuredOutputError,
    UnexpectedError,
)
from mdagents_llm.ledger import Totals
from mdagents_llm.web.guard import CHALLENGE

TOO_MUCH = 413
BAD_REQUEST = 400


@dataclass(slots=True)
class ApiError(Exception):
    """A request that ends without an answer."""

    status: int
    """HTTP status."""
    message: str
    """One line for the user of the client."""
    code: str
    """Word for programs, such as `model_not_found`."""
    param: str | None = None
    """Parameter of the request that is at fault; None if none is."""
    retry_after: int | None = None
    """Seconds after which the same request may succeed; None if it is not worth a retry."""
    details: Mapping[str, object] | None = None
    """What is known of the failed answer: its case and usage; None before a team was asked."""
    accepts: str = ""
    """Encodings of a body that are read instead, for the header of a 415."""
    record: SampleRecord | None = None
    """Record of the question; None if it has none."""
    spent: Totals | None = None
    """Totals of the calls of the question; None before a team was asked."""

    @property
    def kind(self) -> str:
        """Type of the error, in OpenAI's words."""
        match self.status:
            case 401:
                return "authentication_error"
            case 429:
                return "rate_limit_error" if self.code == "queue_full" else "insufficient_quota"
            case status if status < 500:
                return "invalid_request_error"
            case _:
                return "server_error"

    def body(self) -> dict[str, object]:
        """Return the body of the response."""
        fields = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        return {"error": fields} | ({"mdagents": self.details} if self.details else {})

    def headers(self) -> dict[str, str]:
        """Return the headers that tell a client whether and how to retry.

        The SDKs of OpenAI retry each 429 and 5xx twice unless `x-should-retry` forbids it, and the
        calls of a team have their own retries: a question would be paid for three times.
        """
        if self.status == 401:
            return {"x-should-retry": "false", **CHALLENGE}
        if self.accepts:  # RFC 9110, section 15.5.16
            return {"x-should-retry": "false", "accept-encoding": self.accepts}
        if self.retry_after is None:
            return {"x-should-retry": "false"}
        return {"retry-after": str(self.retry_after), "x-should-retry": "true"}


def invalid(message: str, param: str | None = None, code: str = "invalid_value") -> ApiError:
    """Return the error of a request that cannot be answered as it is."""
    return ApiError(BAD_REQUEST, message, code, param)


_CODES = {
    Status.REFUSED: "refused",
    Status.TRUNCATED: "truncated",
    Status.PARSE_ERROR: "no_answer",
}
_BUSY = 10  # seconds until an overloaded provider may be asked again


_IN_THE_LOG = "its log says why"
OF_THE_SERVER = (EndpointDown, MethodError, StorageError)
"""Errors whose messages are for the user of the server: they name variables, files and code."""


def error_of(
    error: BenchError, details: Mapping[str, object] | None = None, spent: Totals | None = None
) -> ApiError:
    """Return the error for a question that a team could not answer.

    Args:
        error: Error that ended the question.
        details: Its case and usage, for the body.
        spent: Totals of its calls.
    """
    message = str(error)
    match error:
        case LimitExceeded() if "--sample-time-limit" in message:
            found = ApiError(504, message, "timeout")
        case LimitExceeded() if "the run has reached" in message:
            found = ApiError(429, message.replace("the run", "the server"), "insufficient_quota")
        case LimitExceeded():
            found = ApiError(502, message, "limit")
        case PictureError():
            found = ApiError(BAD_REQUEST, message, "invalid_image")
        case StructuredOutputError():
            found = ApiError(502, f"the team gave no answer: {message}", _CODES[status_of(error)])
        case ProviderError(kind=ErrorKind.CONTEXT_LENGTH):
            found = ApiError(BAD_REQUEST, message, "context_length_exceeded", "messages")
        case ProviderError(kind=ErrorKind.IMAGES_REFUSED):
            found = ApiError(BAD_REQUEST, message, "invalid_image", "messages")
        case ProviderError(kind=ErrorKind.RATE_LIMIT | ErrorKind.OVERLOADED):
            wait = round(error.retry_after or _BUSY)
            found = ApiError(503, message, error.kind.value, retry_after=max(1, wait))
        case ProviderError(kind=ErrorKind.TIMEOUT):
            found = ApiError(504, message, error.kind.value)
        case ProviderError():
            found = ApiError(502, message, error.kind.value)
        case EndpointDown():
            what = f"the model of the team cannot reply; {_IN_THE_LOG}"
            found = ApiError(503, what, "endpoint_down")
        case UnexpectedError():
            found = ApiError(500, message, "unexpected")
        case _:
            what = f"the server cannot answer; {_IN_THE_LOG}"
            found = ApiError(500, what, "server_error")
    found.details, found.spent = details, spent
    return found
