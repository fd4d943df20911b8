"""Scores: an error, a refusal or a reply that cannot be read is never counted as an answer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mdagents_llm.errors import ConfigError
from tests.fake_provider import MISSING, FakeProvider
from tests.mdagents.inspect.conftest import MODEL, Evaluate
from tests.support.whole_runs import Run

pytestmark = pytest.mark.sweep

UNANSWERED = {
    "refusal": ("refused", "N", "refusal"),
    "blocked": ("refused", "N", "refusal"),
    "invalid_schema": ("parse_error", "I", "invalid_response_format"),
    "cut_off": ("truncated", "I", "truncated"),
    "context_length": ("api_error", "N", "api_error"),
    "401": ("api_error", "N", "api_error"),
}
"""Fault of the provider -> (status, value of the score, reason)."""


def _metrics(log: Any) -> dict[str, float]:
    return {score.name: next(iter(score.metrics.values())).value for score in log.results.scores}


def test_a_question_without_an_answer_counts_as_wrong(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    for fault, (status, value, reason) in UNANSWERED.items():
        provider.fail_next(fault, times=9)
        log = evaluate(team="cot")
        provider.forget_faults()
        (sample,) = log.samples
        score = sample.scores["option"]
        assert (score.value, score.answer, score.reason) == (value, "", reason), fault
        assert (sample.error is not None) == (status == "api_error"), fault
        assert "ANSWER" not in sample.output.completion
        metrics = _metrics(log)
        assert (metrics["option"], metrics["answered"], metrics[status]) == (0.0, 0.0, 1.0), fault
        assert math.isnan(metrics["agreement"])
        assert log.status == "success"


def test_prompts_and_answers_are_those_of_main_py(
    provider: FakeProvider, evaluate: Evaluate, run: Run
) -> None:
    provider.field_policy = _letter_by_prompt
    status, _, _ = run("--model", "gpt-test", "--limit", "3", "--epochs", "2", "--method",
                       "zero_shot", "--display", "none")  # fmt: skip
    assert status == 0
    ours = {
        (one["question_id"], one["epoch"]): (one["source_predicted"], one["correct"])
        for one in map(json.loads, _lines())
    }
    before = len(provider.calls)
    log = evaluate(team="zero_shot", limit=3, epochs=2)
    theirs = {
        (one.id, one.epoch): (one.scores["option"].answer, one.scores["option"].value == "C")
        for one in log.samples
    }
    assert theirs == ours
    sent = [(call.text, call.body["seed"], call.body["temperature"]) for call in provider.calls]
    assert sorted(sent[:before]) == sorted(sent[before:])
    assert _metrics(log)["option"] == sum(right for _, right in ours.values()) / len(ours)


def _letter_by_prompt(request: Any, path: Any) -> Any:
    return "ABCD"[len(request.text) % 4] if path[-1:] == ("answer",) else MISSING


def _lines() -> list[str]:
    (file,) = Path("output").glob("*/samples.jsonl")
    return file.read_text().splitlines()


def test_levels_and_agreement_of_the_adaptive_team(
    provider: FakeProvider, evaluate: Evaluate
) -> None:
    provider.when("difficulty", {"difficulty": "basic"})
    provider.field_policy = lambda request, path: "B" if path[-1:] == ("answer",) else MISSING
    log = evaluate(limit=2)
    metrics = _metrics(log)
    assert metrics["agreement"] == 1.0
    named = {name for name in metrics if name.startswith("accuracy_")}
    assert named == {"accuracy_basic", "accuracy_intermediate", "accuracy_advanced"}
    levels = {one.scores["option"].metadata["level"] for one in log.samples}
    for level in levels:
        assert metrics[f"accuracy_{level}"] == metrics["option"] or len(levels) > 1


def test_a_time_limit_leaves_no_answer(provider: FakeProvider, evaluate: Evaluate) -> None:
    with provider.hold():
        log = evaluate(team="cot", time_limit=1)
    (sample,) = log.samples
    assert (sample.limit.type, sample.scores["option"].reason) == ("time", "no_answer")
    assert _metrics(log)["no_answer"] == 1.0


def test_mistakes_are_told_in_one_line(as_in_inspect: None, evaluate: Evaluate) -> None:
    from inspect_ai._util.error import PrerequisiteError

    for parameters, said in (
        ({"team": "nobody"}, "there is no team 'nobody'"),
        ({"modle": MODEL}, "there is no parameter 'modle'; did you mean"),
        ({"epochs": 2}, "Inspect has --epochs"),
        ({"team": "basic", "method": "cot"}, "leave method out"),
        ({"difficulty": "basic,advanced"}, "names several levels"),
        ({"exaid": "always"}, "exaid"),
    ):
        with pytest.raises(PrerequisiteError) as raised:
            evaluate(parameters=parameters)
        assert said in str(raised.value.message)
        assert "\n" not in str(raised.value.message)
        assert isinstance(raised.value.__cause__, ConfigError)
    with pytest.raises(PrerequisiteError) as raised:
        evaluate("mdagents/medqa")
    assert "python -m mdagents data download medqa" in str(raised.value.message)
