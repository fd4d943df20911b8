"""What users keep in a clone, and whether packages are compiled, is nothing to checks and tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

from mdagents_llm.interpreter import SCRIPTS
from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment
from tests.support.own_files import own_files

pytestmark = pytest.mark.process

SETTINGS = REPOSITORY / "pyproject.toml"
FOLDERS = (
    "benchmarks",
    "demos",
    "evals",
    "exaid_core",
    "integrations",
    "mdagents_llm",
    "mdagents",
    "scripts",
    "tests",
)
OF_A_USER = {
    "two_opinions.py": "def solve(): return 1/0",
    "agents team.py": "not python",
    "test_mine.py": "raise SystemExit",
    "notes.ipynb": "{}",
    "run.yaml": "num-samples: 20",
    "my_lab/infra/chat.py": "import *",
    "my_lab/tests/test_chat.py": "raise SystemExit",
    "output/tool.py": "(",
    "venv/lib/python3/site-packages/tests/test_numbers.py": "raise SystemExit",
}


@pytest.fixture
def clone() -> Path:
    """A folder with the settings of this one, some files of ours, and files of a user."""
    ours = {
        "main.py": "1\n",
        "mdagents_llm/new.py": "1\n",
        "tests/test_new.py": "def test(): pass\n",
    }
    for name, text in {**OF_A_USER, **ours}.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    shutil.copy(SETTINGS, "pyproject.toml")
    return Path.cwd()


def called(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], env=bare_environment(), capture_output=True, text=True
    )


def linted(folder: Path) -> set[str]:
    shown = called("-m", "ruff", "check", "--show-files", "--no-cache", str(folder))
    assert shown.returncode == 0, shown.stderr
    return {str(Path(line).relative_to(folder)) for line in shown.stdout.splitlines()}


def test_checks_look_at_files_of_ours_alone(clone: Path) -> None:
    ours = {"main.py", "mdagents_llm/new.py", "tests/test_new.py", "pyproject.toml"}
    assert linted(clone) == ours
    formatted = called("-m", "ruff", "format", "--check", "--no-cache", ".")
    assert "1 file would be reformatted, 2 files already formatted" in formatted.stdout
    collected = called("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    assert collected.stdout.startswith("tests/test_new.py::test\n"), collected.stdout


def test_checks_look_at_every_file_of_ours() -> None:
    names = [name for name in own_files(*FOLDERS, *SCRIPTS) if name.endswith(".py")]
    tracked = {name for name in own_files(".", tracked=True) if name.endswith(".py")}
    known = linted(REPOSITORY)
    assert [name for name in names if name not in known] == []
    if (REPOSITORY / ".git").exists():
        assert sorted(tracked - known) == [], "name it in pyproject.toml, for ruff and for mypy"
    # Without a path, so that it checks these.
    assert "mypy" in (REPOSITORY / "scripts" / "check").read_text().splitlines()
    files = tomllib.loads(SETTINGS.read_text())["tool"]["mypy"]["files"]
    assert sorted(files) == sorted([*FOLDERS, *SCRIPTS])


def test_no_file_of_ours_makes_the_compiler_warn() -> None:
    for name in own_files(*FOLDERS, *SCRIPTS):
        if name.endswith(".py"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                compile((REPOSITORY / name).read_bytes(), name, "exec", dont_inherit=True)


COMPILED_WITH_A_WARNING = 'PATTERN = "\\/"\n'
WARNS = "import warnings\nwarnings.warn('old', DeprecationWarning)\n"
WARNS_ITS_CALLER = "import warnings\nwarnings.warn('old', UserWarning, stacklevel=2)\n"


@pytest.mark.parametrize(
    ("folder", "source", "status"),
    [
        ("lib/python3/site-packages", COMPILED_WITH_A_WARNING, 0),
        ("lib/python3/dist-packages/package", COMPILED_WITH_A_WARNING, 0),
        ("of_ours", COMPILED_WITH_A_WARNING, 2),
        ("lib/python3/site-packages", WARNS, 2),
        ("lib/python3/site-packages", WARNS_ITS_CALLER, 2),
        ("of_ours", WARNS, 2),
    ],
)
def test_what_a_package_is_compiled_with_is_no_error_of_ours(
    folder: str, source: str, status: int, tmp_path: Path
) -> None:
    module = tmp_path / folder / "module_that_warns.py"
    module.parent.mkdir(parents=True)
    module.write_text(source)
    test = tmp_path / "test_it.py"
    test.write_text("import module_that_warns\n\n\ndef test(): assert module_that_warns\n")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-c", str(SETTINGS), str(test)],
        env=bare_environment(PYTHONPATH=str(module.parent)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout


def test_a_run_with_gemini_shows_no_warning_of_the_compiler(provider: FakeProvider) -> None:
    kinds = ("DeprecationWarning", "SyntaxWarning")
    flags = [word for kind in kinds for word in ("-W", f"error:invalid escape sequence:{kind}")]
    done = subprocess.run(
        [
            *(sys.executable, *flags, "-X", f"pycache_prefix={Path.cwd()}"),
            *(str(REPOSITORY / "main.py"), "--model", "gemini-2.5-flash-lite", "--exaid", "off"),
            *("--method", "zero_shot", "--num-samples", "1", "--display", "none"),
        ],
        env=bare_environment(GEMINI_API_KEY="k", GOOGLE_GEMINI_BASE_URL=provider.gemini_base_url),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "escape sequence" not in done.stderr
