"""Runs the caller's own checks on summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from exaid_core.checks.shortening import shorten
from exaid_core.schema.agent_summary import AgentSummary
from mdagents_llm.text import one_line

Validator: TypeAlias = Callable[[AgentSummary, str], Iterable[str]]
"""A function from a summary and the text that it was made from to its findings, in words."""

MAX_REMARKS = 20
"""Maximum number of findings kept per validator, which may be an endless generator."""

MAX_REMARK_CHARS = 200


def run_validators(
    validators: Sequence[Validator],
    summary: AgentSummary,
    text: str,
    on_error: Callable[[Exception], None],
) -> tuple[str, ...]:
    """Return the findings of validators on a summary, on one line each and without duplicates.

    Args:
        validators: Validators, called in this order.
        summary: Summary with its provenance and the results of our own checks.
        text: Text that the summary was made from.
        on_error: Callback for an exception of a validator, whose findings are then dropped; the
            other validators still run.
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
    if isinstance(found, str):  # otherwise its characters would count as findings
        raise TypeError("a validator returns a list of texts, not one text")
    lines = [one_line(remark) for remark in islice(found, MAX_REMARKS)]
    return [shorten(line, MAX_REMARK_CHARS) for line in lines if line]
