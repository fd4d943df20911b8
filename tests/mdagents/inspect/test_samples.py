"""Samples, parameters and agents as people who use Inspect write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_create
from inspect_ai.agent import as_tool, handoff, react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ModelOutput,
    get_model,
)  # fmt: skip
from inspect_ai.scorer import choice, includes
from inspect_ai.solver import generate, multiple_choice, prompt_template

from mdagents.inspect.scorers import option, team
from mdagents.scoring.rows import read_output
from tests.fake_provider import MISSING, FakeProvider
from tests.mdagents.inspect.conftest import MODEL, Evaluate

pytestmark = pytest.mark.sweep

CHOICES = ["Retinol", "Thiamine", "Ascorbic acid"]
ASKED = "Which vitamin cures scurvy?"
LISTED = f"{ASKED}\nA) Retinol\nB) Thiamine\nC) Ascorbic acid"


@pytest.fixture(autouse=True)
def answers_c(provider: FakeProvider) -> None:
    provider.field_policy = lambda _, path: "C" if path[-1:] == ("answer",) else MISSING


def solver(name: str = "cot", **parameters: Any) -> Any:
    parameters = {"option_order": "original"} | parameters
    return registry_create("solver", f"mdagents/{name}", **parameters)


def task(sample: Sample, *before: Any, scorer: Any = None) -> Task:
    return Task([sample], solver=[*before, solver()], scorer=scorer or [option(), choice()])


def values(log: Any, name: str = "option") -> list[Any]:
    assert log.status == "success", log.error
    return [sample.scores[name].value for sample in log.samples]


@pytest.mark.parametrize("target", ["C", "c", "(C)", "C) Ascorbic acid", "Ascorbic acid"])
def test_a_target_may_have_any_form_that_files_have(evaluate: Evaluate, target: str) -> None:
    sample = Sample(input=ASKED, choices=CHOICES, target=target)
    assert values(evaluate(task(sample, scorer=option()))) == ["C"]
    unlisted = Sample(input=LISTED, target=target)
    assert values(evaluate(task(unlisted, scorer=option()))) == ["C"]


def test_of_several_right_choices_one_is_not_enough(evaluate: Evaluate) -> None:
    log = evaluate(task(Sample(input=ASKED, choices=CHOICES, target=["A", "C"])))
    assert (values(log), values(log, "choice")) == (["I"], ["I"])


def test_the_team_reads_the_whole_conversation(provider: FakeProvider, evaluate: Evaluate) -> None:
    said: Any = [
        ChatMessageSystem(content="You advise a ship."),
        ChatMessageUser(content="A sailor has bleeding gums."),
        ChatMessageAssistant(content="Since when?"),
        ChatMessageUser(content=ASKED),
    ]
    before = prompt_template("Think of the diet. {prompt}")
    assert values(evaluate(task(Sample(input=said, choices=CHOICES, target="C"), before))) == ["C"]
    prompt = provider.calls[0].text
    for text in ("You advise a ship.", "bleeding gums", "assistant: Since when?", "of the diet."):
        assert text in prompt


def test_options_that_the_text_lists_as_well_are_shown_once(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    assert values(evaluate(task(Sample(input=LISTED, choices=CHOICES, target="C")))) == ["C"]
    assert provider.calls[0].text.count("Thiamine") == 1


@pytest.mark.parametrize("theirs", [7, {}, {"pictures": 1}, {"pictures": [2]}, {"pictures": [{}]}])
def test_metadata_named_as_ours_are_theirs(evaluate: Evaluate, theirs: Any) -> None:
    sample = Sample(input=ASKED, choices=CHOICES, target="C", metadata={"mdagents": theirs})
    assert values(evaluate(task(sample))) == ["C"]


def test_an_empty_choice_is_an_error_not_another_letter(evaluate: Evaluate) -> None:
    sample = Sample(input=ASKED, choices=["Retinol", "", "Ascorbic acid"], target="C")
    log = evaluate(task(sample), fail_on_error=False)
    assert "choice B is empty" in log.samples[0].error.message


@pytest.mark.parametrize("by", [multiple_choice, generate])
def test_another_solver_is_scored_as_well(
    provider: FakeProvider, evaluate: Evaluate, by: Any
) -> None:
    provider.when(ASKED, "ANSWER: C")
    samples = [Sample(input=ASKED, choices=CHOICES, target=letter) for letter in "CA"]
    log = evaluate(Task(samples, solver=by(), scorer=[option(), team()]))
    assert values(log) == ["C", "I"]
    assert values(log, "team")[0]["answered"] == 1.0


def test_exaid_follows_a_sample_with_a_long_id(evaluate: Evaluate) -> None:
    sample = Sample(id="x" * 300, input=ASKED, choices=CHOICES, target="C")
    log = evaluate(Task([sample], solver=solver(exaid="turn_end"), scorer=option()))
    assert values(log) == ["C"]
    assert log.samples[0].store["TeamOutcome:exaid"]["summaries"]


def test_a_time_limit_within_exaid_keeps_the_answer(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    own = Task(
        [Sample(input=ASKED, choices=CHOICES, target="C", metadata={"difficulty": "hard"})],
        solver=solver(exaid="turn_end"),
        scorer=[option(), choice()],
    )
    with provider.hold("summar"):
        log = evaluate(own, time_limit=8)  # for a single call of the team
    (sample,) = log.samples
    assert sample.limit.type == "time"
    assert (values(log), values(log, "choice")) == (["C"], ["C"])
    spent = sample.store["TeamOutcome:tokens"]
    booked = sum(
        spent[kind][name]
        for kind in ("team", "exaid")
        for name in ("input_tokens", "output_tokens")
    )
    assert booked == sum(usage.total_tokens for usage in sample.model_usage.values())
    (row,) = read_output(Path(log.location)).rows
    assert (row.status, row.correct, row.difficulty) == ("answered", True, "")
    assert row.total_tokens == spent["team"]["input_tokens"] + spent["team"]["output_tokens"]


def test_a_message_limit_that_the_answer_reaches_leaves_scores_alike(evaluate: Evaluate) -> None:
    said: Any = [ChatMessageUser(content=text) for text in ("Hello.", "A sailor is ill.", ASKED)]
    log = evaluate(task(Sample(input=said, choices=CHOICES, target="C")), message_limit=3)
    (sample,) = log.samples
    assert sample.limit.type == "message"
    assert (values(log), values(log, "choice")) == (["C"], ["C"])
    (row,) = read_output(Path(log.location)).rows
    assert (row.status, row.correct) == ("answered", True)


class Words:
    """Counts the tokens of Inspect's mock model, which would fetch a tokenizer."""

    def encode(self, text: str, **_: Any) -> list[str]:
        return text.split()


def test_agents_take_turns_and_a_model_corrects_its_question(
    evaluate: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in ("get_encoding", "encoding_for_model"):
        monkeypatch.setattr(f"tiktoken.{function}", lambda _: Words())

    def called(tool: str, **arguments: str) -> ModelOutput:
        return ModelOutput.for_tool_call("mockllm/model", tool, arguments)

    agents = {name: registry_create("agent", f"mdagents/{name}") for name in ("cot", "basic")}
    outputs = [
        called("transfer_to_mdagentscot"), called("transfer_to_mdagentscot"),
        called("mdagentsbasic", input=f"{ASKED} A) one line B) of options"),
        called("submit", answer="C"),
    ]  # fmt: skip
    own = Task(
        [Sample(input=LISTED, target="C")],
        solver=react(tools=[handoff(agents["cot"]), as_tool(agents["basic"])]),
        scorer=includes(),
    )
    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    roles = dict.fromkeys(("recruiter", "decision", "expert"), MODEL)
    (sample,) = evaluate(own, model=model, model_roles=roles).samples
    assert sample.error is None
    said = [message.text for message in sample.messages]
    assert sum("ANSWER: C" in text for text in said) == 2
    (failed,) = (one.error.message for one in sample.messages if getattr(one, "error", None))
    assert "write each on a line of its own" in failed


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("medqa-sample", {"dataset": "my.csv"}, "mdagents/questions takes a dataset"),
        ("medqa-sample", {"team": ["cot", "basic"]}, "team is cot,basic; name one"),
        ("medqa-sample", {"team": "my_method.py"}, "my_method.py"),
        ("medqa-sample", {"team": "cot", "num_experts": 4}, "has no such number"),
        ("questions", {}, "name the questions"),
    ],
)
def test_a_mistake_is_said_in_a_line(name: str, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(PrerequisiteError) as raised:
        registry_create("task", f"mdagents/{name}", **parameters)
    assert said in str(raised.value.message)
    assert "\n" not in str(raised.value.message)


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("cot", {"limit": 1}, "selects questions"),
        ("cot", {"dataset": "medqa"}, "shows no examples"),
        ("few_shot", {"dataset": "medqa"}, "medqa is not there"),
    ],
)
def test_a_solver_takes_no_parameter_that_it_ignores(
    name: str, parameters: dict[str, Any], said: str
) -> None:
    with pytest.raises(PrerequisiteError) as raised:
        solver(name, **parameters)
    assert said in str(raised.value.message)
