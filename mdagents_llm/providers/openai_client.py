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
from mdagents_llm.providers.openai_chat import OpenAIChat, SchemaFields, response_format
from mdagents_llm.providers.pool import Pool
from mdagents_llm.providers.sending import KEEP_ALIVE, sending
from mdagents_llm.wire import BatchApi, Endpoint

_OPENAI = "https://api.openai.com/"
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")
_AZURE_VERSION = ("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")


class OpenAIClient:
    """A `Client` for one OpenAI-compatible endpoint.

    Args:
        endpoint: Base URL, key and settings of the endpoint.
        keep_alive: Seconds for which an idle connection may be reused.
    """

    def __init__(self, endpoint: Endpoint, *, keep_alive: float = KEEP_ALIVE) -> None:
        self._client = self._connect(endpoint, keep_alive)
        self._pool = Pool(endpoint, keep_alive) if endpoint.many_at_once else None
        self._settings = endpoint.settings

    def model(
        self, name: str, info: ModelInfo, schema_fields: SchemaFields = response_format
    ) -> ChatModel:
        """Return a model of the endpoint; `schema_fields` makes its request fields for a schema."""
        return self._chat(name, info, schema_fields)

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batch API of a model."""
        return OpenAIBatches(self._client, self._chat(name, info))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()
        if self._pool is not None:
            await self._pool.aclose()

    def _chat(
        self, name: str, info: ModelInfo, schema_fields: SchemaFields = response_format
    ) -> OpenAIChat:
        if info.api == "responses":
            # Imported here: the SDK's types of that API are many.
            from mdagents_llm.providers.openai_responses import OpenAIResponses

            return OpenAIResponses(
                self._client, name, info, settings=self._settings, pool=self._pool
            )
        return OpenAIChat(
            self._client,
            name,
            info,
            schema_fields=schema_fields,
            settings=self._settings,
            pool=self._pool,
        )

    def _connect(self, endpoint: Endpoint, keep_alive: float) -> AsyncOpenAI:
        is_openai = endpoint.base_url.startswith(_OPENAI)
        return AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            default_headers=None if is_openai else _without_account(),
            **sending(endpoint, keep_alive),
        )


class AzureClient(OpenAIClient):
    """A client for an Azure OpenAI resource, whose models are named by their deployments.

    With an API version the deployment is part of the URL, as in Azure's dated API; without one the
    versionless API of the resource, `/openai/v1`, is used.
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
            **sending(endpoint, keep_alive),
        )


def _without_account() -> Any:
    # The SDK reads these from the environment and would send them to endpoints other than OpenAI's.
    # (`omit` works as a value here, although the SDK's type is str.)
    return dict.fromkeys(_ACCOUNT_HEADERS, openai.omit)
