"""What Inspect's log shows of a team, and teams in tasks of others."""

from __future__ import annotations

import time
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import transcript
from inspect_ai.solver import Generate, Solver, TaskState, solver

import mdagents
from tests.conftest import REPOSITORY
from tests.fake_provider import MISSING, FakeProvider
from tests.mdagents.inspect.conftest import MODEL, Evaluate

pytestmark = pytest.mark.sweep


def _spans(sample: Any) -> dict[str, Any]:
    return {event.id: event for event in sample.events if event.event == "span_begin"}


def test_each_call_is_in_a_span_of_its_agent_and_phase(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    (sample,) = evaluate(team="intermediate", exaid="full_exaid").samples
    spans = _spans(sample)
    of_agents, of_exaid = 0, 0
    for event in sample.events:
        if event.event != "model":
            continue
        phase = spans[event.span_id]
        agent = spans[phase.parent_id]
        team = spans[agent.parent_id]
        assert (phase.type, team.name, team.type) == ("phase", "intermediate", "team")
        assert agent.type in ("agent", "exaid")
        of_agents += agent.type == "agent"
        of_exaid += agent.type == "exaid"
        assert (agent.type == "exaid") == (phase.name in ("summarizer", "buffer_agent"))
    assert of_agents == sample.store["TeamOutcome:record"]["calls"]
    assert of_agents + of_exaid == len(provider.calls)
    told = [event for event in sample.events if event.event == "info"]
    summaries = [event.data["summary"] for event in told if event.source == "exaid"]
    assert summaries == list(range(1, len(sample.store["TeamOutcome:exaid"]["summaries"]) + 1))
    assert summaries
    kinds = {event.data["event"] for event in told if event.source == "mdagents"}
    assert {"routed", "recruited"} <= kinds


def test_exaid_costs_no_answer_and_delays_none(provider: FakeProvider, evaluate: Evaluate) -> None:
    plain = evaluate(team="basic").samples[0]
    team_tokens = plain.store["TeamOutcome:record"]["token_usage"]["total_tokens"]
    watched = evaluate(team="basic", exaid="turn_end", token_limit=team_tokens + 1).samples[0]
    assert watched.limit is None
    assert watched.scores["option"].answer == plain.scores["option"].answer
    assert sum(use.total_tokens for use in watched.model_usage.values()) > team_tokens + 1

    started = time.monotonic()
    with provider.hold("summar"):
        cut = evaluate(team="basic", exaid="turn_end", parameters={"exaid_wait": 0.2}).samples[0]
    assert time.monotonic() - started < 60
    assert cut.scores["option"].answer == plain.scores["option"].answer
    assert "exaid_wait" in cut.store["TeamOutcome:exaid"]["error"]


def test_a_role_has_a_model_of_its_own(provider: FakeProvider, evaluate: Evaluate) -> None:
    roles = {"decision": "openai-api/fake/gpt-other"}
    (sample,) = evaluate(team="basic", model_roles=roles).samples
    assert sample.role_usage["decision"].total_tokens > 0
    assert {call.model for call in provider.calls} == {"gpt-test", "gpt-other"}
    names = {"expert-1": "openai-api/fake/gpt-other", "expert-2": "openai-api/fake/gpt-third"}
    (sample,) = evaluate(team="reconcile", model_roles=names).samples
    assert {"expert-1", "expert-2"} <= sample.role_usage.keys()
    (sample,) = evaluate(team="reconcile").samples
    assert "--model-role expert-1=MODEL" in sample.error.message


def test_each_team_answers_as_a_solver_and_as_an_agent(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    from inspect_ai import Task
    from inspect_ai._util.registry import registry_lookup
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import choice, match

    from mdagents.inspect.registered import TEAM_NAMES

    provider.field_policy = _all_say_c
    listed = "Which vitamin cures scurvy?\nA) Retinol\nB) Thiamine\nC) Ascorbic acid"
    for name in TEAM_NAMES:
        assert registry_lookup("solver", f"mdagents/{name}"), name
        assert registry_lookup("agent", f"mdagents/{name}"), name
    for name in ("zero_shot", "basic"):
        create: Any = registry_lookup("solver", f"mdagents/{name}")
        with_choices = Sample(
            input="Which vitamin cures scurvy?", choices=["Retinol", "Thiamine", "C"], target="C"
        )
        own: Any = {"option_order": "original"}
        log = evaluate(Task([with_choices], solver=create(**own), scorer=choice()))
        assert log.samples[0].scores["choice"].value == "C", name
        as_agent: Any = registry_lookup("agent", f"mdagents/{name}")
        task = Task([Sample(input=listed, target="C")], solver=as_agent(), scorer=match())
        (sample,) = evaluate(task).samples
        assert sample.scores["match"].value == "C", name
        assert sample.messages[-1].text.endswith("ANSWER: C")
    log = evaluate(Task([Sample(input="Which one?", target="C")], solver=create(), scorer=match()))
    assert "lists no options" in log.samples[0].error.message


def _all_say_c(request: Any, path: Any) -> Any:
    return "C" if path[-1:] == ("answer",) else MISSING


def test_pictures_reach_the_model_in_their_order(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    log = evaluate("mdagents/vqa-sample", team="cot", limit=11)
    shown = [len(call.pictures) for call in provider.calls]
    assert sorted(shown) == [1] * 9 + [2, 4]
    assert {sample.scores["option"].reason for sample in log.samples} == {None}


def test_questions_of_ones_own_and_a_train_split(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    own = REPOSITORY / "data" / "medqa" / "sample.jsonl"
    log = evaluate("mdagents/questions", team="few_shot", parameters={"dataset": "medqa-sample"})
    assert log.samples[0].scores["option"].answer
    log = evaluate("mdagents/questions", parameters={"dataset": str(own), "method": "cot"})
    assert log.samples[0].scores["option"].answer
    assert own.name in log.eval.dataset.location
    assert str(REPOSITORY) not in log.eval.dataset.location


def test_scores_are_made_again_from_a_log(provider: FakeProvider, evaluate: Evaluate) -> None:
    from inspect_ai import score
    from inspect_ai.log import read_eval_log

    from mdagents.inspect.scorers import option

    log = evaluate(team="basic")
    again = score(read_eval_log(log.location), option(), action="overwrite", display="none")
    assert again.samples is not None
    assert again.samples[0].scores is not None
    assert again.samples[0].scores["option"].value == log.samples[0].scores["option"].value


def test_a_model_of_inspect_inside_a_solver_leaves_the_transcript_whole(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    @solver
    def asking() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            transcript().info("before")
            await mdagents.answer("Which?", ["A1", "B1"], team="cot", model=f"inspect/{MODEL}")
            transcript().info("after")
            return await generate(state)

        return solve

    (sample,) = evaluate(Task([Sample(input="Which?")], solver=asking())).samples
    kinds = [event.data if event.event == "info" else event.event for event in sample.events]
    shown = [kind for kind in kinds if kind in ("before", "after", "model")]
    assert shown == ["before", "model", "after", "model"]
    assert len(provider.calls) == 2
