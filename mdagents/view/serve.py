"""Serves an output folder to browsers: for `view.py`, and as the child process of a run.

The child process reads its settings as one JSON line from stdin. The end of stdin stops it, after
it has notified open pages: the kernel closes the pipe however the run dies, even by SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from threading import Thread

import uvicorn
from starlette.applications import Starlette

from mdagents.view.app import make_app
from mdagents.view.follower import Watches
from mdagents_llm.web.serve import open_browser, server_of

_TO_END = 1  # seconds for responses in progress at shutdown
_LAST_WORDS = 20  # maximum seconds after a run: to show how it ended, then to notify pages
_BEHIND_THE_RUN = 5  # added to the niceness, so that the run goes first if cores are scarce


def make_server(app: Starlette) -> uvicorn.Server:
    """Make the server of `view.py`, which runs until SIGINT, SIGTERM or `should_exit`."""
    return server_of(app, _TO_END)


def main() -> None:
    """Serve as the child process of a run until stdin ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    os.nice(_BEHIND_THE_RUN)
    app = make_app(
        Path(settings["output_dir"]),
        hosts=settings["hosts"],
        token=settings["token"],
        again=settings["again"],
    )
    if settings["open"]:
        open_browser(settings["open"])
    server = server_of(app, _LAST_WORDS)
    with (
        socket.socket(fileno=settings["socket"]) as listening,
        asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner,
    ):
        runner.run(_serve(server, app.state.watches, listening))


async def _serve(server: uvicorn.Server, watches: Watches, listening: socket.socket) -> None:
    loop = asyncio.get_running_loop()

    def stop_with_the_run() -> None:
        while os.read(0, 1):
            pass
        asyncio.run_coroutine_threadsafe(end_with_run(server, watches), loop)
        time.sleep(3 * _LAST_WORDS)
        os._exit(1)  # the server hangs, and no parent is left to kill it

    Thread(target=stop_with_the_run, daemon=True).start()
    await server.serve(sockets=[listening])


async def end_with_run(server: uvicorn.Server, watches: Watches) -> None:
    """Stop accepting connections, and bring the open pages to their final state."""
    for one in server.servers if server.started else ():
        one.close()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await watches.end()
                # `should_exit` would cancel a stream that still reads what its page shows at last.
                if open_streams := server.server_state.tasks:
                    await asyncio.wait(open_streams)
    finally:
        server.should_exit = True


if __name__ == "__main__":
    main()
