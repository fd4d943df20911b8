"""The list of questions: outcomes by run, and the filters of the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdagents.scoring.agreement import majority_is_right
from mdagents.scoring.formatting import UNKNOWN, counts, number, percent
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import Status

_SHOWN = 140  # characters of a question
_EXPENSIVE = 0.1  # share of the questions

FILTERS: Mapping[str, str] = {
    "differ": "right in some runs, not in others",
    "wrong": "answered, and not right",
    "unanswered": "an error, a refusal or an unreadable reply",
    "overturned": "the experts' first majority was right, the decision is not",
    "rescued": "the experts' first majority was wrong, the decision is right",
    "changed": "an expert or a team changed its answer in the debate",
    "alert": "EXAID met a critical alert",
    "missed-alert": "a critical alert that no summary of EXAID tells, or that one may not tell",
    "unsupported": "a summary of EXAID names a number or a drug that no agent named",
    "no-summary": "EXAID made no summary of it, though it did of others",
    "expensive": "among the tenth that took most tokens",
}
"""Filter name -> questions that pass it; with several runs, in any of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the list."""

    text: str
    key: float | str
    """Sort key of the cell."""
    kind: str = ""
    """`right`, `wrong`, `unanswered` or `skipped` for an answer, `number`, or empty for text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A question, as a row of the list."""

    name: str
    """Question id, followed by the epoch if it is not the first."""
    cells: tuple[Cell, ...]
    """Cells under the column headings that `headings` returns."""
    levels: tuple[str, ...]
    """Levels at which the question was answered."""
    tags: tuple[str, ...]
    """Names of the filters that the question passes."""
    pictures: int = 0
    """Number of pictures of the question."""


def outcome(row: ScoredRow) -> str:
    """Return `right`, `wrong`, `unanswered` or `skipped`."""
    if row.status == Status.ANSWERED:
        return "right" if row.correct else "wrong"
    return "skipped" if row.status == Status.SKIPPED else "unanswered"


def headings(run_names: Sequence[str]) -> Sequence[str]:
    """Return the column headings: the names of several runs, else `OF_ONE_RUN`."""
    return run_names if len(run_names) > 1 else OF_ONE_RUN


OF_ONE_RUN = ("level", "answer", "experts", "confidence", "tokens", "calls", "seconds")


def make_entries(runs: Sequence[Sequence[ScoredRow]]) -> list[Entry]:
    """Make the list from the rows of each run; all hold the same questions in the same order."""
    usual = [_Usual.of(rows) for rows in runs]
    return [_entry(rows, usual) for rows in zip(*runs, strict=True)]


def make_entry(row: ScoredRow) -> Entry:
    """Return a question of one run, without the filters that depend on the other questions.

    These are `expensive` (see `expensive_from`) and `no-summary` (see `lacks_summary`).
    """
    return _entry([row], [_Usual(None, is_summarised=False)])


def expensive_from(questions: int) -> int:
    """Return how many questions take more tokens than the cheapest one that is not `expensive`."""
    return int(questions * _EXPENSIVE)


def lacks_summary(row: ScoredRow) -> bool:
    """Return whether EXAID made no summary of a question that was not skipped."""
    return row.status != Status.SKIPPED and not (row.summarised and row.summarised.summaries)


def filter_counts(entries: Sequence[Entry]) -> dict[str, int]:
    """Return filter name -> number of questions that pass it, without empty filters."""
    found = Counter(tag for entry in entries for tag in entry.tags)
    return {name: found[name] for name in FILTERS if found[name]}


@dataclass(frozen=True, slots=True)
class _Usual:
    """Thresholds of a run that its questions are compared against."""

    tokens: int | None
    """Number of tokens above which a question is tagged expensive; None if unknown."""
    is_summarised: bool

    @classmethod
    def of(cls, rows: Sequence[ScoredRow]) -> _Usual:
        tokens = sorted((row.total_tokens or 0 for row in rows), reverse=True)
        is_summarised = any(row.summarised and row.summarised.summaries for row in rows)
        return cls(tokens[expensive_from(len(tokens))], is_summarised)


def _entry(rows: Sequence[ScoredRow], usual: Sequence[_Usual]) -> Entry:
    tags = {tag for row, of_run in zip(rows, usual, strict=True) for tag in _tags(row, of_run)}
    if len({row.correct for row in rows}) > 1:
        tags.add("differ")
    id_, epoch = rows[0].item
    return Entry(
        name=id_ if epoch == 1 else f"{id_}, epoch {epoch}",
        cells=tuple(_in_source(row, rows[0]) for row in rows)
        if len(rows) > 1
        else _of_one_run(*rows),
        levels=tuple(dict.fromkeys(row.difficulty for row in rows if row.difficulty)),
        tags=tuple(tag for tag in FILTERS if tag in tags),
        pictures=max(row.pictures for row in rows),
    )


def start_of(text: str) -> str:
    """Return the start of a question's text, as the list shows it."""
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0] + " …"


def _of_one_run(row: ScoredRow) -> tuple[Cell, ...]:
    votes = Counter(row.last_opinions)
    return (
        Cell(row.difficulty or UNKNOWN, row.difficulty),
        _answer(row, row.response, row.label),
        Cell(counts(dict(sorted(votes.items()))), max(votes.values(), default=0)),
        _number(row.confidence, percent(row.confidence)),
        _number(row.total_tokens, number(row.total_tokens, ",.0f")),
        _number(row.calls, number(row.calls, ",.0f")),
        _number(row.wall_seconds, number(row.wall_seconds, ",.1f")),
    )


def _in_source(row: ScoredRow, first: ScoredRow) -> Cell:
    """Return a cell with the first run's letters: runs may present options in different orders."""
    return _answer(row, row.letter_in(first), first.source_label)


def _answer(row: ScoredRow, letter: str, gold: str) -> Cell:
    kind = outcome(row)
    if kind == "right":
        return Cell(letter, kind, kind)
    return Cell(f"{letter}, not {gold}" if kind == "wrong" else row.status.replace("_", " "),
                kind, kind)  # fmt: skip


def _number(value: float | None, text: str) -> Cell:
    return Cell(text, -1 if value is None else value, "number")


def _tags(row: ScoredRow, usual: _Usual) -> list[str]:
    tags = [outcome(row)]
    if row.status == Status.ANSWERED and len(row.first_opinions) >= 2:
        majority = majority_is_right(row)
        if majority is not None and majority != row.correct:
            tags.append("overturned" if majority else "rescued")
    if row.first_opinions != row.last_opinions:
        tags.append("changed")
    if usual.tokens is not None and (row.total_tokens or 0) > usual.tokens:
        tags.append("expensive")
    return tags + _tags_of_exaid(row, usual)


def _tags_of_exaid(row: ScoredRow, usual: _Usual) -> list[str]:
    made = row.summarised
    tags = []
    if usual.is_summarised and lacks_summary(row):
        tags.append("no-summary")
    if made is None:
        return tags
    found = {
        "alert": made.alerts,
        "missed-alert": made.missed_alerts,
        "unsupported": made.unsupported_terms,
    }
    return tags + [tag for tag, count in found.items() if count]
