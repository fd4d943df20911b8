"""Modules that the source of a user-defined method imports and that are the user's own as well."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path

_NOT_OWN = frozenset({"exaid_core", "mdagents", "mdagents_llm"}) | sys.stdlib_module_names
_INSTALLED = frozenset({"dist-packages", "site-packages"})
"""Names of folders into which packages are installed."""


def own_modules(source: Path, package: str) -> dict[str, Path]:
    """Return the user's own modules that a source file imports, also through one another.

    Imports inside functions count. Only what the sources say counts, not what else the process has
    imported, so that every process finds the same.

    Args:
        source: Source file of the method.
        package: Package of the source file; empty for none.

    Returns:
        Name -> file of each module, sorted by name. Left out are the standard library, installed
        packages and this program.
    """
    files: dict[str, Path] = {}
    seen: set[str] = set()
    pending = list(_imported(source, package))
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        spec = _own(name)
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            continue  # for example a package without `__init__.py`
        files[name] = Path(spec.origin)
        if spec.origin.endswith(".py"):
            pending += _imported(files[name], spec.parent or "")
    return dict(sorted(files.items()))


def _imported(source: Path, package: str) -> Iterator[str]:
    """Yield the names that a source file may import: modules, and what it takes from them."""
    try:
        tree = ast.parse(source.read_bytes())
    except (SyntaxError, ValueError):  # compiled, or imported inside a function that fails
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


def _own(name: str) -> ModuleSpec | None:
    """Return where a module is if it exists and is the user's own; None otherwise."""
    root = name.partition(".")[0]
    if root in _NOT_OWN:
        return None
    spec = None
    # The root first: looking for a submodule imports its package, and that may be a large one.
    for each in (root, name):
        try:
            spec = find_spec(each)
        except (Exception, SystemExit):  # noqa: BLE001 - whatever a package does while it loads
            return None
        if spec is None or any(_INSTALLED & set(Path(at).parts) for at in _places(spec)):
            return None
    return spec


def _places(spec: ModuleSpec) -> Iterator[str]:
    if spec.origin is not None:
        yield spec.origin
    yield from spec.submodule_search_locations or ()
