"""The round table of different models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.agents.case import Case
from mdagents.teams.baselines import reconcile
from mdagents.teams.baselines.reconcile import weight_of
from mdagents.teams.decision import Decision
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import ProviderError
from mdagents_llm.llm_registry import ModelRegistry
from tests.fake_provider import FakeProvider, SeenRequest, depth, peak_in_flight
from tests.support.whole_runs import Run, records

MODELS = {1: "gpt-4o-mini", 2: "gpt-4.1-mini", 3: "gpt-5.4-mini"}
SEATS = [flag for n, m in MODELS.items() for flag in ("--model-role", f"expert-{n}={m}")]


@pytest.fixture
def table(case: Case, registry: ModelRegistry, openai_spec: ModelSpec) -> Case:
    """A case with three experts, each of a model of its own."""
    own = {f"expert-{n}": registry.model(replace(openai_spec, name=m)) for n, m in MODELS.items()}
    case.models = {**case.models, **own}
    return case


async def held(case: Case) -> Decision:
    return await reconcile.solve(case, case.question, case.settings)


def answers(provider: FakeProvider, *of_each: list[tuple[str, float]]) -> None:
    """Each model gives its answers in turn: (letter, confidence) by round."""
    scripts = {model: iter(said) for model, said in zip(MODELS.values(), of_each, strict=True)}

    def reply(request: SeenRequest) -> dict[str, Any]:
        letter, confidence = next(scripts[request.body["model"]])
        model = request.body["model"]
        return {"reasoning": f"{model}: {letter}", "answer": letter, "confidence": confidence}

    provider.when('"confidence": a number from 0 to 1', reply)


async def test_models_that_agree_are_asked_once(provider: FakeProvider, table: Case) -> None:
    provider.latency = 0.1
    answers(provider, *([[("C", 0.9)]] * 3))
    decision = await held(table)
    assert (decision.letter, len(provider.calls)) == ("C", 3)
    assert depth(provider.calls) == 1
    assert peak_in_flight(provider.calls) == 3
    assert {call.body["model"] for call in provider.calls} == set(MODELS.values())


async def test_models_that_never_agree_are_asked_in_every_round(
    provider: FakeProvider, table: Case
) -> None:
    provider.latency = 0.1
    answers(provider, [("A", 0.9)] * 3, [("B", 0.95)] * 3, [("C", 0.7)] * 3)
    decision = await held(table)
    assert (decision.letter, len(provider.calls)) == ("A", 9), "0.8 each for A and B: the first"
    assert depth(provider.calls) == table.settings.answer_rounds == 3
    assert [stated.round for stated in decision.opinions] == [0] * 3 + [1] * 3 + [2] * 3


async def test_each_hears_all_others_from_the_second_round_on(
    provider: FakeProvider, table: Case
) -> None:
    answers(provider, [("A", 0.9), ("C", 0.9)], [("C", 0.9)] * 2, [("C", 0.9)] * 2)
    decision = await held(table)
    first, second = provider.calls[:3], provider.calls[3:]
    assert not any("The answers so far" in call.text for call in first)
    for call in second:
        for model, letter in zip(MODELS.values(), "ACC", strict=True):
            assert f"{model}: {letter}" in call.text
    assert decision.letter == "C"
    assert decision.votes() == {"C": 3}


async def test_confidence_outweighs_number(provider: FakeProvider, table: Case) -> None:
    answers(provider, [("A", 0.5)] * 3, [("A", 0.6)] * 3, [("B", 1.0)] * 3)
    assert (await held(table)).letter == "B", "0.1 and 0.1 against 1"


async def test_who_fails_once_keeps_the_last_answer_and_who_never_answers_has_no_vote(
    provider: FakeProvider, table: Case
) -> None:
    answers(provider, [("A", 1.0)] * 3, [("B", 0.5)] * 3, [("B", 0.5)] * 3)
    provider.fail_next("context_length", match=lambda r: r.body["model"] == MODELS[2])
    decision = await held(table)
    assert [left.agent for left in table.left_out] == ["expert-2"]
    assert {stated.agent for stated in decision.opinions} == {"expert-1", "expert-3"}


async def test_without_any_answer_there_is_none(provider: FakeProvider, table: Case) -> None:
    provider.fail_next("context_length", times=3)
    with pytest.raises(ProviderError):
        await held(table)


@pytest.mark.process
def test_a_run_names_its_models(provider: FakeProvider, run: Run) -> None:
    status, _, err = run("--method", "reconcile", "--num-samples", "2", *SEATS)
    assert status == 0
    for record in records():
        assert sorted(record["model"].split(", ")) == sorted(MODELS.values())
        assert record["status"] == "answered"
    assert "expert-3" in err


@pytest.mark.parametrize(
    "seats",
    [
        (),
        ("--model-role", "expert-1=gpt-4o-mini"),
        ("--model-role", "expert-1=gpt-4o-mini", "--model-role", "expert-2=gpt-4o-mini"),
        ("--model-role", "expert-1=gpt-4o-mini", "--model-role", "expert-2=openai/gpt-4o-mini"),
    ],
)
def test_fewer_than_two_models_are_refused(
    seats: tuple[str, ...], provider: FakeProvider, run: Run
) -> None:
    status, out, err = run("--method", "reconcile", *seats)
    assert (status, out) == (2, "")
    assert err.startswith("error: --method reconcile is a round table of different models")
    assert err.count("\n") == 1
    assert provider.calls == []


@pytest.mark.process
def test_an_expert_with_a_model_of_its_own_sits_in_every_panel(
    provider: FakeProvider, run: Run
) -> None:
    run("--difficulty", "basic", "--num-samples", "1", "--model-role", "expert-2=gpt-4.1-mini")
    models = [call.body["model"] for call in provider.calls]
    assert sorted(models) == ["gpt-4.1-mini", *["gpt-4o-mini"] * 4]


@pytest.mark.parametrize("role", ["expert-0", "expert-11", "expert-x", "expert-", "surgeon-1"])
def test_there_are_experts_1_to_10(role: str, run: Run) -> None:
    status, _, err = run("--model-role", f"{role}=gpt-4o-mini")
    assert status == 2
    assert f"--model-role {role}=gpt-4o-mini: write ROLE=MODEL" in err


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_never_weighs_less(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0.1 <= weight_of(less) <= weight_of(more) <= 1
