"""Plays recorded traces in the page of a question, with the summaries of their run logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exaid_core.logged_summaries import read_summaries
from exaid_core.trace.files import RecordError
from exaid_core.trace.traces import read_trace
from mdagents.live.case import LiveCase
from mdagents.live.frozen import FrozenTrace
from mdagents.live.replay import replayed_trace
from mdagents.pages.from_records import Recorded
from mdagents.pages.layout import make_frame
from mdagents.pages.question import QuestionPage
from mdagents.view.responses import no_icon, page_of, trouble
from mdagents_llm.web.address import LOOPBACK
from mdagents_llm.web.guard import guards

_NO_LOG = "There is no run log of EXAID beside this trace: it is played without summaries."


_LINE = SimpleNamespace(title="Traces", address="/")


def played(frozen: FrozenTrace) -> Recorded:
    """Return the page contents of a trace.

    Raises:
        RecordError: The trace or its log cannot be read.
    """
    trace = read_trace(frozen.path)
    summaries = read_summaries(trace, frozen.log) if frozen.log else []
    case = LiveCase((trace.meta.case_id, 1))
    for line in replayed_trace(trace, summaries):
        case.take(line)
    return Recorded(QuestionPage(case, ()), (), () if frozen.log else (_NO_LOG,), (), "")


def make_traces_app(
    traces: Sequence[FrozenTrace],
    unreadable: Sequence[str] = (),
    *,
    speed: float = 1,
    hosts: Sequence[str] = LOOPBACK,
    token: str = "",
) -> Starlette:
    """Make the application that plays traces.

    Args:
        traces: Traces to play.
        unreadable: Why other files are left out.
        speed: Multiple of real time at which a page plays.
        hosts: Host names that are answered; see `guards`.
        token: Token that clients must give; empty requires none.
    """

    async def shown_list(_: Request) -> Response:
        return page_of(
            "page_traces.html",
            make_frame("keys.js"),
            traces=traces,
            unreadable=unreadable,
            events="",
        )

    async def shown_trace(request: Request) -> Response:
        number = request.path_params["number"]
        if not 1 <= number <= len(traces):
            raise HTTPException(404, "there is no such trace")
        frozen = traces[number - 1]
        recorded = await asyncio.to_thread(played, frozen)
        return page_of(
            "page_question.html",
            make_frame("question.js", "pictures.js", "keys.js", "live.js"),
            page=recorded.page,
            recorded=recorded,
            label=frozen.name,
            line=_LINE,
            more="",
            rate="",
            previous=traces[number - 2].address if number > 1 else None,
            next=traces[number].address if number < len(traces) else None,
            events="",
            after=0,
            speed=f"{speed:g}",
        )

    async def error(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return trouble(request, error.detail, error.status_code)
        return trouble(request, str(error), 500)

    return Starlette(
        routes=[
            Route("/", shown_list),
            Route("/favicon.ico", no_icon),
            Route("/traces/{number:int}", shown_trace),
        ],
        middleware=guards(hosts, token),
        exception_handlers={HTTPException: error, RecordError: error},
    )
