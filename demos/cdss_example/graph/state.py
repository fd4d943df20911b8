"""The state that the nodes of the graph share."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage

from demos.cdss_example.agents.briefing import Briefing, Opinion
from demos.cdss_example.agents.orchestrator_agent import Decision
from demos.cdss_example.agents.synthesis_agent import Recommendation
from demos.cdss_example.config import MAX_NODE_RUNS


class CdssState(TypedDict):
    """State of a case in progress."""

    case: str
    """Text of the case."""
    use_streaming: bool
    path: Annotated[list[str], operator.add]
    """Names of the nodes that have run, in order."""
    opinions: Annotated[list[Opinion], operator.add]
    """Opinions of the specialists, including failures."""
    decision: Decision | None
    """Latest decision of the orchestrator; None before the first."""
    recommendation: Recommendation | None
    messages: Annotated[list[AnyMessage], operator.add]
    """Plain-text replies of the orchestrator and the synthesis, for callbacks such as EXAID's."""


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
    """Return the briefing that the next agent receives."""
    decision = state["decision"]
    return Briefing(state["case"], state["opinions"], decision.running_summary if decision else "")


def specialists_left(node_runs: int) -> int:
    """Return the number of times that a specialist can still be asked.

    Args:
        node_runs: Number of node runs so far, including the orchestrator that is asking.
    """
    # A specialist takes two runs: its own and the orchestrator's next. The last is the synthesis.
    return max(0, (MAX_NODE_RUNS - 1 - node_runs) // 2)


def asked_at_the_limit(state: CdssState) -> str:
    """Return the specialist that was requested when no node run was left; empty if none."""
    decision = state["decision"]
    if decision is None or decision.next_step == "synthesis":
        return ""
    orchestrated = len(state["path"]) - (state["recommendation"] is not None)
    return "" if specialists_left(orchestrated) else decision.next_step
