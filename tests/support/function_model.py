"""A model made of a function: for tests of what lies around a model."""

from __future__ import annotations

from collections.abc import Callable

from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage


def text_reply(text: str, stop_reason: StopReason = StopReason.STOP) -> ChatReply:
    """A reply that used 10 + 5 tokens."""
    return ChatReply(text, TokenUsage(10, 5), stop_reason, "function")


class FunctionModel:
    """Answers each request with what the function gives, and remembers the requests.

    Args:
        function: Gives a reply or raises.
    """

    def __init__(self, function: Callable[[ChatRequest], ChatReply | str]) -> None:
        self._function = function
        self.requests: list[ChatRequest] = []

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Note the request, and return what the function makes of it."""
        self.requests.append(request)
        reply = self._function(request)
        return text_reply(reply) if isinstance(reply, str) else reply
