"""What a model call is: request, reply, token usage, and the one method that every model has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import BaseModel


class OnText(Protocol):
    """Called with each text delta as it arrives.

    It is called with None when the attempt that the text came from has failed: the text that
    follows starts anew.
    """

    def __call__(self, delta: str | None, /) -> None:
        """Take a delta, or None."""


class StopReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one or more replies. Each total includes its subset."""

    input_tokens: int = 0
    """All prompt tokens, cached ones included."""
    output_tokens: int = 0
    """All generated tokens, reasoning (thoughts) included."""
    cached_input_tokens: int = 0
    """Input tokens that the provider served from its prompt cache; a part of `input_tokens`."""
    reasoning_tokens: int = 0
    """Output tokens of hidden reasoning; a part of `output_tokens`."""
    cache_write_tokens: int = 0
    """Input tokens that the provider wrote to its prompt cache, where it counts them; a part of
    `input_tokens`."""

    @property
    def total_tokens(self) -> int:
        """Input plus output."""
        return self.input_tokens + self.output_tokens

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str
    shared: tuple[int, ...] = ()
    """Lengths, in characters, of the beginnings of `content` that other calls have, too: where a
    provider that must be told what to keep in its prompt cache is told so."""


@dataclass(frozen=True, slots=True)
class CallLabels:
    """Which agent makes a call and why; the ledger files each call under these."""

    case_id: str = ""
    """The question that the call works for."""
    phase: str = ""
    """The step of the protocol, for example `route` or `round-1-turn-2`."""
    agent: str = ""
    """`agent_id` of the agent whose turn it is."""
    role: str = ""
    """The role that chose the model: `router`, `recruiter`, `expert`, `decision`, …"""
    background: bool = False
    """Whether no team waits for the call."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    """Upper limit of the visible reply, in tokens."""
    temperature: float = 0.0
    seed: int | None = None
    schema: type[BaseModel] | None = None
    """The pydantic model that the reply must validate against, or None for free text."""
    labels: CallLabels = field(default_factory=CallLabels)
    repeat: int = 0
    """Which of several replies to the same request this is: epochs, samples for a vote."""
    attempt: int = 1
    """Which attempt at the provider this is, counted from 1; set by `Retry`."""
    waited: float = 0.0
    """Seconds that this request has waited so far (backoff and queue); set by `Retry`, `Gate`."""
    on_sent: Callable[[], None] | None = None
    """Called by `Gate` when the request has its connection; set by `Hedge`."""
    headroom: int | None = None
    """Tokens for hidden reasoning on top of `max_tokens`; None: as usual for the model. Set by
    `Room`."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back."""

    text: str
    usage: TokenUsage
    stop_reason: StopReason
    model: str
    """The model that was served, as the endpoint names it."""
    parsed: BaseModel | None = None
    """The validated reply, an instance of `ChatRequest.schema`; None for free text."""
    latency: float = 0.0
    """Seconds from sending the last attempt to its last byte."""
    attempts: int = 1
    """Attempts at the provider, this one included."""
    cached: bool = False
    """True when the reply was replayed and no provider was asked."""
    batched: bool = False
    """Whether it was had in a batch, at its price."""
    raw: Mapping[str, object] | None = None
    """The provider's body as it came, where there is one."""
    usage_estimated: bool = False
    """Whether the endpoint reported no usage, so that `usage` was estimated from the text."""
    reasoning: str = ""
    """Hidden reasoning, as far as the endpoint shows it. No agent and no observer may see it."""
    note: str = ""
    """Where the text of a reply without text was, for a message."""


class ChatModel(Protocol):
    """Anything that answers a `ChatRequest`: a provider or a layer around another model."""

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request.

        Args:
            request: What to ask.
            on_text: Set when the caller wants the text as it arrives.

        Raises:
            ProviderError: The endpoint gave no usable reply.
            StructuredOutputError: No reply validated against `request.schema`.
        """
        ...
