"""The wheel: what is in it, and that it works where nothing of the clone is."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import mdagents
from tests.conftest import CACHE_DIR, REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.own_files import own_files

pytestmark = pytest.mark.process

PACKAGES = ("exaid_core", "mdagents_llm", "mdagents")
"""What the wheel owns of the names that all packages of an environment share."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Without build isolation nothing is downloaded: hatchling is in requirements-dev.txt.
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(REPOSITORY)], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bin_dir(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the wheel, and other people's packages from this one."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder)
    libraries = sysconfig.get_path("purelib", vars={"base": str(folder)})
    # Only a folder for packages: the link from this environment to the clone is not followed.
    Path(libraries, "libraries.pth").write_text(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    return folder / "bin"


def call(bin_dir: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(bin_dir / command[0]), *command[1:]],
        env={"PATH": os.environ["PATH"], "HOME": str(Path.cwd()), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_all_files_of_the_packages_are_in_the_wheel(wheel: Path) -> None:
    own = own_files(*PACKAGES)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert [file for file in own if file not in names] == []
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    others = {name for name in names if ".dist-info/" not in name} - set(own)
    assert others == set(), "and nothing else"
    for ending in (
        "sample.jsonl",
        "sample_train.jsonl",
        "triage_vignettes/test.jsonl",
        ".txt",
        ".html",
        ".css",
        ".js",
        ".yaml",
    ):
        assert any(name.endswith(ending) for name in names), ending


@pytest.mark.parametrize("extra", ["", "demos", "ray"])
def test_the_tested_versions_are_within_the_ranges(extra: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    given = project["optional-dependencies"][extra] if extra else project["dependencies"]
    ranges = {r.name: r for r in map(Requirement, given)}
    lines = (REPOSITORY / f"requirements{'-' * bool(extra)}{extra}.txt").read_text().splitlines()
    stated = [line.partition("#")[0] for line in lines if not line.startswith(("#", "-r "))]
    tested = [Requirement(line) for line in stated]
    assert sorted(ranges) == sorted(requirement.name for requirement in tested)
    for requirement in tested:
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        wide = ranges[requirement.name]
        assert (wide.extras, wide.marker) == (requirement.extras, requirement.marker)
        assert wide.specifier.contains(pin.version), requirement


def test_it_says_what_it_is(wheel: Path, bin_dir: Path) -> None:
    assert call(bin_dir, "mdagents", "--version").stdout == f"mdagents {mdagents.__version__}\n"
    assert wheel.name.startswith(f"mdagents_bench-{mdagents.__version__}-")
    where = call(bin_dir, "python", "-c", "import mdagents; print(mdagents.__file__)").stdout
    assert where.startswith(str(bin_dir.parent))


def test_a_run_from_another_folder(bin_dir: Path, provider: FakeProvider) -> None:
    endpoint = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.openai_base_url}
    done = call(bin_dir, "mdagents", "run", "--num-samples", "2", **endpoint)
    array = next(Path("output").glob("*_medqa-sample_adaptive_2samples.json"))
    assert [record["status"] for record in json.loads(array.read_text())] == ["answered"] * 2
    assert f"CSV:     mdagents score --input {array}" in done.stdout
    manifest = json.loads((array.with_suffix("") / "run.json").read_text())
    assert manifest["version"] == mdagents.__version__
    assert manifest["git_revision"] is None, "whatever repository the environment is in"
    assert manifest["dataset_path"] == "sample.jsonl"
    assert "written: " in call(bin_dir, "mdagents", "score", "--html").stdout
    assert call(bin_dir, "mdagents", "export", str(array)).stdout.strip().endswith(".json")
    call(bin_dir, "mdagents", "data", "check", "medqa", "--warn-only")
    call(bin_dir, "mdagents", "data", "extract", "sample-001", "--output", "one.jsonl")


def test_it_stands_beside_others_of_the_same_names(wheel: Path, tmp_path: Path) -> None:
    """The evals of OpenAI, which comes later and goes again, and a user's own infra and demos."""
    venv.create(tmp_path / "venv")
    libraries = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))
    Path(libraries, "libraries.pth").write_text(sysconfig.get_path("purelib"))
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python]
    install = [*pip, "install", "--no-deps", "--no-index"]
    names = ["evals/__init__.py", "evals/metrics.py", "infra/__init__.py", "demos/__init__.py"]
    subprocess.run([*install, str(wheel)], check=True)
    subprocess.run([*install, str(_wheel_of("evals", tmp_path, names))], check=True)
    assert [(libraries / name).read_text() for name in names] == ["mine = True\n"] * 4
    for package in ("infra", "demos", "evals"):
        Path(package).mkdir()
        Path(package, "__init__.py").write_text("mine = True\n")
    everything = (
        "import mdagents, infra, demos, evals; mdagents.run, mdagents.load; assert infra.mine"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd())}
    for program in (["-c", everything], ["-m", "mdagents", "run", "--help"]):
        subprocess.run([python, *program], check=True, capture_output=True, env=environment)
    subprocess.run([*pip, "uninstall", "--yes", "evals"], check=True)
    gone = [file for file in own_files(*PACKAGES) if not (libraries / file).exists()]
    assert gone == []


def _wheel_of(name: str, folder: Path, files: list[str]) -> Path:
    """Make the wheel of a distribution, each of whose modules says `mine = True`."""
    wheel = folder / f"{name}-3.0.1-py3-none-any.whl"
    info = f"{name}-3.0.1.dist-info"
    stated = {
        **dict.fromkeys(files, "mine = True\n"),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.0.1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in (*stated, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in {**stated, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return wheel


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rnu --model x", "there is no 'mdagents rnu'; there are run, study, view, score, "),
        ("rnu", "; did you mean 'run'?"),
        ("data downlaod medqa", "; did you mean 'data download'?"),
        ("download medqa", "; did you mean 'data download'?"),
        ("--vresion", "; did you mean '--version'?"),
        ("data download medqq", "; did you mean 'medqa'?"),
        ("data download medqa --splt", "there is no flag --splt; did you mean '--split'?"),
        ("data extract sample-01", "; did you mean 'sample-001'?"),
        ("score --ouput x", "there is no flag --ouput; did you mean '--output'?"),
    ],
)
def test_a_mistyped_word_is_one_line(words: str, message: str) -> None:
    command = [sys.executable, "-m", "mdagents", *words.split()]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.embedded
def test_the_embedded_model_from_another_folder(bin_dir: Path) -> None:
    cache = {"MDAGENTS_CACHE_DIR": str(CACHE_DIR)}
    arguments = ("--model", "local", "--num-samples", "1", "--method", "zero_shot")
    done = call(bin_dir, "mdagents", "run", *arguments, **cache)
    assert "sample-001" in done.stderr


PROGRAMS = [
    ["main.py"],
    ["study.py"],
    ["view.py"],
    ["evaluate_text_output.py"],
    ["split_test_data.py"],
    ["extract_by_question_id.py"],
    ["-m", "mdagents", "data", "check"],
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[-1])
def test_the_programs_of_a_clone_need_no_installation(program: list[str], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    libraries = sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")})
    Path(libraries, "libraries.pth").write_text(sysconfig.get_path("purelib"))
    python = str(tmp_path / "venv" / "bin" / "python")
    missing = subprocess.run([python, "-c", "import mdagents"], capture_output=True)
    assert missing.returncode == 1, "nothing of this project is installed there"
    done = subprocess.run(
        [python, *program, "--help"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


_OLD_PYTHON = """
import runpy, sys
sys.version_info = (3, 10, 13, "final", 0)
del sys.argv[0]
runpy.run_module(sys.argv[1], run_name="__main__") if sys.argv[0] == "-m" else runpy.run_path(
    sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    "program",
    [*PROGRAMS, ["-m", "evals.cli.replay"], ["-m", "mdagents_llm.local_model.weights"]],
    ids=str,
)
def test_an_older_python_is_told_so_in_one_line(program: list[str]) -> None:
    python = [sys.executable, "-c", _OLD_PYTHON]
    done = subprocess.run([*python, *program], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stderr == "error: Python 3.11 or newer is needed, this is 3.10.13\n"
    assert done.returncode == 2


def test_an_older_python_can_read_as_far_as_that_line() -> None:
    scripts = [Path(program[0]) for program in PROGRAMS if program[0] != "-m"]
    packages = [Path(name, "__init__.py") for name in (*PACKAGES, "evals", "demos")]
    for file in [*scripts, *packages]:
        source = (REPOSITORY / file).read_text(encoding="utf-8")
        tree = ast.parse(source, str(file), feature_version=(3, 6))
        assert not any(
            isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body
        )
