"""The model call: request, reply, token usage, and the one method that every model has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import BaseModel

from mdagents_llm.pictures import Picture


class OnText(Protocol):
    """Callback for each text delta as it arrives.

    It is called with None when the attempt that produced the text has failed: the text that follows
    starts from the beginning.
    """

    def __call__(self, delta: str | None, /) -> None:
        """Receive a text delta, or None when the text starts over."""


class StopReason(StrEnum):
    """The reason why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts of one or more replies. Each total includes its subset."""

    input_tokens: int = 0
    """All prompt tokens, cached ones included."""
    output_tokens: int = 0
    """All generated tokens, reasoning (thoughts) included."""
    cached_input_tokens: int = 0
    """Input tokens that the provider served from its prompt cache; a part of `input_tokens`."""
    reasoning_tokens: int = 0
    """Output tokens of hidden reasoning; a part of `output_tokens`."""
    cache_write_tokens: int = 0
    """Input tokens that the provider wrote to its prompt cache, if it reports them; a part of
    `input_tokens`."""

    @property
    def total_tokens(self) -> int:
        """Input plus output tokens."""
        return self.input_tokens + self.output_tokens

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in TOKEN_FIELDS}

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


TOKEN_FIELDS = tuple(count.name for count in fields(TokenUsage))
"""Names of the counts of `TokenUsage`."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str
    shared: tuple[int, ...] = ()
    """Lengths, in characters, of the prefixes of `content` that other calls share. They become
    cache breakpoints for a provider whose prompt cache needs explicit ones."""
    pictures: tuple[Picture, ...] = ()
    """Pictures of the message, in the order of their labels."""
    pictures_at: int = 0
    """Offset in `content`, in characters, at which the pictures stand."""

    def parts(self) -> Iterator[str | Picture]:
        """Yield the texts and pictures of the message in their order; no text is empty."""
        if not self.pictures:
            yield self.content
            return
        if before := self.content[: self.pictures_at]:
            yield before
        for picture in self.pictures:
            if picture.label:
                yield f"{picture.label}:"
            yield picture
        if after := self.content[self.pictures_at :]:
            yield after


@dataclass(frozen=True, slots=True)
class CallLabels:
    """The agent that makes a call and its purpose; ledger rows carry these labels."""

    case_id: str = ""
    """ID of the question that the call is made for."""
    phase: str = ""
    """The step of the protocol, for example `route` or `round-1-turn-2`."""
    agent: str = ""
    """`agent_id` of the agent that makes the call."""
    role: str = ""
    """The role that chose the model: `router`, `recruiter`, `expert`, `decision`, …"""
    background: bool = False
    """Whether the call runs in the background, with no team waiting for it."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a model."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    """Upper limit of the visible reply, in tokens."""
    temperature: float = 0.0
    seed: int | None = None
    schema: type[BaseModel] | None = None
    """The pydantic model that the reply must validate against, or None for free text."""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Presented letter -> text of the options that the reply may choose, for its validation."""
    labels: CallLabels = field(default_factory=CallLabels)
    repeat: int = 0
    """Index among several replies to the same request (epochs, samples for a vote)."""
    headroom: int | None = None
    """Tokens for hidden reasoning on top of `max_tokens`; None for the model's usual number. Set by
    `Room`."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The reply of a model to one request."""

    text: str
    usage: TokenUsage
    stop_reason: StopReason
    model: str
    """Name of the model that served the reply, as the endpoint reports it."""
    parsed: BaseModel | None = None
    """The validated reply, an instance of `ChatRequest.schema`; None for free text."""
    latency: float = 0.0
    """Seconds from sending the last attempt to its last byte."""
    attempts: int = 1
    """Number of attempts at the provider, including the successful one."""
    cached: bool = False
    """Whether the reply was replayed, without a call to a provider."""
    batched: bool = False
    """Whether the reply came from a batch, at the batch price."""
    raw: Mapping[str, object] | None = None
    """The provider's unmodified response body; None if not available."""
    usage_estimated: bool = False
    """Whether the endpoint reported no usage, so that `usage` was estimated from the text."""
    cost_usd: float | None = None
    """Cost in USD that the endpoint reports; None if it reports none."""
    service_tier: str = ""
    """Service tier that served the reply, as the endpoint reports it; empty if it reports none."""
    reasoning: str = ""
    """Hidden reasoning, as far as the endpoint exposes it. No agent or observer may see it."""
    note: str = ""
    """Where the text of an empty reply was found instead, for a message."""


class ChatModel(Protocol):
    """Anything that answers a `ChatRequest`: a provider or a layer around another model."""

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request.

        Args:
            request: The request.
            on_text: Callback for the text as it arrives; None for no streaming.

        Raises:
            ProviderError: The endpoint returned no usable reply.
            StructuredOutputError: No reply validated against `request.schema`.
        """
        ...
