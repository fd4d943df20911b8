"""Which model a role gets, and how a model is built from its layers.

    Structured( Cache( Room( Retry( Gate( Attempt( Provider ))))))

So the ledger has a row for every attempt that reached a provider, the cache replays exactly what a
provider sent, and a re-ask is a request of its own. With hedging on, `Hedge` stands between `Retry`
and `Gate`. Where requests go in batches, `Batched` stands behind `Retry`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.config import (
    Environment,
    LLMRole,
    origin_of,
    parse_environment,
    read_variables,
)
from mdagents_llm.endpoints import Endpoints, ModelSpec, Runtime, check_reachable
from mdagents_llm.errors import ConfigError, ErrorKind
from mdagents_llm.layers.attempt import Attempt
from mdagents_llm.layers.cache import Cache, Hits, Replay
from mdagents_llm.layers.gate import Connections, Gate, Urgency
from mdagents_llm.layers.hedge import Hedge
from mdagents_llm.layers.retry import Retry
from mdagents_llm.layers.room import Room
from mdagents_llm.layers.sight import Sight
from mdagents_llm.layers.structured import Structured
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.model_configs import LOCAL, OPENAI, ModelConfigs, ModelInfo, load_model_configs
from mdagents_llm.terminal.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from mdagents_llm.layers.batch import Batched

AUTO = "auto"
"""Model name that selects the first provider with a key, else the embedded model."""


class ModelChooser:
    """Resolves a user's choice to a `ModelSpec`.

    Args:
        environment: API keys and model choices.
        configs: Providers and default models.
        base_url: Base URL of an OpenAI-compatible endpoint (`--model-base-url`); empty if not
            given.
    """

    def __init__(self, environment: Environment, configs: ModelConfigs, base_url: str = "") -> None:
        self._environment = environment
        self._configs = configs
        self._base_url = base_url

    def parse(self, text: str) -> ModelSpec:
        """Return the model that `text` names: `provider/name`, a recognized bare name, or `auto`.

        With a base URL the whole text is the name of a model at that endpoint.

        Raises:
            ConfigError: The name is malformed, misspelled, or belongs to no provider.
        """
        if text == AUTO:
            return self.automatic()
        if self._base_url:
            # The user's server may give its models any name, including `google/gemma-3`.
            return ModelSpec(OPENAI, text, self._base_url)
        text = self._configs.aliases.get(text, text)
        start, slash, rest = text.partition("/")
        if text.lower().endswith(".gguf") and self._configs.provider(start) is None:
            raise ConfigError(
                f"'{text}' is a file: write local/ and its path, local/{Path(text).expanduser()}"
            )
        if slash and not rest:
            raise ConfigError(f"the model '{text}' has no name after its provider")
        provider = self._configs.provider_of(text)
        if start in self._configs.providers or (
            (slash or provider is None) and self._configs.provider(start) is not None
        ):
            self._refuse_other_spelling(start, rest, text)
            return self.of_provider(start, rest)
        if provider is not None:
            self._refuse_other_spelling(provider, text, text)
        if provider is None:
            raise ConfigError(
                f"unknown model '{text}': write provider/name with one of the providers "
                f"{', '.join(self._configs.names())}, or give the base URL of an endpoint of your "
                f"own (--model-base-url){did_you_mean(text, self._known_models())}"
            )
        return self.of_provider(provider, text)

    def _refuse_other_spelling(self, provider: str, name: str, text: str) -> None:
        """Refuse a name that differs from a known one only in case and punctuation.

        Raises:
            ConfigError: The name is such a misspelling; the message suggests the known name.
        """
        if f"{provider}/{name}" in self._configs.models:
            return
        names = [known.partition("/")[::2] for known in self._configs.models if known[-1] != "*"]
        known = [known for of, known in names if of == provider] + [*self._configs.aliases]
        meant = next((each for each in known if _letters(each) == _letters(name)), "")
        if meant:
            prefix = f"{provider}/" if text != name and meant not in self._configs.aliases else ""
            raise ConfigError(
                f"{provider} has no model '{name}'; did you mean '{prefix}{meant}'? (for an "
                "endpoint with names of its own give --model-base-url)"
            )

    def _known_models(self) -> set[str]:
        full = {name for name in self._configs.models if not name.endswith("*")}
        return full | {name.partition("/")[2] for name in full} | {*self._configs.aliases}

    def of_provider(self, name: str, model: str = "") -> ModelSpec:
        """Return a model of a provider; an empty name selects the provider's default model.

        Raises:
            ConfigError: The provider is unknown, or it has no default model.
        """
        provider = self._configs.provider(name)
        if provider is None:
            raise ConfigError(f"unknown provider '{name}'")
        model = model or self._environment.model(provider)
        if not model:
            raise ConfigError(f"{name} has no default model: write {name}/NAME of one")
        own_url = self._base_url if name == OPENAI else ""
        return ModelSpec(name, model, own_url or self._environment.base_url(provider))

    def automatic(self) -> ModelSpec:
        """Return the model set by MAS_LLM_PROVIDER, of the first provider with a key, or local."""
        choice = self._of_environment(LLMRole.MAS)
        if choice is not None:
            return choice
        if self._base_url:
            return self.of_provider(OPENAI)
        environment = self._environment
        for name, provider in self._configs.providers.items():
            can_be_called = environment.may_call(provider) or (
                name == OPENAI and environment.base_url(provider)
            )
            if can_be_called and environment.model(provider):
                return self.of_provider(name)
        return self.of_provider(LOCAL)

    def for_role(
        self, role: LLMRole, team: ModelSpec | None = None, *, chosen: bool = False
    ) -> ModelSpec:
        """Return the model of a role that the command line does not set.

        Args:
            role: Role to choose a model for.
            team: Model of the team; None without a team.
            chosen: Whether the user chose the team's model, so that it overrides the defaults.
        """
        if role is LLMRole.MAS:
            return team or self.automatic()
        choice = self._of_environment(role)
        if choice is not None:
            return choice
        if team is not None and chosen:
            return team
        name, model = self._configs.roles[role]
        provider = self._configs.provider(name)
        if provider is not None and self._environment.may_call(provider):
            return self.of_provider(name, model)
        return team or self.automatic()

    def _of_environment(self, role: LLMRole) -> ModelSpec | None:
        choice = self._environment.role(role)
        if not choice.provider:
            return self.parse(choice.model) if choice.model else None
        if self._configs.provider(choice.provider) is None:
            names = self._configs.names()
            raise ConfigError(
                f"{role.name}_LLM_PROVIDER is '{choice.provider}' but must be one of "
                f"{', '.join(names)}{did_you_mean(choice.provider, names)}"
            )
        return self.of_provider(choice.provider, choice.model)


def _letters(name: str) -> str:
    """Return only the letters and digits of a name, in lower case."""
    return "".join(filter(str.isalnum, name.lower()))


class ModelRegistry:
    """Builds models from their layers, and closes the connections that it opened.

    Args:
        runtime: Settings and services that the models share.
        endpoints: Endpoints shared with other registries, which the caller closes; None for
            endpoints of its own.
    """

    def __init__(self, runtime: Runtime, endpoints: Endpoints | None = None) -> None:
        self._runtime = runtime
        self._models: dict[ModelSpec, ChatModel] = {}
        self._owns_endpoints = endpoints is None
        self._endpoints = Endpoints(runtime) if endpoints is None else endpoints
        self._connections_of: dict[ModelSpec, Connections] = {}
        self.batched: list[Batched] = []
        """Models whose requests go in batches."""

    def model(self, spec: ModelSpec) -> ChatModel:
        """Return the model for `spec`, which is built once.

        Raises:
            ConfigError: The model is not reachable with the current settings.
        """
        if spec not in self._models:
            self._models[spec] = self._build(spec)
        return self._models[spec]

    def room(self, spec: ModelSpec, urgency: Urgency) -> AbstractAsyncContextManager[None]:
        """Reserve a connection for the next background call to a model, except in a replay."""
        connections = self._connections_of.get(spec)
        return nullcontext() if connections is None else connections.reserve(urgency)

    @property
    def connections(self) -> Mapping[str, Connections]:
        """Endpoint -> its connections, for display."""
        return self._endpoints.connections

    async def prepare(self) -> None:
        """Start everything that endpoints need before the first call, such as a local server."""
        await self._endpoints.prepare()

    async def aclose(self) -> None:
        """Stop the batches' tasks and close the endpoints, unless they are shared."""
        for batched in self.batched:
            await batched.aclose()
        if self._owns_endpoints:
            await self._endpoints.aclose()
        self._models.clear()

    def _build(self, spec: ModelSpec) -> ChatModel:
        runtime = self._runtime
        info = runtime.configs.info(spec.provider, spec.name).asked_to(spec.thinking)
        if spec.api:
            info = replace(info, api=spec.api)
        structured = partial(
            Structured,
            native=info.native_schema,
            is_local=spec.is_local,
            is_small=info.is_small,
            name=str(spec),
            identity=spec.identity,
        )
        hits = Hits(
            runtime.ledger,
            provider=spec.provider,
            model=_identity_in_cache(spec),
            name=spec.name,
            price=runtime.configs.price_of(spec.provider, spec.name),
            clock=runtime.clock,
            logged=runtime.logged,
        )
        if runtime.replay is not None:
            return structured(Replay(runtime.replay, hits))
        live = self._live(spec, info, hits)
        if runtime.replies is None:
            return structured(live)
        return structured(Cache(live, runtime.replies, hits))

    def _live(self, spec: ModelSpec, info: ModelInfo, hits: Hits) -> ChatModel:
        """Build the layers of a model that calls its endpoint."""
        model = self._in_batches(spec, info, hits) or self._at_once(spec, info)
        runtime = self._runtime
        provider = runtime.configs.provider(spec.provider)
        if provider is not None:
            is_ours = isinstance(provider.wire, str) or bool(provider.relays)
            model = Sight(model, info, provider.pictures, must_know=not is_ours)
        retry = Retry(
            model,
            runtime.retry,
            name=str(spec),
            rng=runtime.rng,
            monotonic=runtime.clock.monotonic,
            on_wait=runtime.on_wait,
            sleep=runtime.sleep,
            notes=_notes(spec, runtime.environment, runtime.configs),
            replied=runtime.replied,
            in_batches=runtime.batching is not None,
        )
        # A local model is limited by its context, and a grammar bounds its replies.
        if spec.is_local:
            return retry
        return Room(retry, info, name=str(spec), remembers=runtime.batching is None)

    def _in_batches(self, spec: ModelSpec, info: ModelInfo, hits: Hits) -> ChatModel | None:
        runtime = self._runtime
        if runtime.batching is None:
            return None
        from mdagents_llm.layers.batch import Batched  # most runs send no batches

        batched = Batched(
            self._endpoints.open_batches(spec, info),
            runtime.batching,
            name=str(spec),
            identity=spec.identity.rstrip(),
            key=hits.key,
            row=partial(
                CallRow.of,
                provider=spec.provider,
                model=spec.name,
                price=runtime.configs.price_of(spec.provider, spec.name),
                logged=runtime.logged,
            ),
            book=runtime.ledger.add,
            clock=runtime.clock,
            policy=runtime.retry,
            known=self._endpoints.batches,
            sleep=runtime.sleep,
            may_send=runtime.may_send,
        )
        self.batched.append(batched)
        return batched

    def _at_once(self, spec: ModelSpec, info: ModelInfo) -> ChatModel:
        runtime = self._runtime
        provider, connections = self._endpoints.open(spec, info)
        self._connections_of[spec] = connections
        model: ChatModel = Attempt(
            provider,
            runtime.ledger,
            provider=spec.provider,
            model=spec.name,
            price=runtime.configs.price_of(spec.provider, spec.name),
            clock=runtime.clock,
            timeout=self._endpoints.attempt_timeout(is_local=spec.is_local),
            logged=runtime.logged,
        )
        model = Gate(
            model,
            connections,
            runtime.clock.monotonic,
            may_send=runtime.may_send,
            model=spec.name,
        )
        if runtime.hedge_after is not None:
            model = Hedge(model, runtime.hedge_after, sleep=runtime.sleep)
        return model


def _identity_in_cache(spec: ModelSpec) -> str:
    """Return the identity of a model, with that of the content of a GGUF file."""
    path = Path(spec.name)
    if not spec.is_local or not path.is_file():
        return spec.identity
    from mdagents_llm.local_model.weights import sampled_hash  # most runs have no such file

    return f"{spec.identity} {sampled_hash(path)}"


def _notes(
    spec: ModelSpec, environment: Environment, configs: ModelConfigs
) -> Mapping[ErrorKind, str]:
    """Return hints for the user, by kind of error, for when an endpoint rejects a model."""
    provider = configs.provider(spec.provider)
    if spec.is_local or provider is None:
        return {}
    name = environment.key_name(provider)
    key = f"the key is {name} {origin_of(name)}" if name else ""
    if provider.keys and not name:
        key = f"no key was sent: {provider.keys[0]} is not set"
    full = {known for known in configs.models if not known.endswith("*")}
    model = "" if str(spec) in full else did_you_mean(str(spec), full).removeprefix("; ")
    if (
        provider.wire == "openai"
        and spec.base_url
        and not re.search(r"/v\d", urlsplit(spec.base_url).path)
    ):
        model = f"the base URL {spec.base_url} has no /v1 at its end; most servers need it"
    return {ErrorKind.AUTH: key, ErrorKind.MODEL_NOT_FOUND: model}


class RoleModels:
    """The models of roles, chosen by environment variables and `model_configs.yaml`.

    This class is for programs that use roles outside a benchmark run. Roles with the same model
    share its connections or its server, which last until `aclose` or the end of the process.

    Args:
        attempt_timeout: Timeout of one attempt at an endpoint, in seconds; None for the default.
        call_timeout: Timeout of a call with all its attempts, in seconds; None for the default.
            Neither timeout applies to a local model, which is slow on a small machine.
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
            ConfigError: The environment names a provider that is unknown or has no key.
        """
        if not self._registries:
            self._environment = parse_environment(read_variables())
        spec = ModelChooser(self._environment, load_model_configs()).for_role(role)
        is_local = spec.is_local
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
    """The model of a role, with separate connections in each event loop.

    A program that calls `asyncio.run` several times, or from several threads, has several loops. A
    connection belongs to the loop in which it was opened and is closed when that loop ends.
    """

    def __init__(self, role: LLMRole, ledger: Ledger) -> None:
        self._ledger = ledger
        self._environment, configs = parse_environment(read_variables()), load_model_configs()
        self._spec = ModelChooser(self._environment, configs).for_role(role)
        check_reachable(self._spec, self._environment, configs)
        self._of_loop: dict[
            asyncio.AbstractEventLoop, tuple[ChatModel, AsyncGenerator[ChatModel, None]]
        ] = {}
        self.name = str(self._spec)
        self.is_local = self._spec.is_local
        self.is_small = configs.info(self._spec.provider, self._spec.name).is_small

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request on the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loop:
            for ended in [one for one in tuple(self._of_loop) if one.is_closed()]:
                self._of_loop.pop(ended, None)
            models = self._until_the_loop_ends()
            self._of_loop[loop] = await anext(models), models
        model, _ = self._of_loop[loop]
        return await model.generate(request, on_text)

    async def _until_the_loop_ends(self) -> AsyncGenerator[ChatModel, None]:
        runtime = Runtime(self._environment, self._ledger, is_closed_at_the_end=False)
        registry = ModelRegistry(runtime)
        try:
            yield registry.model(self._spec)
        finally:  # `asyncio.run`, for example, closes the generators of its loop
            await registry.aclose()


def get_llm(role: LLMRole | str, *, ledger: Ledger | None = None) -> ChatModel:
    """Return the model of a role, such as `"mas"`, with its own connections.

    The model may be called in any event loop. Each loop has its own connections, and for a local
    model its own server, which live as long as the loop.

    Args:
        role: The role.
        ledger: Ledger in which the calls are booked; None: one that nobody reads.

    Raises:
        ConfigError: The role is unknown, or the environment names a provider that is unknown or has
            no key.
    """
    if role not in set(LLMRole):
        raise ConfigError(f"there is no role {role!r:.60}; choose {', '.join(LLMRole)}")
    return _ModelOfRole(LLMRole(role), ledger or Ledger())
