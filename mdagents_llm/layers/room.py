"""Adapts the token limit for hidden reasoning: larger if needed, smaller if refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason
from mdagents_llm.errors import EndpointDown, ErrorKind, ProviderError
from mdagents_llm.model_configs import HEADROOM, ModelInfo
from mdagents_llm.picture_tokens import prompt_tokens
from mdagents_llm.terminal.printing import print_line

_LARGER = 4  # factor
_SMALLEST = 1024  # tokens; with less, a reasoning model writes no text
_PER_TOKEN = 3  # UTF-8 bytes of a prompt, characters of a reply: a cautious estimate for English
_KINDS = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.CONTEXT_LENGTH, ErrorKind.QUOTA})
_OF_THE_LIMIT = re.compile(
    r"(?i)max[_ ]?(?:completion|output|new)?[_ ]?tokens"  # most endpoints
    r"|in the (?:completion|output)\b"  # vLLM and OpenAI; OpenRouter
    r"|\b(?:output|completion) tokens"  # vLLM since 0.12
    r"|\bmaximum tokens (?:you requested|value)"  # Bedrock
    r"|request too large"  # Groq, whose tokens per minute include the limit
)
"""Wordings by which endpoints refuse the token limit of a reply rather than the prompt."""


def is_out_of_room(reply: ChatReply) -> bool:
    """Return whether a reply reached its token limit before any text."""
    return reply.stop_reason is StopReason.LENGTH and not reply.text.strip()


class Room:
    """Layer that repeats a call with a larger limit when hidden reasoning used up the first one.

    The larger limit is kept for later calls. A limit that the endpoint refuses is lowered until it
    is accepted, and stays lowered. Each change is reported once. A limit set by the user is never
    raised.

    Args:
        inner: Model to call.
        info: Properties of the model: its usual headroom and its context.
        name: Name of the model, for messages.
        remembers: Whether later calls start with the adapted limit. In batches they do not: a
            request that is sent again after a restart must be identical.
        say: Function that shows the user a line.
    """

    def __init__(
        self,
        inner: ChatModel,
        info: ModelInfo,
        *,
        name: str,
        remembers: bool = True,
        say: Callable[[str], object] = print_line,
    ) -> None:
        self._inner = inner
        self._info = info
        self._name = name
        self._remembers = remembers
        self._say = say
        self._said: set[str] = set()
        self._headroom = info.reasoning_headroom
        self._most: int | None = None  # tokens that the endpoint accepted after it refused more

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request, calling twice if hidden reasoning used up the limit.

        The usage is the sum over both replies.
        """
        headroom, reply = await self._ask(request, self._headroom, on_text)
        if not self._needs_more(request, reply, headroom):
            return reply
        is_given = self._info.thinking.tokens is not None  # set by the user, so never raised
        larger = headroom if is_given or self._is_fixed else self._larger(request, headroom)
        if larger > headroom:
            if on_text is not None:
                on_text(None)
            try:
                headroom, second = await self._ask(request, larger, on_text, above=headroom)
            except (ProviderError, EndpointDown) as error:
                if not _is_about_the_limit(error):
                    raise
            else:
                if self._remembers:
                    self._headroom = max(self._headroom, headroom)
                reply = replace(
                    second,
                    usage=reply.usage + second.usage,
                    attempts=reply.attempts + second.attempts,
                    latency=reply.latency + second.latency,
                )
        if is_out_of_room(reply):
            flag = "--max-tokens" if self._is_fixed else "--reasoning-tokens"
            room = "" if self._is_fixed else f" with {headroom:,} tokens for hidden reasoning"
            self._tell(
                f"{self._name}: a reply ended at its limit{room} before any text; give it more "
                f"with {flag}"
            )
        return reply

    async def _ask(
        self, request: ChatRequest, headroom: int, on_text: OnText | None, *, above: int = -1
    ) -> tuple[int, ChatReply]:
        """Return (tokens for hidden reasoning that the endpoint accepted, its reply).

        Raises:
            ProviderError: The call failed, or the endpoint accepts no more than `above` tokens.
            EndpointDown: No attempt could be sent, or the model can only fail.
        """
        if self._most is not None:
            headroom = min(headroom, max(self._most, above))
        refused = 0
        while True:
            is_usual = headroom == self._info.reasoning_headroom
            asked = request if is_usual else replace(request, headroom=headroom)
            try:
                reply = await self._inner.generate(asked, on_text)
            except (ProviderError, EndpointDown) as error:
                smaller = _smaller(headroom)
                is_least = headroom == 0 or smaller <= above or self._is_fixed
                if is_least or not _is_about_the_limit(error):
                    raise
                refused, headroom = max(refused, headroom), smaller
                continue
            if refused and self._remembers:
                self._most = headroom
            if refused:
                self._tell(
                    f"{self._name} refuses {refused:,} tokens for hidden reasoning; it gets "
                    f"{headroom:,} from now on"
                )
            return headroom, reply

    @property
    def _is_fixed(self) -> bool:
        """Whether the user has set the token limit of a whole reply."""
        return self._info.thinking.max_tokens is not None

    def _needs_more(self, request: ChatRequest, reply: ChatReply, headroom: int) -> bool:
        """Return whether hidden reasoning has used up tokens that were meant for the text.

        If the endpoint does not count reasoning separately, it is inferred from a text below its
        limit with output tokens above that limit.
        """
        if reply.stop_reason is not StopReason.LENGTH:
            return False
        usage, written = reply.usage, len(reply.text) // _PER_TOKEN
        is_hidden = (
            not usage.reasoning_tokens and written < request.max_tokens < usage.output_tokens
        )
        return is_out_of_room(reply) or usage.reasoning_tokens > headroom or is_hidden

    def _larger(self, request: ChatRequest, headroom: int) -> int:
        """Return a larger headroom, bounded by the context if that is known."""
        most = _LARGER * max(self._info.reasoning_headroom, HEADROOM)
        larger = min(max(_LARGER * headroom, HEADROOM), most)
        if self._most is not None:
            larger = min(larger, self._most)
        if self._info.context is None:
            return larger
        prompt = int(prompt_tokens(request.messages, self._name, bytes_per_token=_PER_TOKEN))
        return min(larger, self._info.context - request.max_tokens - prompt)

    def _tell(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._say(f"NOTE: {line}")


def _smaller(headroom: int) -> int:
    smaller = headroom // 2 if headroom > HEADROOM else headroom // _LARGER
    return smaller if smaller >= _SMALLEST else 0


def _is_about_the_limit(error: BaseException) -> bool:
    """Return whether an endpoint refused the token limit of a reply, or lacks credit for it."""
    cause = error.__cause__ if isinstance(error, EndpointDown) else error
    return (
        isinstance(cause, ProviderError)
        and cause.kind in _KINDS
        and _OF_THE_LIMIT.search(str(cause)) is not None
    )
