"""Which of the cases under way a live view shows: the focused case."""

from __future__ import annotations

from dataclasses import dataclass, field

from exaid_core.schema.agent_summary import AgentSummary

PATIENCE = 5.0
"""Seconds without news after which the focus moves to a case that has some."""

_MOST = 1_000  # cases; more than are ever under way, so only cases that never end are forgotten


@dataclass(eq=False, slots=True)
class OpenCase:
    """A case as a live view knows it."""

    id: str
    summary: AgentSummary | None = None
    """The latest."""
    summaries: int = 0
    """Number of summaries so far."""
    agents: list[str] = field(default_factory=list)
    """Ids of the agents whose turns began last; several if they began between two looks."""
    finished: bool = False


class Focus:
    """Follows the cases under way and focuses on one of them.

    A case stays focused until it is finished or has no news for `PATIENCE`; then the case with the
    latest news follows. When no other is open, the one that finished last stays focused.
    """

    def __init__(self) -> None:
        self._open: dict[str, OpenCase] = {}  # the one with the latest news comes last
        self._finished: dict[str, OpenCase] = {}  # whose summaries may still follow
        self._focused: OpenCase | None = None
        self._news_at = 0.0  # seconds; of the focused case
        self._had_news: set[str] = set()  # ids, since the last look
        self._had_turns: set[str] = set()

    def turn_started(self, case_id: str, agent_id: str) -> None:
        """Note that an agent begins a turn."""
        case = self._with_news(case_id)
        if case_id not in self._had_turns:
            self._had_turns.add(case_id)
            case.agents.clear()
        if agent_id not in case.agents:
            case.agents.append(agent_id)

    def summary(self, case_id: str, summary: AgentSummary) -> int:
        """Note a new summary; return its number within the case, from 1."""
        case = self._with_news(case_id)
        case.summary = summary
        case.summaries += 1
        return case.summaries

    def finished(self, case_id: str) -> None:
        """Note that a case is decided."""
        case = self._open.pop(case_id, None) or OpenCase(case_id)
        case.finished = True
        self._finished[case_id] = case
        if len(self._finished) > _MOST:
            del self._finished[next(iter(self._finished))]

    def look(self, now: float) -> OpenCase | None:
        """Return the focused case at `now` (seconds); None before the first news."""
        focused = self._focused
        if focused is not None and focused.id in self._had_news:
            self._news_at = now
        self._had_news.clear()
        self._had_turns.clear()
        if focused is None or focused.finished or now - self._news_at >= PATIENCE:
            last = next(reversed(self._finished.values()), focused)
            newest = next(reversed(self._open.values()), last)
            if newest is not focused:
                self._focused, self._news_at = newest, now
        return self._focused

    def _with_news(self, case_id: str) -> OpenCase:
        if case_id in self._finished:
            return self._finished[case_id]
        case = self._open.pop(case_id, None) or OpenCase(case_id)
        self._open[case_id] = case
        self._had_news.add(case_id)
        if len(self._open) > _MOST:
            del self._open[next(iter(self._open))]
        return case
