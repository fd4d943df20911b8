"""View models of the run list and of the page of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from exaid_core.placeholders import PLACEHOLDER
from exaid_core.templates import LABELS
from mdagents.agents.case import make_case_id
from mdagents.display.display import accuracy_so_far, tokens_in_words
from mdagents.display.labels import STATUSES, label_of, phase_in_words
from mdagents.live.case import LiveCase
from mdagents.live.runs import ListedRun, RunState
from mdagents.pages.html_parts import Part, made_by
from mdagents.pages.listing import FILTERS, OF_ONE_RUN, Entry
from mdagents.pages.pictures import ShownPicture, shown_pictures
from mdagents.pages.team_graph import roles_of, since_start
from mdagents.records.manifest import RunTotals
from mdagents.records.summaries import ItemKey
from mdagents.scoring.formatting import percent, usd
from mdagents.scoring.run_names import method_of, title_of
from mdagents.settings import Status
from mdagents_llm.clock import ms_of
from mdagents_llm.text import counted


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run, as a line of the list or the head of its page."""

    run: ListedRun

    @property
    def name(self) -> str:
        """Name of the run folder."""
        return self.run.name

    @property
    def title(self) -> str:
        """Model, data set, method and number of questions."""
        return title_of(self._described, self.name, len(self.run.manifest.item_ids))

    @property
    def _described(self) -> Mapping[str, object]:
        manifest = self.run.manifest
        return {
            "models": manifest.models,
            "dataset": manifest.dataset,
            "options": manifest.options,
            "pictured": manifest.pictured,
        }

    @property
    def address(self) -> str:
        """URL path of the run's page."""
        return f"/runs/{quote(os.fsencode(self.name))}"

    @property
    def pictures_at(self) -> str:
        """URL path of the pictures in the run's folder."""
        return f"{self.address}/pictures"

    @property
    def state(self) -> RunState:
        """State of the run."""
        return self.run.state

    @property
    def models(self) -> str:
        """Models that the run asks."""
        return self.run.manifest.models_asked

    @property
    def method(self) -> str:
        """Method that answers the questions, with its router if not the default."""
        return method_of(self._described)

    @property
    def asked(self) -> str:
        """Number of questions; with three epochs `20 × 3`."""
        manifest = self.run.manifest
        epochs = f" × {manifest.epochs}" if manifest.epochs > 1 else ""
        return f"{len(manifest.item_ids):,}{epochs}"

    @property
    def started(self) -> str:
        """UTC time of the first start, to the minute; empty before a start."""
        starts = sorted(one.started_at for one in self.run.manifest.invocations)
        return starts[0][:16].replace("T", " ") if starts else ""

    @property
    def accuracy(self) -> str:
        """Accuracy so far with its confidence interval; empty if the totals are inconsistent."""
        try:
            return accuracy_so_far(self.run.totals).removeprefix("accuracy ")
        except ValueError:
            return ""

    @property
    def tokens(self) -> str:
        """Tokens that the teams used."""
        return f"{self.run.totals.total_tokens:,}"

    @property
    def cost(self) -> str:
        """Cost of the run in USD, including EXAID."""
        spent = self.run.snapshot.spent if self.run.snapshot else self.run.manifest.spent
        return usd(spent.cost_usd)

    @property
    def left(self) -> str:
        """Time left at the mean pace so far; empty if the run is not running or has no pace yet."""
        if self.state is not RunState.RUNNING or not self.run.manifest.invocations:
            return ""
        missing = self.run.questions - self.run.totals.questions
        try:
            seconds = self._seconds_a_question
            return "" if seconds is None else str(timedelta(seconds=round(seconds * missing)))
        except (ValueError, OverflowError):  # invalid start time, or too many questions
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
    """A question in progress, as a card on the run page."""

    case: LiveCase
    run_address: str
    is_at_work: bool
    """Whether the run is running; False if it was stopped."""
    folder: Path
    """Folder of the run, which has copies of the pictures."""

    @property
    def pictures(self) -> list[ShownPicture]:
        """Pictures of the question and of its options."""
        address = f"{self.run_address}/pictures"
        return shown_pictures(self.case.pictures, self.case.item[0], self.folder, address)

    @property
    def address(self) -> str:
        """URL path of the question's page."""
        return question_address(self.run_address, self.case.item)

    @property
    def id(self) -> str:
        """Case id, which is also the last part of the page address."""
        return make_case_id(*self.case.item)

    @property
    def label(self) -> str:
        """The user's own id of the question, for display."""
        return label_of(self.case.item)

    @property
    def phase(self) -> str:
        """Latest step of the protocol; empty before the first."""
        return phase_in_words(self.case.turns[-1].phase) if self.case.turns else ""

    @property
    def speaking(self) -> str:
        """Roles of the agents that are speaking, comma-separated."""
        roles = roles_of(self.case)
        return ", ".join(roles[turn.agent] for turn in self.case.speaking)

    @property
    def votes(self) -> dict[str, int]:
        """Letter -> number of experts or teams that hold it."""
        held = list(self.case.votes.values())
        return {letter: held.count(letter) for letter in sorted(set(held))}

    @property
    def summary(self) -> Sequence[tuple[str, str]]:
        """(label, text) of each field that the latest summary fills; empty before a summary."""
        if not self.case.summaries:
            return ()
        made = self.case.summaries[-1].summary
        texts = [(label, made.text_of(name)) for name, label in LABELS.items()]
        return [(label, text) for label, text in texts if text != PLACEHOLDER]

    @property
    def alerts(self) -> tuple[str, ...]:
        """Alerts of the latest summary."""
        return self.case.summaries[-1].summary.alerts if self.case.summaries else ()

    @property
    def key(self) -> object:
        """Value that changes whenever the card changes."""
        case = self.case
        ended = sum(turn.ended_at is not None for turn in case.turns)
        stands = len(case.turns), ended, len(case.summaries), case.tokens, case.routed
        return stands, self.is_at_work, case.pictures

    @property
    def seconds(self) -> int:
        """Seconds from the start of the question to its latest event."""
        return since_start(self.case, self.case.last_at) // 1000


@dataclass(frozen=True, slots=True)
class Decided:
    """Figures of the list of decided questions."""

    count: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Name of a filter -> number of questions that pass it."""
    levels: tuple[str, ...] = ()
    """Levels at which questions were answered."""
    chance: float | None = None
    """Expected accuracy of guessing."""

    @property
    def filters(self) -> list[tuple[str, str, int]]:
        """(name, meaning, number of questions) of each filter, including those that match none."""
        return [(name, what, self.counts.get(name, 0)) for name, what in FILTERS.items()]


@dataclass(frozen=True, slots=True)
class ListedQuestion:
    """A decided question, as a row of the list."""

    number: int
    """Number in the order of the records, from 1."""
    case_id: str
    entry: Entry
    start: str
    """Start of the question's text."""


@dataclass(frozen=True, slots=True)
class Found:
    """One page of the questions that pass a query."""

    count: int
    """Number of questions that pass."""
    rows: Sequence[ListedQuestion]


@dataclass(frozen=True, slots=True)
class RunPage:
    """The page of a run.

    Args:
        run: The run.
        under_way: Questions in progress.
        decided: Decided questions.
        trouble: Why the decided questions cannot be read; empty if they can.
        is_reading: Whether records are still being read.
    """

    run: ListedRun
    under_way: Sequence[LiveCase]
    decided: Decided
    trouble: str = ""
    is_reading: bool = False
    headings: ClassVar[Sequence[str]] = OF_ONE_RUN
    """Column headings of the list of decided questions."""

    @property
    def line(self) -> RunLine:
        """The run as a line of the run list."""
        return RunLine(self.run)

    @property
    def missing(self) -> str:
        """Notice of records that the totals count but that are missing; empty if none is."""
        there, asked = self.decided.count, self.run.totals.questions
        if self.run.state is not RunState.FINISHED or self.is_reading or there >= asked:
            return ""
        return f"records of {asked - there} of {counted(asked, 'question')} are missing"

    @property
    def reason(self) -> str:
        """Why the run was interrupted, and how to resume it; empty if it was not interrupted."""
        starts = self.run.manifest.invocations
        if not starts or self.run.state is not RunState.INTERRUPTED:
            return ""
        why = starts[-1].reason or "stopped without a word, as by kill -9"
        if why.startswith("the run has reached --"):
            return f"{why}; raise it, and the command resumes"
        return f"{why}; the same command resumes"

    @property
    def cards(self) -> list[CaseCard]:
        """Cards of the questions in progress."""
        is_at_work = self.run.state is RunState.RUNNING
        return [
            CaseCard(case, self.line.address, is_at_work, self.run.folder)
            for case in self.under_way
        ]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """(name, value) of each known figure of the run's progress."""
        line, totals, snapshot = self.line, self.run.totals, self.run.snapshot
        facts = [
            ("accuracy", line.accuracy),
            ("chance", percent(self.decided.chance) if self.decided.count else ""),
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
        """Forecast of the cost of the whole run at the rate so far; empty without a forecast."""
        snapshot = self.run.snapshot
        if snapshot is None or self.run.state is not RunState.RUNNING:
            return ""
        cost = snapshot.cost_forecast(self.run.questions)
        return f"about {usd(cost)} USD in all" if cost else ""

    @property
    def _tokens(self) -> list[tuple[str, str]]:
        """(label, tokens): spent so far if running; else recorded totals of teams and EXAID."""
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
            faults.append(counted(spent.failed_attempts, "failed attempt"))
        return ", ".join(faults)

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the page in order."""
        macro = partial(made_by, "run_parts.html")
        troubles = self.trouble, self.missing, self.reason
        head = (
            self.run.state,
            self.run.totals.questions,
            self.run.snapshot,
            troubles,
            self.decided,
        )
        yield Part("head", "run", head, macro("head", self))
        if self.decided.count:
            yield Part("report", "report-link", self.run.state, macro("report", self))
        for card in self.cards:
            yield Part(f"card-{card.id}", "under-way", card.key, macro("card", card))
        # The rows are asked for by list.js, which knows what is shown.
        yield Part("decided", "figures-of-list", self.decided, macro("decided", self))


def _questions(count: int) -> str:
    return counted(count, "question") if count else ""


def question_address(run_address: str, item: ItemKey) -> str:
    """Return the address of the page of a question."""
    return f"{run_address}/questions/{make_case_id(*item)}"
