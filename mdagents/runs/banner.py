"""The first lines of a run: questions, models, teams, forecast cost, where its results go."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from textwrap import TextWrapper

from mdagents.display import Display
from mdagents.records.batches import BATCHES_FILE, read_batches
from mdagents.records.manifest import WITHOUT_PICTURES
from mdagents.records.store import RunStore
from mdagents.runs.config import RunConfig
from mdagents.runs.models import exaid_roles
from mdagents.runs.plan import Plan
from mdagents.runs.selecting import selection_note
from mdagents.runs.solver import roles_at_work
from mdagents.settings import MDAGENTS, Router
from mdagents.teams.names import is_own
from mdagents_llm.config import Environment
from mdagents_llm.errors import ConfigError
from mdagents_llm.layers.cache import CacheMode
from mdagents_llm.text import counted


async def forecast_price(plan: Plan, store: RunStore, environment: Environment) -> str:
    """Return the forecast cost of the run.

    Empty if the run is free, is resumed, or has a user-defined method.
    """
    config = plan.config
    if store.done or config.cache is CacheMode.ONLY:
        return ""
    if is_own(config.method):  # a forecast would run the user's code
        return ""
    from mdagents.runs.forecast import forecast  # not needed without a banner

    try:
        found = await asyncio.to_thread(forecast, config, environment, plan.dataset)
    except Exception as error:  # noqa: BLE001 - a line of the banner must not end the run
        return f"no forecast ({type(error).__name__}: {' '.join(str(error).split())})"
    most = found.whole()[1].cost
    return "" if most == 0 else found.price_of(found.questions)


def show_banner(
    display: Display, store: RunStore, plan: Plan, unsummarised: int, price: str
) -> None:
    """Show what a run is about to do, or what is left of it.

    Args:
        display: Display of the run.
        store: Files of the run.
        plan: Plan of the run.
        unsummarised: Number of decided questions for which EXAID had not finished.
        price: Forecast cost; empty for none.
    """
    config, manifest, finished = plan.config, store.manifest, len(store.done)
    epochs = f", {config.epochs} times each" if config.epochs > 1 else ""

    def say(line: str) -> None:
        wrapper = TextWrapper(80, subsequent_indent=" " * 11, break_long_words=False)
        wrapper.break_on_hyphens = False
        display.say(wrapper.fill(line))

    questions = counted(len(manifest.item_ids), "question")
    say(f"dataset    {manifest.dataset}: {questions}{epochs}{_shown(plan)}")
    if note := selection_note(plan.dataset, config):
        say(f"NOTE: {note}")
    say(f"models     {_models_at_work(plan)}")
    say(f"{_who_answers(config)}, EXAID {config.exaid}")
    if price:
        say(f"cost       {price}")
    if config.batch:
        say(
            "batches    a step takes minutes to a day; stop whenever you like (Ctrl-C), the same "
            "command resumes"
        )
        if config.limits.run_cost is not None or config.limits.run_tokens is not None:
            say("NOTE: limits are checked before a batch is submitted, and a batch may exceed them")
    if changes := config.changes_from_default(shows_pictures=bool(plan.pictures.sha256)):
        say("changed    " + ", ".join(f"{k}={v}" for k, v in changes.items()))
    display.say(f"output     {store.array_path}")  # a path is not wrapped
    if finished:
        say(f"resumed    {counted(finished, 'question')} already finished")
        if before := [one for one in manifest.versions if one != manifest.version]:
            others = ", ".join(before)
            say(f"NOTE: earlier answers are of version {others}, new ones of {manifest.version}")
    if unsummarised:
        say(f"EXAID      resumes {counted(unsummarised, 'question')} decided before")
    if not config.batch and (left := _left_in_batches(store.folder)):
        say(f"NOTE: what was asked in batches is asked again; only --batch collects {left}")
    if store.kept_as:
        say(f"NOTE: the earlier run of this name was kept as {store.kept_as}")
        if left := _left_behind(store.folder.with_name(store.kept_as)):
            say(f"NOTE: its batches continue at the provider, and nothing collects them: {left}")
    if not _is_one_place():  # else they are shown once, with the results
        for notice in filter(None, (manifest.dataset_notice, manifest.model_notice)):
            say(f"NOTE: {notice}")


def _shown(plan: Plan) -> str:
    """Return how many of the questions have pictures, and whether agents see them."""
    if not plan.pictures.questions:
        return ""
    if plan.manifest.is_without_pictures:
        return f", {plan.pictures.questions} of them {WITHOUT_PICTURES} that they have"
    return f", {plan.pictures.questions} of them with pictures"


def _who_answers(config: RunConfig) -> str:
    """Return the line of the banner that names the teams or the method."""
    if config.method != MDAGENTS:
        return f"method     {config.method_name}"
    levels = ", ".join(config.levels)
    if len(config.levels) > 1:
        levels = f"{levels} in turn"
    if config.router is Router.DISAGREEMENT:
        levels = f"{levels} by disagreement below {config.least_agreement:g}"
    return f"teams      {levels}, preset {config.preset}"


def _models_at_work(plan: Plan) -> str:
    """Return each model that can be asked, with its roles."""
    config = plan.config
    by_model: dict[str, list[str]] = {}
    at_work = {*roles_at_work(config), *(r.value for r in exaid_roles(config.exaid_policy))}
    for role, model in plan.manifest.models.items():
        if role in at_work:
            by_model.setdefault(model, []).append(role)
    return "; ".join(f"{model} ({', '.join(roles)})" for model, roles in by_model.items())


def _left_in_batches(folder: Path) -> str:
    """Return the ids of the batches of a run that have not been collected, joined by commas."""
    batches = read_batches(folder / BATCHES_FILE)
    return ", ".join(one.id for one in batches if one.id and not (one.is_collected or one.is_over))


def _left_behind(folder: Path) -> str:
    """Return the uncollected batches of a run that `--fresh` keeps; tolerates a damaged file."""
    try:
        return _left_in_batches(folder)
    except ConfigError:
        return f"those in {folder / BATCHES_FILE}, which is damaged"


def _is_one_place() -> bool:
    """Return whether stdout and stderr go to one terminal, pipe or file."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # None, closed, or not a file of the system
        return False
