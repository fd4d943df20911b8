"""Reads `model_configs.yaml`: providers, defaults of roles, prices, properties of models.

A provider that another package brings is found by its entry point, in the group
`mdagents.providers`, when it is named: docs/own-provider.md.
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
from mdagents_llm.ledger import Price
from mdagents_llm.prices import known_price

LOCAL = "local"
"""The provider of the embedded model, and of any GGUF file."""
OPENAI = "openai"
"""OpenAI, and any OpenAI-compatible endpoint of the user's own."""
HEADROOM = 8192
"""Tokens that a model gets to think in when nothing is known of it."""
GROUP = "mdagents.providers"
"""The group of entry points that name providers of other packages."""

_FILE = Path(__file__).with_name("model_configs.yaml")


APIS = ("auto", "chat", "responses")
"""The APIs of OpenAI's wire: chat completions, Responses; `auto`: as the model needs."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model can be asked to think, the least first."""
BUDGETS = dict(zip(EFFORTS, (0, 1024, 2048, 8192, 16_384, 24_576, 32_768), strict=True))
"""Effort -> tokens, for models that are told a number of them."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """How much a model is asked to think. Without a value the endpoint's own default holds."""

    effort: str = ""
    """One of `EFFORTS`, or empty."""
    tokens: int | None = None
    """Room for hidden reasoning, and its budget where the endpoint takes one."""
    max_tokens: int | None = None
    """Limit of a whole reply, hidden reasoning included, instead of the usual one."""
    is_shown: bool = False
    """Whether the endpoint is asked to show its reasoning, or a summary of it; that changes no
    answer, and is no part of a model's identity."""

    def __str__(self) -> str:
        parts = {"effort": self.effort, "tokens": self.tokens, "max": self.max_tokens}
        return " ".join(f"{name}={of}" for name, of in parts.items() if of not in ("", None))

    @property
    def budget(self) -> int | None:
        """Tokens to think with; None when neither they nor an effort were given."""
        return BUDGETS.get(self.effort) if self.tokens is None else self.tokens


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The properties of a model. The defaults fit an unknown, ordinary chat model."""

    price: Price | None = None
    """Instead of the one that `genai-prices` knows; None when neither is known."""
    context: int | None = None
    """Most tokens of prompt and reply together; None when it is not known."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The endpoint's name for the limit of a reply."""
    seed_field: str = "seed"
    """The endpoint's name for the seed."""
    takes_temperature: bool = True
    takes_seed: bool = True
    native_schema: bool = True
    """Whether to try the endpoint's schema support before the prompt."""
    forced_tool: bool = True
    """Whether a model of Anthropic can be held to a tool, which carries the schema; if not, the
    schema is that of its output (`output_config.format`)."""
    reasoning_headroom: int = HEADROOM
    """Tokens added to a reply's limit because hidden reasoning counts against it; 0 for a model
    that does not think unless it is asked to."""
    reasoning_field: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    """The field of a chat completion that says reasoning effort: the vendors', or OpenRouter's."""
    thinking: Thinking = field(default_factory=Thinking)
    """How much the user asks it to think."""
    api: Literal["chat", "responses"] = "chat"
    """Which API of OpenAI's wire it is asked by: chat completions, or Responses."""
    is_small: bool = False
    """Whether it is too small to write unaided: its grammar holds free text to prose, it is kept
    from saying the same again, and for a summary it chooses sentences of the agents."""

    def limit(self, request: ChatRequest) -> int:
        """Return the tokens that a reply may have, hidden reasoning included."""
        if self.thinking.max_tokens is not None:
            return self.thinking.max_tokens
        own = request.headroom
        return request.max_tokens + (self.reasoning_headroom if own is None else own)

    def asked_to(self, thinking: Thinking) -> ModelInfo:
        """Return the properties of the model when it is asked to think so much."""
        headroom = self.reasoning_headroom
        if thinking.tokens is not None:
            headroom = thinking.tokens
        elif thinking.effort:
            headroom = max(headroom, thinking.budget or 0)
        return replace(self, thinking=thinking, reasoning_headroom=headroom)


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """Where a provider is, how it is spoken to, and which variables of the environment it reads."""

    wire: str | Callable[..., Any]
    """The name of a way to speak that is built in (`openai`, `azure`, `gemini`, `anthropic`); or a
    function that takes an `mdagents_llm.wire.Endpoint` and returns a `Client`."""
    base_url: str = ""
    """Its address; empty: the SDK knows it, or the user must say it."""
    default_model: str = ""
    """Empty: the user must name one."""
    keys: tuple[str, ...] = ()
    """Variables that may hold a key; the first that is set is taken."""
    needs_key: bool = True
    instead_of_key: tuple[str, ...] = ()
    """Variables that together stand in for a key: they say where other credentials are found."""
    base_url_variable: str = ""
    """Names another address."""
    model_variable: str = ""
    """Names another default model."""
    variables: tuple[str, ...] = ()
    """Further variables that it reads; none holds a key."""
    batch_price: tuple[float, float] | None = None
    """Parts of the price that are paid in a batch: (of all tokens, of input from the prompt cache);
    None: the endpoint takes no batches."""
    priced_as: str = ""
    """Its id in `genai-prices`; empty: what its models cost is not known from there."""
    models: Mapping[str, ModelInfo] = field(default_factory=dict)
    """Name of a model, or the start of names and `*` -> info, beside those of the file."""


@dataclass(frozen=True, slots=True)
class ModelConfigs:
    """The whole file."""

    providers: Mapping[str, ProviderInfo]
    """In the order in which `--model auto` looks for a key."""
    roles: Mapping[str, tuple[str, str]]
    """Role -> (provider, model)."""
    patterns: Mapping[str, str]
    """Start of a bare model name -> provider."""
    aliases: Mapping[str, str]
    models: Mapping[str, ModelInfo]
    """`provider/name` -> info; a name that ends in `*` matches all with that start."""

    def provider(self, name: str) -> ProviderInfo | None:
        """Return a provider of the file, or of another package; None if there is none so called.

        Raises:
            ConfigError: The package's provider cannot be loaded.
        """
        return self.providers.get(name) or _of_another_package(name)

    def names(self) -> list[str]:
        """Return the names of all providers, those of other packages included."""
        return [*self.providers, *(point.name for point in _entry_points())]

    def info(self, provider: str, name: str) -> ModelInfo:
        """Return the entry for a model, with its price where that is known.

        The entry is the exact one, that of the longest start that fits, or one of defaults.
        """
        own = self.provider(provider)
        entry = self._entry(own, provider, name)
        if entry.price is not None or own is None or not own.priced_as:
            return entry
        return replace(entry, price=known_price(own.priced_as, name))

    def _entry(self, own: ProviderInfo | None, provider: str, name: str) -> ModelInfo:
        models = self.models
        if own is not None and own.models:
            models = {f"{provider}/{model}": info for model, info in own.models.items()}
        full = f"{provider}/{name}"
        if full in models:
            return models[full]
        starts = [k for k in models if k.endswith("*") and full.startswith(k[:-1])]
        return models[max(starts, key=len)] if starts else ModelInfo()

    def price(self, provider: str, name: str, *, in_batches: bool = False) -> Price | None:
        """Return the price of a model; None when it is not known, or it takes no batches."""
        known, price = self.provider(provider), self.info(provider, name).price
        if not in_batches or price is None:
            return price
        parts = None if known is None else known.batch_price
        return None if parts is None else price.in_batches(*parts)

    def provider_of(self, name: str) -> str | None:
        """Return the provider that a bare model name belongs to; None if it is not recognised."""
        starts = [start for start in self.patterns if name.lower().startswith(start)]
        return self.patterns[max(starts, key=len)] if starts else None

    def key_names(self) -> Iterator[str]:
        """Return all variables that may hold a key."""
        return (name for info in self.providers.values() for name in info.keys)


@cache
def load_model_configs() -> ModelConfigs:
    """Read the file beside this module."""
    import yaml

    # libyaml's loader, where PyYAML was built with it, takes a third of the time.
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
    """Read a provider; variables that the entry does not name follow from the provider's name."""
    usual = {
        "keys": [f"{name.upper()}_API_KEY"],
        "base_url_variable": f"{name.upper()}_BASE_URL",
        "model_variable": f"{name.upper()}_MODEL",
        "priced_as": name,
    }
    entry = usual | entry
    lists = ("keys", "instead_of_key", "variables", "batch_price")
    return ProviderInfo(**(entry | {key: tuple(entry[key]) for key in lists if key in entry}))


def _model_info(entry: dict[str, Any]) -> ModelInfo:
    price = Price(**entry["price"]) if "price" in entry else None
    return ModelInfo(**(entry | {"price": price}))


@cache
def _entry_points() -> tuple[Any, ...]:
    # Imported here: it takes time, and only a provider that the file does not know needs it.
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
    except Exception as error:  # whatever the package's code does while it loads
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"{where} cannot be loaded: {what}") from error
    if not isinstance(info, ProviderInfo):
        raise ConfigError(f"{where} is a {type(info).__name__}, not an mdagents_llm.ProviderInfo")
    return info
