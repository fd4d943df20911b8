"""Who is answered: those who know the token; and what a browser may do with the answer."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_IN_URL = ":/%#?=@[]!$&'()*+,;"
_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def guards(hosts: Sequence[str], token: str) -> list[Middleware]:
    """Return what stands before an app.

    Args:
        hosts: Names in the Host header that are answered: others are another site's page that
            reaches for this one (DNS rebinding).
        token: What `?token=…` or the cookie that this sets must be; empty for none.
    """
    return [
        Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
        Middleware(Guard, token=token),
    ]


class Guard:
    """Asks for the token, and adds the headers that every answer has."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
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
