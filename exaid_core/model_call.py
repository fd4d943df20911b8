"""Calls a model for EXAID; any failure becomes a result, never an exception."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from pydantic import BaseModel

from exaid_core.ctu import ctu
from exaid_core.trace.run_records import LlmUsage
from mdagents_llm.chat import (
    CallLabels,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    StopReason,
)
from mdagents_llm.config import LLMRole
from mdagents_llm.errors import (
    BenchError,
    ErrorKind,
    ProviderError,
    StructuredOutputError,
    message_of,
)
from mdagents_llm.json_schema import token_limit
from mdagents_llm.text import well_formed

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """The outcome of a model call."""

    reply: T | None
    """Validated reply; None if the call failed."""
    error: str
    """Reason for the failure, on one line; empty if the call succeeded."""
    is_malformed: bool
    """Whether the model's reply failed validation."""
    is_too_long: bool
    """Whether the prompt did not fit into the model's context."""
    usage: LlmUsage
    latency_ms: int
    cause: Exception | None = None
    """Exception with which the call failed; None without one."""


class Caller:
    """Calls the model of one role.

    Args:
        model: Model of the role.
        role: Role to which the calls are booked, as background calls.
        case_id: Case to which the calls are booked.
        monotonic: Clock in seconds.
        timeout: Timeout of a call in seconds, ignored for a local model; None waits forever.

    Raises:
        TypeError: `model` is not an object with the method `generate`.
    """

    def __init__(
        self,
        model: ChatModel,
        role: LLMRole,
        case_id: str,
        monotonic: Callable[[], float],
        timeout: float | None,
    ) -> None:
        if not callable(getattr(model, "generate", None)) or isinstance(model, type):
            raise TypeError(
                f"the model of the {role.value} is {model!r:.60} but must be an object with the "
                f"method generate, such as mdagents_llm.get_llm(LLMRole.{role.name}) returns"
            )
        self._model = model
        self._timeout = None if getattr(model, "is_local", False) else timeout
        self._role = role
        self._case_id = case_id
        self._monotonic = monotonic
        self._failed: Counter[tuple[ChatMessage, ...]] = Counter()

    async def ask(self, messages: tuple[ChatMessage, ...], schema: type[T]) -> Asked[T]:
        """Call the model, which retries once if the reply does not validate.

        After a failed call, the same messages make a new request with a higher `repeat`, so that
        each has its own outcome among the recorded replies and a replay fails where the run did.
        """
        request = ChatRequest(
            messages=messages,
            max_tokens=token_limit(schema),
            schema=schema,
            repeat=self._failed[messages],
            labels=CallLabels(
                self._case_id, "exaid", self._role.value, self._role.value, background=True
            ),
        )
        reply, error, is_malformed, is_too_long = None, "", False, False
        cause: Exception | None = None
        tokens: tuple[int | None, int | None] = None, None
        text, model_id = "", ""
        started = self._monotonic()
        in_time = asyncio.timeout(self._timeout)
        try:
            async with in_time:
                answer = await self._model.generate(request)
            if not isinstance(answer, ChatReply):
                raise TypeError(f"generate must return a ChatReply, not {type(answer).__name__}")
            text, model_id, tokens = _text(answer.text), _text(answer.model), _tokens(answer)
            if answer.stop_reason != StopReason.STOP:
                error, is_malformed = f"the reply ended by {answer.stop_reason}", True
            elif isinstance(answer.parsed, schema):
                # Once more, since `model_construct` validates nothing.
                reply = schema.model_validate(vars(answer.parsed))
            else:
                kind = type(answer.parsed).__name__
                error = f"the model returned no {schema.__name__}: ChatReply.parsed is {kind}"
                is_malformed = True
        except StructuredOutputError as caught:
            error, is_malformed, cause = message_of(caught), True, caught
            self._failed[messages] += 1
            text, tokens = _text(caught.text), _tokens(caught)
        except BenchError as caught:
            error, cause = message_of(caught), caught
            if isinstance(caught, ProviderError):
                is_too_long = caught.kind is ErrorKind.CONTEXT_LENGTH
                self._failed[messages] += not is_too_long
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            error = "the model was cancelled"  # the model canceled itself
        except Exception as caught:  # noqa: BLE001 - a model is foreign code
            if in_time.expired():
                error = f"no reply within {self._timeout:g} seconds"
            else:
                error, cause = f"{type(caught).__name__}: {message_of(caught)}", caught
        usage = LlmUsage(
            prompt_ctu=sum(ctu(message.content) for message in messages),
            completion_ctu=ctu(text),
            provider_prompt_tokens=tokens[0],
            provider_completion_tokens=tokens[1],
            model_id=model_id,
        )
        latency_ms = round(1000 * (self._monotonic() - started))
        error = " ".join(error.split())[:300]
        return Asked(reply, error, is_malformed, is_too_long, usage, latency_ms, cause)


def _text(value: object) -> str:
    """Return a text of foreign code; empty if it is not one."""
    return well_formed(value) if isinstance(value, str) else ""


def _tokens(answer: ChatReply | StructuredOutputError) -> tuple[int | None, int | None]:
    """Return the input and output tokens of foreign code; None for what is not a count."""
    usage: object = answer.usage
    counts = (getattr(usage, name, None) for name in ("input_tokens", "output_tokens"))
    first, second = (
        round(count) if isinstance(count, int | float) and 0 <= count < inf else None
        for count in counts
    )
    return first, second


def added(first: LlmUsage, second: LlmUsage) -> LlmUsage:
    """Return the total usage of two calls."""
    return LlmUsage(
        prompt_ctu=first.prompt_ctu + second.prompt_ctu,
        completion_ctu=first.completion_ctu + second.completion_ctu,
        provider_prompt_tokens=_sum(first.provider_prompt_tokens, second.provider_prompt_tokens),
        provider_completion_tokens=_sum(
            first.provider_completion_tokens, second.provider_completion_tokens
        ),
        model_id=second.model_id or first.model_id,
    )


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None and second is None else (first or 0) + (second or 0)
