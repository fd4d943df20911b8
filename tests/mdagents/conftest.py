"""A case and a whole run on the fake provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mdagents.agents.case import Case
from mdagents.datasets.questions import SourceQuestion, present
from mdagents.runs.program import main
from mdagents.settings import Difficulty, OptionOrder, TeamRole, TeamSettings
from mdagents.teams.decision import Decision
from mdagents.teams.methods import TEAMS
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.llm_registry import ModelRegistry
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import SAMPLE, Run

if TYPE_CHECKING:
    from tests.support.otlp import Collector

Solve = Callable[..., Awaitable[Decision]]

SCURVY = SourceQuestion(
    id="q-1",
    text="A 54-year-old sailor has bleeding gums. Which vitamin is lacking?",
    options={"A": "Retinol", "B": "Thiamine", "C": "Ascorbic acid", "D": "Calciferol"},
    gold="C",
)


@pytest.fixture
def case(registry: ModelRegistry, openai_spec: ModelSpec) -> Case:
    """A case with a question of four options, all roles on the fake provider."""
    return Case(
        id="case-q-1",
        question=present(SCURVY, OptionOrder.ORIGINAL, 0),
        models=dict.fromkeys(TeamRole, registry.model(openai_spec)),
        settings=TeamSettings(),
        seed=0,
    )


@pytest.fixture
def solve(case: Case) -> Solve:
    """Lets a team answer the question of `case`; keyword arguments change its settings."""

    async def solve(difficulty: Difficulty, **changes: Any) -> Decision:
        settings = replace(case.settings, **changes)
        case.settings = settings
        return await TEAMS[difficulty](case, case.question, settings)

    return solve


@pytest.fixture
def fake_models(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables by which models are the fake provider's."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_base_url)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector of spans to which the standard variable points."""
    from tests.support.otlp import Collector  # needs the extra `opentelemetry`

    with Collector() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        yield server


@pytest.fixture
def run(
    fake_models: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Calls `main` on the fake provider and gives (exit status, stdout, stderr)."""
    monkeypatch.setenv("MDAGENTS_EXAID", "off")  # test_exaid_runs.py has it on

    def call(*arguments: str, **skip: bool) -> tuple[int, str, str]:
        data = ["--data-dir", str(REPOSITORY / "data"), "--dataset", str(SAMPLE)]
        left_out = [level for level, is_left_out in skip.items() if is_left_out]
        status = main([*data, *arguments], skip=left_out, show_interaction_table=False)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
