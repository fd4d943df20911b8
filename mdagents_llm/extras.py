"""Optional parts of the program, whose packages come with an extra of the distribution."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from mdagents_llm.errors import ConfigError
from mdagents_llm.interpreter import CLONE, install, missing_package, other_python

DISTRIBUTION = "mdagents-bench"


@contextmanager
def needs_extra(extra: str, what: str, kind: type[Exception] = ConfigError) -> Iterator[None]:
    """Turn a failed import of an optional part into an error that says what to type.

    Args:
        extra: Name of the extra in `pyproject.toml` that installs the packages.
        what: Part that needs the packages, for the message.
        kind: Type of error to raise.

    Raises:
        ConfigError: A package is missing or too old for the import; raised as `kind` if given.
    """
    try:
        yield
    except ImportError as error:
        package = missing_package(error)
        if not package:
            raise
        way = other_python() or install_extra(extra)
        raise kind(f"{what} needs {package}: {way}") from error


def check_installed(*packages: str) -> None:
    """Check that packages are installed, without the cost of importing them.

    Raises:
        ModuleNotFoundError: A package is missing.
    """
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named '{package}'", name=package)


def install_extra(extra: str) -> str:
    """Return the command that installs the packages of an extra into the running Python."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        version(DISTRIBUTION)
    except PackageNotFoundError:  # a clone that is not installed in this Python
        return install(f"{CLONE}[{extra}]")
    return install(f"{DISTRIBUTION}[{extra}]")
