"""The connection to Anthropic's API."""

from __future__ import annotations

import anthropic
from anthropic import AsyncAnthropic

from mdagents_llm.chat import ChatModel
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.anthropic_batches import AnthropicBatches
from mdagents_llm.providers.anthropic_messages import AnthropicChat, is_typed
from mdagents_llm.providers.sending import sending
from mdagents_llm.wire import BatchApi, Endpoint


class AnthropicClient:
    """The connection to Anthropic's API, or one that speaks like it; see `Client`.

    Args:
        endpoint: Its address and key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = AsyncAnthropic(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            **sending(endpoint, anthropic.DefaultAioHttpClient),
        )
        self._typed = is_typed(endpoint.settings)

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a model."""
        return AnthropicChat(self._client, name, info, typed=self._typed)

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batches of a model."""
        return AnthropicBatches(self._client, AnthropicChat(self._client, name, info))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()
