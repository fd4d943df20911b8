"""The endpoints of a process: one client and one gate each, shared by all models and runs."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.request import getproxies

from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment, env_file, origin_of, set_by_process
from mdagents_llm.deferred import deferred
from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import check_installed, needs_extra
from mdagents_llm.layers.attempt import ATTEMPT_TIMEOUT
from mdagents_llm.layers.cache import Replies
from mdagents_llm.layers.gate import Connections
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.layers.retry import OnWait, RetryPolicy
from mdagents_llm.ledger import Ledger, Logged
from mdagents_llm.model_configs import (
    LOCAL,
    OPENAI,
    ModelConfigs,
    ModelInfo,
    ProviderInfo,
    Thinking,
    load_model_configs,
)

if TYPE_CHECKING:
    from mdagents_llm.layers.batch import Batching
    from mdagents_llm.local_model.server import LlamaServer
    from mdagents_llm.providers.local import LocalServer
    from mdagents_llm.providers.openai_client import OpenAIClient
    from mdagents_llm.wire import BatchApi, Client, Connect, Endpoint


CONNECTIONS = 16
"""Default maximum number of concurrent calls per endpoint."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model at one endpoint."""

    provider: str
    """Name of a provider in `model_configs.yaml` or in another package."""
    name: str
    """The provider's name for the model; for `local`, the path of a GGUF file or the name of the
    embedded model."""
    base_url: str = ""
    """Base URL of an endpoint other than the provider's default; empty for the default."""
    thinking: Thinking = field(default_factory=Thinking)
    """Reasoning settings for the model."""
    api: Literal["", "chat", "responses"] = ""
    """API of the OpenAI wire protocol to use; empty for the one in `ModelInfo`."""

    @property
    def identity(self) -> str:
        """Model, endpoint and non-default settings; specs that differ here are different models."""
        endpoint = f"{self} {self.base_url}"
        return f"{endpoint} {self.settings}" if self.settings else endpoint

    @property
    def settings(self) -> str:
        """Non-default settings as text; empty if all are defaults."""
        parts = (str(self.thinking), f"api={self.api}" if self.api else "")
        return " ".join(filter(None, parts))

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"

    @property
    def is_local(self) -> bool:
        """Whether this program serves the model itself, on this machine."""
        return self.provider == LOCAL


@dataclass(slots=True)
class Runtime:
    """The settings and services that all models of a process share."""

    environment: Environment
    ledger: Ledger
    clock: Clock = field(default_factory=Clock)
    configs: ModelConfigs = field(default_factory=load_model_configs)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    attempt_timeout: float | None = None
    """Timeout of one attempt in seconds; None for `ATTEMPT_TIMEOUT`, or for a local model the
    timeout of the whole call."""
    hedge_after: float | None = None
    """Silent seconds after which a second request is sent; None for no hedging."""
    is_closed_at_the_end: bool = True
    """Whether the caller will call `ModelRegistry.aclose`."""
    max_connections: int | None = None
    """Maximum number of concurrent calls per endpoint; None for 16, or for a local model its number
    of slots."""
    requests_per_minute: float | None = None
    """Maximum requests per minute at an endpoint; None for no limit."""
    tokens_per_minute: float | None = None
    """Maximum input and output tokens per minute at an endpoint; None for no limit."""
    replies: Replies | None = None
    """Cached replies; None for no cache."""
    replay: ReplyStore | None = None
    """Stored replies that answer every request, without calls to a model; None for no replay."""
    batching: Batching | None = None
    """Settings for sending requests in batches; None sends each request individually at once."""
    logged: Logged = field(default_factory=Logged)
    """Texts to include in ledger rows."""
    rng: random.Random = field(default_factory=random.Random)
    """Random number generator for the backoff jitter."""
    replied: set[str] = field(default_factory=set)
    """Names of the models that have replied, to this process or to another one of the run."""
    on_wait: OnWait | None = None
    may_send: Callable[[], None] | None = None
    """Function that raises LimitExceeded when a limit of the process is reached; None for no
    limit."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Endpoints:
    """The clients, connections and local servers of a process.

    Args:
        runtime: Runtime that supplies the endpoint settings: keys, connections, rates, timeouts.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._clients: dict[str, Client] = {}
        self._local: dict[str, LocalServer] = {}
        self.connections: dict[str, Connections] = {}
        """Endpoint -> its connections, for display."""
        self.batches: set[str] = set()
        """IDs of the batches submitted by this process, for all models and runs."""

    def open(self, spec: ModelSpec, info: ModelInfo) -> tuple[ChatModel, Connections]:
        """Return a provider's model, without layers, and the connections of its endpoint.

        Raises:
            ConfigError: The model is not reachable with the current settings.
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
                share_one_machine=spec.is_local,
            )
        return provider, self.connections[endpoint]

    def attempt_timeout(self, *, is_local: bool) -> float:
        """Return the timeout of one attempt at a provider, in seconds."""
        runtime = self._runtime
        if runtime.attempt_timeout is not None:
            return runtime.attempt_timeout
        # A local server is slow when the machine is busy, and a second attempt is no faster.
        return runtime.retry.timeout if is_local else ATTEMPT_TIMEOUT

    async def prepare(self) -> None:
        """Start the local servers of all models opened so far, so that no call waits for one.

        Raises:
            ConfigError: The weights are missing or cannot be loaded.
        """
        for server in self._local.values():
            await server.model()

    async def aclose(self) -> None:
        """Close all connections and stop the local servers."""
        for client in self._clients.values():
            await client.aclose()
        for server in self._local.values():
            await server.aclose()

    def _provider(self, spec: ModelSpec, info: ModelInfo) -> tuple[ChatModel, str, int]:
        """Return (model, name of its endpoint, default number of connections)."""
        if spec.is_local:
            with needs_extra("local", f"the model '{spec}'"):
                check_installed("xllamacpp")
            from mdagents_llm.providers.local import SLOTS, LocalChat

            return LocalChat(self._local_server(spec, info)), str(spec), SLOTS
        model = self._client(spec).model(spec.name, info)
        return model, self._address(spec) or spec.provider, CONNECTIONS

    def open_batches(self, spec: ModelSpec, info: ModelInfo) -> BatchApi:
        """Return the batch API of a model.

        Raises:
            ConfigError: The model is not reachable with the current settings, or its provider
                takes no batches.
        """
        from mdagents_llm.wire import BatchClient

        check_reachable(spec, self._runtime.environment, self._runtime.configs)
        provider = self._runtime.configs.provider(spec.provider)
        has_price = provider is not None and provider.batch_price is not None
        client = self._client(spec) if has_price else None
        if not isinstance(client, BatchClient):
            raise ConfigError(f"{spec.provider} takes no batches; leave --batch out")
        return client.batches(spec.name, info)

    def _address(self, spec: ModelSpec) -> str:
        provider = self._runtime.configs.provider(spec.provider)
        return spec.base_url or (provider.base_url if provider else "")

    def _client(self, spec: ModelSpec) -> Client:
        provider = self._runtime.configs.provider(spec.provider)
        assert provider is not None, "checked"
        url = self._address(spec)
        client = f"{spec.provider} {url}"
        if client not in self._clients:
            environment = self._runtime.environment
            # A user's own server often needs no key, but the SDK does; other keys were checked.
            key = environment.key(provider) or "no-key"
            self._clients[client] = _connect(provider)(
                self._endpoint(url, key, settings=environment.settings(provider))
            )
        return self._clients[client]

    def _endpoint(
        self,
        url: str,
        key: str,
        *,
        is_local: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> Endpoint:
        from mdagents_llm.wire import Endpoint

        return Endpoint(
            url,
            key,
            attempt_timeout=self.attempt_timeout(is_local=is_local),
            many_at_once=self._runtime.is_closed_at_the_end,
            is_own=is_local,
            settings=settings or {},
        )

    def _local_server(self, spec: ModelSpec, info: ModelInfo) -> LocalServer:
        from mdagents_llm.providers.local import LocalServer

        if spec.name not in self._local:
            self._local[spec.name] = LocalServer(
                partial(self._weights, spec), partial(self._connect_local, info)
            )
        return self._local[spec.name]

    def _connect_local(self, info: ModelInfo, server: LlamaServer) -> ChatModel:
        from mdagents_llm.providers.local import grammar

        local = self._runtime.configs.providers[LOCAL]
        endpoint = self._endpoint(
            server.base_url,
            server.api_key,
            is_local=True,
            settings=self._runtime.environment.settings(local),
        )
        # llama.cpp closes the connection without notice after a streamed reply.
        client = _openai_client()(endpoint, keep_alive=0)
        self._clients[server.base_url] = client
        fields = partial(grammar, is_small=info.is_small)
        return client.model(server.model_name, info, schema_fields=fields)

    def _weights(self, spec: ModelSpec) -> Path:
        if not is_embedded(spec, self._runtime.configs):
            return Path(spec.name)
        from mdagents_llm.local_model import weights

        return weights.require(self._runtime.environment.caches)


def _openai_client(*, is_azure: bool = False) -> type[OpenAIClient]:
    # 370 modules, of which a request needs none.
    with deferred("openai.types", "openai.types.responses"):
        from mdagents_llm.providers.openai_client import AzureClient, OpenAIClient
    return AzureClient if is_azure else OpenAIClient


def _connect(provider: ProviderInfo) -> Connect:
    """Return the function that opens a client. SDKs are imported here, on first use."""
    match provider.wire:
        case "openai":
            return _openai_client()
        case "azure":
            return _openai_client(is_azure=True)
        case "gemini":
            with warnings.catch_warnings():
                # Python 3.12 and newer show compiler warnings about google-genai when an installer
                # such as uv leaves the byte-compiling to the first import.
                warnings.filterwarnings("ignore", ".*invalid escape sequence")
                from mdagents_llm.providers.gemini_client import GeminiClient

            return GeminiClient
        case "anthropic":
            from mdagents_llm.providers.anthropic_client import AnthropicClient

            return AnthropicClient
        case "inspect":
            with needs_extra("inspect", "a model of Inspect"):
                from mdagents_llm.providers.inspect_client import InspectClient

            return InspectClient
        case str(name):
            raise ConfigError(
                f"a provider has the wire '{name}', but it must be openai, azure, gemini, "
                "anthropic, inspect, or a function"
            )
        case connect:
            return connect


_PLACEHOLDER = re.compile(
    r"(?:sk|gsk|AIza)?[-_]?(?:"
    r"[x*.…]{3,}|<.*>|\{.*\}|\[.*\]|(?:my[-_ ])?api[-_ ]?key|change-?me|replace-?me"
    r"|(?:.*[-_ ])?your[-_ ]?(?:.*(?:key|token|secret).*|own)?"
    r"|.*(?:key|token)[-_ ](?:goes[-_ ])?here"
    r"|(?:insert|paste|put|replace|enter)[-_ ].*"
    r")",
    re.IGNORECASE,
)
"""Pattern of placeholders for an API key: `sk-your-key-here`, `sk-...`, `<API key>`, `xxx`."""


def check_reachable(spec: ModelSpec, environment: Environment, configs: ModelConfigs) -> None:
    """Check that a model is reachable with the current settings, without calling it.

    Raises:
        ConfigError: The provider is unknown, its key is missing or not usable, a variable names
            its endpoint in vain, the GGUF file does not exist, SSL_CERT_FILE or SSLKEYLOGFILE names
            no usable file, or a proxy cannot be used.
    """
    if spec.is_local:
        if not is_embedded(spec, configs) and not Path(spec.name).is_file():
            path = Path(spec.name).expanduser()  # a shell expands ~ only at the start of a word
            meant = f"local/{path}" if path.is_file() else "check the path in local/PATH"
            raise ConfigError(f"there is no GGUF file {spec.name}; {meant}")
        return
    provider = configs.provider(spec.provider)
    if provider is None:
        raise ConfigError(
            f"unknown provider '{spec.provider}': it must be one of {', '.join(configs.names())}"
        )
    if not spec.base_url and (unread := environment.unread_base_url(provider)):
        raise ConfigError(
            f"{unread} {origin_of(unread)} is not read, so that {spec.provider} would get the "
            f"questions; rename it to {provider.base_url_variable}, or unset it"
        )
    key = environment.key(provider)
    has_own_endpoint = spec.base_url and spec.provider == OPENAI
    needs_key = provider.needs_key and provider.keys
    if needs_key and not (environment.may_call(provider) or has_own_endpoint):
        others = "".join(
            f"a model of {name} (there is a key), or "
            for name, other in configs.providers.items()
            if environment.key_name(other)
        )
        read = env_file()
        found = f"{read} was read and has none" if read else "there is none here or above"
        raise ConfigError(
            f"no key for {spec.provider}: put {provider.keys[0]}=… into .env ({found}) or the "
            f"environment, or choose {others}the model 'local', which needs none"
        )
    if key is not None and provider.needs_key and _PLACEHOLDER.fullmatch(key):
        name = environment.key_name(provider)
        raise ConfigError(
            f"{name} {origin_of(name)} holds '{key}', which stands for a key; put your own there, "
            "or take the line out where an endpoint needs none"
        )
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        name = environment.key_name(provider)
        raise ConfigError(
            f"{name} {origin_of(name)} holds a character that no key has, such as a space, a line "
            "break or a curly quotation mark; copy the key again"
        )
    is_encrypted = not (spec.base_url or provider.base_url).lower().startswith("http:")
    if is_encrypted:
        # `.env` is not read by the HTTP libraries.
        for name, file in set_by_process(("SSL_CERT_FILE", "SSLKEYLOGFILE")).items():
            _check_ssl_file(name, file)
    if getproxies():
        _check_proxies(spec.base_url or provider.base_url)


def _check_proxies(base_url: str) -> None:
    """Check the proxies of the environment, which the HTTP libraries read when they connect."""
    import httpx2

    from mdagents_llm.providers.sending import is_in_no_proxy  # takes 40 ms

    if is_in_no_proxy(base_url):
        return
    for scheme, address in getproxies().items():
        if scheme not in ("all", "http", "https"):
            continue
        name = f"{scheme.upper()}_PROXY"  # its value may hold a password
        try:
            proxy = httpx2.Proxy(address if "://" in address else f"http://{address}")
        except (ValueError, httpx2.InvalidURL):
            raise ConfigError(
                f"{name} must be the address of a proxy, such as http://HOST:PORT; correct it, or "
                "name the host of the model in NO_PROXY"
            ) from None
        if proxy.url.scheme.startswith("socks") and find_spec("socksio") is None:
            raise ConfigError(
                f"{name} is a SOCKS proxy, which needs a package (pip install socksio); install "
                "it, or name the host of the model in NO_PROXY"
            )


@cache  # reading the certificates of a system takes 20 ms, and a run checks several models
def _check_ssl_file(name: str, path: str) -> None:
    """Check a file that the HTTP libraries use when they connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    is_log = name == "SSLKEYLOGFILE"
    kind = "file that can be written" if is_log else "PEM file of trusted certificates"
    try:
        if is_log:
            context.keylog_filename = path
        else:
            context.load_verify_locations(path)
    except OSError as error:
        why = "it has no certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(
            f"{name} is {path} but must be a {kind} ({why}); correct or unset it"
        ) from None


def is_embedded(spec: ModelSpec, configs: ModelConfigs) -> bool:
    """Return whether a model is the embedded model of this program."""
    return spec.is_local and spec.name == configs.providers[LOCAL].default_model
