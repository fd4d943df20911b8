"""Requests that bypass the SDK are the requests that the SDK would send."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import aclosing
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic import AsyncAnthropic
from openai import AsyncAzureOpenAI, AsyncOpenAI

from mdagents_llm.providers.direct import DirectPosts
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.sending import sending
from mdagents_llm.wire import Endpoint

BODY = {"model": "m/1", "messages": [{"role": "user", "content": 'Wé "quote" \\ \n\t😀'}], "n": 0.5}

Connect = Callable[[httpx2.AsyncClient], Any]

CLIENTS: list[tuple[ModuleType, str, Connect]] = [
    (
        openai,
        "/chat/completions",
        lambda http: AsyncOpenAI(base_url="http://h:81/v1/", api_key="k", http_client=http),
    ),
    (
        openai,
        "/responses",
        lambda http: AsyncOpenAI(
            base_url="https://h/a?tenant=b",
            api_key="k",
            organization="o",
            default_headers={"X-Own": "1"},
            http_client=http,
        ),
    ),
    (
        openai,
        "/chat/completions",
        lambda http: AsyncAzureOpenAI(
            azure_endpoint="https://h.example",
            api_version="2026-01-01",
            api_key="k",
            http_client=http,
        ),
    ),
    (anthropic, "/v1/messages", lambda http: AsyncAnthropic(api_key="k", http_client=http)),
]


@pytest.mark.parametrize(("sdk", "path", "connect"), CLIENTS)
async def test_a_request_is_the_one_of_the_sdk(
    sdk: ModuleType, path: str, connect: Connect
) -> None:
    seen = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={})

    async with connect(httpx2.AsyncClient(transport=httpx2.MockTransport(answer))) as client:
        await client.post(path, body=BODY, cast_to=httpx2.Response)
        posts = DirectPosts(sdk, client, path, "m/1")
        for _ in range(2):
            assert await posts.read(await posts.open(BODY)) == b"{}"
    theirs, *ours = seen
    for our in ours:
        assert (our.method, our.url, our.content) == (theirs.method, theirs.url, theirs.content)
        assert sorted(our.headers.multi_items()) == sorted(theirs.headers.multi_items())
        assert our.extensions == theirs.extensions


async def test_a_proxy_of_the_client_is_used() -> None:
    def through(name: str) -> httpx2.MockTransport:
        return httpx2.MockTransport(lambda _: httpx2.Response(200, text=name))

    http = httpx2.AsyncClient(transport=through("direct"), mounts={"https://": through("proxy")})
    async with AsyncOpenAI(base_url="https://h/v1", api_key="k", http_client=http) as client:
        posts = DirectPosts(openai, client, "/responses", "m")
        assert await posts.read(await posts.open({})) == b"proxy"


@pytest.mark.parametrize("status", [304, 400, 500])
async def test_a_status_that_is_no_success_is_the_sdks_error(status: int) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, json={"error": "no"}))
    http = httpx2.AsyncClient(transport=transport)
    async with AsyncOpenAI(base_url="https://h/v1", api_key="k", http_client=http) as client:
        posts = DirectPosts(openai, client, "/responses", "m")
        with pytest.raises(openai.APIStatusError) as caught:
            await posts.open({})
    assert caught.value.status_code == status
    assert caught.value.response.json() == {"error": "no"}


@pytest.mark.parametrize("status", [200, 429])
async def test_a_packed_body_is_unpacked_whatever_the_status(status: int) -> None:
    content = b'{"error": {"message": "slow down"}}'

    async def answer(_: web.Request) -> web.Response:
        headers = {"content-encoding": "gzip", "retry-after": "7"}
        return web.Response(status=status, headers=headers, body=gzip.compress(content))

    app = web.Application()
    app.router.add_post("/v1/responses", answer)
    async with TestServer(app) as server:
        endpoint = Endpoint(str(server.make_url("/v1")), "k", attempt_timeout=5)
        client = AsyncOpenAI(base_url=endpoint.base_url, api_key="k", **sending(endpoint))
        pool = Pool(endpoint)
        posts = DirectPosts(openai, client, "/responses", "m", pool)
        async with client, aclosing(pool):
            if status == 200:
                assert await posts.read(await posts.open({})) == content
                return
            with pytest.raises(openai.RateLimitError, match="slow down") as caught:
                await posts.open({})
    assert caught.value.response.headers["retry-after"] == "7"
