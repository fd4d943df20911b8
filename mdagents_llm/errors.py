"""All errors of the project, by who can act on them.

    BenchError
    ├── ConfigError              the user: one sentence that says what to change
    ├── ProviderError            the endpoint: `kind`, `retryable`, `retry_after`, `status`
    ├── EndpointDown             the user: a model that can only fail; it ends the run
    │   └── NothingRecorded      the user: a replay of what was never recorded
    ├── StorageError             the user: something cannot be written; it ends the run
    ├── ClusterError             the user: the workers of a run are gone; it ends the run
    ├── PictureError             the user: a picture of one question cannot be shown
    ├── MethodError              the user: a method of their own failed; it ends the run
    ├── UnexpectedError          us: something in one question that no code foresaw
    ├── StructuredOutputError    nobody at run time: no reply had the form that was asked for
    └── LimitExceeded            nobody: a limit that the user set was reached

Nothing in the project catches `Exception` to turn it into an answer. Two nets catch what nobody
foresaw, unless MDAGENTS_DEBUG is set: it costs one question, or ends a program with one line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mdagents_llm.chat import ChatReply, StopReason, TokenUsage


NOWHERE = (
    "the working directory no longer exists; change to one that does (cd . if it was made again)"
)


class BenchError(Exception):
    """Base of every error that this project raises on purpose."""


class ConfigError(BenchError):
    """A mistake that the user can correct. The message is one line and names what to change."""


class LimitExceeded(BenchError):
    """A token, cost or time limit that the user set has been reached.

    Args:
        message: One line: which limit.
        reply: The reply whose tokens reached the limit, so that they are booked; None if no reply
            did.
        origin: Error of the program whose limit it is; None for a limit of this project.
    """

    def __init__(
        self, message: str, *, reply: ChatReply | None = None, origin: Exception | None = None
    ) -> None:
        super().__init__(message)
        self.reply = reply
        self.origin = origin


class EndpointDown(BenchError):
    """Every further call to a model would fail the same way; the message names what to change."""


class NothingRecorded(EndpointDown):
    """A replay found no recorded reply: the same command would end the same way again."""


class StorageError(BenchError):
    """A file cannot be written: the disk is full, or gone. What was written before is kept."""


class PictureError(BenchError):
    """A picture of a question cannot be shown, which costs that question.

    The message is one line, and names the picture without the folders of this machine.
    """


class ClusterError(BenchError):
    """The workers of a run cannot be had, or are gone; the message names what to change."""


class MethodError(BenchError):
    """A method of the user's own raised an error, or returned something else than a decision."""


class UnexpectedError(BenchError):
    """An error that no code foresaw ended one question; the message names it."""

    @classmethod
    def of(cls, error: BaseException) -> UnexpectedError:
        """Return an account of an error by its type and place: its text may hold a patient's."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f" in {trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace else ""
        return cls(f"unexpected {type(error).__name__}{place}")


def is_debugging() -> bool:
    """Return whether errors that nobody foresaw are to be shown with their traceback."""
    return bool(os.environ.get("MDAGENTS_DEBUG"))


class ErrorKind(StrEnum):
    """What went wrong at an endpoint. The value is what the ledger and the records show."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server_error"
    UNREACHABLE = "unreachable"
    """No connection could be made: refused, no such host, no route."""
    CONNECTION = "connection"
    """A connection was lost."""
    REDIRECTED = "redirected"
    """The endpoint named another address, to which nothing is sent."""
    PROXY = "proxy"
    """A proxy on the way asks for a password, or blocks the endpoint."""
    TIMEOUT = "timeout"
    BAD_BODY = "bad_body"
    AUTH = "auth"
    QUOTA = "quota"
    MODEL_NOT_FOUND = "model_not_found"
    IMAGES_REFUSED = "images_refused"
    """The model takes no pictures; one that is broken or too large is a `BAD_REQUEST`."""
    CONTEXT_LENGTH = "context_length"
    SCHEMA_UNSUPPORTED = "schema_unsupported"
    SETTING_REFUSED = "setting_refused"
    """The model takes no seed, say, or no temperature; the same call is made without it."""
    STREAM_REFUSED = "stream_refused"
    """The model does not stream; the same call is made for the whole reply."""
    BAD_REQUEST = "bad_request"
    UNANSWERED = "unanswered"
    """A batch ended before it came to this request: it expired, or was cancelled."""
    CACHE_MISS = "cache_miss"
    """Only recorded replies were allowed, and this request has no recorded reply."""
    WORKER_LOST = "worker_lost"
    """Several processes of a cluster died, one after the other, while they made the call."""


RETRYABLE_KINDS = frozenset(
    {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.UNREACHABLE,
        ErrorKind.CONNECTION,
        ErrorKind.TIMEOUT,
        ErrorKind.BAD_BODY,
        ErrorKind.SETTING_REFUSED,
        ErrorKind.STREAM_REFUSED,
        ErrorKind.UNANSWERED,
    }
)


class ProviderError(BenchError):
    """A model call that ended without a usable reply.

    Args:
        message: One line, safe to log: never a key, never a prompt.
        kind: What went wrong.
        status: HTTP status, or None when there was no HTTP response.
        retry_after: Seconds that the endpoint asked us to wait, or None.
        reply: Unusable reply, whose tokens are paid; None if no tokens were reported.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        status: int | None = None,
        retry_after: float | None = None,
        reply: ChatReply | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.reply = reply
        self.queued = 0.0
        """Seconds that the attempt had waited for a connection; set by `Gate`."""
        self.stopped = 0.0
        """Seconds of the attempt for which this process did not run; set by `Attempt`."""
        self.told_to_retry: bool | None = None
        """The endpoint's own word on a retry (`x-should-retry`); None if it has none. It decides
        where the status does not: a limit or an overload passes, whatever a gateway says that has
        used up its own retries."""

    def __reduce__(self) -> tuple[Callable[..., ProviderError], tuple[str], dict[str, object]]:
        # From process to process.
        return partial(type(self), kind=self.kind), (str(self),), dict(vars(self))

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed when it is made again."""
        if (
            self.kind in (ErrorKind.SERVER, ErrorKind.BAD_REQUEST)
            and self.told_to_retry is not None
        ):
            return self.told_to_retry
        return self.kind in RETRYABLE_KINDS


class StructuredOutputError(BenchError):
    """A reply that does not validate against the schema that was asked for, after the re-ask.

    Args:
        message: One line: what does not validate.
        text: The model's last reply.
        usage: Tokens spent on all replies to this request.
        stop_reason: Why the last reply ended: distinguishes a refused or truncated reply from a
            malformed one.
    """

    def __init__(
        self, message: str, *, text: str, usage: TokenUsage, stop_reason: StopReason
    ) -> None:
        super().__init__(message)
        self.text = text
        self.usage = usage
        self.stop_reason = stop_reason

    def __reduce__(
        self,
    ) -> tuple[Callable[..., StructuredOutputError], tuple[str], dict[str, object]]:
        # From process to process, with notes such as those of LangGraph.
        make = partial(type(self), text=self.text, usage=self.usage, stop_reason=self.stop_reason)
        return make, (str(self),), dict(vars(self))


def message_of(error: BaseException) -> str:
    """Return the message of an error of foreign code; empty if it raises an error itself."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it is foreign code
        return ""


def system_reason(error: BaseException) -> str:
    """Return the system's reason for a failure, such as `Connection refused`.

    Args:
        error: Error of a library, which wraps that of the system.

    Returns:
        The text of the innermost error; its type if it is not an `OSError` or has no text.
    """
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
