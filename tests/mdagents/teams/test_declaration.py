"""A method that is one file: built-in in the folder of the baselines, or the user's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mdagents.runs.config import RunConfig
from mdagents.runs.identity import identity
from mdagents.settings import PRESETS, Preset, TeamRole
from mdagents.teams import baselines
from mdagents.teams.declaration import Method
from mdagents.teams.methods import declared
from mdagents.teams.names import baseline_names
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

RELAY = """
from mdagents import Decision, Method, TeamRole
from mdagents.agents import replies

@Method(
    roles=(TeamRole.EXPERT,),
    depth=lambda settings: settings.answer_rounds,
    reads=("answer_rounds", "opinion_words"),
    communicates=False,
    one_process=True,
)
async def solve(case, question, settings):
    form = replies.opinion(question.letters, settings.opinion_words)
    for number in range(settings.answer_rounds):
        expert = case.decider(f"expert-{number}", "Expert", TeamRole.EXPERT)
        last = await expert.ask(f"Round {number}: choose.", form, phase=f"round-{number}")
    return Decision(last.answer, last.reasoning)
"""

SHOWN = """
from mdagents import Decision, Method, TeamRole
from mdagents.agents import replies
from mdagents.datasets.exemplars import open_exemplars

@Method(exemplars=lambda train: open_exemplars(train.dataset, train.order, train.seed))
async def solve(case, question, settings, *, exemplars):
    agent = case.decider("physician", "Physician", TeamRole.DECISION)
    agent.exemplars = exemplars.beside(question)[0].block()
    reply = await agent.ask("Your task: choose.", replies.choice(question.letters), phase="one")
    return Decision(reply.answer, "")
"""


@pytest.fixture(params=["built-in", "own"])
def relay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The name under which `--method` finds the method in the file RELAY."""
    file = tmp_path / "methods" / "relay.py"
    file.parent.mkdir()
    file.write_text(RELAY)
    if request.param == "own":
        return str(file)
    monkeypatch.setattr(baselines, "__path__", [*baselines.__path__, str(file.parent)])
    monkeypatch.delitem(sys.modules, "mdagents.teams.baselines.relay", raising=False)
    return "relay"


def test_one_file_is_a_method(relay: str, provider: FakeProvider, run: Run) -> None:
    asked = ("--method", relay, "--num-samples", "1", "--num-rounds", "2")
    status, _, err = run(*asked, "--words", "opinion=20")
    assert status == 0, err
    assert "gpt-4o-mini (expert)" in err
    assert "method     relay, EXAID off" in err
    (record,) = records()
    assert (record["status"], record["routed_by"]) == ("answered", "method")
    assert len(provider.calls) == 2
    assert "| relay " in run(*asked, "--dry-run")[1]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--num-experts", "2"), "has no such number; leave --num-experts out"),
        (("--words", "cot=20"), "has no limit 'cot'; leave --words out"),
        (("--model-role", "decision=gpt-4o"), "nobody is decision; leave --model-role out"),
        (("--show-interaction-table",), "nobody writes to anybody"),
        (("--batch", "--num-rounds", "4"), "--method relay can take 4 steps one after the other"),
        (("--processes", "2"), "--method relay answers in one process; leave --processes out"),
    ],
)
def test_what_its_declaration_rules_out(
    relay: str, flags: tuple[str, ...], problem: str, run: Run
) -> None:
    status, _, err = run("--method", relay, *flags)
    assert status == 2
    assert problem in err


def test_its_rounds_are_part_of_the_identity(relay: str) -> None:
    identities = {identity(RunConfig(method=relay, num_rounds=n), {}, "") for n in (1, 2)}
    assert len(identities) == 2


def test_names_are_listed_without_importing(relay: str, run: Run) -> None:
    sys.modules.pop("mdagents.teams.baselines.relay", None)
    with pytest.raises(SystemExit):
        run("--help")
    assert ("relay" in baseline_names()) == (relay == "relay")
    assert "mdagents.teams.baselines.relay" not in sys.modules


def test_a_method_of_ones_own_can_show_exemplars(provider: FakeProvider, run: Run) -> None:
    Path("shown.py").write_text(SHOWN)
    status, _, err = run("--method", "shown.py", "--num-samples", "1")
    assert status == 0, err
    (call,) = provider.calls
    assert call.text.count("\nA) ") == 2
    (manifest,) = Path("output").glob("*/run.json")
    assert json.loads(manifest.read_text())["exemplars_sha256"]


def test_a_round_table_of_ones_own_needs_its_seats(run: Run) -> None:
    Path("table.py").write_text(RELAY.replace("one_process=True", "seats=3"))
    seats = [part for n in (1, 2) for part in ("--model-role", f"expert-{n}=gpt-4o")]
    status, _, err = run("--method", "table.py", "--num-samples", "1", *seats)
    assert status == 2
    assert "--method table is a round table of different models; name them: " in err
    assert err.endswith("--model-role expert-3=MODEL\n")


def test_a_number_that_does_not_exist() -> None:
    Path("wrong.py").write_text(RELAY.replace('"answer_rounds",', '"answer_round",'))
    message = "wrong.py cannot be loaded: ValueError: reads has answer_round, not in TeamSettings"
    with pytest.raises(ConfigError, match=message):
        declared("wrong.py")


def test_an_undeclared_method_may_ask_anybody() -> None:
    Path("plain.py").write_text("async def solve(case, question, settings): ...")
    found = declared("plain.py")
    assert found.roles == (TeamRole.RECRUITER, TeamRole.EXPERT, TeamRole.DECISION)
    assert found.steps(next(iter(PRESETS.values()))) == 1
    assert "answer_rounds" not in found.reads, "earlier runs keep their identity"


def test_every_module_of_the_baselines_is_a_declared_method() -> None:
    for name in baseline_names():
        assert declared(name) != Method(), name


@pytest.mark.parametrize(
    ("declared_as", "problem"),
    [
        ({"reads": "rounds"}, r"reads is the text 'rounds'; write \('rounds',\)"),
        ({"reads": ("round",)}, "reads has round, not in TeamSettings"),
        ({"roles": ("experts",)}, "roles has experts; use router, recruiter, expert, decision"),
    ],
)
def test_a_wrong_declaration_says_what_to_write(
    declared_as: dict[str, object], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Method(**declared_as)  # type: ignore[arg-type]


def test_a_depth_that_raises_is_an_error_of_the_configuration() -> None:
    faulty = Method(depth=lambda settings: settings.no_such_number)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="the depth of the method raised AttributeError"):
        faulty.steps(PRESETS[Preset.SMALL])
