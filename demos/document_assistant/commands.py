"""Commands of the dialogue: a line is either a message to the assistant or a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from demos.document_assistant.assistant import DocumentAssistant, Reply
from demos.document_assistant.shown import (
    clean,
    documents_as_text,
    messages_as_text,
    reply_as_text,
    sessions_as_text,
    wrapped,
)
from demos.toolkit.guard import without_instructions
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.terminal.printing import print_line, print_result
from mdagents_llm.text import one_line

HELP = """Ask about the documents, have one summarized, or have something calculated.
  /docs            the documents, with those that you uploaded
  /upload PATH     add a PDF, Word, Excel, text, Markdown or CSV file to this session
  /history         what has been said in this session
  /sessions        your sessions; the one with * is this one
  /retry           finish the question that was not answered
  /reset           begin a new session; this one is kept
  /quit            end; so does Ctrl-D
Ctrl-C stops an answer. Twice, or where you type, it ends the program."""

_LEFT_OUT_SHOWN = 3  # sentences of an upload that no prompt will hold


class LeaveError(Exception):
    """The user has asked to end the dialogue."""


@dataclass(slots=True)
class Dialogue:
    """Dialogue of one user with the assistant, in one session at a time.

    Answers go to stdout, progress to stderr.
    """

    assistant: DocumentAssistant
    session_id: str
    user_id: str
    monotonic: Callable[[], float]

    async def take(self, line: str) -> None:
        """Execute a line of input.

        Raises:
            LeaveError: The line is `/quit`.
            BenchError: The line cannot be executed; the message says why.
        """
        line = line.strip()
        if not line:
            return
        if not line.startswith("/"):
            await self._turn(
                self.assistant.process_message(
                    line, self.session_id, self.user_id, on_step=self._step
                )
            )
            return
        name, _, rest = line.partition(" ")
        command = _COMMANDS.get(name.lower())
        if command is None:
            meant = did_you_mean(name, _COMMANDS) or "; /help shows those there are"
            raise ConfigError(f"there is no command {clean(name)}{meant}")
        await command(self, rest.strip())

    async def finish_unfinished(self) -> None:
        """Finish the turn that an earlier run of the program left unfinished, if there is one."""
        view = await self.assistant.get_session(self.session_id, self.user_id)
        if view.unfinished:
            print_result(wrapped(f"Your last question was not answered: {view.unfinished}"))
            await self._retry("")

    async def drop_unfinished(self) -> None:
        """Drop the turn that the user has stopped."""
        await self.assistant.drop(self.session_id, self.user_id)

    async def _turn(self, asked: Awaitable[Reply | None]) -> None:
        started = self.monotonic()
        reply = await asked
        if reply is None:
            print_result("There is no question that was not answered.")
            return
        titles = {one.id: one.title for one in await self.assistant.documents(self.session_id)}
        print_result(reply_as_text(reply, titles, self.monotonic() - started) + "\n")

    def _step(self, text: str) -> None:
        print_line(f"  … {clean(text)}")

    async def _help(self, _: str) -> None:
        print_result(HELP)

    async def _docs(self, _: str) -> None:
        print_result(documents_as_text(await self.assistant.documents(self.session_id)))

    async def _upload(self, rest: str) -> None:
        if not rest:
            raise ConfigError("/upload needs the path of a file, such as: /upload report.pdf")
        document = await self.assistant.upload(path_of(rest), self.session_id, self.user_id)
        print_result(
            clean(f"Added {document.id} - {document.title}, {len(document.text)} characters")
        )
        _, left_out = without_instructions(document.text)
        for sentence in left_out[:_LEFT_OUT_SHOWN]:
            print_result(f"  left out, as it addresses a model: {one_line(sentence)[:100]}")
        if len(left_out) > _LEFT_OUT_SHOWN:
            print_result(f"  and {len(left_out) - _LEFT_OUT_SHOWN:,} more")

    async def _history(self, _: str) -> None:
        view = await self.assistant.get_session(self.session_id, self.user_id)
        print_result(messages_as_text(view.messages))

    async def _sessions(self, _: str) -> None:
        found = await self.assistant.sessions(self.user_id)
        print_result(sessions_as_text(found, self.session_id))

    async def _retry(self, _: str) -> None:
        await self._turn(self.assistant.resume(self.session_id, self.user_id, on_step=self._step))

    async def _reset(self, _: str) -> None:
        session = await self.assistant.start_session(self.user_id)
        self.session_id = session.id
        print_result(f"New session {session.id}")

    async def _quit(self, _: str) -> None:
        raise LeaveError


def path_of(written: str) -> Path:
    """Return the path that a user wrote, or that a terminal wrote for a file dropped into it."""
    written = written.strip()
    if written.startswith("file://"):
        return Path(url2pathname(urlsplit(written).path))
    is_quoted = written[:1] in ("'", '"') and written.endswith(written[:1]) and len(written) > 1
    try:
        words = shlex.split(written) if os.sep == "/" else []
    except ValueError:  # a quotation mark that is part of the name
        words = []
    if len(words) == 1:
        written = words[0]
    elif is_quoted:
        written = written[1:-1]
    with suppress(RuntimeError):  # there is no such user
        return Path(written).expanduser()
    return Path(written)


_COMMANDS: Mapping[str, Callable[[Dialogue, str], Awaitable[None]]] = {
    "/help": Dialogue._help,  # noqa: SLF001 - of this module
    "/docs": Dialogue._docs,  # noqa: SLF001
    "/upload": Dialogue._upload,  # noqa: SLF001
    "/history": Dialogue._history,  # noqa: SLF001
    "/sessions": Dialogue._sessions,  # noqa: SLF001
    "/retry": Dialogue._retry,  # noqa: SLF001
    "/reset": Dialogue._reset,  # noqa: SLF001
    "/quit": Dialogue._quit,  # noqa: SLF001
}
