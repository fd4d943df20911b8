"""Measure the time to score a finished run and open its page, against only reading its file.

    python -m benchmarks.evaluate

The run is synthetic, but its records come from the function that writes real ones: a mix of the
three teams, with opinions, debates, reports and summaries of typical lengths, and one question in
twenty that ended without an answer.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.harness import (
    REPOSITORY,
    Ended,
    Program,
    Result,
    interleaved,
    judged,
    make_parser,
    median_ratio,
    parse,
    show_machine,
    show_results,
    show_table,
    write_questions,
)
from exaid_core.schema.agent_summary import LIMITS, AgentSummary
from mdagents.agents.case import Case
from mdagents.agents.events import DebateMessage
from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.questions import Question, present
from mdagents.records.sample import ExaidRecord, SampleRecord, make_record
from mdagents.settings import Difficulty, OptionOrder, RoutedBy, TeamSettings
from mdagents.teams.decision import Decision, Finding, ReportedTeam, Stated
from mdagents.teams.router import Route
from mdagents_llm.chat import StopReason, TokenUsage
from mdagents_llm.errors import (
    BenchError,
    ErrorKind,
    LimitExceeded,
    ProviderError,
    StructuredOutputError,
)
from mdagents_llm.ledger import CaseBook, Totals
from tests.support.browser import CHROMIUM, open_page
from tests.support.medical_prose import SPECIALTIES, prose

WALL_AIM = 2.0  # seconds to score 5,000 questions, and to open their page
_LEVELS = {Difficulty.BASIC: 9, Difficulty.INTERMEDIATE: 6, Difficulty.ADVANCED: 5}
_UNANSWERED = 20  # one question in 20
_SKILL = 0.7  # share of correct opinions
_READ = "import json, sys; json.load(open(sys.argv[1], 'rb'))"
_READING = "json.load of the same file"
_SCORING = "evaluate_text_output.py"
_PAGE = "evaluate_text_output.py --html"
_OPENING = "the page in a browser, to its load event"


# -- the run --------------------------------------------------------------------------------------


def write_run(path: Path, questions: int) -> None:
    """Write the JSON array of a run of `questions` questions, deterministically."""
    with path.open("w", encoding="utf-8") as file:
        separator = "[\n"
        for number, question in enumerate(_questions(path.parent, questions)):
            file.write(separator + _record(question, number).model_dump_json())
            separator = ",\n"
        file.write("\n]\n")


def _questions(folder: Path, count: int) -> Iterator[Question]:
    path = folder / "questions.jsonl"
    write_questions(path, count)
    dataset = open_dataset(str(path), folder)
    for entry in dataset.index:
        yield present(dataset.load(entry), OptionOrder.SHUFFLED, seed=0)


def _record(question: Question, number: int) -> SampleRecord:
    rng = random.Random(number)
    level = rng.choices(list(_LEVELS), list(_LEVELS.values()))[0]
    answered = number % _UNANSWERED > 0
    endings = _endings()
    size = rng.randint(3_000, 20_000)
    calls = Totals(rng.randint(5, 30), 0, TokenUsage(size, size // 4), size * 1e-6)
    record = make_record(
        Case(question.id, question, {}, TeamSettings(), seed=0),
        epoch=1,
        route=Route(level, RoutedBy.ROUTER, prose(30, number)),
        decision=_decision(question, level, rng) if answered else None,
        error=None if answered else endings[number // _UNANSWERED % len(endings)],
        book=CaseBook({"expert": calls}, [("expert", "fake-model")]),
        wall_seconds=rng.uniform(2, 60),
    )
    summaries = [_summary(rng, place) for place in range(rng.randint(1, 4))]
    return record.model_copy(update={"exaid": ExaidRecord(summaries=summaries)})


def _endings() -> list[BenchError | None]:
    """Return the errors with which a question can end unanswered; None if it was skipped."""
    unusable = partial(
        StructuredOutputError, "the reply has no 'answer'", text="", usage=TokenUsage()
    )
    return [
        ProviderError("the endpoint did not reply in 60 s", kind=ErrorKind.TIMEOUT),
        LimitExceeded("the question may take 20,000 tokens"),
        unusable(stop_reason=StopReason.STOP),
        unusable(stop_reason=StopReason.LENGTH),
        unusable(stop_reason=StopReason.REFUSAL),
        None,
    ]


def _decision(question: Question, level: Difficulty, rng: random.Random) -> Decision:
    opinions: list[Stated] = []
    messages: list[DebateMessage] = []
    teams: list[ReportedTeam] = []
    match level:
        case Difficulty.BASIC:
            opinions = _opinions(question, rng, debate_round=0, words=200)
        case Difficulty.INTERMEDIATE:
            rounds = range(rng.randint(1, 3) + 1)
            opinions = [s for r in rounds for s in _opinions(question, rng, r, words=50)]
            messages = [
                DebateMessage(r, turn, "expert-1", "expert-2", _said(rng, 120))
                for r in rounds[1:]
                for turn in range(1, 4)
            ]
        case Difficulty.ADVANCED:
            teams = [_report(question, rng, place) for place in range(3)]
    held = [stated.answer for stated in opinions[-3:]] or [team.answer for team in teams]
    return Decision(
        letter=max(held, key=held.count),
        analysis=_said(rng, 220),
        opinions=tuple(opinions),
        messages=tuple(messages),
        teams=tuple(teams),
    )


def _opinions(
    question: Question, rng: random.Random, debate_round: int, words: int
) -> list[Stated]:
    return [
        Stated(
            agent=f"expert-{place}",
            role=SPECIALTIES[place],
            round=debate_round,
            answer=_letter(question, rng),
            confidence=round(rng.uniform(0.4, 1), 2),
            reasoning=_said(rng, words),
        )
        for place in range(1, 4)
    ]


def _report(question: Question, rng: random.Random, place: int) -> ReportedTeam:
    members = [f"team-{place}-{number}" for number in range(1, 4)]
    return ReportedTeam(
        name=f"Team {place}",
        purpose=prose(10, place),
        kind="initial",
        members=tuple(members),
        instructions=_said(rng, 50),
        investigations=tuple(Finding(member, _said(rng, 100)) for member in members[1:]),
        findings=_said(rng, 100),
        answer=_letter(question, rng),
        dissent="",
    )


def _summary(rng: random.Random, place: int) -> dict[str, object]:
    fields = {name: _said(rng, limit)[:limit] for name, limit in LIMITS.items()}
    return {
        "event_id": f"summary-{place}",
        **AgentSummary.model_validate(fields).model_dump(mode="json"),
    }


def _letter(question: Question, rng: random.Random) -> str:
    return question.gold if rng.random() < _SKILL else rng.choice(question.letters)


def _said(rng: random.Random, words: int) -> str:
    return prose(rng.randint(words // 2, words), rng.randrange(1 << 16))


# -- the measurement ------------------------------------------------------------------------------


def measure(folder: Path, questions: int, rounds: int) -> None:
    """Print the time to score a run and to open its page.

    Args:
        folder: Empty working folder.
        questions: Number of questions in the run.
        rounds: Number of runs of each program, interleaved.
    """
    array = folder / "output" / f"fake-model_medqa_adaptive_{questions}samples.json"
    array.parent.mkdir()
    write_run(array, questions)
    programs = {
        _READING: ["-c", _READ, str(array)],
        _SCORING: [str(REPOSITORY / "evaluate_text_output.py")],
        _PAGE: [str(REPOSITORY / "evaluate_text_output.py"), "--html"],
    }
    environment = {"PATH": "", "HOME": str(folder), "LANG": "C.UTF-8"}

    def run(name: str) -> Ended:
        return Program([sys.executable, *programs[name]], folder, environment).finish()

    ended = interleaved(run, programs, rounds)
    wall = {name: median(end.wall_seconds for end in ends) for name, ends in ended.items()}
    cpu = {name: median(end.cpu_seconds for end in ends) for name, ends in ended.items()}
    title = f"{questions:,} questions, {array.stat().st_size / 1e6:.0f} MB; medians of {rounds}"
    rows = [
        {
            "program, from its start to its end": name,
            "wall, s": f"{wall[name]:.2f}",
            "CPU, s": f"{cpu[name]:.2f}",
        }
        for name in programs
    ]
    show_table(title, rows)
    ratio = median_ratio(ended[_SCORING], ended[_READING], lambda end: end.cpu_seconds)
    (page,) = (folder / "evaluation").glob("*.html")
    results = [
        judged(f"{_SCORING}: wall", wall[_SCORING], WALL_AIM, " s"),
        _opening(page, rounds),
        Result(f"{_SCORING}: CPU / that of {_READING}", f"{ratio:.2f}"),
    ]
    show_results("Scoring", results)


def _opening(page: Path, rounds: int) -> Result:
    """Measure how long a fresh browser with empty caches takes to open the page."""
    what = f"{_OPENING} ({page.stat().st_size / 1e6:.0f} MB)"
    if CHROMIUM is None:
        return Result(what, "no Chromium on this machine")
    took = [asyncio.run(_seconds_to_open(page)) for _ in range(rounds)]
    return judged(f"{what}: wall", median(took), WALL_AIM, " s")


async def _seconds_to_open(report: Path) -> float:
    async with open_page() as page:
        started = time.perf_counter()
        await page.goto(report.as_uri())
        return time.perf_counter() - started


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("evaluate", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=5000, help="of the run [%(default)s]")
    add("--rounds", type=int, default=7, help="starts of each program [%(default)s]")
    options = parse(parser, argv, quick={"questions": 200, "rounds": 2})
    show_machine("evaluate")
    with TemporaryDirectory(prefix="mdagents-benchmark-") as folder:
        measure(Path(folder), options.questions, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
