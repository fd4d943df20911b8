"""The program `python -m demos.medagen.server`: serves the chat and its API until Ctrl-C."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

import argparse
import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import FrameType
from typing import TYPE_CHECKING

from demos.toolkit.packages import needs_demos
from demos.toolkit.tracing import add_otel_flag, open_spans
from mdagents_llm.config import read_variables
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result
from mdagents_llm.web.address import Place, add_address_flags, has_screen, listen, note_of

if TYPE_CHECKING:
    import uvicorn

    from demos.medagen.chat import Assistant
    from demos.medagen.limits import Limits
    from demos.toolkit.program_spans import ProgramSpans

    OpenAssistant = Callable[[Mapping[str, str]], AbstractAsyncContextManager[Assistant]]

_NO_DEVICE = "A demonstration, not a medical device: do not use it for patients."
_TO_END = 2  # seconds that open responses get at shutdown
_MUST_END = 15.0  # seconds until the process is forced to exit, even if it hangs


@fails_in_one_line
def main(argv: Sequence[str], *, open_assistant: OpenAssistant | None = None) -> int:
    """Serve until Ctrl-C.

    Args:
        argv: Command-line arguments without the program's name.
        open_assistant: Function that opens the assistant of an environment; None uses Medagen's,
            which alone makes spans.

    Returns:
        The exit status: 0 after Ctrl-C or SIGTERM, 2 for a usage error.
    """
    options = _parser().parse_args(argv)
    with needs_demos("Medagen"):  # imported late: --help and wrong use do not need a server
        from demos.medagen.limits import Limits

        if open_assistant is None:
            import demos.medagen.assistant  # noqa: F401 - says which package is missing
    rate, turns = _positive("--rate", options.rate), _positive("--turns", options.turns)
    limits = Limits(per_minute=rate, burst=max(Limits.burst, rate // 3), turns=turns)
    place = listen(options.view_host, options.view_port)
    with place.socket:
        program = _Program(place, limits, open_assistant, options)
        asyncio.run(program.run())
    return 0


class _Program:
    """One invocation of the program.

    Args:
        place: Address to listen on.
        limits: Limits of the clients' requests.
        open_assistant: Function that opens the assistant; None uses Medagen's.
        options: Parsed command line.
    """

    def __init__(
        self,
        place: Place,
        limits: Limits,
        open_assistant: OpenAssistant | None,
        options: argparse.Namespace,
    ) -> None:
        self._place = place
        self._limits = limits
        self._open_assistant = open_assistant
        self._options = options
        self._work: asyncio.Task[None] | None = None
        self._server: uvicorn.Server | None = None
        self._is_ending = False

    async def run(self) -> None:
        """Serve until a signal arrives."""
        self._work = asyncio.create_task(self._run())
        self._listen_to_signals()
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._is_ending:
                raise

    async def _run(self) -> None:
        from demos.medagen.app import make_app
        from mdagents_llm.web.serve import server_of

        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(_without_messages)
        variables = read_variables()
        async with (
            open_spans("medagen", variables, wanted=self._options.otel) as spans,
            self._opened(variables, spans) as assistant,
        ):
            place = self._place
            app = make_app(
                assistant,
                hosts=place.hosts,
                token=place.token,
                limits=self._limits,
                spans=spans,
            )
            self._server = server = server_of(app, _TO_END)
            serving = asyncio.create_task(server.serve(sockets=[place.socket]))
            await asyncio.sleep(0)
            self._listen_to_signals()  # the server has replaced the signal handlers
            self._show_address()
            await serving
            if left := server.server_state.tasks:  # cancelled, but they still use the assistant
                await asyncio.wait(left)

    def _opened(
        self, variables: Mapping[str, str], spans: ProgramSpans | None
    ) -> AbstractAsyncContextManager[Assistant]:
        if self._open_assistant is not None:
            return self._open_assistant(variables)
        from demos.medagen.assistant import open_assistant

        return open_assistant(variables, spans=spans)

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Shut down at the first signal; exit immediately at the second."""
        if self._is_ending:
            os._exit(128 + number)
        self._is_ending = True
        last = threading.Timer(_MUST_END, os._exit, [1])
        last.daemon = True
        last.start()
        if self._server is not None:
            self._server.should_exit = True
        elif self._work is not None:
            self._work.get_loop().call_soon_threadsafe(self._work.cancel)

    def _show_address(self) -> None:
        from mdagents_llm.web.serve import open_browser

        print_line(note_of(self._place, self._options.view_port))
        url = self._place.url("/")
        print_result(f"Medagen: {url} (Ctrl-C ends it). {_NO_DEVICE}")
        is_seen = not self._options.no_open and has_screen(read_variables(), sys.platform)
        # Do not pass a token: other users can read the arguments of a browser's process.
        if is_seen and not self._place.token:
            open_browser(url)


def _positive(flag: str, value: int) -> int:
    if value < 1:
        raise ConfigError(f"{flag} is {value} but must be at least 1")
    return value


def _without_messages(record: logging.LogRecord) -> bool:
    """Reduce a logged error to its traceback: its message may quote what a patient wrote.

    This is a logging filter. It sets `exc_text`, which all handlers of the logger use.
    """
    if record.exc_info and record.exc_info[1] is not None:
        record.msg, record.args = record.getMessage().partition("\n")[0], ()
        record.exc_text = "\n".join(_places(record.exc_info[1]))
    return True


def _places(error: BaseException) -> list[str]:
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    cause = error.__cause__ or error.__context__
    lines = _places(cause) if cause is not None else []
    lines += ["".join(traceback.format_tb(error.__traceback__)) + type(error).__qualname__]
    return lines + [line for one in inner for line in _places(one)]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m demos.medagen.server",
        description="Medagen: triage in Vietnamese and English, a chat page and an API. "
        + _NO_DEVICE,
        epilog="Exit status: 0 after Ctrl-C or SIGTERM, 2 usage error. Models and keys as for "
        "main.py: .env or the environment.",
    )
    add_address_flags(parser, "chat page")
    parser.add_argument("--rate", metavar="N", type=int, default=30,
        help="maximum requests per minute, per client and per user [%(default)s]")  # fmt: skip
    parser.add_argument("--turns", metavar="N", type=int, default=200,
        help="maximum concurrent answers [%(default)s]")  # fmt: skip
    add_otel_flag(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
