"""A run as experiment trackers know it: parameters, metrics, tags and files, from its card.

Numbers are those of the card: accuracy from the records, tokens and cost as sums of ledger rows.
Nothing holds the text of a question, a key, or a path of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path

from mdagents.export.card import RunCard, make_card
from mdagents.export.card_text import card_json, card_text
from mdagents.scoring.csv_file import write_csv
from mdagents.scoring.formatting import json_text
from mdagents.scoring.group import Group
from mdagents.scoring.report import Report, make_report
from mdagents.scoring.rows import read_output

LONGEST_VALUE = 500
"""Maximum length of a parameter: that of MLflow's oldest servers."""

_LONGEST_NAME = 250
_ODD = re.compile(r"[^\w./ -]", re.ASCII)
"""Characters that a name in MLflow must not have."""

STATUS = "status/"
"""Start of the names of counts of questions by how they ended."""


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run for a tracker."""

    name: str
    identity: str
    """Hash of the settings, the name and the first start: the same for every start of a run, and
    different for a repetition with the same settings."""
    finished: bool
    started_at: str
    """ISO 8601 in UTC; empty if not recorded."""
    ended_at: str
    """End of the last start, ISO 8601 in UTC; empty while it is in progress, or if not recorded."""
    stopped: bool
    """Whether the run ended before it was finished, such as at a limit."""
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: Mapping[str, str]
    """Name of a file -> its text."""


def track_run(path: Path) -> TrackedRun:
    """Read a run of this program.

    Args:
        path: Folder of a run, its `samples.jsonl`, or its JSON array.

    Raises:
        ConfigError: The path is not a run of this program, is damaged, or has no answer yet.
    """
    card = make_card(path)
    run = read_output(path)
    report = make_report(run)
    table = StringIO()
    write_csv(table, run.rows)
    started = card.starts[0].started_at if card.starts else ""
    ended = (card.starts[-1].ended_at or "") if card.starts else ""
    identity = sha256(f"{card.config_hash} {card.name} {started}".encode()).hexdigest()
    return TrackedRun(
        name=card.name,
        identity=identity,
        finished=card.finished,
        started_at=started,
        ended_at=ended,
        stopped=not card.finished and bool(ended and card.starts[-1].reason),
        params={_named(name): value[:LONGEST_VALUE] for name, value in _params(card)},
        metrics={_named(name): value for name, value in _metrics(card, report)},
        tags={"mdagents.identity": identity, **dict(_tags(card))},
        files={
            "card.md": card_text(card),
            "card.json": card_json(card),
            "scores.csv": table.getvalue(),
            "summary.json": json_text(report.as_dict()),
        },
    )


def _named(name: str) -> str:
    """Return a name that every tracker takes."""
    return _ODD.sub("_", name)[:_LONGEST_NAME]


def _params(card: RunCard) -> Iterator[tuple[str, str]]:
    yield "dataset", card.data.name
    yield "method", card.method
    yield "epochs", str(card.data.epochs)
    yield "exaid", card.exaid
    for used in card.models:
        yield f"model {used.role}", used.requested
    yield from card.settings.items()


def _metrics(card: RunCard, report: Report) -> Iterator[tuple[str, float]]:
    yield from _of_group("", card.figures)
    if len(report.by_difficulty) > 1:
        for level, group in report.by_difficulty.items():
            yield from _of_group(f"{level}/", group)
    for status, count in card.statuses.items():
        yield f"{STATUS}{status}", count
    spent = card.spent
    yield "tokens", spent.total_tokens
    yield "input_tokens", spent.input_tokens
    yield "output_tokens", spent.output_tokens
    yield "calls", spent.calls
    yield "cached_calls", spent.cached_calls
    yield "failed_attempts", spent.failed_attempts
    yield "exaid_tokens", spent.exaid_tokens
    if spent.cost_usd is not None:
        yield "cost_usd", spent.cost_usd


def _of_group(prefix: str, group: Group) -> Iterator[tuple[str, float]]:
    values = {
        "questions": group.questions,
        "answers": group.n,
        "answered": group.answered,
        "correct": group.correct,
        "accuracy": group.accuracy,
        "accuracy_low": group.accuracy_low,
        "accuracy_high": group.accuracy_high,
        "tokens_per_question": group.tokens_per_question,
        "cost_per_question": group.cost_per_question,
    }
    yield from ((f"{prefix}{name}", value) for name, value in values.items() if value is not None)


def _tags(card: RunCard) -> Iterator[tuple[str, str]]:
    yield "mdagents.run", card.name
    yield "mdagents.config_hash", card.config_hash
    yield "mdagents.version", card.version
    yield "mdagents.git_revision", card.git_revision
    yield "mdagents.dataset_sha256", card.data.sha256
    yield "mdagents.result", card.result[:LONGEST_VALUE]
    yield "mdagents.finished", str(card.finished).lower()
