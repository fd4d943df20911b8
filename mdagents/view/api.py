"""JSON API with the contents of the pages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mdagents.agents.case import make_case_id
from mdagents.live.case import LiveCase
from mdagents.live.runs import ListedRun, UnreadableRun
from mdagents.view.lookup import run_of, watches_of
from mdagents.view.results import read_recorded

SCHEMA_VERSION = "1.0.0"

_CASE = TypeAdapter(LiveCase)


async def runs(request: Request) -> Response:
    """Answer with all runs, and with the names and errors of unreadable ones."""
    watch = watches_of(request).list
    await watch.refresh()
    return _answer(
        {
            "runs": [_listed(run) for run in watch.listed if isinstance(run, ListedRun)],
            "unreadable": [
                {"name": run.name, "error": run.why}
                for run in watch.listed
                if isinstance(run, UnreadableRun)
            ],
        }
    )


async def run(request: Request) -> Response:
    """Answer with a run: totals, questions in progress and decided questions."""
    watch = await run_of(request)
    await watch.all_read()
    return _answer(
        {
            **_listed(watch.run),
            "under_way": [_summary(case) for case in watch.live.under_way],
            "decided": await asyncio.to_thread(watch.index.outcomes),
        }
    )


async def question(request: Request) -> Response:
    """Answer with the full state of a question."""
    watch = await run_of(request)
    case = watch.case(request.path_params["case"])
    if case is None:
        id_ = request.path_params["case"]
        await watch.all_read()
        recorded = await asyncio.to_thread(read_recorded, watch.run, watch.index, id_)
        if recorded is not None and recorded.ledger_trouble:
            raise HTTPException(500, recorded.ledger_trouble)  # it would state 0 tokens
        case = None if recorded is None else recorded.page.case
    if case is None:
        raise HTTPException(404, "this run has no such question, or has not started it")
    return _answer(_CASE.dump_python(case, mode="json"))


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
    body = json.dumps({"schema_version": SCHEMA_VERSION, **content})  # ASCII, like the feed
    return Response(body, media_type="application/json")
