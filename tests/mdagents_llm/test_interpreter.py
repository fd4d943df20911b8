"""The programs of a clone, called by a Python that lacks the packages, or is too old."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import REPOSITORY

PACKAGES = ("benchmarks", "demos", "evals", "exaid_core", "mdagents_llm", "mdagents", "scripts")
BARE = str(Path(sys.base_prefix) / "bin" / "python{}.{}".format(*sys.version_info))
PROGRAMS = {
    "main.py --help": "make run",
    "evaluate_text_output.py --help": "make run",
    "split_test_data.py --help": "make run",
    "extract_by_question_id.py --help": "make run",
    "study.py --help": "make run",
    "view.py --help": "make run",
    "-X utf8 -m mdagents data check --help": "make run",
    "-m mdagents score --help": "make run",
    "-m evals.cli.replay --help": "make run",
    "-mmdagents_llm.local_model.weights --help": "make run",
    "-m demos.medagen.server --help": "make demo",
    "-W ignore -m benchmarks.startup --help": "python3 scripts/set_up.py --dev",
    "scripts/first_run.py --help": "make run",
    "scripts/build_terminology.py --help": "make run",
}
"""Command line of a program -> what sets up the packages that it needs."""
SHOWS_ITSELF = """
import os
import sys
import mdagents_llm.config
print(os.getpid(), sys.executable, sys.argv[1:])
sys.exit(7)
"""


WITHOUT_PACKAGES = """
import sys
if sys.prefix == sys.base_prefix:
    sys.path[:] = [folder for folder in sys.path if "-packages" not in folder]
"""
"""What makes the Python that this environment was made by one without packages."""

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        os.name != "posix" or not Path(BARE).exists(),
        reason="no process becomes another on Windows",
    ),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the programs, not yet set up."""
    folder = tmp_path / "a clone"
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / package, folder / package, ignore=ignored)
    for pattern in ("*.py", "*.toml", "uv.lock"):
        for file in REPOSITORY.glob(pattern):
            shutil.copy(file, folder)
    return folder


def environment(folder: Path, *, packages: bool = True) -> Path:
    """The Python of a new environment, with the packages of this one or without any."""
    venv.create(folder, symlinks=True)
    if packages:
        libraries = sysconfig.get_path("purelib", vars={"base": str(folder)})
        Path(libraries, "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


def variables(clone: Path, site: str = WITHOUT_PACKAGES) -> dict[str, str]:
    """An environment in which each Python begins with these lines."""
    folder = clone.parent / "site"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(site)
    return {"PATH": os.defpath, "HOME": str(clone.parent), "PYTHONPATH": str(folder)}


def call(
    clone: Path, command: str, *, python: str | Path = BARE, site: str = WITHOUT_PACKAGES
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), *command.split()],
        cwd=clone,
        env=variables(clone, site),
        capture_output=True,
        text=True,
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.strip()


def test_without_a_set_up_a_line_says_what_to_type(clone: Path) -> None:
    for command, set_up in PROGRAMS.items():
        line = one_line(call(clone, command))
        assert line.startswith(f"error: {BARE} has no '"), command
        assert f"; type {set_up}, which makes an environment " in line, command


def test_after_a_set_up_every_program_goes_on_with_its_python(clone: Path) -> None:
    environment(clone / ".venv")
    for command in PROGRAMS:
        done = call(clone, command)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.startswith("usage: "), command


def test_a_package_that_is_missed_late_leads_to_the_environment(clone: Path) -> None:
    """A Python with some packages of its own, as many users have."""
    python = environment(clone / ".venv")
    Image.new("RGB", (20, 20)).save(clone / "xray.png")
    (clone / "ward.csv").write_text("id,question,A,B,answer,images\nq,Which?,a,b,A,xray.png\n")
    some = f"""
import sys
if sys.prefix == sys.base_prefix:
    sys.path.append({sysconfig.get_path("purelib")!r})
    sys.modules["PIL"] = None
"""
    line = one_line(call(clone, "-m mdagents data check ward.csv", site=some))
    command = shlex.join([str(python), "-m", "mdagents", "data", "check", "ward.csv"])
    assert line.endswith(f" needs PIL: {command}")


def test_it_is_the_same_process_with_the_same_arguments_and_exit_status(clone: Path) -> None:
    python = environment(clone / ".venv")
    (clone / "main.py").write_text(SHOWS_ITSELF)
    command = [BARE, "-X", "utf8", "main.py", "two words", "--flag", ""]
    # A home for the library of this Python would be a wrong one for the other.
    for more in ({}, {"PYTHONHOME": sys.base_prefix}):
        env = variables(clone) | more
        with subprocess.Popen(
            command, cwd=clone, env=env, stdout=subprocess.PIPE, text=True
        ) as process:
            out, _ = process.communicate()
        assert out == f"{process.pid} {python} ['two words', '--flag', '']\n"
        assert process.returncode == 7


def test_an_environment_that_the_user_chose_is_not_left(clone: Path, tmp_path: Path) -> None:
    own = environment(tmp_path / "own", packages=False)
    line = one_line(call(clone, "main.py --help", python=own))
    install = f"{own} -m pip install '{clone}[all]'"
    assert line.endswith(f"; type {install}")
    line = one_line(call(clone, "-m demos.medagen.server", python=own))
    python = clone / ".venv" / "bin" / "python"
    assert line.endswith(f"; type make demo, then '{python}' -m demos.medagen.server")
    python = environment(clone / ".venv")
    line = one_line(call(clone, "main.py --limit 5", python=own))
    assert line.endswith(f"; type {install}, or '{python}' main.py --limit 5")
    with_packages = environment(tmp_path / "other")
    (clone / "main.py").write_text(SHOWS_ITSELF)
    assert str(with_packages) in call(clone, "main.py", python=with_packages).stdout


def test_a_set_up_that_did_not_end_is_completed_first(clone: Path) -> None:
    python = environment(clone / ".venv", packages=False)
    for called in (BARE, python):
        for command, set_up in PROGRAMS.items():
            line = one_line(call(clone, command, python=called))
            assert line.startswith("error: .venv has no '"), command
            assert line.endswith(f"; type {set_up}, then the same command"), command


def test_a_mistake_in_the_program_is_not_hidden(clone: Path) -> None:
    environment(clone / ".venv")
    (clone / ".venv" / "dev.done").write_text("now")
    broken = clone / "mdagents" / "data_tools" / "check.py"
    source = broken.read_text()
    for module, error in {
        "pandsa": "ModuleNotFoundError: No module named 'pandsa'",
        "mdagents.no_such": "ModuleNotFoundError: No module named 'mdagents.no_such'",
        "tomlib": "ModuleNotFoundError: No module named 'tomlib'",
    }.items():
        broken.write_text(source.replace("import argparse", f"import argparse, {module}", 1))
        done = call(clone, "-m mdagents data check --help")
        assert done.returncode == 1
        assert done.stderr.startswith("Traceback ")
        assert done.stderr.splitlines()[-1].startswith(error)


def test_a_script_of_the_users_is_left_alone(clone: Path) -> None:
    environment(clone / ".venv")
    for name in ("my_study.py", "demos/medagen/main.py"):
        script = f"import sys; sys.path.insert(0, {str(clone)!r})\nimport mdagents_llm.config\n"
        (clone / name).write_text(script)
        done = call(clone, name)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'dotenv'"
    (clone / "my_study.py").write_text("import mdagents, json, no_such")
    assert call(clone, "my_study.py").stderr.endswith("No module named 'no_such'\n")


def test_a_library_leaves_the_hook_of_its_caller_alone(clone: Path) -> None:
    code = "import sys, mdagents, demos; print(sys.excepthook is sys.__excepthook__)"
    done = subprocess.run([BARE, "-c", code], cwd=clone, capture_output=True, text=True)
    assert done.stdout == "True\n"


def test_an_older_python_hands_over_too_and_never_to_itself(clone: Path) -> None:
    environment(clone / ".venv")
    needed = "error: Python 3.11 or newer is needed, this is 3.10.13\n"
    for condition, status, said in (
        ("sys.prefix == sys.base_prefix", 0, ""),
        ("True", 2, needed),
    ):
        old = f"import sys\nif {condition}: sys.version_info = (3, 10, 13, 'final', 0)\n"
        done = call(clone, "main.py --version", site=old)
        assert (done.returncode, done.stderr) == (status, said)
