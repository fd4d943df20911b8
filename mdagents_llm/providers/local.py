"""The embedded model: our own llama.cpp server, called like any other endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel

from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.errors import ConfigError
from mdagents_llm.json_schema import longest_reply, reply_schema
from mdagents_llm.local_model.server import LlamaServer, ServerSettings, json_schema_grammar

SLOTS = 2
"""Number of calls that the server processes concurrently."""
CONTEXT = 4096
"""Context size of one slot in tokens."""

_DEATHS_ALLOWED = 1
_WITHOUT_LOOPS: Mapping[str, object] = MappingProxyType(
    {"repeat_penalty": 1.1, "repeat_last_n": 40}
)
"""Body fields that keep a small model from repeating the same words until its limit."""


class LocalServer:
    """The server of one GGUF file: started once, by the first call, and closed by its owner.

    Args:
        find_weights: Function that returns the path of the file; it may download the file, so it is
            called in a thread.
        connect: Function that creates the model that calls a started server.
    """

    def __init__(
        self, find_weights: Callable[[], Path], connect: Callable[[LlamaServer], ChatModel]
    ) -> None:
        self._find_weights = find_weights
        self._connect = connect
        self._starting = asyncio.Lock()
        self._server: LlamaServer | None = None
        self._model: ChatModel | None = None
        self._deaths = 0

    async def model(self) -> ChatModel:
        """Return the model behind the server, starting the server if it is not running.

        Raises:
            ConfigError: The weights are missing or cannot be loaded, or the server died again.
        """
        async with self._starting:
            if self._server is not None and self._server.has_ended:
                await self.aclose()
                self._deaths += 1
                if self._deaths > _DEATHS_ALLOWED:
                    raise ConfigError("the local model's server crashed again; check free memory")
            if self._model is None:
                gguf = await asyncio.to_thread(self._find_weights)
                self._server = await LlamaServer.astart(
                    ServerSettings(gguf, slots=SLOTS, context=CONTEXT)
                )
                self._model = self._connect(self._server)
        return self._model

    async def aclose(self) -> None:
        """Stop the server if it is running."""
        if self._server is not None:
            await asyncio.to_thread(self._server.close)
        self._server = self._model = None


class LocalChat:
    """A model on a `LocalServer`.

    Args:
        server: Server that is shared by all roles with the same file.
    """

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer one request on the embedded model."""
        model = await self._server.model()
        return await model.generate(_with_room(request), on_text)


@lru_cache(maxsize=64)
def grammar(schema: type[BaseModel], *, is_small: bool = False) -> Mapping[str, object]:
    """Return body fields that constrain a model to `schema`; a small one is kept from looping."""
    held = {"grammar": json_schema_grammar(reply_schema(schema), is_small=is_small)}
    return {**held, **_WITHOUT_LOOPS} if is_small else held


def _with_room(request: ChatRequest) -> ChatRequest:
    """Return a request with a token limit of twice its longest reply.

    The grammar already bounds the reply, so a tight limit could only truncate it. A character can
    take more than one token, written as an escape or as bytes.
    """
    if request.schema is None:
        return request
    return replace(request, max_tokens=2 * longest_reply(request.schema))
