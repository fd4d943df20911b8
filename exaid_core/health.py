"""Health of EXAID: counts the outcomes of its calls and reports failures."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from inspect import iscoroutinefunction

from mdagents_llm.errors import BenchError, ConfigError, EndpointDown, ProviderError, message_of
from mdagents_llm.layers.retry import FATAL

_LOG = logging.getLogger("exaid_core")

_FAILING_FROM = 3
"""Number of consecutive failures from which on a role counts as failing."""


class HealthState(StrEnum):
    """Whether EXAID can be relied on to deliver summaries."""

    OK = "ok"
    DEGRADED = "degraded"
    """The last call of a role failed."""
    FAILING = "failing"
    """Three consecutive calls of a role failed, or every further call will fail: a wrong key, an
    unknown model, an unreachable endpoint."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed model call, subscriber or check."""

    source: str
    """Role of a failed model, `summarizer` or `buffer_agent`; else `subscriber` or `check`."""
    message: str
    """Reason for the failure, on one line."""
    in_a_row: int = 1
    """Number of consecutive failed calls of the role, including this one."""
    alerts: tuple[str, ...] = ()
    """Critical alerts, verbatim, in the text that the failure leaves without a summary."""
    error: Exception | None = None
    """Exception behind the failure; None without one."""

    @property
    def is_lasting(self) -> bool:
        """Whether every further call would fail in the same way."""
        if isinstance(self.error, ProviderError):
            return self.error.kind in FATAL
        return isinstance(self.error, ConfigError | EndpointDown | AttributeError | TypeError)


@dataclass(frozen=True, slots=True)
class Health:
    """Health of EXAID at one moment."""

    state: HealthState
    calls: int
    """Number of judgments and summaries requested so far."""
    failed: int
    """Number of failed `calls`."""
    last_failure: Failure | None
    """Latest failure from any source; None if nothing has failed."""


class Monitor:
    """Counts the outcomes of calls and reports failures.

    Changes of the state are logged to the logger `exaid_core`. Log messages never contain text of
    agents or models: they name foreign exceptions by type only.

    Args:
        on_error: Callback for each failure.

    Raises:
        TypeError: `on_error` is not callable, or is async, which nobody would await.
    """

    def __init__(self, on_error: Callable[[Failure], object]) -> None:
        if not callable(on_error):
            raise TypeError(f"on_error must be a function, not {type(on_error).__name__}")
        if iscoroutinefunction(on_error):
            raise TypeError("on_error must be a function, not an async one: it is not awaited")
        self._on_error = on_error
        self._in_a_row: Counter[str] = Counter()
        self._failing: dict[str, Failure] = {}
        self._calls = self._failed = 0
        self._last: Failure | None = None
        self._state = HealthState.OK

    @property
    def health(self) -> Health:
        """Health at this moment."""
        return Health(self._state, self._calls, self._failed, self._last)

    def call_succeeded(self, role: str) -> None:
        """Count a successful call."""
        self._calls += 1
        del self._in_a_row[role]
        self._failing.pop(role, None)
        self._review()

    def call_failed(
        self, role: str, message: str, error: Exception | None, alerts: tuple[str, ...] = ()
    ) -> None:
        """Count a failed call, and report it."""
        self._calls += 1
        self._failed += 1
        self._in_a_row[role] += 1
        failure = Failure(role, message, self._in_a_row[role], alerts, error)
        self._failing[role] = failure
        self._tell(failure)
        self._review()

    def broke(self, source: str, error: Exception) -> None:
        """Report an exception in a function of the caller's; the state does not change."""
        message = f"{type(error).__name__}: {' '.join(message_of(error).split())}"
        _LOG.warning("a %s of EXAID raised %s", source, type(error).__name__)
        self._tell(Failure(source, message, error=error))

    def _tell(self, failure: Failure) -> None:
        self._last = failure
        try:
            self._on_error(failure)
        except Exception as error:  # noqa: BLE001 - it is the caller's, and no error may get lost
            _LOG.warning("on_error of EXAID raised %s", type(error).__name__)

    def _review(self) -> None:
        failing = [
            failure
            for failure in self._failing.values()
            if failure.is_lasting or failure.in_a_row >= _FAILING_FROM
        ]
        state = HealthState.DEGRADED if self._failing else HealthState.OK
        state = HealthState.FAILING if failing else state
        if state is self._state:
            return
        self._state = state
        if state is HealthState.OK:
            _LOG.info("EXAID is ok again")
            return
        failure = (failing or list(self._failing.values()))[-1]
        level = logging.ERROR if failing else logging.WARNING
        _LOG.log(level, "EXAID is %s: %s: %s", state, failure.source, _loggable(failure))


def _loggable(failure: Failure) -> str:
    error = failure.error
    if isinstance(error, ProviderError):  # the endpoint wrote its message, which may quote a prompt
        return f"{error.kind.value}, status {error.status}" if error.status else error.kind.value
    is_ours = error is None or isinstance(error, BenchError)
    return failure.message if is_ours else type(error).__name__
