"""Token usage of a run as Inspect counts it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import ModelUsage

from mdagents.scoring.fields import amount_of, count_of, object_of, tokens_of
from mdagents_llm.chat import TokenUsage
from mdagents_llm.ledger import CallRow, Totals


def asked(call: CallRow) -> str:
    """Return the requested model in Inspect's form, `provider/model`."""
    return f"{call.provider}/{call.model_requested}"


def model_usage(totals: Totals) -> ModelUsage:
    """Return tokens as Inspect counts them: input excludes prompt cache reads and writes."""
    usage = totals.usage
    return ModelUsage(
        input_tokens=usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_cache_read=usage.cached_input_tokens,
        input_tokens_cache_write=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_cost=None if totals.cost_usd is None else round(totals.cost_usd, 8),
    )


def usages(sums: Mapping[str, Totals]) -> dict[str, ModelUsage]:
    """Return name -> token usage, without names that never replied."""
    return {name: model_usage(totals) for name, totals in sums.items() if totals.calls}


class Spending:
    """Token totals by model (`provider/model`) and by role."""

    def __init__(self) -> None:
        self.by_model: defaultdict[str, Totals] = defaultdict(Totals)
        self.by_role: defaultdict[str, Totals] = defaultdict(Totals)

    def add(self, model: str, role: str, totals: Totals) -> None:
        """Add the usage of `model` by `role`."""
        self.by_model[model] += totals
        self.by_role[role] += totals

    def add_call(self, call: CallRow) -> None:
        """Add a ledger row."""
        self.add(asked(call), call.role, Totals.of(call))

    def add_record(self, record: Mapping[str, Any], models: Mapping[str, str]) -> None:
        """Add the usage in a record, for a question without known calls.

        Args:
            record: Record of a question.
            models: Role -> requested model; empty for another program's file.
        """
        team, exaid = object_of(record, "token_usage"), object_of(record, "exaid")
        served = str(record.get("model") or "unknown")
        for counts, role, model in (
            (team, "team", models.get("expert", served)),
            (object_of(exaid, "token_usage"), "exaid", models.get("summarizer", served)),
        ):
            read, written, _ = tokens_of(counts)
            usage = TokenUsage(
                read or 0,
                written or 0,
                cached_input_tokens=count_of(counts.get("cached_input_tokens")) or 0,
                reasoning_tokens=count_of(counts.get("reasoning_tokens")) or 0,
                cache_write_tokens=count_of(counts.get("cache_write_tokens")) or 0,
            )
            if usage.total_tokens:
                self.add(model, role, Totals(1, 0, usage, amount_of(counts.get("cost_usd"))))
