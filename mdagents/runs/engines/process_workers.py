"""Workers that are processes of this machine: both ends of the pipes between them and the driver.

A message is its length and then its bytes. The first message to a worker is `Start`, so API keys
are in no command line and no file. A worker ends when its standard input is closed, in whatever way
the driver ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
import sys
import tempfile
import threading
import time
from asyncio.subprocess import PIPE, Process
from typing import IO, BinaryIO

from mdagents.runs.engines.cluster import WorkerLost
from mdagents.runs.engines.messages import Start, packed
from mdagents.runs.engines.worker import Worker
from mdagents_llm.config import Environment
from mdagents_llm.errors import ClusterError
from mdagents_llm.text import printable

_LENGTH = struct.Struct("<Q")
_SECONDS_TO_CLOSE = 2.0
_OF_AN_EXCEPTION = 1  # exit status of Python
_END_OF_ERRORS = 4096  # bytes of standard error in which the last line is looked for


class ProcessPost:
    """A worker that is a process of this machine; implements `Post`.

    Args:
        process: Process with pipes as standard input and output.
        errors: File of its standard error.
        start: A pickled `Start` message.
    """

    def __init__(self, process: Process, errors: IO[bytes], start: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._orders, self._reports = process.stdin, process.stdout
        self._errors = errors
        self._start = start

    async def greet(self) -> bytes:
        """Return the worker's packed `Greeting`."""
        return await self.exchange(self._start)

    async def exchange(self, message: bytes) -> bytes:
        """Send packed `Orders` and return the packed `Report`."""
        try:
            self._orders.write(_framed(message))
            await self._orders.drain()
            (length,) = _LENGTH.unpack(await self._reports.readexactly(_LENGTH.size))
            return await self._reports.readexactly(length)
        except (ConnectionError, asyncio.IncompleteReadError):
            raise await self._death() from None

    async def close(self) -> None:
        """Stop the worker if it is still alive."""
        self._orders.close()
        try:
            async with asyncio.timeout(_SECONDS_TO_CLOSE):
                await self._reports.read()  # the rest of an exchange that nobody waits for
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._reports.read()
            await self._process.wait()
        self._errors.close()

    async def _death(self) -> WorkerLost | ClusterError:
        """Classify the death of the process: an exception of the program would come again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_CLOSE):
                await self._process.wait()
        status = self._process.returncode
        if status == _OF_AN_EXCEPTION:
            return ClusterError(f"a worker failed: {self._last_line()}")
        how = f"status {status}" if status is None or status >= 0 else signal.Signals(-status).name
        return WorkerLost(f"a process ended with {how}", by_itself=True)

    def _last_line(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _END_OF_ERRORS))
        lines = self._errors.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return printable(said[-1] if said else "it gave no reason")[:200]


async def start_process(environment: Environment) -> ProcessPost:
    """Start a worker on this machine.

    Args:
        environment: API keys and endpoints.

    Raises:
        ClusterError: The machine has no room for another process.
    """
    # The path of this process, as multiprocessing hands it on: a user's method may be on it. The
    # user's script, which multiprocessing would import as well, is not needed.
    path = [str(folder) for folder in sys.path]
    code = f"import sys; sys.path[:] = {path!r}; from {__name__} import serve; serve()"
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code,
            stdin=PIPE, stdout=PIPE, stderr=errors,
            start_new_session=True,  # Ctrl-C is for the driver, which lets questions finish
        )  # fmt: skip
    except BaseException as error:
        errors.close()
        if isinstance(error, OSError):
            raise ClusterError(f"a process cannot be started: {error.strerror}") from error
        raise
    return ProcessPost(process, errors, packed(Start(environment)))


def serve() -> None:
    """Take part in runs as a worker until the driver closes standard input."""
    orders, reports = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # A user's method that reads or prints does not reach the pipes.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    asyncio.run(_converse(orders, reports))
    os._exit(0)  # without the 0.2 s in which Python tidies up


async def _converse(orders: BinaryIO, reports: BinaryIO) -> None:
    inbox: asyncio.Queue[bytes] = asyncio.Queue()
    listening = (orders, inbox, asyncio.get_running_loop())
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    if not (start := await inbox.get()):
        return
    worker = Worker(start)
    with contextlib.suppress(BrokenPipeError):  # the driver is dead
        await asyncio.to_thread(_send, reports, await worker.greet())
        while message := await inbox.get():
            await asyncio.to_thread(_send, reports, await worker.exchange(message))
    await worker.close()


def _listen(orders: BinaryIO, inbox: asyncio.Queue[bytes], loop: asyncio.AbstractEventLoop) -> None:
    """Pass on messages; after the last, let the process end even if its event loop hangs."""
    message = b"-"
    while message:
        header = orders.read(_LENGTH.size)
        message = orders.read(*_LENGTH.unpack(header)) if len(header) == _LENGTH.size else b""
        with contextlib.suppress(RuntimeError):  # the loop has ended because of an error
            loop.call_soon_threadsafe(inbox.put_nowait, message)
    time.sleep(_SECONDS_TO_CLOSE)
    os._exit(1)


def _framed(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message


def _send(reports: BinaryIO, message: bytes) -> None:
    reports.write(_framed(message))
    reports.flush()
