"""The graph of a turn.

classify_intent -> qa_agent | summarization_agent | calculation_agent -> update_memory
"""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from demos.document_assistant.nodes import (
    AGENTS,
    CALCULATION,
    CLASSIFY,
    QA,
    REMEMBER,
    SUMMARIZATION,
    calculation_agent,
    chosen_step,
    classify_intent,
    qa_agent,
    summarization_agent,
    update_memory,
)
from demos.document_assistant.state import AgentState, Services
from demos.toolkit.tracing import agent


def make_graph(
    checkpointer: BaseCheckpointSaver[Any] | None,
) -> CompiledStateGraph[AgentState, Services, AgentState, AgentState]:
    """Return the compiled graph.

    Args:
        checkpointer: Checkpointer that stores the state after each node; None stores nothing.
    """
    graph = StateGraph(AgentState, context_schema=Services)
    graph.add_node(CLASSIFY, agent(CLASSIFY, classify_intent))
    graph.add_node(QA, agent(QA, qa_agent))
    graph.add_node(SUMMARIZATION, agent(SUMMARIZATION, summarization_agent))
    graph.add_node(CALCULATION, agent(CALCULATION, calculation_agent))
    graph.add_node(REMEMBER, update_memory)

    graph.add_edge(START, CLASSIFY)
    graph.add_conditional_edges(CLASSIFY, chosen_step, sorted(set(AGENTS.values())))
    for name in (QA, SUMMARIZATION, CALCULATION):
        graph.add_edge(name, REMEMBER)
    graph.add_edge(REMEMBER, END)
    return graph.compile(checkpointer)
