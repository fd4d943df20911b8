"""The server: HTTP around the fake model, and a log of what it served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Self

from aiohttp import web

from tests.fake_provider.anthropic_api import AnthropicApi
from tests.fake_provider.batch_routes import BatchRoutes
from tests.fake_provider.batches import Batches, SeenBatch
from tests.fake_provider.call_log import BAD_REQUEST, OK, SCRIPT_ERROR, CallLog, ServedCall
from tests.fake_provider.chat_api import ChatApi, SeenRequest, Usage
from tests.fake_provider.delivery import Exchange, json_response
from tests.fake_provider.gemini_api import GeminiApi
from tests.fake_provider.model import FakeModel
from tests.fake_provider.openai_api import OpenAIApi
from tests.fake_provider.responses_api import ResponsesApi
from tests.fake_provider.schema_filler import UnsupportedSchemaError
from tests.fake_provider.script import Hold, Match, predicate_of

_START_SECONDS = 60.0
_SHUTDOWN_SECONDS = 0.01  # until what is in flight is broken; 0 would mean never
_LONGEST_BODY = 1 << 30  # bytes


class FakeProvider(FakeModel):
    """A `FakeModel` behind HTTP; `with` starts and stops it.

    Attributes:
        latency: Seconds before the first byte of a reply.
        pace: Seconds between two pieces of a streamed reply.
        batches: Requests that came in batches, and what a test lets happen to them.
        errors: What rules, predicates and policies raised; leaving the `with` block raises the
            first of them.

    Args:
        seed: Decides all that is made up.
        keep_calls: False: keep counters only, so that memory does not grow.
        port: Where `start` serves; 0 takes a free one.
    """

    def __init__(self, seed: int = 0, *, keep_calls: bool = True, port: int = 0) -> None:
        super().__init__(seed)
        self.port = port
        self.latency = 0.0
        self.pace = 0.0
        self.errors: list[Exception] = []
        self._log = CallLog(keep=keep_calls)
        self._holds: list[Hold] = []
        self.batches = Batches(self._answer_line)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    # -- life -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *exc_info: object) -> None:
        self.stop()
        if self.errors and exc_type is None:
            raise self.errors[0]

    def start(self) -> None:
        """Serve from a thread of its own, with its own event loop, until `stop`.

        Raises:
            TimeoutError: It does not come up.
        """
        started = threading.Event()

        async def serve() -> None:
            async with self.listening():
                self._stopping = asyncio.Event()
                started.set()
                await self._stopping.wait()

        self._thread = threading.Thread(
            target=lambda: asyncio.run(serve()), name="fake-provider", daemon=True
        )
        self._thread.start()
        if not started.wait(_START_SECONDS):
            raise TimeoutError(f"the fake provider did not start within {_START_SECONDS} s")

    def stop(self) -> None:
        """Break what is in flight and end the thread."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Serve from the running event loop within the block; its end breaks what is in flight."""
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=_LONGEST_BODY)
        app.add_routes(self.routes())
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port, backlog=1024).start()
            self.port = runner.addresses[0][1]
            yield
        finally:
            await runner.cleanup()

    @property
    def openai_base_url(self) -> str:
        """What an OpenAI client takes as `base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """What an Anthropic client takes as `base_url`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def gemini_base_url(self) -> str:
        """What a google-genai client takes as `http_options.base_url`."""
        return f"http://127.0.0.1:{self.port}"

    def hold(self, match: Match = None) -> Hold:
        """Keep matching requests waiting from now on, until the hold is released.

        Raises:
            RuntimeError: The server is not running.
        """
        if self._loop is None:
            raise RuntimeError("start the fake provider before holding its requests")
        hold = Hold(predicate_of(match), self._loop)
        self._holds.append(hold)
        return hold

    # -- what happened --------------------------------------------------------------------------

    @property
    def calls(self) -> list[ServedCall]:
        """All requests for replies that have been dealt with, in order of arrival (a copy)."""
        return self._log.calls

    @property
    def totals(self) -> Usage:
        """Sum of the usage of every reply that reached its client whole (`ServedCall.billed`)."""
        return self._log.totals

    @property
    def outcomes(self) -> dict[str, int]:
        """How many requests had each outcome."""
        return self._log.outcomes

    def wait_for_calls(self, count: int, timeout: float = 180.0) -> None:
        """Block until `count` requests have been dealt with, whatever their outcome.

        For what no reply tells, such as that the server has noticed a client hanging up. From a
        coroutine: `await asyncio.to_thread(provider.wait_for_calls, 3)`.

        Raises:
            TimeoutError: They were not within `timeout` seconds.
        """
        self._log.wait(count, timeout)

    @property
    def in_flight(self) -> int:
        """How many requests for replies are being served now."""
        return self._log.in_flight

    @property
    def max_in_flight(self) -> int:
        """How many requests for replies were served at one time, at most."""
        return self._log.max_in_flight

    def reset(self) -> None:
        """Forget all calls, counters and cached prompts; rules, holds and faults stay.

        Arrival numbers start again at 0, so that the fault plan repeats itself.
        """
        self._log.forget()
        self.forget_prompts()

    # -- serving --------------------------------------------------------------------------------

    def routes(self) -> Iterable[web.RouteDef]:
        """Return what is served."""

        def serving(api: ChatApi) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
            async def serve(http: web.Request) -> web.StreamResponse:
                return await self._serve(api, http)

            return serve

        openai, gemini = serving(OpenAIApi()), serving(GeminiApi())
        responses = serving(ResponsesApi())
        return [
            *BatchRoutes(self.batches).routes(),
            web.post("/v1/chat/completions", openai),
            web.post("/v1/responses", responses),
            web.post("/v1/messages", serving(AnthropicApi())),
            web.post("/{version}/models/{call}", gemini),
            # Azure: by the dated API, by the versionless one. Vertex AI: by project, by key.
            web.post("/openai/deployments/{deployment}/chat/completions", openai),
            web.post("/openai/v1/chat/completions", openai),
            web.post("/openai/responses", responses),
            web.post("/openai/v1/responses", responses),
            web.post(
                "/{version}/projects/{project}/locations/{location}/publishers/google/models/{call}",
                gemini,
            ),
            web.post("/{version}/publishers/google/models/{call}", gemini),
        ]

    def latency_of(self, request: SeenRequest) -> float:
        """Return the seconds before the first byte of a reply."""
        return self.latency

    async def _serve(self, api: ChatApi, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        index = self._log.arrive()
        started = time.monotonic()
        try:
            request = api.read(index, http.match_info.get("call", ""), json.loads(body))
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            self._log.add(BAD_REQUEST)
            self._log.leave()
            return json_response(api.refusal_of(f"Your request is wrong: {error!r}", 400))
        exchange = Exchange(self._log, api, http, request, started, self.pace)
        try:
            return await self._answer(exchange)
        except (asyncio.CancelledError, ConnectionError):
            exchange.client_gone()
            raise
        except Exception as error:  # a defect of the server itself
            self.errors.append(error)
            raise
        finally:
            exchange.leave()

    def _answer_line(
        self, batch: SeenBatch, key: str, body: Mapping[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        """Answer a line of a batch: (status, body)."""
        apis: Mapping[str, ChatApi] = {
            "openai": OpenAIApi(), "responses": ResponsesApi(), "gemini": GeminiApi(),
            "anthropic": AnthropicApi(),
        }  # fmt: skip
        api = apis[batch.api]
        call = f"{batch.model}:generateContent" if batch.model else ""
        started = time.monotonic()
        request = api.read(self._log.arrive(), call, body)
        self._log.leave()
        fault = self.fault_for(request)
        error = api.error(fault, self.faults, request) if fault else None
        answer = self.answer(request, fault, api.refusal_text)
        asked = {f.name: getattr(request, f.name) for f in fields(request)}
        call_of_line = ServedCall(
            **asked,
            status=error.status if error else 200,
            outcome=str(fault or OK),
            reply="" if error else answer.text,
            usage=Usage() if error else answer.usage,
            started=started,
            ended=time.monotonic(),
            batch=batch.id,
        )
        self._log.add(call_of_line.outcome, call_of_line)
        return (error.status, error.body) if error else (200, api.reply(request, answer))

    async def _answer(self, exchange: Exchange) -> web.StreamResponse:
        request, api = exchange.request, exchange.api
        try:
            fault = self.fault_for(request)
            answer = self.answer(request, fault, api.refusal_text)
            for hold in self._holds:
                await hold.keep(request)
        except UnsupportedSchemaError as error:
            return exchange.error(api.refusal_of(str(error), 400), BAD_REQUEST)
        except Exception as error:  # noqa: BLE001 - it came from the test's own code: stop() tells
            self.errors.append(error)
            return exchange.error(api.refusal_of(repr(error), 500), SCRIPT_ERROR)
        if latency := self.latency_of(request):
            await asyncio.sleep(latency)
        return await exchange.deliver(answer, fault, self.faults)
