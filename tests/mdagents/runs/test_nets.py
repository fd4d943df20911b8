"""What nobody foresaw costs one question, or ends the program with one line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from exaid_core import exaid
from exaid_core.run_log import RunLog
from mdagents.runs import session
from mdagents.runs.solver import _ToOneTeam
from mdagents.teams.decision import Decision
from mdagents_llm.errors import UnexpectedError
from tests.fake_provider import FakeProvider
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.sweep


@pytest.fixture(autouse=True)
def _with_nets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MDAGENTS_DEBUG")


@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError])
def test_an_error_in_one_question_costs_that_question(
    kind: type[BaseException], provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, begun = _ToOneTeam.solve, []

    async def breaking(self: _ToOneTeam) -> Decision | None:
        begun.append(self)
        decision = await solve(self)
        if len(begun) == 2:
            raise kind("the patient, Ms. Miller, is 54")
        return decision

    monkeypatch.setattr(_ToOneTeam, "solve", breaking)
    status, _, err = run("--num-samples", "4", "--difficulty", "basic", "--max-samples", "1")
    assert status == 0, err
    assert [record["status"] for record in records()].count("answered") == 3
    (failed,) = (record for record in records() if record["status"] == "api_error")
    said = f"unexpected {kind.__name__} in tests.mdagents.runs.test_"
    assert str(failed["error"]).startswith(said)
    assert "Miller" not in json.dumps(records())
    assert "Traceback" not in err


def test_a_decision_that_makes_no_record_costs_that_question(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, begun = _ToOneTeam.solve, []

    async def odd(self: _ToOneTeam) -> Decision | None:
        begun.append(self)
        decision = await solve(self)
        if len(begun) == 2 and decision is not None:
            return replace(decision, opinions=("none",))  # type: ignore[arg-type]
        return decision

    monkeypatch.setattr(_ToOneTeam, "solve", odd)
    status, _, err = run("--num-samples", "3", "--difficulty", "basic", "--max-samples", "1")
    assert status == 0, err
    assert [record["status"] for record in records()] == ["answered", "api_error", "answered"]
    assert "unexpected " in records()[1]["error"]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_long_ids_are_answered_and_summarized(
    provider: FakeProvider, run: Run, processes: str
) -> None:
    ids = ["x" * 195, "x" * 196, "x" * 200, "a_" * 95, "a_" * 100]
    lines = [
        {"id": id_, "question": "Which vitamin?", "options": {"A": "C", "B": "D"}, "answer": "A"}
        for id_ in ids
    ]
    Path("own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    flags = ("--dataset", "own.jsonl", "--difficulty", "basic", "--exaid", "turn_end")
    status, _, err = run(*flags, "--epochs", "2", "--processes", processes)
    assert status == 0, err
    found = records()
    assert sorted(record["question_id"] for record in found) == sorted(2 * ids)
    assert len({record["case_id"] for record in found}) == 2 * len(ids)
    for record in found:
        assert record["status"] == "answered"
        assert record["exaid"]["summaries"]
        assert record["watched"]["error"] is None


@pytest.mark.parametrize("place", ["__init__", "tail_loss", "missed_alerts"])
def test_an_exaid_that_breaks_costs_no_answer(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def breaking(*_: object, **__: object) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(exaid.EXAID, place, breaking)
    flags = ("--num-samples", "2", "--difficulty", "basic", "--exaid", "turn_end")
    status, _, err = run(*flags)
    assert status == 0, err
    for record in records():
        assert record["status"] == "answered"
        assert "no room" in record["watched"]["error"]
        assert bool(record["exaid"]["summaries"]) == (place != "__init__"), "they were paid for"
        assert record["watched"]["tail_loss"] == 1.0
    (manifest,) = Path("output").glob("*/run.json")
    assert json.loads(manifest.read_text())["finished"]


def test_a_log_that_cannot_be_made_costs_no_answer(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(*_: object, **__: object) -> None:
        raise ValueError("no log")

    monkeypatch.setattr(RunLog, "lines", breaking)
    flags = ("--num-samples", "2", "--difficulty", "basic", "--exaid", "turn_end")
    status, _, err = run(*flags)
    assert status == 0, err
    for record in records():
        assert record["status"] == "answered"
        assert "no log" in record["watched"]["error"]


def test_an_error_outside_of_questions_ends_the_program_with_one_line(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(session, "LiveFeed", breaking)
    status, _, err = run("--num-samples", "2", "--difficulty", "basic")
    assert status == 1
    (line,) = err.splitlines()[-1:]
    assert line.startswith("stopped: unexpected ZeroDivisionError in tests.mdagents.runs.test_nets")
    assert "to resume: " in line
    assert "MDAGENTS_DEBUG=1 shows where" in line
    assert "Traceback" not in err


def test_an_account_has_no_text_of_the_error() -> None:
    of_patients: dict[str, int] = {}
    try:
        of_patients["SECRET"]
    except KeyError as error:
        said = str(UnexpectedError.of(error))
    assert said.startswith("unexpected KeyError in tests.mdagents.runs.test_nets:")
    assert "SECRET" not in said
