"""Opens the case of a question: its models within its limits, its book in the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from exaid_core.trace.bus import TraceBus
from mdagents.agents.case import Case
from mdagents.agents.events import Observer
from mdagents.datasets.questions import SourceQuestion, present
from mdagents.runs.budget import Budget, Limited
from mdagents.runs.config import RunConfig
from mdagents.settings import EXAID_ROLES, OptionOrder
from mdagents_llm.chat import ChatModel
from mdagents_llm.ledger import Ledger


def open_case(
    case_id: str,
    source: SourceQuestion,
    epoch: int,
    *,
    config: RunConfig,
    order: OptionOrder,
    models: Mapping[str, ChatModel],
    ledger: Ledger,
    within: Budget | None,
    bus: TraceBus,
    tell: Observer,
    seed: int | None = None,
) -> Case:
    """Open the case of a question, whose book is then open in the ledger.

    Args:
        case_id: ID of the case.
        source: Question.
        epoch: Number of the repetition of the question, from 1.
        config: Configuration of the team, with the limit of a question; EXAID does not count.
        order: Order in which the options are shown.
        models: Role -> model.
        ledger: Ledger in which the calls are booked.
        within: Budget that the question is part of; None: none.
        bus: Bus on which the turns of the agents are published.
        tell: Observer to notify of the events of the question.
        seed: Seed of the models' replies; None: that of the configuration for the epoch.
    """

    def spent() -> tuple[int, float | None]:
        used = ledger.book_of(case_id).totals(without=EXAID_ROLES)
        return used.usage.total_tokens, used.cost_usd

    budget = Budget(
        spent,
        tokens=config.sample_token_limit,
        reached=("the question has reached --sample-token-limit", ""),
        within=within,
    )
    case = Case(
        id=case_id,
        question=present(source, order, config.seed, epoch),
        models={role: Limited(model, budget) for role, model in models.items()},
        settings=config.team,
        seed=config.seed + epoch - 1 if seed is None else seed,
        image_agents=config.image_agents,
        bus=bus,
        tell=tell,
        repeat=epoch - 1,
    )
    ledger.open_case(case_id)
    return case
