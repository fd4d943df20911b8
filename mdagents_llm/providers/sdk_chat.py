"""One model behind the SDK of OpenAI or Anthropic: sending, streaming and errors.

Both SDKs come from the same generator, so their clients, streams and exceptions are named alike.
They handle addresses, pooling and error types. Their models of requests and replies are bypassed
(`direct`) unless instrumentation wraps them, since they cost more than the rest of a call.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

import httpx2

from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.files.json_text import parse_json
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers import typed_calls
from mdagents_llm.providers.checks import reported, reported_cost
from mdagents_llm.providers.connection_errors import connection_error
from mdagents_llm.providers.direct import DirectPosts
from mdagents_llm.providers.error_body import (
    ErrorBody,
    ErrorInReplyError,
    UnusableReplyError,
    parsed,
    read_error,
)
from mdagents_llm.providers.error_text import without_key
from mdagents_llm.providers.event_stream import (
    DONE,
    Extent,
    is_bare,
    is_stream,
    read_events,
    until_end,
    whole_json,
)
from mdagents_llm.providers.filters import WithheldError, booking, is_withheld
from mdagents_llm.providers.http_errors import OTHER_SHAPES, status_error
from mdagents_llm.providers.picture_body import has_pictures, plain
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.refused import STREAM, WHOLE, Refused
from mdagents_llm.providers.waits import retry_after_seconds, told_to_retry

_LONGEST_DRAIN = 0.1  # seconds


def _unseen(text: str | None) -> None:
    """Take the text of a stream that nobody watches."""


class _BegunError(Exception):
    """Raised from an error in a stream whose text had begun, so that no setting was refused.

    Args:
        error: The error.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class SdkChat(ABC):
    """One model of an endpoint; a subclass converts requests and replies.

    Args:
        client: SDK client of the endpoint, with SDK retries off.
        model: The endpoint's name for the model.
        info: Properties of the model.
        settings: Environment variables, for `typed_calls.wanted`.
        pool: Connections for calls that do not go through the typed methods of the SDK; None for
            those of the client.
    """

    path: ClassVar[str]
    """Path of requests, relative to the base URL."""
    _sdk: ClassVar[ModuleType]
    _kind: ClassVar[str]
    """Noun for a reply, for errors."""
    _fields: ClassVar[Collection[str]]
    """Arguments that the typed method accepts."""
    _of_schema: ClassVar[Collection[str]]
    """Body fields whose presence means that a schema was requested."""

    def __init__(
        self,
        client: Any,
        model: str,
        info: ModelInfo,
        *,
        settings: Mapping[str, str] = MappingProxyType({}),
        pool: Pool | None = None,
    ) -> None:
        self._client = client
        self._model = model
        self._info = info
        self._typed = typed_calls.wanted(
            settings, self._sdk.__name__, self._create, client.request, client.post
        )
        self._refused = Refused()
        self._posts = DirectPosts(self._sdk, client, self.path, model, pool)
        self._host = client.base_url.host
        port = client.base_url.port
        self._place = self._host if port is None else f"{self._host}:{port}"

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request; the reply is streamed when `on_text` is given."""
        body = self.body(request)
        is_streamed = on_text is not None or WHOLE in self._refused
        try:
            with self.errors(body):
                if is_streamed and STREAM not in self._refused:
                    return await self._stream(self._streamed(body), request, on_text or _unseen)
                reply = await self._read(await self._content(body), request)
        except WithheldError as withheld:
            return self.refusal(withheld.usage)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    @abstractmethod
    def body(self, request: ChatRequest, *, whole: bool = False) -> dict[str, object]:
        """Return the request body for the endpoint.

        Args:
            request: Request to convert.
            whole: Whether to include settings that the model has refused, since an earlier batch
                may have sent them.
        """

    @abstractmethod
    def reply(self, raw: Any, request: ChatRequest) -> ChatReply:
        """Return a parsed response body as a reply.

        Args:
            raw: Parsed response body.
            request: Request that was sent.

        Raises:
            ValueError: `raw` is not a reply of the API (or another of `OTHER_SHAPES`).
        """

    def read(self, raw: Any, request: ChatRequest) -> ChatReply:
        """Return a parsed response body as a reply, as `reply` does.

        Raises:
            UnusableReplyError: It is no reply, and reports tokens; the error is its cause.
            ValueError: It is no reply (or another of `OTHER_SHAPES`).
        """
        with self._paid(lambda: raw.get("usage") if isinstance(raw, dict) else None):
            return self.reply(raw, request)

    def refusal(self, usage: TokenUsage) -> ChatReply:
        """Return the reply for an error of a content filter: a refusal without text."""
        return ChatReply("", usage, StopReason.REFUSAL, self._model)

    @contextmanager
    def errors(
        self, body: Mapping[str, object] | None = None, *, has_begun: bool = False
    ) -> Iterator[None]:
        """Convert exceptions of the SDK within the context to `ProviderError` or `WithheldError`.

        Args:
            body: Request body that was sent; None for calls that request no reply.
            has_begun: Whether text had arrived before the exception.
        """
        sdk = self._sdk
        try:
            yield
        except sdk.APIStatusError as error:
            if error.response.is_success:  # an error in a stream of Anthropic's typed methods
                raise self.failure(None, error.body, body, has_begun=has_begun) from None
            wait = retry_after_seconds(error.response.headers, error.status_code)
            said = parsed(error.response)
            failure = self.failure(error.status_code, said, body, retry_after=wait)
            if isinstance(failure, ProviderError):
                failure.told_to_retry = told_to_retry(error.response.headers)
            raise failure from None
        except (sdk.APIConnectionError, httpx2.HTTPError) as error:
            timed_out = isinstance(error, sdk.APITimeoutError)
            raise connection_error(self._host, self._place, error, timed_out=timed_out) from None
        except sdk.APIError as error:  # an error in a stream of OpenAI's typed methods
            said = {"error": error.body or error.message}
            raise self.failure(None, said, body, has_begun=has_begun) from None
        except ErrorInReplyError as error:
            raise self.failure(None, error.body, body, has_begun=has_begun) from None
        except _BegunError as begun:
            with self.errors(body, has_begun=True):
                raise begun.error from begun.error.__cause__
        except UnusableReplyError as unusable:
            cause = unusable.__cause__ or unusable
            with booking(unusable.reply), self.errors(body):
                raise cause from cause.__cause__
        except OTHER_SHAPES as error:
            kind = type(error).__name__
            message = f"{self._host} sent a body that is not a {self._kind} ({kind})"
            raise ProviderError(message, kind=ErrorKind.BAD_BODY) from None

    def failure(
        self,
        status: int | None,
        error: object,
        body: Mapping[str, object] | None = None,
        *,
        retry_after: float | None = None,
        has_begun: bool = False,
    ) -> Exception:
        """Return the exception for an error of the endpoint: `ProviderError` or `WithheldError`.

        Args:
            status: HTTP status; None, or below 400, for an error inside a reply.
            error: Body of the error.
            body: Request body that was sent; None for calls that request no reply.
            retry_after: Seconds that the endpoint asked to wait; None if it did not.
            has_begun: Whether text had arrived before the error, which then refuses no setting.

        Raises:
            ProviderError: The endpoint refused a setting (`setting_refused`, `stream_refused`).
        """
        said = read_error(error)
        status = self._status(status, said)
        if is_withheld(status, said):
            return WithheldError()
        words = without_key(said.words or said.code, self._client.api_key or "")
        body = body or {}
        if not has_begun:
            sent = self._refusable(body)
            self._refused.raise_for(sent, self._host, status, words, said.param, said.code)
        failure = status_error(
            self._host,
            status,
            words,
            code=f"{said.code} {said.param}",
            retry_after=said.retry_after if retry_after is None else retry_after,
            asked_with_schema=not body.keys().isdisjoint(self._of_schema),
            asked_with_pictures=has_pictures(body),
        )
        return self._advised(failure, status, words) if body else failure

    @property
    @abstractmethod
    def _create(self) -> typed_calls.Create:
        """Typed method of the SDK, looked up at each call since it may be wrapped later."""

    @abstractmethod
    def _streamed(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return a request body that asks for a stream."""

    @abstractmethod
    async def _read_events(
        self, events: AsyncIterator[object], request: ChatRequest, on_text: OnText
    ) -> ChatReply:
        """Return the reply that the events of a stream add up to."""

    @abstractmethod
    def _refusable(self, body: Mapping[str, Any]) -> list[str]:
        """Return the settings of a body that a model may refuse and that can then be omitted."""

    def _status(self, status: int | None, said: ErrorBody) -> int | None:
        """Return the HTTP status of an error, which may be stated in its body alone."""
        return said.status if status is None else status

    def _advised(self, failure: ProviderError, status: int | None, words: str) -> ProviderError:
        """Return an error, with advice if the endpoint's words call for one."""
        return failure

    async def _read(
        self, content: bytes, request: ChatRequest, on_text: OnText = _unseen
    ) -> ChatReply:
        """Return the reply of a body, which may be an unrequested stream."""
        if is_stream(content):
            pieces = self._posts.pieces(httpx2.Response(200, content=content))
            return await self._read_events(self._events(pieces), request, on_text)
        reply = self.read(whole_json(content), request)
        if reply.text:
            on_text(reply.text)
        return reply

    @contextmanager
    def _paid(
        self, usage: Callable[[], Any], has_begun: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Attach the tokens that a reply reports to an error in it, whichever that is.

        Args:
            usage: Function that returns the reported usage.
            has_begun: Function that returns whether text has arrived.

        Raises:
            UnusableReplyError: The reply reports tokens; the error is its cause.
            _BegunError: Text has arrived, and the reply reports no tokens.
            Exception: The error, if neither.
        """
        try:
            yield
        except Exception as error:  # `errors` names it
            begun = _BegunError(error) if has_begun() else None
            tokens = reported(self._tokens, usage())
            if tokens.total_tokens == 0:
                if begun is None:
                    raise
                raise begun from error
            cost = reported_cost(usage())
            reply = ChatReply("", tokens, StopReason.STOP, self._model, cost_usd=cost)
            raise UnusableReplyError(reply) from begun or error

    @abstractmethod
    def _tokens(self, usage: Any) -> TokenUsage:
        """Return the token usage that an endpoint reports.

        Raises:
            ValueError: It is malformed (or another of `OTHER_SHAPES`).
        """

    async def _stream(
        self, body: Mapping[str, object], request: ChatRequest, on_text: OnText
    ) -> ChatReply:
        with self.errors(body):
            if self._typed:
                typed = typed_calls.chunks(self._create, self._fields, plain(body))
                async with aclosing(typed) as chunks:
                    return await self._read_events(chunks, request, on_text)
            response = await self._posts.open(body)
            try:
                pieces = self._posts.pieces(response)
                content = await _beginning(pieces)
                if not is_bare(content):  # whatever its type says
                    events = self._events(pieces, content)
                    return await self._read_events(events, request, on_text)
                content += b"".join([piece async for piece in pieces])
            finally:
                await response.aclose()
            return await self._read(content, request, on_text)

    async def _events(
        self, pieces: AsyncIterator[bytes], beginning: bytes = b""
    ) -> AsyncIterator[object]:
        """Yield the parsed data of the events of a stream, and its end marker, `DONE`.

        Args:
            pieces: Content of the stream as it arrives.
            beginning: Content that was already taken from `pieces`.
        """
        async for data in read_events(pieces, beginning):
            if data.startswith(DONE):
                yield DONE
                await self._drain(pieces)
                return
            yield parse_json(data)

    def _until_end(self, events: AsyncIterator[object], extent: Extent) -> AsyncIterator[object]:
        """Yield the events of a stream, with the arguments of `until_end`."""
        return until_end(events, extent, (self._sdk.APIConnectionError, httpx2.HTTPError))

    async def _drain(self, pieces: AsyncIterator[bytes]) -> None:
        """Read the rest of a stream after its end marker, so that its connection can be reused."""
        with suppress(TimeoutError, ProviderError, self._sdk.APIConnectionError):
            async with asyncio.timeout(_LONGEST_DRAIN):
                async for _ in pieces:
                    pass

    async def _content(self, body: Mapping[str, object]) -> bytes:
        if self._typed:
            return await typed_calls.whole(self._create, self._fields, plain(body))
        return await self._posts.read(await self._posts.open(body))


async def _beginning(pieces: AsyncIterator[bytes]) -> bytes:
    """Take the beginning of a stream, up to the first piece that is more than space."""
    beginning = b""
    async for piece in pieces:
        beginning += piece
        if piece.strip():
            break
    return beginning
