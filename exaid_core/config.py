"""The settings of EXAID."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from exaid_core.policy import TriggerPolicy
from exaid_core.token_gate.token_gate import RUNTIME, GateProfile

if TYPE_CHECKING:
    from exaid_core.checks.check import Check

VARIANTS = {
    TriggerPolicy.FULL_EXAID: "V0",
    TriggerPolicy.TURN_END: "V1",
    TriggerPolicy.NO_BUFFER: "V2",
    TriggerPolicy.NO_TOKENGATE: "V3",
    TriggerPolicy.NO_NOVELTY: "V4",
}
"""Variant id in docs/how-to/evals.md of each policy."""

JUDGED = frozenset({TriggerPolicy.FULL_EXAID, TriggerPolicy.NO_TOKENGATE, TriggerPolicy.NO_NOVELTY})
"""Policies under which the buffer agent decides."""

_ABOVE_ZERO = frozenset({"attempt_timeout", "call_timeout", "chunk_ctu"})
_MAY_BE_NONE = frozenset({"attempt_timeout", "call_timeout", "first_after", "behind_after"})
_NUMBERS = frozenset(
    {
        *("chunk_ctu", "history_k", "history_ctu", "context_ctu", "max_buffer_ctu"),
        *("max_buffer_age", "linger", "longest_linger"),
    }
)


@dataclass(frozen=True, slots=True)
class ExaidConfig:
    """Settings for when EXAID summarizes and how much of the past its prompts hold.

    Raises:
        TypeError: A setting has the wrong type.
        ValueError: The policy is unknown, a number is negative, or a time limit is 0.
    """

    policy: TriggerPolicy = TriggerPolicy.FULL_EXAID
    gate: GateProfile = RUNTIME
    """Chunking profile for the policies with a TokenGate."""
    chunk_ctu: int = 125
    """Size of a chunk in CTU, for `no_tokengate`."""
    history_k: int = 3
    """Number of summaries in a prompt besides the latest."""
    history_ctu: int = 240
    """Maximum CTU of the `history_k` summaries; the oldest are dropped first."""
    context_ctu: int = 150
    """Maximum CTU of unsummarized earlier text that is shown when new text is judged."""
    max_buffer_ctu: int = 1200
    """Buffer size in CTU beyond which a summary is forced."""
    max_buffer_age: float = 60.0
    """Seconds between the oldest and newest buffered text beyond which a summary is forced."""
    coalesce: bool = True
    """Whether text that arrives during a decision is judged together in the next one."""
    linger: float = 0.5
    """Seconds that published text waits to be judged together with the text that follows; if the
    last decision took longer, as long as that. Critical alerts and text from `received_trace` do
    not wait."""
    longest_linger: float = 5.0
    """Upper bound in seconds on the `linger` wait that follows a slow decision."""
    first_after: float | None = 4.0
    """Seconds after the first published word within which the first summary starts, without a
    judgment because all text is new; sooner once there are enough words for a chunk of the gate.
    None judges the first text like any other. Used only with `coalesce`."""
    attempt_timeout: float | None = 10.0
    """Timeout in seconds of one attempt at an endpoint, for the models that EXAID creates itself;
    None uses the one of `mdagents_llm`. An attempt at a local model is limited only by its call."""
    call_timeout: float | None = 30.0
    """Timeout in seconds of a model call, all attempts included, so that no caller waits longer;
    None waits as long as the model takes. Calls to a local model have no timeout."""
    behind_after: float | None = 6.0
    """Seconds after which published text that is still waiting is summarized without a judgment:
    EXAID has fallen behind, and one call for all the text catches up. None never skips the
    judgment. Used only with `coalesce`."""
    checks: tuple[Check, ...] = ()
    """Checks of your own, called in this order after each summary; findings join its `remarks`.
    They run in the event loop, before the summary is delivered."""

    def __post_init__(self) -> None:
        if self.policy not in set(TriggerPolicy):
            raise ValueError(f"policy is {self.policy!r} but must be {', '.join(TriggerPolicy)}")
        object.__setattr__(self, "policy", TriggerPolicy(self.policy))
        if not isinstance(self.gate, GateProfile):
            raise TypeError(f"gate must be a GateProfile, not {type(self.gate).__name__}")
        if callable(self.checks) or not all(map(callable, self.checks)):
            raise TypeError("checks must be a tuple of functions")
        for name in _MAY_BE_NONE | _NUMBERS:
            value = getattr(self, name)
            if value is None and name in _MAY_BE_NONE:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, not {type(value).__name__}")
            if not value >= 0 or (value == 0 and name in _ABOVE_ZERO):
                bound = "above 0" if name in _ABOVE_ZERO else "at least 0"
                raise ValueError(f"{name} is {value} but must be {bound}")
