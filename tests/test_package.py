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
from email import message_from_string
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

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
    # Without build isolation nothing is downloaded: hatchling is in the group dev.
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


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the wheel and what it needs without an extra."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder)
    libraries = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for name in needed_without_extras(wheel):
        distribution = Distribution.from_name(name)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            if not (libraries / top).exists() and top != "__pycache__":
                (libraries / top).symlink_to(str(distribution.locate_file(top)))
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    return folder / "bin"


def needed_without_extras(wheel: Path) -> set[str]:
    """Return the distributions that pip would install with the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    left = [(r, "") for r in message_from_string(text).get_all("Requires-Dist", [])]
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while left:
        line, extra = left.pop()
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        found.add(requirement.name)
        requires = Distribution.from_name(requirement.name).requires or ()
        new = {(line, extra) for line in requires for extra in ("", *requirement.extras)}
        left += [one for one in new if one not in seen]
        seen.update(new)
    return found


def call(
    bin_dir: Path, *command: str, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(bin_dir / command[0]), *command[1:]],
        env={"PATH": os.environ["PATH"], "HOME": str(Path.cwd()), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
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
        "vqa_sample/test.jsonl",
        "vqa_sample/SOURCE.txt",
        "vqa_sample/images/05.dcm",
        ".txt",
        ".html",
        ".css",
        ".js",
        ".yaml",
    ):
        assert any(name.endswith(ending) for name in names), ending


def test_the_lock_and_the_requirements_are_those_of_the_ranges() -> None:
    done = subprocess.run([REPOSITORY / "scripts" / "lock", "--check"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_says_what_it_is(wheel: Path, bin_dir: Path) -> None:
    assert call(bin_dir, "mdagents", "--version").stdout == f"mdagents {mdagents.__version__}\n"
    assert wheel.name.startswith(f"mdagents_bench-{mdagents.__version__}-")
    where = call(bin_dir, "python", "-c", "import mdagents; print(mdagents.__file__)").stdout
    assert where.startswith(str(bin_dir.parent))


def test_a_run_from_another_folder(bin_dir: Path, provider: FakeProvider) -> None:
    endpoint: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.openai_base_url}
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


def test_a_run_its_continuation_and_its_scores_need_no_extra(
    core: Path, provider: FakeProvider
) -> None:
    endpoint: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.openai_base_url}
    command = ["mdagents", "run", "--model", "gpt-4o-mini", "--difficulty", "adaptive"]
    call(
        core,
        *command,
        "--num-samples",
        "4",
        "--max-samples",
        "1",
        "--token-limit",
        "60000",
        status=1,
        **endpoint,
    )
    (array,) = Path("output").glob("*_4samples.json")
    before = json.loads(array.read_text())
    assert 0 < sum(record["status"] == "answered" for record in before) < 4
    call(core, "mdagents", "run", "--resume", "--token-limit", "10000000", **endpoint)
    after = json.loads(array.read_text())
    assert [record["status"] for record in after] == ["answered"] * 4
    assert "written: " in call(core, "mdagents", "score").stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("mdagents score --html --input samples.json", "report"),
        ("mdagents view output", "view"),
        ("mdagents serve --port 0", "serve"),
        ("mdagents mcp", "mcp"),
        ("mdagents run --view --num-samples 1", "view"),
        ("mdagents run --model local --num-samples 1", "local"),
        ("mdagents run --ray-address auto --num-samples 1", "ray"),
        ("mdagents study study.yaml", "report"),
        ("mdagents export output/run", "inspect"),
        ("mdagents data download medqa", "data"),
    ],
)
def test_a_part_behind_an_extra_names_it_in_one_line(
    core: Path, command: str, extra: str, provider: FakeProvider
) -> None:
    Path("output/run").mkdir(parents=True)
    Path("study.yaml").write_text("datasets: [medqa]\nmodels: [gpt-4o-mini]\nmethods: [cot]\n")
    endpoint: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.openai_base_url}
    said = call(core, *command.split(), status=2, **endpoint).stderr
    assert said.splitlines()[-1].startswith("error: ")
    assert said.endswith(f"/python -m pip install 'mdagents-bench[{extra}]'\n")
    assert provider.calls == []


_IMPORTS_THE_CORE = """
import pkgutil, sys
from importlib import import_module
for package in ("exaid_core", "mdagents", "mdagents_llm"):
    for module in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        if not module.name.startswith(tuple(sys.argv[1:])):
            import_module(module.name)
"""


def test_the_core_imports_nothing_that_an_extra_brings(core: Path) -> None:
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]
    (doors,) = (
        c for c in contracts["contracts"] if c["name"].startswith("A package behind an extra")
    )
    rooms = [*doors["forbidden_modules"], "mdagents.__main__", "mdagents_llm.local_model.child"]
    call(core, "python", "-c", _IMPORTS_THE_CORE, *rooms)


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
        ("rnu --model x", "there is no 'mdagents rnu'; there are run, study, serve, mcp, view, "),
        ("rnu", "; did you mean 'run'?"),
        ("data downlaod medqa", "; did you mean 'data download'?"),
        ("download medqa", "; did you mean 'data download'?"),
        ("--vresion", "; did you mean '--version'?"),
        ("data download medqq", "; did you mean 'medqa'?"),
        ("data download medqa --splt", "there is no flag --splt; did you mean '--split'?"),
        ("data extract sample-01", "; did you mean 'sample-001'?"),
        ("data check", "(see python -m mdagents data check --help)"),
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
    cache: dict[str, Any] = {"MDAGENTS_CACHE_DIR": str(CACHE_DIR)}
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
