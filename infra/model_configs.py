"""Reads `model_configs.yaml`: defaults of providers and roles, prices, properties of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from infra.config import LLMRole, Provider
from infra.ledger import Price

_FILE = Path(__file__).with_name("model_configs.yaml")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The properties of a model. The defaults fit an unknown, ordinary chat model."""

    price: Price | None = None
    """None when it is not known."""
    context: int | None = None
    """Most tokens of prompt and reply together; None when it is not known."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The endpoint's name for the limit of a reply."""
    takes_temperature: bool = True
    takes_seed: bool = True
    native_schema: bool = True
    """Whether to try the endpoint's schema support before the prompt."""
    reasoning_headroom: int = 0
    """Tokens added to a reply's limit because hidden reasoning counts against it."""
    is_small: bool = False
    """Whether it is too small to write unaided: its grammar holds free text to prose, it is kept
    from saying the same again, and for a summary it chooses sentences of the agents."""


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """The address and the default model of a provider."""

    base_url: str
    default_model: str


@dataclass(frozen=True, slots=True)
class ModelConfigs:
    """The whole file."""

    providers: Mapping[Provider, ProviderInfo]
    roles: Mapping[LLMRole, tuple[Provider, str]]
    patterns: Mapping[str, Provider]
    """Start of a bare model name -> provider."""
    aliases: Mapping[str, str]
    models: Mapping[str, ModelInfo]
    """`provider/name` -> info; a name that ends in `*` matches all with that start."""

    def info(self, provider: Provider, name: str) -> ModelInfo:
        """Return the entry for a model: the exact one, the longest start that fits, or defaults."""
        full = f"{provider}/{name}"
        if full in self.models:
            return self.models[full]
        starts = [k for k in self.models if k.endswith("*") and full.startswith(k[:-1])]
        return self.models[max(starts, key=len)] if starts else ModelInfo()

    def provider_of(self, name: str) -> Provider | None:
        """Return the provider that a bare model name belongs to; None if it is not recognised."""
        starts = [start for start in self.patterns if name.lower().startswith(start)]
        return self.patterns[max(starts, key=len)] if starts else None


@cache
def load_model_configs() -> ModelConfigs:
    """Read the file beside this module."""
    import yaml

    # libyaml's loader, where PyYAML was built with it, takes a third of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(_FILE.read_text(encoding="utf-8"), Loader=loader)
    return ModelConfigs(
        providers={
            Provider(name): ProviderInfo(**entry) for name, entry in content["providers"].items()
        },
        roles={
            LLMRole(role): (Provider(entry["provider"]), entry["model"])
            for role, entry in content["roles"].items()
        },
        patterns={start: Provider(name) for start, name in content["patterns"].items()},
        aliases=content["aliases"],
        models={name: _model_info(entry) for name, entry in content["models"].items()},
    )


def _model_info(entry: dict[str, Any]) -> ModelInfo:
    price = Price(**entry["price"]) if "price" in entry else None
    return ModelInfo(**(entry | {"price": price}))
