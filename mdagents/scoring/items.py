"""Matches the questions of runs: accuracies are compared only on exactly the same questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mdagents.scoring.group import scored
from mdagents.scoring.rows import RunOutput
from mdagents.scoring.scored_row import Item, ScoredRow
from mdagents.settings import Status
from mdagents_llm.errors import ConfigError
from mdagents_llm.text import first_names

_SHOWN = 5  # ids in a message


class NothingSharedError(ConfigError):
    """Runs without a question in common."""


def shared_rows(runs: Sequence[RunOutput], *, common: bool) -> list[list[ScoredRow]]:
    """Return the scored rows of each run for the same items, in the same order.

    Items are the same when question, options and right option match, regardless of option order and
    id: programs number the same questions differently. Where a run holds the same question twice,
    ids disambiguate. A question that a run skipped is not among its items.

    Args:
        runs: Runs, at least one.
        common: Whether runs with different items are compared on their common ones.

    Returns:
        Rows of each run; the lists have equal length and are not empty. A row has the id that the
        first run gives its question, so that rows of several runs can be grouped together.

    Raises:
        NothingSharedError: No item is shared.
        ConfigError: The items differ; the message says how.
    """
    rows_of = [scored(run.rows) for run in runs]
    first = {row.item: row for row in rows_of[0]}
    by_item = [first, *(_named_as_in(first, rows) for rows in rows_of[1:])]
    in_all = [item for item in by_item[0] if all(item in rows for rows in by_item)]
    shared = [item for item in in_all if len({rows[item].compared_by for rows in by_item}) == 1]
    if not shared or (not common and any(len(rows) > len(shared) for rows in rows_of)):
        changed = sorted(set(in_all) - set(shared))
        way_out = (
            f"--common compares the {len(shared)} that all runs hold"
            if shared
            else "they have none in common"
        )
        error = ConfigError if shared else NothingSharedError
        raise error(
            "the runs hold different questions, whose accuracies cannot be compared: "
            + "; ".join([*_differences(runs, by_item, changed), way_out])
        )
    return [[rows[item] for item in shared] for rows in by_item]


def notices_of(
    runs: Sequence[RunOutput], names: Sequence[str], shared: Sequence[Sequence[ScoredRow]]
) -> list[str]:
    """Return the notices of runs; notices shared by all runs carry no run name.

    Args:
        runs: Runs, at least one.
        names: Names of the runs.
        shared: Rows of each run for the same items, in the same order.
    """
    of_all = [notice for notice in runs[0].notices if all(notice in r.notices for r in runs)]
    notices = list(of_all)
    for name, run in zip(names, runs, strict=True):
        notices += [f"{name}: {notice}" for notice in run.notices if notice not in of_all]
    for name, run, rows in zip(names, runs, shared, strict=True):
        stated = {row.item: row.compared_by for row in run.rows}
        count = sum(stated.get(row.item) != row.compared_by for row in rows)
        if count:
            notices.append(
                f"{name}: {count} of {len(rows)} answers have ids that differ from those in "
                f"{names[0]}; they were matched by question, options and right option"
            )
    return notices


def _named_as_in(
    first: Mapping[Item, ScoredRow], rows: Sequence[ScoredRow]
) -> dict[Item, ScoredRow]:
    """Return rows keyed by the items of another run; rows it lacks keep their own items."""
    item_of = {(row.compared_by, row.epoch): item for item, row in _alone(first.values())}
    alone = {row.item for _, row in _alone(rows)}
    named: dict[Item, ScoredRow] = {}
    unknown = []
    for row in rows:
        of_first = first.get(row.item)
        if of_first is not None and of_first.compared_by == row.compared_by:
            named[row.item] = row
        elif row.item in alone and (item := item_of.get((row.compared_by, row.epoch))):
            named[item] = replace(row, question_id=item[0])
        else:
            unknown.append(row)
    for row in unknown:
        named.setdefault(row.item, row)
    return named


def _alone(rows: Collection[ScoredRow]) -> list[tuple[Item, ScoredRow]]:
    """Return (item, row) of the rows whose question occurs once in their epoch."""
    counts = Counter((row.compared_by, row.epoch) for row in rows)
    return [(row.item, row) for row in rows if counts[row.compared_by, row.epoch] == 1]


def _differences(
    runs: Sequence[RunOutput],
    by_item: Sequence[Mapping[Item, ScoredRow]],
    changed: Collection[Item],
) -> list[str]:
    union = list(dict.fromkeys(item for rows in by_item for item in rows))
    parts = []
    for number, (run, rows) in enumerate(zip(runs, by_item, strict=True), start=1):
        missing = [item for item in union if item not in rows]
        if missing:
            out = {row.item for row in run.rows if row.status == Status.SKIPPED}
            skipped = len(out.intersection(missing))
            parts.append(
                f"run {number} ({run.name}) lacks {len(missing)} of {len(union)}"
                + (f", {skipped} of them skipped" if skipped else "")
                + f" ({_named(missing)})"
            )
    if changed:
        parts.append(f"{len(changed)} differ in text, options or answer ({_named(changed)})")
    return parts


def _named(items: Collection[Item]) -> str:
    names = [id_ if epoch == 1 else f"{id_} in epoch {epoch}" for id_, epoch in items]
    return first_names(names, _SHOWN)
