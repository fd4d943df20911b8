"""What the chat APIs have in common: a request as seen, a reply as meant, how tokens count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from mdagents_llm.json_schema import JsonSchema
from tests.fake_provider.faults import Fault, FaultPlan
from tests.fake_provider.seen_pictures import BadPictureError, SeenPicture

CHARACTERS_PER_TOKEN = 4
PICTURE_TOKENS = 258
"""Tokens of a picture, whatever its size."""


class BadRequestError(ValueError):
    """The request is one that the real API would refuse."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply, or of many.

    Attributes:
        input: Tokens of the prompt, cached ones included.
        output: Tokens of the reply, reasoning included.
        cached_input: How many of the input came from the prompt cache.
        reasoning: How many of the output were reasoning (thoughts).
        cache_write: How many of the input were written to the prompt cache.
    """

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output

    @property
    def visible_output(self) -> int:
        """Output that is not reasoning: what Gemini calls candidatesTokenCount."""
        return self.output - self.reasoning

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached_input + other.cached_input,
            self.reasoning + other.reasoning,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True)
class SeenRequest:
    """A request for one reply, the same for all APIs.

    Attributes:
        index: How many such requests the server had received before.
        model: The model asked for.
        roles: Who says each message: `system`, `user`, `assistant` or `model`.
        messages: The text of each message, the system's first.
        body: The request's JSON as it came.
        schema: The JSON schema that the reply must follow, be it asked for natively or written in
            the prompt; None: free text.
        native_schema: True if the API's own field carries the schema.
        streamed: True if the reply is to be streamed.
        include_usage: True if a stream is to end with its usage (Gemini: always).
        max_tokens: Most tokens of the reply, or None.
        seed: The request's own seed, or None.
        cache_marks: Characters from the start of the prompt to each mark of what is to be kept in
            the prompt cache; None: the API keeps what it likes.
        pictures: The pictures of all messages, decoded, in their order.
    """

    index: int
    model: str
    roles: tuple[str, ...]
    messages: tuple[str, ...]
    body: Mapping[str, Any]
    schema: JsonSchema | None
    native_schema: bool
    streamed: bool
    include_usage: bool
    max_tokens: int | None
    seed: int | None
    cache_marks: tuple[int, ...] | None = field(default=None, kw_only=True)
    pictures: tuple[SeenPicture, ...] = field(default=(), kw_only=True)

    @cached_property
    def text(self) -> str:
        """All messages in one text, a line break between two."""
        return "\n".join(self.messages)

    @cached_property
    def input_tokens(self) -> int:
        """Tokens of the prompt by the server's rule: one for four characters, 258 for a picture."""
        of_text = tokens_in(sum(len(message) for message in self.messages))
        return of_text + PICTURE_TOKENS * len(self.pictures)

    def key(self, seed: int) -> bytes:
        """Return what decides the reply: the server's seed and what the model would read."""
        pictures = [[one.sha256, one.message, one.at] for one in self.pictures]
        seen = [self.messages, pictures] if pictures else [self.messages]
        read = json.dumps([seed, self.model, self.seed, *seen])
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
class ErrorReply:
    """An error in an API's own words."""

    status: int
    body: dict[str, Any]
    retry_after: float | None = None
    """Seconds, in the header; Gemini says it in the body."""


class ChatApi(Protocol):
    """One of the APIs: how it asks and how it answers."""

    @property
    def refusal_text(self) -> str:
        """What the model says when it refuses; empty where the API gives only a reason."""

    @property
    def names_events(self) -> bool:
        """Whether each event of a stream has a name."""

    def read(self, index: int, call: str, body: Mapping[str, Any]) -> SeenRequest:
        """Understand a request.

        Args:
            index: How many requests came before.
            call: The last part of the address.
            body: The request's JSON.

        Raises:
            BadRequestError: The real API would refuse it.
        """

    def refusal_of(self, message: str, status: int) -> ErrorReply:
        """Say that a request is wrong, or that the server is."""

    def error(self, fault: Fault, plan: FaultPlan, request: SeenRequest) -> ErrorReply | None:
        """Put a fault that has an HTTP status into words; None for any other fault."""

    def reply(self, request: SeenRequest, answer: Answer) -> dict[str, Any]:
        """Put an answer into one body."""

    def events(
        self, request: SeenRequest, answer: Answer, pieces: Sequence[str]
    ) -> Iterator[tuple[bytes, str]]:
        """Put an answer, cut into pieces, into server-sent events.

        Yields:
            Each event together with the part of the reply's text that it brings.
        """


def said_in(
    contents: Iterable[Any], read_part: Callable[[Any], str | SeenPicture]
) -> tuple[tuple[str, ...], tuple[SeenPicture, ...]]:
    """Return the text of each message, and the pictures of all.

    Args:
        contents: The content of each message: a text, or a list of parts.
        read_part: Reads a part: its text, or its picture.

    Raises:
        BadRequestError: A picture cannot be read.
    """
    texts: list[str] = []
    pictures: list[SeenPicture] = []
    for number, content in enumerate(contents):
        text = ""
        for part in [content] if isinstance(content, str) else content:
            try:
                read = part if isinstance(part, str) else read_part(part)
            except BadPictureError as error:
                raise BadRequestError(str(error)) from error
            if isinstance(read, str):
                text += read
            else:
                pictures.append(replace(read, message=number, at=len(text)))
        texts.append(text)
    return tuple(texts), tuple(pictures)


def tokens_in(characters: int) -> int:
    """Return how many tokens a text of so many characters has: one for every four, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def event(body: Mapping[str, Any] | str, name: str = "") -> bytes:
    """Return a server-sent event that carries JSON (or the text itself), with or without a name."""
    data = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {data}\n\n".encode()


def positive(limit: Any) -> int | None:
    """Return a token limit, or None where the request sets none (llama.cpp writes -1)."""
    return int(limit) if isinstance(limit, int | float) and limit > 0 else None


def schema_in_text(text: str) -> JsonSchema | None:
    """Return the JSON schema that a prompt shows to a model without native schema output.

    It is the last JSON object in the text that has properties and is not part of another.
    """
    if '"properties"' not in text:
        return None
    decoder = json.JSONDecoder()
    found: JsonSchema | None = None
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
