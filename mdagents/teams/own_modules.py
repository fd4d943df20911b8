"""Modules that the source of a user-defined method imports and that are the user's own as well."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path

NOT_OWN = frozenset({"exaid_core", "mdagents", "mdagents_llm"}) | sys.stdlib_module_names
"""Top-level names of this program and the standard library."""
_INSTALLED = frozenset({"dist-packages", "site-packages"})
"""Names of folders into which packages are installed."""


def own_modules(source: Path, package: str) -> dict[str, Path]:
    """Return the user's own modules that a source file imports, also through one another.

    Imports inside functions count. Nothing is imported to find them: only what the sources say
    counts, not what else the process has imported, so that every process finds the same.

    Args:
        source: Source file of the method.
        package: Package of the source file; empty for none.

    Returns:
        Name -> file of each module, sorted by name. Left out are the standard library, installed
        packages, this program, and what is not a file of a folder on Python's path.
    """
    PathFinder.invalidate_caches()
    roots = [root for root in sys.path if not is_installed(root)]
    files: dict[str, Path] = {}
    seen: set[str] = set()
    pending = list(_imported(source, package))
    while pending:
        name = pending.pop()
        if name in seen or name.partition(".")[0] in NOT_OWN:
            continue
        seen.add(name)
        file = _file_of(name, roots)
        if file is None:
            continue
        files[name] = file
        if file.suffix == ".py":
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            pending += _imported(file, package)
    return dict(sorted(files.items()))


def is_installed(root: str) -> bool:
    """Return whether a folder on Python's path holds installed packages, as `--target` makes it."""
    path = Path(root)
    return not _INSTALLED.isdisjoint(path.parts) or any(path.glob("*.dist-info"))


def _imported(file: Path, package: str) -> Iterator[str]:
    with suppress(OSError):  # in an archive
        yield from imported_names(file.read_bytes(), package)


def imported_names(source: bytes, package: str) -> Iterator[str]:
    """Yield the names that a source may import: modules, and what it takes from them.

    Args:
        source: Source of a module.
        package: Package of the module; empty for none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the import itself shows them
            tree = ast.parse(source)
    except SyntaxError:  # its import fails
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            try:
                module = resolve_name(module, package)
            except ImportError:
                continue
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _file_of(name: str, roots: Sequence[str]) -> Path | None:
    """Return the file of a module; None if it is a namespace, or not in a folder of the roots."""
    places: Sequence[str] | None = roots
    found = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, places) if places else None
        if spec is None:
            return None
        found, places = spec.origin, spec.submodule_search_locations
    path = Path(found or "")
    return path if path.is_file() else None
