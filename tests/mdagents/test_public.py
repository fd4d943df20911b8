"""What is public, and what the library does where the command line would print and exit."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import exaid_core
import mdagents
import mdagents_llm
from mdagents.records.manifest import RunTotals, Spent
from mdagents.runs.one_question import question_of
from mdagents.scoring.formatting import interval
from mdagents.scoring.report import make_report
from mdagents.scoring.rows import read_output
from mdagents.settings import Difficulty, Outcome
from mdagents_llm.errors import ConfigError, EndpointDown
from tests.fake_provider import FakeProvider

pytestmark = [
    pytest.mark.usefixtures("fake_models"),
    # A run on the sample says so.
    pytest.mark.filterwarnings("ignore:These questions were written:UserWarning"),
]

QUESTION = "A 54-year-old sailor has bleeding gums. Which vitamin is lacking?"
RECORD = json.dumps(
    {"question_id": "1", "label": "A", "options": {"A": "x", "B": "y"}, "response": "A"}
)
OPTIONS = ["Retinol", "Thiamine", "Ascorbic acid", "Calciferol"]


@pytest.mark.parametrize("package", [mdagents, exaid_core, mdagents_llm], ids=lambda p: p.__name__)
def test_all_that_is_public_is_there_and_has_a_docstring(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(package, "nothing")  # noqa: B009


def test_the_surface_of_mdagents() -> None:
    assert set(mdagents.__all__) == {
        "answer", "run", "load", "RunConfig", "RunResult", "Question", "SampleRecord", "Decision",
        "Case", "Method", "Stated", "TeamRole", "TeamSettings", "compare", "RunComparison",
    }  # fmt: skip


@pytest.mark.process
def test_importing_it_loads_no_sdk_and_no_table() -> None:
    code = (
        "import sys, mdagents; mdagents.RunConfig(); "
        "print({'openai', 'google.genai', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_an_answer_is_a_record_and_leaves_no_file(provider: FakeProvider) -> None:
    record = await mdagents.answer(QUESTION, OPTIONS, team="basic", model="gpt-4o-mini", gold="C")
    assert (record.status, record.label, record.answer) == ("answered", "C", "Ascorbic acid")
    assert list(record.options.values()) == OPTIONS, "in the order in which they were given"
    assert record.correct == (record.predicted == "C")
    assert record.calls == len(provider.calls) == 5
    assert record.token_usage.total_tokens == provider.totals.input + provider.totals.output
    assert not os.listdir()  # noqa: PTH208 - nothing of pathlib in a coroutine


async def test_without_a_gold_letter_nobody_is_right_or_wrong() -> None:
    record = await mdagents.answer(QUESTION, dict(zip("ABCD", OPTIONS, strict=True)), team="cot")
    assert record.status == "answered"
    assert (record.label, record.answer, record.source_label) == ("", "", "")
    assert record.correct is None


async def test_an_option_that_says_nothing_is_left_out() -> None:
    record = await mdagents.answer(QUESTION, ["n/a", *OPTIONS], team="cot")
    assert list(record.options.values()) == OPTIONS


async def test_letters_of_a_list_in_another_order_are_kept() -> None:
    listed = ["(C) Lead", "(A) Iron", "(B) Zinc"]
    record = await mdagents.answer(QUESTION, listed, team="cot", gold="B")
    assert (record.options, record.label) == ({"A": "Iron", "B": "Zinc", "C": "Lead"}, "B")


@pytest.mark.parametrize(
    ("listed", "first"),
    [
        (["A. iron", "B. zinc", "C. lead"], "iron"),
        (["(A) Iron", "(B) Zinc"], "Iron"),
        (["A. anemia", "B. pneumonia", "C. sepsis"], "anemia"),
        (["A. cornea", "B. lens", "C. retina"], "cornea"),
        (["A. lupus", "B. tetanus", "C. stenosis"], "lupus"),
        (["E. coli", "F. nucleatum", "G. vaginalis"], "E. coli"),
        (["A. baumannii", "B. fragilis"], "A. baumannii"),
        (["(B) and (C)", "(C) and (D)"], "(B) and (C)"),
        (["B cells", "C cells"], "B cells"),
    ],
)
def test_letters_that_are_in_no_doubt(listed: list[str], first: str) -> None:
    assert question_of(QUESTION, listed).options["A"] == first


@pytest.mark.sweep
async def test_an_adaptive_answer_asks_the_router(provider: FakeProvider) -> None:
    provider.when("triage officer", {"difficulty": "intermediate"})
    record = await mdagents.answer(QUESTION, OPTIONS)
    assert (record.difficulty, record.routed_by) == ("intermediate", "router")


async def test_what_goes_wrong_is_a_status_or_an_error(provider: FakeProvider) -> None:
    config = mdagents.RunConfig(sample_token_limit=1)
    record = await mdagents.answer(QUESTION, OPTIONS, team="basic", config=config)
    assert (record.status, record.predicted, record.correct) == ("limit", None, None)
    provider.fail_next("401", times=99)
    with pytest.raises(EndpointDown):
        await mdagents.answer(QUESTION, OPTIONS, team="cot")


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ([f"option {n}" for n in range(12)], {}, "there are 12 options; at most 10 are allowed"),
        ("ABCD", {}, "options must be a list of texts"),
        ({"Iron", "Zinc"}, {}, "options must be a list of texts"),
        (["n/a", "Iron", "Zinc"], {"gold": "A"}, "that option is empty or n/a"),
        (["a\ud800", "b"], {}, "half of a surrogate pair"),
        (["a\0", "b"], {}, "NUL"),
        (OPTIONS, {"team": "easy"}, "there is no team 'easy'; there are adaptive, basic"),
        (OPTIONS, {"team": 3}, "team is a int but must be a text such as"),
        (OPTIONS, {"team": Path("x.py")}, "x.py"),
        (OPTIONS, {"team": mdagents.answer}, "team is a function but .* %%writefile my_team.py"),
        (OPTIONS, {"gold": "E"}, "gold is 'E' but must be one of A, B, C, D"),
        (OPTIONS[:1], {}, "the question: "),
        ([*OPTIONS, ""], {"gold": "E"}, "that option is empty"),
        (["B. cereus", "A. lwoffii", "C. difficile"], {}, "may be labels or part of names"),
        (["B. Thiamine", "C. Retinol", "D. Biotin"], {}, "leave labels out"),
        (["(C) Thiamine", "(D) Retinol"], {}, "leave labels out"),
        (["A. baumannii", "B. fragilis", "C. difficile"], {}, "write names in full"),
        ({"B": "x", "C": "y"}, {}, "the question: option letters B,C are not consecutive"),
        (OPTIONS, {"team": "few_shot"}, "few_shot takes its exemplars from a data set"),
        (OPTIONS, {"model": "nobody"}, "unknown model 'nobody'"),
    ],
)
async def test_a_question_that_cannot_be_asked(
    options: list[str] | dict[str, str], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        await mdagents.answer(QUESTION, options, **arguments)


@pytest.mark.process
def test_a_run_goes_on_and_is_loaded(provider: FakeProvider) -> None:
    config = mdagents.RunConfig(num_samples=3, difficulty=Difficulty.BASIC, exaid="off")
    result = mdagents.run(config)
    assert result.outcome is Outcome.FINISHED
    calls = len(provider.calls)
    with pytest.warns(UserWarning, match="were written for this project"):
        assert mdagents.run(config).already_finished
    assert len(provider.calls) == calls
    frame = mdagents.load(result)
    assert frame["question_id"].tolist() == ["sample-001", "sample-002", "sample-003"]
    assert frame["correct"].dtype == bool
    assert frame["calls"].sum() == calls
    pd.testing.assert_frame_equal(frame, mdagents.load(str(result.array_path)))


def test_what_is_odd_in_a_file_is_a_warning() -> None:
    Path("x.jsonl").write_text(RECORD + "\n" + RECORD[:40])
    with pytest.warns(UserWarning, match="torn"):
        assert len(mdagents.load("x.jsonl")) == 1


@pytest.mark.process
async def test_a_run_in_a_notebook_has_a_thread_of_its_own() -> None:
    config = mdagents.RunConfig(num_samples=2, method="zero_shot")
    assert mdagents.run(config).outcome is Outcome.FINISHED
    assert asyncio.get_running_loop().is_running()


@pytest.mark.process
@pytest.mark.parametrize("in_a_loop", [True, False])
def test_ctrl_c_stops_a_run_which_can_go_on_at_once(
    in_a_loop: bool, provider: FakeProvider
) -> None:
    config = mdagents.RunConfig(num_samples=4, method="cot", max_samples=2)
    hold = provider.hold()

    async def cell() -> None:
        mdagents.run(config)

    def interrupt() -> None:
        hold.wait(2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    before = signal.getsignal(signal.SIGINT)
    call = (lambda: asyncio.run(cell())) if in_a_loop else (lambda: mdagents.run(config))
    with pytest.raises(KeyboardInterrupt):
        call()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    (file,) = Path("output").glob("*/run.json")
    ended = json.loads(file.read_text())["invocations"][-1]["ended_at"]
    assert ended is not None, "all is written when the interrupt is raised"
    hold.release()
    assert mdagents.run(config).outcome is Outcome.FINISHED


@pytest.mark.process
def test_the_signals_of_the_caller_stay_with_it() -> None:
    def mine(number: int, frame: object) -> None: ...

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, mine) for number in numbers]
    try:
        mdagents.run(mdagents.RunConfig(num_samples=1, method="zero_shot"))
        assert [signal.getsignal(number) for number in numbers] == [mine, mine]
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@pytest.mark.process
def test_a_wrong_key_is_raised_and_the_same_call_goes_on(provider: FakeProvider) -> None:
    config = mdagents.RunConfig(num_samples=2, method="zero_shot")
    provider.fail_next("401")
    with pytest.raises(EndpointDown):
        mdagents.run(config)
    assert mdagents.run(config).outcome is Outcome.FINISHED


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "--num-samples is 0 but must be at least 1"),
        ({"limit": "3-1"}, "--limit is '3-1' but must be N or A-B"),
        ({"skip": ["easy"]}, "--skip easy: the levels are basic, intermediate, advanced$"),
        ({"words": {"cot": 2}}, "--words cot=2: write NAME=N"),
        ({"method": "cot", "difficulty": "basic"}, "does not route its questions"),
        (
            {"method": "cots"},
            "--method is 'cots' but must be one of mdagents, cot, .*; did you mean 'cot'",
        ),
        (
            {"difficulty": "hard"},
            "--difficulty is 'hard' but must be one of adaptive, .*, advanced, or several",
        ),
        ({"num_samples": "x"}, "--num-samples is 'x' but must be a whole number"),
        ({"num_sample": 3}, "there is no setting num_sample; .*; did you mean 'num_samples'"),
        ({"skip": 5}, "--skip is 5: give a text with commas, or a list"),
        ({"words": None}, "--words is None: give NAME -> value"),
        ({"words": "cot=2"}, "--words cot=2: write NAME=N"),
        ({"model_role": {"router": None}}, "--model-role router=: write ROLE=MODEL"),
        ({"fail_on_error": -1}, "--fail-on-error is -1 but must be 0 or more"),
    ],
)
def test_a_setting_that_makes_no_sense(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        mdagents.RunConfig(**settings)


def test_a_setting_is_said_in_words_or_in_types() -> None:
    by_words = mdagents.RunConfig(
        sample_id="12, 57",
        skip="advanced,basic",
        words=["cot=300", "debate-opinion=40"],
        model_role=["router=gpt-4o"],
        limit="20",
    )
    assert by_words == mdagents.RunConfig(
        sample_id=("12", "57"),
        skip=("basic", "advanced"),
        words={"cot": 300, "debate_opinion": 40},
        model_role={"router": "gpt-4o"},
        num_samples=20,
    )
    Path("own.py").touch()
    by_path = mdagents.RunConfig(dataset=Path("data/own.jsonl"), method=Path("own.py"))
    assert by_path.flags()["dataset"] == str(Path("data/own.jsonl"))
    assert by_path == mdagents.RunConfig(dataset="data/own.jsonl", method="own.py")
    assert mdagents.RunConfig(sample_id=["a,b"]).flags()["sample_id"] == ["a,b"]
    again = mdagents.RunConfig(**by_words.model_dump(exclude_unset=True))
    assert again == by_words
    assert again.flags() == by_words.flags()


# -- what a notebook shows --------------------------------------------------------------------


@pytest.mark.process
def test_a_result_is_shown_in_a_line_and_as_a_table() -> None:
    result = mdagents.run(mdagents.RunConfig(num_samples=12, difficulty="basic", exaid="off"))
    frame = mdagents.load(result)
    assert result.accuracy == frame["correct"].mean()
    assert result.accuracy_interval is not None
    low, high = result.accuracy_interval
    assert 0 <= low <= result.accuracy <= high <= 1
    assert result.cost_usd is not None
    assert result.cost_usd > 0
    shown = repr(result)
    assert len(shown) < 250
    for part in (
        "<RunResult 12 questions, openai/gpt-4o-mini, medqa-sample, basic, accuracy ",
        f"{result.accuracy:.1%} ({low * 100:.1f}–{high * 100:.1f}), ",
        " USD, finished, output/",
    ):
        assert part in shown
    table = result._repr_html_()
    assert '<th style="text-align: left">accuracy</th>' in table
    assert "color" not in table, "a theme has its own"


@pytest.mark.process
def test_names_from_outside_are_text_in_a_notebook() -> None:
    result = mdagents.run(mdagents.RunConfig(num_samples=1, difficulty="basic", exaid="off"))
    hostile = "</td><script>alert(1)</script>&\"'"
    manifest = result.manifest.model_copy(
        update={"models": {"expert": hostile}, "dataset": hostile, "options": {"method": hostile}}
    )
    changed = replace(result, manifest=manifest, folder=Path(hostile), reason=hostile)
    table = changed._repr_html_()
    assert table.count("&lt;/td&gt;&lt;script&gt;") == 5
    assert "<script" not in table
    assert hostile in repr(changed)


@pytest.mark.process
def test_a_result_without_a_scored_question_or_a_price_is_shown() -> None:
    result = mdagents.run(mdagents.RunConfig(num_samples=1, difficulty="basic", exaid="off"))
    empty = result.manifest.model_copy(
        update={"totals": RunTotals(), "spent": Spent(cost_usd=None), "item_ids": ["1", "2"]}
    )
    changed = replace(result, manifest=empty)
    assert (changed.accuracy, changed.accuracy_interval, changed.cost_usd) == (None, None, None)
    assert "<RunResult 0 of 2 questions, " in repr(changed)
    assert "not known" in changed._repr_html_()


@pytest.mark.process
def test_the_interval_of_a_run_with_epochs_is_that_of_its_report() -> None:
    config = mdagents.RunConfig(num_samples=5, epochs=3, difficulty="basic", exaid="off")
    result = mdagents.run(config)
    overall = make_report(read_output(result.folder)).overall
    assert result.accuracy_interval == (overall.accuracy_low, overall.accuracy_high)
    shutil.rmtree(result.folder)
    assert f"({interval(*result.accuracy_interval)})" in repr(result), "its files are not needed"


def test_a_record_and_a_configuration_are_short() -> None:
    record = asyncio.run(mdagents.answer(QUESTION, OPTIONS, team="basic", gold="C"))
    shown = repr(record)
    assert shown.startswith("SampleRecord(question_id=")
    assert f"predicted='{record.predicted}'" in shown
    assert len(shown) < 250
    config = mdagents.RunConfig(seed=3, difficulty="basic")
    assert repr(config) == "RunConfig(difficulty=<Difficulty.BASIC: 'basic'>, seed=3)"
