"""The connection to Anthropic's API."""

from __future__ import annotations

from anthropic import AsyncAnthropic

from mdagents_llm.chat import ChatModel
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.anthropic_batches import AnthropicBatches
from mdagents_llm.providers.anthropic_messages import AnthropicChat
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.sending import sending
from mdagents_llm.wire import BatchApi, Endpoint


class AnthropicClient:
    """A `Client` for Anthropic's API or a compatible one.

    Args:
        endpoint: Base URL, key and settings of the endpoint.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = AsyncAnthropic(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            **sending(endpoint),
        )
        self._settings = endpoint.settings
        self._pool = Pool(endpoint) if endpoint.many_at_once else None

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a model of the endpoint."""
        return AnthropicChat(self._client, name, info, settings=self._settings, pool=self._pool)

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batch API of a model."""
        return AnthropicBatches(self._client, AnthropicChat(self._client, name, info))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()
        if self._pool is not None:
            await self._pool.aclose()
