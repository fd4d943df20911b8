"""The connection to Gemini, through the Gemini API or Vertex AI."""

from __future__ import annotations

from typing import Any
from urllib.request import getproxies

import google.auth
import httpx2
from google import genai
from google.auth.exceptions import GoogleAuthError
from google.genai import types

from mdagents_llm.chat import ChatModel
from mdagents_llm.config import is_on
from mdagents_llm.errors import ConfigError
from mdagents_llm.model_configs import ModelInfo
from mdagents_llm.providers.error_text import masked_line
from mdagents_llm.providers.gemini import GeminiChat
from mdagents_llm.providers.gemini_batches import GeminiBatches
from mdagents_llm.providers.gemini_bodies import GeminiBodies
from mdagents_llm.providers.sending import PROBES, goes_around_proxies, guarded
from mdagents_llm.wire import BatchApi, Endpoint

_USE_VERTEX = "GOOGLE_GENAI_USE_VERTEXAI"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_MAX_CONNECTIONS = 1_000


class GeminiClient:
    """A `Client` for Gemini.

    With GOOGLE_GENAI_USE_VERTEXAI it uses Vertex AI: the project and region of GOOGLE_CLOUD_PROJECT
    and GOOGLE_CLOUD_LOCATION with the credentials that Google's libraries find
    (https://cloud.google.com/docs/authentication/application-default-credentials), or an API key if
    no project is set.

    Args:
        endpoint: Base URL, key and settings of the endpoint.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        # With clients passed in, the SDK does not use aiohttp, which it otherwise prefers if
        # installed, and which silently resends a call after a lost connection.
        limits = httpx2.Limits(max_connections=_MAX_CONNECTIONS)
        if getproxies() and not goes_around_proxies(endpoint):
            client, self._unused_http = httpx2.AsyncClient(limits=limits), httpx2.Client()
        else:
            tls = httpx2.create_ssl_context()
            transport = httpx2.AsyncHTTPTransport(verify=tls, limits=limits, socket_options=PROBES)
            client = httpx2.AsyncClient(transport=transport)
            self._unused_http = httpx2.Client(trust_env=False, verify=tls)
        self._http = guarded(client, GeminiBodies)
        self._api_key = endpoint.api_key
        account = _account(endpoint)
        self._is_vertex = bool(account["vertexai"])
        self._client = genai.Client(
            **account,
            http_options=types.HttpOptions(
                base_url=endpoint.base_url or None,
                api_version=None if self._is_vertex else "v1beta",
                timeout=int(endpoint.attempt_timeout * 1000),
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_client=self._unused_http,
                httpx_async_client=self._http,
            ),
        )

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a Gemini model."""
        return GeminiChat(self._client.aio.models, self._api_key, name, info)

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batch API of a model.

        Raises:
            ConfigError: The client uses Vertex AI, which takes batches only from Cloud Storage.
        """
        if self._is_vertex:
            raise ConfigError(
                "--batch goes by the Gemini API; Vertex AI takes batches only from Cloud Storage: "
                "leave GOOGLE_GENAI_USE_VERTEXAI or --batch out"
            )
        chat = GeminiChat(self._client.aio.models, self._api_key, name, info)
        return GeminiBatches(self._client.aio.batches, chat, name)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aio.aclose()
        self._client.close()
        await self._http.aclose()
        self._unused_http.close()


def _account(endpoint: Endpoint) -> dict[str, Any]:
    """Return the credential arguments of the SDK's client."""
    settings = endpoint.settings
    if not is_on(settings.get(_USE_VERTEX, "")):
        return {"vertexai": False, "api_key": endpoint.api_key}
    project = settings.get("GOOGLE_CLOUD_PROJECT")
    if project is None:
        return {"vertexai": True, "api_key": endpoint.api_key}
    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
    except GoogleAuthError as error:
        said = masked_line(str(error)).rstrip(". ")
        raise ConfigError(
            f"Vertex AI needs credentials, and Google's libraries find none ({said}); name their "
            "file by GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"
        ) from error
    location = settings.get("GOOGLE_CLOUD_LOCATION", "global")
    return {
        "vertexai": True, "project": project, "location": location, "credentials": credentials
    }  # fmt: skip
