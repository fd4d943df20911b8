"""The web server of the page; it runs in the process and event loop of the program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from importlib.resources import files
from types import TracebackType
from typing import Self

from jinja2 import Environment, PackageLoader, StrictUndefined
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from demos.cdss_example.view.event_log import EventLog
from mdagents_llm.web.address import LOOPBACK, Place
from mdagents_llm.web.guard import guards
from mdagents_llm.web.serve import server_of

_PING = 15  # seconds
_TO_END = 1  # seconds that open responses get at shutdown
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "connect-src 'self'; style-src 'self'; script-src 'self'"
)
_FILES = {"/page.css": "text/css", "/page.js": "text/javascript"}


def make_app(
    log: EventLog, *, model: str, hosts: Sequence[str] = LOOPBACK, token: str = ""
) -> Starlette:
    """Create the app: the page, its style sheet and script, and the event stream.

    Args:
        log: Event log that the page streams.
        model: Name of the agents' model, shown on the page.
        hosts: Allowed values of the Host header.
        token: Access token that requests must carry; empty requires none.
    """
    templates = Environment(
        loader=PackageLoader("demos.cdss_example.view", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = templates.get_template("page.html").render(model=model)

    async def page(request: Request) -> Response:
        headers = {"content-security-policy": _POLICY}
        return Response(html, media_type="text/html", headers=headers)

    async def file(request: Request) -> Response:
        path = request.url.path
        text = files("demos.cdss_example.view").joinpath(f"templates{path}").read_text("utf-8")
        return Response(text, media_type=_FILES[path])

    async def events(request: Request) -> Response:
        seen = request.headers.get("last-event-id", "")
        return EventSourceResponse(_sent(log, seen), ping=_PING)

    routes = [Route("/", page), *(Route(path, file) for path in _FILES), Route("/events", events)]
    return Starlette(routes=routes, middleware=guards(hosts, token))


async def _sent(log: EventLog, seen: str) -> AsyncIterator[ServerSentEvent]:
    async with aclosing(log.since(seen)) as news:
        async for id_, messages in news:
            yield ServerSentEvent(json.dumps(messages), id=id_)
    yield ServerSentEvent("", event="end")


class PageServer:
    """Serves the page within `async with`; on exit, open pages are notified.

    Args:
        place: Address to listen on.
        model: Name of the agents' model, shown on the page.
    """

    def __init__(self, place: Place, *, model: str) -> None:
        self.log = EventLog()
        """Event log that the page streams."""
        self._place = place
        app = make_app(self.log, model=model, hosts=place.hosts, token=place.token)
        self._server = server_of(app, _TO_END)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._place.socket]))
        await asyncio.sleep(0)  # let the server install its signal handlers
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._task is not None, "it was entered"
        self.log.close()
        self._server.should_exit = True
        await self._task
