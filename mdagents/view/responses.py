"""Responses that the applications of the live view share: pages and errors."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mdagents.pages.layout import Frame, make_frame, templates
from mdagents.scoring.fields import plain


def page_of(template: str, frame: Frame, *, status: int = 200, **values: object) -> Response:
    """Return a page made of a template, with the policy of its frame."""
    html = templates().get_template(template).render(frame=frame, **values)
    headers = {"content-security-policy": frame.policy}
    return Response(plain(html), status, media_type="text/html", headers=headers)


def trouble(request: Request, what: str, status: int) -> Response:
    """Return an error: as JSON from the API, otherwise as a page with links."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": what}, status)
    what, can_be_common, _ = what.partition("; --common")
    common = f"{request.url.path}?{request.url.query}&common=1" if can_be_common else ""
    return page_of(
        "page_error.html",
        make_frame("keys.js"),
        status=status,
        what=what.rstrip("."),
        common=common,
        events="",
    )


async def http_error(request: Request, error: Exception) -> Response:
    """Answer with the status and the detail of an HTTPException."""
    assert isinstance(error, HTTPException)
    response = trouble(request, error.detail, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def no_icon(_: Request) -> Response:
    """Answer that there is no icon, for which browsers ask where a page may have pictures."""
    return Response(status_code=204)
