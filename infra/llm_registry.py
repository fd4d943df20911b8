"""Which model a role gets, and how a model is built from its layers.

    Structured( Cache( Retry( Gate( Attempt( Provider )))))

So the ledger has a row for every attempt that reached a provider, the cache replays exactly what a
provider sent, and a re-ask is a request of its own. With hedging on, `Hedge` stands between `Retry`
and `Gate`.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from infra.chat import ChatModel, ChatReply, ChatRequest, OnText
from infra.clock import Clock
from infra.config import (
    KEY_NAMES,
    Environment,
    LLMRole,
    Provider,
    origin_of,
    parse_environment,
    read_variables,
)
from infra.errors import ConfigError, ErrorKind
from infra.files.did_you_mean import did_you_mean
from infra.layers.attempt import ATTEMPT_TIMEOUT, Attempt
from infra.layers.cache import Cache, CacheMode, ReplyStore
from infra.layers.gate import Connections, Gate, Urgency
from infra.layers.hedge import Hedge
from infra.layers.retry import OnWait, Retry, RetryPolicy
from infra.layers.structured import Structured
from infra.ledger import Ledger
from infra.model_configs import ModelConfigs, ModelInfo, load_model_configs

if TYPE_CHECKING:
    from infra.local_model.server import LlamaServer
    from infra.providers.gemini import GeminiClient
    from infra.providers.local import LocalServer
    from infra.providers.openai_chat import OpenAIClient

AUTO = "auto"
"""The model name for: the first provider with a key, else the embedded model."""

_AUTO_ORDER = (Provider.OPENAI, Provider.GOOGLE, Provider.GROQ)


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


class ModelChooser:
    """Finds the `ModelSpec` for a user's choice.

    Args:
        environment: Keys and choices.
        configs: Defaults.
        base_url: `--model-base-url`, an OpenAI-compatible endpoint; empty if not given.
    """

    def __init__(self, environment: Environment, configs: ModelConfigs, base_url: str = "") -> None:
        self._environment = environment
        self._configs = configs
        self._base_url = base_url

    def parse(self, text: str) -> ModelSpec:
        """Return the model that `text` names: `provider/name`, a recognised bare name, or `auto`.

        With a base URL the whole text is the name of a model there.

        Raises:
            ConfigError: The name belongs to no provider.
        """
        if text == AUTO:
            return self.automatic()
        if self._base_url:
            # A server of the user's may call its models anything, `google/gemma-3` included.
            return ModelSpec(Provider.OPENAI, text, self._base_url)
        text = self._configs.aliases.get(text, text)
        start, slash, rest = text.partition("/")
        if slash and not rest:
            raise ConfigError(f"the model '{text}' has no name after its provider")
        if start in set(Provider):
            return self.of_provider(Provider(start), rest)
        provider = self._configs.provider_of(text)
        if provider is None:
            raise ConfigError(
                f"unknown model '{text}': write provider/name with one of the providers "
                f"{', '.join(Provider)}, or give the base URL of an endpoint of your own "
                f"(--model-base-url){did_you_mean(text, self._known_models())}"
            )
        return self.of_provider(provider, text)

    def _known_models(self) -> set[str]:
        full = {name for name in self._configs.models if not name.endswith("*")}
        return full | {name.partition("/")[2] for name in full} | {*self._configs.aliases}

    def of_provider(self, provider: Provider, name: str = "") -> ModelSpec:
        """Return a model of `provider`; without a name that of the environment or the default."""
        name = (
            name
            or self._environment.models.get(provider, "")
            or self._configs.providers[provider].default_model
        )
        own_url = self._base_url if provider is Provider.OPENAI else ""
        return ModelSpec(provider, name, own_url or self._environment.base_urls.get(provider, ""))

    def automatic(self) -> ModelSpec:
        """Choose by MAS_LLM_PROVIDER, else the first provider with a key, else the embedded one."""
        choice = self._of_environment(LLMRole.MAS)
        if choice is not None:
            return choice
        if self._base_url:
            return self.of_provider(Provider.OPENAI)
        for provider in _AUTO_ORDER:
            if provider in self._environment.keys or (
                provider is Provider.OPENAI and provider in self._environment.base_urls
            ):
                return self.of_provider(provider)
        return self.of_provider(Provider.LOCAL)

    def for_role(
        self, role: LLMRole, team: ModelSpec | None = None, *, chosen: bool = False
    ) -> ModelSpec:
        """Return the model of a role that the command line does not set.

        Args:
            role: Which role.
            team: The model of the team, or None without a team.
            chosen: Whether the user chose that model, so that it goes before the defaults.
        """
        if role is LLMRole.MAS:
            return team or self.automatic()
        choice = self._of_environment(role)
        if choice is not None:
            return choice
        if team is not None and chosen:
            return team
        provider, name = self._configs.roles[role]
        if provider in self._environment.keys:
            return self.of_provider(provider, name)
        return team or self.automatic()

    def _of_environment(self, role: LLMRole) -> ModelSpec | None:
        choice = self._environment.roles.get(role)
        if choice is None or not (choice.provider or choice.model):
            return None
        if not choice.provider:
            return self.parse(choice.model)
        if choice.provider not in set(Provider):
            raise ConfigError(
                f"{role.name}_LLM_PROVIDER is '{choice.provider}' but must be one of "
                f"{', '.join(Provider)}{did_you_mean(choice.provider, Provider)}"
            )
        return self.of_provider(Provider(choice.provider), choice.model)


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
    replies: ReplyStore | None = None
    """Kept replies; None: no cache."""
    cache_mode: CacheMode = CacheMode.ON
    log_prompts: bool = False
    """Whether ledger rows hold prompt and reply."""
    rng: random.Random = field(default_factory=random.Random)
    """Source of the jitter."""
    on_wait: OnWait | None = None
    may_send: Callable[[], None] = lambda: None
    """Raises LimitExceeded when a limit of the process is reached."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class ModelRegistry:
    """Builds models, one client and one gate for each endpoint, and closes what it opened.

    Args:
        runtime: What the models share.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._models: dict[ModelSpec, ChatModel] = {}
        self._openai: dict[str, OpenAIClient] = {}
        self._gemini: dict[str, GeminiClient] = {}
        self._local: dict[str, LocalServer] = {}
        self.connections: dict[str, Connections] = {}
        """Endpoint -> its connections, for a display."""
        self._connections_of: dict[ModelSpec, Connections] = {}

    def model(self, spec: ModelSpec) -> ChatModel:
        """Return the model for `spec`, built once.

        Raises:
            ConfigError: The model cannot be reached from here.
        """
        if spec not in self._models:
            self._models[spec] = self._build(spec)
        return self._models[spec]

    def room(self, spec: ModelSpec, urgency: Urgency) -> AbstractAsyncContextManager[None]:
        """Reserve a connection for the next background call to a model, except in a replay."""
        connections = self._connections_of.get(spec)
        return nullcontext() if connections is None else connections.reserve(urgency)

    async def prepare(self) -> None:
        """Start the local servers of all models built so far, so that no call waits for a start.

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
        self._models.clear()

    def _build(self, spec: ModelSpec) -> ChatModel:
        runtime = self._runtime
        info = runtime.configs.info(spec.provider, spec.name)
        structured = partial(
            Structured,
            native=info.native_schema,
            is_local=spec.provider is Provider.LOCAL,
            is_small=info.is_small,
            name=str(spec),
        )
        if runtime.replies is None:
            return structured(self._live(spec, info))
        is_replay = runtime.cache_mode is CacheMode.ONLY
        cache = Cache(
            None if is_replay else self._live(spec, info),
            runtime.replies,
            runtime.ledger,
            provider=spec.provider.value,
            model=f"{spec} {spec.base_url}",
            name=spec.name,
            price=info.price,
            clock=runtime.clock,
        )
        return structured(cache)

    def _live(self, spec: ModelSpec, info: ModelInfo) -> ChatModel:
        """Build the model behind its endpoint."""
        runtime = self._runtime
        check_reachable(spec, runtime.environment, runtime.configs)
        provider, endpoint, limit = self._provider(spec, info)
        connections = self.connections.setdefault(
            endpoint,
            Connections(
                runtime.max_connections or limit,
                runtime.clock.monotonic,
                requests_per_minute=runtime.requests_per_minute,
                tokens_per_minute=runtime.tokens_per_minute,
                share_one_machine=spec.provider is Provider.LOCAL,
            ),
        )
        self._connections_of[spec] = connections
        model: ChatModel = Attempt(
            provider,
            runtime.ledger,
            provider=spec.provider.value,
            model=spec.name,
            price=info.price,
            clock=runtime.clock,
            timeout=self._attempt_timeout(spec.provider),
            log_prompts=runtime.log_prompts,
        )
        model = Gate(model, connections, runtime.clock.monotonic, may_send=runtime.may_send)
        if runtime.hedge_after is not None:
            model = Hedge(model, runtime.hedge_after, sleep=runtime.sleep)
        return Retry(
            model,
            runtime.retry,
            name=str(spec),
            rng=runtime.rng,
            monotonic=runtime.clock.monotonic,
            on_wait=runtime.on_wait,
            sleep=runtime.sleep,
            notes=_notes(spec, runtime.environment, runtime.configs),
        )

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
                        attempt_timeout=self._attempt_timeout(spec.provider),
                    )
                return GeminiChat(self._gemini[url], spec.name, info), url or "google", 16
            case Provider.OPENAI | Provider.GROQ:
                from infra.providers.openai_chat import OpenAIChat, make_client

                url = spec.base_url or self._runtime.configs.providers[spec.provider].base_url
                if url not in self._openai:
                    self._openai[url] = make_client(
                        url,
                        self._key(spec),
                        attempt_timeout=self._attempt_timeout(spec.provider),
                        many_at_once=self._runtime.is_closed_at_the_end,
                    )
                return OpenAIChat(self._openai[url], spec.name, info), url, 16

    def _attempt_timeout(self, provider: Provider) -> float:
        runtime = self._runtime
        if runtime.attempt_timeout is not None:
            return runtime.attempt_timeout
        # A local server is slow when the machine is busy, and not faster at a second attempt.
        return runtime.retry.timeout if provider is Provider.LOCAL else ATTEMPT_TIMEOUT

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
            attempt_timeout=self._attempt_timeout(Provider.LOCAL),
            many_at_once=self._runtime.is_closed_at_the_end,
            keep_alive=0,  # after a streamed reply llama.cpp closes the connection without notice
        )
        self._openai[server.base_url] = client
        fields = partial(grammar, is_small=info.is_small)
        return OpenAIChat(client, server.model_name, info, schema_fields=fields)

    def _weights(self, spec: ModelSpec) -> Path:
        if not _is_embedded(spec, self._runtime.configs):
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
        if not _is_embedded(spec, configs) and not Path(spec.name).is_file():
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


def _notes(
    spec: ModelSpec, environment: Environment, configs: ModelConfigs
) -> Mapping[ErrorKind, str]:
    """Return what a user should know when an endpoint refuses a model for good."""
    if spec.provider is Provider.LOCAL:
        return {}
    name = environment.key_names.get(spec.provider)
    key = f"no key was sent: {KEY_NAMES[spec.provider][0]} is not set"
    if name:
        key = f"the key is {name} {origin_of(name)}"
    full = {known for known in configs.models if not known.endswith("*")}
    model = "" if str(spec) in full else did_you_mean(str(spec), full).removeprefix("; ")
    speaks_openai = spec.provider is not Provider.GOOGLE
    if speaks_openai and spec.base_url and not re.search(r"/v\d", urlsplit(spec.base_url).path):
        model = f"the base URL {spec.base_url} has no /v1 at its end; most servers need it"
    return {ErrorKind.AUTH: key, ErrorKind.MODEL_NOT_FOUND: model}


def _is_embedded(spec: ModelSpec, configs: ModelConfigs) -> bool:
    return spec.name == configs.providers[Provider.LOCAL].default_model


class RoleModels:
    """The models of roles, chosen by environment variables and `model_configs.yaml`.

    For programs that use roles outside a benchmark run. Roles with the same model share its
    connections, or its server; `aclose` ends them, or else the process.

    Args:
        attempt_timeout: Seconds for an attempt at an endpoint; None: the usual time.
        call_timeout: Seconds for a call, all its attempts included; None: the usual time. Both do
            not hold for a local model, which is slow on a small machine.
    """

    def __init__(
        self, attempt_timeout: float | None = None, call_timeout: float | None = None
    ) -> None:
        self._attempt_timeout = attempt_timeout
        self._call_timeout = call_timeout
        self._environment = Environment()
        self._registries: dict[bool, ModelRegistry] = {}

    def model(self, role: LLMRole) -> ChatModel:
        """Return the model of a role.

        Raises:
            ConfigError: The environment names a provider without a key.
        """
        if not self._registries:
            self._environment = parse_environment(read_variables())
        spec = ModelChooser(self._environment, load_model_configs()).for_role(role)
        is_local = spec.provider is Provider.LOCAL
        if is_local not in self._registries:
            self._registries[is_local] = ModelRegistry(self._runtime(is_local=is_local))
        return self._registries[is_local].model(spec)

    async def aclose(self) -> None:
        """Close all connections and stop the local servers."""
        for registry in self._registries.values():
            await registry.aclose()

    def _runtime(self, *, is_local: bool) -> Runtime:
        runtime = Runtime(self._environment, Ledger(), is_closed_at_the_end=False)
        if not is_local:
            runtime.attempt_timeout = self._attempt_timeout
            if self._call_timeout is not None:
                runtime.retry = replace(runtime.retry, timeout=self._call_timeout)
        return runtime


class _ModelOfRole:
    """The model of a role with connections of its own in each event loop.

    A program that calls `asyncio.run` several times, or calls from threads, has several loops, and
    a connection belongs to the one in which it was made. It ends with that.
    """

    def __init__(self, role: LLMRole) -> None:
        self._environment, configs = parse_environment(read_variables()), load_model_configs()
        self._spec = ModelChooser(self._environment, configs).for_role(role)
        check_reachable(self._spec, self._environment, configs)
        self._of_loop: dict[
            asyncio.AbstractEventLoop, tuple[ChatModel, AsyncGenerator[ChatModel, None]]
        ] = {}
        self.name = str(self._spec)
        self.is_local = self._spec.provider is Provider.LOCAL
        self.is_small = configs.info(self._spec.provider, self._spec.name).is_small

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """See `ChatModel.generate`."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loop:
            for ended in [one for one in tuple(self._of_loop) if one.is_closed()]:
                self._of_loop.pop(ended, None)
            models = self._until_the_loop_ends()
            self._of_loop[loop] = await anext(models), models
        model, _ = self._of_loop[loop]
        return await model.generate(request, on_text)

    async def _until_the_loop_ends(self) -> AsyncGenerator[ChatModel, None]:
        runtime = Runtime(self._environment, Ledger(), is_closed_at_the_end=False)
        registry = ModelRegistry(runtime)
        try:
            yield registry.model(self._spec)
        finally:  # by `asyncio.run`, for example, which closes the generators of its loop
            await registry.aclose()


def get_llm(role: LLMRole) -> ChatModel:
    """Return the model of a role, with connections of its own.

    It may be called in any event loop. Each has connections of its own, and for a local model a
    server of its own, which live as long as the loop.

    Raises:
        ConfigError: See `RoleModels.model`.
    """
    return _ModelOfRole(role)
