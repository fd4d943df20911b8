"""Each docstring is read alone, in a hover or in `help()`: it names what it describes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.docs.test_docs import PACKAGES
from tests.support.own_files import own_files

LEANS = re.compile(
    r"(Of|See|Likewise|Those|The same|Whose|There)\b|[^.\n]*\b(see there|likewise)\b"
)
"""Beginnings and words that need a sentence before them."""


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the docstrings of a module, its fields' and constants' included."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for place, statement in enumerate(body):
            follows = place and isinstance(body[place - 1], ast.Assign | ast.AnnAssign)
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
                and (follows or (documented and place == 0))
            ):
                yield statement.lineno, statement.value.value


@pytest.mark.sweep
@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_no_docstring_leans_on_a_sentence_before_it(package: str) -> None:
    found = [
        f"{file}:{line}: {text}"
        for file in own_files(package)
        if file.endswith(".py")
        for line, text in docstrings(Path(REPOSITORY, file).read_text(encoding="utf-8"))
        if LEANS.match(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "leans"),
    [
        ('"""Of a PDF."""', True),
        ('"""Often read."""', False),
        ('x = 1\n"""See `y`."""', True),
        ('class A:\n    y: int\n    """Seconds to wait; see there."""', True),
        ('def f():\n    """Return the pages of a PDF."""', False),
        ('async def f():\n    pass\n"""Likewise, as text."""', False),
        ('x: int = 1\n"""The same, in ms."""', True),
    ],
)
def test_which_docstrings_lean(source: str, leans: bool) -> None:
    assert any(LEANS.match(text) for _, text in docstrings(source)) is leans
