"""EXAID in programs of AutoGen's agentchat: overhears the messages of a team."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from exaid_core.integrations.feed import Feed, Listener, Turn, as_text
from mdagents_llm.reasoning_tags import without_reasoning

__all__ = ["overheard"]

T = TypeVar("T")

_TASK = "user"  # AutoGen's name for who gave the task
_NOT_SAID = frozenset(
    {
        # What a model thinks, what is about the talk and not of it, and what was said before.
        *("ThoughtEvent", "MemoryQueryEvent", "SelectorEvent", "SelectSpeakerEvent"),
        *("UserInputRequestedEvent", "ToolCallSummaryMessage"),
    }
)


def overheard(exaid: Listener, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Return what yields the same as `stream`, and tells EXAID what the agents say in it.

        async with EXAID() as exaid:
            await Console(overheard(exaid, team.run_stream(task="…")))

    An agent is the source of a message. Its text is taken in pieces where its model streams
    (`model_client_stream=True`), else whole; calls of tools and their results are turns of the
    agent, too. Thoughts are left out, and so is the task; of results longer than `LONGEST_DATA` the
    end. The program goes on as without it: it waits for nothing more and nothing is raised but what
    the stream raises.

    Args:
        exaid: An `EXAID` or a `SyncExaid`; closed by its owner, after the run.
        stream: What `run_stream` of a team or an agent returns.

    Raises:
        TypeError: `exaid` is neither.
    """
    return _overheard(_Talk(Feed.of(exaid)), stream)


async def _overheard(talk: _Talk, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    try:
        async with aclosing(stream):
            async for message in stream:
                talk.take(message)
                yield message
    except BaseException as error:
        talk.end(error)
        raise
    finally:
        talk.end()


class _Talk:
    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._turns: dict[str, Turn] = {}
        """Turns in progress of agents whose words are streamed, by the source of the messages."""
        self._results: dict[str, set[str]] = {}
        """What the last tools have said, by source: who hands over says the same again."""

    def take(self, message: object) -> None:
        """Take what the stream has yielded; never raises."""
        try:
            # A single agent ends with a response around its message.
            self._take(getattr(message, "chat_message", message))
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the team
            self._feed.failed(error)

    def end(self, error: BaseException | None = None) -> None:
        """End all turns; never raises."""
        for turn in self._turns.values():
            turn.end(error)
        self._turns.clear()

    def _take(self, message: Any) -> None:
        kind, source = getattr(message, "type", None), getattr(message, "source", None)
        if not isinstance(source, str) or source == _TASK or kind in _NOT_SAID:
            return
        if kind == "ModelClientStreamingChunkEvent":
            turn = self._turns.get(source)
            if turn is None and message.content:
                turn = self._turns[source] = self._feed.start_turn(source)
            if turn is not None:
                turn.say(message.content)
            return
        streamed = self._turns.pop(source, None)
        if streamed is not None:
            streamed.end()
        match kind:
            case "ToolCallRequestEvent":
                for call in message.content:
                    self._feed.say(source, f"{call.name}: {call.arguments}")
            case "ToolCallExecutionEvent":
                self._results[source] = {result.content for result in message.content}
                for result in message.content:
                    failed = "failed: " if result.is_error else ""
                    self._feed.say(source, f"{result.name} → {failed}{as_text(result.content)}")
            case "HandoffMessage" if message.content in self._results.get(source, ()):
                pass
            case "CodeExecutionEvent":
                self._feed.say(source, as_text(message.to_text()))
            case _ if streamed is None:
                self._feed.say(source, without_reasoning(message.to_text()))
