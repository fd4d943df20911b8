"""The endpoints of a process: a client and a gate each, however many models and runs use them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from infra.chat import ChatModel
from infra.clock import Clock
from infra.config import KEY_NAMES, Environment, Provider, origin_of
from infra.errors import ConfigError
from infra.layers.attempt import ATTEMPT_TIMEOUT
from infra.layers.cache import Replies, ReplyStore
from infra.layers.gate import Connections
from infra.layers.retry import OnWait, RetryPolicy
from infra.ledger import Ledger
from infra.model_configs import ModelConfigs, ModelInfo, load_model_configs

if TYPE_CHECKING:
    from infra.local_model.server import LlamaServer
    from infra.providers.gemini import GeminiClient
    from infra.providers.local import LocalServer
    from infra.providers.openai_chat import OpenAIClient


CONNECTIONS = 16
"""Calls under way at once at an endpoint, unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model at one endpoint."""

    provider: Provider
    name: str
    """The provider's name for it; for `local` the path of a GGUF file, or the embedded model."""
    base_url: str = ""
    """Address of an endpoint other than the provider's own; empty for that."""

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


@dataclass(slots=True)
class Runtime:
    """The settings and services that all models of a process share."""

    environment: Environment
    ledger: Ledger
    clock: Clock = field(default_factory=Clock)
    configs: ModelConfigs = field(default_factory=load_model_configs)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    attempt_timeout: float | None = None
    """Seconds for one attempt; None: `ATTEMPT_TIMEOUT`, for a local model as long as a call has."""
    hedge_after: float | None = None
    """Seconds without text or reply after which an attempt is made twice; None: never."""
    is_closed_at_the_end: bool = True
    """Whether `ModelRegistry.aclose` will be called."""
    max_connections: int | None = None
    """Calls under way at once at an endpoint; None: 16, for a local model its slots."""
    requests_per_minute: float | None = None
    """At an endpoint; None: no limit."""
    tokens_per_minute: float | None = None
    """At an endpoint, input and output; None: no limit."""
    replies: Replies | None = None
    """Kept replies; None: no cache."""
    replay: ReplyStore | None = None
    """Kept replies that alone answer, so that no model is asked; None: no replay."""
    log_prompts: bool = False
    """Whether ledger rows hold prompt and reply."""
    rng: random.Random = field(default_factory=random.Random)
    """Source of the jitter."""
    on_wait: OnWait | None = None
    may_send: Callable[[], None] = lambda: None
    """Raises LimitExceeded when a limit of the process is reached."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Endpoints:
    """The clients, connections and local servers of a process.

    Args:
        runtime: Its settings of endpoints count: keys, connections, rates and times.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._openai: dict[str, OpenAIClient] = {}
        self._gemini: dict[str, GeminiClient] = {}
        self._local: dict[str, LocalServer] = {}
        self.connections: dict[str, Connections] = {}
        """Endpoint -> its connections, for a display."""

    def open(self, spec: ModelSpec, info: ModelInfo) -> tuple[ChatModel, Connections]:
        """Return a model as its provider answers, and the connections of its endpoint.

        Raises:
            ConfigError: The model cannot be reached from here.
        """
        runtime = self._runtime
        check_reachable(spec, runtime.environment, runtime.configs)
        provider, endpoint, limit = self._provider(spec, info)
        if endpoint not in self.connections:
            self.connections[endpoint] = Connections(
                runtime.max_connections or limit,
                runtime.clock.monotonic,
                requests_per_minute=runtime.requests_per_minute,
                tokens_per_minute=runtime.tokens_per_minute,
                share_one_machine=spec.provider is Provider.LOCAL,
            )
        return provider, self.connections[endpoint]

    def attempt_timeout(self, provider: Provider) -> float:
        """Return the seconds that one attempt at a provider may take."""
        runtime = self._runtime
        if runtime.attempt_timeout is not None:
            return runtime.attempt_timeout
        # A local server is slow when the machine is busy, and not faster at a second attempt.
        return runtime.retry.timeout if provider is Provider.LOCAL else ATTEMPT_TIMEOUT

    async def prepare(self) -> None:
        """Start the local servers of all models opened so far, so that no call waits for a start.

        Raises:
            ConfigError: The weights are not there, or cannot be loaded.
        """
        for server in self._local.values():
            await server.model()

    async def aclose(self) -> None:
        """Close all connections and stop the local servers."""
        for client in self._openai.values():
            await client.close()
        for gemini in self._gemini.values():
            await gemini.aclose()
        for server in self._local.values():
            await server.aclose()

    def _provider(self, spec: ModelSpec, info: ModelInfo) -> tuple[ChatModel, str, int]:
        """Return (provider, name of its endpoint, default connections). SDKs are imported here."""
        match spec.provider:
            case Provider.LOCAL:
                from infra.providers.local import SLOTS, LocalChat

                return LocalChat(self._local_server(spec, info)), str(spec), SLOTS
            case Provider.GOOGLE:
                from infra.providers.gemini import GeminiChat, GeminiClient

                url = spec.base_url
                if url not in self._gemini:
                    self._gemini[url] = GeminiClient(
                        url,
                        self._key(spec),
                        attempt_timeout=self.attempt_timeout(spec.provider),
                    )
                return GeminiChat(self._gemini[url], spec.name, info), url or "google", CONNECTIONS
            case Provider.OPENAI | Provider.GROQ:
                from infra.providers.openai_chat import OpenAIChat, make_client

                url = spec.base_url or self._runtime.configs.providers[spec.provider].base_url
                if url not in self._openai:
                    self._openai[url] = make_client(
                        url,
                        self._key(spec),
                        attempt_timeout=self.attempt_timeout(spec.provider),
                        many_at_once=self._runtime.is_closed_at_the_end,
                    )
                return OpenAIChat(self._openai[url], spec.name, info), url, CONNECTIONS

    def _local_server(self, spec: ModelSpec, info: ModelInfo) -> LocalServer:
        from infra.providers.local import LocalServer

        if spec.name not in self._local:
            self._local[spec.name] = LocalServer(
                partial(self._weights, spec), partial(self._connect_local, info)
            )
        return self._local[spec.name]

    def _connect_local(self, info: ModelInfo, server: LlamaServer) -> ChatModel:
        from infra.providers.local import grammar
        from infra.providers.openai_chat import OpenAIChat, make_client

        client = make_client(
            server.base_url,
            server.api_key,
            attempt_timeout=self.attempt_timeout(Provider.LOCAL),
            many_at_once=self._runtime.is_closed_at_the_end,
            keep_alive=0,  # after a streamed reply llama.cpp closes the connection without notice
        )
        self._openai[server.base_url] = client
        fields = partial(grammar, is_small=info.is_small)
        return OpenAIChat(client, server.model_name, info, schema_fields=fields)

    def _weights(self, spec: ModelSpec) -> Path:
        if not is_embedded(spec, self._runtime.configs):
            return Path(spec.name)
        from infra.local_model import weights

        return weights.require(self._runtime.environment.cache_dir)

    def _key(self, spec: ModelSpec) -> str:
        # A server of the user's often needs no key, but the SDK does; the others were checked.
        return self._runtime.environment.keys.get(spec.provider, "no-key")


def check_reachable(spec: ModelSpec, environment: Environment, configs: ModelConfigs) -> None:
    """Check whether a model can be reached from here, without calling it.

    Raises:
        ConfigError: The provider has no key, or the file does not exist.
    """
    if spec.provider is Provider.LOCAL:
        if not is_embedded(spec, configs) and not Path(spec.name).is_file():
            raise ConfigError(f"there is no GGUF file {spec.name}; check the path in local/PATH")
        return
    key = environment.keys.get(spec.provider)
    has_own_endpoint = spec.base_url and spec.provider is Provider.OPENAI
    if key is None and not has_own_endpoint:
        others = "".join(f"a model of {other} (there is a key), or " for other in environment.keys)
        raise ConfigError(
            f"no key for {spec.provider}: put {KEY_NAMES[spec.provider][0]}=… into .env or the "
            f"environment, or choose {others}the model 'local', which needs none"
        )
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        name = environment.key_names.get(spec.provider, "")
        raise ConfigError(
            f"{name} {origin_of(name)} holds a character that no key has, such as a space, a line "
            "break or a curly quotation mark; copy the key again"
        )


def is_embedded(spec: ModelSpec, configs: ModelConfigs) -> bool:
    """Return whether a model is the one that comes with this program."""
    return spec.name == configs.providers[Provider.LOCAL].default_model
