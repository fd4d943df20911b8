"""Has files read in a process of its own, which is ended when its time is up."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE

from pydantic import ValidationError

from mdagents.mcp.reader import Job, Outcome
from mdagents_llm.errors import ConfigError

READING_SECONDS = 120.0
"""Time that reading and scoring of files may take."""
_AT_ONCE = 2  # jobs; others wait, within their time


class Reading:
    """Does jobs in processes, a few at a time.

    Args:
        seconds: Time that a job may take, waiting included.
    """

    def __init__(self, seconds: float = READING_SECONDS) -> None:
        self._seconds = seconds
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def outcome_of(self, job: Job) -> Outcome:
        """Return what came of a job; cancelling it ends its process.

        Raises:
            ConfigError: It failed, or took too long.
        """
        try:
            async with asyncio.timeout(self._seconds), self._free:
                text = await _run(job)
        except TimeoutError:
            raise ConfigError(f"reading took longer than {self._seconds:g} s") from None
        try:
            outcome = Outcome.model_validate_json(text)
        except ValidationError:
            raise ConfigError("reading ended without a result") from None
        if outcome.error:
            raise ConfigError(outcome.error)
        return outcome


async def _run(job: Job) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mdagents.mcp.reader", stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    try:
        text, _ = await process.communicate(job.model_dump_json().encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return text
