"""Whether EXAID works: what its calls came to, and who is told when one gives nothing."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from inspect import iscoroutinefunction

from mdagents_llm.errors import BenchError, ConfigError, EndpointDown, ProviderError
from mdagents_llm.layers.retry import FATAL

_LOG = logging.getLogger("exaid_core")

_FAILING_FROM = 3
"""Failures in a row that are no bad moment any more."""


class HealthState(StrEnum):
    """Whether summaries can be relied on to come."""

    OK = "ok"
    DEGRADED = "degraded"
    """The last call of a role gave nothing."""
    FAILING = "failing"
    """Three calls of a role in a row gave nothing, or every further one will: a wrong key, an
    unknown model, an endpoint that cannot be reached."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that EXAID asked for and did not get."""

    source: str
    """`summarizer` or `buffer_agent`, whose model failed; `subscriber` or `validator`, of yours."""
    message: str
    """Why, on one line."""
    in_a_row: int = 1
    """How many calls of a role have failed one after the other, this one included."""
    alerts: tuple[str, ...] = ()
    """Critical alerts in the text that has no summary because of it, in their own words."""
    error: Exception | None = None
    """The exception, if there was one."""

    @property
    def is_lasting(self) -> bool:
        """Whether every further call would fail the same way."""
        if isinstance(self.error, ProviderError):
            return self.error.kind in FATAL
        return isinstance(self.error, ConfigError | EndpointDown | AttributeError | TypeError)


@dataclass(frozen=True, slots=True)
class Health:
    """How EXAID is at a moment."""

    state: HealthState
    calls: int
    """Judgements and summaries asked for so far."""
    failed: int
    """Those that gave nothing."""
    last_failure: Failure | None
    """The latest failure of any source."""


class Monitor:
    """Counts what calls came to, and tells of failures.

    A change of the state is a record of the logger `exaid_core`. Records never hold text of agents
    or models: of an exception that is not ours they name the type only.

    Args:
        on_error: Told of each failure.

    Raises:
        TypeError: It is no function, or an async one, which nobody would await.
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
        """How it is now."""
        return Health(self._state, self._calls, self._failed, self._last)

    def call_succeeded(self, role: str) -> None:
        """Count a call that gave what was asked for."""
        self._calls += 1
        del self._in_a_row[role]
        self._failing.pop(role, None)
        self._review()

    def call_failed(
        self, role: str, message: str, error: Exception | None, alerts: tuple[str, ...] = ()
    ) -> None:
        """Count a call that gave nothing, and tell of it."""
        self._calls += 1
        self._failed += 1
        self._in_a_row[role] += 1
        failure = Failure(role, message, self._in_a_row[role], alerts, error)
        self._failing[role] = failure
        self._tell(failure)
        self._review()

    def broke(self, source: str, error: Exception) -> None:
        """Tell of an exception in a function of the caller's, which changes no state."""
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
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
    if isinstance(error, ProviderError):  # its words are the endpoint's, which may quote a prompt
        return f"{error.kind.value}, status {error.status}" if error.status else error.kind.value
    is_ours = error is None or isinstance(error, BenchError)
    return failure.message if is_ours else type(error).__name__
