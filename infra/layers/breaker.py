"""Stops everything when a model can only fail: a wrong key, an unknown model, a used-up quota."""

from __future__ import annotations

from collections.abc import Callable

from infra.chat import ChatModel, ChatReply, ChatRequest, OnText
from infra.errors import EndpointDown, ErrorKind, ProviderError

FATAL = frozenset({ErrorKind.AUTH, ErrorKind.MODEL_NOT_FOUND, ErrorKind.QUOTA})
"""Errors that every further attempt at the same model would have too."""

_IN_A_ROW = 3


class Breaker:
    """Turns a fatal error of an attempt into the end of the run.

    A model that has never replied is given up at its first fatal error, one that has after three in
    a row: an endpoint can have a bad moment, during which `Retry` makes the call again.

    Args:
        inner: The model that is called.
        name: The model, for the message.
        is_background: Whether calls with this role are background calls, which end no run.
    """

    def __init__(
        self,
        inner: ChatModel,
        name: str,
        *,
        is_background: Callable[[str], bool] = lambda role: False,
    ) -> None:
        self._inner = inner
        self._name = name
        self._is_background = is_background
        self._has_replied = False
        self._fatal_in_a_row = 0

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`.

        Raises:
            EndpointDown: The model can only fail.
        """
        try:
            reply = await self._inner.generate(request, on_text)
        except ProviderError as error:
            error.has_replied_before = self._has_replied
            if error.kind in FATAL and not self._is_background(request.labels.role):
                self._fatal_in_a_row += 1
                if not self._has_replied or self._fatal_in_a_row >= _IN_A_ROW:
                    raise EndpointDown(f"{self._name} is out of reach: {error}") from error
            raise
        self._has_replied, self._fatal_in_a_row = True, 0
        return reply
