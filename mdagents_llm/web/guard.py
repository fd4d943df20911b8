"""Access control of a web server: the token, allowed hosts, and security headers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_USUAL_PORTS = {"http": ":80", "https": ":443"}
CHALLENGE = {"www-authenticate": 'Bearer realm="mdagents"'}
"""Headers of a 401: how the token is given (RFC 9110, section 15.5.2)."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def _as_text(message: str) -> Response:
    return Response(f"{message}\n", 400, media_type="text/plain")


def guards(
    hosts: Sequence[str],
    token: str,
    *,
    flag: str = "--view-host",
    refusal: Callable[[str], ASGIApp] = _as_text,
) -> list[Middleware]:
    """Return the middleware that protects an app.

    Args:
        hosts: Allowed values of the Host header; others indicate a page of another site that
            reaches for this server (DNS rebinding).
        token: Token that `?token=…`, the cookie set by this middleware or a bearer token must be;
            empty for none.
        flag: Flag that names a further host, for the error message.
        refusal: Makes the response to a request to another host, of a message.
    """
    return [
        Middleware(HostGuard, hosts=hosts, flag=flag, refusal=refusal),
        Middleware(Guard, token=token),
        Middleware(WithoutSlash),
    ]


class HostGuard:
    """Middleware that refuses requests to other hosts, and says how a host is named."""

    def __init__(
        self, app: ASGIApp, hosts: Sequence[str], flag: str, refusal: Callable[[str], ASGIApp]
    ) -> None:
        self._app = app
        self._hosts = list(hosts)
        # It does not say which hosts are served: a page of another site may read this.
        self._refusal = refusal(
            "This server does not answer to this host name. If the name is its own, for example "
            f"behind a proxy, start it with {flag} NAME."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to one of the hosts to the app, and refuse others."""
        is_served = False

        async def serve(*_: object) -> None:
            nonlocal is_served
            is_served = True

        async def discard(_: Message) -> None:
            pass

        check = TrustedHostMiddleware(serve, allowed_hosts=self._hosts, www_redirect=False)
        await check(scope, receive, discard)
        await (self._app if is_served else self._refusal)(scope, receive, send)


class Guard:
    """Middleware that requires the token and adds security headers to every response.

    A WebSocket that a browser opens must also come from a page of this server: a page of another
    site may open one to any address, and the browser lets it read the messages.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an authorized request to the app, and refuse others."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._answer_to(HTTPConnection(scope))
        await app(scope, receive, send_with_headers)

    def _answer_to(self, request: HTTPConnection) -> ASGIApp:
        is_socket = request.scope["type"] == "websocket"
        if is_socket and not is_from_own_page(request):
            return Response("a socket can be opened by a page of this server only", 403)
        if not self._token:
            return self._app
        # A browser sends a cookie to all ports: one view must not take the cookie of another.
        cookie = f"token-{request.url.port}"
        in_address = request.query_params.get("token", "")
        given = in_address or request.cookies.get(cookie, "") or bearer_of(request)
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return Response("give the token that was printed with the address", 401, CHALLENGE)
        if in_address and not is_socket and "text/html" in request.headers.get("accept", ""):
            return _without_token(request, cookie)
        return self._app


class WithoutSlash:
    """Middleware that answers `/v1/models/` as `/v1/models`.

    A redirect would name the address that this server sees, which is not that of a proxy.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app."""
        if scope["type"] == "http":
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        await self._app(scope, receive, send)


def bearer_of(request: HTTPConnection) -> str:
    """Return the bearer token that a request gives; empty without one."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def is_from_own_page(request: HTTPConnection) -> bool:
    """Return whether a request is not from another site's page; non-browsers send no origin."""
    origin = request.headers.get("origin")
    if origin is None:
        return True
    try:
        scheme, netloc, *_ = urlsplit(origin)
    except ValueError:
        return False
    usual = _USUAL_PORTS.get(scheme, "")  # which browsers leave out, and some proxies state
    host = request.headers.get("host", "").lower().removesuffix(usual)
    return netloc.lower().removesuffix(usual) == host


def _without_token(request: HTTPConnection, cookie: str) -> Response:
    """Store the token in a cookie, and send the browser to the URL without the token.

    A redirect would not work: after a link from another site it counts as a cross-site request, in
    which a browser omits a strict cookie. So a `refresh` header is used.
    """
    query = request.url.remove_query_params("token").query
    # Without scheme and host, which may be those of a proxy; `//` would begin with a host.
    there = "/" + quote(request.scope["path"].lstrip("/")) + (f"?{query}" if query else "")
    answer = Response(headers={"refresh": f"0; url={there}"}, media_type="text/html")
    token = request.query_params["token"]
    answer.set_cookie(cookie, token, path="/", httponly=True, samesite="strict")
    return answer
