"""Run the baseline: the bare `openai` client, called as often as main.py calls it.

    python -m benchmarks.bare_client URL BODIES --calls 1000 --in-flight 16 --way typed

The client cycles through the bodies of a file, sending `--in-flight` at once under a semaphore, as
a typical script does, and checks that each reply has text.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI, DefaultAioHttpClient

from mdagents_llm.providers.direct import DirectPosts
from mdagents_llm.providers.pool import Pool
from mdagents_llm.wire import Endpoint

TYPED, RAW = "typed", "raw"
AIOHTTP = "-aiohttp"
"""Suffix of a way that uses the aiohttp transport of the openai package."""
POOL = "pool"
"""Way of a run: URL and headers of the SDK, sent over our own pool."""
WAYS = (TYPED, RAW, TYPED + AIOHTTP, RAW + AIOHTTP, POOL)

Call = Callable[[dict[str, Any]], Awaitable[str | None]]
"""Function that sends a request body and returns the text of the reply."""


def _typed(client: AsyncOpenAI) -> Call:
    async def call(body: dict[str, Any]) -> str | None:
        completion: Any = await client.chat.completions.create(**body)
        text: str | None = completion.choices[0].message.content
        return text

    return call


def _raw(client: AsyncOpenAI) -> Call:
    async def call(body: dict[str, Any]) -> str | None:
        response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
        reply: dict[str, Any] = json.loads(response.content)
        text: str | None = reply["choices"][0]["message"]["content"]
        return text

    return call


def _pooled(client: AsyncOpenAI, pool: Pool, model: str) -> Call:
    posts = DirectPosts(openai, client, "/chat/completions", model, pool)

    async def call(body: dict[str, Any]) -> str | None:
        reply: dict[str, Any] = json.loads(await posts.read(await posts.open(body)))
        text: str | None = reply["choices"][0]["message"]["content"]
        return text

    return call


async def make_calls(
    base_url: str, bodies: Sequence[dict[str, Any]], *, calls: int, in_flight: int, way: str
) -> None:
    """Make `calls` calls over one client, with at most `in_flight` at once.

    Raises:
        ValueError: A reply has no text.
    """
    http_client = DefaultAioHttpClient() if way.endswith(AIOHTTP) else None
    pool = Pool(Endpoint(base_url, "any", attempt_timeout=120))
    client = AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0, http_client=http_client)
    async with client, aclosing(pool):
        if way == POOL:
            call = _pooled(client, pool, str(bodies[0]["model"]))
        else:
            call = _typed(client) if way.startswith(TYPED) else _raw(client)
        slots = asyncio.Semaphore(in_flight)

        async def one(number: int) -> None:
            async with slots:
                if not await call(bodies[number % len(bodies)]):
                    raise ValueError("a reply has no text")

        await asyncio.gather(*(one(number) for number in range(calls)))


def main(argv: Sequence[str] | None = None) -> int:
    """Make the calls of the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare_client")
    add = parser.add_argument
    add("base_url")
    add("bodies", type=Path, help="file of request bodies, one JSON object a line")
    add("--calls", type=int, required=True)
    add("--in-flight", type=int, default=16)
    add("--way", choices=WAYS, default=TYPED)
    options = parser.parse_args(argv)
    lines = options.bodies.read_text(encoding="utf-8").splitlines()
    asyncio.run(
        make_calls(
            options.base_url,
            [json.loads(line) for line in lines],
            calls=options.calls,
            in_flight=options.in_flight,
            way=options.way,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
