"""The live view of a run: a process beside it that the run never waits for, and that ends with it.

Nothing of the server is imported here.
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
from mdagents_llm.files.printing import print_line
from mdagents_llm.web.address import Place, listen

ENDS = "the view ends with the run; to see it again"

_PACKAGES = Path(__file__).parents[2]


class RunView:
    """Serves the runs of a folder while one of them is at work; a context manager.

    The socket is opened here and served by the child, so that the address is known at once.

    Args:
        output_dir: Where runs are.
        host: `--view-host`.
        port: `--view-port`.
        opens: Whether a browser is opened.
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
        self._waits = False  # for the user, at the end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._waits:
                _wait_for_enter()
        finally:
            self.close()

    def start(self, run: str) -> str:
        """Start it, and return the line for the user: the address, or why there is none.

        Args:
            run: Name of the run at work.
        """
        try:
            place = listen(self._host, self._port)
            with place.socket:
                url = place.url(f"/runs/{quote(run)}")
                self._child = self._started(place, url)
        except (ConfigError, OSError) as error:
            return f"NOTE: there is no live view: {error}"
        return f"view       {url}"

    def outlook(self, *, may_stay: bool) -> str:
        """Return the last line about it, where it ends with the run; in a terminal it may stay.

        Args:
            may_stay: Whether the user did not ask for the end.
        """
        if (trouble := self.trouble()) or self._child is None:
            return trouble
        self._waits = may_stay and _is_watched()
        return "" if self._waits else f"{ENDS}: {self._again}"

    @property
    def _again(self) -> str:
        return f"{self._program} {shlex.quote(str(self._output_dir))}"

    def trouble(self) -> str:
        """Return once that it has died, and of what; empty while it lives."""
        child, errors = self._child, self._errors
        if child is None or errors is None or child.poll() is None:
            return ""
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
        self.close()
        cause = said.rpartition("\n")[2][:200] or f"its process ended with {child.returncode}"
        return f"NOTE: there is no live view any more: {cause}"

    def close(self) -> None:
        """Have it end, which it does by itself: it has a last word for its pages."""
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
            start_new_session=True,  # Ctrl-C is for the run, which may still finish questions
        )
        settings = {
            "output_dir": str(self._output_dir.resolve()),
            "socket": number,
            "hosts": place.hosts,
            "token": place.token,
            # Other users can read the arguments of a browser's process.
            "open": url if self._opens and not place.token else "",
            # Who sees the pages need not know where things are on this machine.
            "again": shlex.join(Path(word).absolute().name for word in shlex.split(self._again)),
        }
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `trouble` tells why it has died
            # By pipe, not by argument: other users can read those.
            child.stdin.write(json.dumps(settings).encode() + b"\n")
            child.stdin.flush()
        return child


def _is_watched() -> bool:
    """Return whether a person at a terminal reads stderr and can answer on stdin."""
    try:
        in_front = os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()  # reading stops others
        return in_front and sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):  # no terminal, closed, or none of the system
        return False


def _wait_for_enter() -> None:
    import termios  # not on Windows, where no view is started

    print_line("the live view is still open; press Enter to close it")
    with contextlib.suppress(termios.error):  # an Enter while the run was at work is no answer
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.readline()
