"""Layers around the models of a team: each turn of an agent is a span of Inspect's transcript."""

from __future__ import annotations

import asyncio
from contextvars import Context

from inspect_ai.util import span, suspend_token_limit, suspend_turn_limit

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.layers.gate import carry_reservation

_AGENT = "agent"
"""Type of a span that Inspect shows as the work of an agent."""


class Turns:
    """Layer that puts the calls of a turn into a span of its agent, and of its phase in that.

    Args:
        inner: Model to call.
    """

    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner
        self.is_small = getattr(inner, "is_small", False)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request within its spans."""
        labels = request.labels
        async with (
            span(labels.agent or labels.role, type=_AGENT),
            span(labels.phase or labels.role, type="phase"),
        ):
            return await self._inner.generate(request, on_text)


class Background:
    """Layer for a call of EXAID, which is no part of the turn whose text has caused it.

    The call is made in the span of its question. It does not count toward the limits of tokens and
    turns of the sample, so that no summary costs an answer.

    Args:
        inner: Model to call.
        context: Context of the question.
    """

    def __init__(self, inner: ChatModel, context: Context) -> None:
        self._inner = inner
        self._context = context
        self.is_small = getattr(inner, "is_small", False)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request within the span `exaid`."""

        async def call() -> ChatReply:
            with suspend_token_limit(), suspend_turn_limit():
                async with span("exaid", type="exaid"), span(request.labels.role, type="phase"):
                    return await self._inner.generate(request, on_text)

        context = self._context.copy()
        carry_reservation(context)
        return await asyncio.get_running_loop().create_task(call(), context=context)
