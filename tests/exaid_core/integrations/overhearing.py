"""What EXAID has heard of a program, and chat models of LangChain over the fake provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from openai import AsyncOpenAI, OpenAI

from exaid_core import EXAID, ExaidConfig, SyncExaid
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from tests.exaid_core.models import STABLE, WAIT, Said, newest_block, reply

PATIENT: Any = {"max_retries": 0, "timeout": 300.0}
"""The SDK gives a connection 5 seconds, which 50 graphs at once on a busy machine may need."""


class Ears:
    """Both models of an EXAID; keeps the text that summaries were made of."""

    def __init__(self) -> None:
        self.blocks: list[list[Said]] = []

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        if request.labels.role != "summarizer":
            return reply(WAIT)
        self.blocks.append(newest_block(request))
        return reply(STABLE)

    @property
    def heard(self) -> list[Said]:
        """Who said what, in order; what an agent says in one go is one text."""
        joined: list[Said] = []
        for agent, text in chain.from_iterable(self.blocks):
            if joined and joined[-1][0] == agent:
                text = joined.pop()[1] + text
            joined.append((agent, text))
        return joined

    def text_of(self, agent: str) -> str:
        """All that an agent has said."""
        return "".join(text for name, text in chain.from_iterable(self.blocks) if name == agent)


def listening(**settings: Any) -> tuple[EXAID, Ears]:
    """An EXAID, and what it hears."""
    ears = Ears()
    return EXAID(buffer_llm=ears, summarizer_llm=ears, **settings), ears


def listening_in_a_thread(**settings: Any) -> tuple[SyncExaid, Ears]:
    """A SyncExaid, and what it hears."""
    ears = Ears()
    return SyncExaid(buffer_llm=ears, summarizer_llm=ears, **settings), ears


def exaid_with(model: ChatModel, **settings: Any) -> EXAID:
    """An EXAID with one model for both roles."""
    return EXAID(buffer_llm=model, summarizer_llm=model, config=ExaidConfig(**settings))


class OpenAIChat(BaseChatModel):
    """A chat model of LangChain over an endpoint like OpenAI's: what any integration package is."""

    base_url: str
    model: str = "gpt-4o-mini"
    streaming: bool = True

    @property
    def _llm_type(self) -> str:
        return "openai-chat-of-the-tests"

    def _request(self, messages: list[BaseMessage]) -> dict[str, Any]:
        roles = {"human": "user", "ai": "assistant"}
        said = [{"role": roles.get(m.type, m.type), "content": str(m.text)} for m in messages]
        return {"model": self.model, "messages": said}

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        async with AsyncOpenAI(base_url=self.base_url, api_key="k", **PATIENT) as client:
            answer = await client.chat.completions.create(**self._request(messages))
        message = AIMessage(answer.choices[0].message.content or "")
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        async with AsyncOpenAI(base_url=self.base_url, api_key="k", **PATIENT) as client:
            pieces = await client.chat.completions.create(**self._request(messages), stream=True)
            async for piece in pieces:
                text = piece.choices[0].delta.content if piece.choices else ""
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=text or ""))
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with OpenAI(base_url=self.base_url, api_key="k", **PATIENT) as client:
            answer = client.chat.completions.create(**self._request(messages))
        message = AIMessage(answer.choices[0].message.content or "")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        with OpenAI(base_url=self.base_url, api_key="k", **PATIENT) as client:
            pieces = client.chat.completions.create(**self._request(messages), stream=True)
            for piece in pieces:
                text = piece.choices[0].delta.content if piece.choices else ""
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=text or ""))
                if run_manager:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk
