"""Cuts an attempt that hangs."""

from __future__ import annotations

import asyncio

from infra.chat import ChatModel, ChatReply, ChatRequest, OnText
from infra.errors import ErrorKind, ProviderError

ATTEMPT_TIMEOUT = 120.0
"""Seconds for one attempt at an endpoint, unless the user says otherwise."""


class AttemptTimeout:
    """Gives one attempt at the provider a fixed time, streaming included.

    An HTTP client's own read timeout starts anew with each byte, so that an endpoint that drips
    would never be cut.

    Args:
        inner: The model that is called.
        seconds: From the start of the attempt to its last byte.
    """

    def __init__(self, inner: ChatModel, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; a cut attempt is a retryable `ProviderError`."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._inner.generate(request, on_text)
        except TimeoutError:
            message = f"no complete reply within {self._seconds:g} s"
            raise ProviderError(message, kind=ErrorKind.TIMEOUT) from None
