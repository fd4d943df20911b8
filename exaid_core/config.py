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


@dataclass(frozen=True, slots=True)
class ExaidConfig:
    """When EXAID summarises, and how much of the past its prompts hold."""

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
    `infra`. A local model always has as long as a call has."""
    call_timeout: float | None = 30.0
    """Seconds for a call to a model, all its attempts included, so that no caller waits longer;
    None: as long as the model takes. A local model always has as long as it takes."""
    behind_after: float | None = 6.0
    """Seconds after which published text that still waits is summarised without a judgement: EXAID
    has fallen behind, and one call for all the text catches up. None: never."""
    validators: tuple[Validator, ...] = ()
    """Checks of your own, asked in this order after each summary: what they find is in its
    `remarks`. They run in the event loop, between the summary and those who wait for it."""
