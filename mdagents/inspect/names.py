"""How tasks, solvers, agents and scorers are registered with Inspect: names, errors of a user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_name

from mdagents_llm.errors import ConfigError

PACKAGE = "mdagents"
"""Start of the names, up to the slash: `inspect eval mdagents/medqa`."""


def name_in_registry(function: Callable[..., Any], name: str) -> str:
    """Return the name to give to a decorator of Inspect, so that it is registered as `PACKAGE/…`.

    Inspect adds the name of an installed package by itself, but not that of a clone whose
    distribution has another name than the package.

    Args:
        function: Function to decorate.
        name: Name without the package.
    """
    return name if registry_name(function, name) != name else f"{PACKAGE}/{name}"


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn a mistake of the user into the error that Inspect shows without a traceback.

    Raises:
        PrerequisiteError: The user can correct a ConfigError that was raised.
    """
    try:
        yield
    except ConfigError as error:
        raise PrerequisiteError(str(error)) from error
