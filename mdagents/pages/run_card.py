"""The result of a run in one sentence, and a card of its settings and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mdagents.datasets.sources import published_size
from mdagents.scoring.fields import entries_of, number_of, object_of, text_of
from mdagents.scoring.formatting import counts, interval, points, usd
from mdagents.scoring.group import Group
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.scoring.statistics import SMALLEST_FOR_RATES
from mdagents.settings import MDAGENTS, Status

_REVISION = 10  # characters of a git revision


@dataclass(frozen=True, slots=True)
class Card:
    """Settings, outcome and cost of a run; unknown values have no line."""

    name: str
    lines: Sequence[tuple[str, str]]
    """(label, value) of each line."""


def headline(group: Group, manifest: Mapping[str, Any], rows: Sequence[ScoredRow] = ()) -> str:
    """Return the result of a run in one sentence.

    Args:
        group: All questions of the run.
        manifest: Contents of the run's `run.json`; may be empty.
        rows: Questions of the run, of which the sentence says if they were asked without pictures.
    """
    return _result(group, manifest) + _without_pictures(rows)


def _without_pictures(rows: Sequence[ScoredRow]) -> str:
    with_pictures = [row for row in rows if row.pictures and row.status != Status.SKIPPED]
    lacking = sum(row.pictures_sent < row.pictures for row in with_pictures)
    if not lacking:
        return ""
    if lacking == len(with_pictures):
        return ", asked without pictures"
    return f", {lacking:,} of {len(with_pictures):,} with pictures asked without them"


def _result(group: Group, manifest: Mapping[str, Any]) -> str:
    name = text_of(manifest, "dataset")
    of_what = f"{name} questions".strip()
    published = published_size(name)
    if published is not None and group.questions < published:
        of_what = f"of the {published:,} {name} questions"
    if not group.n:
        return f"none of {group.skipped} {of_what} was to be answered: all were skipped"
    if not group.answered:
        return f"none of {group.n:,} {of_what} was answered"
    if group.n > group.questions:
        of_what = f"answers to {group.questions} {of_what}"
    if group.questions < SMALLEST_FOR_RATES:
        return f"{group.correct} of {group.n} {of_what} right: too few for a percentage"
    ends = interval(group.accuracy_low, group.accuracy_high)
    chance = "" if group.chance is None else f"; chance {points(group.chance, '.3g')}%"
    return f"{points(group.accuracy)}% of {group.n:,} {of_what} right (95% interval {ends}{chance})"


def make_card(run: RunOutput) -> Card:
    """Make the card of a run from its manifest, if any, and the rows that are shown."""
    manifest, rows = run.manifest, run.rows
    options = object_of(manifest, "options")
    lines = [
        *_models(object_of(manifest, "models")),
        ("data set", _dataset(manifest)),
        ("method", text_of(options, "method")),
        ("difficulty", _difficulty(options)),
        ("EXAID", text_of(options, "exaid")),
        ("date", _date(manifest)),
        ("questions", _questions(rows)),
        ("pictures", _pictures(rows)),
        ("teams", _cost(rows, lambda row: row.total_tokens, lambda row: row.cost_usd)),
        ("EXAID used", _cost(rows, lambda row: row.exaid_tokens)),
        ("paid in all", _paid(object_of(manifest, "spent"))),
        ("wall time", _wall_time(manifest)),
        ("version", text_of(manifest, "version")),
        ("git revision", text_of(manifest, "git_revision")[:_REVISION]),
        ("run", run.name),
    ]
    return Card(run.name, [(what, value) for what, value in lines if value])


def _models(models: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (label with roles, model) for each model; a single model serves all roles."""
    roles: dict[str, list[str]] = {}
    for role, model in models.items():
        roles.setdefault(str(model), []).append(role.replace("_", " "))
    if len(roles) == 1:
        return [("model", model) for model in roles]
    return [(f"model of {', '.join(of)}", model) for model, of in roles.items()]


def _dataset(manifest: Mapping[str, Any]) -> str:
    """Return the data set and, for a subset, the run's share of its published questions."""
    name, asked = text_of(manifest, "dataset"), manifest.get("item_ids")
    published = published_size(name)
    if published is None or not isinstance(asked, list) or len(asked) >= published:
        return name
    return f"{name} ({len(asked):,} of {published:,} questions)"


def _difficulty(options: Mapping[str, Any]) -> str:
    # A baseline method has no levels, whatever the flag says.
    is_team = options.get("method", MDAGENTS) == MDAGENTS
    return text_of(options, "difficulty").replace(",", ", ") if is_team else ""


def _date(manifest: Mapping[str, Any]) -> str:
    started = [text_of(start, "started_at")[:10] for start in entries_of(manifest, "invocations")]
    first_and_last = dict.fromkeys([*started[:1], *started[-1:]])
    return " to ".join(filter(None, first_and_last))


def _pictures(rows: Sequence[ScoredRow]) -> str:
    """Return how many pictures the questions have and the agents saw; empty without pictures."""
    pictures, sent = sum(row.pictures for row in rows), sum(row.pictures_sent for row in rows)
    if pictures == sent:
        return f"{pictures:,}" if pictures else ""
    return f"{pictures:,}, of which the agents saw {sent:,}" if sent else f"{pictures:,}, not shown"


def _questions(rows: Sequence[ScoredRow]) -> str:
    statuses = Counter(row.status for row in rows)
    skipped = statuses.pop(Status.SKIPPED, 0)
    answered = statuses.pop(Status.ANSWERED, 0)
    failed = statuses.total()
    why = f" ({counts(dict(statuses.most_common()))})".replace("_", " ") if failed else ""
    parts = [f"{answered:,} answered", f"{failed:,} failed{why}" if failed else ""]
    return ", ".join(filter(None, [*parts, f"{skipped:,} skipped" if skipped else ""]))


def _cost(
    rows: Sequence[ScoredRow],
    tokens: Callable[[ScoredRow], int | None],
    cost: Callable[[ScoredRow], float | None] = lambda _: None,
) -> str:
    used, spent = _sum(map(tokens, rows)), _sum(map(cost, rows))
    if not used:
        return ""
    return f"{used:,.0f} tokens" + ("" if spent is None else f", {usd(spent)} USD")


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum; None if any value is unknown."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _paid(spent: Mapping[str, Any]) -> str:
    """Return tokens and cost of the ledger, excluding cached replies; unknown ones are left out."""
    read, written = number_of(spent.get("input_tokens")), number_of(spent.get("output_tokens"))
    cost = number_of(spent.get("cost_usd"))
    tokens = "" if read is None or written is None else f"{read + written:,.0f} tokens"
    return ", ".join(filter(None, [tokens, "" if cost is None else f"{usd(cost)} USD"]))


def _wall_time(manifest: Mapping[str, Any]) -> str:
    """Return the total duration of all starts of the program; empty if one is unknown."""
    total = timedelta()
    starts = entries_of(manifest, "invocations")
    for start in starts:
        try:
            began, ended = (
                datetime.fromisoformat(text_of(start, name)) for name in ("started_at", "ended_at")
            )
            total += ended - began
        except (ValueError, TypeError):  # TypeError: only one of both has a time zone
            return ""  # it was killed, or is in progress
    return str(timedelta(seconds=round(total.total_seconds()))) if starts else ""
