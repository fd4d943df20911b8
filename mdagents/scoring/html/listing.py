"""The list of questions: what each run made of them, and what they can be filtered by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdagents.outcome import Status
from mdagents.scoring.agreement import majority_is_right
from mdagents.scoring.cells import counts, number, percent
from mdagents.scoring.items import Item, item_of
from mdagents.scoring.rows import ScoredRow

_SHOWN = 140  # characters of a question
_EXPENSIVE = 0.1  # share of the questions

FILTERS: Mapping[str, str] = {
    "differ": "right in some runs, not in others",
    "wrong": "answered, and not right",
    "unanswered": "an error, a refusal or an unreadable reply",
    "overturned": "the experts' majority was right, the decision was not",
    "rescued": "the experts' majority was wrong, the decision was right",
    "expensive": "among the tenth that took most tokens",
}
"""Name of a filter -> which questions it lets through; with several runs, those of any run."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the list."""

    text: str
    key: float | str
    """What the list is sorted by."""
    kind: str = ""
    """`right`, `wrong`, `unanswered` or `skipped` for an answer, `number`, or empty."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A question of the list."""

    item: Item
    cells: tuple[Cell, ...]
    """Under the headings of `headings`."""
    levels: tuple[str, ...]
    """On which it was answered."""
    tags: tuple[str, ...]
    """Names of the filters that let it through."""


def outcome(row: ScoredRow) -> str:
    """`right`, `wrong`, `unanswered` or `skipped`."""
    if row.status == Status.ANSWERED:
        return "right" if row.correct else "wrong"
    return "skipped" if row.status == Status.SKIPPED else "unanswered"


def headings(runs: int) -> list[str]:
    """Headings of the list for so many runs."""
    if runs > 1:
        return ["question", "", *(f"run {number}" for number in range(1, runs + 1))]
    return [
        "question",
        "",
        "level",
        "answer",
        "experts",
        "confidence",
        "tokens",
        "calls",
        "seconds",
    ]


def make_entries(runs: Sequence[Sequence[ScoredRow]], texts: Mapping[Item, str]) -> list[Entry]:
    """The list: each question that a run holds, in the order of the first run.

    Args:
        runs: Rows of each run.
        texts: Text of each question.
    """
    by_item = [{item_of(row): row for row in rows} for rows in runs]
    expensive = [_expensive(rows) for rows in runs]
    entries: list[Entry] = []
    for item in dict.fromkeys(item for rows in by_item for item in rows):
        of_runs = [rows.get(item) for rows in by_item]
        tags = {
            tag
            for row, limit in zip(of_runs, expensive, strict=True)
            if row is not None
            for tag in _tags(row, limit)
        }
        if len({row.correct for row in of_runs if row is not None}) > 1:
            tags.add("differ")
        levels = dict.fromkeys(row.difficulty for row in of_runs if row is not None)
        entries.append(
            Entry(
                item=item,
                cells=(
                    Cell(_name(item), len(entries)),
                    Cell(_start(texts.get(item, "")), 0),
                    *_cells(of_runs),
                ),
                levels=tuple(filter(None, levels)),
                tags=tuple(tag for tag in FILTERS if tag in tags),
            )
        )
    return entries


def filter_counts(entries: Sequence[Entry]) -> dict[str, int]:
    """Name of each filter that lets anything through -> questions."""
    found = Counter(tag for entry in entries for tag in entry.tags)
    return {name: found[name] for name in FILTERS if found[name]}


def _cells(rows: Sequence[ScoredRow | None]) -> list[Cell]:
    if len(rows) > 1:
        return [_answer(row) for row in rows]
    (row,) = rows
    assert row is not None, "a question is listed because a run holds it"
    votes = Counter(row.last_opinions)
    return [
        Cell(row.difficulty or "-", row.difficulty),
        _answer(row),
        Cell(counts(dict(sorted(votes.items()))), max(votes.values(), default=0)),
        _number(row.confidence, percent(row.confidence)),
        _number(row.total_tokens, number(row.total_tokens, ",.0f")),
        _number(row.calls, number(row.calls, ",.0f")),
        _number(row.wall_seconds, number(row.wall_seconds, ",.1f")),
    ]


def _answer(row: ScoredRow | None) -> Cell:
    if row is None:
        return Cell("-", "")
    kind = outcome(row)
    if kind == "wrong":
        return Cell(f"{row.response}, not {row.label}", kind, kind)
    return Cell(row.response if kind == "right" else row.status.replace("_", " "), kind, kind)


def _number(value: float | None, text: str) -> Cell:
    return Cell(text, -1 if value is None else value, "number")


def _name(item: Item) -> str:
    id_, epoch = item
    return id_ if epoch == 1 else f"{id_}, epoch {epoch}"


def _start(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0] + " …"


def _tags(row: ScoredRow, expensive: int) -> list[str]:
    tags = [outcome(row)]
    if row.status == Status.ANSWERED and len(row.last_opinions) >= 2:
        majority = majority_is_right(row)
        if majority is not None and majority != row.correct:
            tags.append("overturned" if majority else "rescued")
    if expensive and (row.total_tokens or 0) >= expensive:
        tags.append("expensive")
    return tags


def _expensive(rows: Sequence[ScoredRow]) -> int:
    """Tokens from which on a question is among the most expensive ones; 0 when not known."""
    tokens = sorted((row.total_tokens or 0 for row in rows), reverse=True)
    return tokens[int(len(tokens) * _EXPENSIVE)] if len(tokens) >= 1 / _EXPENSIVE else 0
