"""The meaning of an HTTP error of a model endpoint, or of a lost connection, for all providers."""

from __future__ import annotations

import errno
import os
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2

from infra.errors import ErrorKind, ProviderError

OTHER_SHAPES = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""What a body raises that is no JSON (a ValueError), of another shape, or nested too deeply."""

_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit",
    "credit_balance",
    "credit balance",
    "spend_limit",
    "usage_limit",
    "api usage limits",
)
_OF_QUOTA = (400, 403, 429)  # Anthropic answers 400 to an account without credit
_CONTEXT = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "context_size",
    "input token",  # OpenAI "Input tokens exceed", Gemini "The input token count exceeds"
    "reduce the length of the messages",  # Groq
    "prompt is too long",  # Anthropic
    "context limit",
)
_SCHEMA = (
    "response_format",
    "json mode",
    "json_schema",
    "json schema",
    "response_schema",
    "grammar",
    "schema",
    "tool_choice",  # Anthropic, where a forced tool carries the schema
    "output_config",
)
_REFUSED = re.compile(
    r"(?i)unsupported|not? (longer )?support|not (permitted|allowed|accepted|available)|deprecated"
    r"|unknown|unrecogni[sz]ed|unexpected|extra (inputs|fields)"
)
"""How endpoints say that they do not take a setting, as against a value of it."""
_CLAUSE = re.compile(r"[.;\n]\s")
_FARTHEST = 80  # characters between the name of a setting and the words that refuse it
_ECHO = re.compile(r"""['"](?:input|messages|contents?|body|request)['"]\s*:|\binput_value=""")
"""Where an endpoint begins to repeat what it was sent, prompts included."""
_NO_MODEL = (
    "model not exist",  # DeepSeek
    "not a valid model",  # OpenRouter
    "invalid model: ",  # Mistral
    "invalid_model",
    "model_not_found",
    "model_decommissioned",  # Groq
)
_NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"
_FILE = "SSL_CERT_FILE"
_LOST = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
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
    words = f"{code} {_own_words(message)}".lower()
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
    if status == 402 or (status in _OF_QUOTA and any(word in words for word in _QUOTA)):
        return ErrorKind.QUOTA
    if status == 429:
        return ErrorKind.RATE_LIMIT
    if status in by_status:
        return by_status[status]
    if status >= 500:
        return ErrorKind.SERVER
    if any(word in words for word in _CONTEXT):
        return ErrorKind.CONTEXT_LENGTH
    if any(word in words for word in _NO_MODEL):
        return ErrorKind.MODEL_NOT_FOUND
    if "api key" in words or "api_key" in words:  # Gemini answers 400 to a wrong key
        return ErrorKind.AUTH
    if "json_validate_failed" in words:  # Groq: this sample did not fit the schema, another may
        return ErrorKind.BAD_BODY
    if asked_with_schema and any(word in words for word in _SCHEMA):
        return ErrorKind.SCHEMA_UNSUPPORTED
    return ErrorKind.BAD_REQUEST


def is_refused(setting: str, status: int, message: str, about: str = "") -> bool:
    """Return whether an endpoint says that it does not take a setting, such as `seed`, at all.

    Args:
        setting: As it was sent.
        status: HTTP status.
        message: The endpoint's words.
        about: The setting that the error is about; empty: the endpoint does not name it apart.
    """
    if status not in (400, 422) or about not in ("", setting):
        return False
    name = re.compile(rf"\b{re.escape(setting)}\b")
    return any(
        abs(named.start() - refused.start()) <= _FARTHEST
        for clause in _CLAUSE.split(_own_words(message))
        for named in name.finditer(clause)
        for refused in _REFUSED.finditer(clause)
    )


def _own_words(message: str) -> str:
    """Return what an endpoint says itself, without what it repeats of the request."""
    return _ECHO.split(message, maxsplit=1)[0]


def connection_error(host: str, place: str, error: Exception, *, timed_out: bool) -> ProviderError:
    """Return the `ProviderError` for a connection that an SDK could not make, or lost.

    Args:
        host: Of the endpoint, for the message.
        place: The host, with its port where that is not the usual one.
        error: As an SDK over httpx2 raised it; its cause is the error of httpx2.
        timed_out: Whether the SDK calls it a timeout.
    """
    if isinstance(error.__cause__, ProviderError):
        return error.__cause__  # of `sending`
    if _is_unreachable(error):
        message = f"{place} cannot be reached: {why_unreachable(error)}"
        return ProviderError(message, kind=ErrorKind.UNREACHABLE)
    # The aiohttp transport also reports a reset connection as a timeout; its cause is not one.
    raised = error.__cause__
    if timed_out and (raised is None or isinstance(raised.__cause__, TimeoutError)):
        return ProviderError(f"{host} did not answer in time", kind=ErrorKind.TIMEOUT)
    return ProviderError(f"connection to {host} failed: {_cause(error)}", kind=ErrorKind.CONNECTION)


def _is_unreachable(error: Exception) -> bool:
    raised = error.__cause__
    if not isinstance(raised, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        return False
    # The aiohttp transport raises this also for a connection that was made and then lost.
    inner = raised.__cause__
    if type(inner).__module__.startswith("aiohttp") and not hasattr(inner, "os_error"):
        return False
    return getattr(inner, "errno", None) not in _LOST


def why_unreachable(error: Exception) -> str:
    """Return why no connection could be made, in a few words; see `connection_error`."""
    raised = error.__cause__
    inner = raised.__cause__ if raised is not None else None
    certificate = getattr(inner, "certificate_error", inner)  # of aiohttp
    inner = getattr(inner, "os_error", inner)  # likewise, whose own message is long
    said = f"{_cause(error)} {inner}"
    if isinstance(certificate, ssl.SSLCertVerificationError) or _NOT_TRUSTED in said:
        why = getattr(certificate, "verify_message", "") or "not verified"
        return f"its certificate is not trusted ({why}); name a file that vouches for it by {_FILE}"
    if isinstance(inner, ssl.SSLError) or "[SSL" in said:
        return "TLS failed, as if it spoke plain HTTP; does its address begin with http://?"
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno > 0:
        return os.strerror(inner.errno)
    return (isinstance(inner, OSError) and inner.strerror) or _cause(error)


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return one_line(str(cause)) or type(cause).__name__


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
