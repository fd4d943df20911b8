"""Flags of the calls of models, and the limits of a run and of a question."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mdagents.runs.budget import Limits
from mdagents.runs.flags.bounds import AtLeast1, NotNegative, Positive
from mdagents.runs.flags.flag import Flags, StartFlag
from mdagents_llm.layers.attempt import ATTEMPT_TIMEOUT
from mdagents_llm.layers.retry import RetryPolicy


class CallFlags(Flags):
    """How many calls are made, how long they may take, and what they may cost."""

    max_connections: Annotated[
        AtLeast1 | None, StartFlag("concurrent calls to an endpoint [16; local 2]")
    ] = None
    max_samples: Annotated[
        AtLeast1 | None,
        StartFlag("concurrent questions [2 per connection; local 1 per connection; batch 500]"),
    ] = None
    max_retries: Annotated[
        int, Field(ge=0), StartFlag("retries of a failed call, besides waits for a limit")
    ] = 5
    timeout: Annotated[Positive, StartFlag("stop retrying a call after S seconds", "S")] = 600.0
    attempt_timeout: Annotated[
        Positive | None,
        StartFlag(
            f"timeout of one attempt, in seconds [{ATTEMPT_TIMEOUT:g}; local: as --timeout]", "S"
        ),
    ] = None
    hedge_after: Annotated[
        Positive | None, StartFlag("send a second request after S silent seconds [never]", "S")
    ] = None
    rpm: Annotated[Positive | None, StartFlag("requests per minute at an endpoint [no limit]")] = (
        None
    )
    tpm: Annotated[Positive | None, StartFlag("tokens per minute at an endpoint [no limit]")] = None
    token_limit: Annotated[AtLeast1 | None, StartFlag("maximum tokens of the run [none]")] = None
    cost_limit: Annotated[Positive | None, StartFlag("maximum cost of the run [none]", "USD")] = (
        None
    )
    sample_token_limit: Annotated[
        AtLeast1 | None, StartFlag("maximum tokens of a question [none]")
    ] = None
    sample_time_limit: Annotated[
        Positive | None, StartFlag("maximum seconds of a question [none]", "S")
    ] = None
    fail_on_error: Annotated[
        NotNegative | None,
        StartFlag(
            "stop after more than X api errors (a count, or a fraction below 1) [never]", "X"
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Limits of the run and of a question."""
        return Limits(
            run_tokens=self.token_limit,
            run_cost=self.cost_limit,
            sample_tokens=self.sample_token_limit,
            sample_seconds=self.sample_time_limit,
        )

    @property
    def retry(self) -> RetryPolicy:
        """Number of retries and total timeout of a call."""
        return RetryPolicy(max_retries=self.max_retries, timeout=self.timeout)
