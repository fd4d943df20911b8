"""Budgets of a study, a run and a question, in tokens, money and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run as its manifest records them; None: no limit."""

    run_tokens: int | None = None
    """Tokens sent and received over all invocations of the run, EXAID included."""
    run_cost: float | None = None
    """USD paid over all invocations of the run."""
    sample_tokens: int | None = None
    """Tokens of one question, fresh and from the cache."""
    sample_seconds: float | None = None
    """Seconds of wall time for one question."""


class Budget:
    """Tokens and money that may be spent, checked before each call.

    No call starts once a limit is reached, but calls in progress finish and may exceed it by their
    own size.

    Args:
        spent: Returns the tokens and USD spent so far; USD are None when a price is unknown.
        tokens: Maximum number of tokens; None: no limit.
        cost: Maximum cost in USD; None: no limit.
        reached: What has reached its limit, with the name of the limit, as `the run has reached
            --token-limit`; the same for the cost.
        within: Budget that this one is part of; it is checked first.
    """

    def __init__(
        self,
        spent: Callable[[], tuple[int, float | None]] = lambda: (0, 0.0),
        *,
        tokens: int | None = None,
        cost: float | None = None,
        reached: tuple[str, str] = ("", ""),
        within: Budget | None = None,
    ) -> None:
        self._spent = spent
        self._tokens = tokens
        self._cost = cost
        self._reached = reached
        self._within = within
        self._exhausted = ""

    def check(self) -> None:
        """Check that something is left.

        Raises:
            LimitExceeded: A limit is reached.
        """
        if self._within is not None:
            self._within.check()
        if self._exhausted:
            raise LimitExceeded(self._exhausted)
        if self._tokens is None and self._cost is None:
            return
        tokens, cost = self._spent()
        of_tokens, of_cost = self._reached
        if self._tokens is not None and tokens >= self._tokens:
            raise LimitExceeded(f"{of_tokens} {self._tokens}")
        if self._cost is not None and cost is not None and cost >= self._cost:
            raise LimitExceeded(f"{of_cost} {self._cost:g}")

    @property
    def check_if_limited(self) -> Callable[[], None] | None:
        """`check`; None if there is no limit to check."""
        is_within = self._within is not None and self._within.check_if_limited is not None
        is_limited = is_within or self._tokens is not None or self._cost is not None
        return self.check if is_limited else None

    @property
    def is_exhausted(self) -> bool:
        """Whether a limit is reached."""
        try:
            self.check()
        except LimitExceeded:
            return True
        return False

    def exhaust(self, reason: str) -> None:
        """Let all further checks fail, because another process has found a limit reached."""
        self._exhausted = reason


class Limited:
    """Checks before each call whether its budget allows it.

    Args:
        inner: Model to call.
        budget: Budget of the caller.
    """

    def __init__(self, inner: ChatModel, budget: Budget) -> None:
        self._inner = inner
        self._budget = budget
        self.is_small = getattr(inner, "is_small", False)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request, unless a limit is reached.

        Raises:
            LimitExceeded: The budget is used up.
        """
        self._budget.check()
        return await self._inner.generate(request, on_text)
