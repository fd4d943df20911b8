"""A method of the user's own: what it is told when it is wrong, and what is kept."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import pickle
import py_compile
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

import mdagents
from mdagents.datasets.questions import Question
from mdagents.runs.config import RunConfig
from mdagents.teams import own_method
from mdagents.teams.decision import Decision
from mdagents.teams.names import is_own, name_of
from mdagents.teams.own_method import load
from mdagents_llm.errors import ConfigError
from tests.fake_provider import FakeProvider, depth
from tests.support.whole_runs import Run, records

pytestmark = pytest.mark.process

GOOD = """
from mdagents import Decision, Stated, TeamRole
from mdagents.agents import replies

async def solve(case, question, settings):
    physician = case.decider("physician", "Physician", TeamRole.DECISION)
    reply = await physician.ask(
        "Your task: choose.", replies.opinion(question.letters, 50), phase="answer"
    )
    return Decision(reply.answer, reply.reasoning, opinions=(Stated.by(physician, reply),))
"""


def write(body: str, name: str = "my_team.py") -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body)
    return name


def returning(expression: str) -> str:
    return write(GOOD.replace('Decision(reply.answer, reply.reasoning, opinions=(Stated.by('
                              'physician, reply),))', expression))  # fmt: skip


def manifest() -> dict[str, Any]:
    (path,) = Path("output").glob("*/run.json")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def test_a_method_without_calls_finishes(provider: FakeProvider, run: Run) -> None:
    write("from mdagents import Decision\n\nasync def solve(case, question, settings):\n"
          "    return Decision('A', 'the first')\n", "first.py")  # fmt: skip
    status, out, _ = run("--method", "first.py", "--num-samples", "3")
    assert status == 0
    assert "answered 3" in out
    assert manifest()["finished"]
    assert provider.calls == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (None, "is not there"),
        ("async def solve(case, question, settings):\n    return (", "line 2: SyntaxError: "),
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("x = 1", "has no `async def solve(case, question, settings)`"),
        ("def solve(case, question, settings): ...", "has no `async def solve("),
        ("async def solve(case): ...", "has no `async def solve("),
        ("solve = 3", "has no `async def solve("),
    ],
    ids=["no file", "syntax", "import", "exit", "no solve", "not async", "arguments", "a number"],
)
def test_what_cannot_be_loaded_is_one_line(
    body: str | None, problem: str, provider: FakeProvider, run: Run
) -> None:
    if body is not None:
        write(body)
    status, out, err = run("--method", "my_team.py")
    assert (status, out) == (2, "")
    assert err.startswith("error: --method my_team.py ")
    assert problem in err
    assert err.count("\n") == 1
    assert provider.calls == []
    assert not Path("output").exists()


@pytest.mark.parametrize("method", ["my_lab:", ":solve", "my lab:solve", "a:b:c", "my-lab.x:solve"])
def test_what_names_no_function_is_one_line(method: str, run: Run) -> None:
    status, _, err = run("--method", method)
    assert status == 2
    assert err == f"error: --method {method}: write package.module:function, or a file.py\n"


def test_a_mistyped_name_of_a_built_in_one(run: Run) -> None:
    status, _, err = run("--method", "cot-sc")
    assert status == 2
    assert "a file.py or package.module:solve; did you mean 'cot_sc'?" in err


def test_an_error_in_its_code_ends_the_run_and_keeps_what_was_done(run: Run) -> None:
    write(GOOD.replace("    physician =", """
    if question.id == "sample-008":
        return {}["missing"]
    physician ="""))  # fmt: skip
    status, _, err = run("--method", "my_team.py", "--max-samples", "1", "--num-samples", "30")
    assert status == 1
    (line,) = [line for line in err.splitlines() if line.startswith("stopped: ")]
    assert "the method my_team line 8: KeyError: 'missing' (question sample-" in line
    assert "Traceback" not in err
    done = records()
    assert 0 < len(done) < 30
    assert {record["status"] for record in done} == {"answered"}
    assert "KeyError" in manifest()["invocations"][-1]["reason"]


def test_of_several_errors_at_once_the_one_of_the_code_is_told(run: Run) -> None:
    write(GOOD.replace("    return Decision", """
    import asyncio
    async def fail():
        raise ValueError("two\\nlines")
    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        group.create_task(asyncio.sleep(60))
    return Decision"""))  # fmt: skip
    status, _, err = run("--method", "my_team.py", "--num-samples", "1")
    assert status == 1
    assert "ValueError: two lines (question" in err


@pytest.mark.parametrize(
    ("raising", "said"),
    [
        ("raise asyncio.CancelledError", "CancelledError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (
            "other = asyncio.create_task(asyncio.sleep(9)); other.cancel(); await other",
            "CancelledError",
        ),
    ],
)
def test_a_stray_cancellation_or_exit_ends_the_run_with_a_line(
    raising: str, said: str, run: Run
) -> None:
    write(GOOD.replace("    physician =", f"""
    import asyncio
    if question.id == "sample-002":
        {raising}
    physician ="""))  # fmt: skip
    status, _, err = run("--method", "my_team.py", "--num-samples", "3", "--max-samples", "1")
    assert status == 1
    (line,) = [line for line in err.splitlines() if line.startswith("stopped: ")]
    assert f"{said}" in line
    assert "(question sample-002)" in line
    assert len(records()) == 1


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("None", "returned NoneType, not a Decision"),
        ("reply.answer", "returned str, not a Decision"),
        ("Decision('A', None)", "returned a Decision whose analysis cannot be used"),
        ("Decision(['B'], '')", "returned a Decision whose letter cannot be used"),
        ("Decision('B', '\\ud800')", "returned a Decision whose text cannot be used"),
        (
            "Decision('A', '', opinions=('A', 'B'))",
            "returned a Decision whose opinions.0 cannot be used",
        ),
    ],
)
def test_something_else_than_a_decision_ends_the_run(returned: str, problem: str, run: Run) -> None:
    status, _, err = run("--method", returning(returned), "--num-samples", "1")
    assert status == 1
    assert f"the method my_team {problem}" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("letter", ["E", "", "a", "A) x", "AB"])
def test_a_letter_that_the_question_does_not_have_is_no_answer(letter: str, run: Run) -> None:
    run("--method", returning(f"Decision({letter!r}, 'because')"), "--num-samples", "2")
    for record in records():
        assert (record["status"], record["predicted"]) == ("parse_error", None)
        assert record["error"].startswith(f"the method my_team decided {letter!r}, which is none")
        assert record["calls"] == 1, "what it took is counted"


def test_errors_of_the_model_are_statuses(provider: FakeProvider, run: Run) -> None:
    write(GOOD)
    provider.fail_next("refusal", times=1)
    provider.fail_next("context_length", times=1)
    run("--method", "my_team.py", "--num-samples", "3", "--max-samples", "1")
    assert sorted(r["status"] for r in records()) == ["answered", "api_error", "refused"]


def test_another_source_is_another_run_and_what_did_not_change_is_not_paid_again(
    provider: FakeProvider, run: Run
) -> None:
    flags = ("--method", write(GOOD), "--num-samples", "2")
    run(*flags)
    assert len(provider.calls) == 2
    assert run(*flags)[2].count("already finished") == 1
    write(GOOD + "# another\n")
    run(*flags)
    assert len(provider.calls) == 2, "kept replies"
    runs = [json.loads(path.read_text()) for path in Path("output").glob("*/run.json")]
    assert len({one["name"] for one in runs}) == len({one["method_sha256"] for one in runs}) == 2
    assert all("_my_team_2samples_" in one["name"] for one in runs)


def test_resume_finds_it_again_and_no_folder_of_this_machine_is_written(
    provider: FakeProvider, run: Run, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere" / "my_team.py"
    outside.parent.mkdir()
    outside.write_text(GOOD)
    write(GOOD, "lab/my_team.py")
    run("--method", "lab/my_team.py", "--num-samples", "1")
    assert manifest()["options"]["method"] == "lab/my_team.py"
    assert run("--resume", manifest()["name"])[0] == 0
    run("--method", str(outside), "--num-samples", "1", "--output-dir", "other")
    (path,) = Path("other").glob("*/run.json")
    assert str(tmp_path) not in path.read_text()


def test_a_package_counts_with_all_its_sources(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "lab_of_test", raising=False)
    write("", "lab_of_test/__init__.py")
    write(GOOD.replace("async def solve", "async def quick"), "lab_of_test/teams.py")
    write("Choose.", "lab_of_test/prompt.txt")
    provider.latency = 0.1
    run("--method", "lab_of_test.teams:quick", "--num-samples", "1")
    assert depth(provider.calls) == 1
    assert "_teams.quick_1samples_" in manifest()["name"]
    before = load("lab_of_test.teams:quick").source_sha256
    write("Choose well.", "lab_of_test/prompt.txt")
    assert load("lab_of_test.teams:quick").source_sha256 != before


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules in the working directory can be imported, and are forgotten afterwards.

    Python keeps their bytecode, as it does unless somebody says PYTHONDONTWRITEBYTECODE.
    """
    known = set(sys.modules)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    yield
    for name in sys.modules.keys() - known:
        del sys.modules[name]


@pytest.mark.usefixtures("beside")
def test_another_source_of_an_imported_module_is_another_run(
    provider: FakeProvider, run: Run
) -> None:
    flags = ("--num-samples", "2", "--max-samples", "1")
    write("TASK = 'Your task: choose.'\n", "wording_of_test.py")
    uses = "import wording_of_test\n" + GOOD.replace('"Your task: choose."', "wording_of_test.TASK")
    run("--method", write(uses), *flags)
    first = manifest()
    assert list(first["method_modules"]) == ["wording_of_test"]
    assert "already finished" in run("--method", "my_team.py", *flags)[2]
    write("TASK = 'Choose well.'\n", "wording_of_test.py")
    status, _, err = run("--resume", first["name"])
    assert (status, err.count("differs from these settings in method_modules")) == (2, 1)
    run("--method", "my_team.py", *flags)
    assert len(list(Path("output").glob("*/run.json"))) == 2


@pytest.mark.usefixtures("beside")
def test_a_run_that_lists_no_modules_is_resumed_and_lists_them_from_then_on(
    provider: FakeProvider, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("", "wording_of_test.py")
    flags = ("--method", write("import wording_of_test\n" + GOOD), "--num-samples", "2")
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(own_method, "own_modules", lambda *_: {})
        run(*flags, "--token-limit", "1", "--max-samples", "1")
    earlier = manifest()
    assert (earlier["finished"], earlier["method_modules"]) == (False, {})
    assert run("--resume", earlier["name"], "--token-limit", "9999")[0] == 0
    assert list(manifest()["method_modules"]) == ["wording_of_test"]
    assert "already finished" in run(*flags)[2]
    write("# another\n", "wording_of_test.py")
    assert run("--resume", earlier["name"])[0] == 2
    run(*flags)
    assert len(list(Path("output").glob("*/run.json"))) == 2


@pytest.mark.usefixtures("beside")
def test_modules_are_followed_and_installed_ones_left_out() -> None:
    write(
        "import json\nimport pydantic\nfrom own_lab_of_test.words import TASK\n"
        "def late():\n    import late_of_test, missing_of_test\n" + GOOD
    )
    write("", "own_lab_of_test/__init__.py")
    write("from . import deeper\nTASK = ''\n", "own_lab_of_test/words.py")
    write("from .part import *\n", "own_lab_of_test/deeper/__init__.py")
    write("x = 1\n", "own_lab_of_test/deeper/part.py")
    write("this is not\0Python", "late_of_test.py")
    write("", "own_lab_of_test/not_imported.py")
    write("", "not_imported_of_test.py")
    names = [
        "late_of_test",
        "own_lab_of_test",
        "own_lab_of_test.deeper",
        "own_lab_of_test.deeper.part",
        "own_lab_of_test.words",
    ]
    before = load("my_team.py").modules
    assert list(before) == names
    assert load(str(Path("my_team.py").resolve())).modules == before
    write("x = 2\n", "own_lab_of_test/deeper/part.py")
    assert {name for name in names if load("my_team.py").modules[name] != before[name]} == {
        "own_lab_of_test.deeper.part"
    }


@pytest.mark.usefixtures("beside")
def test_a_package_counts_with_what_it_imports_from_elsewhere() -> None:
    write("", "wording_of_test.py")
    write("", "own_lab_of_test/__init__.py")
    write("", "own_lab_of_test/own.py")
    write("import wording_of_test\nfrom . import own\n" + GOOD, "own_lab_of_test/teams.py")
    assert list(load("own_lab_of_test.teams:solve").modules) == ["wording_of_test"]


@pytest.mark.usefixtures("beside")
def test_nothing_is_run_to_find_modules(recwarn: pytest.WarningsRecorder) -> None:
    write("raise SystemExit('a script')\n", "script_of_test.py")
    write("PATTERN = '\\d'\nimport my_team\nfrom script_of_test import main\n", "odd_of_test.py")
    use = "if __name__ == '__main__':\n    from odd_of_test import PATTERN\n"
    write("", "libs/lazy_of_test.py")
    Path("libs/lazy_of_test-1.0.dist-info").mkdir()
    sys.path.append("libs")
    loaded = load(write(f"{use}    import lazy_of_test\n{GOOD}"))
    assert list(loaded.modules) == ["odd_of_test", "script_of_test"], "neither itself nor installed"
    assert "script_of_test" not in sys.modules
    assert not recwarn.list


@pytest.mark.parametrize("name", ["zipped_of_test", "zipped_lab_of_test.teams"])
@pytest.mark.usefixtures("beside")
def test_a_method_in_an_archive_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile("lab.zip", "w") as archive:
        archive.writestr("zipped_of_test.py", GOOD)
        archive.writestr("zipped_lab_of_test/__init__.py", "")
        archive.writestr("zipped_lab_of_test/teams.py", GOOD)
    monkeypatch.syspath_prepend("lab.zip")
    with pytest.raises(ConfigError, match="has no source file to identify it by: unpack it"):
        load(f"{name}:solve")


def write_at_once(body: str, name: str) -> str:
    """Write a file with the same time as every other, as an archive or `cp -p` leaves it."""
    write(body, name)
    os.utime(name, (1_700_000_000, 1_700_000_000))
    return name


def cache_bytecode(name: str) -> None:
    """Leave the bytecode of a file beside it, as an import does."""
    py_compile.compile(name, doraise=True)


async def decided(loaded: own_method.OwnMethod) -> str | None:
    """Return the letter that a method decides that asks no model."""
    sample = Question("q-1", "Which?", {"A": "one", "B": "two"}, "A", {"A": "A", "B": "B"})
    decision: Decision = await loaded.solve(None, sample, None)
    return decision.letter


CHOOSING = """
from mdagents import Decision
async def solve(case, question, settings):
    return Decision("A", "fixed")
"""
"""A method that decides A."""


@pytest.mark.usefixtures("beside")
async def test_what_runs_is_the_source_that_was_hashed() -> None:
    method = write_at_once(CHOOSING, "my_team.py")
    first = load(method)
    assert inspect.getsource(first.solve) in CHOOSING
    cache_bytecode(method)
    other = CHOOSING.replace('"A"', '"B"')
    second = load(write_at_once(other, method))
    assert [await decided(first), await decided(second)] == ["A", "B"]
    digest = hashlib.sha256(hashlib.sha256(other.encode()).digest()).hexdigest()
    assert second.source_sha256 == digest != first.source_sha256
    assert 'Decision("B"' in inspect.getsource(second.solve)
    module = sys.modules[second.solve.__module__]
    assert pickle.loads(pickle.dumps(module.solve)) is module.solve


# pytest compiles files whose names end in _test.py itself.
LETTERS = {
    "words_beside.py": "from words_beside import LETTER\n",
    "lab_words_beside/__init__.py": "import lab_words_beside as words\nLETTER = words.LETTER\n",
    "lab_words_beside/deep.py": "from lab_words_beside.deep import LETTER\n",
}
"""File of an imported module -> statement of the method that imports it."""


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("name", LETTERS)
@pytest.mark.usefixtures("beside")
async def test_imported_modules_run_from_their_sources(name: str, *, is_late: bool) -> None:
    write("", "lab_words_beside/__init__.py")
    write_at_once("LETTER = 'A'\n", name)
    cache_bytecode(name)
    write_at_once("LETTER = 'B'\n", name)
    write(f"def letter():\n    {'; '.join(LETTERS[name].splitlines())}\n    return LETTER\n",
          "between_beside.py")  # fmt: skip
    body = CHOOSING.replace('"A"', "letter()")
    use = "from between_beside import letter\n"
    at_once = "" if is_late else "letter()\n"
    loaded = load(write(use + at_once + body))
    assert await decided(loaded) == "B"


@pytest.mark.usefixtures("beside")
async def test_a_module_beside_a_method_that_adds_its_folder_runs_from_its_source() -> None:
    write_at_once("LETTER = 'A'\n", "elsewhere/words_beside.py")
    cache_bytecode("elsewhere/words_beside.py")
    write_at_once("LETTER = 'B'\n", "elsewhere/words_beside.py")
    write("import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parent))\n"
          "import words_beside\n" + CHOOSING.replace('"A"', "words_beside.LETTER"),
          "elsewhere/my_team.py")  # fmt: skip
    assert await decided(load("elsewhere/my_team.py")) == "B"


@pytest.mark.parametrize("name", ["single_beside", "lab_beside.teams"])
@pytest.mark.usefixtures("beside")
async def test_a_method_in_a_module_runs_from_its_sources(name: str) -> None:
    write("", "lab_beside/__init__.py")
    file = name.replace(".", "/") + ".py"
    write_at_once(CHOOSING, file)
    cache_bytecode(file)
    write_at_once(CHOOSING.replace('"A"', '"B"'), file)
    assert await decided(load(f"{name}:solve")) == "B"


class AsksAllOthers(MetaPathFinder):
    """A finder that asks the others first, as tools that watch imports do."""

    def find_spec(self, *asked: Any) -> ModuleSpec | None:
        others = (finder.find_spec(*asked) for finder in sys.meta_path if finder is not self)
        return next(filter(None, others), None)


@pytest.mark.usefixtures("beside")
def test_two_finders_that_ask_each_other_find_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    write("", "words_beside.py")
    load(write(f"import words_beside\n{GOOD}"))
    del sys.modules["words_beside"]
    monkeypatch.setattr(sys, "meta_path", [AsksAllOthers(), *sys.meta_path])
    load(write(f"import words_beside\n{GOOD}"))
    assert "words_beside" in sys.modules


@pytest.mark.usefixtures("beside")
def test_installed_packages_and_other_loaders_are_left_alone() -> None:
    write("", "site-packages/kept_beside.py")
    with ZipFile("helpers.zip", "w") as archive:
        archive.writestr("zipped_words_beside.py", "")
    sys.path[:0] = [str(Path("site-packages").resolve()), str(Path("helpers.zip").resolve())]
    write("", "words_beside.py")
    load(write(f"import json, kept_beside, words_beside, zipped_words_beside\n{GOOD}"))
    assert type(sys.modules["kept_beside"].__loader__) is SourceFileLoader
    assert type(sys.modules["zipped_words_beside"].__loader__) is zipimporter
    assert list(Path("site-packages").rglob("*.pyc"))
    own = sys.modules["words_beside"]
    assert isinstance(own.__loader__, SourceFileLoader)
    assert importlib.reload(own) is own
    assert not list(Path("__pycache__").glob("words_beside.*"))


async def test_a_method_in_a_notebook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ModuleType("__main__")
    exec(CHOOSING, notebook.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    refusal = r"^the method in __main__ has no source file .* %%writefile my_team\.py\).*$"
    with pytest.raises(ConfigError, match=refusal):
        load("__main__:solve")
    with pytest.raises(ConfigError, match=refusal):
        await mdagents.answer("Which?", ["one", "two"], team="__main__:solve", model="gpt-4o-mini")
    notebook.__file__ = "<stdin>"
    with pytest.raises(ConfigError, match=refusal):
        load("__main__:solve")
    with pytest.raises(ConfigError, match="has no `async def missing"):
        load("__main__:missing")


async def test_its_file_as_a_path(provider: FakeProvider) -> None:
    write(GOOD, "lab/my_team.py")
    record = await mdagents.answer("Which?", ["one", "two"], team=Path("lab/my_team.py"))
    assert (record.status, record.opinions[0].role) == ("answered", "Physician")


def test_names() -> None:
    assert [name_of(m) for m in ("a/b.py", "x.y:solve", "x:go")] == ["b", "y", "x.go"]
    assert [m for m in ("cot", "a.py", "x.y:solve") if is_own(m)] == ["a.py", "x.y:solve"]


@pytest.mark.parametrize("flags", [{"skip": "basic"}, {"difficulty": "basic"}])
def test_it_has_no_levels(flags: dict[str, str]) -> None:
    write(GOOD)
    with pytest.raises(ConfigError, match="does not route its questions"):
        RunConfig(method="my_team.py", **flags)


def test_exaid_and_forecast_are_as_for_a_team(provider: FakeProvider, run: Run) -> None:
    flags = ("--method", write(GOOD), "--num-samples", "1", "--exaid", "turn_end")
    status, out, _ = run(*flags, "--dry-run")
    assert status == 0
    assert provider.calls == []
    assert "| my_team " in out
    run(*flags)
    (record,) = records()
    assert len(record["exaid"]["summaries"]) == 1
