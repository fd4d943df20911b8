"""The ledger of a run, `calls.jsonl`, by case, and its tokens as Inspect counts them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from inspect_ai.model import ModelUsage

from infra.chat import TokenUsage
from infra.ledger import CallRow, Totals
from mdagents.records.calls import calls_at, read_calls
from mdagents.records.sample import EXAID_ROLES
from mdagents.scoring.fields import count_of, number_of, object_of
from mdagents.scoring.result_file import reading


def asked(call: CallRow) -> str:
    """Return the model that was asked, as Inspect names it: `provider/model`."""
    return f"{call.provider}/{call.model_requested}"


def is_of_exaid(call: CallRow) -> bool:
    """Return whether EXAID made a call."""
    return call.role in EXAID_ROLES


def model_usage(totals: Totals) -> ModelUsage:
    """Return tokens as Inspect counts them: input without what the prompt cache served."""
    usage = totals.usage
    return ModelUsage(
        input_tokens=usage.input_tokens - usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_cache_read=usage.cached_input_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_cost=None if totals.cost_usd is None else round(totals.cost_usd, 8),
    )


def usages(sums: Mapping[str, Totals]) -> dict[str, ModelUsage]:
    """Return the tokens of each name, for those that replied."""
    return {name: model_usage(totals) for name, totals in sums.items() if totals.calls}


class Spending:
    """Tokens by model, `provider/model`, and by role."""

    def __init__(self) -> None:
        self.by_model: defaultdict[str, Totals] = defaultdict(Totals)
        self.by_role: defaultdict[str, Totals] = defaultdict(Totals)

    def add(self, model: str, role: str, totals: Totals) -> None:
        """Count what `role` has used of `model`."""
        self.by_model[model] += totals
        self.by_role[role] += totals

    def add_call(self, call: CallRow) -> None:
        """Count a row of the ledger."""
        self.add(asked(call), call.role, Totals.of(call))

    def add_record(self, record: Mapping[str, Any], models: Mapping[str, str]) -> None:
        """Count what a record states, for a question whose calls are not known.

        Args:
            record: Of a question.
            models: Role -> model that was asked for; empty for another program's file.
        """
        team, exaid = object_of(record, "token_usage"), object_of(record, "exaid")
        served = str(record.get("model") or "unknown")
        for counts, role, model in (
            (team, "team", models.get("expert", served)),
            (object_of(exaid, "token_usage"), "exaid", models.get("summarizer", served)),
        ):
            usage = TokenUsage(*(count_of(counts.get(name)) or 0 for name in TokenUsage.__slots__))
            if usage.total_tokens:
                self.add(model, role, Totals(1, 0, usage, number_of(counts.get("cost_usd"))))


class CallFile:
    """`calls.jsonl`, read once from end to end and then case by case.

    Args:
        path: The file; a run without it has made no calls.

    Raises:
        ConfigError: It cannot be read; names the line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[str, array[int]] = {}
        self.spent = Spending()
        """Over all rows."""
        with reading(path):
            for offset, call in read_calls(path):
                self._offsets.setdefault(call.case_id, array("Q")).append(offset)
                self.spent.add_call(call)

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._offsets

    def attempts(self, case_id: str, starts: Sequence[int]) -> list[list[CallRow]]:
        """Return the calls of a case in the order in which they began, by attempt.

        Each start of the program answers a question once, so that its calls are one attempt at it.

        Args:
            case_id: The case.
            starts: When the program was started, in ms since 1970 UTC, in order.
        """
        if case_id not in self:
            return []
        calls = sorted(calls_at(self._path, self._offsets[case_id]), key=lambda c: c.started_ms)
        by_start = groupby(calls, key=lambda call: bisect_right(starts, call.started_ms))
        return [list(attempt) for _, attempt in by_start]


def attempt_of(record: Mapping[str, Any], attempts: Sequence[list[CallRow]]) -> list[CallRow]:
    """Return the calls of the attempt that a record is of: the last with its token count.

    The last attempt where the count fits none; no calls without an attempt.
    """
    used = count_of(object_of(record, "token_usage").get("total_tokens"))
    for calls in reversed(attempts):
        if used == sum(call.usage.total_tokens for call in calls if not is_of_exaid(call)):
            return calls
    return attempts[-1] if attempts else []
