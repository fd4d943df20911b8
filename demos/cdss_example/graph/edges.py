"""The routing after the orchestrator."""

from __future__ import annotations

from demos.cdss_example.agents.orchestrator_agent import Step
from demos.cdss_example.graph.state import CdssState, asked_at_the_limit


def next_node(state: CdssState) -> Step:
    """Return the node that the orchestrator chose, or the synthesis when no run is left."""
    decision = state["decision"]
    assert decision is not None, "the orchestrator has run"
    return "synthesis" if asked_at_the_limit(state) else decision.next_step
