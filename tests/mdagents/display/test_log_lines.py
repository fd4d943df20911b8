"""`--display log`, and every display without a terminal: what is said of a run, line by line."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import cast

import pytest

from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from mdagents.agents.events import Ended, Member, Recruited, Routed, Started, Summarised, TurnEnded
from mdagents.display import LogLines, Snapshot, make_display
from mdagents.display.display import IN_DETAIL_UP_TO
from mdagents.records.manifest import RunTotals, Spent
from mdagents.settings import Difficulty, RoutedBy
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.retry import Wait
from tests.mdagents.display.told import (
    ASKED,
    EMBOLISM,
    OPENING,
    made_of,
    record,
    tell,
    turn,
    words,
)


def snapshot(now: float, cooling: float = 0.0) -> Snapshot:
    return Snapshot(RunTotals(), Spent(), 5, 8, 0, cooling, now)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


class Said:
    """What stands on stderr since the last look."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def lines(self) -> list[str]:
        return self._capsys.readouterr().err.splitlines()


def a_wait(seconds: float, cause: str = "429 from api.test: slow down") -> Wait:
    return Wait(seconds, 1, ProviderError(cause, kind=ErrorKind.RATE_LIMIT))


def test_a_question_is_told_from_its_start_to_what_exaid_made_of_it(said: Said) -> None:
    lines = LogLines(2)
    lines.refresh(snapshot(0.0))
    tell(lines, "31", *OPENING)
    tell(lines, "31", turn("expert-1-cardiologist", "Cardiologist"), words("x", "Hm."))
    tell(lines, "31", TurnEnded("expert-1-cardiologist", "opinion", answer="C"))
    tell(lines, "31", Summarised(1, EMBOLISM), Ended("C", None))
    lines.refresh(snapshot(31.0))
    decided = record("31", "C").model_copy(update={"votes": {"C": 2, "D": 1}})
    lines.finished(decided, RunTotals(questions=1, correct=1))
    lines.summarised(made_of("31"))
    found = said.lines()
    assert found[:3] == [
        "question 31 started: Nine days after a caesarean section a 31-year-old woman becomes "
        "short of breath at rest.…",
        "question 31 routed to intermediate by the router: Surgery, clotting and imaging meet.",
        "question 31 recruited: Cardiologist, Pulmonologist (reports to Cardiologist), "
        "Haematologist",
    ]
    assert found[3:5] == ["question 31 EXAID summary 1", "   unsupported: 7.5 · cut: Agents"]
    assert len(found[5:-2]) == len(LIMITS)
    assert found[-3] == "   Agents: Cardiologist: Wells score; Pulmonologist: hypoxaemia"
    assert found[-2:] == [
        "question 31 C right (votes C 2, D 1); advanced, 9 calls, 14,210 tokens, 31.2 s; "
        "1/2 done, 1 of 1 right, 0:00:31 left",
        "question 31 EXAID made 0 summaries, 0 tokens",
    ]
    assert all(line.startswith(("question 31 ", "   ")) for line in found)


@pytest.mark.parametrize(
    ("routed", "line"),
    [
        (
            Routed(Difficulty.BASIC, RoutedBy.FORCED, ""),
            "question 7 goes to basic, as --difficulty says",
        ),
        (
            Routed(Difficulty.INTERMEDIATE, RoutedBy.FALLBACK, ""),
            "question 7 goes to intermediate: the router's reply could not be used",
        ),
        (
            Routed(Difficulty.BASIC, RoutedBy.ROUTER, "Of\none " + "fact " * 99),
            "question 7 routed to basic by the router: Of one fact fact fact fact fact fact fact "
            "fact fact fact fact fact…",
        ),
        (Routed(None, RoutedBy.METHOD, ""), ""),
    ],
)
def test_who_chose_the_team_is_said_in_words(routed: Routed, line: str, said: Said) -> None:
    tell(LogLines(1), "7", routed)
    assert said.lines() == ([line] if line else [])


def test_teams_are_named_with_their_members(said: Said) -> None:
    members = (
        Member("iat-1-nurse", "Nurse", team="First Team"),
        Member("iat-2-surgeon", "Surgeon", team="First Team"),
        Member("frdt-1-nurse", "Nurse", team="Review Team"),
    )
    tell(LogLines(1), "7", Recruited(members))
    assert said.lines() == ["question 7 recruited: First Team: Nurse, Surgeon; Review Team: Nurse"]


def test_an_epoch_is_told_apart(said: Said) -> None:
    lines = LogLines(4)
    lines.happened(("7", 2), Started(ASKED))
    lines.finished(record("7", "A").model_copy(update={"epoch": 2}), RunTotals(questions=1))
    assert [line.partition(") ")[0] for line in said.lines()] == [
        "question 7 (epoch 2",
        "question 7 (epoch 2",
    ]


def of_one_question(lines: LogLines) -> None:
    tell(lines, "7", *OPENING)
    for number in (1, 2, 3):
        tell(lines, "7", Summarised(number, EMBOLISM.model_copy()))
    tell(lines, "7", Ended("C", None))
    lines.finished(record("7", "C"), RunTotals(questions=1, correct=1))
    lines.summarised(made_of("7"))


@pytest.mark.parametrize(
    ("questions", "steps", "summaries"),
    [
        (IN_DETAIL_UP_TO, 3, ["1", "2", "3"]),
        (IN_DETAIL_UP_TO + 1, 0, []),
    ],
)
def test_the_more_questions_a_run_has_the_less_is_said_of_each(
    questions: int, steps: int, summaries: list[str], said: Said
) -> None:
    of_one_question(LogLines(questions))
    found = said.lines()
    told = ("question 7 started: ", "question 7 routed ", "question 7 recruited: ")
    assert sum(line.startswith(told) for line in found) == steps
    heads = [
        line.rpartition(" ")[2] for line in found if line.startswith("question 7 EXAID summary")
    ]
    assert heads == summaries
    assert found[-1].startswith("question 7 EXAID made")
    assert any(line.startswith("question 7 C right; ") for line in found)


def test_silence_ends_with_what_is_under_way(said: Said) -> None:
    lines = LogLines(30)
    lines.refresh(snapshot(0.0))
    tell(lines, "31", *OPENING, turn("expert-1-cardiologist", "Cardiologist"))
    tell(lines, "32", Started(ASKED))
    lines.refresh(snapshot(1.0))
    for second in range(2, 20):
        lines.refresh(snapshot(float(second)))
    tell(lines, "31", words("expert-1-cardiologist", "Heparin"))
    for second in range(20, 62):
        lines.refresh(snapshot(float(second)))
    assert said.lines() == [
        "2 questions and 5 calls in progress; longest question 31, for 29 s: intermediate, "
        "first opinions; Cardiologist at work; last heard of 10 s ago",
        "2 questions and 5 calls in progress; longest question 31, for 59 s: intermediate, "
        "first opinions; Cardiologist at work; last heard of 40 s ago",
    ]
    lines.say("anything")
    for second in range(62, 90):
        lines.refresh(snapshot(float(second)))
    assert said.lines() == ["anything"], "only silence is broken"


def test_while_a_batch_is_waited_for_silence_lasts_ten_minutes(said: Said) -> None:
    lines = LogLines(30)
    tell(lines, "31", *OPENING)
    for second in range(0, 1300, 5):
        lines.refresh(replace(snapshot(float(second)), in_batches=7))
    assert said.lines() == ["1 question in progress, 7 calls in batches"] * 2


def test_a_lasting_wait_is_a_line_each_half_minute_and_one_at_its_end(said: Said) -> None:
    lines = LogLines(30)
    for second in range(70):
        if second < 45:
            for _ in range(3):
                lines.waiting(a_wait(1.5))  # each call waits again and again, with gaps between
        if second == 10:
            lines.waiting(a_wait(4.0, "503 from api.test: busy"))
        lines.refresh(snapshot(float(second)))
    assert said.lines() == [
        "3 waiting: 429 from api.test, 2 s left",
        "1 waiting: 503 from api.test, 4 s left",
        "6 waiting: 429 from api.test, 2 s left",
        "over: 429 from api.test, after 46 s",
    ]


def test_an_error_that_is_over_in_a_moment_is_one_line_in_half_a_minute(said: Said) -> None:
    lines = LogLines(30)
    for second in range(40):
        if second % 9 == 0:
            lines.waiting(a_wait(1.0))
        lines.refresh(snapshot(float(second)))
    assert said.lines() == [
        "1 waiting: 429 from api.test, 1 s left",
        "0 questions and 5 calls in progress",
        "1 waiting: 429 from api.test, 1 s left",
    ]


def test_an_overloaded_endpoint_is_one_line_and_its_end(said: Said) -> None:
    lines = LogLines(30)
    for second in range(20):
        lines.refresh(snapshot(float(second), cooling=max(0.0, 8.0 - second)))
    assert said.lines() == [
        "all waiting: an endpoint is overloaded, 8 s left",
        "over: an endpoint is overloaded, after 8 s",
    ]


def test_a_result_without_a_right_option_is_neither_right_nor_wrong(said: Said) -> None:
    unknown = record("7", "C").model_copy(update={"label": "", "correct": None})
    LogLines(30).finished(unknown, RunTotals(questions=1))
    assert said.lines()[0].startswith("question 7 C, right option unknown; ")


def test_summaries_of_an_earlier_start_are_told_and_nothing_is_under_way(said: Said) -> None:
    lines = LogLines(20)
    lines.refresh(snapshot(0.0))
    tell(lines, "7", Summarised(1, EMBOLISM))
    lines.refresh(replace(snapshot(1.0)))
    assert said.lines()[0] == "question 7 EXAID summary 1"
    lines.refresh(snapshot(31.0))
    assert said.lines() == ["0 questions and 5 calls in progress"]


def test_of_the_only_question_the_result_is_said_once(said: Said) -> None:
    LogLines(1).finished(record("7", "C"), RunTotals(questions=1, correct=1))
    assert said.lines() == ["question 7 C right; advanced, 9 calls, 14,210 tokens, 31.2 s"]


def test_a_fault_of_the_log_costs_what_it_is_about_and_not_the_run(said: Said) -> None:
    with make_display("log", 20) as lines:
        for number in (1, 2):
            tell(lines, "7", Summarised(number, cast(AgentSummary, "no summary at all")))
            lines.finished(record("7", "C").model_copy(update={"calls": None}), RunTotals())
            lines.finished(record(f"q{number}", "C"), RunTotals(questions=1, correct=1))
    found = said.lines()
    assert found[0].startswith("the display failed (AttributeError(")
    assert [line.partition(";")[0] for line in found[1:] if "q" in line.partition(";")[0]] == [
        "q1 C right",
        "q2 C right",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="its pipes cannot be asked")
def test_a_reader_that_pauses_delays_no_question_and_loses_no_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # so that this test would fail, and not hang
    with os.fdopen(reading, "rb", 0) as reader, os.fdopen(writing, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        lines = LogLines(30)
        for number in range(3_000):  # far more than fits into a pipe
            lines.say(f"line {number} {'.' * 80}")
        read = b""
        for second in range(99):
            read += reader.read(100_000)
            lines.refresh(snapshot(float(second) / 10))
            if read.count(b"\n") == 3_000:
                break
    assert [line.split()[1] for line in read.decode().splitlines()] == [*map(str, range(3_000))]
