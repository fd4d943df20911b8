"""Checks of a summary by the caller's own rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from exaid_core.channel import one_line
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.shorten import shorten
from infra.errors import BenchError

Validator: TypeAlias = Callable[[AgentSummary, str], Iterable[str]]
"""Takes a summary and the text that it was made from; gives what it finds, in words."""

MAX_REMARKS = 20
"""Most findings of a validator that are kept: it may be a generator that never ends."""

MAX_REMARK_CHARS = 200


class ValidatorError(BenchError):
    """A validator failed. The exception that it raised is the cause."""


@dataclass(frozen=True, slots=True)
class Validated:
    """What validators made of a summary."""

    remarks: tuple[str, ...]
    """Their findings, each once and on one line, in the order of the validators."""
    errors: tuple[ValidatorError, ...]
    """One for each validator that failed; nothing that it found is kept."""


def run_validators(validators: Sequence[Validator], summary: AgentSummary, text: str) -> Validated:
    """Let each validator look at a summary; one that fails keeps no other from its turn.

    Args:
        validators: In the order in which they are asked.
        summary: With its provenance and the results of our own checks.
        text: What the summary was made from.
    """
    remarks: dict[str, None] = {}
    errors = []
    for validator in validators:
        try:
            found = _findings(validator, summary, text)
        except Exception as error:  # noqa: BLE001 - a validator is foreign code
            name = getattr(validator, "__qualname__", type(validator).__qualname__)
            failed = ValidatorError(f"{name} raised {type(error).__name__}: {error}")
            failed.__cause__ = error
            errors.append(failed)
        else:
            remarks |= dict.fromkeys(found)
    return Validated(tuple(remarks), tuple(errors))


def _findings(validator: Validator, summary: AgentSummary, text: str) -> list[str]:
    found = validator(summary, text)
    if isinstance(found, str):  # its characters would be taken for findings
        raise TypeError("a validator returns a list of texts, not one text")
    lines = [one_line(remark) for remark in islice(found, MAX_REMARKS)]
    return [shorten(line, MAX_REMARK_CHARS) for line in lines if line]
