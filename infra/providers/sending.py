"""How the SDKs of OpenAI and Anthropic send, which are built alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from infra.wire import Endpoint

KEEP_ALIVE = 4.0
"""Seconds; vLLM and other servers on uvicorn hang up after 5."""
_CONNECT_TIMEOUT = 10.0  # seconds
_MAX_CONNECTIONS = 1_000  # `Gate` keeps the real limit


def sending(
    endpoint: Endpoint,
    by_aiohttp: Callable[..., httpx2.AsyncClient],
    keep_alive: float = KEEP_ALIVE,
) -> dict[str, Any]:
    """Return how an SDK's client sends: no retries of its own, and by aiohttp where many do.

    Args:
        endpoint: Where to.
        by_aiohttp: The SDK's `DefaultAioHttpClient`.
        keep_alive: Seconds for which an idle connection may be used again.
    """
    limits = httpx2.Limits(
        max_connections=_MAX_CONNECTIONS,
        max_keepalive_connections=_MAX_CONNECTIONS,
        keepalive_expiry=keep_alive,
    )
    timeout = httpx2.Timeout(endpoint.attempt_timeout, connect=_CONNECT_TIMEOUT)
    # What is not closed at the end is sent by httpx2, which may be left open.
    client = by_aiohttp(timeout=timeout, limits=limits) if endpoint.many_at_once else None
    return {"max_retries": 0, "timeout": timeout, "http_client": client}
