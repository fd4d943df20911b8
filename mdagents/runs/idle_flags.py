"""Checks for flags that have no effect together with others, although the user expects one.

Only flags of the command line, and those of a method's own entry in a study, are refused. Settings
in the environment, in a file or beside the methods of a study are often meant for several runs,
some of which have no use for them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from mdagents.datasets.record_lines import ENDINGS, ending
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.flag import flag_name
from mdagents.runs.flags.picture_flags import Images, PictureFlags
from mdagents.runs.flags.team_flags import ADAPTIVE, TeamFlags
from mdagents.runs.models import exaid_roles
from mdagents.runs.solver import roles_at_work
from mdagents.settings import MDAGENTS
from mdagents.teams.declaration import TEMPERATURES
from mdagents_llm.errors import ConfigError


def refuse_idle_flags(config: RunConfig, options: argparse.Namespace) -> None:
    """Refuse the first flag of the command line that has no effect.

    Args:
        config: Configuration that the flags make together.
        options: Result of `read_options`.

    Raises:
        ConfigError: A flag has no effect; the message names the flag and the reason.
    """
    for flag, why in _idle(config, options):
        if flag in options.typed:
            raise ConfigError(f"{why}; leave {flag} out")


def refuse_idle_picture_flags(pictured: int, options: argparse.Namespace) -> None:
    """Refuse a flag of pictures where no selected question has one.

    Args:
        pictured: Number of selected questions with pictures.
        options: Result of `read_options`.

    Raises:
        ConfigError: Such a flag is on the command line.
    """
    for name in PictureFlags.model_fields:
        if not pictured and flag_name(name) in options.typed:
            raise ConfigError(
                f"none of the selected questions has a picture; leave {flag_name(name)} out"
            )


def _idle(config: RunConfig, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield (flag, reason why it has no effect)."""
    yield from idle_of_the_method(config)
    if config.exaid_policy is None:
        yield "--exaid-wait", "EXAID is off"
    if config.images is Images.DROP:
        for name in PictureFlags.model_fields:
            if name != "images":
                yield flag_name(name), "--images drop shows no pictures"
    if not options.view:
        for flag in ("--view-port", "--view-host", "--no-open"):
            yield flag, "without --view there is no live view"
    if not config.otel:
        for flag in ("--otel-text", "--otel-traces"):
            yield flag, "without --otel no spans are made"
    if ending(Path(config.dataset)) in ENDINGS:
        yield "--split", f"--dataset {config.dataset} is one file"
    if config.fresh:
        yield "--retry-errors", "--fresh answers all questions again"
    if options.dry_run:
        yield "--json", "--dry-run has no results to print"


def idle_of_the_method(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield (flag, reason) for flags that the method, or the levels of the teams, do not use."""
    is_team = config.method == MDAGENTS
    is_routed = is_team and ADAPTIVE in config.levels
    which = f"--difficulty {','.join(config.levels)}"
    if not is_team:
        which = f"--method {config.method_name}"
        yield "--difficulty", f"{which} does not route its questions"
    if not is_routed:
        yield "--router", f"{which} does not route its questions"
    if is_team and not is_routed and set(config.skip).isdisjoint(config.levels):
        yield "--skip", f"{which} sends no question to {', '.join(config.skip)}"
    declared = config.declared
    for name, _, flag in TeamFlags.described():
        if flag.sets and set(flag.sets).isdisjoint(declared.reads):
            yield flag_name(name), f"{which} has no such number"
    for name in TEMPERATURES:
        if name not in declared.temperatures:
            yield flag_name(name), f"{which} has no turn at this temperature"
    if not declared.communicates:
        yield "--preset", f"{which} has none of a preset's numbers"
        yield "--show-interaction-table", f"in {which} nobody writes to anybody"
    for name in config.words:
        if f"{name}_words" not in declared.reads:
            yield "--words", f"{which} has no limit '{name}'"
    at_work = {*roles_at_work(config), *(r.value for r in exaid_roles(config.exaid_policy))}
    for role in config.model_role:
        if role not in at_work:
            yield "--model-role", f"{which}, --exaid {config.exaid}: nobody is {role}"
