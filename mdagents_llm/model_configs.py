"""Reads `model_configs.yaml`: providers, default models of roles, prices, model properties.

A provider in another package is discovered by its entry point in the group `mdagents.providers`
when its name is used: docs/how-to/own-provider.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from mdagents_llm.chat import ChatRequest
from mdagents_llm.errors import ConfigError
from mdagents_llm.ledger import Price, PriceOf
from mdagents_llm.prices import known_price

LOCAL = "local"
"""Name of the provider that serves the embedded model and any GGUF file."""
OPENAI = "openai"
"""Name of the provider for OpenAI and for the user's own OpenAI-compatible endpoints."""
HEADROOM = 8192
"""Default number of tokens for hidden reasoning of an unknown model."""
GROUP = "mdagents.providers"
"""Entry point group for providers in other packages."""

_FILE = Path(__file__).with_name("model_configs.yaml")


APIS = ("auto", "chat", "responses")
"""APIs of the OpenAI wire protocol: chat completions, Responses; `auto` picks by model."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Reasoning efforts, in ascending order."""
BUDGETS = dict(zip(EFFORTS, (0, 1024, 2048, 8192, 16_384, 24_576, 32_768), strict=True))
"""Effort -> reasoning tokens, for models whose API takes a token budget."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning settings of a model. Unset fields leave the endpoint's default."""

    effort: str = ""
    """Reasoning effort, one of `EFFORTS`; empty if unset."""
    tokens: int | None = None
    """Tokens reserved for hidden reasoning, also sent as its budget if the endpoint takes one; None
    if unset."""
    max_tokens: int | None = None
    """Token limit of a whole reply, hidden reasoning included; None for the usual limit."""
    is_shown: bool = False
    """Whether to request the reasoning, or a summary of it, from the endpoint. This changes no
    answer and is not part of a model's identity."""

    def __str__(self) -> str:
        parts = {"effort": self.effort, "tokens": self.tokens, "max": self.max_tokens}
        return " ".join(f"{name}={of}" for name, of in parts.items() if of not in ("", None))

    @property
    def budget(self) -> int | None:
        """Reasoning budget in tokens; None if neither tokens nor an effort were given."""
        return BUDGETS.get(self.effort) if self.tokens is None else self.tokens


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """The limits of an endpoint for the pictures of a request; None where it publishes none."""

    most: int | None = None
    """Maximum number of pictures."""
    most_bytes: int | None = None
    """Maximum size of a picture, in bytes of its Base64 text."""
    most_bytes_together: int | None = None
    """Maximum size of all pictures, in bytes of their Base64 texts."""
    longest_side: int | None = None
    """Maximum width and height of a picture in pixels."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The properties of a model. The defaults suit an unknown, ordinary chat model."""

    price: Price | None = None
    """Price that overrides the one of `genai-prices` and costs that the endpoint reports; None for
    those (`ModelConfigs.price`)."""
    context: int | None = None
    """Context window: maximum tokens of prompt and reply together; None if unknown."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The endpoint's name for the token limit of a reply."""
    seed_field: str = "seed"
    """The endpoint's name for the seed."""
    takes_temperature: bool = True
    takes_seed: bool = True
    native_schema: bool = True
    """Whether to try the endpoint's schema support before the prompt."""
    forced_tool: bool = True
    """Whether an Anthropic model can be forced to call a tool, which carries the schema; if not,
    the schema goes into `output_config.format`."""
    reasoning_headroom: int = HEADROOM
    """Tokens added to a reply's limit because hidden reasoning counts against it; 0 for a model
    that reasons only on request."""
    reasoning_field: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    """Request field of a chat completion that sets the reasoning effort: `reasoning` for
    OpenRouter, else `reasoning_effort`."""
    thinking: Thinking = field(default_factory=Thinking)
    """Reasoning settings chosen by the user."""
    api: Literal["chat", "responses"] = "chat"
    """API of the OpenAI wire protocol to use: chat completions or Responses."""
    takes_images: bool | None = None
    """Whether the model takes pictures; None if unknown, so that they are sent and the endpoint
    decides. Pictures go to a provider of another package only if this is True."""
    is_small: bool = False
    """Whether the model is too small to write unaided: its grammar restricts free text to prose,
    repetition is suppressed, and for a summary it selects sentences of the agents."""

    def limit(self, request: ChatRequest) -> int:
        """Return the token limit of a reply, hidden reasoning included."""
        if self.thinking.max_tokens is not None:
            return self.thinking.max_tokens
        own = request.headroom
        return request.max_tokens + (self.reasoning_headroom if own is None else own)

    def asked_to(self, thinking: Thinking) -> ModelInfo:
        """Return the properties of the model with these reasoning settings."""
        headroom = self.reasoning_headroom
        if thinking.tokens is not None:
            headroom = thinking.tokens
        elif thinking.effort:
            headroom = max(headroom, thinking.budget or 0)
        return replace(self, thinking=thinking, reasoning_headroom=headroom)


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """A provider's base URL, wire protocol, and environment variables."""

    wire: str | Callable[..., Any]
    """Name of a built-in wire protocol (`openai`, `azure`, `gemini`, `anthropic`, `inspect`), or a
    function that takes an `mdagents_llm.wire.Endpoint` and returns a `Client`."""
    base_url: str = ""
    """Base URL; empty if the SDK knows it or the user must set it."""
    default_model: str = ""
    """Default model; empty if the user must name one."""
    keys: tuple[str, ...] = ()
    """Variables that may hold the API key; the first that is set is used."""
    needs_key: bool = True
    instead_of_key: tuple[str, ...] = ()
    """Variables that together replace a key: they point to other credentials."""
    base_url_variable: str = ""
    """Variable that overrides the base URL."""
    model_variable: str = ""
    """Variable that overrides the default model."""
    variables: tuple[str, ...] = ()
    """Additional variables that the provider reads; none holds a key."""
    batch_price: tuple[float, float] | None = None
    """Fractions of the price that a batch costs where its price is not listed: (all tokens, input
    from the prompt cache); None if the endpoint takes no batches."""
    priced_as: str = ""
    """ID of the provider in `genai-prices`; empty if its prices are not listed there."""
    pictures: PictureLimits = PictureLimits()
    """Limits for the pictures of a request."""
    relays: Mapping[str, str] = field(default_factory=dict)
    """Start of a model's name, up to its first slash -> the provider that it stands for, whose
    prices and model properties hold; empty for a provider with models of its own."""
    models: Mapping[str, ModelInfo] = field(default_factory=dict)
    """Model name, or name prefix followed by `*` -> info. If set, it replaces the models of the
    file."""


@dataclass(frozen=True, slots=True)
class ModelConfigs:
    """The parsed content of `model_configs.yaml`."""

    providers: Mapping[str, ProviderInfo]
    """Name -> provider, in the order in which `--model auto` looks for a key."""
    roles: Mapping[str, tuple[str, str]]
    """Role -> its default (provider, model)."""
    patterns: Mapping[str, str]
    """Prefix of a bare model name -> provider."""
    aliases: Mapping[str, str]
    models: Mapping[str, ModelInfo]
    """`provider/name` -> info; a name that ends in `*` matches by prefix."""

    def provider(self, name: str) -> ProviderInfo | None:
        """Return a provider of the file or of another package; None if the name is unknown.

        Raises:
            ConfigError: The provider of another package cannot be loaded.
        """
        return self.providers.get(name) or _of_another_package(name)

    def names(self) -> list[str]:
        """Return the names of all providers, including those of other packages."""
        return [*self.providers, *(point.name for point in _entry_points())]

    def info(self, provider: str, name: str) -> ModelInfo:
        """Return the properties of a model.

        The entry with the exact name is used, else the one with the longest matching prefix, else
        the defaults.
        """
        own, models = self.provider(provider), self.models
        if (relayed := self._relayed(own, name)) is not None:
            return replace(self.info(*relayed), api="chat")
        if own is not None and own.models:
            models = {f"{provider}/{model}": info for model, info in own.models.items()}
        full = f"{provider}/{name}"
        if full in models:
            return models[full]
        starts = [k for k in models if k.endswith("*") and full.startswith(k[:-1])]
        return models[max(starts, key=len)] if starts else ModelInfo()

    def price(self, provider: str, name: str, *, in_batches: bool = False) -> Price | None:
        """Return the price of a model; None if unknown, or if `in_batches` and it takes none."""
        own = self.provider(provider)
        if (relayed := self._relayed(own, name)) is not None:
            return self.price(*relayed, in_batches=in_batches)
        price = self.info(provider, name).price
        if price is None and own is not None and own.priced_as:
            price = known_price(own.priced_as, name)
            listed = known_price(own.priced_as, name, in_batches=True) if in_batches else None
            if listed is not None and own.batch_price is not None:
                return listed
        if not in_batches or price is None:
            return price
        parts = None if own is None else own.batch_price
        return None if parts is None else price.in_batches(*parts)

    @staticmethod
    def _relayed(own: ProviderInfo | None, name: str) -> tuple[str, str] | None:
        """Return (provider, name) of the model that a provider relays to; None for its own."""
        start, slash, rest = name.partition("/")
        meant = own.relays.get(start) if own is not None and slash else None
        return None if meant is None else (meant, rest)

    def price_of(self, provider: str, name: str) -> PriceOf:
        """Return the function that looks up the price of a model at its first call."""
        return cache(lambda in_batches: self.price(provider, name, in_batches=in_batches))

    def provider_of(self, name: str) -> str | None:
        """Return the provider that a bare model name belongs to; None if not recognized."""
        starts = [start for start in self.patterns if name.lower().startswith(start)]
        return self.patterns[max(starts, key=len)] if starts else None

    def key_names(self) -> Iterator[str]:
        """Return the names of all variables that may hold a key."""
        return (name for info in self.providers.values() for name in info.keys)


@cache
def load_model_configs() -> ModelConfigs:
    """Return the parsed content of `model_configs.yaml`."""
    import yaml

    # The libyaml loader, if PyYAML was built with it, is three times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(_FILE.read_text(encoding="utf-8"), Loader=loader)
    return ModelConfigs(
        providers=MappingProxyType(
            {name: _provider_info(name, entry) for name, entry in content["providers"].items()}
        ),
        roles={
            role: (entry["provider"], entry["model"]) for role, entry in content["roles"].items()
        },
        patterns=content["patterns"],
        aliases=content["aliases"],
        models={name: _model_info(entry) for name, entry in content["models"].items()},
    )


def _provider_info(name: str, entry: dict[str, Any]) -> ProviderInfo:
    """Parse a provider entry; variables that it omits are derived from the provider's name."""
    usual = {
        "keys": [f"{name.upper()}_API_KEY"],
        "base_url_variable": f"{name.upper()}_BASE_URL",
        "model_variable": f"{name.upper()}_MODEL",
        "priced_as": name,
    }
    entry = usual | entry
    if "pictures" in entry:
        entry["pictures"] = PictureLimits(**entry["pictures"])
    lists = ("keys", "instead_of_key", "variables", "batch_price")
    return ProviderInfo(**(entry | {key: tuple(entry[key]) for key in lists if key in entry}))


def _model_info(entry: dict[str, Any]) -> ModelInfo:
    price = Price(**entry["price"]) if "price" in entry else None
    return ModelInfo(**(entry | {"price": price}))


@cache
def _entry_points() -> tuple[Any, ...]:
    # Imported here: it is slow, and only a provider that is not in the file needs it.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


@cache
def _of_another_package(name: str) -> ProviderInfo | None:
    point = next((point for point in _entry_points() if point.name == name), None)
    if point is None:
        return None
    where = f"the provider {name} ({GROUP}: {point.value})"
    try:
        info = point.load()
    except Exception as error:  # the package's code may raise anything while it loads
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"{where} cannot be loaded: {what}") from error
    if not isinstance(info, ProviderInfo):
        raise ConfigError(f"{where} is a {type(info).__name__}, not an mdagents_llm.ProviderInfo")
    return info
