"""What nobody foresaw costs one question, or ends the program with one line."""

from __future__ import annotations

import asyncio
import json

import pytest

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
