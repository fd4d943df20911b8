"""Medprompt over real HTTP: who is shown what, in which order, and what is solved in advance."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exaid_core.trace.bus import TraceBus
from exaid_core.trace.events import EventKind
from mdagents.agents.case import Case, make_case_id
from mdagents.agents.events import Event, TurnEnded
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.questions import Question, SourceQuestion, present
from mdagents.records.manifest import Spent
from mdagents.settings import OptionOrder, TeamRole
from mdagents.teams.baselines import medprompt
from mdagents.teams.baselines.medprompt import Library, open_library
from mdagents.teams.decision import Decision
from mdagents.teams.train_split import Embedding, TrainSplit
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import ConfigError, LimitExceeded, ProviderError
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.llm_registry import ModelRegistry
from tests.fake_provider import FakeProvider, SeenRequest, depth
from tests.support.embedders import WordEmbedder, write_train
from tests.support.sweeps import seeds

SOLVING, SAMPLING = "think step by step", "Think through the last question"
"""Words of the prompt for a train question, and of that for a sample with examples."""


def library(*texts: str) -> Library:
    """A library over a train split with these texts, and ten of the same words besides."""
    write_train([*texts, *(f"Which vitamin is lacking in case {n}?" for n in range(10))])
    Path("data/mine/test.jsonl").write_text(
        '{"question": "Any?", "options": {"A": "1", "B": "2"}, "answer_idx": "A"}\n'
    )
    return open_library(train_split(OptionOrder.SHUFFLED, 7))


def train_split(order: OptionOrder, seed: int) -> TrainSplit:
    dataset = open_dataset("mine", Path("data"))
    return TrainSplit(dataset, order, seed, lambda: Embedding(WordEmbedder(), Path("cache")))


def asked(request: SeenRequest) -> Question:
    """The last question of a prompt, its letters as they are seen."""
    block = request.messages[1].partition("Question:\n")[2].partition("\n\n")[0]
    text, *options = block.split("\n")
    return Question("", text, {line[0]: line[3:] for line in options}, "", {})


def who_names(*answers: str) -> Callable[[SeenRequest], dict[str, Any]]:
    """A reply that names the first option that begins so, whatever its letter; without one A."""

    def reply(request: SeenRequest) -> dict[str, Any]:
        options = asked(request).options.items()
        letter = next((letter for letter, text in options if text.startswith(answers)), "A")
        return {"reasoning": f"It is {answers[0]}.", "answer": letter, "confidence": 0.8}

    return reply


def solves(provider: FakeProvider, *, wrong: Sequence[str] = ()) -> None:
    """The model solves train questions, but for those with these words in them."""

    def reply(request: SeenRequest) -> dict[str, Any]:
        is_wrong = any(word in asked(request).text for word in wrong)
        return who_names("wrong" if is_wrong else "right")(request)

    provider.when(SOLVING, reply)


def solved_in(provider: FakeProvider) -> Counter[str]:
    """Train question -> how often it was solved."""
    return Counter(
        asked(call).text
        for call in provider.calls
        if SOLVING in call.text and call.body["temperature"] == 0.0
    )


def shown_in(provider: FakeProvider) -> list[str]:
    """The examples of the samples' prompts."""
    prompts = [call.messages[1] for call in provider.calls if SAMPLING in call.text]
    return [prompt.partition("\n\nQuestion:\n")[0] for prompt in prompts]


async def solve(case: Case, library: Library) -> Decision:
    return await medprompt.solve(case, case.question, case.settings, exemplars=library)


def another(case: Case, number: int) -> Case:
    """A case with nearly the same question, of the same run."""
    question = replace(case.question, id=f"q-{number}", text=f"{case.question.text} ({number})")
    return replace(
        case, id=make_case_id(question.id), question=question, repairs=[], left_out=[],
        bus=TraceBus(),
    )  # fmt: skip


# -- the protocol --------------------------------------------------------------------------------


async def test_calls_and_depth(provider: FakeProvider, case: Case) -> None:
    solves(provider)
    examples = library()
    await examples.prepare()
    assert provider.calls == [], "it embeds, and asks no model"
    provider.latency = 0.1
    await solve(case, examples)
    assert len(provider.calls) == 5 + 5
    assert depth(provider.calls) == 2
    provider.reset()
    await solve(another(case, 2), examples)
    assert len(provider.calls) == 5, "all neighbours are solved already"
    assert depth(provider.calls) == 1
    assert {call.body["temperature"] for call in provider.calls} == {0.7}
    assert len({call.body["seed"] for call in provider.calls}) == 5


async def test_all_samples_see_the_same_solved_neighbours_first(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider)
    await solve(case, library("A 54-year-old sailor has gums. Which vitamin?"))
    (shown,) = set(shown_in(provider))
    blocks = shown.split("\n\n")
    assert blocks[0] == "Examples:"
    assert blocks[1].startswith("A 54-year-old sailor has gums. Which vitamin?\n"), "the nearest"
    assert len(blocks) == 1 + 5
    for block in blocks[1:]:
        assert block.splitlines()[-2] == "Reasoning: It is right."
        right = re.search(r"(?m)^([A-C])\) right", block)
        assert right is not None
        assert block.endswith(f"\nAnswer: {right[1]}")


async def test_every_sample_sees_the_options_in_another_order(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider)
    provider.when(SAMPLING, who_names("Ascorbic"))
    told: list[Event] = []
    case.tell = told.append
    decision = await solve(case, library())
    seen = [asked(call).options for call in provider.calls if SAMPLING in call.text]
    assert len({tuple(options.values()) for options in seen}) == 5
    assert {"".join(options) for options in seen} == {"ABCD"}
    assert len({letter for o in seen for letter, text in o.items() if "Asc" in text}) > 1
    assert {stated.answer for stated in decision.opinions} == {"C"}, "as the case presents them"
    assert decision.letter == "C"
    assert decision.votes() == {"C": 5}
    ends = [event for event in told if isinstance(event, TurnEnded)]
    assert [(end.phase, end.answer) for end in ends] == [("sample", "C")] * 5


@pytest.mark.parametrize("streams", [False, True])
async def test_the_transcript_has_the_letters_of_the_case(
    provider: FakeProvider, case: Case, streams: bool
) -> None:
    solves(provider)
    provider.when(SAMPLING, who_names("Ascorbic"))
    said: list[str] = []
    case.bus.subscribe(
        lambda event: said.append(event.text) if event.kind is EventKind.DELTA else None,
        wants_text=streams,
    )
    await solve(case, library())
    assert {call.streamed for call in provider.calls if SAMPLING in call.text} == {streams}
    assert re.findall(r"Answer: ([A-D])", "".join(said)) == ["C"] * 5
    assert "right" not in "".join(said), "the solutions of train questions are not part of it"


OPTIONS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@pytest.mark.parametrize("count", range(2, 11))
@pytest.mark.parametrize("order", OptionOrder)
async def test_letters_are_mapped_back_whatever_the_options(
    provider: FakeProvider, case: Case, count: int, order: OptionOrder
) -> None:
    options = dict(zip("ABCDEFGHIJ", OPTIONS[:count], strict=False))
    question = present(SourceQuestion("n", "How many?", options, "A"), order, count, epoch=2)
    solves(provider)
    provider.when(SAMPLING, who_names("two"))
    decision = await solve(replace(case, question=question), library())
    assert question.options[decision.letter] == "two"
    assert decision.votes() == {decision.letter: 5}
    seen = Counter(
        tuple(asked(call).options.values()) for call in provider.calls if SAMPLING in call.text
    )
    assert sorted(seen.values()) == ([2, 3] if count == 2 else [1] * 5)


async def test_the_orders_are_those_of_the_seed(provider: FakeProvider, case: Case) -> None:
    solves(provider)
    examples = library()

    async def seen(seed: int) -> list[str]:
        provider.reset()
        await solve(replace(case, seed=seed), examples)
        calls = sorted((c for c in provider.calls if SAMPLING in c.text), key=lambda c: c.seed or 0)
        return ["".join(asked(call).options.values()) for call in calls]

    assert await seen(1) == await seen(1) != await seen(2)


async def test_options_that_speak_of_places_stay_where_they_are(
    provider: FakeProvider, case: Case
) -> None:
    options = {"A": "Iron", "B": "Zinc", "C": "Both A and B", "D": "None of the above"}
    source = SourceQuestion("p", "What is low?", options, "C")
    question = present(source, OptionOrder.SHUFFLED, 3)
    solves(provider)
    await solve(replace(case, question=question), library())
    seen = [asked(call).options for call in provider.calls if SAMPLING in call.text]
    assert seen == [options] * 5


async def test_a_sample_that_fails_is_left_out_and_named(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider)
    provider.fail_next("context_length", match=lambda r: r.body["seed"] == 20_000)
    decision = await solve(case, library())
    assert [(left.agent, left.phase) for left in case.left_out] == [("sample-3", "sample")]
    assert len(decision.opinions) == 4


async def test_without_any_sample_there_is_no_answer(provider: FakeProvider, case: Case) -> None:
    solves(provider)
    provider.fail_next("context_length", match=SAMPLING, times=5)
    with pytest.raises(ProviderError):
        await solve(case, library())


# -- examples ------------------------------------------------------------------------------------


async def test_a_question_that_the_model_got_wrong_is_no_example(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider, wrong=["case 1?", "case 2?", "case 4?"])
    await solve(case, library())
    (shown,) = set(shown_in(provider))
    assert len(solved_in(provider)) == 10, "five at a time"
    assert shown.count("\nAnswer: ") == 5
    assert not re.search(r"case [124]\?", shown)
    assert case.repairs == []


@pytest.mark.sweep
async def test_examples_are_the_same_as_if_all_were_solved_in_advance(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider, wrong=["case 0?", "case 5?", "case 6?"])
    cases = [another(case, number) for number in range(3)]
    on_demand = library()
    for one in cases:
        await solve(one, on_demand)
    shown = shown_in(provider)
    in_advance = library()
    for one in cases:
        await in_advance.beside(one)
    provider.reset()
    for one in reversed(cases):
        await solve(one, in_advance)
    assert not solved_in(provider)
    assert Counter(shown_in(provider)) == Counter(shown)


async def test_after_twenty_neighbours_fewer_examples_will_do(
    provider: FakeProvider, case: Case
) -> None:
    examples = library(*(f"Which vitamin, again {n}?" for n in range(20)))
    solves(provider, wrong=["again", "case"])
    decision = await solve(case, examples)
    assert len(solved_in(provider)) == 20
    assert case.repairs == ["only 0 of 20 similar questions became examples"]
    assert len(decision.opinions) == 5
    asked_alone = [call for call in provider.calls if call.body["temperature"] == 0.7]
    assert len(asked_alone) == 5
    assert not any("xamples" in call.messages[1] for call in asked_alone), "none is spoken of"


async def test_the_question_itself_is_no_example(provider: FakeProvider, case: Case) -> None:
    solves(provider)
    await solve(case, library(case.question.text.upper().replace(".", " !")))
    assert not any("SAILOR" in call.messages[1] for call in provider.calls)


async def test_solutions_are_booked_apart_from_the_question(
    provider: FakeProvider, make_runtime: Callable[..., Any], rows: list[CallRow], case: Case,
    openai_spec: ModelSpec,
) -> None:  # fmt: skip
    solves(provider)
    spent = Spent()
    ledger = Ledger(rows.append, spent.add)
    registry = ModelRegistry(make_runtime(ledger=ledger))
    case.models = dict.fromkeys(TeamRole, registry.model(openai_spec))
    ledger.open_case(case.id)
    await solve(case, library())
    await registry.aclose()
    own = ledger.close_case(case.id).totals()
    prepared = [row for row in rows if row.case_id == "prepare"]
    assert (own.calls, len(prepared), len(rows)) == (5, 5, 10)
    tokens = sum(row.usage.total_tokens for row in prepared)
    assert (spent.calls, spent.prepared_tokens) == (10, tokens)
    assert spent.total_tokens == own.usage.total_tokens + tokens


async def test_a_train_question_is_solved_the_same_way_for_every_question_and_epoch(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider)

    async def solving(case: Case) -> set[tuple[str, int | None]]:
        provider.reset()
        await solve(case, library())
        return {(call.text, call.seed) for call in provider.calls if SOLVING in call.text}

    in_epoch_2 = replace(case, seed=case.seed + 1, repeat=1)
    assert await solving(in_epoch_2) == await solving(case)


async def test_an_error_is_held_against_no_other_question(
    provider: FakeProvider, case: Case
) -> None:
    solves(provider)
    examples = library()
    provider.fail_next("context_length", match=lambda r: "case 3?" in asked(r).text)
    await solve(case, examples)
    assert [left.agent for left in case.left_out] == ["prepare"]
    assert not any("case 3?" in shown for shown in shown_in(provider))
    provider.reset()
    later = another(case, 2)
    await solve(later, examples)
    assert solved_in(provider) == {"Which vitamin is lacking in case 3?": 1}
    assert later.left_out == []
    assert all("case 3?" in shown for shown in shown_in(provider))


def test_without_a_train_split_one_line_says_what_to_do() -> None:
    Path("data/mine").mkdir(parents=True)
    Path("data/mine/test.jsonl").write_text(
        '{"question": "Any?", "options": {"A": "1", "B": "2"}, "answer_idx": "A"}\n'
    )
    with pytest.raises(ConfigError, match=r"^--method medprompt needs data/mine/train.jsonl") as e:
        open_library(train_split(OptionOrder.SAME, 0))
    assert "\n" not in str(e.value)
    assert "in the form of test.jsonl" in str(e.value)
    assert "(of medqa, medmcqa, pubmedqa, mmlu, " in str(e.value)
    assert "python -m mdagents data download NAME fetches it)" in str(e.value)


# -- several questions at once -------------------------------------------------------------------


async def test_questions_at_once_share_the_calls(provider: FakeProvider, case: Case) -> None:
    solves(provider)
    provider.latency = 0.02
    examples = library()
    await asyncio.gather(*(solve(another(case, number), examples) for number in range(4)))
    assert set(solved_in(provider).values()) == {1}
    assert len(provider.calls) == len(solved_in(provider)) + 4 * 5


async def test_when_the_first_is_stopped_the_other_makes_the_call(
    provider: FakeProvider, case: Case, rows: list[CallRow]
) -> None:
    solves(provider)
    examples = library()
    with provider.hold(SOLVING) as hold:
        first = asyncio.ensure_future(solve(another(case, 1), examples))
        await asyncio.to_thread(hold.wait, 5)
        other = asyncio.ensure_future(solve(another(case, 2), examples))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.to_thread(hold.wait, 10)
        hold.release()
        decision = await other
    assert len(decision.opinions) == 5
    assert Counter(row.outcome for row in rows if row.case_id == "prepare") == {
        "ok": 5,
        "aborted": 5,
    }


class Counted:
    """A model that does something at each call before it is made."""

    def __init__(self, inner: ChatModel, at_call: Callable[[int], None]) -> None:
        self._inner = inner
        self._at_call = at_call
        self._calls = itertools.count(1)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        self._at_call(next(self._calls))
        return await self._inner.generate(request, on_text)


async def test_when_the_first_may_make_no_call_the_other_does(
    provider: FakeProvider, case: Case
) -> None:
    def stop(call: int) -> None:
        if call == 3:
            raise LimitExceeded("the question has reached its limit")

    solves(provider)
    examples = library()
    limited = another(case, 1)
    limited.models = dict.fromkeys(TeamRole, Counted(case.models[TeamRole.DECISION], stop))
    outcomes = await asyncio.gather(
        solve(limited, examples), solve(another(case, 2), examples), return_exceptions=True
    )
    assert isinstance(outcomes[0], LimitExceeded)
    assert isinstance(outcomes[1], Decision)
    assert len(set(shown_in(provider))) == 1
    assert shown_in(provider)[0].count("\nAnswer: ") == 5


@pytest.mark.parametrize("seed", seeds(12))
async def test_questions_that_are_stopped_at_random_disturb_no_other(
    provider: FakeProvider, case: Case, rows: list[CallRow], seed: int
) -> None:
    """The others show what they would have shown, and no train question is solved twice."""
    solves(provider, wrong=["case 2?", "case 7?"])
    cases = [another(case, number) for number in range(5)]
    alone = library()
    expected = {one.id: await alone.beside(one) for one in cases}
    rows.clear()
    chance = random.Random(seed)
    provider.latency = 0.002
    running: list[asyncio.Task[Any]] = []

    def stop_some(call: int) -> None:
        if chance.random() < 0.2:
            chance.choice(running[1:]).cancel()

    model = Counted(case.models[TeamRole.DECISION], stop_some)
    examples = library()
    for one in cases:
        one.models = dict.fromkeys(TeamRole, model)
        running.append(asyncio.ensure_future(examples.beside(one)))
    ended = await asyncio.gather(*running, return_exceptions=True)
    assert ended[0] == expected[cases[0].id], "it is never stopped"
    for one, outcome in zip(cases, ended, strict=True):
        assert isinstance(outcome, asyncio.CancelledError) or outcome == expected[one.id]
    for one in cases:  # nothing is left locked
        one.models = case.models
        assert await examples.beside(one) == expected[one.id]
    needed = {e.question.text for solved in expected.values() for e in solved}
    done = Counter(row.outcome for row in rows)
    assert set(done) <= {"ok", "aborted"}
    assert len(needed) <= done["ok"] <= 10, "each of the ten at most once"


@pytest.mark.sweep
async def test_a_run_that_was_killed_books_nothing_twice(
    provider: FakeProvider, case: Case, make_runtime: Callable[..., Any], openai_spec: ModelSpec
) -> None:
    solves(provider, wrong=["case 2?"])
    cases = [another(case, number) for number in range(4)]

    async def run(spent: Spent, of: Sequence[Case], cache: str) -> None:
        """A process: its own library, registry and cache; the ledger's file is that of the run."""
        store = ReplyStore(Path(cache))
        runtime = make_runtime(ledger=Ledger(spent.add), replies=store)
        registry = ModelRegistry(runtime)
        examples = library()
        models = dict.fromkeys(map(str, TeamRole), registry.model(openai_spec))
        await asyncio.gather(*(solve(replace(one, models=models), examples) for one in of))
        await registry.aclose()
        store.close()

    whole, resumed = Spent(), Spent()
    await run(whole, cases, "whole.sqlite")
    await run(resumed, cases[:2], "resumed.sqlite")
    await run(resumed, cases[1:], "resumed.sqlite")  # one was under way at the kill
    assert whole.prepared_tokens > 0
    assert resumed.cached_calls > 5
    assert resumed.cost_usd == pytest.approx(whole.cost_usd)
    others = {"cached_calls", "cost_usd"}
    assert resumed.model_dump(exclude=others) == whole.model_dump(exclude=others)
