"""What both chat APIs have in common: a request as seen, a reply as meant, how tokens count."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, Protocol

from tests.support.faults import Fault, FaultPlan
from tests.support.json_schema import Schema

CHARACTERS_PER_TOKEN = 4
_MOST_PREFIXES = 500_000
Api = Literal["openai", "gemini"]


class BadRequestError(Exception):
    """The request is one that the real API would refuse.

    Attributes:
        param: The part of the request that is wrong, as OpenAI names it.
        status: HTTP status of the refusal.
    """

    def __init__(self, message: str, *, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.status = status


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply, or of many.

    Attributes:
        input: Tokens of the prompt, cached ones included.
        output: Tokens of the reply, reasoning included.
        cached_input: How many of the input came from the prompt cache.
        reasoning: How many of the output were reasoning (thoughts).
    """

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output

    @property
    def visible_output(self) -> int:
        """Output that is not reasoning: what Gemini calls candidatesTokenCount."""
        return self.output - self.reasoning

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached_input + other.cached_input,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class SeenRequest:
    """A request for one reply, the same for both APIs.

    Attributes:
        index: How many such requests the server had received before.
        api: Which API it came through.
        model: The model asked for.
        roles: Who says each message: ``system``, ``user``, ``assistant`` or ``model``.
        messages: The text of each message, the system's first.
        body: The request's JSON as it came.
        headers: HTTP headers, names in lower case.
        schema: The JSON schema that the reply must follow (Gemini's dialect translated), be it
            asked for natively or written in the prompt; None: free text.
        native_schema: True if the API's own field carries the schema.
        wants_json: True if the reply must be a JSON object of any shape.
        streamed: True if the reply is to be streamed.
        include_usage: True if a stream is to end with its usage (Gemini: always).
        max_tokens: Most tokens of the reply, or None.
        seed: The request's own seed, or None.
        temperature: The request's temperature, or None.
    """

    index: int
    api: Api
    model: str
    roles: tuple[str, ...]
    messages: tuple[str, ...]
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    schema: Schema | None
    native_schema: bool
    wants_json: bool
    streamed: bool
    include_usage: bool
    max_tokens: int | None
    seed: int | None
    temperature: float | None

    @cached_property
    def text(self) -> str:
        """All messages in one text, a line break between two."""
        return "\n".join(self.messages)

    @cached_property
    def input_tokens(self) -> int:
        """Tokens of the prompt by the server's rule: a token for every four characters."""
        return tokens_in(sum(len(message) for message in self.messages))

    def key(self, seed: int) -> bytes:
        """Return what decides the reply: the server's seed and what the model would read."""
        read = json.dumps([seed, self.model, self.seed, self.messages])
        return hashlib.blake2b(read.encode(), digest_size=16).digest()


class Finish(StrEnum):
    """Why a reply ends."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"
    BLOCKED = "blocked"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply before it is put into an API's words.

    Attributes:
        text: What the model says (for a refusal: why it does not).
        finish: Why it ends.
        usage: Its tokens.
        model: The model that the reply claims to come from.
    """

    text: str
    finish: Finish
    usage: Usage
    model: str


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A reply that is ready to be sent, such as an error in an API's own words."""

    status: int
    body: dict[str, Any]
    headers: tuple[tuple[str, str], ...] = ()


class ChatWire(Protocol):
    """One of the two APIs: how it asks and how it answers."""

    @property
    def api(self) -> Api:
        """The API's name."""

    @property
    def refusal_text(self) -> str:
        """What the model says when it refuses; empty where the API gives only a reason."""

    def read(
        self, index: int, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> SeenRequest:
        """Understand a request.

        Raises:
            BadRequestError: The real API would refuse it.
        """

    def refusal_of(self, error: BadRequestError) -> JsonReply:
        """Say that a request is wrong."""

    def error(self, fault: Fault, plan: FaultPlan, request: SeenRequest) -> JsonReply:
        """Put a fault that has an HTTP status into words."""

    def reply(self, request: SeenRequest, answer: Answer) -> dict[str, Any]:
        """Put an answer into one body."""

    def events(
        self, request: SeenRequest, answer: Answer, pieces: Sequence[str]
    ) -> Iterator[tuple[bytes, str]]:
        """Put an answer, cut into pieces, into server-sent events.

        Yields:
            Each event together with the part of the reply's text that it brings.
        """

    def error_event(self) -> bytes:
        """Return the event that reports an error in the middle of a stream."""


def tokens_in(characters: int) -> int:
    """Return how many tokens a text of so many characters has: one for every four, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def pieces_of(text: str, size: int) -> list[str]:
    """Cut a text into pieces of ``size`` characters, wherever the cuts fall."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def event(body: Mapping[str, Any] | str) -> bytes:
    """Return a server-sent event that carries JSON (or the text itself)."""
    data = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return f"data: {data}\n\n".encode()


def positive(limit: Any) -> int | None:
    """Return a token limit, or None where the request sets none (llama.cpp writes -1)."""
    return int(limit) if isinstance(limit, int | float) and limit > 0 else None


def schema_in_text(text: str) -> Schema | None:
    """Return the JSON schema that a prompt shows to a model without native schema output.

    It is the last JSON object in the text that has properties and is not part of another.
    """
    if '"properties"' not in text:
        return None
    decoder = json.JSONDecoder()
    found: Schema | None = None
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            end = at + 1
        else:
            if isinstance(value, dict) and "properties" in value:
                found = value
        at = text.find("{", end)
    return found


class PromptCache:
    """Remembers prompts and tells how much of a new one starts like an earlier one.

    Counts in whole blocks of ``block`` tokens, as the real caches do.
    """

    def __init__(self, block: int) -> None:
        self._characters = block * CHARACTERS_PER_TOKEN
        self._block = block
        self._seen: set[bytes] = set()

    def cached_tokens(self, request: SeenRequest) -> int:
        """Return how many of the prompt's tokens are cached; from now on all of them are."""
        if len(self._seen) > _MOST_PREFIXES:
            # A long load test must not fill the memory; real caches forget, too.
            self._seen.clear()
        prompt = "".join(request.messages)
        hashed = hashlib.blake2b(request.model.encode(), digest_size=16)
        blocks = 0
        known = True
        for end in range(self._characters, len(prompt) + 1, self._characters):
            hashed.update(prompt[end - self._characters : end].encode())
            prefix = hashed.digest()
            known = known and prefix in self._seen
            blocks += known
            self._seen.add(prefix)
        return blocks * self._block

    def clear(self) -> None:
        """Forget all prompts."""
        self._seen.clear()
