"""The command-line program: reads messages and prints answers, on a terminal or in a pipe."""

from __future__ import annotations

import argparse
import asyncio
import io
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from demos.document_assistant.assistant import DATABASE_FILE, DocumentAssistant
from demos.document_assistant.commands import Dialogue, LeaveError
from demos.document_assistant.library import Document
from demos.document_assistant.models import OpenedModel, opened_model
from demos.document_assistant.shown import clean, documents_as_text
from demos.toolkit.database import Database
from demos.toolkit.settings import database_of
from demos.toolkit.tracing import add_otel_flag, open_spans
from mdagents_llm.config import read_variables
from mdagents_llm.embeddings import local_embedder
from mdagents_llm.errors import BenchError, StorageError
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import AUTO
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result

_INTERRUPTED, _TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
_PROMPT = "> "
_TOO_SMALL = (
    "This model is too small to be right: it shows how the program works. Set a key "
    "(OPENAI_API_KEY, GOOGLE_API_KEY, GROQ_API_KEY) or choose a model with --model."
)


class TerminatedError(BaseException):
    """SIGTERM arrived outside a turn. A BaseException, so that no `except Exception` catches it."""


@fails_in_one_line
def main(argv: Sequence[str] | None = None) -> int:
    """Run the dialogue.

    Returns:
        The exit status: 0 at the end of the input or after `/quit`, 130 after Ctrl-C at the prompt
        or two of them, 143 after SIGTERM, 2 if the user has to change something before the dialogue
        can start, 1 if something cannot be written.
    """
    options = _parser().parse_args(argv)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    try:
        with _ends_on_sigterm(), asyncio.Runner() as runner:
            return _run(runner, options)
    except TerminatedError:
        return _TERMINATED


def _parser() -> Parser:
    parser = Parser(
        prog="python -m demos.document_assistant",
        description="Answers questions about documents, summarizes them, and calculates with what "
        "they hold. Twelve sample documents come with it.",
        epilog="Without a terminal each line of the input is a message. Exit status: 0 at the end "
        "of the input or after /quit, 130 after Ctrl-C, 143 after SIGTERM, 2 usage error, 1 what "
        "cannot be written.",
    )
    add = parser.add_argument
    add("--session", metavar="ID", help="resume this session, or name a new one")
    add("--user", metavar="ID", default="", help="whose sessions they are")
    add(
        "--folder",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="where sessions/ and logs/ are kept; default: the current folder",
    )
    add(
        "--model",
        default=AUTO,
        help="provider/name, such as openai/gpt-4o-mini, or local; default: the first provider "
        "with a key, else local",
    )
    add("--model-base-url", metavar="URL", default="", help="an OpenAI-compatible endpoint")
    add(
        "--database",
        metavar="ADDRESS",
        help="postgresql://…, or a SQLite file; default: DATABASE_URL, else a file in sessions/",
    )
    add("--no-embeddings", action="store_true", help="find documents by their words alone")
    add("--redact", action="store_true", help="log lengths and hashes, not what is said")
    add_otel_flag(parser)
    return parser


def _run(runner: asyncio.Runner, options: argparse.Namespace) -> int:
    stack = AsyncExitStack()
    try:
        dialogue = runner.run(_opened(stack, options))
        return _converse(runner, dialogue)
    finally:
        runner.run(stack.aclose())


async def _opened(stack: AsyncExitStack, options: argparse.Namespace) -> Dialogue:
    spans = await stack.enter_async_context(
        open_spans("document-assistant", read_variables(), wanted=options.otel)
    )
    ledger = Ledger() if spans is None else Ledger(spans.booked)
    model = await stack.enter_async_context(
        opened_model(options.model, options.model_base_url, ledger)
    )
    file = options.folder / "sessions" / DATABASE_FILE
    database = (
        Database(options.database) if options.database else database_of(read_variables(), file)
    )
    stack.push_async_callback(database.close)
    assistant = await stack.enter_async_context(
        DocumentAssistant.open(
            options.folder,
            model=model.chat_model,
            database=database,
            embedder=None if options.no_embeddings else local_embedder(),
            redacts=options.redact,
            spans=spans,
        )
    )
    session = await assistant.start_session(options.user, options.session)
    _greet(await assistant.documents(session.id), model, session.id)
    return Dialogue(assistant, session.id, options.user, time.monotonic)


def _greet(documents: Sequence[Document], model: OpenedModel, session_id: str) -> None:
    print_result(
        f"{len(documents)} documents, model {clean(model.name)}, session {session_id}. Not a "
        f"medical device.\n{documents_as_text(documents)}"
    )
    if model.is_small:
        print_result(_TOO_SMALL)
    print_result("Ask, or type /help.\n")


def _converse(runner: asyncio.Runner, dialogue: Dialogue) -> int:
    """Read and execute lines until the dialogue ends; return the exit status."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401 - `input` then edits lines
    try:
        status = _in_turn(runner, dialogue, dialogue.finish_unfinished())
        while status is None:
            line = _line(is_terminal=is_terminal)
            if line is None:
                return 0
            status = _in_turn(runner, dialogue, dialogue.take(line))
    except KeyboardInterrupt:
        print_line("")
        return _INTERRUPTED
    return status


def _line(*, is_terminal: bool) -> str | None:
    """Return the next line of input; None at its end."""
    if is_terminal:
        try:
            return input(_PROMPT)
        except EOFError:
            print_result("")
            return None
    line = sys.stdin.readline()
    if not line:
        return None
    print_result(clean(f"{_PROMPT}{line.strip()}"))
    return line


def _in_turn(
    runner: asyncio.Runner, dialogue: Dialogue, doing: Coroutine[Any, Any, None]
) -> int | None:
    """Run one action, which Ctrl-C stops without ending the dialogue.

    Returns:
        The exit status if the dialogue has to end, else None.

    Raises:
        KeyboardInterrupt: The user pressed Ctrl-C twice.
        StorageError: An answer could not be stored or printed.
    """
    turn = _Turn(doing)
    try:
        runner.run(turn.done())
    except KeyboardInterrupt:
        if not turn.has_ended:
            raise
        print_line("stopped; nothing of this question is kept")
        runner.run(dialogue.drop_unfinished())
    except LeaveError:
        return 0
    except StorageError:
        raise
    except BenchError as error:
        print_line(f"error: {clean(str(error))}")
    except asyncio.CancelledError:
        if turn.is_terminated:
            return _TERMINATED
        raise
    return _TERMINATED if turn.is_terminated else None


class _Turn:
    """One action of the dialogue, which SIGTERM cancels cleanly."""

    def __init__(self, doing: Coroutine[Any, Any, None]) -> None:
        self._doing = doing
        self.has_ended = False
        self.is_terminated = False

    async def done(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def terminate() -> None:
            self.is_terminated = True
            task.cancel()

        before = signal.getsignal(signal.SIGTERM)
        loop.add_signal_handler(signal.SIGTERM, terminate)
        try:
            await self._doing
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, before)
            self.has_ended = True


@contextmanager
def _ends_on_sigterm() -> Iterator[None]:
    def terminate(number: int, frame: FrameType | None) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
