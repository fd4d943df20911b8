"""ASGI application: the two APIs, the list of models, health and metrics."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mdagents.records.sample import SampleRecord
from mdagents.serve.chat_completions import ChatWire
from mdagents.serve.errors import TOO_MUCH, ApiError, invalid
from mdagents.serve.event_stream import EventStreamResponse, until_gone
from mdagents.serve.metrics import CONTENT_TYPE
from mdagents.serve.progress import Line, Progress
from mdagents.serve.replies import Wire, json_bytes
from mdagents.serve.requests import Ask, read_chat, read_responses
from mdagents.serve.responses_api import ResponsesWire
from mdagents.serve.service import Service
from mdagents_llm.errors import ConfigError, is_debugging
from mdagents_llm.files.json_text import load_json
from mdagents_llm.web.guard import bearer_of, guards, is_from_own_page

LARGEST_BODY = 32 * 2**20
"""Maximum size of the body of a request in bytes: a question with several pictures."""
_TO_RETURN = 10  # seconds after which a server may be back
_OPEN = frozenset({"/health"})
"""Paths that need no token."""
_DISCOVERY = "/.well-known/"
"""Where MCP clients ask without a token for an authorization server; 404 says there is none."""
_NOT_FOUND = 404
_OFFERED = (
    "POST /v1/chat/completions, POST /v1/responses and GET /v1/models are: end the base URL in /v1"
)
_GONE = 499
"""Status for the metrics of a request whose client has left, as nginx names it."""
Lines = asyncio.Queue[Line | None]
"""Lines of a debate in brief as they are written; None after the last one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of requests and responses, in seconds."""

    to_arrive: float = 60.0
    """Time for the body of a request."""
    to_fail: float = 10.0
    """Time for which a stream waits for its first reply, so that an early error has its status."""
    ping: float = 15.0
    """Time between comments that keep a silent stream open."""


@dataclass(frozen=True, slots=True)
class _Api:
    read: Callable[[Mapping[str, Any]], Ask]
    wire: Callable[[Ask], Wire]


_CHAT = _Api(read_chat, ChatWire)
_RESPONSES = _Api(read_responses, ResponsesWire)


def make_app(hosts: Sequence[str], token: str, timing: Timing | None = None) -> Starlette:
    """Make the application; `app.state.service` must be set before the first request.

    Args:
        hosts: Host names that are answered; see `guards`. With a token all are: a page of another
            site does not have it.
        token: Token that clients give as their API key; empty requires none.
        timing: Times of requests and responses; None for the defaults.
    """
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", _chat, methods=["POST"]),
            Route("/v1/responses", _responses, methods=["POST"]),
            Route("/v1/models", _models),
            Route("/v1/models/{model:path}", _model),
            Route("/health", _health),
            Route("/metrics", _metrics),
        ],
        middleware=[
            *guards(["*"] if token else hosts, "", flag="--host", refusal=_refused_host),
            Middleware(Access, token=token),
        ],
        exception_handlers={
            ApiError: _failed,
            HTTPException: _not_found,
            Exception: _unexpected,
        },
    )
    app.router.redirect_slashes = False
    app.state.timing = timing or Timing()
    return app


class Access:
    """Middleware that requires the token as an API key, and refuses pages of other sites."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an authorized request to the app, and refuse others."""
        app = self._app
        if scope["type"] == "http":
            refusal = self._refusal(HTTPConnection(scope))
            app = _response_of(refusal) if refusal else app
        await app(scope, receive, send)

    def _refusal(self, request: HTTPConnection) -> ApiError | None:
        if not is_from_own_page(request):
            return ApiError(403, "pages of other sites are not answered", "forbidden_origin")
        path = request.scope["path"]
        if not self._token or path in _OPEN or path.startswith(_DISCOVERY):
            return None
        if secrets.compare_digest(bearer_of(request).encode(), self._token):
            return None
        return ApiError(401, "give the server's token as the API key", "invalid_api_key")


def _response_of(error: ApiError) -> Response:
    return Response(
        json_bytes(error.body()), error.status, error.headers(), media_type="application/json"
    )


def _refused_host(message: str) -> Response:
    return _response_of(invalid(message, code="invalid_host"))


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _response_of(error)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {ascii(request.url.path)[1:-1]:.200} is not offered"
    if error.status_code == _NOT_FOUND:
        found = ApiError(_NOT_FOUND, f"{what}; {_OFFERED}", "not_found")
    else:
        found = ApiError(error.status_code, what, "method_not_allowed")
    response = _response_of(found)
    response.headers.update(error.headers or {})
    return response


async def _unexpected(request: Request, error: Exception) -> Response:
    return _response_of(ApiError(500, f"unexpected {type(error).__name__}", "unexpected"))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _health(request: Request) -> Response:
    service = _service(request)
    state = "draining" if service.is_draining() else "ok"
    body = {"status": state, "in_progress": service.in_progress, "places": service.places}
    return _json(body, 503 if service.is_draining() else 200)


async def _metrics(request: Request) -> Response:
    return Response(_service(request).metrics.text(), headers={"content-type": CONTENT_TYPE})


async def _models(request: Request) -> Response:
    names = [f"mdagents/{name}" for name in _service(request).names]
    return _json({"object": "list", "data": [_described(name) for name in names]})


async def _model(request: Request) -> Response:
    name = request.path_params["model"]
    _service(request).team(name)
    return _json(_described(name))


def _described(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "mdagents"}


async def _chat(request: Request) -> Response:
    return await _answer(request, _CHAT)


async def _responses(request: Request) -> Response:
    return await _answer(request, _RESPONSES)


def _json(body: object, status: int = 200) -> Response:
    return Response(json_bytes(body), status, media_type="application/json")


async def _answer(request: Request, api: _Api) -> Response:
    """Answer one request, whole or as a stream."""
    service, team = _service(request), "unknown"
    timing: Timing = request.app.state.timing

    def counted(status: int) -> None:
        service.metrics.requests.labels(team, str(status)).inc()

    try:
        ask = api.read(await _body(request, timing.to_arrive))
        team = service.team(ask.model).name
        lines = Lines()
        progress = Progress(lines.put_nowait)
        task = service.start(ask, progress.tell, _trace_headers(request))
        task.add_done_callback(lambda _: lines.put_nowait(None))
        if ask.stream:
            return await _streamed(request, api.wire(ask), task, lines, timing, counted)
        if not await _finished(request, task):
            counted(_GONE)
            return Response(status_code=_GONE)
        body = api.wire(ask).whole(_record_of(task), progress.lines)
    except ApiError as error:
        counted(error.status)
        return _response_of(error)
    except ClientDisconnect:
        counted(_GONE)
        return Response(status_code=_GONE)
    except Exception as error:
        if is_debugging():
            raise
        counted(500)
        return await _unexpected(request, error)
    counted(200)
    return _json(body)


def _trace_headers(request: Request) -> Mapping[str, str]:
    """Return the headers in which a client states its span; one that is sent twice is invalid."""
    names = ("traceparent", "tracestate")
    return {name: ",".join(request.headers.getlist(name)) for name in names}


async def _body(request: Request, seconds: float) -> Mapping[str, Any]:
    """Return the body of a request.

    Raises:
        ApiError: The body is too large, compressed, arrives too slowly, or is no JSON object.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # what a form of another site's page could send
        raise ApiError(415, "content-type must be application/json", "unsupported_media_type")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        what = f"content-encoding is {encoding!r:.40} but the body must be sent as it is"
        raise ApiError(415, what, "unsupported_encoding", accepts="identity")
    large = ApiError(
        TOO_MUCH, f"the body is larger than {LARGEST_BODY // 2**20} MB", "request_too_large"
    )
    stated = request.headers.get("content-length", "0")
    if stated.isdecimal() and int(stated) > LARGEST_BODY:
        raise large
    content = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                content += piece
                if len(content) > LARGEST_BODY:
                    raise large
    except TimeoutError:
        raise ApiError(408, f"the body took more than {seconds:g} s", "timeout") from None
    try:
        body = load_json(bytes(content), "the body")
    except ConfigError as error:
        raise invalid(str(error), code="invalid_json") from None
    if not isinstance(body, dict):
        raise invalid("the body must be a JSON object", code="invalid_json")
    return body


async def _finished(request: Request, task: asyncio.Task[SampleRecord]) -> bool:
    """Wait for an answer; return False, with its calls stopped, if the client leaves before."""
    gone = asyncio.ensure_future(until_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        gone.cancel()
        if not task.done():
            await _stop(task)
        await asyncio.gather(gone, return_exceptions=True)


def _record_of(task: asyncio.Task[SampleRecord]) -> SampleRecord:
    """Return the record of a task that is done.

    Raises:
        ApiError: The question was not answered, or the server stopped it.
    """
    if task.cancelled():
        raise ApiError(503, "the server has ended", "shutting_down", retry_after=_TO_RETURN)
    return task.result()


async def _stop(task: asyncio.Task[SampleRecord]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _streamed(
    request: Request,
    wire: Wire,
    task: asyncio.Task[SampleRecord],
    lines: Lines,
    timing: Timing,
    counted: Callable[[int], None],
) -> Response:
    """Return a stream; an error before its first event has its own status instead.

    Raises:
        ApiError: The question was not answered.
    """
    first = asyncio.ensure_future(_until_a_reply(lines))
    gone = asyncio.ensure_future(until_gone(request.receive))
    try:
        either: set[asyncio.Future[Any]] = {first, gone}
        await asyncio.wait(either, timeout=timing.to_fail, return_when=asyncio.FIRST_COMPLETED)
        has_left = gone.done() and not task.done()
    except asyncio.CancelledError:
        has_left = True
        raise
    finally:
        gone.cancel()
        if has_left:
            await _stop(task)
    if has_left:
        first.cancel()
        counted(_GONE)
        return Response(status_code=_GONE)
    if first.done() and first.result()[-1] is None:
        _record_of(task)  # raises the error, if it is one
    stream = _Stream(wire, task, lines, first, timing.ping)

    async def at_end() -> None:
        await _stop(task)
        counted(stream.status)

    return EventStreamResponse(stream.events(), at_end)


async def _until_a_reply(lines: Lines) -> list[Line | None]:
    """Return the lines up to one that tells of a reply, or to the end."""
    taken = [await lines.get()]
    while (last := taken[-1]) is not None and not last.is_of_reply:
        taken.append(await lines.get())
    return taken


class _Stream:
    """The events of an answer.

    Args:
        wire: Form of the events.
        task: Task that answers.
        lines: Lines of the debate in brief.
        first: Its first lines.
        ping: Seconds between comments while nothing happens.
    """

    def __init__(
        self,
        wire: Wire,
        task: asyncio.Task[SampleRecord],
        lines: Lines,
        first: asyncio.Future[list[Line | None]],
        ping: float,
    ) -> None:
        self._wire = wire
        self._task = task
        self._lines = lines
        self._first = first
        self._ping = ping
        self.status = _GONE
        """Status for the metrics."""

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the events, with comments in between while nothing happens."""
        for event in self._wire.begin():
            yield event
        async for line in self._lines_and_pauses():
            for event in [b": ping\n\n"] if line is None else self._wire.thought(line.text):
                yield event
        try:
            events, self.status = self._wire.finish(_record_of(self._task)), 200
        except ApiError as error:
            events, self.status = self._wire.fail(error), error.status
        for event in events:
            yield event

    async def _lines_and_pauses(self) -> AsyncGenerator[Line | None, None]:
        """Yield the lines, and None after a while without one."""
        getting: asyncio.Future[Any] = self._first
        try:
            while True:
                await asyncio.wait({getting}, timeout=self._ping)
                if not getting.done():
                    yield None
                    continue
                taken = getting.result()
                for line in taken if isinstance(taken, list) else [taken]:
                    if line is None:
                        return
                    yield line
                getting = asyncio.ensure_future(self._lines.get())
        finally:
            getting.cancel()
