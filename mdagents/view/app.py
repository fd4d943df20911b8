"""The server of the live view: runs, their questions and the stream of what happens, as JSON.

It reads only, answers no host that it does not serve, and looks names up in a listing, so that no
part of a path comes from a request.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from watchfiles import awatch

from mdagents.agents.case import make_case_id
from mdagents.live import LIVE_FILE, FeedReader
from mdagents.live.case import LiveCase
from mdagents.view.address import LOOPBACK
from mdagents.view.runs import ListedRun, Runs

SCHEMA_VERSION = "1.0.0"

_CASE = TypeAdapter(LiveCase)
_IN_URL = ":/%#?=@[]!$&'()*+,;"
_LONGEST_SILENCE = 1_000  # ms, after which a file is looked at though nobody told of a change
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def make_app(output_dir: Path, *, hosts: Sequence[str] = LOOPBACK, token: str = "") -> Starlette:
    """Make the server of an output folder.

    Args:
        output_dir: Where runs are.
        hosts: Names in the Host header that are answered: others are another site's page that
            reaches for this one (DNS rebinding).
        token: What `?token=…` or the cookie that this sets must be; empty for none.
    """
    app = Starlette(
        routes=[
            Route("/api/runs", _runs),
            Route("/api/runs/{run}", _run),
            Route("/api/runs/{run}/questions/{case}", _question),
            Route("/runs/{run}/events", _events),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(_Guard, token=token),
        ],
        exception_handlers={HTTPException: _error},
    )
    app.state.runs = Runs(output_dir)
    return app


class _Guard:
    """Asks for the token, and adds the headers that every answer has."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in _HEADERS.items()),
                ]
            await send(message)

        app: ASGIApp = self._app
        if self._token:
            # A browser sends a cookie to all ports: one view must not take that of another.
            cookie = f"token-{request.url.port}"
            in_address = request.query_params.get("token", "")
            given = in_address or request.cookies.get(cookie, "")
            if not secrets.compare_digest(given.encode(), self._token.encode()):
                app = Response("give the token that was printed with the address", 401)
            elif in_address and "text/html" in request.headers.get("accept", ""):
                app = _without_token(request, cookie)
        await app(scope, receive, send_with_headers)


def _without_token(request: Request, cookie: str) -> Response:
    """Keep the token in a cookie, and send the browser to the address without it.

    Not by a redirect: to a page that is reached from another site's link that would be one more
    step from there, on which a browser leaves a strict cookie out.
    """
    url = quote(str(request.url.remove_query_params("token")), safe=_IN_URL)
    answer = Response(headers={"refresh": f"0; url={url}"}, media_type="text/html")
    token = request.query_params["token"]
    answer.set_cookie(cookie, token, path="/", httponly=True, samesite="strict")
    return answer


async def _error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _runs(request: Request) -> Response:
    runs: Runs = request.app.state.runs
    return _answer({"runs": [_listed(run) for run in runs.list()]})


async def _run(request: Request) -> Response:
    run = _found(request)
    live = request.app.state.runs.live(run)
    return _answer(
        {
            **_listed(run),
            "last": live.last,
            "under_way": [_summary(case) for case in live.under_way],
            "decided": [_summary(case) for case in live.decided],
        }
    )


async def _question(request: Request) -> Response:
    live = request.app.state.runs.live(_found(request))
    for case in live.cases.values():
        if make_case_id(*case.item) == request.path_params["case"]:
            return _answer(_CASE.dump_python(case, mode="json"))
    raise HTTPException(404, "the feed of this run tells of no such question")


async def _events(request: Request) -> Response:
    run = _found(request)
    seen = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    if not seen.isdecimal():
        raise HTTPException(400, "Last-Event-ID is a number of a line")
    return EventSourceResponse(_stream(run.folder, int(seen)), ping=15)


async def _stream(folder: Path, after: int) -> AsyncIterator[ServerSentEvent]:
    """Yield the lines of a feed after a number, until the run is finished."""
    path = folder / LIVE_FILE
    reader = FeedReader(path, after)
    changes = awatch(
        folder,
        watch_filter=lambda _, changed: changed.endswith(LIVE_FILE),
        debounce=50,
        rust_timeout=_LONGEST_SILENCE,
        yield_on_timeout=True,
        recursive=False,
    )
    is_there = path.exists()
    for line in reader.read():
        yield _event(line.n, line.encoded())
    async for _ in changes:
        for line in reader.read():
            yield _event(line.n, line.encoded())
        if not path.exists():
            if is_there:
                yield ServerSentEvent("{}", event="end")
            return
        is_there = True


def _event(n: int, line: bytes) -> ServerSentEvent:
    return ServerSentEvent(line.decode().rstrip("\n"), id=str(n))


def _found(request: Request) -> ListedRun:
    runs: Runs = request.app.state.runs
    run = runs.get(request.path_params["run"])
    if run is None:
        raise HTTPException(404, "there is no such run")
    return run


def _listed(run: ListedRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "state": run.state,
        "dataset": run.manifest.dataset,
        "models": run.manifest.models,
        "questions": run.questions,
        "totals": run.totals.model_dump(mode="json"),
    }


def _summary(case: LiveCase) -> dict[str, Any]:
    return {
        "case": make_case_id(*case.item),
        "item": case.item,
        "level": case.routed and case.routed.level,
        "phase": case.turns[-1].phase if case.turns else "",
        "speaking": [turn.role for turn in case.speaking],
        "votes": case.votes,
        "answer": case.ended and case.ended.answer,
    }


def _answer(content: dict[str, Any]) -> Response:
    body = json.dumps({"schema_version": SCHEMA_VERSION, **content})  # ASCII, as the feed
    return Response(body, media_type="application/json")
