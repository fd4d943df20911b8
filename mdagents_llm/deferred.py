"""Imports of packages whose `__init__` loads hundreds of modules that may never be needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


@contextmanager
def deferred(*packages: str) -> Iterator[None]:
    """Run the code of packages that are imported in this context when one of their names is used.

    Their submodules can be imported without that. `importlib.util.LazyLoader` would run the code
    even then, since importing a submodule reads the `__path__` of its package. A package that
    is loaded already stays as it is. While they are imported, its submodules must not use names of
    the package: two threads could wait for each other.

    Args:
        packages: Full names of the packages, such as `openai.types`.
    """
    finder = _Finder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, packages: Collection[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._packages:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Deferring(spec.loader)
        return spec


class _Deferring(Loader):
    """Runs the code of a module when a name is asked for that the module does not have."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = threading.RLock()
        self._is_loading = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        def named(name: str) -> object:
            if self._load(module, hooks):
                return getattr(module, name)
            # The module's own code asks for a name that it has not defined yet.
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        def names() -> list[str]:
            return dir(module) if self._load(module, hooks) else list(module.__dict__)

        hooks = {"__getattr__": named, "__dir__": names}
        module.__dict__.update(hooks)

    def _load(self, module: ModuleType, hooks: Mapping[str, object]) -> bool:
        """Run the code unless it has run; return whether it has ended.

        Threads wait for the one that runs the code.
        """
        with self._lock:
            if self._is_loading:
                return False
            if module.__dict__.get("__getattr__") is hooks["__getattr__"]:
                self._is_loading = True
                try:
                    self._loader.exec_module(module)
                finally:
                    self._is_loading = False
                for name, hook in hooks.items():
                    if module.__dict__.get(name) is hook:
                        del module.__dict__[name]
            return True
