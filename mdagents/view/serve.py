"""Serves an output folder to browsers: in `view.py`, and in the process beside a run.

As that process one JSON line comes in on stdin. The end of stdin is the order to stop: the kernel
closes the pipe however the run's process dies, also by SIGKILL.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import uvicorn

from mdagents.view.address import SERVER
from mdagents.view.app import make_app

_TO_END = 1  # seconds that answers under way get
_BEHIND_THE_RUN = 5  # added to its niceness: where cores are scarce the run goes first


def make_server(output_dir: Path, hosts: Sequence[str], token: str) -> uvicorn.Server:
    """Make the server; it runs until SIGINT, SIGTERM or its `should_exit`.

    Args:
        output_dir: Where runs are.
        hosts: Hosts that are answered.
        token: That they ask for; empty for none.
    """
    config = uvicorn.Config(
        make_app(output_dir, hosts=hosts, token=token),
        lifespan="off",
        access_log=False,  # an address may have the token in it
        log_config=None,
        server_header=False,
        headers=[("server", SERVER)],
        proxy_headers=False,
        timeout_graceful_shutdown=_TO_END,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_fault)
    return uvicorn.Server(config)


def _is_fault(record: logging.LogRecord) -> bool:
    """Return whether something failed: that a stream was cut when all ends is no news."""
    return record.exc_info is not None and isinstance(record.exc_info[1], Exception)


def open_browser(url: str) -> None:
    """Open a page in the user's browser, and do not wait for it."""
    Thread(target=_open, args=(url,), daemon=True).start()


def _open(url: str) -> None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:  # w3m and its like would take the terminal
        browser.open(url)


def main() -> None:
    """Serve beside a run, until stdin ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    os.nice(_BEHIND_THE_RUN)
    server = make_server(Path(settings["output_dir"]), settings["hosts"], settings["token"])

    def stop_with_the_run() -> None:
        while os.read(0, 1):
            pass
        server.should_exit = True
        time.sleep(3 * _TO_END)
        os._exit(1)  # whatever it hangs in, nobody is there any more to end it

    Thread(target=stop_with_the_run, daemon=True).start()
    if settings["open"]:
        open_browser(settings["open"])
    server.run(sockets=[socket.socket(fileno=settings["socket"])])


if __name__ == "__main__":
    main()
