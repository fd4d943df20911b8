"""The web app of Medagen: its routes and error responses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from demos.medagen.chat import FAILED, NO_CONVERSATION, Assistant, Chat, sentence_of
from demos.medagen.conversation import Conversation
from demos.medagen.limits import Admission, BodyLimit, LimitError, Limits
from demos.medagen.message_texts import Wording, load_wording
from demos.medagen.report import Reports
from demos.medagen.schemas import Language, RulesResult, TriageInput, TriageRequest, TriageResult
from demos.toolkit.sessions import SessionBusyError, UnknownSessionError
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.web.address import LOOPBACK
from mdagents_llm.web.guard import guards, is_from_own_page

if TYPE_CHECKING:
    from demos.toolkit.program_spans import ProgramSpans

_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "connect-src 'self'; style-src 'self'; script-src 'self'; require-trusted-types-for 'script'"
)
_FILES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "report.css": "text/css",
}
_ERRORS = (HTTPException, RequestValidationError, BenchError, Exception)
_SENTENCES = {404: "there is no such page", 405: "this address takes another method"}

UserId = Annotated[str, Query(max_length=64)]


def make_app(
    assistant: Assistant,
    *,
    hosts: Sequence[str] = LOOPBACK,
    token: str = "",
    limits: Limits | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    spans: ProgramSpans | None = None,
) -> FastAPI:
    """Create the app.

    Args:
        assistant: Assistant that answers messages.
        hosts: Allowed values of the Host header.
        token: Access token that requests must carry; empty requires none.
        limits: Limits of a client's requests; None uses the defaults.
        monotonic: Clock of the rate limits in seconds.
        spans: Spans of the program, which are placed below those of its clients; None: none are
            made.
    """
    limits = limits or Limits()
    admission = Admission(limits, monotonic)
    wording = load_wording()
    app = FastAPI(
        title="Medagen",
        description="Triage in Vietnamese and English. Not a medical device.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the documentation page would load scripts from another site
        redoc_url=None,
        # Never send patients' texts to a telemetry collector, whatever the environment says. The
        # spans of --otel hold none.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        middleware=[
            *guards(hosts, token),
            Middleware(BodyLimit, most=limits.body),
            *_below_clients(spans),
        ],
        exception_handlers=dict.fromkeys(_ERRORS, _refused),
    )
    app.include_router(_page(wording))
    app.include_router(_api(assistant, admission, Reports(wording)))

    @app.websocket("/ws/chat")
    async def chat(socket: WebSocket) -> None:
        try:
            with admission.socket():
                await socket.accept()
                await Chat(socket, assistant, admission, _host_of(socket)).run()
        except LimitError as error:
            await socket.send_denial_response(_limited(error))

    return app


def _below_clients(spans: ProgramSpans | None) -> list[Middleware]:
    if spans is None:
        return []
    from demos.toolkit.program_spans import ClientSpans

    return [Middleware(ClientSpans, spans=spans)]


def _api(assistant: Assistant, admission: Admission, reports: Reports) -> APIRouter:
    async def check_client(request: Request) -> None:
        if not is_from_own_page(request):
            raise HTTPException(403, "a page of another site may not ask")
        admission.check_client(_host_of(request))

    api = APIRouter(prefix="/api", dependencies=[Depends(check_client)])

    @api.post("/health-check")
    async def health_check(request: TriageRequest) -> TriageResult:
        """Answer a message, without reporting the steps."""
        admission.check_user(request.user_id)
        with admission.turn():
            return await assistant.triage(request)

    @api.post("/triage/rules")
    def rules(given: TriageInput, language: Language = Language.VIETNAMESE) -> RulesResult:
        """Return the result of the rules, without asking a model."""
        return assistant.rules(given, language)

    @api.get("/conversations/{session_id}")
    async def conversation(session_id: str, user_id: UserId) -> Conversation:
        """Return a conversation of the user."""
        admission.check_user(user_id)
        return await assistant.conversation(session_id, user_id)

    @api.get("/reports/{session_id}", response_class=Response)
    async def report(session_id: str, user_id: UserId) -> Response:
        """Return a printable report of a conversation of the user."""
        admission.check_user(user_id)
        html = reports.html_of(await assistant.conversation(session_id, user_id))
        return Response(html, media_type="text/html", headers={"content-security-policy": _POLICY})

    return api


def _page(wording: Wording) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    get = partial(router.api_route, methods=["GET", "HEAD"])  # monitors ask with HEAD
    folder = files("demos.medagen").joinpath("page")
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in _FILES}

    @get("/")
    async def page() -> Response:
        headers = {"content-security-policy": _POLICY}
        return Response(texts["page.html"], media_type="text/html", headers=headers)

    @get("/page/words.json")
    async def words() -> JSONResponse:
        return JSONResponse(wording.texts)

    @get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in texts:
            raise HTTPException(404)
        return Response(texts[name], media_type=_FILES[name])

    @get("/healthz")
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    return router


def _host_of(request: HTTPConnection) -> str:
    """Return the client's address from the connection, since headers can be forged."""
    return request.client.host if request.client else ""


def _limited(error: LimitError) -> JSONResponse:
    headers = {"retry-after": str(error.retry_after)}
    return JSONResponse({"error": str(error)}, error.status, headers)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """Return an error response, always as one sentence in the same form."""
    match error:
        case HTTPException():
            sentence = _SENTENCES.get(error.status_code, error.detail)
            return JSONResponse({"error": sentence}, error.status_code, error.headers)
        case RequestValidationError():
            status, sentence = 422, sentence_of(error.errors())
        case UnknownSessionError():
            status, sentence = 404, NO_CONVERSATION
        case SessionBusyError():
            status, sentence = 409, str(error)
        case ConfigError():
            status, sentence = 422, str(error)
        case LimitError():
            return _limited(error)
        case _:
            status, sentence = 500, FAILED
    return JSONResponse({"error": sentence}, status)
