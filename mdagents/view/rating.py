"""Pages on which clinicians rate answers and summaries, and the application of a blind rating.

A blind application serves runs as `run-1`, `run-2`, … in an order of its own. Neither names, models
and methods nor agents and votes are in what it sends.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from exaid_core.templates import LABELS
from exaid_core.trace.files import RecordError
from mdagents.live.runs import ListedRun
from mdagents.pages.from_records import Recorded
from mdagents.pages.layout import make_frame
from mdagents.records.ratings import ASKED, LONGEST_REMARK, Rating, add_ratings, read_ratings
from mdagents.view.follower import RunWatch, Watches
from mdagents.view.lookup import run_of, watches_of
from mdagents.view.record_index import PAGE, Query
from mdagents.view.responses import http_error, no_icon, page_of, trouble
from mdagents.view.results import read_recorded
from mdagents_llm.clock import Clock
from mdagents_llm.errors import ConfigError
from mdagents_llm.validation import first_problem
from mdagents_llm.web.address import LOOPBACK
from mdagents_llm.web.guard import guards, is_from_own_page

_LONGEST_BODY = 8192  # bytes
_FIELDS = 20
_A_YEAR = 365 * 86_400  # seconds
_COOKIE = "rater"
_HIDDEN = ("agent_contributions",)
_FORM = "application/x-www-form-urlencoded"
_OF_A_FORM = {"referrer-policy": "same-origin"}  # else a browser sends a form without an origin


@dataclass(frozen=True, slots=True)
class Item:
    """What is rated: the answer, or one summary."""

    id: str
    title: str
    lines: Sequence[tuple[str, str]]
    """(label, text) of each line; labels may be empty."""


def rating_routes() -> list[Route]:
    """Return the routes of the rating pages; the application's state has `rating_key`."""
    # One route for both methods: that of a 405 names the methods of its own.
    return [Route("/runs/{run}/questions/{case}/rate", _ratings, methods=["GET", "POST"])]


def new_key() -> str:
    """Return the key that a form must send back, which no page of another site can read."""
    return secrets.token_urlsafe()


async def _ratings(request: Request) -> Response:
    return await (_rate if request.method == "POST" else _show)(request)


async def _show(request: Request) -> Response:
    return await _page(request, await _run(request), request.cookies.get(_COOKIE, ""))


async def _rate(request: Request) -> Response:
    if not is_from_own_page(request):
        raise HTTPException(403, "a rating can be sent by a page of this server only")
    sent = await _sent(request)
    key: str = request.app.state.rating_key
    if not secrets.compare_digest(sent.pop("key", "").encode(), key.encode()):
        raise HTTPException(403, "this page is of an earlier start of the server: load it again")
    watch = await _run(request)
    case_id, recorded = request.path_params["case"], await _recorded(request, watch)
    items = {item.id for item in _items(recorded, is_blind=_is_blind(request))}
    missing = [name for name in ASKED if name not in sent]
    if sent.get("item") not in items or missing:
        what = "answer all five questions" if missing else "there is no such answer or summary"
        raise HTTPException(400, what)
    try:
        rating = Rating.model_validate({**sent, "at": Clock().timestamp(), "case_id": case_id})
    except ValidationError as error:
        raise HTTPException(400, first_problem(error)) from error
    try:
        await asyncio.to_thread(add_ratings, watch.run.folder, [rating])
    except ConfigError as error:
        raise HTTPException(500, "the rating cannot be saved in the folder of the run") from error
    response = RedirectResponse(f"{quote(request.scope['path'])}#{rating.item}", 303)
    name = quote(rating.rater)
    response.set_cookie(_COOKIE, name, max_age=_A_YEAR, httponly=True, samesite="strict")
    return response


async def _sent(request: Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        HTTPException: The body is no form, or too large.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM:
        raise HTTPException(415, f"a rating is sent as {_FORM}")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_BODY:
            raise HTTPException(413, f"a rating has at most {_LONGEST_BODY:,} bytes")
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=_FIELDS))
    except ValueError as error:
        raise HTTPException(400, "the form cannot be read") from error


async def _page(request: Request, watch: RunWatch, cookie: str) -> Response:
    rater, case_id = unquote(cookie), request.path_params["case"]
    recorded = await _recorded(request, watch)
    ratings = await asyncio.to_thread(read_ratings, watch.run.folder)
    own = {one.item: one for one in ratings if (one.rater, one.case_id) == (rater, case_id)}
    at, is_blind = request.path_params["run"], _is_blind(request)
    run_address = f"/runs/{quote(at)}"
    response = page_of(
        "page_rate.html",
        make_frame("keys.js"),
        case=recorded.page.case,
        way=_title(at) if is_blind else watch.page.line.title,
        run_address=run_address,
        back=run_address if is_blind else f"{run_address}/questions/{quote(case_id)}",
        items=list(_items(recorded, is_blind=is_blind)),
        own=own,
        rater=rater,
        asked=ASKED,
        longest=LONGEST_REMARK,
        key=request.app.state.rating_key,
        events="",
    )
    response.headers.update(_OF_A_FORM)
    return response


def _items(recorded: Recorded, *, is_blind: bool) -> Iterator[Item]:
    """Yield the answer and the summaries of a question, without who was right."""
    page, case = recorded.page, recorded.page.case
    answer = case.ended.answer if case.ended else None
    text = case.question.options.get(answer, "") if case.question and answer else ""
    lines = [("", f"{answer}: {text}" if answer else "No answer")]
    reasons = recorded.analysis if page.deciding is None else case.turns[page.deciding].text
    if reasons:
        lines.append(("Reasons", reasons))
    yield Item("answer", "The answer", lines)
    for made in case.summaries:
        shown = [
            (label, made.summary.text_of(name))
            for name, label in LABELS.items()
            if not (is_blind and name in _HIDDEN)
        ]
        yield Item(f"summary-{made.number}", f"Summary {made.number}", shown)


async def _recorded(request: Request, watch: RunWatch) -> Recorded:
    await watch.all_read()
    id_ = request.path_params["case"]
    recorded = await asyncio.to_thread(read_recorded, watch.run, watch.index, id_)
    if recorded is None:
        raise HTTPException(404, "this question is not decided yet, or there is none")
    return recorded


async def _run(request: Request) -> RunWatch:
    if not _is_blind(request):
        return await run_of(request)
    names: Mapping[str, str] = request.app.state.blind_names
    name = names.get(request.path_params["run"])
    watch = await watches_of(request).of(name) if name else None
    if not isinstance(watch, RunWatch):
        raise HTTPException(404, "there is no such run")
    return watch


def _is_blind(request: Request) -> bool:
    return hasattr(request.app.state, "blind_names")


def _title(alias: str) -> str:
    return alias.replace("-", " ").capitalize()


def make_blind_app(
    output_dir: Path, *, seed: int, hosts: Sequence[str] = LOOPBACK, token: str = ""
) -> Starlette:
    """Make the application for a blind rating of the runs of a folder.

    Args:
        output_dir: Folder of the runs.
        seed: Seed of the order of the runs.
        hosts: Host names that are answered; see `guards`.
        token: Token that clients must give; empty requires none.
    """
    app = Starlette(
        routes=[
            Route("/", _blind_list),
            Route("/favicon.ico", no_icon),
            Route("/runs/{run}", _blind_run),
            *rating_routes(),
        ],
        middleware=guards(hosts, token),
        exception_handlers={
            HTTPException: http_error,
            ConfigError: _hidden_error,
            RecordError: _hidden_error,
        },
    )
    watches = app.state.watches = Watches(output_dir)
    names = sorted(run.name for run in watches.runs.list() if isinstance(run, ListedRun))
    random.Random(seed).shuffle(names)
    app.state.blind_names = {f"run-{n}": name for n, name in enumerate(names, start=1)}
    app.state.rating_key = new_key()
    return app


async def _hidden_error(request: Request, _: Exception) -> Response:
    return trouble(request, "this question or its ratings cannot be read", 500)


async def _blind_list(request: Request) -> Response:
    names: Mapping[str, str] = request.app.state.blind_names
    entries = [(f"/runs/{alias}", _title(alias)) for alias in names]
    return _list_of("Runs to rate", entries)


async def _blind_run(request: Request) -> Response:
    watch, alias = await _run(request), request.path_params["run"]
    await watch.all_read()

    def entries() -> list[tuple[str, str]]:
        start, found = 0, []
        while rows := watch.index.find(Query(), start).rows:
            found += [(f"/runs/{alias}/questions/{quote(row.case_id)}/rate", row) for row in rows]
            start += PAGE
        return [(address, f"{row.entry.name}: {row.start}") for address, row in found]

    return _list_of(_title(alias), await asyncio.to_thread(entries))


def _list_of(title: str, entries: Sequence[tuple[str, str]]) -> Response:
    frame = make_frame("keys.js")
    return page_of("page_rate_list.html", frame, heading=title, entries=entries, events="")
