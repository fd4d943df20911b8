"""A model provider for tests: a real HTTP server that speaks OpenAI's and Gemini's chat APIs.

In a test::

    with FakeProvider(seed=1) as provider:
        provider.when_text("Moderator", {"answer": "C"})
        provider.fail_next("429", times=2)
        client = AsyncOpenAI(base_url=provider.openai_base_url, api_key="any", max_retries=0)

As a process of its own (the flags are in ``standalone.py``)::

    python -m tests.support.fake_provider --latency 0.2 --rate-429 0.2

A reply depends on the server's seed and on the model, the seed and the messages of the request,
never on the clock or on the order of requests. Which request a fault of the plan hits depends on
the server's seed and the request's arrival number.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from tests.support import gemini_wire
from tests.support.call_log import (
    BAD_REQUEST,
    SCRIPT_ERROR,
    CallLog,
    ServedCall,
    peak_in_flight,
    unread_call,
)
from tests.support.exchange import Exchange, Pace, send_json
from tests.support.fake_model import FakeModel, RequestFieldPolicy
from tests.support.faults import Fault, FaultPlan
from tests.support.gemini_wire import GeminiWire
from tests.support.http_server import HttpConnection, HttpRequest, HttpServer
from tests.support.json_schema import UnsatisfiableSchemaError
from tests.support.openai_wire import OpenAIWire
from tests.support.pattern_text import UnsupportedPatternError
from tests.support.schema_filler import MISSING
from tests.support.script import Hold, Match, Rule, predicate_of
from tests.support.wire import BadRequestError, ChatWire, JsonReply, SeenRequest, Usage

__all__ = [
    "MISSING",
    "FakeProvider",
    "Fault",
    "FaultPlan",
    "Hold",
    "Rule",
    "SeenRequest",
    "ServedCall",
    "Usage",
    "peak_in_flight",
]

_START_SECONDS = 10.0


class FakeProvider(FakeModel):
    """A :class:`FakeModel` behind HTTP; ``with`` starts and stops it.

    Attributes:
        latency: Seconds before the first byte of a reply.
        latency_spread: Seconds on top of that at the most; how many is a matter of the request's
            messages, so that the same request takes as long each time.
        latency_by_model: The same for models that differ.
        stream_seconds: Seconds over which the events of a stream are spread.
        stream_piece: Characters in each delta of a stream.
        models: Names that the list of models shows.
        errors: What rules, predicates and policies raised; leaving the ``with`` block raises the
            first of them.

    Args:
        check_strict_schemas: True: refuse strict schemas that OpenAI would refuse.
        keep_calls: False: keep counters only, so that memory does not grow.
        port: Where `start` serves; 0 takes a free one.

    The other arguments are described in :class:`FakeModel`.
    """

    def __init__(
        self,
        seed: int = 0,
        latency: float = 0.0,
        words: int = 40,
        *,
        words_by_field: Mapping[str, int] | None = None,
        reasoning_tokens: int = 0,
        stream_seconds: float = 0.0,
        stream_piece: int = 24,
        prompt_cache: bool = False,
        cache_block: int = 128,
        honour_max_tokens: bool = True,
        native_schema: bool = True,
        check_strict_schemas: bool = False,
        served_model: str | None = None,
        models: Sequence[str] = ("fake-model",),
        faults: FaultPlan | None = None,
        field_policy: RequestFieldPolicy | None = None,
        keep_calls: bool = True,
        port: int = 0,
    ) -> None:
        super().__init__(
            seed=seed,
            words=words,
            words_by_field=words_by_field or {},
            reasoning_tokens=reasoning_tokens,
            prompt_cache=prompt_cache,
            cache_block=cache_block,
            honour_max_tokens=honour_max_tokens,
            native_schema=native_schema,
            served_model=served_model,
            faults=faults or FaultPlan(),
            field_policy=field_policy,
        )
        self._wanted_port = port
        self.latency = latency
        self.latency_spread = 0.0
        self.latency_by_model: dict[str, float] = {}
        self.stream_seconds = stream_seconds
        self.stream_piece = stream_piece
        self.models = models
        self.errors: list[Exception] = []
        self._openai = OpenAIWire(check_strict=check_strict_schemas)
        self._gemini = GeminiWire()
        self._log = CallLog(keep=keep_calls)
        self._holds: list[Hold] = []
        self._server = HttpServer(self._handle)
        self._loop: asyncio.AbstractEventLoop | None = None
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
        """Serve from a thread of its own, with its own event loop, until :meth:`stop`.

        Raises:
            TimeoutError: It does not come up.
        """
        loop = asyncio.new_event_loop()
        started = threading.Event()

        def run() -> None:
            loop.run_until_complete(self.listen(self._wanted_port))
            started.set()
            loop.run_forever()
            loop.run_until_complete(self.close())
            loop.close()

        self._thread = threading.Thread(target=run, name="fake-provider", daemon=True)
        self._thread.start()
        if not started.wait(_START_SECONDS):
            raise TimeoutError(f"the fake provider did not start within {_START_SECONDS} s")

    def stop(self) -> None:
        """Break what is in flight and end the thread."""
        if self._thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None

    async def listen(self, port: int = 0) -> None:
        """Serve from the running event loop until :meth:`close`; port 0 takes a free one."""
        self._loop = asyncio.get_running_loop()
        await self._server.start(port)

    async def close(self) -> None:
        """Stop serving and break what is in flight."""
        await self._server.stop()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self._server.port

    @property
    def openai_base_url(self) -> str:
        """What an OpenAI client takes as ``base_url``."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def gemini_base_url(self) -> str:
        """What a google-genai client takes as ``http_options.base_url``."""
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
        """Sum of the usage of every reply that reached its client whole (``ServedCall.billed``)."""
        return self._log.totals

    @property
    def outcomes(self) -> dict[str, int]:
        """How many requests had each outcome."""
        return self._log.outcomes

    def wait_for_calls(self, count: int, timeout: float = 10.0) -> None:
        """Block until ``count`` requests have been dealt with, whatever their outcome.

        For what no reply tells, such as that the server has noticed a client hanging up. From a
        coroutine: ``await asyncio.to_thread(provider.wait_for_calls, 3)``.

        Raises:
            TimeoutError: They were not within ``timeout`` seconds.
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

    def stats(self) -> dict[str, Any]:
        """Return what ``GET /__stats__`` answers."""
        totals, outcomes = self.totals, self.outcomes
        return {
            "served": sum(outcomes.values()),
            "outcomes": outcomes,
            "totals": {
                "input": totals.input,
                "output": totals.output,
                "cached_input": totals.cached_input,
                "reasoning": totals.reasoning,
            },
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "connections": len(self._server.connections),
        }

    def reset(self) -> None:
        """Forget all calls, counters and cached prompts; rules, holds and faults stay.

        Arrival numbers start again at 0, so that the fault plan repeats itself.
        """
        self._log.forget()
        self.forget_prompts()

    # -- serving --------------------------------------------------------------------------------

    async def _handle(self, http: HttpRequest, connection: HttpConnection) -> None:
        wire: ChatWire | None = None
        if http.method == "POST":
            if http.path.endswith("/chat/completions"):
                wire = self._openai
            elif gemini_wire.PATH.search(http.path):
                wire = self._gemini
        if wire is None:
            send_json(connection, self._other_reply(http))
            return
        await self._serve(wire, http, connection)

    def _latency(self, request: SeenRequest) -> float:
        latency = self.latency_by_model.get(request.model, self.latency)
        if self.latency_spread:
            latency += self.latency_spread * request.key(self.seed)[0] / 255
        return latency

    def _other_reply(self, http: HttpRequest) -> JsonReply:
        """Answer what is not a request for a model's reply."""
        route = f"{http.method} {http.path}"
        if route == "GET /v1/models":
            return JsonReply(200, self._openai.models(self.models))
        if route == "GET /v1beta/models":
            return JsonReply(200, self._gemini.models(self.models))
        if route == "GET /__stats__":
            return JsonReply(200, self.stats())
        if route == "POST /__reset__":
            self.reset()
            return JsonReply(200, {})
        message = f"Unknown request URL: {route}."
        return JsonReply(404, {"error": {"message": message, "type": "invalid_request_error"}})

    async def _serve(self, wire: ChatWire, http: HttpRequest, connection: HttpConnection) -> None:
        index = self._log.arrive()
        started = time.monotonic()
        body: Mapping[str, Any] = {}
        try:
            body = _json_object(http.body)
            request = _read(wire, index, http, body)
        except BadRequestError as error:
            refusal = wire.refusal_of(error)
            ended = time.monotonic()
            self._log.add(unread_call(index, wire.api, body, refusal.status, started, ended))
            self._log.leave()
            send_json(connection, refusal)
            return
        exchange = Exchange(self._log, wire, connection, request, started)
        try:
            await self._answer(exchange)
        except asyncio.CancelledError:
            exchange.client_gone()
            raise
        except Exception as error:
            # A defect of the server itself: no client shall wait for a reply that never comes.
            self.errors.append(error)
            connection.abort()
            raise
        finally:
            exchange.leave()

    async def _answer(self, exchange: Exchange) -> None:
        request, wire = exchange.request, exchange.wire
        try:
            fault = self.fault_for(request)
            answer = self.answer(request, fault, wire.refusal_text)
            for hold in self._holds:
                await hold.keep(request)
        except (UnsatisfiableSchemaError, UnsupportedPatternError) as error:
            exchange.send_error(wire.refusal_of(BadRequestError(str(error))), BAD_REQUEST)
            return
        except Exception as error:  # noqa: BLE001 - it came from the test's own code: stop() tells
            self.errors.append(error)
            reply = wire.refusal_of(BadRequestError(repr(error), status=500))
            exchange.send_error(reply, SCRIPT_ERROR)
            return
        if latency := self._latency(request):
            await asyncio.sleep(latency)
        pace = Pace(self.stream_seconds, self.stream_piece)
        await exchange.deliver(answer, fault, self.faults, pace)


def _read(wire: ChatWire, index: int, http: HttpRequest, body: Mapping[str, Any]) -> SeenRequest:
    try:
        return wire.read(index, http.path, body, http.headers)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise BadRequestError(f"The request has an unexpected shape: {error!r}") from error


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise BadRequestError(
            f"We could not parse the JSON body of your request: {error}"
        ) from None
    if not isinstance(body, dict):
        raise BadRequestError("The body of your request must be a JSON object")
    return body


if __name__ == "__main__":
    from tests.support.standalone import main

    sys.exit(main())
