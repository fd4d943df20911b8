"""Tokens as Inspect counts them: input without what the prompt cache served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.chat import TokenUsage
from infra.ledger import Totals
from mdagents.export.ids import JSONObject
from mdagents.scoring.fields import count_of, number_of, object_of


def model_usage(totals: Totals) -> JSONObject:
    """Return Inspect's `ModelUsage`.

    There `input_tokens` excludes and `input_tokens_cache_read` counts the tokens that the prompt
    cache served; `total_tokens` holds both and the output. Here `input_tokens` holds both.
    """
    usage = totals.usage
    counted: JSONObject = {
        "input_tokens": usage.input_tokens - usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "input_tokens_cache_read": usage.cached_input_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    if totals.cost_usd is not None:
        counted["total_cost"] = round(totals.cost_usd, 8)
    return counted


@dataclass(slots=True)
class Spending:
    """Tokens by model and by role."""

    by_model: dict[str, Totals] = field(default_factory=dict)
    """`provider/model` -> its sum."""
    by_role: dict[str, Totals] = field(default_factory=dict)

    def add(self, model: str, role: str, totals: Totals) -> None:
        """Count what `role` has used of `model`."""
        self.by_model[model] = self.by_model.get(model, Totals()) + totals
        self.by_role[role] = self.by_role.get(role, Totals()) + totals

    def update(self, other: Spending) -> None:
        """Count all of `other`."""
        for mine, theirs in (self.by_model, other.by_model), (self.by_role, other.by_role):
            for name, totals in theirs.items():
                mine[name] = mine.get(name, Totals()) + totals

    def as_dict(self) -> JSONObject:
        """Return both usage fields of Inspect's samples and statistics, for models that replied."""
        return {
            f"{kind}_usage": {name: model_usage(t) for name, t in sums.items() if t.calls}
            for kind, sums in (("model", self.by_model), ("role", self.by_role))
        }


def spending_of_record(record: Mapping[str, Any], models: Mapping[str, str]) -> Spending:
    """Return the usage that a record states for its question, where its calls are not known.

    Args:
        record: Of a question.
        models: Role -> model that was asked for; empty for another program's file.
    """
    team = object_of(record, "token_usage")
    exaid = object_of(object_of(record, "exaid"), "token_usage")
    served = str(record.get("model") or "unknown")
    spent = Spending()
    for counts, role, model in (
        (team, "team", models.get("expert", served)),
        (exaid, "exaid", models.get("summarizer", served)),
    ):
        usage = TokenUsage(*(count_of(counts.get(name)) or 0 for name in TokenUsage.__slots__))
        if usage.total_tokens:
            cost = number_of(counts.get("cost_usd"))
            spent.add(model, role, Totals(calls=1, usage=usage, cost_usd=cost))
    return spent
