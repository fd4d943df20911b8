"""Checks of a summary by the caller's own rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from exaid_core.channel import one_line
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.shorten import shorten

Validator: TypeAlias = Callable[[AgentSummary, str], Iterable[str]]
"""Takes a summary and the text that it was made from; gives what it finds, in words."""

MAX_REMARKS = 20
"""Most findings of a validator that are kept: it may be a generator that never ends."""

MAX_REMARK_CHARS = 200


def run_validators(
    validators: Sequence[Validator],
    summary: AgentSummary,
    text: str,
    on_error: Callable[[Exception], None],
) -> tuple[str, ...]:
    """Return what validators find in a summary, each once and on one line, in their order.

    Args:
        validators: In the order in which they are asked.
        summary: With its provenance and the results of our own checks.
        text: What the summary was made from.
        on_error: Told when one raises; nothing that it found is kept, and the others have their
            turn.
    """
    remarks: dict[str, None] = {}
    for validator in validators:
        try:
            remarks |= dict.fromkeys(_findings(validator, summary, text))
        except Exception as error:  # noqa: BLE001 - a validator is foreign code
            on_error(error)
    return tuple(remarks)


def _findings(validator: Validator, summary: AgentSummary, text: str) -> list[str]:
    found = validator(summary, text)
    if isinstance(found, str):  # its characters would be taken for findings
        raise TypeError("a validator returns a list of texts, not one text")
    lines = [one_line(remark) for remark in islice(found, MAX_REMARKS)]
    return [shorten(line, MAX_REMARK_CHARS) for line in lines if line]
