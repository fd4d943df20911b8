"""What `make run` and `make test` do first: a virtual environment, packages, the embedded model.

Only the standard library, and nothing that an older Python cannot read before it is told so. What
was killed half-way goes on where it was; what is done already takes no time and no network.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this is where an older one is told so
    needed = "error: Python 3.11 or newer is needed, this is {}.{}.{}; say make PYTHON=python3.12"
    print(needed.format(*sys.version_info[:3]), file=sys.stderr)
    sys.exit(2)

import argparse
import ast
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent

UV = "uv==0.13.9"
"""Installs the packages in a tenth of the time that pip takes; a wheel for every common system."""

_OF_PIP = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY"}
"""Setting of pip -> the variable by which uv, which does not read pip's, takes it."""

_SELECTIONS = {
    "run": ("--extra", "all", "--group", "evals"),
    "demos": ("--extra", "all", "--group", "evals", "--group", "demos"),
    "dev": ("--all-extras", "--group", "dev"),
}
"""Name -> the extras and groups of `pyproject.toml`; each holds those before it."""

_WHAT_FOR = {
    "run": "runs and reports",
    "demos": "the demos as well",
    "dev": "tests and checks as well",
}

_ADVICE = {
    r"ensurepip is not|No module named '?(ensurepip|venv)": "this Python cannot make virtual "
    "environments; on Debian or Ubuntu: apt install python3-venv",
    r"No space left|os error 28|Errno 28": "no room: set-up needs 2 GB in this folder and 200 MB "
    "in the cache folder of the user",
    r"Permission denied|Read-only file system|os error (13|30)": "this folder must be one that you "
    "may write to",
    r"Connection refused|Failed to (fetch|establish)|resolution|dns error|timed out|unreachable"
    r"|No matching distribution|no network|ProxyError|tunnel": "the first set-up needs PyPI: look "
    "after the network (behind a proxy: HTTPS_PROXY) and say make again",
}
"""What is in the output of a step that failed -> what to do."""


class StepError(Exception):
    """A step of the set-up failed; the message is for the user."""


def main(argv: Sequence[str]) -> int:
    """Set up what is missing; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    more = parser.add_mutually_exclusive_group()
    more.add_argument("--demos", action="store_true", help="also what the systems in demos/ need")
    more.add_argument("--dev", action="store_true", help="that, and what tests and checks need")
    options = parser.parse_args(argv)
    try:
        with _only_one(ROOT / ".set-up.lock") as lock:
            wanted = "dev" if options.dev else "demos" if options.demos else "run"
            set_up(ROOT / ".venv", Steps(lock, sys.stderr), wanted)
    except (StepError, OSError) as error:
        if str(error):
            print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; run make again to continue from here", file=sys.stderr)
        return 130
    return 0


def set_up(folder: Path, steps: "Steps", wanted: str) -> None:
    """Make the environment in `folder` if it is not there, complete it, and fetch the model.

    Args:
        folder: Of the environment.
        steps: What shows them.
        wanted: The selection of packages that it has at the end.

    Raises:
        StepError: A step failed.
    """
    python = str(folder / "bin" / "python")
    if steps.unfinished.startswith("1/3") or not folder.exists():
        make = [sys.executable, "-m", "venv", "--clear", str(folder)]
        steps.run(
            f"1/3 virtual environment: {folder.name}, so that your own Python stays as it is", make
        )
    else:
        _check_environment(folder, python)

    cache = folder / "uv-cache"  # on the same disk, so that its files become the installed ones
    names = list(_SELECTIONS)
    if not any(_is_installed(folder, name) for name in names[names.index(wanted) :]):
        pip = [python, "-m", "pip"]
        listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout
        uv, locked = str(folder / "bin" / "uv"), str(folder / "locked.txt")
        install = [uv, "pip", "install", "--python", python]
        again = ["--reinstall"] if steps.unfinished.startswith("2/3") else []  # it may be in part
        # From the list, not by `uv sync`: that would fetch from the addresses in uv.lock alone,
        # whatever index the user has set, and remove what the user has installed besides.
        export = [uv, "export", "--frozen", "--no-default-groups", "--no-emit-project"]
        steps.run(
            f"2/3 packages: the tested versions for {_WHAT_FOR[wanted]}",
            [*pip, "install", "--no-input", "--only-binary=:all:", UV],
            [*export, "--quiet", "--output-file", locked, *_SELECTIONS[wanted]],
            [*install, *again, "--require-hashes", "--requirements", locked],
            [*install, *again, "--no-deps", "--editable", "."],
            variables={
                "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or str(cache),
                "UV_NO_PROGRESS": "1",
                **settings_of_pip(listed),
            },
        )
        _stamp(folder, wanted).write_text(_digest())
    shutil.rmtree(cache, ignore_errors=True)

    steps.run(
        "3/3 embedded model: 98 MB, so that no key is needed",
        [python, "-m", "mdagents_llm.local_model.weights"],
        has_bar=True,
        may_be_done=True,
    )


def settings_of_pip(listed: str) -> dict[str, str]:
    """Return the variables that make uv fetch from where pip does.

    Args:
        listed: What `pip config list` prints.
    """
    found: dict[str, str] = {}
    for line in sorted(listed.splitlines(), reverse=True):  # what the environment says comes last
        name, _, value = line.partition("=")
        variable = _OF_PIP.get(name.rpartition(".")[2])
        if variable and variable not in os.environ:
            found[variable] = str(ast.literal_eval(value))
    return found


def reason(lines: Sequence[str]) -> str:
    """Return why a command failed: the lines of its output that say so, and what to do."""
    errors = [line for line in lines if re.match(r"\s*(error|cause)\b", line, re.IGNORECASE)]
    text = "\n".join(lines)
    advice = [words for pattern, words in _ADVICE.items() if re.search(pattern, text)]
    said = "\n".join([*(errors or lines)[-4:], *advice[:1]])
    return re.sub(r"^\s*error:\s*", "", said, flags=re.IGNORECASE)


class Steps:
    """Runs the steps of the set-up and shows each as a line, which moves on a terminal.

    Args:
        lock: A file that holds the name of the step under way; empty if none is.
        stream: Where the lines go.
        monotonic: The clock.
    """

    def __init__(
        self, lock: IO[str], stream: IO[str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.unfinished = lock.read()
        """The step during which an earlier set-up ended."""
        self._lock = lock
        self._stream = stream
        self._monotonic = monotonic
        self._moves = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._heading = "set up (the first time only)\n"
        self._shown = ("", "")

    def run(
        self,
        line: str,
        *commands: Sequence[str],
        variables: Mapping[str, str] | None = None,
        has_bar: bool = False,
        may_be_done: bool = False,
    ) -> None:
        """Run the commands of a step.

        Args:
            line: What is made, and after a colon more of it.
            commands: Each with its arguments.
            variables: Of their environment, besides those of this process.
            has_bar: Whether they show a bar on stderr, if that is a terminal, and errors after it.
            may_be_done: Whether a step that ends well at once is shown only after others.

        Raises:
            StepError: A command failed.
        """
        self._note(line.partition(":")[0])
        line = f"  {line} ... "
        quiet_for = 2.0 if may_be_done and self._heading else 0.0
        has_bar = has_bar and self._moves
        start = self._monotonic()
        for command in commands:
            output: list[str] = []
            with subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if has_bar else subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=[self._lock.fileno()],  # if it outlives this process the lock is held
            ) as child:
                reader = threading.Thread(target=_collect, args=(child.stdout, output))
                reader.start()
                try:
                    while reader.is_alive():
                        reader.join(0.2)
                        seconds = self._monotonic() - start
                        if seconds >= quiet_for and not has_bar:
                            self._show(line, f"{seconds:.0f} s  {''.join(output[-1:])}")
                except KeyboardInterrupt:
                    child.terminate()
                    reader.join()
                    raise
            if child.returncode:
                self._show(line, "failed\n")
                raise StepError(reason(output))
        seconds = self._monotonic() - start
        if seconds >= quiet_for:
            self._show(line, f"done in {seconds:.0f} s\n")
        self._note("")

    def _note(self, name: str) -> None:
        self._lock.seek(0)
        self._lock.truncate()
        self._lock.write(name)
        self._lock.flush()

    def _show(self, line: str, news: str) -> None:
        """Show a line with what is new of it: on a terminal in its place, else only its end."""
        if (line, news) == self._shown:
            return
        ends = news.endswith("\n")
        if self._moves:
            width = shutil.get_terminal_size().columns - 1
            text = f"\r\x1b[K{self._heading}{f'{line}{news.strip()}'[:width]}" + "\n" * ends
        else:
            text = self._heading + line * (self._shown[0] != line) + news * ends
        self._heading, self._shown = "", (line, news)
        self._stream.write(text)
        self._stream.flush()


def _collect(lines: IO[str], output: list[str]) -> None:
    """Collect what a command says but for warnings, of which pip may have dozens."""
    said = (line.rstrip() for line in lines)
    output.extend(line for line in said if line and not line.startswith("WARNING"))


@contextmanager
def _only_one(path: Path) -> Iterator[IO[str]]:
    """Keep other set-ups of this folder waiting; give the file that they would wait for."""
    try:
        file = path.open("a+")
    except OSError as error:
        raise StepError(f"cannot write {path}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another set-up of this folder ...", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def _check_environment(folder: Path, python: str) -> None:
    """Refuse an environment of somebody else's that cannot be used."""
    asked = [python, "-c", "import pip, sys; print('{}.{}'.format(*sys.version_info))"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise StepError(
            f"{folder.name} is there, but its Python does not work or has no pip; "
            "say make clean, then make again"
        ) from None
    wanted = "{}.{}".format(*sys.version_info)
    if found != wanted:
        note = f"{folder.name} has Python {found} and keeps it; for {wanted} say make clean first"
        print(note, file=sys.stderr)


def _is_installed(folder: Path, selection: str) -> bool:
    stamp = _stamp(folder, selection)
    return stamp.exists() and stamp.read_text() == _digest()


def _stamp(folder: Path, selection: str) -> Path:
    return folder / f"{selection}.done"


def _digest() -> str:
    """Return what changes when packages have to be installed again."""
    content = b"".join((ROOT / file).read_bytes() for file in ("uv.lock", "pyproject.toml"))
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
