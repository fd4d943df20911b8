"""The meaning of an HTTP error of a model endpoint, for all providers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from infra.errors import ErrorKind, ProviderError

_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit",
    "credit_balance",
    "spend_limit",
    "usage_limit",
)
_CONTEXT = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "context_size",
    "input token",  # OpenAI "Input tokens exceed", Gemini "The input token count exceeds"
    "reduce the length of the messages",  # Groq
)
_SCHEMA = (
    "response_format",
    "json mode",
    "json_schema",
    "json schema",
    "response_schema",
    "grammar",
    "schema",
)
_KEY = re.compile(r"(?i)\b(sk-|gsk_|hf_|AIza|key[-_=]|bearer )[-_A-Za-z0-9*.]{6,}")
_SHORTEST_KEY = 8  # characters
_LONGEST_MESSAGE = 200  # characters


def status_error(
    host: str,
    status: int,
    message: str,
    *,
    code: str = "",
    retry_after: float | None = None,
    asked_with_schema: bool = False,
) -> ProviderError:
    """Return the `ProviderError` for an HTTP status that is not 2xx.

    Args:
        host: Of the endpoint, for the message.
        status: HTTP status.
        message: The endpoint's own words; keys in it are masked, and it is shortened.
        code: The endpoint's machine-readable code and type, if any.
        retry_after: Seconds that the endpoint asked to wait.
        asked_with_schema: Whether the request used native schema support, so that an error
            about a schema means that the endpoint does not support it.
    """
    words = f"{code} {message}".lower()
    return ProviderError(
        f"{status} from {host}: {one_line(message)}",
        kind=_kind(status, words, asked_with_schema),
        status=status,
        retry_after=retry_after,
    )


def _kind(status: int, words: str, asked_with_schema: bool) -> ErrorKind:
    by_status = {
        401: ErrorKind.AUTH,
        403: ErrorKind.AUTH,
        404: ErrorKind.MODEL_NOT_FOUND,
        408: ErrorKind.TIMEOUT,
        409: ErrorKind.SERVER,
        413: ErrorKind.CONTEXT_LENGTH,
        498: ErrorKind.OVERLOADED,
        503: ErrorKind.OVERLOADED,
        529: ErrorKind.OVERLOADED,
    }
    if status == 402 or (status == 429 and any(word in words for word in _QUOTA)):
        return ErrorKind.QUOTA
    if status == 429:
        return ErrorKind.RATE_LIMIT
    if status in by_status:
        return by_status[status]
    if status >= 500:
        return ErrorKind.SERVER
    if any(word in words for word in _CONTEXT):
        return ErrorKind.CONTEXT_LENGTH
    if "api key" in words or "api_key" in words:  # Gemini answers 400 to a wrong key
        return ErrorKind.AUTH
    if "json_validate_failed" in words:  # Groq: this sample did not fit the schema, another may
        return ErrorKind.BAD_BODY
    if asked_with_schema and any(word in words for word in _SCHEMA):
        return ErrorKind.SCHEMA_UNSUPPORTED
    return ErrorKind.BAD_REQUEST


def one_line(message: str) -> str:
    """Return an endpoint's message on one line, shortened, with anything like a key masked."""
    masked = _KEY.sub(r"\1***", " ".join(message.split()))
    return masked if len(masked) <= _LONGEST_MESSAGE else masked[: _LONGEST_MESSAGE - 1] + "…"


def without_key(message: str, key: str) -> str:
    """Return an endpoint's message with the key that was sent masked."""
    # The key for a local server (`x`, `none`) is no secret, but often a word.
    return message if len(key) < _SHORTEST_KEY else message.replace(key, "***")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `retry-after-ms`, else `Retry-After` (seconds or date), else None."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    if value is None:
        return None
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _number(value: object) -> float | None:
    try:
        return float(str(value)) if value is not None else None
    except ValueError:
        return None


def seconds_of_duration(value: object) -> float | None:
    """Read Google's `google.protobuf.Duration` in JSON, such as `34.07s`, in seconds; else None."""
    return _number(str(value).removesuffix("s")) if value is not None else None
