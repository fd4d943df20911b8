"""What the nodes of the graph know of a case, and what each adds."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage

from demos.cdss_example.agents.orchestrator import Decision
from demos.cdss_example.agents.synthesis import Recommendation
from demos.cdss_example.agents.words import Briefing, Opinion
from demos.cdss_example.config import MAX_NODE_RUNS


class CdssState(TypedDict):
    """A case under way."""

    case: str
    """The text of the case."""
    use_streaming: bool
    path: Annotated[list[str], operator.add]
    """The nodes that have run, in order."""
    opinions: Annotated[list[Opinion], operator.add]
    """What the specialists said, failures included."""
    decision: Decision | None
    """The orchestrator's latest."""
    recommendation: Recommendation | None
    messages: Annotated[list[AnyMessage], operator.add]
    """What the orchestrator and the synthesis say in plain words, for those who listen."""


def new_state(case: str, *, use_streaming: bool) -> CdssState:
    """Return the state before the first node."""
    return {
        "case": case,
        "use_streaming": use_streaming,
        "path": [],
        "opinions": [],
        "decision": None,
        "recommendation": None,
        "messages": [],
    }


def briefing(state: CdssState) -> Briefing:
    """Return what an agent is told."""
    decision = state["decision"]
    return Briefing(state["case"], state["opinions"], decision.running_summary if decision else "")


def specialists_left(node_runs: int) -> int:
    """Return how often a specialist can be asked.

    Args:
        node_runs: How many nodes have run, the orchestrator that asks included.
    """
    # Each takes two runs, its own and the orchestrator's after it; the last run is the synthesis.
    return max(0, (MAX_NODE_RUNS - 1 - node_runs) // 2)


def asked_at_the_limit(state: CdssState) -> str:
    """Return the specialist that was asked for and had no run left; empty for none."""
    decision = state["decision"]
    if decision is None or decision.next_step == "synthesis":
        return ""
    orchestrated = len(state["path"]) - (state["recommendation"] is not None)
    return "" if specialists_left(orchestrated) else decision.next_step
