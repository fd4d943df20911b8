"""Set up the clone for `make run`, `make docs` and `make test`: environment, packages, model.

Requires only the standard library, and no syntax that an older Python cannot parse before the
version check reports it. A killed set-up resumes where it stopped; completed steps take no time and
no network.
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
import importlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent

UV = "uv==0.13.9"
"""Installer that takes a tenth of pip's time and has wheels for every common system."""

_OF_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "trusted-host": "UV_INSECURE_HOST",
}
"""Environment variable of uv by pip setting, since uv does not read pip's configuration."""

_WHERE_FROM = (
    *_OF_PIP, "cache-dir", "client-cert", "default-timeout", "extra-index-url", "find-links",
    "keyring-provider", "no-cache-dir", "no-index", "retries", "timeout",
)  # fmt: skip
"""Settings of pip that say where packages come from. Others (user, target, …) are for other
environments than this one."""

_SELECTIONS = {
    "run": ("--extra", "all", "--group", "evals"),
    "demos": ("--extra", "all", "--group", "evals", "--group", "demos"),
    "docs": ("--extra", "all", "--group", "evals", "--group", "demos", "--group", "docs"),
    "dev": ("--all-extras", "--group", "dev"),
}
"""Extras and groups of `pyproject.toml` by selection; each includes those before it."""

_BEGUN = "packages.begun"
"""File in the environment with the largest selection whose installation was not finished."""

_WHAT_FOR = {
    "run": "runs and reports",
    "demos": "the demos as well",
    "docs": "the documentation site as well",
    "dev": "tests and checks as well",
}

_ADVICE = {
    r"No space left|os error 28|Errno 28|[Qq]uota exceeded": "no room: set-up needs 1 GB in this "
    "folder (for the tests 2.5 GB), 200 MB in the cache folder of the user and 50 MB in the "
    "temporary folder (TMPDIR)",
    r"ensurepip is not|No module named '?(ensurepip|venv)": "this Python cannot make virtual "
    "environments; on Debian or Ubuntu: apt install python3-venv",
    r"Permission denied|Read-only file system|os error (13|30)": "this folder must be one that you "
    "may write to and start programs in (no noexec)",
    r"CERTIFICATE_VERIFY_FAILED|[Cc]ertificate|UnknownIssuer": "the certificate of the package "
    "index is not trusted: give that of your company as PIP_CERT=/path/to/ca.pem",
    r"no version of|exclude.newer": "uv or the index leaves out a tested version: look at "
    "exclude-newer in your uv.toml (UV_EXCLUDE_NEWER), and at the index",
    r"Connection refused|Failed to (fetch|establish)|resolution|dns error|timed out|unreachable"
    r"|No matching distribution|no network|ProxyError|tunnel": "the first set-up needs PyPI: look "
    "after the network (behind a proxy: HTTPS_PROXY) and say make again",
}
"""Advice for the user, by regular expression matching the output of a failed step."""


class StepError(Exception):
    """Raised when a step of the set-up fails; the message is for the user."""


def main(argv: Sequence[str]) -> int:
    """Run the missing set-up steps; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    more = parser.add_mutually_exclusive_group()
    more.add_argument("--demos", action="store_true", help="also what the systems in demos/ need")
    more.add_argument("--docs", action="store_true", help="that, and what the site of docs/ needs")
    more.add_argument("--dev", action="store_true", help="that, and what tests and checks need")
    options = parser.parse_args(argv)
    try:
        _check_python()
        with _only_one(ROOT / ".set-up.lock") as lock:
            wanted = next(
                (name for name in ("demos", "docs", "dev") if getattr(options, name)), "run"
            )
            set_up(ROOT / ".venv", Steps(lock, sys.stderr), wanted)
    except (StepError, OSError) as error:
        if str(error):
            print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another one ends this without traceback
        print("\ninterrupted; run make again to continue from here", file=sys.stderr)
        return 130
    return 0


def set_up(folder: Path, steps: "Steps", wanted: str) -> None:
    """Create or complete the environment in `folder` and fetch the model.

    Args:
        folder: Folder of the virtual environment.
        steps: Runner that displays the steps.
        wanted: Name of the package selection to install.

    Raises:
        StepError: A step failed.
    """
    python = str(folder / "bin" / "python")
    if steps.unfinished.startswith("1/3") or not folder.exists():
        steps.run(
            f"1/3 virtual environment: {folder.name}, so that your own Python stays as it is",
            [sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)],
            [python, "-I", "-m", "ensurepip", "--default-pip"],  # venv hides why this fails
        )
    else:
        _check_environment(folder, python)

    cache = folder / "uv-cache"  # on the same disk, so that files can be linked instead of copied
    names = list(_SELECTIONS)
    if not any(_is_installed(folder, name) for name in names[names.index(wanted) :]):
        pip = [python, "-m", "pip"]
        listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout
        begun = folder / _BEGUN
        again = ["--reinstall"] if begun.exists() else []  # packages may be incomplete
        largest = max(_largest_begun(begun) if again else wanted, wanted, key=names.index)
        begun.write_text(largest)
        uv, locked = str(folder / "bin" / "uv"), str(folder / "locked.txt")
        install = [uv, "pip", "install", "--python", python]
        # Export a list instead of using `uv sync`, which would fetch only from the URLs in uv.lock,
        # ignoring the user's index, and remove packages that the user has installed.
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
                "PIP_CONFIG_FILE": os.devnull,  # what counts of it is in `settings_of_pip`
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                **settings_of_pip(listed),
            },
        )
        if largest == wanted:
            begun.unlink()
        _stamp(folder, wanted).write_text(_digest())
    shutil.rmtree(cache, ignore_errors=True)

    steps.run(
        "3/3 embedded model: 98 MB, so that no key is needed",
        [python, "-m", "mdagents_llm.local_model.weights"],
        has_bar=True,
        may_be_done=True,
    )


def settings_of_pip(listed: str) -> dict[str, str]:
    """Return environment variables by which pip and uv fetch packages from where pip is told to.

    Args:
        listed: Output of `pip config list`.
    """
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):  # the last one wins
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            of, _, setting = name.rpartition(".")
            if of != section or setting not in _WHERE_FROM:
                continue
            content = str(ast.literal_eval(value))
            found[f"PIP_{setting.upper().replace('-', '_')}"] = content
            if setting in _OF_PIP and _OF_PIP[setting] not in os.environ:
                found[_OF_PIP[setting]] = content
    return found


def _surroundings() -> dict[str, str]:
    """Return the environment without what is meant for other installations than this one."""
    own = (name for name in os.environ if name.startswith("PIP_") or name == "PYTHONWARNINGS")
    return {name: os.environ[name] for name in os.environ.keys() - set(own)}


def reason(lines: Sequence[str]) -> str:
    """Return why a command failed: the error lines of its output, and advice."""
    errors = [
        line
        for line in lines
        if re.match(r"\s*((?!subprocess)[\w.]*error|cause)\b", line, re.IGNORECASE)
    ]
    text = "\n".join(lines)
    advice = [words for pattern, words in _ADVICE.items() if re.search(pattern, text)]
    said = "\n".join([*(errors or lines)[-4:], *advice[:1]])
    return re.sub(r"^\s*error:\s*", "", said, flags=re.IGNORECASE)


class Steps:
    """Runs the set-up steps and shows each as a line, updated in place on a terminal.

    Args:
        lock: File that holds the name of the step in progress; empty if none.
        stream: Stream to write the lines to.
        monotonic: Clock that returns monotonic seconds.
    """

    def __init__(
        self, lock: IO[str], stream: IO[str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.unfinished = lock.read()
        """Name of the step at which an earlier set-up was interrupted; empty if none."""
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
            line: Name of the step, followed by a colon and details.
            commands: Commands to run, each with its arguments.
            variables: Environment variables to add to those of this process.
            has_bar: Whether the commands show a progress bar and then errors on stderr, if that is
                a terminal.
            may_be_done: Whether to hide the step if it succeeds at once and no step was shown
                before it.

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
            try:
                child = subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env={**_surroundings(), **(variables or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=None if has_bar else subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    # keeps the lock held if the child outlives this process
                    pass_fds=[self._lock.fileno()],
                )
            except OSError as error:
                self._show(line, "failed\n")
                raise StepError(reason([f"error: {error}"])) from error
            with child:
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
        """Show a line and its latest status: in place on a terminal, else only when it ends."""
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
    """Collect a command's output, without warnings, of which pip may print dozens.

    Those about certificates stay: pip tells there why it finds no package.
    """
    said = (line.rstrip() for line in lines)
    output.extend(
        line for line in said if line and (not line.startswith("WARNING") or "ertificate" in line)
    )


@contextmanager
def _only_one(path: Path) -> Iterator[IO[str]]:
    """Lock this folder against concurrent set-ups and yield the lock file."""
    try:
        file = path.open("a+")
    except OSError as error:
        raise StepError(
            f"cannot write {path}: {error.strerror}; was make run as root or by another user?"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another set-up of this folder ...", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def _check_environment(folder: Path, python: str) -> None:
    """Reject an existing environment that cannot be used; warn if its Python differs."""
    asked = [python, "-c", "import pip, sys; print('{}.{}'.format(*sys.version_info))"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        found = said.split()[-1]  # a `sitecustomize` may print before it
        version = tuple(map(int, found.split(".")))
    except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
        raise StepError(
            f"{folder.name} is there, but its Python does not work or has no pip; "
            "say make clean, then make again"
        ) from None
    if version < (3, 11):
        raise StepError(
            f"{folder.name} has Python {found}, and 3.11 is needed; say make clean, then make again"
        )
    made_at = _made_at(folder)
    if made_at is not None and made_at.resolve() != folder.resolve():
        raise StepError(
            f"{folder.name} was made at {made_at.parent}, and its programs do not work here; say "
            "make clean, then make again"
        )
    wanted = "{}.{}".format(*sys.version_info)
    if found != wanted:
        note = f"{folder.name} has Python {found} and keeps it; for {wanted} say make clean first"
        print(note, file=sys.stderr)


def _check_python() -> None:
    """Reject a Python that was built without a module that the programs need."""
    for name in ("sqlite3", "ssl", "zlib"):
        try:
            importlib.import_module(name)
        except ImportError:
            raise StepError(
                f"this Python was built without {name}: say make PYTHON=/path/to/another/python3"
            ) from None


def _made_at(folder: Path) -> Path | None:
    """Return where an environment was made, which its programs begin with; None if not known."""
    with suppress(OSError):
        for line in (
            (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
        ):
            name, _, command = line.partition(" = ")
            if name == "command" and " --clear " in command:
                return Path(command.partition(" --clear ")[2])
    return None


def _is_installed(folder: Path, selection: str) -> bool:
    """Return whether the packages of a selection are complete and those of today."""
    stamp, begun = _stamp(folder, selection), folder / _BEGUN
    if not stamp.exists() or stamp.read_text() != _digest():
        return False
    return not begun.exists() or begun.stat().st_mtime_ns < stamp.stat().st_mtime_ns


def _largest_begun(begun: Path) -> str:
    """Return the selection that a file names; all packages if it was not written to its end."""
    name = begun.read_text(errors="replace")
    return name if name in _SELECTIONS else [*_SELECTIONS][-1]


def _stamp(folder: Path, selection: str) -> Path:
    return folder / f"{selection}.done"


def _digest() -> str:
    """Return a digest that changes when packages must be reinstalled."""
    content = b"".join((ROOT / file).read_bytes() for file in ("uv.lock", "pyproject.toml"))
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
