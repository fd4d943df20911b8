"""The router: one call that rates the difficulty of a question."""

from __future__ import annotations

from dataclasses import dataclass

from mdagents.agents import replies
from mdagents.agents.case import Case
from mdagents.agents.events import Rung
from mdagents.agents.prompts import render
from mdagents.settings import Difficulty, RoutedBy, TeamRole
from mdagents_llm.errors import StructuredOutputError

FALLBACK = Difficulty.INTERMEDIATE
"""Level of a question when the router's reply cannot be used."""


@dataclass(frozen=True, slots=True)
class Route:
    """The team that answers, and the reason for that choice."""

    difficulty: Difficulty | None
    """Level of the question; None: a method without levels."""
    routed_by: RoutedBy
    reasoning: str = ""
    rungs: tuple[Rung, ...] = ()
    """Rungs that the question passed on the ladder; empty without a ladder."""


async def route(case: Case) -> Route:
    """Rate the difficulty of the case's question.

    Raises:
        ProviderError: The endpoint gave no usable reply.
    """
    router = case.decider("router", "Router", TeamRole.ROUTER)
    words = case.settings.triage_words
    try:
        triage = await router.ask(
            render("router", words=words), replies.triage(words), phase="route"
        )
    except StructuredOutputError as error:
        case.repairs.append(f"routed to {FALLBACK} because the router's reply failed: {error}")
        return Route(FALLBACK, RoutedBy.FALLBACK)
    return Route(triage.difficulty, RoutedBy.ROUTER, triage.reasoning)
