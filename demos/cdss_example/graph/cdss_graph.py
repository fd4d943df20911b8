"""The graph: orchestrator -> laboratory | cardiology -> orchestrator … -> synthesis."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from demos.cdss_example.agents import (
    CardiologyAgent,
    LaboratoryAgent,
    OrchestratorAgent,
    SynthesisAgent,
)
from demos.cdss_example.config import Limits
from demos.cdss_example.graph.edges import next_node
from demos.cdss_example.graph.nodes import (
    ORCHESTRATOR,
    SYNTHESIS,
    OrchestratorNode,
    SpecialistNode,
    SynthesisNode,
)
from demos.cdss_example.graph.state import CdssState
from demos.toolkit.tracing import agent
from mdagents_llm.chat import ChatModel
from mdagents_llm.langchain_model import ChatModelAdapter


def build_cdss_graph(model: ChatModel, limits: Limits) -> CompiledStateGraph[CdssState, Any]:
    """Return the compiled graph. It holds no state of a case, so it can serve many concurrently.

    EXAID is not part of the graph: to observe a run, pass a callback in its config.

    Args:
        model: Chat model of all agents.
        limits: Length limits of the agents' texts.
    """
    is_local = bool(getattr(model, "is_local", False))
    adapter = ChatModelAdapter(model)
    specialists = (LaboratoryAgent(adapter, limits), CardiologyAgent(adapter, limits))
    graph = StateGraph(CdssState)
    orchestrator = OrchestratorAgent(adapter, limits, is_local=is_local)
    graph.add_node(ORCHESTRATOR, agent(ORCHESTRATOR, OrchestratorNode(orchestrator)))
    graph.add_edge(START, ORCHESTRATOR)
    for specialist in specialists:
        graph.add_node(specialist.name, agent(specialist.name, SpecialistNode(specialist)))
        graph.add_edge(specialist.name, ORCHESTRATOR)
    synthesis = SynthesisAgent(adapter, limits, is_local=is_local)
    graph.add_node(SYNTHESIS, agent(SYNTHESIS, SynthesisNode(synthesis)))
    graph.add_edge(SYNTHESIS, END)
    ways = [*(specialist.name for specialist in specialists), SYNTHESIS]
    graph.add_conditional_edges(ORCHESTRATOR, next_node, ways)
    return graph.compile()
