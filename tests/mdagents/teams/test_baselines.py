"""The baselines over real HTTP: how many calls, who reads what, what is in the record."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import PREPARE, Case
from mdagents.cli.score import main as evaluate
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.exemplars import SHOTS, open_exemplars
from mdagents.datasets.near_duplicates import fingerprint
from mdagents.datasets.questions import SourceQuestion, present
from mdagents.records.case_files import read_case
from mdagents.settings import OptionOrder, TeamRole
from mdagents.teams import basic, methods
from mdagents.teams.alone import apart
from mdagents.teams.baselines import cot, cot_sc, majority_vote, zero_shot
from mdagents.teams.decision import Decision, Stated
from mdagents.teams.names import baseline_names
from mdagents.teams.voting import by_majority
from mdagents_llm.errors import ProviderError, StructuredOutputError
from mdagents_llm.json_schema import token_limit
from mdagents_llm.ledger import CallRow
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider, SeenRequest, ServedCall, depth, peak_in_flight
from tests.support.whole_runs import Run, asked_for, records

BASELINES = baseline_names()
CALLS = {
    "zero_shot": (1, 1),
    "few_shot": (1, 1),
    "cot": (1, 1),
    "cot_sc": (5, 1),
    "majority_vote": (4, 2),
    "medprompt": (5 + 6, 1 + 2),
    "self_refine": (7, 7),
    "multi_persona": (5, 4),
    "debate": (9, 3),
    "reconcile": (6, 3),
    "medagents": (18, 10),
}
"""Calls and depth of a question, at most."""
SHORTER = {
    "medprompt": (5, 1),
    "self_refine": (2, 2),
    "multi_persona": (3, 2),
    "debate": (3, 1),
    "reconcile": (2, 1),
    "medagents": (9, 5),
}
"""At least, where a method may end early."""


# -- each by itself -----------------------------------------------------------------------------


async def test_zero_shot_has_no_room_for_reasoning(provider: FakeProvider, case: Case) -> None:
    provider.when("choose the best option", {"answer": "B"})
    decision = await zero_shot.solve(case, case.question, case.settings)
    (call,) = provider.calls
    (schema,) = [call.body["response_format"]["json_schema"]["schema"]]
    assert list(schema["properties"]) == ["answer"]
    assert call.body["temperature"] == 0.0
    assert decision == Decision(letter="B", analysis="")
    assert (decision.votes(), decision.confidence()) == ({}, None)


async def test_a_single_physician_knows_of_no_panel(provider: FakeProvider, case: Case) -> None:
    await zero_shot.solve(case, case.question, case.settings)
    await cot.solve(case, case.question, case.settings)
    for call in provider.calls:
        assert "alone" in call.messages[0]
        assert "panel" not in call.text
        assert call.messages[1].startswith(f"Question:\n{case.question.block()}\n\n")


async def test_chain_of_thought_reasons_first_and_keeps_it(
    provider: FakeProvider, case: Case
) -> None:
    said = {"reasoning": "Bleeding gums, so ascorbate.", "answer": "C", "confidence": 0.8}
    provider.when("think step by step", said)
    decision = await cot.solve(case, case.question, case.settings)
    schema = provider.calls[0].body["response_format"]["json_schema"]["schema"]
    assert next(iter(schema["properties"])) == "reasoning"
    assert provider.calls[0].body["temperature"] == 0.0
    assert (decision.letter, decision.analysis) == ("C", "Bleeding gums, so ascorbate.")
    assert decision.confidence() == 0.8


@pytest.mark.process
@pytest.mark.parametrize("method", ["cot", "cot_sc"])
def test_the_words_of_a_chain_of_thought(provider: FakeProvider, run: Run, method: str) -> None:
    run("--num-samples", "1", "--method", method)
    assert {words_allowed(call) for call in provider.calls} == {600}
    provider.reset()
    run("--num-samples", "1", "--method", method, "--words", "cot=100")
    assert {words_allowed(call) for call in provider.calls} == {100}


def words_allowed(call: ServedCall) -> int:
    """Words of reasoning that a prompt allows; the endpoint gets room for them."""
    words = re.search(r'"reasoning", your steps, of at most (\d+) words', call.text)
    assert words is not None
    room = token_limit(replies.opinion("ABCD", int(words[1])))
    assert room in (call.body.get("max_tokens"), call.body.get("max_completion_tokens"))
    return int(words[1])


def sampled(provider: FakeProvider, *replies: tuple[str, float]) -> None:
    """The samples reply with these (letter, confidence), whichever asks first."""
    by_seed = dict(zip((n * 10_000 for n in range(5)), replies, strict=False))

    def reply(request: SeenRequest) -> dict[str, Any]:
        letter, confidence = by_seed[request.body["seed"]]
        return {"reasoning": f"It is {letter}.", "answer": letter, "confidence": confidence}

    provider.when("think step by step", reply)


async def test_samples_are_drawn_at_once_and_differ(
    provider: FakeProvider, case: Case, rows: list[CallRow]
) -> None:
    provider.latency = 0.1
    await cot_sc.solve(case, case.question, case.settings)
    assert len(provider.calls) == peak_in_flight(provider.calls) == 5
    assert {call.body["temperature"] for call in provider.calls} == {0.7}
    assert len({call.body["seed"] for call in provider.calls}) == 5
    assert len({call.text for call in provider.calls}) == 1
    assert {row.agent for row in rows} == {f"sample-{n}" for n in range(1, 6)}


@pytest.mark.parametrize(
    ("replies", "letter"),
    [
        ([("A", 0.9), ("B", 0.1), ("B", 0.1), ("B", 0.1), ("A", 0.9)], "B"),
        ([("A", 0.2), ("B", 0.6), ("B", 0.6), ("A", 0.9), ("C", 1.0)], "B"),
        ([("A", 0.7), ("B", 0.8), ("B", 0.8), ("A", 0.9), ("C", 1.0)], "A"),
    ],
    ids=["most votes", "then the mean confidence", "then the first sampled"],
)
async def test_the_vote(
    provider: FakeProvider, case: Case, replies: list[tuple[str, float]], letter: str
) -> None:
    sampled(provider, *replies)
    decision = await cot_sc.solve(case, case.question, case.settings)
    assert decision.letter == letter
    assert decision.votes() == dict(Counter(answer for answer, _ in replies))
    assert decision.analysis.endswith(f"votes. It is {letter}.")


async def test_a_sample_that_fails_is_left_out_and_named(
    provider: FakeProvider, case: Case
) -> None:
    provider.fail_next("context_length", match=lambda r: r.body["seed"] == 20_000)
    decision = await cot_sc.solve(case, case.question, case.settings)
    (left_out,) = case.left_out
    assert (left_out.agent, left_out.phase) == ("sample-3", "sample")
    assert [stated.agent for stated in decision.opinions] == [
        "sample-1", "sample-2", "sample-4", "sample-5",
    ]  # fmt: skip


async def test_without_any_sample_there_is_no_answer(provider: FakeProvider, case: Case) -> None:
    provider.fail_next("context_length", times=5)
    with pytest.raises(ProviderError):
        await cot_sc.solve(case, case.question, case.settings)


async def test_refused_samples_are_no_answer(provider: FakeProvider, case: Case) -> None:
    provider.fail_next("refusal", times=5)
    with pytest.raises(StructuredOutputError):
        await cot_sc.solve(case, case.question, case.settings)


async def test_the_majority_vote_asks_what_the_basic_team_asks(
    provider: FakeProvider, case: Case
) -> None:
    await majority_vote.solve(case, case.question, case.settings)
    asked = Counter(call.text for call in provider.calls)
    provider.reset()
    await basic.solve(case, case.question, case.settings)
    assert len(asked) == 4
    assert asked == Counter(call.text for call in provider.calls[:4])


letters = st.sampled_from("ABCD")
confidences = st.floats(min_value=0, max_value=1)


@pytest.mark.sweep
@given(st.lists(st.tuples(letters, confidences), min_size=1, max_size=9))
def test_nobody_has_more_votes_than_the_winner(ballots: list[tuple[str, float]]) -> None:
    decision = by_majority(
        [
            Stated(f"v{n}", "Voter", 0, letter, confidence, "")
            for n, (letter, confidence) in enumerate(ballots)
        ]
    )
    votes = decision.votes()
    assert votes[decision.letter] == max(votes.values())
    assert sum(votes.values()) == len(ballots)


# -- exemplars ------------------------------------------------------------------------------------

TRAIN = REPOSITORY / "data" / "medqa" / "sample_train.jsonl"


def a_question(text: str) -> SourceQuestion:
    return SourceQuestion("q", text, {"A": "yes", "B": "no"}, "A")


def write_split(name: str, *texts: str) -> Path:
    """A split in `data/mine` with a question of two options for each text."""
    path = Path("data/mine") / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    questions = [
        {"id": f"{name}-{n}", "question": text, "options": {"A": f"{n}", "B": "no"},
         "answer_idx": "A"}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return path


def shown(text: str, seed: int = 0) -> list[str]:
    dataset = open_dataset("mine", Path("data"))
    exemplars = open_exemplars(dataset, OptionOrder.SHUFFLED, seed)
    return [e.text for e in exemplars.beside(present(a_question(text), OptionOrder.ORIGINAL, 0))]


def test_the_choice_is_seeded_and_the_same_for_all_questions() -> None:
    write_split("test", "Any?")
    write_split("train", *(f"Question {n}?" for n in range(30)))
    first = shown("One?")
    assert len(set(first)) == SHOTS
    assert shown("Another?") == first
    assert shown("One?", seed=1) != first
    assert shown(first[1]) == [first[0], *first[2:], *set(shown(first[1])) - set(first)]


def test_no_exemplar_is_a_near_duplicate_of_the_question_or_of_another() -> None:
    write_split("test", "Any?")
    same = ["What is SCURVY?", "what is scurvy", "What  is “scurvy”?!", "Ｗhat is scurvy?"]
    write_split("train", *same, "Which vitamin?", "which vitamin", "How much?")
    assert len(shown("What is scurvy ?")) == 2
    assert not {fingerprint("What is scurvy?")} & {fingerprint(t) for t in shown("what is scurvy")}


texts = st.text(alphabet=st.characters(codec="utf-8"), min_size=1)


@given(texts, st.sampled_from(["", " ", "\n", " ?", "."]))
def test_typography_does_not_change_a_fingerprint(text: str, suffix: str) -> None:
    if any(map(str.isalnum, text)):
        assert fingerprint(f" {text}{suffix}") == fingerprint(text)
        assert fingerprint(text.replace(" ", "\u00a0 ")) == fingerprint(text)
    assert fingerprint(text) == fingerprint(text)


# -- whole runs -----------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("method", BASELINES)
def test_a_run(provider: FakeProvider, run: Run, method: str) -> None:
    provider.latency = 0.1
    status, _, err = run("--num-samples", "1", *asked_for(method))
    assert status == 0
    calls, steps = len(provider.calls), depth(provider.calls)
    most, least = CALLS[method], SHORTER.get(method, CALLS[method])
    assert least[0] <= calls <= most[0]
    assert least[1] <= steps <= most[1]
    (record,) = records()
    assert record["status"] == "answered"
    assert (record["difficulty"], record["routed_by"]) == (None, "method")
    (ledger,) = Path("output").glob("*/calls.jsonl")
    rows = map(json.loads, ledger.read_text().splitlines())
    assert record["calls"] == calls - sum(row["case_id"] == PREPARE for row in rows)
    assert record["response"]["final_answer"].startswith(f"{record['predicted']}) ")
    (folder,) = (file.parent for file in Path("output").glob("*/run.json"))
    assert folder.name.startswith(f"gpt-4o-mini_sample_{method}_1samples")
    assert f"method     {method}" in err
    trace = read_case(folder, record["case_id"])
    assert trace is not None
    assert any(f"Answer: {record['predicted']}" in turn.text for turn in trace.turns)


@pytest.mark.process
@pytest.mark.parametrize("method", BASELINES)
def test_the_forecast_is_that_of_the_run(provider: FakeProvider, run: Run, method: str) -> None:
    arguments = ["--num-samples", "2", *asked_for(method)]
    _, out, _ = run(*arguments, "--dry-run")
    assert provider.calls == []
    run(*arguments)
    assert f"| {method} " in out
    forecast = re.search(r"the whole run: (\d+)(?:–(\d+))? calls", out)
    assert forecast is not None
    if method in SHORTER:
        assert int(forecast[2] or forecast[1]) <= 2 * CALLS[method][0]
    else:
        assert int(forecast[1]) == len(provider.calls) == 2 * CALLS[method][0]


@pytest.mark.process
def test_the_evaluation_reads_it(run: Run) -> None:
    run("--num-samples", "3", "--method", "zero_shot")
    assert evaluate([], input_filename="", output_filename="") == 0
    (path,) = Path("evaluation").glob("*.csv")
    with path.open() as file:
        lines = list(csv.DictReader(file))
    assert [line["difficulty"] for line in lines] == ["", "", ""]
    assert all(line["response"] in "ABCD" for line in lines)


@pytest.mark.process
def test_epochs_and_samples_have_replies_of_their_own(provider: FakeProvider, run: Run) -> None:
    arguments = ["--num-samples", "1", "--method", "cot_sc", "--epochs", "3"]
    run(*arguments)
    assert len(provider.calls) == 15
    assert len({call.body["seed"] for call in provider.calls}) == 15
    run(*arguments, "--output-dir", "output", "--fresh")
    assert len(provider.calls) == 15, "all fifteen were kept"


@pytest.mark.process
def test_a_vote_after_the_basic_team_costs_nothing(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "2", "--difficulty", "basic")
    asked = len(provider.calls)
    run("--num-samples", "2", "--method", "majority_vote")
    assert len(provider.calls) == asked


@pytest.mark.process
def test_few_shot_shows_solved_questions_of_the_train_split(
    provider: FakeProvider, run: Run
) -> None:
    run("--num-samples", "2", "--method", "few_shot", "--option-order", "original")
    train = [json.loads(line) for line in TRAIN.read_text().splitlines()]
    shown_first = {call.messages[1].partition("\n\nQuestion:\n")[0] for call in provider.calls}
    assert len(provider.calls) == 2
    assert len(shown_first) == 1, "the same for all questions, so that prompt caches hold them"
    for call in provider.calls:
        assert call.messages[1].startswith("Examples:\n\n")
        example, _, question = call.messages[1].partition("\n\nQuestion:\n")
        assert "D) " in question
        assert "\nAnswer: " not in question
        solved = [
            q for q in train
            if f"{q['question']}\nA) " in example
            and f"D) {q['options']['D']}\nAnswer: {q['answer_idx']}\n" in f"{example}\n"
        ]  # fmt: skip
        assert len(solved) == SHOTS
        assert not any(q["explanation"] in call.text for q in train)


@pytest.fixture
def mine(run: Run) -> Run:
    """Runs on the data set `mine` of the working directory."""

    def call(*arguments: str, **skip: bool) -> tuple[int, str, str]:
        place = ["--data-dir", "data", "--dataset", "mine"]
        return run(*place, *arguments, **skip)

    return call


def test_few_shot_without_a_train_split_is_one_line(provider: FakeProvider, mine: Run) -> None:
    write_split("test", "Any?")
    status, out, err = mine("--method", "few_shot")
    assert (status, out) == (2, "")
    assert err.startswith("error: --method few_shot needs data/mine/train.jsonl")
    assert err.count("\n") == 1
    write_split("train", "One?", "Two?")
    status, _, err = mine("--method", "few_shot")
    assert status == 2
    assert "a prompt shows 5 questions and data/mine/train.jsonl has only 2; add more" in err
    assert not Path("output").exists()
    assert provider.calls == []


@pytest.mark.process
def test_another_train_split_is_another_run(provider: FakeProvider, mine: Run) -> None:
    write_split("test", "Any?")
    write_split("train", *(f"Question {n}?" for n in range(9)))
    named_by_its_defaults = ("--method", "few_shot", "--exaid", "off")
    assert mine(*named_by_its_defaults)[0] == 0
    asked = len(provider.calls)
    write_split("train", *(f"Question {n} too?" for n in range(9)))
    status, _, err = mine(*named_by_its_defaults)
    assert status == 2
    assert "differs in exemplars_sha256" in err
    assert len(provider.calls) == asked


@pytest.mark.process
def test_a_train_split_with_too_few_other_questions_is_noted(mine: Run) -> None:
    write_split("test", "Question 3?")
    write_split("train", *(f"Question {n}?" for n in range(5)))
    mine("--method", "few_shot")
    (record,) = records()
    assert record["repairs"] == ["only 4 exemplars differ from the question"]


@pytest.mark.process
def test_a_role_of_its_own_for_the_model(provider: FakeProvider, run: Run) -> None:
    run("--num-samples", "1", "--method", "cot_sc",
        "--model-role", f"{TeamRole.DECISION}=openai/gpt-5.4-mini")  # fmt: skip
    assert {call.body["model"] for call in provider.calls} == {"gpt-5.4-mini"}


def test_the_seeds_of_equal_agents_stay_within_64_bits() -> None:
    seeds = []
    for place in range(3):
        agent = SimpleNamespace(seed=2**63 - 1, repeat=0)
        seeds.append(apart(cast(Agent, agent), place, 3).seed)
    assert len(set(seeds)) == 3
    assert all(-(2**63) <= seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("method", [*BASELINES, "basic", "intermediate", "advanced"])
def test_a_method_declares_the_temperatures_of_its_turns(
    provider: FakeProvider, run: Run, method: str
) -> None:
    is_team = method not in BASELINES
    of_team = ("--difficulty", method) if is_team else asked_for(method)
    run(*of_team, "--num-samples", "2", "--exaid", "off")
    asked = {call.body["temperature"] for call in provider.calls}
    names = {0.0: "decision_temperature", 0.7: "expert_temperature"}
    declared = methods.declared("mdagents" if is_team else method, (method,))
    assert {names[temperature] for temperature in asked} == set(declared.temperatures)


def test_a_temperature_without_effect_is_refused(run: Run) -> None:
    status, _, err = run("--method", "cot", "--expert-temperature", "0.5", "--num-samples", "1")
    assert status == 2
    assert "--method cot has no turn at this temperature; leave --expert-temperature out" in err
