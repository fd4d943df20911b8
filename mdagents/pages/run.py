"""What the pages of the list of runs and of one run show."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import quote

from exaid_core.schema.agent_summary import PLACEHOLDER
from exaid_core.templates import LABELS
from mdagents.agents.case import make_case_id
from mdagents.display.display import accuracy_so_far, tokens_in_words
from mdagents.display.words import STATUSES, label_of, phase_in_words
from mdagents.live.case import LiveCase
from mdagents.live.runs import ListedRun, RunState, UnreadableRun
from mdagents.pages.listing import FILTERS, OF_ONE_RUN, filter_counts, make_entries, start_of
from mdagents.pages.panel import roles_of, since_start
from mdagents.pages.parts import Part, made_by
from mdagents.records.manifest import RunTotals
from mdagents.records.summaries import ItemKey
from mdagents.scoring.fields import text_of
from mdagents.scoring.formatting import percent, usd
from mdagents.scoring.group import make_group
from mdagents.scoring.rows import RunOutput
from mdagents.settings import Status
from mdagents_llm.clock import ms_of


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run, as a line of the list or the head of its page."""

    run: ListedRun

    @property
    def name(self) -> str:
        """Its name."""
        return self.run.name

    @property
    def address(self) -> str:
        """Of its page."""
        return f"/runs/{quote(os.fsencode(self.name))}"

    @property
    def state(self) -> RunState:
        """What it does."""
        return self.run.state

    @property
    def models(self) -> str:
        """The models that it asks."""
        return self.run.manifest.models_asked

    @property
    def method(self) -> str:
        """How it answers."""
        return self.run.manifest.method

    @property
    def started(self) -> str:
        """When it was first started, to the minute, UTC."""
        starts = sorted(one.started_at for one in self.run.manifest.invocations)
        return starts[0][:16].replace("T", " ") if starts else ""

    @property
    def accuracy(self) -> str:
        """Accuracy so far with its interval; empty of totals that cannot be."""
        try:
            return accuracy_so_far(self.run.totals).removeprefix("accuracy ")
        except ValueError:
            return ""

    @property
    def tokens(self) -> str:
        """What the teams used."""
        return f"{self.run.totals.total_tokens:,}"

    @property
    def cost(self) -> str:
        """What was paid, in USD, for EXAID, too."""
        spent = self.run.snapshot.spent if self.run.snapshot else self.run.manifest.spent
        return usd(spent.cost_usd)

    @property
    def left(self) -> str:
        """Time left at the mean pace so far; empty when it does not work, or has no pace."""
        if self.state is not RunState.RUNNING or not self.run.manifest.invocations:
            return ""
        missing = self.run.questions - self.run.totals.questions
        try:
            seconds = self._seconds_a_question
            return "" if seconds is None else str(timedelta(seconds=round(seconds * missing)))
        except (ValueError, OverflowError):  # of a start at no time, or of questions without end
            return ""

    @property
    def _seconds_a_question(self) -> float | None:
        *earlier, latest = self.run.manifest.invocations
        done = self.run.totals.questions - sum(start.new_records for start in earlier)
        if done <= 0:
            return None
        return (self.run.looked_at - ms_of(latest.started_at) / 1000) / done


@dataclass(frozen=True, slots=True)
class CaseCard:
    """A question under way."""

    case: LiveCase
    run_address: str
    is_at_work: bool
    """Whether its run is: not when that was stopped."""

    @property
    def address(self) -> str:
        """Of its page."""
        return question_address(self.run_address, self.case.item)

    @property
    def id(self) -> str:
        """Of the case, as its page is called."""
        return make_case_id(*self.case.item)

    @property
    def label(self) -> str:
        """The user's own id of the question."""
        return label_of(self.case.item)

    @property
    def phase(self) -> str:
        """The step of the protocol that began last; empty before the first."""
        return phase_in_words(self.case.turns[-1].phase) if self.case.turns else ""

    @property
    def speaking(self) -> str:
        """The roles of those who speak."""
        roles = roles_of(self.case)
        return ", ".join(roles[turn.agent] for turn in self.case.speaking)

    @property
    def votes(self) -> dict[str, int]:
        """Letter -> experts or teams who hold it."""
        held = list(self.case.votes.values())
        return {letter: held.count(letter) for letter in sorted(set(held))}

    @property
    def summary(self) -> Sequence[tuple[str, str]]:
        """(label, text) of what the latest summary says; empty before there is one."""
        if not self.case.summaries:
            return ()
        made = self.case.summaries[-1].summary
        texts = [(label, getattr(made, name)) for name, label in LABELS.items()]
        return [(label, text) for label, text in texts if text != PLACEHOLDER]

    @property
    def alerts(self) -> tuple[str, ...]:
        """Those of the latest summary."""
        return self.case.summaries[-1].summary.alerts if self.case.summaries else ()

    @property
    def key(self) -> object:
        """Differs when the card differs."""
        case = self.case
        ended = sum(turn.ended_at is not None for turn in case.turns)
        stands = len(case.turns), ended, len(case.summaries), case.tokens, case.routed
        return stands, self.is_at_work

    @property
    def seconds(self) -> int:
        """From when it was taken up to the last that is known of it."""
        return since_start(self.case, self.case.last_at) // 1000


class Decided:
    """The decided questions of a run.

    Args:
        output: Their records; None before the first.
        run_address: Of the page of the run.
    """

    def __init__(self, output: RunOutput | None = None, run_address: str = "") -> None:
        self.rows = output.rows if output else ()
        texts = [text_of(record, "question") for _, record in output.records()] if output else []
        entries = make_entries([self.rows]) if self.rows else []
        self.chance = make_group(self.rows).chance if self.rows else None
        self.entries = [
            (number, entry, text, start_of(text), question_address(run_address, row.item))
            for number, (row, entry, text) in enumerate(
                zip(self.rows, entries, texts, strict=True), start=1
            )
        ]
        """(number, entry of the list, text of the question, its start, address) of each."""
        counted = filter_counts(entries)
        self.filters = [(name, what, counted.get(name, 0)) for name, what in FILTERS.items()]
        """(name, meaning, questions) of each filter, also of those that pass none."""
        self.levels = sorted({row.difficulty for row in self.rows if row.difficulty})
        self.parts = [
            Part(f"level-{level}", "levels", None, made_by("list.html", "level", level))
            for level in self.levels
        ] + [
            Part(f"q{entry[0]}", "rows", entry[1], made_by("list.html", "row", *entry))
            for entry in self.entries
        ]
        """Its levels and its rows of the list."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """The page of a run.

    Args:
        run: The run.
        under_way: Its questions that are not decided.
        decided: Those that are.
        trouble: Why they cannot be read; empty when they can.
    """

    run: ListedRun
    under_way: Sequence[LiveCase]
    decided: Decided
    trouble: str = ""
    headings: Sequence[str] = OF_ONE_RUN
    """Of the list of decided questions."""

    @property
    def line(self) -> RunLine:
        """The run in a line."""
        return RunLine(self.run)

    @property
    def missing(self) -> str:
        """That records are missing which the totals count; empty when all are there."""
        there, counted = len(self.decided.rows), self.run.totals.questions
        if self.run.state is not RunState.FINISHED or there >= counted:
            return ""
        return f"records of {counted - there} of {counted} questions are missing"

    @property
    def reason(self) -> str:
        """Why it was stopped, and how it goes on; empty when it was not."""
        starts = self.run.manifest.invocations
        if not starts or self.run.state is not RunState.INTERRUPTED:
            return ""
        why = starts[-1].reason or "stopped without a word, as by kill -9"
        return f"{why}; the same command resumes"

    @property
    def cards(self) -> list[CaseCard]:
        """The questions under way."""
        is_at_work = self.run.state is RunState.RUNNING
        return [CaseCard(case, self.line.address, is_at_work) for case in self.under_way]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """(what, how much) of all that is known of how the run goes."""
        line, totals, snapshot = self.line, self.run.totals, self.run.snapshot
        facts = [
            ("accuracy", line.accuracy),
            ("chance", percent(self.decided.chance) if self.decided.rows else ""),
            *self._tokens,
            ("paid", f"{line.cost} USD" if line.cost != "-" else ""),
            ("forecast", self._forecast),
            ("time left", line.left),
        ]
        if snapshot is not None and self.run.state is RunState.RUNNING:
            facts += [
                ("in progress", snapshot.calls),
                ("waiting", f"{snapshot.queued}" if snapshot.queued else ""),
                ("cooling down", f"{snapshot.cooling:.0f} s" if snapshot.cooling else ""),
                (
                    "to summarise",
                    f"{snapshot.summarising} questions" if snapshot.summarising else "",
                ),
            ]
        return [
            (what, value) for what, value in [*facts, ("faults", self._faults(totals))] if value
        ]

    @property
    def _forecast(self) -> str:
        """Return what the whole run will cost if it goes on like this; empty without an idea."""
        snapshot = self.run.snapshot
        if snapshot is None or self.run.state is not RunState.RUNNING:
            return ""
        cost = snapshot.cost_forecast(self.run.questions)
        return f"about {usd(cost)} USD in all" if cost else ""

    @property
    def _tokens(self) -> list[tuple[str, str]]:
        """Tokens spent so far while it runs; then those of its records, teams and EXAID apart."""
        totals, snapshot = self.run.totals, self.run.snapshot
        if snapshot is not None and self.run.state is RunState.RUNNING:
            return [("so far", tokens_in_words(snapshot.spent))]
        return [
            ("teams", f"{totals.total_tokens:,} tokens" if totals.total_tokens else ""),
            ("EXAID", f"{totals.exaid_tokens:,} tokens" if totals.exaid_tokens else ""),
        ]

    def _faults(self, totals: RunTotals) -> str:
        snapshot = self.run.snapshot
        spent = snapshot.spent if snapshot else self.run.manifest.spent
        words = {status.value: what for status, what in STATUSES.items()}
        faults = [
            f"{count} {words.get(status, status)}"
            for status, count in totals.status_counts.items()
            if status not in (Status.ANSWERED, Status.SKIPPED)
        ]
        if spent.failed_attempts:
            faults.append(f"{spent.failed_attempts:,} attempts failed")
        return ", ".join(faults)

    def parts(self) -> Iterator[Part]:
        """Yield the parts in the order of the page."""
        macro = partial(made_by, "run_parts.html")
        troubles = self.trouble, self.missing, self.reason
        head = (self.run.state, self.run.totals.questions, self.run.snapshot, troubles)
        yield Part("head", "run", head, macro("head", self))
        if self.decided.rows:
            yield Part("report", "report-link", None, macro("report", self))
        for card in self.cards:
            yield Part(f"card-{card.id}", "under-way", card.key, macro("card", card))
        yield from self.decided.parts


def _questions(count: int) -> str:
    return f"{count} question{'s' * (count > 1)}" if count else ""


def question_address(run_address: str, item: ItemKey) -> str:
    """Return the address of the page of a question."""
    return f"{run_address}/questions/{make_case_id(*item)}"


def list_parts(runs: Sequence[ListedRun | UnreadableRun]) -> Iterator[Part]:
    """Yield the parts of the list of runs."""
    macro = partial(made_by, "run_parts.html")
    for run in runs:
        if isinstance(run, ListedRun):
            key: object = (run.state, run.snapshot, run.totals.questions)
            yield Part(f"run-{run.name}", "rows", key, macro("line", RunLine(run)))
        else:
            yield Part(f"run-{run.name}", "rows", run, macro("unreadable", run))
