"""The settings of EXAID."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from exaid_core.policy import TriggerPolicy
from exaid_core.token_gate.token_gate import RUNTIME, GateProfile

if TYPE_CHECKING:
    from exaid_core.validators import Validator

VARIANTS = {
    TriggerPolicy.FULL_EXAID: "V0",
    TriggerPolicy.TURN_END: "V1",
    TriggerPolicy.NO_BUFFER: "V2",
    TriggerPolicy.NO_TOKENGATE: "V3",
    TriggerPolicy.NO_NOVELTY: "V4",
}
"""Policy -> variant of docs/evals.md."""

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
    """When EXAID summarises, and how much of the past its prompts hold.

    Raises:
        TypeError: A setting is of another type.
        ValueError: There is no such policy, or a number is below 0, or a time limit is 0.
    """

    policy: TriggerPolicy = TriggerPolicy.FULL_EXAID
    gate: GateProfile = RUNTIME
    """For the policies with a TokenGate."""
    chunk_ctu: int = 125
    """CTU of a chunk, for `no_tokengate`."""
    history_k: int = 3
    """Summaries in a prompt, apart from the latest."""
    history_ctu: int = 240
    """Most CTU of those; the oldest are left out first."""
    context_ctu: int = 150
    """CTU of text waiting for its summary that is shown when new text is judged."""
    max_buffer_ctu: int = 1200
    """CTU beyond which a summary is forced."""
    max_buffer_age: float = 60.0
    """Seconds between the oldest and the newest waiting text beyond which one is forced."""
    coalesce: bool = True
    """Whether text that arrives during a decision is judged together in the next one."""
    linger: float = 0.5
    """Seconds that published text waits to be judged with text that follows; as long as the last
    decision took, if that is longer. A critical alert does not wait, nor does text that was handed
    over by `received_trace`."""
    longest_linger: float = 5.0
    """Most seconds of that wait."""
    first_after: float | None = 4.0
    """Seconds after the first published word within which the first summary is begun, without a
    judgement, since all text is new then; sooner when there are enough words for a chunk of the
    gate. None: the first text is judged like any other. Only with `coalesce`, like the next."""
    attempt_timeout: float | None = 10.0
    """Seconds for one attempt at an endpoint, of the models that EXAID makes itself; None: those of
    `mdagents_llm`. A local model always has as long as a call has."""
    call_timeout: float | None = 30.0
    """Seconds for a call to a model, all its attempts included, so that no caller waits longer;
    None: as long as the model takes. A local model always has as long as it takes."""
    behind_after: float | None = 6.0
    """Seconds after which published text that still waits is summarised without a judgement: EXAID
    has fallen behind, and one call for all the text catches up. None: never."""
    validators: tuple[Validator, ...] = ()
    """Checks of your own, asked in this order after each summary: what they find is in its
    `remarks`. They run in the event loop, between the summary and those who wait for it."""

    def __post_init__(self) -> None:
        if self.policy not in set(TriggerPolicy):
            raise ValueError(f"policy is {self.policy!r} but must be {', '.join(TriggerPolicy)}")
        object.__setattr__(self, "policy", TriggerPolicy(self.policy))
        if not isinstance(self.gate, GateProfile):
            raise TypeError(f"gate must be a GateProfile, not {type(self.gate).__name__}")
        if callable(self.validators) or not all(map(callable, self.validators)):
            raise TypeError("validators must be a tuple of functions")
        for name in _MAY_BE_NONE | _NUMBERS:
            value = getattr(self, name)
            if value is None and name in _MAY_BE_NONE:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, not {type(value).__name__}")
            if not value >= 0 or (value == 0 and name in _ABOVE_ZERO):
                bound = "above 0" if name in _ABOVE_ZERO else "at least 0"
                raise ValueError(f"{name} is {value} but must be {bound}")
