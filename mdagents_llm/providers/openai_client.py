"""The connection to an OpenAI-compatible endpoint, or to Azure OpenAI."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import openai
from openai import AsyncAzureOpenAI, AsyncOpenAI

from mdagents_llm.chat import ChatModel
from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.openai_batches import OpenAIBatches
from mdagents_llm.providers.openai_chat import OpenAIChat, SchemaFields, is_typed, response_format
from mdagents_llm.providers.openai_responses import OpenAIResponses
from mdagents_llm.providers.sending import KEEP_ALIVE, sending
from mdagents_llm.wire import BatchApi, Endpoint

_OPENAI = "https://api.openai.com/"
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")
_AZURE_VERSION = ("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")


class OpenAIClient:
    """The connection to one OpenAI-compatible endpoint; see `Client`.

    Args:
        endpoint: Its address and key.
        keep_alive: Seconds for which an idle connection may be used again.
    """

    def __init__(self, endpoint: Endpoint, *, keep_alive: float = KEEP_ALIVE) -> None:
        self._client = self._connect(endpoint, keep_alive)
        self._typed = is_typed(endpoint.settings)

    def model(
        self, name: str, info: ModelInfo, schema_fields: SchemaFields = response_format
    ) -> ChatModel:
        """Return a model of the endpoint, and how it is asked for a schema."""
        return self._chat(name, info, schema_fields)

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batches of a model."""
        return OpenAIBatches(self._client, self._chat(name, info))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _chat(
        self, name: str, info: ModelInfo, schema_fields: SchemaFields = response_format
    ) -> OpenAIChat:
        if info.api == "responses":
            return OpenAIResponses(self._client, name, info, typed=self._typed)
        return OpenAIChat(self._client, name, info, schema_fields=schema_fields, typed=self._typed)

    def _connect(self, endpoint: Endpoint, keep_alive: float) -> AsyncOpenAI:
        is_openai = endpoint.base_url.startswith(_OPENAI)
        return AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            default_headers=None if is_openai else _without_account(),
            **sending(endpoint, openai.DefaultAioHttpClient, keep_alive),
        )


class AzureClient(OpenAIClient):
    """The connection to a resource of Azure OpenAI, whose models are named by their deployment.

    With an API version the deployment stands in the address, as Azure's dated API has it; without
    one the resource is spoken to by its versionless API, `/openai/v1`.
    """

    def _connect(self, endpoint: Endpoint, keep_alive: float) -> AsyncOpenAI:
        resource = re.sub(r"/(openai(/.*)?)?$", "", endpoint.base_url)
        if not resource:
            raise ConfigError(
                "azure has no address: put AZURE_OPENAI_ENDPOINT=https://NAME.openai.azure.com "
                "into .env or the environment"
            )
        named = (endpoint.settings.get(variable, "") for variable in _AZURE_VERSION)
        version = next(filter(None, named), "")
        if not version:
            return super()._connect(replace(endpoint, base_url=f"{resource}/openai/v1"), keep_alive)
        return AsyncAzureOpenAI(
            azure_endpoint=resource,
            api_version=version,
            api_key=endpoint.api_key,
            default_headers=_without_account(),
            **sending(endpoint, openai.DefaultAioHttpClient, keep_alive),
        )


def _without_account() -> Any:
    # The SDK reads these from the environment and would send them to endpoints other than OpenAI.
    # (`omit` works as a value here, although the SDK's type says str.)
    return dict.fromkeys(_ACCOUNT_HEADERS, openai.omit)
