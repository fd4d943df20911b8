"""Packages whose code runs when one of their names is used."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mdagents_llm.deferred import deferred

INIT = """
import runs_of_test
runs_of_test.runs += 1
from .many import MANY
from . import other
__all__ = ["MANY", "other"]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A deferred package with the submodules `many`, `other` and `alone`."""
    folder = tmp_path / "deferred_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "many.py").write_text("MANY = 300\n")
    (folder / "other.py").write_text("from deferred_of_test.many import MANY as SAME\n")
    (folder / "alone.py").write_text("ALONE = 1\n")
    (tmp_path / "runs_of_test.py").write_text("runs = 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with deferred("deferred_of_test"):
        yield importlib.import_module("deferred_of_test")
    for name in [name for name in sys.modules if name.endswith("_of_test") or "_of_test." in name]:
        del sys.modules[name]


def runs() -> int:
    """How often the code of the package has run."""
    module: Any = importlib.import_module("runs_of_test")
    return int(module.runs)


def test_a_submodule_is_imported_without_the_package(package: ModuleType) -> None:
    alone = importlib.import_module("deferred_of_test.alone")
    assert alone.ALONE == 1
    assert package.__name__ == "deferred_of_test"
    assert "deferred_of_test.many" not in sys.modules
    assert runs() == 0


def test_a_name_of_the_package_runs_its_code_once(package: ModuleType) -> None:
    assert package.MANY == 300
    assert package.other.SAME == 300
    assert runs() == 1
    assert package.__spec__ is not None
    assert not hasattr(package, "nothing")
    assert runs() == 1
    assert "__getattr__" not in vars(package)


def test_a_missing_name_is_missing(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="nothing"):
        attrgetter("nothing")(package)
    assert runs() == 1


def test_a_star_import_and_dir_see_all_names(package: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec("from deferred_of_test import *", names)
    assert names["MANY"] == 300
    assert {"MANY", "other"} <= {*dir(package)}


def test_dir_runs_the_code(package: ModuleType) -> None:
    assert {"MANY", "other", "many"} <= {*dir(package)}


def test_code_that_fails_runs_again(package: ModuleType) -> None:
    many = Path(str(package.__file__)).with_name("many.py")
    kept = many.read_text()
    many.write_text("raise ValueError('not today')\n")
    with pytest.raises(ValueError, match="not today"):
        _ = package.MANY
    many.write_text(kept)
    importlib.invalidate_caches()
    assert package.MANY == 300


def test_threads_wait_for_the_code(package: ModuleType) -> None:
    many = Path(str(package.__file__)).with_name("many.py")
    many.write_text("import time\ntime.sleep(0.2)\nMANY = 300\n")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(package.MANY)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [300] * 8
    assert runs() == 1


def test_a_package_that_is_loaded_stays_as_it_is() -> None:
    with deferred("json"):
        assert importlib.import_module("json") is sys.modules["json"]
    assert "__getattr__" not in vars(sys.modules["json"])
    assert not [one for one in sys.meta_path if type(one).__module__ == "mdagents_llm.deferred"]
