"""The nodes of the graph: each calls its agent and emits events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.types import StreamWriter

from demos.cdss_example.agents.orchestrator_agent import OrchestratorAgent
from demos.cdss_example.agents.specialist import Specialist
from demos.cdss_example.agents.synthesis_agent import SynthesisAgent
from demos.cdss_example.events import NodeBegan, NodeEnded, Said
from demos.cdss_example.graph.state import (
    CdssState,
    asked_at_the_limit,
    briefing,
    specialists_left,
)

ORCHESTRATOR, SYNTHESIS = "orchestrator", "synthesis"

Update = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OrchestratorNode:
    """Node that asks the orchestrator for the next step."""

    agent: OrchestratorAgent

    async def __call__(self, state: CdssState, *, writer: StreamWriter) -> Update:
        """Return the decision, also as a plain-text message."""
        number, say = _begin(ORCHESTRATOR, state, writer)
        decision = await self.agent.decide(briefing(state), specialists_left(number))
        say(decision.as_text())
        writer(NodeEnded(number, ORCHESTRATOR))
        said = [AIMessage(decision.as_text())]
        return {"decision": decision, "messages": said, "path": [ORCHESTRATOR]}


@dataclass(frozen=True, slots=True)
class SpecialistNode:
    """Node that asks a specialist the orchestrator's question."""

    agent: Specialist

    async def __call__(self, state: CdssState, *, writer: StreamWriter) -> Update:
        """Return the opinion, which may be a failed one."""
        decision = state["decision"]
        assert decision is not None, "the orchestrator has asked"
        name = self.agent.name
        number, say = _begin(name, state, writer)
        opinion = await self.agent.answer(
            briefing(state), decision.question, say, use_streaming=state["use_streaming"]
        )
        writer(NodeEnded(number, name, opinion.failure))
        return {"opinions": [opinion], "path": [name]}


@dataclass(frozen=True, slots=True)
class SynthesisNode:
    """Node that asks for the recommendation."""

    agent: SynthesisAgent

    async def __call__(self, state: CdssState, *, writer: StreamWriter) -> Update:
        """Return the recommendation, also as a plain-text message."""
        number, say = _begin(SYNTHESIS, state, writer)
        recommendation = await self.agent.recommend(briefing(state), asked_at_the_limit(state))
        say(recommendation.as_text())
        writer(NodeEnded(number, SYNTHESIS))
        said = [AIMessage(recommendation.as_text())]
        return {"recommendation": recommendation, "messages": said, "path": [SYNTHESIS]}


def _begin(name: str, state: CdssState, writer: StreamWriter) -> tuple[int, Callable[[str], None]]:
    """Emit the start of a node; return its run number and a callback that emits its text."""
    number = len(state["path"]) + 1
    writer(NodeBegan(number, name))
    return number, partial(_say, writer, number, name)


def _say(writer: StreamWriter, number: int, name: str, text: str) -> None:
    writer(Said(number, name, text))
