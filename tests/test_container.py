"""The container: what goes into the image, and as whom it runs. It is built where a builder is."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.support.environment import bare_environment

pytestmark = pytest.mark.process

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
LINES = re.sub(r"\\\n", " ", DOCKERFILE).splitlines()
KEPT = [
    line.removeprefix("!")
    for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
    if line.startswith("!")
]


def steps(instruction: str) -> list[str]:
    return [line.partition(" ")[2].strip() for line in LINES if line.split(" ")[0] == instruction]


def test_nothing_goes_in_but_what_is_named() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    rules = [line for line in ignored if not line.startswith("#")]
    assert rules[0] == "*", "keys, results and history stay outside unless they are named"
    assert "**/.env" in rules
    assert [name for name in KEPT if not (REPOSITORY / name).exists()] == []


def test_what_is_copied_is_there() -> None:
    for step in steps("COPY"):
        *sources, _ = (word for word in step.split() if not word.startswith("--"))
        if "--from=" not in step:
            assert all(source == "." or source in KEPT for source in sources), step


def test_what_a_wheel_is_built_from_goes_in() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    needed = {"pyproject.toml", "requirements.txt", project["project"]["readme"]}
    needed |= set(project["project"]["license-files"])
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert needed == set(KEPT)


def test_it_runs_without_rights_and_without_a_shell() -> None:
    (user,) = steps("USER")
    assert user.isdecimal()
    assert int(user) >= 10_000
    (entry,) = steps("ENTRYPOINT")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert json.loads(entry)[0] in project["project"]["scripts"], "the program is process 1"


def test_a_documented_command_may_write_to_the_folder_that_it_mounts() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "container.md").read_text(encoding="utf-8")
    commands = re.findall(r"docker run [^`\n\\]+", page)
    mounts = [command for command in commands if "$PWD:/work" in command]
    assert len(mounts) >= 3
    assert [command for command in mounts if '--user "$(id -u):$(id -g)"' not in command] == []


def test_the_page_names_the_extras_that_the_image_holds() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"\[([\w,]+)\]", *project["optional-dependencies"]["all"])
    page = (REPOSITORY / "docs" / "how-to" / "container.md").read_text(encoding="utf-8")
    named = page.partition("with the extras ")[2].partition(", and the embedded model")[0]
    assert re.findall(r"`(\w+)`", named) == extras.split(",")


def test_its_python_is_the_one_that_the_project_is_checked_for() -> None:
    (python,) = (step for step in steps("ARG") if step.startswith("PYTHON="))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    version = re.match(r"PYTHON=(\d+)\.(\d+)-slim-", python)
    assert version is not None
    assert f"py{version[1]}{version[2]}" == project["tool"]["ruff"]["target-version"]


@pytest.mark.parametrize(("flags", "status"), [((), 1), (("--if-possible",), 0)])
def test_without_a_builder_one_line_says_so(
    flags: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    for tool in ("sed", "dirname", "sh"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    done = subprocess.run(
        ["/bin/sh", str(REPOSITORY / "scripts" / "build_container"), *flags],
        env={**bare_environment(), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout == "no image was built: neither docker nor podman works here\n"
