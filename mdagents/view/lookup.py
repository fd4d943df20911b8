"""Lookup of the runs that requests name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from mdagents.live.runs import ListedRun, UnreadableRun
from mdagents.view.follower import RunWatch, Watches

_Found = TypeVar("_Found", RunWatch, ListedRun)


async def run_of(request: Request) -> RunWatch:
    """Return the watch of the run in a request's path, up to date.

    Raises:
        HTTPException: The run does not exist (404) or cannot be read (409).
    """
    return _there(await watches_of(request).of(request.path_params["run"]))


async def folder_of(request: Request, name: str) -> Path:
    """Return the folder of a run.

    Raises:
        HTTPException: The run does not exist (404) or cannot be read (409).
    """
    return _there(await asyncio.to_thread(watches_of(request).runs.get, name)).folder


def _there(found: _Found | UnreadableRun | None) -> _Found:
    if found is None:
        raise HTTPException(404, "there is no such run")
    if isinstance(found, UnreadableRun):
        raise HTTPException(409, found.why)
    return found


def watches_of(request: Request) -> Watches:
    """Return the watches of the server's output folder."""
    watches: Watches = request.app.state.watches
    return watches
