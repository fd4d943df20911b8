"""Settings, outcome and cost of runs: what they share, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from mdagents.datasets.sources import published_size
from mdagents.scoring.fields import entries_of, number_of, object_of, sum_if_known, text_of
from mdagents.scoring.formatting import UNKNOWN, Table, counts, usd
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import ScoredRow
from mdagents.settings import MDAGENTS, Status

_REVISION = 10  # characters of a git revision


def settings_table(run: RunOutput) -> Table:
    """Return the settings, outcome and cost of a run as a table of two columns."""
    return Table(["setting", "value"], list(map(list, _lines(run).items())), title="Settings")


def shared_settings(
    runs: Sequence[RunOutput], labels: Sequence[str]
) -> tuple[list[str], Table | None]:
    """Return what the settings of several runs have in common, and a table of what differs.

    Args:
        runs: At least one run.
        labels: Their labels.
    """
    lines = [_lines(run) for run in runs]
    names = dict.fromkeys(name for of_run in lines for name in of_run)
    same = [name for name in names if len({of_run.get(name) for of_run in lines}) == 1]
    differing = [name for name in names if name not in same]
    rows = [
        [label, *(of_run.get(name, UNKNOWN) for name in differing)]
        for label, of_run in zip(labels, lines, strict=True)
    ]
    table = Table(["", *differing], rows, title="What differs") if differing else None
    return [f"{name} {lines[0][name]}" for name in same], table


def _lines(run: RunOutput) -> dict[str, str]:
    """Return label -> value for what is known of a run."""
    manifest, rows = run.manifest, run.rows
    options = object_of(manifest, "options")
    lines = [
        *_models(object_of(manifest, "models")),
        ("data set", _dataset(manifest)),
        ("method", text_of(options, "method")),
        ("difficulty", _difficulty(options)),
        ("EXAID", text_of(options, "exaid")),
        ("date", date_of(manifest)),
        ("questions", _questions(rows)),
        ("pictures", _pictures(rows)),
        ("teams", _cost(rows, lambda row: row.total_tokens, lambda row: row.cost_usd)),
        ("EXAID used", _cost(rows, lambda row: row.exaid_tokens)),
        ("paid in all", _paid(object_of(manifest, "spent"))),
        ("wall time", wall_time(manifest)),
        ("version", _versions(manifest)),
        ("git revision", text_of(manifest, "git_revision")[:_REVISION]),
        ("run", run.name),
    ]
    return {what: value for what, value in lines if value}


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


def date_of(manifest: Mapping[str, Any]) -> str:
    """Return the first and last day of a run; empty if unknown."""
    started = [text_of(start, "started_at")[:10] for start in entries_of(manifest, "invocations")]
    first_and_last = dict.fromkeys([*started[:1], *started[-1:]])
    return " to ".join(filter(None, first_and_last))


def _versions(manifest: Mapping[str, Any]) -> str:
    """Return the versions of the program that made the records; empty if unknown."""
    starts, last = entries_of(manifest, "invocations"), text_of(manifest, "version")
    made = [  # a killed start does not know how many
        text_of(start, "version") or last
        for start in starts
        if start.get("new_records") or not start.get("ended_at")
    ]
    return ", ".join(dict.fromkeys(made)) or last


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
    used, spent = sum_if_known(map(tokens, rows)), sum_if_known(map(cost, rows))
    if not used:
        return ""
    return f"{used:,.0f} tokens" + ("" if spent is None else f", {usd(spent)} USD")


def _paid(spent: Mapping[str, Any]) -> str:
    """Return tokens and cost of the ledger, excluding cached replies; unknown ones are left out."""
    read, written = number_of(spent.get("input_tokens")), number_of(spent.get("output_tokens"))
    cost = number_of(spent.get("cost_usd"))
    tokens = "" if read is None or written is None else f"{read + written:,.0f} tokens"
    return ", ".join(filter(None, [tokens, "" if cost is None else f"{usd(cost)} USD"]))


def wall_time(manifest: Mapping[str, Any]) -> str:
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
