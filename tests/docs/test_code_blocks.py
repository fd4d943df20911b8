"""The code on every page is run by a test, or at least accepted by what it is for.

Examples in Python run in the tests of their pages. Commands are parsed by the programs that they
call, and the flags of a run are checked together as before a run.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from mdagents.cli import score  # noqa: F401 - loaded here, as other tests do, not inside a test
from mdagents.studies import program  # noqa: F401
from mdagents.view import cli  # noqa: F401
from tests.conftest import REPOSITORY
from tests.docs import commands, markdown
from tests.support.own_files import own_files

NOT_RUN: dict[str, str] = {}
"""Page with examples in Python that no test runs → why."""
RUN_TOGETHER = {"docs/how-to/recipes": "tests/exaid_core/integrations/test_recipes.py"}
"""Folder → test that runs the examples of all its pages."""
OUTPUT = ("text", "csv", "ini", "diff", "markdown")
"""Languages of blocks that show what is printed or stands in a file."""


def _pages() -> list[str]:
    """All pages but those that tell of the past."""
    return [
        name for name in markdown.pages() if name != "CHANGELOG.md" and "/decisions/" not in name
    ]


def _refused(asked: list[tuple[str, commands.Command]]) -> list[str]:
    refused = []
    for place, command in asked:
        saved = [
            text for text in markdown.inline_code(place.partition(":")[0]) if text.endswith(".py")
        ]
        if why := commands.refusal(command, saved):
            refused.append(f"{place}: {why}")
    return refused


def _commands() -> Iterator[tuple[str, commands.Command]]:
    """Yield (place, command) for the blocks of commands, and for code within text that is one."""
    for page in _pages():
        for block in markdown.blocks(page):
            if block.language not in markdown.COMMANDS:
                continue
            if block.language or commands.holds_commands(block.text):
                yield from ((block.place, each) for each in commands.commands_in(block.text))
        for code in filter(commands.is_command, markdown.inline_code(page)):
            yield from ((f"{page}: {code}", each) for each in commands.commands_in(code))


def test_commands_of_the_wheel_are_accepted() -> None:
    asked = [each for each in _commands() if commands.is_of_the_wheel(each[1])]
    assert _refused(asked) == []
    assert len(asked) > 50


@pytest.mark.process  # imports the companion systems, the measurements of EXAID, and the benchmarks
def test_commands_of_the_clone_are_accepted() -> None:
    asked = [each for each in _commands() if not commands.is_of_the_wheel(each[1])]
    assert _refused(asked) == []
    assert len(asked) > 5


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("python main.py --num-sample 3", "did you mean '--num-samples'"),
        ("python main.py --method cot --difficulty basic", "--difficulty"),
        ("mdagents score --compares a b", "--compares"),
        ("mdagents scores", "there is no mdagents scores"),
        ("MDAGENTS_SEEED=1 python main.py", "MDAGENTS_SEED"),
        ("make tests", "does not make"),
        ("python nothing.py", "there is no nothing.py"),
        ("pyton main.py", "no program of ours"),
        ("cd x && python main.py --seed one | head -1", "must be a whole number"),
    ],
)
def test_what_is_refused(line: str, why: str) -> None:
    refused = [found for each in commands.commands_in(line) if (found := commands.refusal(each))]
    assert len(refused) == 1
    assert why in refused[0]


def test_examples_in_python_name_what_there_is() -> None:
    missing = []
    for page in _pages():
        for block in markdown.blocks(page):
            if block.language != "python":
                continue
            code = compile(
                block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
            )
            for node in ast.walk(code):
                if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
                    known = _words_of(str(node.module))
                    named = {alias.name for alias in node.names}
                    missing += [f"{block.place}: {name}" for name in sorted(named - known)]
    assert missing == []


def test_examples_in_python_are_run_by_a_test() -> None:
    tests = "\n".join(
        (REPOSITORY / name).read_text(encoding="utf-8")
        for name in own_files("tests")
        if name.endswith(".py") and not name.endswith(("test_code_blocks.py", "test_docs.py"))
    )
    pages = {
        page
        for page in _pages()
        if any(block.language == "python" for block in markdown.blocks(page))
    }
    named = {page for page in pages if f'"{Path(page).name}"' in tests or page in tests}
    named |= {page for page in pages if "tutorials" in page and f'"{Path(page).stem}"' in tests}
    for folder, test in RUN_TOGETHER.items():
        assert f'"{Path(folder).name}").glob("*.md")' in (REPOSITORY / test).read_text(
            encoding="utf-8"
        )
        named |= {page for page in pages if page.startswith(f"{folder}/")}
    assert pages - named == set(NOT_RUN)


def test_other_blocks_are_what_they_say() -> None:
    unknown = []
    for page in _pages():
        for block in markdown.blocks(page):
            match block.language:
                case "json" if "…" not in block.text:
                    json.loads(block.text)
                case "yaml":
                    assert yaml.safe_load(block.text), block.place
                case "toml":
                    assert tomllib.loads(block.text), block.place
                case "python" | "json":
                    pass
                case language if language in (*markdown.COMMANDS, *OUTPUT):
                    pass
                case language:
                    unknown.append(f"{block.place}: {language}")
    assert unknown == []


@cache
def _words_of(module: str) -> set[str]:
    """The words of a module's source; not imported, since some import large packages."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    return set(re.findall(r"\w+", Path(spec.origin).read_text(encoding="utf-8")))


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in ("mdagents", "mdagents_llm", "exaid_core")
