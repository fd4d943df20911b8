"""The base class of specialists: answers a question about the case in free text."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from langchain_core.messages import BaseMessage

from demos.cdss_example.agents.briefing import Briefing, Opinion, messages
from demos.cdss_example.config import Limits
from mdagents_llm.errors import ProviderError, StructuredOutputError
from mdagents_llm.langchain_model import ChatModelAdapter


class Specialist:
    """Base class of the specialists, which differ only in their system prompt.

    Args:
        model: Chat model of the agent.
        limits: Length limits of its text.
    """

    name: ClassVar[str]
    """Name of the specialist's graph node and of its prompt."""

    def __init__(self, model: ChatModelAdapter, limits: Limits) -> None:
        self._limits = limits
        self._model = model.model_copy(update={"max_tokens": limits.opinion})

    async def answer(
        self,
        briefing: Briefing,
        question: str,
        on_text: Callable[[str], None],
        *,
        use_streaming: bool,
    ) -> Opinion:
        """Answer the orchestrator's question.

        Args:
            briefing: Current knowledge about the case.
            question: Question of the orchestrator; if empty, a general one is asked.
            on_text: Callback that receives the text, in pieces or at once.
            use_streaming: Whether to stream the text in pieces.

        Returns:
            The opinion; a failed opinion if the endpoint returned no usable text. Errors that every
            call to the model would raise are not the specialist's failure and reach the caller.

        Raises:
            EndpointDown: Every further call would fail as well.
            ConfigError: The user has to change a setting.
        """
        asked = messages(
            f"{self.name}_system",
            "specialist_user",
            **briefing.fields(),
            question=question or "What do you think of this case?",
            words=self._limits.opinion_words,
        )
        try:
            reply = await (self._stream if use_streaming else self._whole)(asked, on_text)
        except (ProviderError, StructuredOutputError) as error:
            return Opinion(self.name, "", str(error))
        if "refusal" in reply.additional_kwargs:
            return Opinion(self.name, "", "the model refused to answer")
        text = str(reply.text).strip()
        if not text:
            return Opinion(self.name, "", "the answer was empty")
        # Mark text that was cut at the token limit, so that nobody takes it for a finished thought.
        is_cut = reply.response_metadata.get("finish_reason") == "length"
        return Opinion(self.name, f"{text} […]" if is_cut else text)

    async def _stream(
        self, asked: list[BaseMessage], on_text: Callable[[str], None]
    ) -> BaseMessage:
        whole = None
        stream = self._model.astream(asked)
        try:
            async for chunk in stream:
                whole = chunk if whole is None else whole + chunk
                if "refusal" not in chunk.additional_kwargs and chunk.text:
                    on_text(str(chunk.text))
        finally:
            await stream.aclose()  # type: ignore[attr-defined] # it is a generator
        assert whole is not None, "a stream ends with a chunk of its usage"
        return whole

    async def _whole(self, asked: list[BaseMessage], on_text: Callable[[str], None]) -> BaseMessage:
        reply = await self._model.ainvoke(asked)
        if reply.text:
            on_text(str(reply.text))
        return reply
