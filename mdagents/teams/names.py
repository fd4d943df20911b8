"""Names of methods, as `--method` takes them; no method is imported for them."""

from __future__ import annotations

from pathlib import Path
from pkgutil import iter_modules

from mdagents.settings import MDAGENTS
from mdagents.teams import baselines

SOLVE = "solve"
"""Required name of the function in the file of a user-defined method."""


def baseline_names() -> list[str]:
    """Return the names of the built-in methods other than `mdagents`."""
    return sorted(module.name for module in iter_modules(baselines.__path__))


def method_names() -> list[str]:
    """Return the names of all built-in methods, `mdagents` first."""
    return [MDAGENTS, *baseline_names()]


def is_own(method: str) -> bool:
    """Return whether a method is given by its file or module, not by a built-in name."""
    return method.endswith(".py") or ":" in method


def name_of(method: str) -> str:
    """Return the name of a user-defined method.

    It is `my_team` for `lab/my_team.py` and `lab.my_team:solve`. A function of another name is
    included: `my_team.quick` for `lab.my_team:quick`.
    """
    if method.endswith(".py"):
        return Path(method).stem
    module, _, function = method.partition(":")
    name = module.rpartition(".")[2]
    return name if function == SOLVE else f"{name}.{function}"
