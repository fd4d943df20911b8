"""Serves an output folder to browsers: in `view.py`, and in the process beside a run.

As that process one JSON line comes in on stdin. The end of stdin is the order to stop: the kernel
closes the pipe however the run's process dies, also by SIGKILL. Pages that are open are told, then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import uvicorn

from mdagents.view.app import make_app
from mdagents.view.watch import Watches
from mdagents_llm.web.serve import open_browser, server_of

_TO_END = 1  # seconds that answers under way get
_LAST_WORDS = 20  # seconds behind a run, at most: to show how it ended, then to tell pages
_BEHIND_THE_RUN = 5  # added to its niceness: where cores are scarce the run goes first


def make_server(output_dir: Path, hosts: Sequence[str], token: str) -> uvicorn.Server:
    """Make the server; it runs until SIGINT, SIGTERM or its `should_exit`.

    Args:
        output_dir: Where runs are.
        hosts: Hosts that are answered.
        token: That they ask for; empty for none.
    """
    return server_of(make_app(output_dir, hosts=hosts, token=token), _TO_END)


def main() -> None:
    """Serve beside a run, until stdin ends."""
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
        asyncio.run_coroutine_threadsafe(_end(server, watches), loop)
        time.sleep(3 * _LAST_WORDS)
        os._exit(1)  # whatever it hangs in, nobody is there any more to end it

    Thread(target=stop_with_the_run, daemon=True).start()
    await server.serve(sockets=[listening])


async def _end(server: uvicorn.Server, watches: Watches) -> None:
    """Answer nobody any more, and have the pages that are open show how things ended."""
    for one in server.servers if server.started else ():
        one.close()
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watches.end(), _LAST_WORDS)
    finally:
        server.should_exit = True


if __name__ == "__main__":
    main()
