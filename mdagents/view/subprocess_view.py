"""The live view of a run, in a child process that never delays the run and ends with it.

This module imports nothing of the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.printing import print_line
from mdagents_llm.web.address import Place, listen

ENDS = "the view ends with the run; to see it again"

_PACKAGES = Path(__file__).parents[2]


class RunView:
    """Context manager that serves the runs of a folder while one of them is running.

    The parent opens the socket and the child serves it, so that the address is known at once.

    Args:
        output_dir: Folder of the runs.
        host: Value of `--view-host`.
        port: Value of `--view-port`.
        opens: Whether to open a browser.
        program: Name under which the user calls the program that shows the runs afterwards.
    """

    def __init__(
        self, output_dir: Path, host: str, port: int | None, *, opens: bool, program: str
    ) -> None:
        self._output_dir = output_dir
        self._host = host
        self._port = port
        self._opens = opens
        self._program = program
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._waits = False  # for the user to press Enter, at the end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._waits:
                _wait_for_enter()
        finally:
            self.close()

    def start(self, run: str) -> str:
        """Start the view, and return a line for the user: the address, or why the view failed.

        Args:
            run: Name of the run in progress.
        """
        try:
            place = listen(self._host, self._port)
            with place.socket:
                url = place.url(f"/runs/{quote(os.fsencode(run))}")
                self._child = self._started(place, url)
        except (ConfigError, OSError) as error:
            return f"NOTE: there is no live view: {error}"
        return f"view       {url}"

    def outlook(self, *, may_stay: bool) -> str:
        """Return the last line about the view; empty if the view stays open in a terminal.

        Args:
            may_stay: Whether the view may outlive the run: the user did not interrupt the run.
        """
        if (trouble := self.trouble()) or self._child is None:
            return trouble
        self._waits = may_stay and _is_watched()
        return "" if self._waits else f"{ENDS}: {self._again}"

    @property
    def _again(self) -> str:
        return f"{self._program} {shlex.quote(str(self._output_dir))}"

    def trouble(self) -> str:
        """Return once that the view has died, and why; empty otherwise."""
        child, errors = self._child, self._errors
        if child is None or errors is None or child.poll() is None:
            return ""
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
        self.close()
        cause = said.rpartition("\n")[2][:200] or f"its process ended with {child.returncode}"
        return f"NOTE: there is no live view any more: {cause}"

    def close(self) -> None:
        """Tell the view to end without waiting: it first sends its pages their final state."""
        child, self._child = self._child, None
        if child is None:
            return
        for file in (child.stdin, self._errors):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()

    def _started(self, place: Place, url: str) -> subprocess.Popen[bytes]:
        if os.name != "posix":
            raise ConfigError(f"no socket can be handed on; {self._again} in another window shows")
        number = place.socket.fileno()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        child = subprocess.Popen(
            [sys.executable, "-m", "mdagents.view.serve"],
            cwd=_PACKAGES,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[number],
            start_new_session=True,  # Ctrl-C is for the run alone, which may still finish questions
        )
        settings = {
            "output_dir": str(self._output_dir.resolve()),
            "socket": number,
            "hosts": place.hosts,
            "token": place.token,
            # Other users can read the arguments of a browser's process.
            "open": url if self._opens and not place.token else "",
            # Viewers of the pages need not know the paths of this machine.
            "again": shlex.join(Path(word).absolute().name for word in shlex.split(self._again)),
        }
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `trouble` reports why the child died
            # By pipe: other users can read the arguments of a process.
            child.stdin.write(json.dumps(settings).encode() + b"\n")
            child.stdin.flush()
        return child


def _is_watched() -> bool:
    """Return whether a person at a terminal reads stderr and can answer on stdin."""
    try:
        # A background process would be stopped when it reads.
        in_front = os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        return in_front and sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):  # unsupported, no terminal, or closed
        return False


def _wait_for_enter() -> None:
    import termios  # not on Windows, where no view is started

    print_line("the live view is still open; press Enter to close it")
    with contextlib.suppress(termios.error):  # ignores an Enter from before the prompt
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.readline()
