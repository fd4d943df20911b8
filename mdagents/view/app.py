"""ASGI application of the live view: pages, streams of their changes, and a JSON API.

The application writes nothing but ratings, rejects unknown hosts, and looks names up in a listing,
so that no part of a path comes from a request.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from urllib.parse import urlencode

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from exaid_core.trace.files import RecordError
from mdagents.agents.case import make_case_id
from mdagents.display.labels import label_of
from mdagents.live.runs import RunState
from mdagents.pages.from_records import Recorded
from mdagents.pages.layout import make_frame, templates
from mdagents.pages.run import RunLine
from mdagents.records.pictures import PICTURES
from mdagents.scoring.fields import plain
from mdagents.view import api
from mdagents.view.follower import RunWatch, Update, Watches, live_page, rating_address
from mdagents.view.lookup import folder_of, run_of, watches_of
from mdagents.view.rating import new_key, rating_routes
from mdagents.view.record_index import Query
from mdagents.view.reports import Reports
from mdagents.view.responses import http_error, no_icon, page_of, trouble
from mdagents.view.results import read_recorded
from mdagents.view.subprocess_view import ENDS
from mdagents_llm.errors import ConfigError
from mdagents_llm.web.address import LOOPBACK
from mdagents_llm.web.guard import guards

_PING = 15  # seconds
_DIGITS = 18  # maximum digits of a version
_PICTURE_NAME = re.compile(r"[0-9a-f]{64}\.(png|jpg|webp|gif)")
_MEDIA_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "gif": "image/gif",
}  # fmt: skip
_OF_A_PICTURE = {
    "cache-control": "private, max-age=86400, immutable",
    # A browser shows a picture alone in a page that it makes itself, with a style sheet.
    "content-security-policy": "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; sandbox",
}


def make_app(
    output_dir: Path, *, hosts: Sequence[str] = LOOPBACK, token: str = "", again: str = ""
) -> Starlette:
    """Make the application that serves an output folder.

    Args:
        output_dir: Folder of the runs.
        hosts: Host names that are answered; see `guards`.
        token: Token that clients must give; empty requires none.
        again: Command that shows the runs after the server has ended with its run; empty if the
            server outlives runs.
    """
    app = Starlette(
        routes=[
            Route("/api/runs", api.runs),
            Route("/api/runs/{run}", api.run),
            Route("/api/runs/{run}/questions/{case}", api.question),
            Route("/", _list_page),
            Route("/events", _list_events),
            Route("/favicon.ico", no_icon),
            Route("/compare", _comparison),
            Route("/runs/{run}", _run_page),
            Route("/runs/{run}/events", _events),
            Route("/runs/{run}/questions", _rows),
            Route("/runs/{run}/report", _report),
            Route("/runs/{run}/pictures/{picture}", _picture),
            Route("/runs/{run}/questions/{case}", _question_page),
            *rating_routes(),
        ],
        middleware=guards(hosts, token),
        exception_handlers={
            HTTPException: http_error,
            ConfigError: _unreadable,
            RecordError: _unreadable,
        },
    )
    app.state.watches = Watches(output_dir)
    app.state.output_dir = output_dir
    app.state.again = again
    app.state.reports = Reports()
    app.state.rating_key = new_key()
    return app


async def _unreadable(request: Request, error: Exception) -> Response:
    return trouble(request, str(error), 500)


async def _list_page(request: Request) -> Response:
    watch = watches_of(request).list
    await watch.refresh()
    return page_of(
        "page_runs.html",
        make_frame("board.js", "keys.js", "live.js"),
        folder=request.app.state.output_dir.name,
        studies=[part.html() for part in watch.study_parts()],
        board=watch.board,
        rows=[part.html() for part in watch.board.parts() if part.into == "rows"],
        events="/events",
        after=watch.pages.version(""),
        again=request.app.state.again,
    )


async def _run_page(request: Request) -> Response:
    watch = await run_of(request)
    page, is_live, query = watch.page, watch.is_live, _query(request)
    found = None if page.is_reading else await asyncio.to_thread(watch.index.find, query)
    return page_of(
        "page_run.html",
        make_frame("list.js", "list_of_server.js", "pictures.js", "keys.js", "live.js"),
        page=page,
        found=found,
        query=query,
        more=_in_address(query),
        events=f"{page.line.address}/events" if is_live else "",
        after=watch.pages.version("") if is_live else 0,
        again=request.app.state.again,
    )


async def _rows(request: Request) -> Response:
    """Answer with one page of the list of decided questions: rows as HTML, and their number."""
    watch = await run_of(request)
    await watch.all_read()
    query = _query(request)
    start = _count_of(request.query_params.get("start", "0"), "start")
    found = await asyncio.to_thread(watch.index.find, query, start)
    listed = templates().get_template("list.html").module
    more, address = _in_address(query), watch.page.line.address
    html = "".join(str(listed.found_row(address, more, row)) for row in found.rows)  # type: ignore[attr-defined]
    return JSONResponse({"count": found.count, "more": more, "rows": plain(html)})


def _query(request: Request) -> Query:
    """Return the query that an address asks for; unknown filters and columns are ignored."""
    asked = request.query_params
    return Query(
        tag=asked.get("tag", ""),
        level=asked.get("level", ""),
        text=asked.get("text", ""),
        sort=asked.get("sort", ""),
        descending=asked.get("order") == "descending",
    )


def _in_address(query: Query) -> str:
    """Return the query as the end of an address; empty for the whole list in its order."""
    asked = {"tag": query.tag, "level": query.level, "text": query.text, "sort": query.sort}
    asked["order"] = "descending" if query.descending else ""
    words = urlencode({name: value for name, value in asked.items() if value})
    return f"?{words}" if words else ""


async def _question_page(request: Request) -> Response:
    watch = await run_of(request)
    id_ = request.path_params["case"]
    case, query = watch.case(id_), _query(request)
    if case is None:
        await watch.all_read()
    recorded = await _recorded(watch, id_)
    if recorded is not None and (case is None or watch.is_finished):
        page = recorded.page
    elif case is not None:
        page = live_page(case, watch.run)
    else:
        raise HTTPException(404, "this run has no such question, or has not started it")
    line, more = watch.page.line, _in_address(query)
    is_live = case is not None and watch.is_live
    before, after = await asyncio.to_thread(_beside, watch, id_, query)
    return page_of(
        "page_question.html",
        make_frame("question.js", "pictures.js", "keys.js", "live.js"),
        page=page,
        recorded=recorded,
        label=label_of(page.case.item),
        line=line,
        more=more,
        rate=rating_address(page.case, watch.run) if recorded or page.case.ended else "",
        previous=before and f"{line.address}/questions/{before}{more}",
        next=after and f"{line.address}/questions/{after}{more}",
        events=f"{line.address}/events?case={id_}" if is_live else "",
        after=watch.pages.version(id_) if is_live else 0,
        again=request.app.state.again,
    )


async def _recorded(watch: RunWatch, case_id: str) -> Recorded | None:
    """Return a question from the records of its run; None if it has no record."""
    run = watch.run
    return await asyncio.to_thread(
        read_recorded, run, watch.index, case_id, RunLine(run).pictures_at
    )


def _beside(watch: RunWatch, case_id: str, query: Query) -> tuple[str | None, str | None]:
    """Return the previous and the next question; decided ones precede those in progress."""
    in_progress = [make_case_id(*case.item) for case in watch.live.under_way]
    if watch.index.record(case_id) is not None:
        before, after = watch.index.beside(case_id, query)
        is_last = after is None and query == Query()
        return before, in_progress[0] if is_last and in_progress else after
    if case_id not in in_progress:
        return None, None
    place = in_progress.index(case_id)
    return (
        in_progress[place - 1] if place else watch.index.last(),
        in_progress[place + 1] if place + 1 < len(in_progress) else None,
    )


async def _picture(request: Request) -> Response:
    """Return a picture of a run's folder; its name is the identity of its content."""
    folder = await folder_of(request, request.path_params["run"])
    name = request.path_params["picture"]
    path = folder / PICTURES / name
    found = _PICTURE_NAME.fullmatch(name)
    if not found or path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        raise HTTPException(404, "this run has no such picture")
    return FileResponse(path, media_type=_MEDIA_TYPES[found[1]], headers=_OF_A_PICTURE)


async def _report(request: Request) -> Response:
    return await _made(request, request.path_params["run"])


async def _comparison(request: Request) -> Response:
    names = request.query_params.getlist("run")
    if len(names) < 2:
        raise HTTPException(400, "a comparison needs two runs or more")
    return await _made(request, *names, common="common" in request.query_params)


async def _made(request: Request, *names: str, common: bool = False) -> Response:
    """Return a report of runs, as made by `evaluate_text_output.py --html`."""
    folders = tuple([await folder_of(request, name) for name in names])
    making = asyncio.ensure_future(request.app.state.reports.of(folders, common=common))
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((making, leaving), return_when=asyncio.FIRST_COMPLETED)
        content = making.result() if making.done() else b""  # the client is gone
    except ConfigError as error:
        raise HTTPException(400, str(error)) from error
    finally:
        making.cancel()
        leaving.cancel()
    headers = {"content-security-policy": "frame-ancestors 'none'"}  # the page has its own policy
    return Response(content, media_type="text/html", headers=headers)


async def _left(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _list_events(request: Request) -> Response:
    pages = watches_of(request).list.pages
    return EventSourceResponse(_sent(request, pages.updates("", _after(request))), ping=_PING)


async def _events(request: Request) -> Response:
    watch = await run_of(request)
    page = request.query_params.get("case", "")
    if page and watch.case(page) is None:
        raise HTTPException(404, "the feed of this run tells of no such question")
    updates = watch.pages.updates(page, _after(request))
    return EventSourceResponse(_sent(request, updates, watch, page), ping=_PING)


def _after(request: Request) -> int:
    """Return the page version that the browser shows.

    Raises:
        HTTPException: The version is not a number.
    """
    seen = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    return _count_of(seen, "Last-Event-ID")


def _count_of(asked: str, name: str) -> int:
    if not (asked.isascii() and asked.isdecimal()):
        raise HTTPException(400, f"{name} is a number from 0")
    return int(asked[:_DIGITS])


async def _sent(
    request: Request, updates: AsyncGenerator[Update], watch: RunWatch | None = None, id_: str = ""
) -> AsyncIterator[ServerSentEvent]:
    """Yield the changes of a page and, in the last event, why they end.

    Args:
        request: Request for the stream.
        updates: Changes of the page.
        watch: Watch of the page's run; None for the run list.
        id_: Case id of the page's question; empty for other pages.
    """
    async with aclosing(updates):
        async for version, operations in updates:
            yield ServerSentEvent(json.dumps(operations), id=str(version))
    if watch is not None and watch.is_finished and id_:
        recorded = await _recorded(watch, id_)
        if recorded is not None:  # more complete than the feed, whose end may not have been read
            html = templates().get_template("question.html").render(
                page=recorded.page, recorded=recorded
            )  # fmt: skip
            yield ServerSentEvent(json.dumps([("put", "question", "", plain(html))]))
    yield ServerSentEvent(json.dumps(_last_words(request, watch)), event="end")


_ENDED = {RunState.FINISHED: "The run is finished", RunState.INTERRUPTED: "The run was interrupted"}


def _last_words(request: Request, watch: RunWatch | None) -> str:
    """Return the notice for a page that no longer changes; empty if it should reload."""
    is_finished = watch is not None and watch.is_finished
    if not is_finished and not watches_of(request).have_ended:
        return ""
    again = request.app.state.again
    said = [_ENDED.get(watch.run.state, "") if watch else "", f"{ENDS}: {again}" if again else ""]
    return "; ".join(filter(None, said))
