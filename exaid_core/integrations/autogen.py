"""EXAID for AutoGen's agentchat: forwards the messages of a team."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from exaid_core.integrations.feed import Feed, Listener, Turn, as_text
from mdagents_llm.reasoning_tags import without_reasoning

__all__ = ["overheard"]

T = TypeVar("T")

_TASK = "user"  # AutoGen's source name for the user who set the task
_NOT_SAID = frozenset(
    {
        # Thoughts, messages about the conversation rather than in it, and repetitions.
        *("ThoughtEvent", "MemoryQueryEvent", "SelectorEvent", "SelectSpeakerEvent"),
        *("UserInputRequestedEvent", "ToolCallSummaryMessage"),
    }
)


def overheard(exaid: Listener, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Wrap `stream` in a generator that yields the same and sends the agents' text to EXAID.

        async with EXAID() as exaid:
            await Console(overheard(exaid, team.run_stream(task="…")))

    Agents are identified by the source of their messages. Text is taken in pieces if the agent's
    model streams (`model_client_stream=True`), else whole; tool calls and their results are turns
    of the agent as well. Thoughts and the task are left out, and results are cut to `LONGEST_DATA`.
    The wrapper does not affect the program: it adds no waiting, and raises only what the stream
    raises.

    Args:
        exaid: An `EXAID` or a `SyncExaid`; its owner closes it after the run.
        stream: Stream returned by `run_stream` of a team or an agent.

    Raises:
        TypeError: `exaid` is neither an `EXAID` nor a `SyncExaid`.
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
        self._turns: dict[tuple[str, str | None], Turn] = {}
        """Turns in progress of agents whose text is streamed, by source and id of the message."""
        self._thought: Counter[str] = Counter()
        """Streamed texts by source that a thought, whose id they share, has followed.

        The message that repeats such a text has another id.
        """
        self._results: dict[str, set[str]] = {}
        """Results of the latest tool calls by source, because a handoff message repeats them."""

    def take(self, message: object) -> None:
        """Forward an item of the stream to EXAID; never raises."""
        try:
            # The stream of a single agent ends with a response that wraps its message.
            self._take(getattr(message, "chat_message", message))
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the team
            self._feed.failed(error)

    def end(self, error: BaseException | None = None) -> None:
        """End all turns; never raises."""
        for turn in self._turns.values():
            turn.end(error)
        self._turns.clear()

    def _end(self, source: str, message_id: str | None) -> bool:
        """End the turn that a whole message repeats or follows; return whether there is one.

        It is the turn with the id of the message, else the only one of the source.
        """
        of_source = [key for key in self._turns if key[0] == source]
        keys = [key for key in of_source if key[1] == message_id]
        if not keys and len(of_source) == 1:
            keys = of_source
        for key in keys:
            self._turns.pop(key).end()
        return bool(keys)

    def _take(self, message: Any) -> None:
        kind, source = getattr(message, "type", None), getattr(message, "source", None)
        if kind == "ThoughtEvent" and isinstance(source, str):
            self._thought[source] += self._end(source, getattr(message, "id", None))
        if not isinstance(source, str) or source == _TASK or kind in _NOT_SAID:
            return
        if kind == "ModelClientStreamingChunkEvent":
            key = source, getattr(message, "full_message_id", None)
            turn = self._turns.get(key)
            if turn is None and message.content:
                turn = self._turns[key] = self._feed.start_turn(source)
            if turn is not None:
                turn.say(message.content)
            return
        is_streamed = self._end(source, getattr(message, "id", None))
        if not is_streamed and self._thought[source]:
            self._thought[source] -= 1
            is_streamed = True
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
            case _ if not is_streamed:
                self._feed.say(source, without_reasoning(message.to_text()))
