"""How a provider is reached: an endpoint, the client that speaks to it, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest
from mdagents_llm.errors import ProviderError
from mdagents_llm.model_configs import ModelInfo


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


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch is."""

    has_ended: bool
    said: str
    """The provider's own word for it, such as `in_progress`."""
    answered: int | None = None
    """Requests that have been dealt with; None where the provider does not tell."""
    problem: ProviderError | None = None
    """Why the batch was refused, or failed, as a whole."""


Line = Mapping[str, object]
"""What a provider wrote about one request of a batch that has ended."""


class BatchApi(Protocol):
    """The batches of one model: requests that are answered within a day, at a lower price.

    A request is known by its key, at most 64 letters and digits, which is unique within a batch.
    All but `read` make one call at the endpoint and raise `ProviderError`.
    """

    @property
    def keeps_names(self) -> bool:
        """Whether batches carry the name that they were submitted under."""
        ...

    @property
    def most_bytes(self) -> int:
        """The largest batch, in bytes of its requests as JSON."""
        ...

    async def submit(self, tag: str, requests: Mapping[str, ChatRequest]) -> str:
        """Submit requests by their keys, under a name of our own; return the batch's id."""
        ...

    async def find(self, tag: str, requests: int, since: float) -> tuple[str, ...]:
        """Return the ids of batches that `submit` may have made when it had no reply.

        Where no names are kept, another's may be among them; the likeliest comes first.

        Args:
            tag: The name under which they were submitted.
            requests: How many.
            since: When, in seconds since 1970 UTC.
        """
        ...

    async def state(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        ...

    async def lines(self, batch: str, keys: Sequence[str]) -> Mapping[str, Line]:
        """Return what became of the requests of a batch that has ended, by their keys.

        Requests that were not answered, as it expired or was cancelled, may be missing.

        Args:
            batch: Its id.
            keys: Those of its requests, in the order in which they were submitted.
        """
        ...

    def is_answered(self, line: Line) -> bool:
        """Return whether a line holds a reply."""
        ...

    async def cancel(self, batch: str) -> None:
        """Let nothing further of a batch be answered."""

    def read(self, line: Line, request: ChatRequest) -> ChatReply:
        """Return the reply that a line holds.

        Raises:
            ProviderError: It holds none; `unanswered` when it was never tried.
        """
        ...


@runtime_checkable
class BatchClient(Client, Protocol):
    """A client whose endpoint takes batches."""

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batches of a model."""
        ...
