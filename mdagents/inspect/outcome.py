"""The answer of a team to a sample, in Inspect's store: solvers write it, scorers read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inspect_ai.util import StoreModel
from pydantic import Field

from mdagents.records.sample import SampleRecord
from mdagents.scoring.statistics import pairwise_agreement
from mdagents_llm.chat import TokenUsage
from mdagents_llm.ledger import CallRow

_NOT_KEPT = {"question", "answer", "options", "response", "exaid", "watched", "pictures", "fields"}
"""Fields of a record that the sample or another field has."""


class TeamOutcome(StoreModel):
    """What a team made of a sample; empty if no team has finished with it."""

    team: str = ""
    """Name of the team; empty if none has begun."""
    status: str = ""
    """How the question ended, one of `mdagents.settings.Status`; empty if it has not."""
    letter: str = ""
    """Letter of the answer among the choices of the sample; empty without an answer."""
    correct: bool | None = None
    """Whether the answer is right; None without an answer, or if the right one is not known."""
    level: str = ""
    """Level of the team; empty if it has none."""
    agreement: float | None = None
    """Share of pairs of experts (or teams) who hold the same answer at the end; None without two
    of them."""
    tokens: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Tokens by the ledger: `team`, `exaid`, and `cached` of both, which Inspect's cache served.
    Inspect's usage of the sample is that of `team` and `exaid` without `cached`."""
    record: dict[str, object] = Field(default_factory=dict)
    """The record of the question, as in `samples.jsonl` (docs/reference/fields.md)."""
    exaid: dict[str, object] = Field(default_factory=dict)
    """Summaries and decisions of EXAID; empty if it is off."""

    def decide(self, record: SampleRecord) -> None:
        """Note the decision of the team."""
        self.status = record.status.value
        self.letter = record.source_predicted or ""
        self.correct = record.correct
        self.level = record.difficulty or ""
        votes = [letter for letter, count in record.votes.items() for _ in range(count)]
        self.agreement = pairwise_agreement([votes])
        self.record = record.model_dump(mode="json", exclude=_NOT_KEPT)


@dataclass(slots=True)
class SampleTokens:
    """The tokens of a sample, by the rows of the ledger.

    Args:
        exaid_roles: Roles of EXAID.
    """

    exaid_roles: frozenset[str]
    team: TokenUsage = TokenUsage()
    exaid: TokenUsage = TokenUsage()
    cached: TokenUsage = TokenUsage()

    def add(self, row: CallRow) -> None:
        """Add a row."""
        if row.role in self.exaid_roles:
            self.exaid += row.usage
        else:
            self.team += row.usage
        if row.cached:
            self.cached += row.usage

    def as_dict(self) -> Mapping[str, dict[str, int]]:
        """Return the tokens by kind."""
        kinds = {"team": self.team, "exaid": self.exaid, "cached": self.cached}
        return {name: usage.as_dict() for name, usage in kinds.items()}
