"""Imports of user-defined methods, compiled from their sources.

Python accepts cached bytecode whose source has the same time and size, as a copy of another version
can have. Such code would run under the hash of a source that it does not come from.
"""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from mdagents.teams.own_modules import NOT_OWN, imported_names, is_installed


class SourceLoader(SourceFileLoader):
    """Loader of a source file that neither reads nor writes cached bytecode."""

    source = b""
    """Bytes that the module was compiled from; empty before it is loaded."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module; what it imports is compiled from sources as well."""
        path = self.get_filename(fullname)
        self.source = self.get_data(path)
        linecache.cache.pop(path, None)  # it compares only time and size as well
        package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
        _FINDER.names.update(imported_names(self.source, package))
        return self.source_to_code(self.source, path)


class _SourceFinder(MetaPathFinder):
    """Finds the modules of user-defined methods where Python finds them, with a `SourceLoader`."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        """Names that the sources loaded so far may import."""
        self.packages: set[str] = set()
        """Top-level names of methods, all of whose sources count."""
        self._of_thread = threading.local()

    def _being_found(self) -> set[str]:
        """Return the names that this thread is looking for."""
        names: set[str] = self._of_thread.__dict__.setdefault("names", set())
        return names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module; None for a module that is not the user's own."""
        top = fullname.partition(".")[0]
        if top in NOT_OWN or not (fullname in self.names or top in self.packages):
            return None
        if fullname in self._being_found():  # asked by another finder that asks all others
            return None
        self._being_found().add(fullname)
        try:
            others = (finder for finder in sys.meta_path if finder is not self)
            finds = (getattr(finder, "find_spec", None) for finder in others)
            specs = (find(fullname, path, target) for find in finds if find is not None)
            spec: ModuleSpec | None = next((spec for spec in specs if spec is not None), None)
        finally:
            self._being_found().discard(fullname)
        # Another loader (of an archive, or of a package that rewrites code) stays as it is.
        if spec is not None and type(spec.loader) is SourceFileLoader:
            file = spec.loader.path
            if top in self.packages or not is_installed(_root_of(fullname, Path(file))):
                spec.loader = SourceLoader(fullname, file)
        return spec


_FINDER = _SourceFinder()


def compile_from_source(package: str | None = None) -> None:
    """Compile what user-defined methods import from its sources, from now on.

    Modules that are already imported stay as they are, as do installed packages.

    Args:
        package: Top-level name of a method, which may be an installed package.
    """
    if package is not None:
        _FINDER.packages.add(package)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def _root_of(name: str, file: Path) -> str:
    """Return the folder of Python's path in which the file of a module was found."""
    depth = name.count(".") + (file.name == "__init__.py")
    return str(file.parents[min(depth, len(file.parents) - 1)])
