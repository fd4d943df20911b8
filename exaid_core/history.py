"""The summaries of a case: their provenance and checks, and their form in later prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from exaid_core.checks.alerts import mentions_alert
from exaid_core.checks.check import remarks_of
from exaid_core.checks.dissent import dissent_missing, stated_answer
from exaid_core.checks.grounding import unsupported_terms, without_support
from exaid_core.checks.positions import Positions
from exaid_core.config import ExaidConfig
from exaid_core.ctu import fitting
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, AgentSummary, seq_ranges
from exaid_core.segments import Segment, alerts_in


class History:
    """The summaries of a case so far.

    Args:
        config: How much of the past a prompt holds, and the caller's checks.
        on_error: Callback for an exception of such a check.
    """

    def __init__(self, config: ExaidConfig, on_error: Callable[[Exception], None]) -> None:
        self._config = config
        self._on_error = on_error
        self._event_ids: list[str] = []
        self._positions = Positions()
        self.summaries: list[AgentSummary] = []
        """All summaries so far, oldest first."""

    def add(self, summary: AgentSummary, event_id: str) -> None:
        """Add a summary with its event id in the run log."""
        self.summaries.append(summary)
        self._event_ids.append(event_id)

    def past(self) -> dict[str, str]:
        """Return the summaries for a prompt: one line each, by event id, the latest last."""
        shown = slice(-self._config.history_k - 1, None)
        lines = [_line(summary) for summary in self.summaries[shown]]
        kept = fitting(lines[-2::-1], self._config.history_ctu) + 1
        return dict(zip(self._event_ids[-kept:], lines[-kept:], strict=True))

    def checked(self, summary: AgentSummary, segments: Sequence[Segment]) -> AgentSummary:
        """Return a summary of the segments with its provenance and check results."""
        answers = {
            segment.agent_id: answer
            for segment in segments
            if (answer := stated_answer(segment.text)) is not None
        }
        texts = [getattr(summary, name) for name in LIMITS]
        said = "\n".join(segment.text for segment in segments)
        terms = unsupported_terms(texts, said)
        if self.summaries:
            latest = self.summaries[-1]
            with_latest = unsupported_terms(texts, f"{said}\n{latest.semantics_text()}")
            # A swapped dose is a term only against text that has both the dose and the drug.
            flagged = latest.unsupported_terms
            repeated = _repeated(flagged, "\n".join(texts), said) if flagged else []
            terms = tuple(dict.fromkeys((*terms, *with_latest, *repeated)))
            # A term that was unsupported in the latest summary gains no support by repetition.
            kept = {*with_latest, *latest.unsupported_terms}
            terms = tuple(term for term in terms if term in kept)
        alerts = alerts_in(segments)
        told = "\n".join(texts)
        summary = summary.model_copy(
            update={
                "agents": tuple(dict.fromkeys(segment.agent_id for segment in segments)),
                "source_seqs": seq_ranges(seq for segment in segments for seq in segment.seqs),
                "unsupported_terms": terms,
                "dissent_missing": dissent_missing(texts, answers),
                "clipped": segments[-1].is_part,
                "alerts": alerts,
                "alert_missing": not all(mentions_alert(told, alert) for alert in alerts),
            }
        )
        remarks = (
            *self._positions.unargued(segments),
            *remarks_of(self._config.checks, told, said, self._on_error),
        )
        return summary.model_copy(update={"remarks": remarks})


def _repeated(terms: Sequence[str], text: str, said: str) -> list[str]:
    """Return the terms that occur in `text` but not in `said`."""
    not_stated = without_support(terms, text)
    return without_support((term for term in terms if term not in not_stated), said)


def _line(summary: AgentSummary) -> str:
    """Return a summary on one line, without empty fields."""
    fields = (summary.text_of(name) for name in LIMITS if name != "agent_contributions")
    return "- " + " | ".join(field for field in fields if field != PLACEHOLDER)
