"""Selects the questions of a run, and the notes on what it leaves out or cannot show."""

from __future__ import annotations

import random
from collections.abc import Sequence

from mdagents.datasets.dataset import Dataset, IndexEntry, no_question
from mdagents.datasets.record_lines import place
from mdagents.records.manifest import without_pictures
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.settings import Difficulty
from mdagents_llm.errors import ConfigError
from mdagents_llm.text import counted

_SKIPPING_PICTURES = "--skip-pictures leaves out every question that has or mentions a picture"


def select(dataset: Dataset, config: RunConfig) -> list[IndexEntry]:
    """Return the questions that the configuration selects, in their order.

    Raises:
        ConfigError: An id does not exist, or no question is left.
    """
    selection = config.selection
    entries = list(dataset.index)
    if selection.ids:
        by_id = {entry.id: entry for entry in entries}
        missing = [id_ for id_ in selection.ids if id_ not in by_id]
        if missing:
            where = config.place_of_id(missing[0])
            message = no_question(dataset, missing)
            raise ConfigError(f"{where}: {message}" if where else message)
        entries = [by_id[id_] for id_ in dict.fromkeys(selection.ids)]
    if selection.shuffle_seed is not None:
        random.Random(selection.shuffle_seed).shuffle(entries)
    if config.skip_pictures:
        entries = [entry for entry in entries if not _refers_to_picture(entry)]
    chosen = entries[selection.start : selection.stop]
    if not chosen:
        if config.skip_pictures and not entries:
            raise ConfigError(
                f"every selected question of {dataset.path} has or mentions a picture, so "
                "--skip-pictures leaves none"
            )
        without = " without a picture" if config.skip_pictures else ""
        raise ConfigError(
            f"{dataset.path} has only {counted(len(entries), 'question')}{without}; check --limit"
        )
    if pictured := [entry for entry in chosen if entry.missing_picture]:
        first = pictured[0]
        raise ConfigError(
            f"{len(pictured)} of the {len(chosen)} questions have a picture that is not there "
            f"(first: {place(dataset.path, first.line)}, id {first.id}, {first.missing_picture}); "
            f"{_SKIPPING_PICTURES}"
        )
    return chosen


def _refers_to_picture(entry: IndexEntry) -> bool:
    return bool(entry.pictures or entry.missing_picture or entry.mentions_picture)


def dropping_note(config: RunConfig, entries: Sequence[IndexEntry]) -> str:
    """Return a note that questions are asked without their pictures; empty if they are not."""
    pictured = sum(entry.pictures > 0 for entry in entries)
    if not without_pictures(pictured, {"images": config.images}):
        return ""
    return (
        f"asked without pictures (--images drop): {pictured} of the {len(entries)} questions have "
        "pictures that no agent saw."
    )


def picture_note(dataset: Dataset, config: RunConfig, entries: Sequence[IndexEntry]) -> str:
    """Return a note on the questions that need a picture or were left out for it; empty for none.

    Args:
        dataset: Data set of the run.
        config: Configuration of the run.
        entries: Selected questions.
    """
    if config.skip_pictures:
        out = [entry for entry in dataset.index if _refers_to_picture(entry)]
        what = f"{len(out)} of the {len(dataset.index)} questions"
        whose = "those with a picture, or that refer to one."
        return f"--skip-pictures leaves out {what}: {whose}" if out else ""
    mentioning = [e for e in entries if e.mentions_picture and not e.pictures]
    if not mentioning:
        return ""
    refer = "refers" if len(mentioning) == 1 else "refer"
    return (
        f"{len(mentioning)} of the {len(entries)} questions {refer} to a figure, an image or a "
        f"table that may be missing (first: {mentioning[0].id}); python -m mdagents data "
        f"check lists them; {_SKIPPING_PICTURES}."
    )


def selection_note(dataset: Dataset, config: RunConfig) -> str:
    """Return a note if fewer questions are answered than requested; empty otherwise."""
    possible = set(Difficulty) if ADAPTIVE in config.levels else {*config.levels}
    if possible <= {*config.skip}:
        return "--skip and SKIP_* leave out every level: no question will be answered"
    selection = config.selection
    held = len(set(selection.ids)) or len(dataset.index)
    if selection.stop is None or selection.stop <= held:
        return ""
    flag = f"--limit {config.limit}" if config.limit else f"--num-samples {config.num_samples}"
    there = "--sample-id names" if selection.ids else f"{dataset.name} holds"
    return f"{flag} asks for more than there is: {there} {held:,} questions"
