"""The result of a run, for programs and notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mdagents.display.display import interval_so_far
from mdagents.records.manifest import RunManifest
from mdagents.scoring.formatting import interval, share, usd
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents.settings import Outcome
from mdagents_llm.errors import BenchError
from mdagents_llm.notebook import html_table


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """Outcome and location of a run. A notebook shows it as a table."""

    manifest: RunManifest
    folder: Path
    array_path: Path
    outcome: Outcome
    already_finished: bool = False
    """Whether nothing was left to do, so that no call was made."""
    error: BenchError | None = None
    """Error that ended the run early, after saving finished questions; None without one."""
    signal: int | None = None
    """Number of the first signal that asked for a stop; None without one."""
    epochs: int = 1
    reason: str = ""
    """Reason of a stop, as the beginning of a sentence; empty when the run is finished."""

    @property
    def accuracy(self) -> float | None:
        """Share of scored questions that are right, 0 to 1; an unanswered question counts as wrong.

        None without a scored question.
        """
        totals = self.manifest.totals
        return totals.correct / totals.scored if totals.scored else None

    @property
    def accuracy_interval(self) -> tuple[float, float] | None:
        """95% confidence interval of `accuracy` as (lower, upper), 0 to 1.

        None without a scored question.
        """
        return interval_so_far(self.manifest.totals)

    @property
    def cost_usd(self) -> float | None:
        """USD paid, EXAID included; None when a price is unknown."""
        return self.manifest.spent.cost_usd

    def _shown(self) -> dict[str, str]:
        """Return the key figures for a reader, by name."""
        manifest, totals = self.manifest, self.manifest.totals
        questions = f"{totals.questions:,}"
        if totals.questions < (planned := len(manifest.item_ids) * manifest.epochs):
            questions += f" of {planned:,}"
        accuracy = share(totals.correct, totals.scored)
        ends = self.accuracy_interval
        if ends is not None and totals.scored >= SMALLEST_FOR_RATES:
            accuracy += f" ({interval(*ends)})"
        cost = usd(self.cost_usd)
        return {
            "model": manifest.models_asked,
            "data set": manifest.dataset,
            "method": manifest.method,
            "questions": questions,
            "accuracy": accuracy,
            "cost": "not known" if self.cost_usd is None else f"{cost} USD",
            "outcome": self.reason or self.outcome.value,
            "folder": str(self.folder),
        }

    def __repr__(self) -> str:
        shown = self._shown()
        shown["accuracy"] = f"accuracy {shown['accuracy']}"
        questions = shown.pop("questions")
        return f"<RunResult {', '.join([f'{questions} questions', *shown.values()])}>"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows, in the colors of its theme."""
        return html_table(self._shown().items())
