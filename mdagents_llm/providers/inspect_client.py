"""Models of Inspect (https://inspect.aisi.org.uk): its model API is the transport of a call.

Outside an evaluation of Inspect a call is one attempt: retries, connections and the cache are ours,
as for any provider. Within one, Inspect counts, caches, limits, retries and logs each call.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal, cast

import httpx2
from inspect_ai.event import Event, ModelEvent
from inspect_ai.log import Transcript, transcript
from inspect_ai.log._samples import sample_active
from inspect_ai.log._transcript import init_transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelRefusalError,
    ModelUsage,
    ResponseSchema,
    StreamEvent,
    StreamRetryEvent,
    StreamTextEvent,
    get_model,
)
from inspect_ai.util import JSONSchema, LimitExceededError
from pydantic import BaseModel

from mdagents_llm import chat
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.errors import ConfigError, ErrorKind, LimitExceeded, ProviderError
from mdagents_llm.json_schema import without_string_lengths
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.checks import at_its_limit, checked_usage, estimated_usage, served_model
from mdagents_llm.providers.connection_errors import connection_error
from mdagents_llm.providers.error_body import read_error
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.filters import is_withheld
from mdagents_llm.providers.http_errors import status_error
from mdagents_llm.providers.streamed_text import ShownText
from mdagents_llm.providers.waits import retry_after_seconds
from mdagents_llm.reasoning_tags import split_reasoning
from mdagents_llm.text import well_formed
from mdagents_llm.wire import Endpoint

ModelOf = Callable[[str], Model]
"""Function that returns the model of a role, looked up at each call."""

_Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_MOST_CONNECTIONS = 10_000
"""Calls that Inspect lets through outside an evaluation, where our gate limits them."""
_MOST_CAUSES = 8
_MARKUP = re.compile(r"\[/?[a-z][a-z ]*\]")  # of Inspect's messages for a terminal
_TIMEOUTS = ("TimeoutError", "APITimeoutError", "AttemptTimeoutError", "StreamIdleTimeoutError")
_CONNECTIONS = (
    "APIConnectionError",
    "ConnectionError",
    "ClientConnectionError",
    "NoStreamDataError",
)


class InspectClient:
    """The providers of Inspect, each with the keys and the address that Inspect reads.

    Args:
        endpoint: Endpoint settings, of which none is used.
        model_of: Models of an evaluation in progress, by role; None: models are opened by name.
    """

    def __init__(self, endpoint: Endpoint, model_of: ModelOf | None = None) -> None:
        self._model_of = model_of
        self._opened: list[Model] = []

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a model.

        Args:
            name: Name of the model in Inspect, `PROVIDER/MODEL`.
            info: Properties of the model.

        Raises:
            ConfigError: Inspect does not know the provider, or lacks its key, address or package.
        """
        if self._model_of is not None:
            return InspectModel(name, info, self._model_of, is_evaluated=True)
        model = _open(name)
        self._opened.append(model)
        return InspectModel(name, info, lambda role: model, is_evaluated=False)

    async def aclose(self) -> None:
        """Close the connections of all models that were opened by name."""
        for model in self._opened:
            await model.api.aclose()


def _open(name: str) -> Model:
    config = GenerateConfig(
        max_retries=0, adaptive_connections=False, max_connections=_MOST_CONNECTIONS
    )
    try:
        return get_model(name, config=config, memoize=False)
    except Exception as error:  # whatever the package of a provider raises
        said = _MARKUP.sub("", str(getattr(error, "message", "") or error))
        said = masked_line(said) or type(error).__name__
        raise ConfigError(f"Inspect cannot open the model '{name}': {said}") from error


class InspectModel:
    """One model of Inspect.

    Args:
        name: Name of the model in Inspect.
        info: Properties of the model.
        model_of: Returns Inspect's model for the role of a call.
        is_evaluated: Whether the calls belong to an evaluation of Inspect, whose transcript holds
            them.
    """

    def __init__(
        self, name: str, info: ModelInfo, model_of: ModelOf, *, is_evaluated: bool
    ) -> None:
        self._name = name
        self._info = info
        self._model_of = model_of
        self._is_evaluated = is_evaluated

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request by Inspect's model; the reply is streamed when `on_text` is given.

        Raises:
            ProviderError: Inspect got no usable reply.
            LimitExceeded: A limit of the evaluation was reached; its origin is Inspect's error.
        """
        if self._is_evaluated or sample_active() is not None:
            return await self._generate(request, on_text)
        before = transcript()
        init_transcript(Transcript())  # else Inspect would keep every call of the process
        try:
            return await self._generate(request, on_text)
        finally:
            init_transcript(before)

    async def _generate(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        mark = uuid.uuid4().hex
        stream = _Stream(on_text) if on_text is not None else None
        try:
            output = await self._model_of(request.labels.role).generate(
                list(_messages(request, mark)),
                config=self._config(request),
                on_stream=None if stream is None else stream.take,
            )
        except LimitExceededError as error:
            event = _event(mark)
            paid = event is not None and event.error is None and event.output.usage is not None
            reply = self._reply(request, event.output, event) if event and paid else None
            raise LimitExceeded(_said(error), reply=reply, origin=error) from error
        except ModelRefusalError as error:
            output = error.output
        except Exception as error:
            failure = self._failure(request, error)
            if failure is None:
                return ChatReply("", TokenUsage(), StopReason.REFUSAL, self._name)
            raise failure from error
        reply = self._reply(request, output, _event(mark))
        if stream is not None:
            stream.end(reply.text)
        return reply

    def _config(self, request: ChatRequest) -> GenerateConfig:
        info, thinking = self._info, self._info.thinking
        return GenerateConfig(
            max_tokens=info.limit(request),
            temperature=request.temperature if info.takes_temperature else None,
            seed=request.seed if info.takes_seed else None,
            reasoning_effort=cast(_Effort, thinking.effort) if thinking.effort else None,
            reasoning_tokens=thinking.tokens,
            response_schema=None if request.schema is None else _schema(request.schema),
        )

    def _reply(
        self, request: ChatRequest, output: ModelOutput, event: ModelEvent | None
    ) -> ChatReply:
        """Return an output of Inspect as a reply.

        Raises:
            ProviderError: The output is an error of the endpoint, or its counts make no sense.
        """
        reason = "stop" if output.empty else output.stop_reason
        if reason == "model_length" and output.usage is None:
            # Inspect makes a reply of the error with which a prompt that is too long is refused.
            message = f"{self._name}: {masked_line(output.completion)}"
            raise ProviderError(message, kind=ErrorKind.CONTEXT_LENGTH)
        said = "" if output.empty else output.message.text
        text, hidden = split_reasoning(said)
        reasoning = hidden + "".join(_reasoning(output))
        is_refused = reason == "content_filter" or any(_refusals(output))
        usage = _usage(output.usage) if output.usage is not None else TokenUsage()
        is_estimated = usage.total_tokens == 0 and not is_refused
        if is_estimated:
            usage = estimated_usage(request, text + reasoning, self._name)
        reply = ChatReply(
            text=well_formed(text),
            usage=usage,
            stop_reason=StopReason.REFUSAL if is_refused else _stop_reason(reason),
            model=served_model(output.model, self._name),
            cached=event is not None and event.cache == "read",
            usage_estimated=is_estimated,
            reasoning=well_formed(reasoning),
            note="its text was in the reasoning" if reasoning and not text else "",
        )
        return at_its_limit(reply, self._info.limit(request))

    def _failure(self, request: ChatRequest, error: Exception) -> ProviderError | None:
        """Return the `ProviderError` for an exception of Inspect or an SDK; None for a refusal."""
        causes = list(_causes(error))
        for cause in reversed(causes):
            status = next(filter(_is_status, (getattr(cause, n, None) for n in _STATUS)), None)
            if status is None:
                continue
            body = getattr(cause, "body", None)
            said = read_error({"error": body} if body else str(cause))
            if is_withheld(status, said):
                return None
            headers = getattr(getattr(cause, "response", None), "headers", None)
            return status_error(
                self._name,
                status,
                said.words or said.code or str(cause),
                code=said.code,
                retry_after=None if headers is None else retry_after_seconds(headers, status),
                asked_with_schema=request.schema is not None,
                asked_with_pictures=any(message.pictures for message in request.messages),
            )
        for cause in causes:
            names = {kind.__name__ for kind in type(cause).__mro__}
            timed_out = not names.isdisjoint(_TIMEOUTS)
            is_lost = isinstance(cause, OSError | httpx2.HTTPError)
            if timed_out or is_lost or not names.isdisjoint(_CONNECTIONS):
                return connection_error(self._name, self._name, cause, timed_out=timed_out)
        last = causes[-1]
        words = f"{self._name}: {type(last).__name__}: {masked_line(str(last))}"
        return ProviderError(words, kind=ErrorKind.BAD_BODY)


_STATUS = ("status_code", "code")


def _is_status(value: object) -> bool:
    return type(value) is int and 400 <= value < 600


def _causes(error: BaseException) -> Iterator[Exception]:
    """Yield an error and its causes, the outermost first."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if not isinstance(cause, Exception):
            return
        yield cause
        cause = cause.__cause__


def _said(error: LimitExceededError) -> str:
    return f"the sample has reached its {error.type} limit {error.limit_str}"


def _event(mark: str) -> ModelEvent | None:
    """Return the latest event of the call whose last message has the id `mark`."""

    def is_it(event: Event) -> bool:
        return isinstance(event, ModelEvent) and any(said.id == mark for said in event.input)

    found = transcript().history.find_last(is_it)
    return found if isinstance(found, ModelEvent) else None


def _messages(request: ChatRequest, mark: str) -> Iterator[ChatMessage]:
    """Yield the messages of a request; the last one has the id `mark`."""
    for number, message in enumerate(request.messages, start=1):
        id_ = mark if number == len(request.messages) else uuid.uuid4().hex
        match message.role:
            case "system":
                yield ChatMessageSystem(id=id_, content=message.content)
            case "assistant":
                yield ChatMessageAssistant(id=id_, content=message.content)
            case "user":
                yield ChatMessageUser(id=id_, content=_content(message))


def _content(message: chat.ChatMessage) -> str | list[Content]:
    if not message.pictures:
        return message.content
    return [
        ContentText(text=part)
        if isinstance(part, str)
        else ContentImage(image=part.data_uri, detail=part.detail.value)
        for part in message.parts()
    ]


@lru_cache(maxsize=512)
def _schema(schema: type[BaseModel]) -> ResponseSchema:
    # OpenAI's strict mode takes no lengths of strings; Structured checks them in the reply.
    read = JSONSchema.model_validate(without_string_lengths(schema))
    return ResponseSchema(name=schema.__name__.strip("_")[:64], json_schema=read, strict=True)


def _parts(output: ModelOutput) -> list[Content]:
    """Return the parts of the message of an output; empty if it is one text."""
    if output.empty or isinstance(output.message.content, str):
        return []
    return output.message.content


def _reasoning(output: ModelOutput) -> Iterator[str]:
    for part in _parts(output):
        if isinstance(part, ContentReasoning):
            yield (part.summary or "") if part.redacted else part.reasoning


def _refusals(output: ModelOutput) -> Iterator[bool]:
    """Yield for each text of an output whether it is a refusal."""
    return (bool(part.refusal) for part in _parts(output) if isinstance(part, ContentText))


def _usage(usage: ModelUsage) -> TokenUsage:
    """Return the tokens that Inspect counted; its input tokens exclude the prompt cache.

    Raises:
        ProviderError: A count is out of range.
    """
    read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    prompt = usage.input_tokens + read + written
    # Some endpoints count hidden reasoning only in the total.
    output = max(usage.output_tokens, usage.total_tokens - prompt)
    reasoning = min(usage.reasoning_tokens or 0, output)
    try:
        return checked_usage(prompt, output, read, reasoning, written)
    except ValueError as error:
        raise ProviderError(f"Inspect's usage: {error}", kind=ErrorKind.BAD_BODY) from None


def _stop_reason(reason: str) -> StopReason:
    """Return why a reply ended; one that ended for an unknown reason may be incomplete."""
    return StopReason.STOP if reason in ("stop", "tool_calls") else StopReason.LENGTH


class _Stream(ShownText):
    """Passes the visible text of the events of a stream on."""

    async def take(self, event: StreamEvent) -> None:
        """Receive an event of the stream."""
        if isinstance(event, StreamTextEvent):
            self.add(event.text)
        elif isinstance(event, StreamRetryEvent):
            self.restart()
