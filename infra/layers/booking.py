"""Writes every attempt at a provider into the ledger."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from infra.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from infra.clock import Clock
from infra.errors import ProviderError, StorageError
from infra.ledger import CallRow, Ledger, Price

OUTCOMES = {
    StopReason.STOP: "ok",
    StopReason.LENGTH: "truncated",
    StopReason.REFUSAL: "refused",
}
"""Why a reply ended -> the outcome of its row."""


class Booking:
    """Books a row for each attempt, whatever its outcome.

    Args:
        inner: The provider.
        ledger: The ledger that takes the rows.
        provider: Name of the provider, for the row.
        model: The model that is asked for, for the row.
        price: Of that model, or None when it is not known.
        clock: For the start and the latency.
        log_prompts: Whether a row holds prompt and reply as well.
    """

    def __init__(
        self,
        inner: ChatModel,
        ledger: Ledger,
        *,
        provider: str,
        model: str,
        price: Price | None,
        clock: Clock,
        log_prompts: bool = False,
    ) -> None:
        self._inner = inner
        self._ledger = ledger
        self._provider = provider
        self._model = model
        self._price = price
        self._clock = clock
        self._log_prompts = log_prompts

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`; the reply has the latency of this attempt."""
        started_at = self._clock.timestamp()
        started = self._clock.monotonic()
        try:
            reply = await self._inner.generate(request, on_text)
        except ProviderError as error:
            self._book(request, error.kind.value, started_at, started)
            raise
        except BaseException:
            # A full disk must not hide the cancellation from the code that asked for it.
            with contextlib.suppress(StorageError):
                self._book(request, "aborted", started_at, started)
            raise
        latency = self._book(request, OUTCOMES[reply.stop_reason], started_at, started, reply)
        return replace(reply, latency=latency)

    def _book(
        self,
        request: ChatRequest,
        outcome: str,
        started_at: str,
        started: float,
        reply: ChatReply | None = None,
    ) -> float:
        """Add the row of an attempt that ends now, and return its latency in seconds."""
        latency = self._clock.monotonic() - started
        usage = TokenUsage() if reply is None else reply.usage
        prompt, text = None, None
        if self._log_prompts:
            prompt = tuple(message.content for message in request.messages)
            text = "" if reply is None else reply.text
        self._ledger.add(
            CallRow(
                started_at=started_at,
                case_id=request.labels.case_id,
                phase=request.labels.phase,
                agent=request.labels.agent,
                role=request.labels.role,
                provider=self._provider,
                model_requested=self._model,
                model="" if reply is None else reply.model,
                attempt=request.attempt,
                waited=round(request.waited, 4),
                latency=round(latency, 4),
                outcome=outcome,
                usage=usage,
                cost_usd=None if self._price is None else self._price.of(usage),
                prompt=prompt,
                reply=text,
            )
        )
        return latency
