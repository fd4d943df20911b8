"""What `--dry-run` says of hidden reasoning before a first run."""

from __future__ import annotations

import pytest

from mdagents.runs.config import RunConfig
from mdagents.runs.forecast import Forecast, forecast
from mdagents.scoring.formatting import as_text
from mdagents_llm.config import Environment


def of(model: str, **settings: str) -> Forecast:
    config = RunConfig(dataset="medqa-sample", method="zero_shot", model=model, **settings)
    return forecast(config, Environment({"OPENAI_API_KEY": "test-key"}))


def test_what_is_asked_for_is_counted_at_most_and_not_at_least() -> None:
    usual, thinking = of("gpt-5"), of("gpt-5", reasoning_effort="low", reasoning_tokens="3000")
    (low, high), (least, most) = usual.whole(), thinking.whole()
    assert least.output_tokens == low.output_tokens
    assert most.output_tokens == high.output_tokens + 3000 * high.calls
    assert most.cost is not None
    assert least.cost is not None
    assert most.cost > least.cost
    assert "from none at all to all that --reasoning-effort" in " ".join(
        as_text(thinking.parts()).split()
    )


@pytest.mark.parametrize(
    ("model", "may_think"), [("gpt-5", True), ("vllm/any", True), ("gpt-4o-mini", False)]
)
def test_a_model_that_may_think_is_named(model: str, may_think: bool) -> None:
    notices = " ".join(of(model).notices)
    assert ("may think before answering is not counted" in notices) == may_think
