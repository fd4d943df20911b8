"""The connection to Anthropic's API."""

from __future__ import annotations

import anthropic
import httpx2
from anthropic import AsyncAnthropic

from infra.chat import ChatModel
from infra.model_configs import ModelInfo
from infra.providers.anthropic_batches import AnthropicBatches
from infra.providers.anthropic_messages import AnthropicChat
from infra.wire import BatchApi, Endpoint

_CONNECT_TIMEOUT = 10.0  # seconds
_MAX_CONNECTIONS = 1_000  # `Gate` keeps the real limit


class AnthropicClient:
    """The connection to Anthropic's API, or one that speaks like it; see `Client`.

    Args:
        endpoint: Its address and key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        limits = httpx2.Limits(
            max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS
        )
        timeout = httpx2.Timeout(endpoint.attempt_timeout, connect=_CONNECT_TIMEOUT)
        # What is not closed at the end is sent by httpx2, which may be left open.
        many = endpoint.many_at_once
        self._client = AsyncAnthropic(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=anthropic.DefaultAioHttpClient(timeout=timeout, limits=limits)
            if many
            else None,
        )

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a model."""
        return AnthropicChat(self._client, name, info)

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batches of a model."""
        return AnthropicBatches(self._client, AnthropicChat(self._client, name, info))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()
