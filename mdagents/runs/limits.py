"""Budgets of the run and of a question, in tokens, money and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None: no limit.

    Limits are checked before each call, those of the run when the call gets its connection. No call
    starts once a limit is reached, but calls in progress finish and may exceed it by their own
    size.
    """

    run_tokens: int | None = None
    """Tokens sent and received over all invocations of the run, EXAID included."""
    run_cost: float | None = None
    """USD paid over all invocations of the run."""
    sample_tokens: int | None = None
    """Tokens of one question, fresh and from the cache."""
    sample_seconds: float | None = None
    """Seconds of wall time for one question."""

    def check_run(self, tokens: int, cost: float | None) -> None:
        """Check what the run has spent against its limits.

        Args:
            tokens: Tokens sent and received.
            cost: USD; None when a price is unknown.

        Raises:
            LimitExceeded: A limit of the run is reached.
        """
        if self.run_tokens is not None and tokens >= self.run_tokens:
            raise LimitExceeded(f"the run has reached --token-limit {self.run_tokens}")
        if self.run_cost is not None and cost is not None and cost >= self.run_cost:
            raise LimitExceeded(f"the run has reached --cost-limit {self.run_cost:g}")

    def check_sample(self, tokens: int) -> None:
        """Check the tokens that a question has used against its limit.

        Raises:
            LimitExceeded: The limit of a question is reached.
        """
        if self.sample_tokens is not None and tokens >= self.sample_tokens:
            raise LimitExceeded(
                f"the question has reached --sample-token-limit {self.sample_tokens}"
            )


class Limited:
    """Checks before each call whether it may still be made.

    Args:
        inner: Model to call.
        check: Raises LimitExceeded when no further call may be made.
    """

    def __init__(self, inner: ChatModel, check: Callable[[], None]) -> None:
        self._inner = inner
        self._check = check
        self.is_small = getattr(inner, "is_small", False)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request, unless a limit is reached.

        Raises:
            LimitExceeded: A budget is used up.
        """
        self._check()
        return await self._inner.generate(request, on_text)
