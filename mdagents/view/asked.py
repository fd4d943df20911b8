"""What a request asks for, looked up among what is there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from mdagents.live.runs import ListedRun, UnreadableRun
from mdagents.view.watch import RunWatch, Watches

_Found = TypeVar("_Found", RunWatch, ListedRun)


async def run_of(request: Request) -> RunWatch:
    """Return the run of an address, up to date.

    Raises:
        HTTPException: There is none, or it cannot be read.
    """
    return _there(await watches_of(request).of(request.path_params["run"]))


async def folder_of(request: Request, name: str) -> Path:
    """Return the folder of a run.

    Raises:
        HTTPException: There is none, or it cannot be read.
    """
    return _there(await asyncio.to_thread(watches_of(request).runs.get, name)).folder


def _there(found: _Found | UnreadableRun | None) -> _Found:
    if found is None:
        raise HTTPException(404, "there is no such run")
    if isinstance(found, UnreadableRun):
        raise HTTPException(409, found.why)
    return found


def watches_of(request: Request) -> Watches:
    """Return what is looked at in the folder of the server."""
    watches: Watches = request.app.state.watches
    return watches
