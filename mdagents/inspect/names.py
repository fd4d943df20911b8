"""Names of tasks, solvers, agents and scorers in the registry of Inspect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspect_ai._util.registry import registry_name

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
