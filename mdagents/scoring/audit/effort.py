"""What a run paid for before and after the first opinions of each question, by its ledger."""

from __future__ import annotations

import re
import sys
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path

from mdagents.records.calls import read_calls
from mdagents.scoring.result_file import reading
from mdagents.settings import EXAID_ROLES
from mdagents_llm.ledger import add_costs

_BEFORE = re.compile(
    r"route|recruit|opinion|answer|sample|(?:iat|mdt\d+)-(?:delegate|investigate|synthesise)"
)
"""Phases up to the first opinions."""


@dataclass(slots=True)
class Effort:
    """Calls and tokens of the team and the router for one question."""

    tokens: int = 0
    tokens_after: int = 0
    """Tokens after the first opinions."""
    calls_after: int = 0
    cost: float | None = 0.0
    """USD; None where a price is not known."""
    cost_after: float | None = 0.0
    models: dict[str, str] = field(default_factory=dict)
    """Agent -> model that replied to it."""


def efforts_of(folder: Path, wanted: Container[tuple[str, int]]) -> dict[tuple[str, int], Effort]:
    """Read the ledger of a run in one pass.

    Args:
        folder: Folder of the run.
        wanted: (`case_id`, `restart`) of each record; rows of other attempts do not count.

    Returns:
        (`case_id`, `restart`) -> effort; empty when the run has no ledger.

    Raises:
        ConfigError: The ledger cannot be read; the message names the damaged line.
    """
    found: dict[tuple[str, int], Effort] = {}
    path = folder / "calls.jsonl"
    with reading(path):
        for _, call in read_calls(path):
            key = call.case_id, call.restart
            if key not in wanted or call.role in EXAID_ROLES:
                continue
            effort = found.setdefault(key, Effort())
            tokens = call.usage.total_tokens
            if call.model:
                effort.models[sys.intern(call.agent)] = sys.intern(call.model)
            effort.tokens += tokens
            effort.cost = add_costs(effort.cost, call.cost_usd)
            if not _BEFORE.fullmatch(call.phase):
                effort.tokens_after += tokens
                effort.calls_after += 1
                effort.cost_after = add_costs(effort.cost_after, call.cost_usd)
    return found
