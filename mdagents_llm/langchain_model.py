"""Any model of `mdagents_llm` as a chat model for LangChain and LangGraph."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import Any, Literal
from uuid import uuid4

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    SkipValidation,
)

from mdagents_llm.chat import (
    ChatModel,
    ChatReply,
    ChatRequest,
    OnText,
    StopReason,
    TokenUsage,
)
from mdagents_llm.errors import ConfigError, ErrorKind, ProviderError, StructuredOutputError
from mdagents_llm.extras import needs_extra
from mdagents_llm.picture_tokens import text_tokens
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.text import utf8

with needs_extra("langchain", "ChatModelAdapter", ImportError):
    from langchain_core.callbacks import (
        AsyncCallbackManagerForLLMRun,
        BaseRunManager,
        CallbackManagerForLLMRun,
    )
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.language_models.base import LangSmithParams
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.messages.tool import tool_call_chunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import (
        Runnable,
        RunnableConfig,
        RunnableLambda,
        RunnableMap,
        RunnablePassthrough,
        ensure_config,
    )
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from mdagents_llm.langchain.delivery import Delivery, Visible, answer_in_json, plain_text, until
    from mdagents_llm.langchain.forms import Form
    from mdagents_llm.langchain.messages import json_line, prompt_of
    from mdagents_llm.langchain.settings import checked, labels_of, sequences_of, settings_of
    from mdagents_llm.langchain.structured import output_of
    from mdagents_llm.langchain.tools import NONE, Calls, Offer, choice_of, names_of, offer_of
    from mdagents_llm.langchain.waiting import start, wait_for

_OF_THE_MODEL = frozenset({"api_key", "base_url", "max_retries"})
"""Standard LangChain settings that the wrapped model already has; accepted and ignored."""
_METHODS = ("json_schema", "function_calling", "json_mode")
_CHARS_PER_TOKEN = 4  # under a grammar


@dataclass(frozen=True, slots=True)
class _Run:
    """Information about a call that LangChain does not pass on to the model."""

    metadata: Mapping[str, Any]
    streams: list[AsyncGenerator[ChatGenerationChunk, None]]
    """Streams of the call, which LangChain leaves to garbage collection when the call is closed."""

    @classmethod
    def of(cls, config: RunnableConfig | None) -> _Run:
        return cls(ensure_config(config).get("metadata") or {}, [])

    async def end(self) -> None:
        for chunks in self.streams:
            await chunks.aclose()


class ChatModelAdapter(BaseChatModel):
    """A LangChain chat model over any `mdagents_llm.ChatModel`.

        model = ChatModelAdapter(get_llm(LLMRole.MAS))
        await model.ainvoke("Which vitamin is lacking in scurvy?")

    Retries, connection limits, cache and ledger are those of the model. Errors are its own too:
    `ProviderError`, `EndpointDown`, `StructuredOutputError`; what a caller can mend is a
    `ConfigError`. The asynchronous methods run in the caller's event loop, the synchronous ones in
    a loop that all adapters of the process share, so that they can be called from anywhere.

    Args:
        model: What answers.
        settings: The fields below, and those of `BaseChatModel`.

    Raises:
        ConfigError: A setting does not exist, or `model` is none.
    """

    model: SkipValidation[Any] = Field(exclude=True, repr=False)
    """The `mdagents_llm.ChatModel` that answers."""
    temperature: float = 0.0
    max_tokens: PositiveInt = 2048
    """Upper limit of the visible reply, in tokens."""
    seed: int | None = None
    stop: list[str] | None = None
    """Sequences before which a text ends. They are looked for here: what follows was paid for."""
    timeout: PositiveFloat | None = None
    """Seconds for a call, all attempts included; None: the time that the model gives itself."""
    streaming: bool = False
    """Whether `invoke` streams too, so that callbacks see the tokens of every call."""
    _run: _Run | None = PrivateAttr(None)
    _told_apart: tuple[object, str] = PrivateAttr()
    """(model, token): the token names that model in LangChain's cache if it has no `identity`.

    A copy of the adapter may have another model. The model is kept, as its id could be used again.
    """

    def __init__(self, model: ChatModel, **settings: Any) -> None:
        known = type(self).model_fields
        for name in settings.keys() - known.keys() - _OF_THE_MODEL:
            raise ConfigError(f"ChatModelAdapter has no {name}{did_you_mean(name, known)}")
        if not callable(getattr(model, "generate", None)):
            raise ConfigError(
                f"ChatModelAdapter wraps a model such as get_llm(LLMRole.MAS), not {model!r}"
            )
        kept = {name: value for name, value in settings.items() if name not in _OF_THE_MODEL}
        super().__init__(**{"model": model, **kept})
        self._told_apart = (model, uuid4().hex)

    # -- properties that LangChain reads --------------------------------------------------------

    @property
    def _llm_type(self) -> str:
        return "mdagents_llm-chat-model"

    @property
    def _provider(self) -> str:
        provider, slash, _ = self._spec.partition("/")
        return provider if slash else "mdagents_llm"

    @property
    def _spec(self) -> str:
        """`provider/name` of the model, or the name of its class if it has none."""
        name = getattr(self.model, "name", "")
        return name if isinstance(name, str) and name else type(self.model).__name__

    @property
    def model_name(self) -> str:
        """Name that is that of no provider's model.

        From it, LangChain's `create_agent` concludes that a response format has to be a tool: the
        calls of an adapter have no setting `response_format`.
        """
        return self._llm_type

    @property
    def _identity(self) -> str:
        """Hash of the model, its endpoint and settings: an address may hold a token.

        Replies of a model that states no `identity` are shared by the copies of one adapter only.
        """
        stated = getattr(self.model, "identity", "")
        is_stated = isinstance(stated, str) and bool(stated)
        if not is_stated and self._told_apart[0] is not self.model:
            self._told_apart = (self.model, uuid4().hex)
        return sha256(utf8(stated if is_stated else self._told_apart[1])).hexdigest()

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """Parameters that determine a reply besides the messages; part of LangChain's cache key."""
        return {
            "model": self._spec,
            "identity": self._identity,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "stop": self.stop,
        }

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **kwargs)
        name = kwargs.get("model", self._spec.partition("/")[2] or self._spec)
        return LangSmithParams(**{**params, "ls_model_name": name, "ls_provider": self._provider})

    def get_num_tokens(self, text: str) -> int:
        """Return the approximate tokens of a text (`text_tokens`), for `trim_messages`."""
        return ceil(text_tokens(text))

    # -- tools and structured output ------------------------------------------------------------

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return this model with tools that it may call.

        Args:
            tools: Tools in any form that LangChain accepts.
            tool_choice: `auto` (the default) lets the model decide, `any` requires at least one
                call, `none` forbids calls, and the name of a tool requires a call of that tool.
            parallel_tool_calls: Whether a reply may have several calls; False allows one at most.
            strict: Ignored: arguments are always checked against the tool's schema.
            kwargs: Additional settings of the calls, such as `temperature`.

        Raises:
            ConfigError: A tool, the choice or a setting is not valid.
        """
        offered = [convert_to_openai_tool(tool) for tool in tools]
        choice = choice_of(tool_choice, names_of(offered))
        bound: dict[str, Any] = {"tools": offered, "tool_choice": choice}
        if parallel_tool_calls is not None:
            bound["parallel_tool_calls"] = parallel_tool_calls
        if choice != NONE and offered:  # report an unusable tool now, not at the first call
            longest = self._longest(self.max_tokens)
            _offer(json.dumps(offered), choice, parallel_tool_calls is not False, longest)
        return self.bind(**bound, **checked(kwargs))

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        include_raw: bool = False,
        method: Literal["json_schema", "function_calling", "json_mode"] = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Return a runnable whose output follows a schema.

        Args:
            schema: Pydantic class, for instances of it; or `TypedDict` or JSON schema, for a dict.
            include_raw: Whether to return a dict of `raw` (the message), `parsed` and
                `parsing_error`, so that a reply that does not follow the schema raises nothing.
            method: Ignored: the endpoint's own schema support is used if available.
            strict: Ignored: a reply is always validated.
            kwargs: Additional settings of the calls, such as `temperature`.

        Raises:
            ConfigError: The schema or a setting is not valid.
        """
        if method not in _METHODS:
            raise ConfigError(f"method='{method}' is not known; it is one of {', '.join(_METHODS)}")
        output = output_of(schema, self._longest(self.max_tokens))
        bound: dict[str, Any] = {
            "reply_schema": schema,
            "schema_key": output.key,
            "ls_structured_output_format": {
                "kwargs": {"method": method, "strict": strict},
                "schema": schema,
            },
        }
        if include_raw:
            bound["keeps_errors"] = True
        model = self.bind(**bound, **checked(kwargs))

        def parse(message: AIMessage) -> Any:
            problem = message.additional_kwargs.get("parsing_error")
            if problem is not None:
                raise ValueError(problem)
            return output.value(json.loads(message.text))

        async def aparse(message: AIMessage) -> Any:
            return parse(message)

        parser = RunnableLambda(parse, aparse)
        if not include_raw:
            return model | parser
        parsed = RunnablePassthrough.assign(
            parsed=(lambda both: both["raw"]) | parser, parsing_error=lambda _: None
        )
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=model) | parsed.with_fallbacks(
            [failed], exception_key="parsing_error"
        )

    def _longest(self, max_tokens: int) -> int | None:
        """Return the character limit of a text under a local model's grammar; None without one."""
        is_local = getattr(self.model, "is_local", False)
        return max_tokens * _CHARS_PER_TOKEN if is_local else None

    # -- calls ----------------------------------------------------------------------------------

    def invoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Call the model and return its message, as `Runnable.invoke` does."""
        model = self._in(_Run.of(config))
        return BaseChatModel.invoke(model, input, config, stop=stop, **kwargs)

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Call the model and return its message, as `Runnable.ainvoke` does.

        After a cancellation the call to the model has ended.
        """
        run = _Run.of(config)
        try:
            return await BaseChatModel.ainvoke(self._in(run), input, config, stop=stop, **kwargs)
        finally:
            await run.end()

    def stream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessageChunk]:
        """Call the model and yield its message in chunks, as `Runnable.stream` does."""
        model = self._in(_Run.of(config))
        return BaseChatModel.stream(model, input, config, stop=stop, **kwargs)

    async def astream(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        """Call the model and yield its message in chunks, as `Runnable.astream` does.

        After the stream is closed the call to the model has ended.
        """
        run = _Run.of(config)
        stream = BaseChatModel.astream(self._in(run), input, config, stop=stop, **kwargs)
        try:
            async for chunk in stream:
                yield chunk
        finally:
            await stream.aclose()  # type: ignore[attr-defined] # it is a generator
            await run.end()

    def _in(self, run: _Run) -> ChatModelAdapter:
        """Return a copy of this model for one run."""
        model = self.model_copy()
        model._run = run  # noqa: SLF001 - a model of this class
        return model

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._call(messages, stop, run_manager, kwargs)
        return _result(wait_for(self._reply(call)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self._reply(self._call(messages, stop, run_manager, kwargs)))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        chunks = self._chunks(self._call(messages, stop, run_manager, kwargs))

        async def following() -> ChatGenerationChunk | None:
            return await anext(chunks, None)

        async def end() -> None:
            await chunks.aclose()

        try:
            while (chunk := wait_for(following())) is not None:
                yield chunk
        finally:
            start(end())  # not awaited, since the process and the loop may be shutting down

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        chunks = self._chunks(self._call(messages, stop, run_manager, kwargs))
        if self._run is not None:
            self._run.streams.append(chunks)
        return chunks

    async def _chunks(self, call: _Call) -> AsyncGenerator[ChatGenerationChunk, None]:
        delivery = Delivery(call.visible or (lambda _: ""))
        deltas: asyncio.Queue[str | None] = asyncio.Queue()
        asked = asyncio.create_task(self._reply(call, deltas.put_nowait))
        asked.add_done_callback(lambda _: deltas.put_nowait(None))  # wakes the loop below
        try:
            while not (asked.done() and deltas.empty()):
                if text := delivery.take(await deltas.get()):
                    yield ChatGenerationChunk(message=AIMessageChunk(content=text))
            message = await asked
            yield ChatGenerationChunk(message=_last_chunk(message, delivery.finish(message.text)))
        finally:
            # This also runs if the stream is abandoned: nobody waits for the reply any more.
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def _reply(self, call: _Call, on_text: OnText | None = None) -> AIMessage:
        limit = asyncio.timeout(call.timeout)
        try:
            async with limit:
                reply: ChatReply = await self.model.generate(
                    call.request, on_text if call.visible else None
                )
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"no complete reply within {call.timeout:g} s"
            raise ProviderError(message, kind=ErrorKind.TIMEOUT) from None
        except StructuredOutputError as error:
            if not call.keeps_errors:
                raise
            told = self._message(error.text, error.stop_reason, error.usage, "")
            told.additional_kwargs["parsing_error"] = str(error)
            return told
        return self._read(call, reply)

    def _read(self, call: _Call, reply: ChatReply) -> AIMessage:
        stop_reason, text = reply.stop_reason, reply.text
        calls: Sequence[ToolCall] = ()
        if call.request.schema is None:
            text = until(text, call.stop, is_whole=True)
        elif not isinstance(reply.parsed, Form):
            raise ConfigError(
                f"{self._spec} gives replies without `parsed`; wrap it as "
                "mdagents_llm.layers.structured.Structured does"
            )
        elif isinstance(reply.parsed.meaning, Calls):
            text = until(reply.parsed.meaning.answer, call.stop, is_whole=True)
            calls = reply.parsed.meaning.tool_calls
        else:
            text = json_line(reply.parsed.meaning)
        return self._message(text, stop_reason, reply.usage, reply.model, calls)

    def _message(
        self,
        text: str,
        stop_reason: StopReason,
        usage: TokenUsage,
        model: str,
        tool_calls: Sequence[ToolCall] = (),
    ) -> AIMessage:
        extra: dict[str, Any] = {}
        if stop_reason is StopReason.REFUSAL:  # as in LangChain's own models: no answer
            extra, text = {"refusal": text or "the model refused to reply"}, ""
        return AIMessage(
            text,
            tool_calls=[*tool_calls],
            additional_kwargs=extra,
            response_metadata={
                "model_name": model or self._spec.partition("/")[2] or self._spec,
                "model_provider": self._provider,
                "finish_reason": "tool_calls" if tool_calls else stop_reason.value,
            },
            usage_metadata=UsageMetadata(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                total_tokens=usage.total_tokens,
                input_token_details={
                    "cache_read": usage.cached_input_tokens,
                    "cache_creation": usage.cache_write_tokens,
                },
                output_token_details={"reasoning": usage.reasoning_tokens},
            ),
        )

    def _call(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: BaseRunManager | None,
        kwargs: dict[str, Any],
    ) -> _Call:
        settings = settings_of(kwargs)
        max_tokens = settings.max_tokens or self.max_tokens
        longest = self._longest(max_tokens)
        choice = choice_of(settings.tool_choice, names_of(settings.tools))
        form: type[Form] | None = None
        instructions, sequences, visible = "", sequences_of(stop or self.stop), None
        if settings.reply_schema is not None:
            if settings.tools:
                raise ConfigError("a call has tools or structured output, not both")
            if stop:
                raise ConfigError("structured output has no stop sequences: leave out `stop`")
            output = output_of(settings.reply_schema, longest)
            form, instructions = output.form, output.instructions
        elif settings.tools and choice != NONE:
            parallel = settings.parallel_tool_calls is not False
            offer = _offer(json.dumps(settings.tools), choice, parallel, longest)
            form, instructions = offer.form, offer.instructions
            visible = answer_in_json(sequences)
        else:
            visible = plain_text(sequences)
        metadata = dict(self._run.metadata) if self._run else {}
        metadata |= run_manager.metadata if run_manager else {}
        request = ChatRequest(
            messages=prompt_of(messages, instructions),
            max_tokens=max_tokens,
            temperature=self.temperature if settings.temperature is None else settings.temperature,
            seed=self.seed if settings.seed is None else settings.seed,
            schema=form,
            labels=labels_of(metadata),
        )
        return _Call(
            request,
            sequences,
            visible,
            timeout=settings.timeout or self.timeout,
            keeps_errors=settings.keeps_errors,
        )


@dataclass(frozen=True, slots=True)
class _Call:
    request: ChatRequest
    stop: Sequence[str]
    visible: Visible | None
    """Function that returns the part of a growing reply to stream; None streams nothing."""
    timeout: float | None
    keeps_errors: bool


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def _last_chunk(message: AIMessage, text: str) -> AIMessageChunk:
    """Return the last chunk of a stream: the rest of the text and everything that is not text."""
    return AIMessageChunk(
        content=text,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        tool_call_chunks=[
            tool_call_chunk(
                name=call["name"], args=json_line(call["args"]), id=call["id"], index=index
            )
            for index, call in enumerate(message.tool_calls)
        ],
        chunk_position="last",
    )


@lru_cache(maxsize=256)
def _offer(tools: str, choice: str, parallel: bool, longest: int | None) -> Offer:
    return offer_of(json.loads(tools), choice, parallel=parallel, longest=longest)
