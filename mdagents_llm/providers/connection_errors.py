"""Errors for connections that cannot be made, or are lost, of all providers."""

from __future__ import annotations

import errno
import os
import re
import ssl

import httpx2

from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.providers.error_text import masked_line

PROXY_PASSWORD = 407
"""HTTP status with which a proxy asks for a password."""
_SOCKS_PASSWORD = re.compile("(?i)invalid username/password|no acceptable methods")
_BLOCKS = (400, 401, 403, 404, 405, 451)
"""HTTP statuses with which a proxy blocks an endpoint for good."""
_NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"
_FILE = "SSL_CERT_FILE"
_LOST = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})


def connection_error(host: str, place: str, error: Exception, *, timed_out: bool) -> ProviderError:
    """Return the `ProviderError` for a connection that failed or was lost.

    Args:
        host: Host of the endpoint, for the message.
        place: Host, with its port if that is not the default one.
        error: Exception of an SDK that uses httpx2; its cause is the httpx2 error.
        timed_out: Whether the SDK reports it as a timeout.
    """
    if isinstance(error.__cause__, ProviderError):
        return error.__cause__  # raised in `sending`
    if _is_unreachable(error):
        message = f"{place} cannot be reached: {why_unreachable(error)}"
        return ProviderError(message, kind=ErrorKind.UNREACHABLE)
    if timed_out:
        return ProviderError(f"{host} did not answer in time", kind=ErrorKind.TIMEOUT)
    return ProviderError(f"connection to {host} failed: {_cause(error)}", kind=ErrorKind.CONNECTION)


def proxy_error(host: str, said: str) -> ProviderError:
    """Return the `ProviderError` for a proxy that makes no connection.

    Args:
        host: Host of the endpoint, for the message.
        said: What the proxy answered, such as `407 Proxy Authentication Required`.
    """
    said = masked_line(said)
    status = int(said[:3]) if said[:3].isdecimal() else None
    if status == PROXY_PASSWORD or _SOCKS_PASSWORD.search(said):
        message = (
            f"a proxy asks for a user name and password ({said}); give them in HTTPS_PROXY or "
            f"HTTP_PROXY as http://USER:PASSWORD@HOST:PORT, or add the endpoint's host to NO_PROXY"
        )
    elif status in _BLOCKS:
        message = f"a proxy blocks {host} ({said}); allow it there, or add {host} to NO_PROXY"
    else:
        message = f"{host} cannot be reached over the proxy: {said}"
        return ProviderError(message, kind=ErrorKind.UNREACHABLE)
    return ProviderError(message, kind=ErrorKind.PROXY, status=status)


def _is_unreachable(error: Exception) -> bool:
    raised = error.__cause__
    if not isinstance(raised, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        return False
    return getattr(raised.__cause__, "errno", None) not in _LOST


def why_unreachable(error: Exception) -> str:
    """Return a short reason why no connection could be made."""
    raised = error.__cause__
    inner = raised.__cause__ if raised is not None else None
    certificate = getattr(inner, "certificate_error", inner)  # aiohttp
    inner = getattr(inner, "os_error", inner)  # aiohttp, whose own message is long
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
    return masked_line(str(cause)) or type(cause).__name__
