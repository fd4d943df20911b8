"""A model client of AutoGen over an endpoint like OpenAI's: what `autogen-ext` has, in short."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal

from autogen_core import CancellationToken
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelCapabilities,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from openai import AsyncOpenAI
from pydantic import BaseModel

NOTHING = RequestUsage(prompt_tokens=0, completion_tokens=0)
_ROLES = {"SystemMessage": "system", "AssistantMessage": "assistant"}


class OpenAIChatCompletionClient(ChatCompletionClient):
    """Asks the endpoint of the environment."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._client = AsyncOpenAI(max_retries=0)

    def _request(self, messages: Sequence[LLMMessage]) -> dict[str, Any]:
        said = [
            {"role": _ROLES.get(message.type, "user"), "content": str(message.content)}
            for message in messages
        ]
        return {"model": self._model, "messages": said}

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        answer = await self._client.chat.completions.create(**self._request(messages))
        return _result(answer.choices[0].message.content or "")

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        request = self._request(messages)
        text = ""
        async for piece in await self._client.chat.completions.create(**request, stream=True):
            said = piece.choices[0].delta.content if piece.choices else ""
            text += said or ""
            yield said or ""
        yield _result(text)

    async def close(self) -> None:
        await self._client.close()

    def actual_usage(self) -> RequestUsage:
        return NOTHING

    def total_usage(self) -> RequestUsage:
        return NOTHING

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []
    ) -> int:
        return 0

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []
    ) -> int:
        return 100_000

    @property
    def capabilities(self) -> ModelCapabilities:  # type: ignore[deprecated, unused-ignore]
        raise NotImplementedError

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=True,
            family=ModelFamily.UNKNOWN,
            structured_output=True,
        )


def _result(text: str) -> CreateResult:
    return CreateResult(finish_reason="stop", content=text, usage=NOTHING, cached=False)
