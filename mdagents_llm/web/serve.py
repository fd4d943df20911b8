"""Serves an app to browsers, and opens a browser."""

from __future__ import annotations

import logging
import webbrowser
from threading import Thread

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from mdagents_llm.web.address import SERVER

LONGEST_MESSAGE = 2**16
"""Maximum size of an incoming WebSocket message in bytes; a longer one ends the connection."""


def server_of(
    app: ASGIApp, to_end: int, name: str = SERVER, *, keep_alive: int = 5
) -> uvicorn.Server:
    """Create the server of an app; it runs until SIGINT, SIGTERM or its `should_exit`.

    Args:
        app: ASGI app to serve.
        to_end: Seconds that responses in progress get to finish at shutdown.
        name: Value of the `server` header.
        keep_alive: Seconds after which an idle connection is closed.
    """
    config = uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,  # a URL may contain the token
        log_config=None,
        server_header=False,
        headers=[("server", name)],
        proxy_headers=False,
        ws_max_size=LONGEST_MESSAGE,
        ws_per_message_deflate=False,  # compression takes memory for each socket
        timeout_graceful_shutdown=to_end,
        timeout_keep_alive=keep_alive,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_fault)
    return uvicorn.Server(config)


def is_of_no_leaver(record: logging.LogRecord) -> bool:
    """Return whether a log record is not of a client that left before it had sent its request."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def _is_fault(record: logging.LogRecord) -> bool:
    """Return whether a log record is a real error, not a stream cut off at shutdown."""
    is_error = record.exc_info is not None and isinstance(record.exc_info[1], Exception)
    return is_error and is_of_no_leaver(record)


def open_browser(url: str) -> None:
    """Open a page in the user's browser without waiting for it."""
    Thread(target=_open, args=(url,), daemon=True).start()


def _open(url: str) -> None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:  # w3m etc. would take over the terminal
        browser.open(url)
