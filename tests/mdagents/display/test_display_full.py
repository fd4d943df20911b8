"""`--display full`: what stands on the terminal, and that it never gets in the way.

`python -m tests.mdagents.display.test_display_full` draws the picture of the documentation anew.
"""

from __future__ import annotations

import io
import os
import re
import select
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from exaid_core.templates import LABELS
from mdagents.agents.events import Ended, Member, Recruited, Routed, Started, Summarised, TurnEnded
from mdagents.display import Display, Failsafe, LogLines, Snapshot, make_display
from mdagents.display.terminal_view import TerminalView
from mdagents.records.manifest import ExaidTotals, RunTotals, Spent
from mdagents.records.sample import CaseSummaries, Watched
from mdagents.settings import Difficulty, RoutedBy, Status
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.retry import Wait
from tests.mdagents.display.told import (
    ASKED,
    EMBOLISM,
    OPENING,
    PANEL,
    made_of,
    record,
    tell,
    turn,
    words,
)

PICTURE = Path(__file__).parents[3] / "docs" / "images" / "terminal_view.svg"

KETOACIDOSIS = AgentSummary(
    status_action="Diabetic ketoacidosis with potassium 2.9 mmol/L; insulin is held back.",
    key_findings="pH 7.12, glucose 480 mg/dL, ketones +++, potassium 2.9 mmol/L, flat T waves.",
    differential_rationale="Ketoacidosis is certain; what is open is the order of treatment.",
    uncertainty_confidence="Nephrologist 90% for B; emergency physician 60% for A.",
    recommendation_next_step="Potassium 20 mmol/h with saline first; insulin above 3.3 mmol/L.",
    agent_contributions="Nephrologist: potassium first; emergency physician: insulin at once.",
    agents=("expert-1-nephrologist", "expert-2-emergency-physician"),
    dissent_missing=True,
)


@pytest.fixture(autouse=True)
def _stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that a test leaves open keeps stderr no longer than that."""
    monkeypatch.setattr(sys, "stderr", sys.stderr)


TOTALS = RunTotals(
    questions=37,
    status_counts={"answered": 35, "api_error": 2},
    correct=24,
    exaid=ExaidTotals(alerts=3),
)


def snapshot(now: float, totals: RunTotals = TOTALS) -> Snapshot:
    spent = Spent(
        input_tokens=401_233, output_tokens=88_120, cost_usd=0.87, failed_attempts=3,
        exaid_calls=9, exaid_tokens=31_400,
    )  # fmt: skip
    return Snapshot(totals, spent, under_way=14, allowed=16, queued=2, cooling=0.0, now=now)


class Terminal(Console):
    """A terminal in memory: what rich writes, and what a person sees of it."""

    def __init__(self, width: int = 100, height: int = 40, **environment: str) -> None:
        self.written = io.StringIO()
        super().__init__(
            file=self.written,
            force_terminal=True,
            color_system="truecolor",
            width=width,
            height=height,
            legacy_windows=False,
            record=True,
            _environ={"TERM": "xterm-256color", **environment},
        )

    def seen(self) -> list[str]:
        """All lines, those that have scrolled off the top included."""
        lines, row, column = [""], 0, 0
        for token in re.findall(r"\x1b\[.*?[A-Za-z]|[\r\n]|[^\x1b\r\n]+", self.written.getvalue()):
            if token == "\n":
                row, column = row + 1, 0
                lines += [""] * (row == len(lines))
            elif token == "\r":
                column = 0
            elif token == "\x1b[1A":
                row -= 1
            elif token == "\x1b[2K":
                lines[row] = ""
            elif not token.startswith("\x1b"):
                lines[row] = lines[row][:column].ljust(column) + token
                column = len(lines[row])
        return [line.rstrip() for line in lines]

    def has_cursor(self) -> bool:
        """Whether the cursor is shown."""
        written = self.written.getvalue()
        return written.rfind("\x1b[?25h") > written.rfind("\x1b[?25l")

    def frame(self) -> list[str]:
        """The part that is drawn anew each time."""
        lines = self.seen()
        return lines[_first_of_frame(lines) :]

    def scrolled(self) -> list[str]:
        """What has scrolled by above it."""
        lines = self.seen()
        return lines[: _first_of_frame(lines)]


def _first_of_frame(lines: list[str]) -> int:
    return next(n for n, line in enumerate(lines) if re.match(r"\d+/\d+ ", line))


def titles(lines: list[str]) -> list[str]:
    """Titles of the boxes among the lines, without the seconds."""
    return [re.sub(r" · \d+ s$", "", line.strip("╭╮─ ")) for line in lines if line[:1] == "╭"]


def play(view: TerminalView) -> None:
    """A run in which everything that the view can show has happened."""
    view.refresh(snapshot(0.0, RunTotals(questions=0)))
    tell(view, "sample_40", Started(ASKED), Routed(Difficulty.ADVANCED, RoutedBy.ROUTER, ""))
    tell(view, "sample_40", turn("mdt2-1-nephrologist", "Nephrologist", "mdt2-delegate"))
    tell(view, "sample_40", Summarised(1, KETOACIDOSIS))
    tell(view, "sample_42", Started(ASKED), turn("router", "Router", "route"))
    tell(view, "sample_41", *OPENING)
    view.refresh(snapshot(235.0))
    for member, letter in zip(PANEL, "CDC", strict=True):
        tell(view, "sample_41", turn(member.agent, member.role))
        tell(view, "sample_41", TurnEnded(member.agent, "opinion", answer=letter, confidence=0.8))
    for member in PANEL[:2]:
        tell(view, "sample_41", turn(member.agent, member.role, "round-1-turn-2"))
    said = "To Expert 2: With a Wells score of 7.5 nobody waits for an ECG; heparin comes first."
    tell(view, "sample_41", *(words("expert-1-cardiologist", word) for word in said.split("|")))
    tell(view, "sample_41", Summarised(1, EMBOLISM))
    view.finished(record("sample_34", "B", "B", level="basic", seconds=2.9, tokens=912), TOTALS)
    view.finished(record("sample_33", "C", "A", level="intermediate", tokens=8_733), TOTALS)
    error = "500 from api.openai.com: The server had an error"
    view.finished(record("sample_36", None, status=Status.API_ERROR, error=error), TOTALS)
    view.finished(record("sample_38", "D", "D", seconds=48.0, tokens=21_006), TOTALS)
    slow_down = ProviderError("429 from api.openai.com: slow down", kind=ErrorKind.RATE_LIMIT)
    view.waiting(Wait(12.0, 1, slow_down))
    view.refresh(snapshot(250.0))


def test_figures_question_and_log_stand_below_each_other() -> None:
    terminal = Terminal()
    play(TerminalView(100, terminal))
    lines = terminal.frame()

    assert re.fullmatch(r"37/100 [━╸╺]+ 0:07:06 left", lines[0])
    assert lines[1:4] == [
        "accuracy 64.9% (48.8–78.2) · 14/16 calls, 2 queued · 489,353 tokens"
        ", 31,400 of them EXAID's · $0.87",
        "3 failed attempts · API error: 2 · 3 critical alerts · 0:04:10 so far",
        "1 waiting: 429 from api.openai.com, 12 s left",
    ]
    assert lines[4].startswith("╭─ sample_41 · intermediate · debate, round 1, turn 2 · 15 s ─")
    end = next(number for number, line in enumerate(lines) if line.startswith("╰"))
    box = [line.strip("│ ") for line in lines[5:end]]
    assert box[0].startswith("Nine days after a caesarean section a 31-year-old woman")
    assert box[3:9] == [
        "A) Chest radiograph, and antibiotics if it shows an infiltrate",
        "B) Echocardiography within two days",
        "C) Anticoagulation and CT pulmonary angiography".ljust(59)
        + "Cardiologist, Haematologist   2 votes",
        "D) Thrombolysis at once".ljust(73) + "Pulmonologist    1 vote",
        "working: Cardiologist, Pulmonologist",
        "Cardiologist: To Pulmonologist: With a Wells score of 7.5 nobody waits for an ECG; "
        "heparin comes",
    ]
    assert box[10] == "EXAID summary 1 · unsupported: 7.5 · cut: Agents"
    labels = [match[1] for line in box[11:] if (match := re.match(r"(\w[\w /]*?\w)  +\w", line))]
    assert labels == list(LABELS.values())
    assert box[-1] == "Agents           Cardiologist: Wells score; Pulmonologist: hypoxaemia"
    assert lines[end + 1 : end + 3] == [
        "sample_40  advanced · team 2: the lead delegates · 15 s",
        "sample_42  routing · 15 s",
    ]
    assert [line.split() for line in lines[end + 3 : end + 6]] == [
        ["question", "level", "result", "time", "tokens"],
        ["sample_34", "basic", "B", "right", "2.9", "s", "912"],
        ["sample_33", "intermediate", "C", "wrong,", "gold", "A", "31.2", "s", "8,733"],
    ]
    assert lines[end + 6].split()[:5] == ["sample_36", "advanced", "API", "error", "31.2"]
    assert "500 from api.openai.com" in lines[end + 6]


def test_a_summary_in_one_line_says_something() -> None:
    terminal = Terminal(width=80, height=24)
    with TerminalView(20, terminal) as view:
        view.refresh(snapshot(0.0, RunTotals(questions=0)))
        view.refresh(snapshot(1.0))
        without_status = KETOACIDOSIS.model_copy(update={"status_action": PLACEHOLDER})
        tell(view, "q1", Started(ASKED), Summarised(1, without_status), Ended("B", None))
        tell(view, "q2", Started(ASKED), Summarised(1, EMBOLISM))
        view.refresh(snapshot(30.0))
    line = next(line for line in terminal.seen() if line.startswith("q1 EXAID summary 1: "))
    assert line.removeprefix("q1 EXAID summary 1: ")[:20] in KETOACIDOSIS.recommendation_next_step


def test_every_part_has_room_on_80_columns_and_24_lines() -> None:
    terminal = Terminal(width=80, height=24)
    play(TerminalView(20, terminal))
    seen, frame = terminal.seen(), terminal.frame()

    assert len(frame) <= 22
    assert len(seen) - len(frame) == 1, "a summary that makes way takes one line"
    assert seen[0].startswith("sample_40 EXAID summary 1: Diabetic ketoacidosis with")
    text = "\n".join(frame)
    for part in (
        "37/20",
        "sample_41 · intermediate · debate, round 1, turn 2",
        "Nine days after",
        "C) Anticoagulation",
        " 2 votes │",
        "working: Cardiologist, Pulmonologist",
        "heparin comes first.",
        "EXAID summary 1",
        "Status / action  Suspected pulmonary embolism",
        "Next step        CT pulmonary",
        "sample_40  advanced",
        "sample_38",
    ):
        assert part in text


def test_in_a_long_run_only_what_is_notable_scrolls_by() -> None:
    for height in (24, 40):
        terminal = Terminal(height=height)
        with TerminalView(21, terminal) as view:
            view.say("dataset    medqa")
            tell(view, "quiet", turn("moderator"), Summarised(1, EMBOLISM), Ended("B", None))
            view.finished(record("quiet", "B"), TOTALS)
            view.summarised(made_of("quiet"))
            failed = record("failed", None, status=Status.API_ERROR, error="500 from api.x.y: no")
            view.finished(failed, TOTALS)
            for made in (
                replace_in(made_of("alarming"), alerts=2),
                replace_in(made_of("missed"), alerts=1, watched=Watched(missed_alerts=1)),
                replace_in(made_of("broken"), watched=Watched(error="the disk is\nfull")),
            ):
                view.summarised(made)
            tell(view, "next", turn("moderator"))
            view.refresh(snapshot(10.0))
            frame = "\n".join(terminal.frame())
            assert "EXAID summary 1 of quiet" in frame, "the last summary stays in the panel"
            assert "Suspected pulmonary embolism" in frame
            tell(view, "next", Summarised(1, KETOACIDOSIS))
            view.refresh(snapshot(11.0))
            assert "EXAID summary 1 of" not in "\n".join(terminal.frame())
        assert terminal.scrolled() == [
            "dataset    medqa",
            "failed API error: 500 from api.x.y: no",
            "broken EXAID: the disk is full",
        ]


def replace_in(made: CaseSummaries, **changes: Any) -> CaseSummaries:
    return made.model_copy(update=changes)


def test_votes_follow_the_opinions_and_the_decision_is_marked() -> None:
    terminal = Terminal()
    view = TerminalView(10, terminal)

    def options() -> dict[str, str]:
        view.refresh(snapshot(0.0))
        found = (re.match(r"│ (\w)\) .*?(?: (\d) votes?)? +│$", line) for line in terminal.frame())
        return {match[1]: match[2] or "" for match in found if match}

    tell(view, "sample_41", *OPENING)
    assert options() == dict.fromkeys("ABCD", "")
    tell(view, "sample_41", TurnEnded("expert-1-cardiologist", "opinion", answer="A"))
    tell(view, "sample_41", TurnEnded("expert-2-pulmonologist", "opinion", answer="C"))
    tell(view, "sample_41", TurnEnded("expert-3-haematologist", "opinion", failed=True))
    assert options() == {"A": "1", "B": "", "C": "1", "D": ""}
    tell(view, "sample_41", TurnEnded("expert-1-cardiologist", "round-1-update", answer="C"))
    assert options() == {"A": "", "B": "", "C": "2", "D": ""}
    tell(view, "sample_41", TurnEnded("moderator", "moderate", answer="D"))
    assert options() == {"A": "", "B": "", "C": "2", "D": ""}, "the moderator has no vote"
    assert next(line for line in terminal.frame() if "decided" in line).startswith("│ D)")


def test_a_wide_terminal_shows_the_other_questions_beside_the_focused_one() -> None:
    terminal = Terminal(width=200, height=60)
    play(TerminalView(100, terminal))
    lines = terminal.frame()
    assert max(map(len, lines)) <= 200
    beside = [line[118:].strip() for line in lines if line[:1] in "╭│╰ "]
    assert beside[0].split() == ["question", "level", "result", "time", "tokens"]
    assert beside[1].startswith("sample_34  basic")
    assert "sample_40  advanced · team 2: the lead delegates · 15 s" in beside
    assert lines[-1].startswith("╰"), "nothing stands below"


def test_a_narrow_terminal_shows_the_same_in_fewer_columns() -> None:
    terminal = Terminal(width=40, height=60)
    play(TerminalView(100, terminal))
    lines = terminal.frame()

    assert max(map(len, terminal.seen())) == 40
    starts = [line.removeprefix("│ ").partition(":")[0] for line in lines]
    assert [start for start in starts if start in LABELS.values()] == list(LABELS.values())
    assert lines[-4].split() == ["sample_34", "B", "right", "2.9", "s"]
    assert lines[-3].split() == ["sample_33", "C", "wrong,", "gold", "A", "31.2", "s"]


def test_a_low_terminal_keeps_the_figures_and_the_end_of_the_log() -> None:
    terminal = Terminal(height=14)
    play(TerminalView(100, terminal))
    lines = terminal.frame()

    assert len(lines) == 12  # two lines stay for what scrolls by
    assert lines[0].startswith("37/100")
    assert "Nine days after" in lines[5]
    assert lines[6].startswith("╰─")
    assert [line.split()[0] for line in lines[-5:]] == [
        *("sample_40", "sample_42"),
        *("question", "sample_36", "sample_38"),
    ]


def scrolled_summaries(terminal: Terminal) -> list[str]:
    return [
        line
        for line in terminal.scrolled()
        if re.search(r"^(?:question )?\S+ EXAID summary \d+$", line)
    ]


def shown_summary(terminal: Terminal) -> list[str]:
    found = (re.search(r"EXAID summary \d+", line) for line in terminal.frame())
    return [match[0] for match in found if match]


def test_each_summary_scrolls_by_once_when_it_makes_way() -> None:
    terminal = Terminal()
    with TerminalView(10, terminal) as view:
        view.say("dataset    medqa")
        tell(view, "b", turn("moderator"), Summarised(1, KETOACIDOSIS), Ended("B", None))
        tell(view, "a", turn("moderator"))
        for number in range(1, 4):
            tell(view, "a", Summarised(number, EMBOLISM.model_copy()))
            view.refresh(snapshot(number))
            assert shown_summary(terminal) == [f"EXAID summary {number}"]
        earlier = ["b EXAID summary 1", "a EXAID summary 1", "a EXAID summary 2"]
        assert scrolled_summaries(terminal) == earlier
    assert terminal.seen()[0] == "dataset    medqa"
    assert scrolled_summaries(terminal) == earlier
    assert shown_summary(terminal) == ["EXAID summary 3"], "the last frame stays"
    assert "0/16 calls" in terminal.frame()[1]


def test_the_last_frame_holds_the_last_question_and_what_came_of_it() -> None:
    terminal = Terminal()
    with TerminalView(2, terminal) as view:
        for number in (1, 2):
            tell(view, f"q{number}", turn("expert-1-cardiologist", "Cardiologist"))
            view.refresh(snapshot(number))
        for number, letter in ((1, "C"), (2, "D")):
            tell(view, f"q{number}", Ended(letter, None))
            view.finished(record(f"q{number}", letter), RunTotals(questions=number))
        view.refresh(snapshot(3.0))
        tell(view, "q1", Summarised(1, EMBOLISM.model_copy()))
        tell(view, "q2", Summarised(1, KETOACIDOSIS))
    frame = terminal.frame()
    assert titles(frame) == ["q2 · finished"]
    assert shown_summary(terminal) == ["EXAID summary 1"]
    assert any(line.startswith("q2") for line in frame)
    assert scrolled_summaries(terminal) == ["q1 EXAID summary 1"]


def test_without_exaid_no_box_speaks_of_summaries() -> None:
    terminal = Terminal()
    with TerminalView(2, terminal, with_summaries=False) as view:
        tell(view, "q1", turn("expert-1-cardiologist", "Cardiologist"))
        view.refresh(snapshot(1.0))
        assert any("working: Cardiologist" in line for line in terminal.frame())
    assert "summar" not in "\n".join(terminal.seen()).lower()


def test_while_exaid_finishes_its_queue_every_display_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_work = replace(snapshot(1.0, RunTotals(questions=10)), summarising=7)
    terminal = Terminal()
    with TerminalView(10, terminal) as view:
        view.refresh(at_work)
        assert "EXAID: 7 questions left to summarize" in "\n".join(terminal.frame())
    lines = LogLines(10)
    for second in range(65):
        lines.refresh(replace(at_work, now=float(second), summarising=8 - second // 10))
    assert capsys.readouterr().err.splitlines() == [
        f"EXAID: {left} questions left to summarize" for left in (8, 5, 2)
    ]
    lines.refresh(replace(at_work, totals=RunTotals(questions=9)))
    assert capsys.readouterr().err == "", "questions are still in progress"


def test_a_flood_of_summaries_is_counted_and_not_drawn() -> None:
    terminal = Terminal()
    view = TerminalView(10, terminal)
    for number in range(500):
        tell(view, str(number), turn("moderator"), Summarised(1, EMBOLISM.model_copy()))
        tell(view, str(number), Ended("C", None))
    view.refresh(snapshot(0.0))
    assert terminal.scrolled()[0] == "490 more summaries"
    assert scrolled_summaries(terminal) == [
        f"question {n} EXAID summary 1" for n in range(490, 499)
    ]
    assert titles(terminal.frame()) == ["question 499 · finished"]


def test_the_focus_stays_on_a_question_while_it_has_news_and_until_it_is_finished() -> None:
    terminal = Terminal()
    view = TerminalView(10, terminal)

    def front(now: float) -> str:
        view.refresh(snapshot(now))
        (title,) = titles(terminal.frame())
        return title.partition(" · ")[0]

    tell(view, "a", turn("moderator"))
    assert front(0.0) == "a"
    tell(view, "b", turn("moderator"))
    assert front(1.0) == "a"
    tell(view, "a", Summarised(1, EMBOLISM))
    assert front(3.0) == "a"
    tell(view, "b", turn("expert-1"))
    assert front(7.9) == "a"
    assert front(8.0) == "b"  # five seconds without news of the focused question
    assert front(99.0) == "b"  # the newest news are still its own

    tell(view, "a", turn("moderator"))
    tell(view, "b", turn("moderator"))
    assert front(100.0) == "b"
    tell(view, "b", Ended("C", None))
    assert front(100.25) == "a"
    tell(view, "a", Ended("C", None))
    assert front(200.0) == "a"  # there is no other
    assert titles(terminal.frame()) == ["a · finished"]
    tell(view, "c", turn("moderator"))
    assert front(200.25) == "c"


def test_who_is_at_work_at_once_is_shown_together_by_role() -> None:
    terminal = Terminal()
    view = TerminalView(10, terminal)

    def at_work() -> str:
        view.refresh(snapshot(0.0))
        found = (re.match(r"│ working: (.*?) +│$", line) for line in terminal.frame())
        return "".join(match[1] for match in found if match)

    tell(view, "a", turn("expert-1-nurse", "Nurse"), turn("expert-2-surgeon", "Surgeon"))
    assert at_work() == "Nurse, Surgeon"
    tell(view, "a", TurnEnded("expert-1-nurse", "opinion", failed=True))
    assert at_work() == "Surgeon"
    tell(view, "a", TurnEnded("expert-2-surgeon", "opinion"), turn("moderator", "Moderator"))
    assert at_work() == "Moderator"
    assert "No summaries yet." in "".join(terminal.frame())


def test_the_last_words_are_those_of_one_turn_and_end_where_it_is() -> None:
    terminal = Terminal(width=60, height=24)
    view = TerminalView(10, terminal)

    def said() -> str:
        view.refresh(snapshot(0.0))
        return terminal.frame()[-3].strip("│ ")

    tell(view, "a", turn("n", "Nurse"), turn("s", "Surgeon"))
    tell(view, "a", words("n", "Heparin "), words("s", "No. ", 2), words("n", "first."))
    assert said() == "Nurse: Heparin first."
    tell(view, "a", words("n", " Then wait and see whether the platelets fall" * 3))
    assert said() == "Nurse: …Then wait and see whether the platelets fall"


def test_nothing_is_drawn_between_two_refreshes() -> None:
    terminal = Terminal()
    view = TerminalView(10, terminal)
    view.refresh(snapshot(0.0))
    before = terminal.written.getvalue()
    view.say("a line")
    tell(view, "a", turn("moderator"), words("moderator", "C."), Summarised(1, EMBOLISM))
    view.finished(record("a", "C"), TOTALS)
    assert terminal.written.getvalue() == before
    assert view.period >= 0.25


def test_what_others_write_to_stderr_scrolls_by_and_stdout_is_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = Terminal()
    with TerminalView(10, terminal) as view:
        view.refresh(snapshot(0.0))
        print("a warning", file=sys.stderr)
        print("a result")
        view.refresh(snapshot(1.0))
        assert terminal.scrolled() == ["a warning"]
    print("after the end", file=sys.stderr)
    assert capsys.readouterr() == ("a result\n", "after the end\n")
    assert terminal.has_cursor()


def test_without_colors_the_flags_still_stand_out() -> None:
    terminal = Terminal(NO_COLOR="1")
    play(TerminalView(100, terminal))
    styles = set(re.findall(r"\x1b\[([\d;]*)m", terminal.written.getvalue()))
    assert styles == {"0", "1", "2"}  # plain, bold, dim
    assert "\x1b[1munsupported: 7.5 · cut: Agents\x1b[0m" in terminal.written.getvalue()
    assert (
        "\x1b[1m1 waiting: 429 from api.openai.com, 12 s left\x1b[0m" in terminal.written.getvalue()
    )


anything = st.text() | st.text("[]\\/boldred \x1b\n\r\t\x07\x9b\u202e漢字é", max_size=300)


@pytest.mark.sweep
@given(anything, st.integers(1, 140), st.integers(1, 50))
def test_any_text_fits_any_terminal_and_controls_nothing(
    text: str, width: int, height: int
) -> None:
    values: dict[str, Any] = dict.fromkeys(LIMITS, text)
    values |= {"unsupported_terms": (text,), "truncated_fields": (text,)}
    summary = AgentSummary.model_construct(**values)
    asked = replace(ASKED, text=text, options={"A": text, "B": text})
    terminal = Terminal(width, height)
    with TerminalView(10, terminal) as view:
        view.say(text)
        tell(view, text, Started(asked), Routed(Difficulty.BASIC, RoutedBy.ROUTER, text))
        tell(view, text, Recruited((Member(text, text, text, text),)), turn(text, text, text))
        tell(view, text, words(text, text), TurnEnded(text, text, answer="A"))
        tell(view, text, turn(text, text, text), Summarised(1, summary))
        tell(view, text, Summarised(2, summary.model_copy()))
        tell(view, text + "2", Started(asked))
        view.finished(record(text, None, status=Status.PARSE_ERROR, error=text), TOTALS)
        view.waiting(Wait(5.0, 1, ProviderError(text, kind=ErrorKind.RATE_LIMIT)))
        view.refresh(snapshot(0.0))
        before = len(terminal.written.getvalue())
        view.refresh(snapshot(1.0))
        frame = terminal.written.getvalue()[before:]
    assert frame.count("\n") < max(1, height - 2)
    written = re.sub(r"\x1b\[([\d;]*m|1A|2K|\?25[lh])", "", terminal.written.getvalue())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", written)
    assert max(cell_len(line) for line in re.split("[\r\n]", written)) <= max(width, 2)


def test_markup_of_a_model_is_shown_as_it_is() -> None:
    terminal = Terminal()
    view = TerminalView(10, terminal)
    view.say("[bold red]a[/] [/nothing]")
    tell(view, "[red]", turn("m", "[b]Nurse[/b]"), words("m", "[/x] no"))
    summary = EMBOLISM.model_copy(update={"key_findings": "[link=x]b[/link]"})
    tell(view, "[red]", Summarised(1, summary))
    view.refresh(snapshot(0.0))
    assert terminal.scrolled() == ["[bold red]a[/] [/nothing]"]
    assert titles(terminal.frame()) == ["[red] · first opinions"]
    for text in ("[link=x]b[/link]", "working: [b]Nurse[/b]", "[b]Nurse[/b]: [/x] no"):
        assert text in "".join(terminal.frame())


def test_questions_of_an_earlier_start_tell_nothing_about_the_pace() -> None:
    terminal = Terminal()
    view = TerminalView(100, terminal)
    view.refresh(snapshot(1_000.0, RunTotals(questions=90)))
    assert "left" not in terminal.frame()[0]
    view.refresh(snapshot(1_060.0, RunTotals(questions=92)))
    assert terminal.frame()[0].endswith(" 0:04:00 left")


class Faulty(Display):
    """Fails whenever one of its methods is called."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self._method = method

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "_method"):
            raise ValueError("a fault\nof two lines")
        return object.__getattribute__(self, name)

    def take_away(self) -> None:
        """In place of `__exit__`, which Python looks up elsewhere."""

    def __exit__(self, *exception: object) -> None:
        self.take_away()


METHODS = ("happened", "finished", "summarised", "waiting", "refresh", "say", "take_away")


@pytest.mark.parametrize("method", METHODS)
def test_a_fault_of_the_view_switches_it_off_with_one_line(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Failsafe(Faulty(method), instead=LogLines(10)) as view:
        for number in (1, 2):
            tell(view, "a", turn("moderator"))
            view.summarised(made_of("a"))
            view.waiting(Wait(5.0, 1, ProviderError("429", kind=ErrorKind.RATE_LIMIT)))
            view.refresh(snapshot(number))
            view.finished(record(f"q{number}", "C"), RunTotals(questions=number))
            view.say(f"line {number}")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        "the display failed (ValueError('a fault\\nof two lines')): "
        "the run continues and is shown line by line"
    )
    assert all("the display" not in line for line in lines[1:])
    if method != "take_away":  # from then on nothing is lost
        assert lines[-1] == "line 2"
        assert lines[-2].startswith(
            "q2 C right; advanced, 9 calls, 14,210 tokens, 31.2 s; 2/10 done"
        )


def test_a_view_that_fails_gives_the_terminal_back(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    with Failsafe(TerminalView(10, terminal), instead=LogLines(10)) as view:
        view.say("the first line")
        view.refresh(snapshot(0.0))
        view.say("the second line")
        tell(view, "a", Summarised(1, cast(AgentSummary, "no summary at all")), turn("moderator"))
        view.refresh(snapshot(1.0))
        view.finished(record("q1", "C"), RunTotals(questions=1))
    assert terminal.scrolled() == ["the first line", "the second line"]
    assert terminal.has_cursor()
    off, question = capsys.readouterr().err.splitlines()
    assert off.startswith("the display failed (AttributeError(")
    assert question.startswith("q1 C right; advanced, ")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such terminal")
def test_a_terminal_that_is_held_with_ctrl_s_does_not_hold_the_run() -> None:
    import pty
    import termios

    person, screen = pty.openpty()
    with os.fdopen(person, "rb", 0) as reading, os.fdopen(screen, "w") as writing:

        def read_up_to(expected: bytes) -> None:
            read = b""
            while expected not in read:
                assert select.select([reading], [], [], 10)[0], f"{expected!r} does not come"
                read += reading.read(100_000)

        console = Console(file=writing, force_terminal=True, _environ={"TERM": "xterm"})
        view = TerminalView(10, console)
        view.refresh(snapshot(0.0))
        read_up_to(b"so far")

        termios.tcflow(screen, termios.TCOOFF)
        view.say("a line")
        for second in range(500):  # far more than fits between a program and a terminal
            view.refresh(snapshot(second))
        termios.tcflow(screen, termios.TCOON)
        view.refresh(snapshot(500.0))
        read_up_to(b"a line")


@pytest.mark.parametrize("kind", ["full", "plain", "log"])
def test_without_a_terminal_every_display_is_lines(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with make_display(kind, 30) as display:
        tell(display, "q1", *OPENING)
        display.refresh(snapshot(0.0))
        broken = record("q1", None, status=Status.API_ERROR, error="500: \x1b[2Jgone")
        display.finished(broken, RunTotals(questions=1))
        display.refresh(snapshot(1.0))
    assert capsys.readouterr().err.splitlines() == [
        "q1 API error; advanced, 9 calls, 14,210 tokens, 31.2 s; 1/30 done, none of 1 answered",
        "   500: [2Jgone",
    ]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("term", "expected"), [("xterm", TerminalView), ("dumb", LogLines), ("unknown", LogLines)]
)
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    term: str, expected: type[Display], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", Tty())
    assert make_display("full", 10).period == expected.period


def picture() -> str:
    """What `play` leaves on a terminal, as SVG."""
    view = TerminalView(100, Terminal(width=104))
    with view:
        play(view)
        paper = Terminal(width=104)
        paper.print(view)
    svg = paper.export_svg(title="python main.py --display full", unique_id="view")
    return re.sub(r"@font-face {.*?}\s*", "", svg, flags=re.DOTALL)  # fonts from the network


def test_the_documentation_shows_the_view_as_it_is() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), f"run python -m {__name__}"


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
