"""EXAID for the OpenAI Agents SDK: run hooks that forward what agents say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from exaid_core.integrations.feed import Feed, Listener, Turn, as_text
from mdagents_llm.extras import needs_extra
from mdagents_llm.reasoning_tags import without_reasoning

with needs_extra("agents", "ExaidHooks", ImportError):
    from agents import Agent, RunContextWrapper, RunHooks, RunResultStreaming, StreamEvent, Tool
    from agents.items import ModelResponse

__all__ = ["ExaidHooks"]

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class ExaidHooks(RunHooks[Any]):
    """Sends the text of the agents in a run to EXAID.

        async with EXAID() as exaid:
            result = await Runner.run(agent, question, hooks=ExaidHooks(exaid))

    The text of a model is taken when its reply is complete, or in pieces if a streamed run is read
    through `stream_events`. Tool calls, tool results and handoffs are turns of the agent as well.
    Reasoning is left out, and results are cut to `LONGEST_DATA`. The SDK does not report failures
    of models to hooks.

    The hooks do not affect the run: they wait for nothing and raise nothing. One object can serve
    several concurrent runs.

    Args:
        exaid: An `EXAID` or a `SyncExaid`; its owner closes it after the run.

    Raises:
        TypeError: `exaid` is neither an `EXAID` nor a `SyncExaid`.
    """

    def __init__(self, exaid: Listener) -> None:
        self._feed = Feed.of(exaid)
        self._streamed: WeakSet[RunContextWrapper[Any]] = WeakSet()
        """Contexts of the runs that are read through `stream_events`."""

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Forward the reply of a model."""
        with self._unseen():
            if context not in self._streamed:
                self._feed.say(agent.name, "\n".join(_texts(response.output)))

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Any, tool: Tool, result: object
    ) -> None:
        """Forward the result of a tool."""
        with self._unseen():
            self._feed.say(agent.name, f"{tool.name} → {as_text(result)}")

    async def on_handoff(
        self, context: RunContextWrapper[Any], from_agent: Any, to_agent: Any
    ) -> None:
        """Forward the handoff of an agent to another."""
        with self._unseen():
            self._feed.say(from_agent.name, f"Hands over to {to_agent.name}.")

    def stream_events(self, result: RunResultStreaming) -> AsyncIterator[StreamEvent]:
        """Wrap `result.stream_events()` so that EXAID receives the text in pieces.

            result = Runner.run_streamed(agent, question, hooks=hooks)
            async for event in hooks.stream_events(result):

        Args:
            result: Result of a run with these hooks that has just been started.
        """
        # Done here, not at the first event, because the run has already started.
        self._streamed.add(result.context_wrapper)
        return self._overheard(result)

    async def _overheard(self, result: RunResultStreaming) -> AsyncIterator[StreamEvent]:
        reply = _StreamedReply(self._feed.start_turn, result.current_agent.name)
        try:
            async for event in result.stream_events():
                with self._unseen():
                    reply.take(event)
                yield event
        except BaseException as error:
            with self._unseen():
                reply.end(error)
            raise
        finally:
            self._streamed.discard(result.context_wrapper)
            with self._unseen():
                reply.end()

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - an observer must not disturb the run
            self._feed.failed(error)


class _StreamedReply:
    """The replies of a streamed run, one after the other.

    Args:
        start_turn: Function that starts a turn of an agent.
        agent: Name of the first agent.
    """

    def __init__(self, start_turn: Callable[[str], Turn], agent: str) -> None:
        self._start_turn = start_turn
        self._agent = agent
        self._turn: Turn | None = None
        self._part: tuple[int, int] | None = None
        """Output and content index of the latest text."""

    def take(self, event: StreamEvent) -> None:
        """Forward an event of the stream."""
        if event.type == "agent_updated_stream_event":
            self.end()
            self._agent = event.new_agent.name
        elif event.type == "raw_response_event":
            self._take_raw(event.data)

    def end(self, error: BaseException | None = None) -> None:
        """End the turn in progress, if any."""
        turn, self._turn, self._part = self._turn, None, None
        if turn is not None:
            turn.end(error)

    def _take_raw(self, data: Any) -> None:
        if data.type in _TEXT:
            part, self._part = self._part, (data.output_index, data.content_index)
            self._say(data.delta, is_new_part=part != self._part)
        elif data.type == "response.function_call_arguments.delta":
            self._part = None
            self._say(data.delta, is_call=True)
        elif data.type == "response.output_item.added" and data.item.type == "function_call":
            lead = "\n" if self._turn is not None else ""
            self._say(f"{lead}{data.item.name}: {data.item.arguments or ''}", is_call=True)
        elif data.type in _ENDS:
            if self._turn is None:
                self._say("\n".join(_texts(data.response.output)))
            self.end()

    def _say(self, text: str, *, is_call: bool = False, is_new_part: bool = False) -> None:
        if text:
            self._turn = self._turn or self._start_turn(self._agent)
            if is_call:
                self._turn.say_call(text)
            else:
                self._turn.say(text, is_new_part=is_new_part)


def _texts(output: Iterable[Any]) -> Iterator[str]:
    """Yield the texts, refusals and tool calls in a model's reply."""
    for item in output:
        if item.type == "message":
            for part in item.content:
                said = part.text if part.type == "output_text" else part.refusal
                yield without_reasoning(said)
        elif item.type == "function_call":
            yield f"{item.name}: {item.arguments}"
