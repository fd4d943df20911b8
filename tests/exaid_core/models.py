"""Models for EXAID that are made of functions, and the prompts that they got."""

from __future__ import annotations

import asyncio
import json
import re
import traceback
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any, Literal

from pydantic import BaseModel

from exaid_core.buffer_agent.buffer_agent import BufferAnalysis
from exaid_core.config import ExaidConfig
from exaid_core.exaid import EXAID
from exaid_core.schema.agent_summary import SummaryDraft
from exaid_core.trace.bus import TraceBus
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.errors import ErrorKind, ProviderError
from tests.fake_provider import SeenRequest
from tests.support.function_model import FunctionModel
from tests.support.virtual_time import now_ms

StreamState = Literal["SAME_TOPIC_CONTINUING", "TOPIC_SHIFT", "CRITICAL_ALERT"]
Outcome = BaseModel | Exception

DOWN = ProviderError("the provider is down", kind=ErrorKind.SERVER, status=500)
TOO_LONG = ProviderError("too many tokens", kind=ErrorKind.CONTEXT_LENGTH, status=400)


def analysis(
    state: StreamState = "SAME_TOPIC_CONTINUING",
    *,
    relevant: bool = True,
    novel: bool = True,
    final: bool = False,
) -> BufferAnalysis:
    """A model's judgement of new segments."""
    return BufferAnalysis(
        reasoning="as told",
        stream_state=state,
        is_relevant=relevant,
        is_novel=novel,
        final_trigger=final,
    )


SHIFT = analysis("TOPIC_SHIFT", final=True)
"""A summary is due."""
WAIT = analysis()
"""No summary is due."""
NO_ALARM = analysis(relevant=False, novel=False)
"""Nothing of this matters."""
STABLE = SummaryDraft(status_action="Under review.")
"""A summary without claims that a test would have to support."""


def reply(parsed: BaseModel) -> ChatReply:
    """A structured reply that used 10 + 5 tokens."""
    usage = TokenUsage(10, 5)
    return ChatReply(parsed.model_dump_json(), usage, StopReason.STOP, "function", parsed)


def model(*outcomes: Outcome) -> FunctionModel:
    """A model with these outcomes in turn; the last one stays."""
    left: Iterator[Outcome] = chain(outcomes, repeat(outcomes[-1]))

    def answer(request: ChatRequest) -> ChatReply:
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return reply(outcome)

    return FunctionModel(answer)


class Slow:
    """A model that takes its time.

    Args:
        inner: What it says.
        seconds: Gives how long each call takes, on the clock of the loop.
    """

    def __init__(self, inner: ChatModel, seconds: Callable[[], float]) -> None:
        self._inner = inner
        self._seconds = seconds

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer as the inner model does, after a pause."""
        await asyncio.sleep(self._seconds())
        return await self._inner.generate(request, on_text)


def make_exaid(judge: ChatModel, write: ChatModel, **more: Any) -> EXAID:
    """An EXAID on the clock of the loop that judges all text; other names are settings."""
    names = ("case_id", "on_summary", "on_error", "now_ms", "room")
    arguments = {name: more.pop(name) for name in names if name in more}
    return EXAID(
        buffer_llm=judge,
        summarizer_llm=write,
        config=ExaidConfig(**{"linger": 0.0, "first_after": None, "behind_after": None, **more}),
        monotonic=lambda: asyncio.get_running_loop().time(),
        **{"now_ms": now_ms, **arguments},
    )


def watched_bus(exaid: EXAID) -> TraceBus:
    """A bus that EXAID follows."""
    bus = TraceBus(now_ms, on_failure=traceback.print_exception)
    bus.subscribe(exaid.on_event, wants_text=True)
    return bus


def asks_for(field: str) -> Callable[[SeenRequest], bool]:
    """Tells the requests to a fake provider whose reply must have that field."""
    return lambda request: field in str(request.schema)


Said = tuple[str, str]
"""Agent, and what it said."""

_OPENING = re.compile(r"<trace ([0-9a-f]{16})>")


def data_blocks(request: ChatRequest) -> list[list[Said]]:
    """The blocks of trace text in a prompt, read strictly.

    What looks like a delimiter is one, and what is between delimiters must be one object a line.
    """
    blocks: list[list[Said]] = []
    nonce = None
    for line in request.messages[1].content.split("\n"):
        if nonce is None:
            assert not line.startswith("</trace"), "a block is closed that was not opened"
            if line.startswith("<trace"):
                opening = _OPENING.fullmatch(line)
                assert opening is not None
                nonce = opening[1]
                blocks.append([])
        elif line.startswith("<"):
            assert line == f"</trace {nonce}>", "a block has one delimiter at each end"
            nonce = None
        else:
            assert not {"<", ">"} & set(line), "a bracket stands in a delimiter only"
            assert nonce not in line, "a text has guessed the delimiter"
            content = json.loads(line)
            assert content.keys() == {"agent", "text"}
            blocks[-1].append((content["agent"], content["text"]))
    assert nonce is None, "a block is not closed"
    return blocks


def newest_block(request: ChatRequest) -> list[Said]:
    """The new text in a prompt."""
    return data_blocks(request)[-1]
