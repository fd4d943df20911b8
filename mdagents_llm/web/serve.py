"""Serves an app to browsers, and opens one."""

from __future__ import annotations

import logging
import webbrowser
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from mdagents_llm.web.address import SERVER

LONGEST_MESSAGE = 2**16
"""Bytes of a message that comes over a socket; a longer one ends the connection."""


def server_of(app: ASGIApp, to_end: int) -> uvicorn.Server:
    """Make the server of an app; it runs until SIGINT, SIGTERM or its `should_exit`.

    Args:
        app: What answers.
        to_end: Seconds that answers under way get at the end.
    """
    config = uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,  # an address may have the token in it
        log_config=None,
        server_header=False,
        headers=[("server", SERVER)],
        proxy_headers=False,
        ws_max_size=LONGEST_MESSAGE,
        ws_per_message_deflate=False,  # it takes memory for each socket
        timeout_graceful_shutdown=to_end,
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
