"""Has files read in a process of its own, which is ended when its time is up."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE

from pydantic import ValidationError

from mdagents.mcp.reader import READING_SECONDS, Job, Outcome
from mdagents_llm.errors import ConfigError
from mdagents_llm.processes import end_child, run_module

_AT_ONCE = 2  # jobs; others wait, within their time


class ReaderPool:
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
    command, variables = run_module("mdagents.mcp.reader")
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=variables
    )
    try:
        text, _ = await process.communicate(job.model_dump_json().encode())
    finally:
        await end_child(process)
    return text
