"""How a provider is reached: an endpoint, and the client that speaks to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from infra.chat import ChatModel
from infra.model_configs import ModelInfo


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a client needs to know of an endpoint."""

    base_url: str
    """Empty: the provider's own, which its SDK knows."""
    api_key: str = field(repr=False)
    attempt_timeout: float
    """Seconds for one attempt."""
    many_at_once: bool = True
    """Whether hundreds of calls may be under way, and the client is closed at the end."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment that the provider reads besides: `ProviderInfo.variables`."""


class Client(Protocol):
    """The connection to an endpoint, shared by all its models. It never retries itself."""

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a model of the endpoint, which raises only `ProviderError`."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""


Connect = Callable[[Endpoint], Client]
"""Opens no connection yet. Raises ConfigError where a setting is missing."""
