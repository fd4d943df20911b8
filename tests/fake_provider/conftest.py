"""The real SDKs, pointed at the fake provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel

from mdagents_llm.json_schema import reply_schema
from tests.fake_provider import FakeProvider

Ask = Callable[..., Awaitable[Any]]
SYSTEM = "You are a panel of physicians."
QUESTION = "A 54-year-old man has chest pain. What is the next step?"


@pytest.fixture
async def ask_openai(provider: FakeProvider) -> AsyncIterator[Ask]:
    """Asks for a chat completion; keyword arguments go to `create`."""
    # No TLS here, and loading the certificates takes longer than most tests.
    transport = DefaultAsyncHttpxClient(verify=False)
    async with AsyncOpenAI(
        base_url=provider.openai_base_url, api_key="any", max_retries=0, http_client=transport
    ) as client:

        async def ask(
            question: str = QUESTION, *, schema: type[BaseModel] | None = None, **options: Any
        ) -> Any:
            if schema is not None:
                wrapper = {"name": schema.__name__, "schema": reply_schema(schema)}
                options["response_format"] = {"type": "json_schema", "json_schema": wrapper}
            return await client.chat.completions.create(
                model="gpt-test",
                messages=[
                    {"role": "system", "content": SYSTEM},
                    {"role": "user", "content": question},
                ],
                **options,
            )

        yield ask


@pytest.fixture
async def ask_gemini(provider: FakeProvider) -> AsyncIterator[Ask]:
    """Asks for content over httpx2; keyword arguments go to the `GenerateContentConfig`.

    `patience` is in seconds. Left to itself the SDK would use aiohttp wherever that happens to be
    installed, and retry there.
    """
    with httpx2.Client(verify=False) as blocking:
        async with httpx2.AsyncClient(verify=False) as transport:
            options = types.HttpOptions(
                base_url=provider.gemini_base_url,
                httpx_client=blocking,
                httpx_async_client=transport,
            )
            models = genai.Client(api_key="any", http_options=options).aio.models

            async def ask(
                question: str = QUESTION,
                *,
                schema: type[BaseModel] | None = None,
                stream: bool = False,
                patience: float | None = None,
                **config: Any,
            ) -> Any:
                if schema is not None:
                    config["response_mime_type"] = "application/json"
                    config["response_json_schema"] = reply_schema(schema)
                if patience is not None:
                    config["http_options"] = types.HttpOptions(timeout=int(patience * 1000))
                settings = types.GenerateContentConfig(system_instruction=SYSTEM, **config)
                generate = models.generate_content_stream if stream else models.generate_content
                return await generate(model="gemini-test", contents=question, config=settings)

            yield ask
