"""Measure the token cost of a question by team and method, with replies of fixed length.

    python -m benchmarks.teams [--source test.jsonl]

1. Calls, depth (sequential calls) and tokens per question, for each team, the ladder (the
   `disagreement` router, which makes no call of its own) and each method.
2. Tokens of a debate in which every expert always writes, against one in which half of them do and
   one with a single round: in a program that replays the history, they grow with the square of the
   text.

Tokens are counted by the fake provider's rule, one per four characters, so that the figures of two
revisions are comparable.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from benchmarks.harness import (
    SAMPLE,
    Provider,
    Workspace,
    judged,
    ledger,
    make_parser,
    parse,
    records,
    show_machine,
    show_results,
    show_table,
    workspace,
)
from mdagents.teams.methods import declared
from mdagents.teams.names import baseline_names
from mdagents_llm.ledger import CallRow

GROWTH_AIM = 1.2
EXPERTS_OF_THE_DEBATE = 4
_FIXED = "--fixed-lengths"


@dataclass(frozen=True, slots=True)
class Course:
    """One way to answer a question."""

    name: str
    flags: tuple[str, ...]
    """Flags of `main.py`."""
    who_writes: str = "nobody"
    """Experts who write in a debate."""

    agree: str = ""
    """Whether opinions agree, `always` or `never`; at random if empty."""


_LADDER = ("--router", "disagreement")
_TABLE = ("--model-role", "expert-1=gpt-4o-mini", "--model-role", "expert-2=gpt-4.1-mini")
COURSES = (
    Course("basic", ("--difficulty", "basic")),
    Course("intermediate, silent", ("--difficulty", "intermediate")),
    Course("intermediate, everybody writes", ("--difficulty", "intermediate"), "everybody"),
    Course("advanced, 3 teams of 3", ("--difficulty", "advanced")),
    Course("advanced, 2 teams of 2", ("--difficulty", "advanced", "--preset", "classic")),
    Course("ladder, all agree", _LADDER, agree="always"),
    Course("ladder, silent, at random", _LADDER),
    Course("ladder, everybody writes, nobody agrees", _LADDER, "everybody", agree="never"),
    *(
        Course(method, ("--method", method, *(_TABLE if declared(method).seats else ())))
        for method in baseline_names()
    ),
    *(
        Course(f"{method}, all agree", ("--method", method, *flags), agree="always")
        for method, flags in (
            ("multi_persona", ()),
            ("debate", ()),
            ("reconcile", _TABLE),
        )
    ),
)
_Provided = Callable[..., Provider]
_CLOCK_MS = 2  # the ledger's times are rounded to ms
_LATENCY = 0.02  # seconds; makes concurrent calls distinguishable from sequential ones


@dataclass(frozen=True, slots=True)
class Cost:
    """The mean cost of a question in a run."""

    calls: float
    tokens_in: float
    tokens_out: float
    depth: float
    """Mean number of sequential calls."""
    statuses: Mapping[str, int]

    @property
    def tokens(self) -> float:
        """Mean number of input and output tokens."""
        return self.tokens_in + self.tokens_out

    def figures(self) -> dict[str, str]:
        """Return the cells of a table row."""
        return {
            "calls": f"{self.calls:.1f}",
            "depth": f"{self.depth:.1f}",
            "tokens in": f"{self.tokens_in:,.0f}",
            "tokens out": f"{self.tokens_out:,.0f}",
            "tokens": f"{self.tokens:,.0f}",
            "tokens/call": f"{self.tokens / self.calls:,.0f}",
            "statuses": ", ".join(f"{status} {n}" for status, n in self.statuses.items()),
        }

    def growth(self, other: Cost) -> float:
        """Return how much faster tokens grow than calls relative to `other`; 1 if equally fast."""
        return (self.tokens / other.tokens) / (self.calls / other.calls)


_DEBATE = ("--difficulty", "intermediate", "--num-experts", str(EXPERTS_OF_THE_DEBATE))
_DEBATES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("nobody", "nobody", ()),
    ("half", "half", ()),
    ("everybody", "everybody", ()),
    ("everybody, 1 round", "everybody", ("--num-rounds", "1")),
)
"""Debates to compare: name, who writes, flags of `main.py`."""


def measure_courses(place: Workspace, provider: _Provided, questions: int) -> None:
    """Answer `questions` questions on each course and print their cost (part 1)."""
    rows = []
    for course in COURSES:
        flags = [_FIXED, "--debate", course.who_writes]
        if course.agree:
            flags += ["--agree", course.agree]
        cost = _cost(place, provider(*flags), questions, course.flags)
        rows.append({"answered by": course.name} | cost.figures())
    show_table(f"A question, mean of {questions}", rows)


def measure_debate(
    place: Workspace, provider: _Provided, questions: int, message_words: Sequence[int]
) -> None:
    """Print how the tokens of a debate grow with its messages (part 2).

    Args:
        place: Workspace of the runs.
        provider: Starts a fake provider, or gives the one with the same flags.
        questions: Number of debated questions per run.
        message_words: Message lengths in words. Longer messages raise the cost of a replayed
            history, but also of messages that are only written once and read once.
    """
    rows = []
    results = []
    for words in message_words:
        length = ("--words-of", f"text={words}")
        costs = {
            name: _cost(place, provider("--debate", who, *length), questions, (*_DEBATE, *flags))
            for name, who, flags in _DEBATES
        }
        for name, cost in costs.items():
            who = f"{name}, {words} words"
            rows.append({"who writes, length of a message": who} | cost.figures())
        for less in ("half", "everybody, 1 round"):
            growth = costs["everybody"].growth(costs[less])
            what = f"everybody against {less}, messages of {words} words"
            results.append(judged(what, growth, GROWTH_AIM, digits=3))
    show_table(f"A debate of {EXPERTS_OF_THE_DEBATE} experts, 3 rounds of 3 turns", rows)
    show_results("(token ratio) / (call ratio)", results)


def _cost(place: Workspace, provider: Provider, questions: int, course: Sequence[str]) -> Cost:
    """Measure the cost of a question on a course.

    Args:
        place: Workspace of the run.
        provider: Fake provider that answers.
        questions: Number of questions in the run.
        course: Flags of `main.py`.
    """
    state = place.new_state()
    place.run(provider, state, *course, "--num-samples", str(questions))
    found, rows = records(state), ledger(state)
    return Cost(
        calls=fmean(record["calls"] for record in found),
        tokens_in=fmean(record["token_usage"]["input_tokens"] for record in found),
        tokens_out=fmean(record["token_usage"]["output_tokens"] for record in found),
        depth=fmean(
            _depth([row for row in rows if row.case_id == record["case_id"]]) for record in found
        ),
        statuses=Counter(record["status"] for record in found),
    )


def _depth(calls: Sequence[CallRow]) -> int:
    """Return the number of sequential calls: the most that do not overlap."""
    chain, free_at = 0, 0.0
    for call in sorted(calls, key=lambda call: call.ended_ms):
        if call.ended_ms - 1000 * call.latency >= free_at - _CLOCK_MS:
            chain, free_at = chain + 1, call.ended_ms
    return chain


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; return the exit status."""
    parser = make_parser("teams", __doc__)
    add = parser.add_argument
    add("--questions", type=int, default=10, help="of a run [%(default)s]")
    add("--message-words", type=_numbers, default="40,70,100,200", help="in part 2 [%(default)s]")
    add("--source", type=Path, help="file whose first questions are answered [the sample's]")
    options = parse(parser, argv, quick={"questions": 1, "message_words": "70"})
    show_machine("teams")
    with workspace(options.questions, options.source) as place, ExitStack() as started:

        @cache
        def provider(*flags: str) -> Provider:
            return started.enter_context(Provider(*flags, "--latency", str(_LATENCY)))

        train = SAMPLE.with_name(f"{SAMPLE.stem}_train.jsonl")
        shutil.copy(train, place.folder / "train.jsonl")  # exemplars for few_shot
        measure_courses(place, provider, options.questions)
        measure_debate(place, provider, options.questions, options.message_words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
