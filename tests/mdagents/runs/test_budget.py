"""A budget is checked before each call, together with the larger one that it is part of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exaid_core.trace.bus import TraceBus
from mdagents.agents.events import unobserved
from mdagents.datasets.questions import SourceQuestion
from mdagents.runs.budget import Budget, Limited
from mdagents.runs.config import RunConfig
from mdagents.runs.open_case import open_case
from mdagents.settings import OptionOrder, TeamRole
from mdagents_llm.chat import ChatMessage, ChatRequest, TokenUsage
from mdagents_llm.errors import LimitExceeded
from mdagents_llm.ledger import Ledger
from tests.mdagents.records.test_calls import ROW
from tests.support.function_model import FunctionModel, text_reply
from tests.support.whole_runs import Run

REQUEST = ChatRequest((ChatMessage("user", "?"),), 10)
REACHED = ("the run has reached --token-limit", "the run has reached --cost-limit")


def budget(
    tokens: int, cost: float | None, *, most: int | None = 10, usd: float | None = 1.0
) -> Budget:
    return Budget(lambda: (tokens, cost), tokens=most, cost=usd, reached=REACHED)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (budget(10, 0.0), "the run has reached --token-limit 10"),
        (budget(11, None), "the run has reached --token-limit 10"),
        (budget(9, 1.0), "the run has reached --cost-limit 1"),
        (budget(0, 2.5, most=None, usd=0.25), "the run has reached --cost-limit 0.25"),
        (budget(0, 0.0, most=0), "the run has reached --token-limit 0"),
    ],
)
def test_a_limit_that_is_reached_is_named(of: Budget, said: str) -> None:
    assert of.is_exhausted
    with pytest.raises(LimitExceeded) as caught:
        of.check()
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "of",
    [
        budget(9, 0.99),
        budget(9, None),  # the price of a model is unknown
        budget(10**9, 10.0**9, most=None, usd=None),
        Budget(),
    ],
)
def test_below_its_limits_a_budget_allows_calls(of: Budget) -> None:
    of.check()
    assert not of.is_exhausted


def test_without_a_limit_there_is_nothing_to_check_before_a_call() -> None:
    assert Budget().check_if_limited is None
    assert Budget(within=Budget()).check_if_limited is None
    for limited in (budget(0, 0.0, usd=None), budget(0, 0.0, most=None), budget(0, 0.0, most=0)):
        assert limited.check_if_limited == limited.check
        within = Budget(within=limited)
        assert within.check_if_limited == within.check


def test_the_larger_budget_is_checked_first_and_holds_for_its_parts() -> None:
    study = budget(0, 0.0)
    question = Budget(lambda: (5, 0.0), tokens=5, reached=("the question", ""), within=study)
    with pytest.raises(LimitExceeded, match="the question 5"):
        question.check()
    study.exhaust("told by the driver")
    with pytest.raises(LimitExceeded, match="told by the driver"):
        question.check()
    study.exhaust("")
    assert not study.is_exhausted


async def test_a_limited_model_is_not_called_once_its_budget_is_exhausted() -> None:
    model, used = FunctionModel(lambda request: text_reply("A")), Budget()
    limited = Limited(model, used)
    await limited.generate(REQUEST)
    used.exhaust("no more")
    with pytest.raises(LimitExceeded, match="no more"):
        await limited.generate(REQUEST)
    assert len(model.requests) == 1


async def test_the_limit_of_a_question_does_not_count_the_calls_of_exaid() -> None:
    model, ledger = FunctionModel(lambda request: text_reply("A")), Ledger()
    case = open_case(
        "case",
        SourceQuestion("q", "Which?", {"A": "x", "B": "y"}, "A"),
        1,
        config=RunConfig(sample_token_limit=10),
        order=OptionOrder.ORIGINAL,
        models={TeamRole.EXPERT: model},
        ledger=ledger,
        within=None,
        bus=TraceBus(),
        tell=unobserved,
    )
    ledger.add(replace(ROW, case_id="case", role="summarizer", usage=TokenUsage(1000, 1000)))
    await case.models[TeamRole.EXPERT].generate(REQUEST)
    ledger.add(replace(ROW, case_id="case", role="expert", usage=TokenUsage(5, 5)))
    with pytest.raises(LimitExceeded, match="the question has reached --sample-token-limit 10"):
        await case.models[TeamRole.EXPERT].generate(REQUEST)


def test_a_run_whose_last_question_exhausts_the_budget_is_finished(run: Run) -> None:
    flags = ("--method", "zero_shot", "--num-samples", "1", "--token-limit", "1")
    status, out, err = run(*flags)
    assert (status, "stopped" in err) == (0, False)
    assert "answered 1" in out
