#!/usr/bin/env python3
"""Follow a new user's path in two clean clones, printing each command with its exit status.

The first clone is set up for a run, then for tests; the second in the opposite order. The commands
are read from README.md and docs/tutorials/own-method.md. Calls that need a key go to the fake
provider; everything else is as for a user whose Python has no packages. Requires only the
standard library.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "mdagents-bench"
CACHE = Path("output", ".cache")
"""Folder of the models' replies in a clone."""
README, OWN_METHOD = "README.md", "docs/tutorials/own-method.md"
SOME_TESTS = (
    "-q --ignore-glob='tests/[!d]*/*' --ignore-glob='tests/demos/*' "
    "-k 'test_set_up or test_docs and help'"
)
"""Arguments of pytest for a few tests; to collect all files would take as long as all else."""
INSTEAD = {
    "git clone URL-OF-THIS-REPOSITORY": f"git clone --quiet '{ROOT}'",
    "make test": f'make test TESTS="{SOME_TESTS}"',  # the full test suite takes minutes
    "data download medqa": "data download medqa --from ../../medqa.jsonl",  # avoids network access
}
"""Replacements for text in the commands of a page, by the text replaced."""
LEFT_LYING = {
    "my_notes.ipynb": "{}",
    "test_mine.py": "raise SystemExit('a test of the user')\n",
    "my_lab/infra/chat.py": "not python\n",
    "study.yaml": "methods: [zero_shot]\n",
}
"""Content by file name of files that users leave in a clone, which no check may read."""
KEYS = ("_API_KEY", "_BASE_URL", "_ENDPOINT")
SHOWN = 60  # output lines shown for a failed command


class JourneyError(Exception):
    """Raised when a command does not do what its page says."""


class Journey:
    """Runs commands as a user would type them.

    Args:
        folder: Parent folder of the clones.
        python: Path of the user's Python, which lacks the packages.
    """

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.replies = folder / "first" / NAME / CACHE
        """Replies of the first clone, which took minutes to make."""
        self.typed: set[str] = set()
        """Keys of `INSTEAD` that occurred in a command."""
        programs = folder / "programs"
        programs.mkdir()
        for name in ("python", "python3"):
            (programs / name).write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
            (programs / name).chmod(0o755)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MDAGENTS_", "VIRTUAL_ENV")) and not name.endswith(KEYS)
        }
        path = [place for place in kept["PATH"].split(os.pathsep) if not _is_environment(place)]
        self.variables = {
            **kept,
            "PATH": os.pathsep.join([str(programs), *path]),
            "PYTHON": str(programs / "python3"),
            # Shared caches: packages are fetched once and only changed files are type-checked.
            "UV_CACHE_DIR": kept.get("UV_CACHE_DIR") or str(folder / "uv-cache"),
            "MYPY_CACHE_DIR": str(folder / "mypy-cache"),
        }

    def type(self, line: str, where: Path, **variables: str) -> str:
        """Run a command line and return its output.

        Raises:
            JourneyError: The exit status is not 0, or the output has a traceback or SyntaxWarning.
        """
        for page, here in INSTEAD.items():
            if page in line:
                line = line.replace(page, here)
                self.typed.add(page)
        print(f"{where.name}$ {line}", flush=True)
        start = time.monotonic()
        done = subprocess.run(
            line,
            shell=True,
            cwd=where,
            env={**self.variables, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        seconds = time.monotonic() - start
        print(f"    exit status {done.returncode}, {seconds:.1f} s", flush=True)
        wrong = re.search(r"^Traceback .*|.*SyntaxWarning.*", done.stdout, re.MULTILINE)
        if done.returncode or wrong:
            print("\n".join(done.stdout.splitlines()[-SHOWN:]))
            raise JourneyError(f"'{line}' {f'printed {wrong[0]!r}' if wrong else 'failed'}")
        return done.stdout


def main() -> int:
    """Run all commands; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--keep-replies",
        action="store_true",
        help="leave the embedded model's replies here, for the slow tests to read",
    )
    options = parser.parse_args()
    start = time.monotonic()
    python = _python()
    with tempfile.TemporaryDirectory(prefix="journey-") as name:
        journey = Journey(Path(name), python)
        try:
            _go(journey)
            if options.keep_replies:
                shutil.copytree(journey.replies, ROOT / CACHE, dirs_exist_ok=True)
        except JourneyError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(f"the whole way: {time.monotonic() - start:.0f} s")
    return 0


def _go(journey: Journey) -> None:
    for line in ("git log -1 --format='%h %s'", "git status --short"):
        print(subprocess.check_output(line, shell=True, cwd=ROOT, text=True).rstrip())
    if (ROOT / ".mypy_cache").exists():
        shutil.copytree(ROOT / ".mypy_cache", journey.folder / "mypy-cache")
    _write_medqa(journey.folder / "medqa.jsonl")
    first, second = journey.folder / "first", journey.folder / "second"
    begin, *rest = _blocks(README)

    # make run, then make test, with files that users leave behind in between.
    clone, *makes = _into_clone(journey, begin, first)
    journey.type(makes[0], clone)
    method = _save_own_method(clone)
    for file, text in LEFT_LYING.items():
        (clone / file).parent.mkdir(parents=True, exist_ok=True)
        (clone / file).write_text(text)
    journey.type(makes[1], clone)

    # The rest of README and the user-defined method.
    with _provider(journey, clone) as keys:
        for line in [line for block in [*rest, method] for line in block]:
            journey.type(line, clone, **keys)
        for line in re.findall(r"`(python [\w.]+ --help)`", (clone / README).read_text()):
            journey.type(line, clone)

    # make test, then make run, reusing the model's cached replies.
    clone, *makes = _into_clone(journey, begin, second)
    journey.type(makes[1], clone)
    shutil.copytree(journey.replies, clone / CACHE)
    journey.type(makes[0], clone)

    for page in INSTEAD:
        if page not in journey.typed:
            raise JourneyError(f"no page says '{page}' any more: name here what it says instead")


def _into_clone(journey: Journey, begin: list[str], folder: Path) -> tuple[Path, str, str]:
    """Run README's clone command and check the rest; return the clone and the `make …` commands."""
    folder.mkdir()
    clone, change, run, test = begin
    journey.type(clone, folder)
    if change != f"cd {NAME}" or (run, test) != ("make run", "make test"):
        raise JourneyError(f"{README} begins in another way: {begin}")
    return folder / NAME, run, test


def _blocks(page: str) -> list[list[str]]:
    """Return the commands of each code block of a page (`sh`, or no language), minus comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    commands = [
        [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]
        for language, block in blocks
        if language in ("", "sh")
    ]
    if not commands:
        raise JourneyError(f"{page} has no commands")
    return commands


def _save_own_method(clone: Path) -> list[str]:
    """Save the method in docs/tutorials/own-method.md as told there; return the page's commands."""
    text = (clone / OWN_METHOD).read_text(encoding="utf-8")
    saved = re.search(
        r"Save this as\s+`([\w.]+)`.*?^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    if saved is None:
        raise JourneyError(f"{OWN_METHOD} does not say what is saved")
    (clone / saved[1]).write_text(saved[2], encoding="utf-8")
    return [line for block in _blocks(OWN_METHOD) for line in block]


def _write_medqa(path: Path) -> None:
    """Write 120 questions in MedQA's published format."""
    sample = (ROOT / "data" / "medqa" / "sample.jsonl").read_text(encoding="utf-8")
    questions = [json.loads(line) for line in sample.splitlines()]
    with path.open("w", encoding="utf-8") as file:
        for number in range(120):
            question = questions[number % len(questions)]
            text = f"Patient {number} of a clinic. {question['question']}"
            row = {key: question[key] for key in ("options", "answer", "answer_idx")}
            file.write(json.dumps({"question": text, **row}) + "\n")


@contextlib.contextmanager
def _provider(journey: Journey, clone: Path) -> Iterator[Mapping[str, str]]:
    """Run the fake provider; yield the environment variables that point programs to it."""
    command = [str(clone / ".venv" / "bin" / "python"), "-m", "benchmarks.provider"]
    with subprocess.Popen(
        command,
        cwd=clone,
        env=journey.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["openai_base_url"].removesuffix("/v1")
        try:
            yield {"GEMINI_API_KEY": "key-of-the-journey", "GOOGLE_GEMINI_BASE_URL": url}
        finally:
            process.terminate()


def _python() -> str:
    """Return the system's Python rather than that of the active virtual environment."""
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return str(Path(sys.base_prefix, "bin", "python{}.{}".format(*sys.version_info)))


def _is_environment(folder: str) -> bool:
    return Path(folder, os.pardir, "pyvenv.cfg").exists()


if __name__ == "__main__":
    sys.exit(main())
