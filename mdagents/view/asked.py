"""What a request asks for, looked up among what is there."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

from mdagents.view.watch import RunWatch, Watches


async def run_of(request: Request) -> RunWatch:
    """Return the run of an address, up to date.

    Raises:
        HTTPException: There is none.
    """
    watch = await watches_of(request).of(request.path_params["run"])
    if watch is None:
        raise HTTPException(404, "there is no such run")
    return watch


def watches_of(request: Request) -> Watches:
    """Return what is looked at in the folder of the server."""
    watches: Watches = request.app.state.watches
    return watches
