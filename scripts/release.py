#!/usr/bin/env python3
"""Build wheel and sdist into dist/ and test each in a clean environment.

The version is the one in the code; the tag, the changelog and CITATION.cff must match it. In each
environment, the embedded model answers a question, which is then scored. Requires only the standard
library, pip and make.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ReleaseError(Exception):
    """Raised when a requirement of a release is missing or inconsistent."""


def main(argv: Sequence[str] | None = None) -> int:
    """Check, build and test the distributions; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tag", help="the tag of the release, as v0.3.0")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder [%(default)s]")
    options = parser.parse_args(argv)
    try:
        version = stated_version()
        if options.tag not in (None, f"v{version}"):
            raise ReleaseError(f"the tag is {options.tag}, but the code is version {version}")
        notes = notes_of(version)
        folder = options.output.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for file in build(folder):
            say(f"{file.name}: {try_out(file, version)}")
        (folder / "notes.md").write_text(notes, encoding="utf-8")
    except (ReleaseError, OSError) as error:
        say(f"error: {error}")
        return 1
    except subprocess.CalledProcessError as error:
        say(f"error: {error.cmd[1:5]} ended with {error.returncode}:\n{error.stderr}")
        return 1
    return 0


def stated_version() -> str:
    """Return the version of the code.

    Raises:
        ReleaseError: CITATION.cff has a different version.
    """
    code = (ROOT / "mdagents" / "__init__.py").read_text(encoding="utf-8")
    version = code.partition('\n__version__ = "')[2].partition('"')[0]
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if cited != [version]:
        raise ReleaseError(f"CITATION.cff has version {cited}, but the code is version {version}")
    return version


def notes_of(version: str) -> str:
    """Return the release notes of a version from CHANGELOG.md.

    Raises:
        ReleaseError: The changelog does not begin with a dated section for the version.
    """
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (.+)\n(?s:(.+?))(?=^## |\Z)", changelog, re.MULTILINE)
    if not newest or not re.fullmatch(rf"{re.escape(version)} – \d{{4}}-\d\d-\d\d", newest[1]):
        raise ReleaseError(f"CHANGELOG.md does not begin with a dated section for {version}")
    return newest[2].strip() + "\n"


def build(folder: Path) -> list[Path]:
    """Build wheel and sdist and return their paths."""
    with tempfile.TemporaryDirectory() as place:
        python = environment(Path(place))
        run(python, "-m", "pip", "install", "build")
        run(python, "-m", "build", "--outdir", str(folder), str(ROOT))
    version = stated_version()
    return [
        folder / f"mdagents_bench-{version}-py3-none-any.whl",
        folder / f"mdagents_bench-{version}.tar.gz",
    ]


def try_out(file: Path, version: str) -> str:
    """Install a distribution into a clean environment, and answer and score a question with it.

    Returns:
        A short description of the checks made.

    Raises:
        ReleaseError: The distribution has a different version.
    """
    with tempfile.TemporaryDirectory() as place:
        python = environment(Path(place, "venv"))
        run(python, "-m", "pip", "install", f"{file}[local]")
        said = run(python, "-m", "mdagents", "--version", where=place)
        if said != f"mdagents {version}":
            raise ReleaseError(f"{file.name} says that it is {said}")
        question = ("--num-samples", "1", "--difficulty", "basic", "--display", "none")
        run(python, "-m", "mdagents", "run", "--model", "local", *question, where=place)
        run(python, "-m", "mdagents", "score", where=place)
    return "installed, a question answered and scored"


def environment(folder: Path) -> str:
    """Create a virtual environment and return the path of its Python."""
    venv.create(folder, with_pip=True)
    return str(folder / "bin" / "python")


def run(*command: str, where: str | None = None) -> str:
    """Run a command outside the clone and return its output.

    Raises:
        CalledProcessError: The command failed.
    """
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            command, cwd=where or elsewhere, check=True, capture_output=True, text=True
        )
    return done.stdout.strip()


def say(line: str) -> None:
    """Print a line on stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
