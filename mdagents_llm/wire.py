"""Interfaces to a provider: an endpoint, the client that calls it, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest
from mdagents_llm.errors import ProviderError
from mdagents_llm.model_configs import ModelInfo


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The settings that a client needs for an endpoint."""

    base_url: str
    """Base URL; empty for the provider's default, which its SDK knows."""
    api_key: str = field(repr=False)
    attempt_timeout: float
    """Timeout of one attempt, in seconds."""
    many_at_once: bool = True
    """Whether hundreds of calls may be in progress, and the client will be closed at the end."""
    is_own: bool = False
    """Whether the endpoint is a server that this program has started."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables that the provider reads (`ProviderInfo.variables`)."""


class Client(Protocol):
    """The connection to an endpoint, shared by all its models. It never retries itself."""

    def model(self, name: str, info: ModelInfo) -> ChatModel:
        """Return a model of the endpoint, which raises only `ProviderError`."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""


Connect = Callable[[Endpoint], Client]
"""Function that creates a client without opening a connection. It raises ConfigError if a setting
is missing."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a batch."""

    has_ended: bool
    said: str
    """The provider's own name for the state, such as `in_progress`."""
    answered: int | None = None
    """Number of completed requests; None if the provider does not report it."""
    problem: ProviderError | None = None
    """Error by which the whole batch was rejected or failed; None without one."""


Line = Mapping[str, object]
"""A provider's result for one request of a batch that has ended."""


class BatchApi(Protocol):
    """The batches of one model: requests that are answered within a day, at a lower price.

    A request is identified by its key, at most 64 letters and digits, which is unique within a
    batch. The asynchronous methods make one call at the endpoint and raise `ProviderError`.
    """

    @property
    def keeps_names(self) -> bool:
        """Whether batches keep the name under which they were submitted."""
        ...

    @property
    def most_bytes(self) -> int:
        """Maximum size of a batch, in bytes of its requests as JSON."""
        ...

    async def submit(self, tag: str, requests: Mapping[str, ChatRequest]) -> str:
        """Submit requests by key under the name `tag`, and return the ID of the batch."""
        ...

    async def find(self, tag: str, requests: int, since: float) -> tuple[str, ...]:
        """Return the IDs of batches that a `submit` without a reply may have created.

        If the provider keeps no names, batches of other clients may be among them; the likeliest
        comes first.

        Args:
            tag: Name under which the requests were submitted.
            requests: Number of requests.
            since: Time of the submission, in seconds since 1970 UTC.
        """
        ...

    async def state(self, batch: str) -> BatchState:
        """Return the progress of a batch."""
        ...

    async def lines(self, batch: str, keys: Sequence[str]) -> Mapping[str, Line]:
        """Return the results of a batch that has ended, by the keys of its requests.

        Requests that were not answered because the batch expired or was cancelled may be missing.

        Args:
            batch: ID of the batch.
            keys: Keys of its requests, in the order of their submission.
        """
        ...

    def is_answered(self, line: Line) -> bool:
        """Return whether a result contains a reply."""
        ...

    async def cancel(self, batch: str) -> None:
        """Cancel the remaining requests of a batch."""

    def read(self, line: Line, request: ChatRequest) -> ChatReply:
        """Return the reply that a result contains.

        Raises:
            ProviderError: The result has no reply; `unanswered` if the request was never tried.
        """
        ...


@runtime_checkable
class BatchClient(Client, Protocol):
    """A client whose endpoint takes batches."""

    def batches(self, name: str, info: ModelInfo) -> BatchApi:
        """Return the batch API of a model."""
        ...
