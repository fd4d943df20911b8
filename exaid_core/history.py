"""The summaries of a case: what each was made from, and what later prompts tell of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from exaid_core.alerts.critical_alerts import mentions_alert
from exaid_core.config import ExaidConfig
from exaid_core.ctu import fitting
from exaid_core.dissent import dissent_missing, stated_answer
from exaid_core.grounding import unsupported_terms, without_support
from exaid_core.schema.agent_summary import LIMITS, PLACEHOLDER, AgentSummary, seq_ranges
from exaid_core.segments import Segment, alerts_in
from exaid_core.validators import run_validators


class History:
    """The summaries of a case so far.

    Args:
        config: How much of the past a prompt holds, and validators of the caller's own.
        on_error: Told when a validator raises.
    """

    def __init__(self, config: ExaidConfig, on_error: Callable[[Exception], None]) -> None:
        self._config = config
        self._on_error = on_error
        self._event_ids: list[str] = []
        self.summaries: list[AgentSummary] = []
        """Oldest first."""

    def add(self, summary: AgentSummary, event_id: str) -> None:
        """Take a summary and its id in the run log."""
        self.summaries.append(summary)
        self._event_ids.append(event_id)

    def past(self) -> dict[str, str]:
        """Return what a prompt holds: event id -> summary on one line, the latest last."""
        shown = slice(-self._config.history_k - 1, None)
        lines = [_line(summary) for summary in self.summaries[shown]]
        kept = fitting(lines[-2::-1], self._config.history_ctu) + 1
        return dict(zip(self._event_ids[-kept:], lines[-kept:], strict=True))

    def checked(self, summary: AgentSummary, segments: Sequence[Segment]) -> AgentSummary:
        """Return a summary of the segments with its provenance and the results of its checks."""
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
            # A swapped dose is one term only beside the text that has both the dose and the drug.
            flagged = latest.unsupported_terms
            repeated = _repeated(flagged, "\n".join(texts), said) if flagged else []
            terms = tuple(dict.fromkeys((*terms, *with_latest, *repeated)))
            # A term without support in the latest summary gains no support by being repeated.
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
        remarks = run_validators(self._config.validators, summary, said, self._on_error)
        return summary.model_copy(update={"remarks": remarks})


def _repeated(terms: Sequence[str], text: str, said: str) -> list[str]:
    """Return those of the terms that `text` states and what was said does not."""
    not_stated = without_support(terms, text)
    return without_support((term for term in terms if term not in not_stated), said)


def _line(summary: AgentSummary) -> str:
    """Return a summary on one line, without fields that say nothing."""
    fields = (getattr(summary, name) for name in LIMITS if name != "agent_contributions")
    return "- " + " | ".join(field for field in fields if field != PLACEHOLDER)
