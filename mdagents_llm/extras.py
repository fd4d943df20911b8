"""Optional parts of the program, whose packages an extra of the distribution brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from mdagents_llm.errors import ConfigError
from mdagents_llm.interpreter import CLONE, install, missing_package

DISTRIBUTION = "mdagents-bench"


@contextmanager
def needs_extra(extra: str, what: str, kind: type[Exception] = ConfigError) -> Iterator[None]:
    """Guard the imports of an optional part: a missing package becomes one line with the command.

    Args:
        extra: The extra that brings the packages, as `pyproject.toml` names it.
        what: The part that needs them, for the message.
        kind: The error to raise.

    Raises:
        ConfigError: A package is missing, or too old to have what is imported; `kind` if given.
    """
    try:
        yield
    except ImportError as error:
        package = missing_package(error)
        if not package:
            raise
        raise kind(f"{what} needs {package}: {install_extra(extra)}") from error


def check_installed(*packages: str) -> None:
    """Check that packages can be imported, without the time that it takes to load them.

    Raises:
        ModuleNotFoundError: One is missing.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named '{package}'", name=package)


def install_extra(extra: str) -> str:
    """Return the command that installs the packages of an extra into the Python that runs."""
    try:
        version(DISTRIBUTION)
    except PackageNotFoundError:  # a clone, by a Python in which it is not installed
        return install(f"{CLONE}[{extra}]")
    return install(f"{DISTRIBUTION}[{extra}]")
