"""EXAID: summarizes the text of agents while they write it.

Text comes in through `on_event`, which returns at once, or through `received_trace` and
`on_new_token`, which wait for the decision on their segment. In both cases, a single worker decides
and summarizes in the order in which the segments arrived. Segments that arrive during a decision
are judged together in the next one.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from types import TracebackType
from typing import Self

from exaid_core.buffer_agent.buffer_agent import BufferAgent
from exaid_core.channel import shown_id, valid_agent_id
from exaid_core.config import ExaidConfig
from exaid_core.ctu import tail_loss
from exaid_core.decisions import Decisions
from exaid_core.health import Failure, Health, Monitor
from exaid_core.history import History
from exaid_core.recording import Progress, Recording
from exaid_core.run_log import RunLog
from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.segmenter import Segmenter
from exaid_core.segments import windows
from exaid_core.subscribers import Subscriber, Subscribers
from exaid_core.summarizer_agent.summarizer_agent import NO_SUMMARY, SummarizerAgent
from exaid_core.trace.events import TraceEvent
from exaid_core.worker import RoomFor, Worker
from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import epoch_ms
from mdagents_llm.config import LLMRole
from mdagents_llm.llm_registry import RoleModels

__all__ = ["EXAID", "RoomFor"]

TextSubscriber = Callable[[str, str], object]
"""A function of an agent id and a text, which must not block."""

_LOG = logging.getLogger("exaid_core")

_shown_id = lru_cache(maxsize=1024)(shown_id)


class EXAID:
    """Writes the summaries of one case.

    Leaving an `async with` block finalizes and closes; after an error, it stops at once. All
    methods except `on_event` must be called from one event loop; for threads, use `SyncExaid`.

    Args:
        buffer_llm: Model that decides; None uses the one from the role registry.
        summarizer_llm: Model that writes; None uses the one from the role registry.
        config: When to summarize, and how much of the past a prompt holds.
        case_id: Case to which the calls are booked: any printable id. The run log has it in the
            form of `logged_case_id`.
        now_ms: Clock in ms since 1970 UTC.
        monotonic: Clock in seconds, for latencies.
        on_summary: First subscriber: see `subscribe`.
        on_error: Callback for each failure of a model, subscriber or check; see also `health`.
        room: Makes a context that is entered before text is taken for a call to the model of a
            role, and left after the call, so that the call has all text up to the moment when it
            can be sent.

    Raises:
        ConfigError: A model that the environment selects has no API key.
        TypeError: A model is not an object with the method `generate`, or another argument has the
            wrong type.
        ValueError: `case_id` is empty, too long or not printable.
    """

    def __init__(
        self,
        *,
        buffer_llm: ChatModel | None = None,
        summarizer_llm: ChatModel | None = None,
        config: ExaidConfig | None = None,
        case_id: str = "case-live",
        now_ms: Callable[[], int] = epoch_ms,
        monotonic: Callable[[], float] = time.perf_counter,
        on_summary: Subscriber | None = None,
        on_error: Callable[[Failure], object] = lambda failure: None,
        room: RoomFor = lambda role, urgency: nullcontext(),
    ) -> None:
        self.config = ExaidConfig() if config is None else config
        if not isinstance(self.config, ExaidConfig):
            raise TypeError(f"config must be an ExaidConfig, not {type(config).__name__}")
        self._own_models = RoleModels(self.config.attempt_timeout, self.config.call_timeout)
        if buffer_llm is None:
            buffer_llm = self._own_models.model(LLMRole.BUFFER_AGENT)
        if summarizer_llm is None:
            summarizer_llm = self._own_models.model(LLMRole.SUMMARIZER)
            if getattr(summarizer_llm, "is_local", False):
                _LOG.warning(
                    "EXAID writes with a model on this machine: the embedded one fills in the form "
                    "and no more; a key, such as OPENAI_API_KEY, gives it a better one"
                )
        self._monitor = Monitor(on_error)
        self.buffer_agent = BufferAgent(
            buffer_llm, self.config, case_id=case_id, monotonic=monotonic, now_ms=now_ms
        )
        self.summarizer_agent = SummarizerAgent(
            summarizer_llm,
            case_id=case_id,
            monotonic=monotonic,
            timeout=self.config.call_timeout,
        )
        self._subscribers = Subscribers(self._monitor)
        if on_summary is not None:
            self._subscribers.add(on_summary)
        self.log = RunLog(case_id, self.config)
        history = History(self.config, partial(self._monitor.broke, "check"))
        self.summaries = history.summaries
        self._decisions = Decisions(
            self.config,
            self.buffer_agent,
            self.summarizer_agent,
            self.log,
            history,
            self._monitor,
            self._subscribers.tell,
        )
        self._segmenter = Segmenter(self.config, self.log)
        self._worker = Worker(self._segmenter, self._decisions, now_ms, room)
        self._now_ms = now_ms
        self._next_seq = 0
        self._elsewhere: deque[TraceEvent] = deque()
        """Events from outside the event loop, until the event loop takes them."""
        self._closed = False
        self._text_subscribers: list[TextSubscriber] = []

    async def __aenter__(self) -> Self:
        self._worker.check_loop()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await (self.close() if error is None else self.stop())

    # Input

    def on_event(self, event: TraceEvent) -> None:
        """Accept an event of a `TraceBus` from any thread and return at once.

        Outside the event loop of this object, the event is queued for it; `finalize`, `close` and
        `stop` take it at the latest. The event keeps its sequence number unless text from another
        bus or method already has one as high; then it gets the next free number.

        Raises:
            RuntimeError: The event loop of this object is closed.
        """
        if self._closed:
            return
        if self._worker.is_on_its_loop():
            self._take_from_elsewhere()
            self._take(event)
        else:
            self._elsewhere.append(event)
            self._worker.call_soon(self._take_from_elsewhere)

    def _take(self, event: TraceEvent) -> None:
        seq = self._number(event.seq)
        event = _with_shown_id(event if seq == event.seq else event._replace(seq=seq))
        if event.text:
            self._tell_text(event.agent_id, event.text)
        self._worker.submit(self._segmenter.event(event))

    def _number(self, wanted: int = 0) -> int:
        """Return a sequence number that is higher than all earlier ones."""
        seq = max(wanted, self._next_seq)
        self._next_seq = seq + 1
        return seq

    def _take_from_elsewhere(self) -> None:
        while self._elsewhere and not self._closed:
            event = self._elsewhere.popleft()
            try:
                self._take(event)
            except Exception as error:  # noqa: BLE001 - nobody waits for it: `close` raises it
                self._worker.failure = self._worker.failure or error

    async def received_trace(
        self, agent_id: str | None = None, text: str = "", *, id: str | None = None
    ) -> AgentSummary | None:
        """Accept a trace as one segment and wait for the decision on it.

        Args:
            agent_id: Agent that wrote the text.
            text: Text of the trace.
            id: Deprecated name of `agent_id`.

        Returns:
            The summary that covers the segment, or None if no summary was due.

        Raises:
            TypeError: The text or the agent id is not a string.
            ValueError: The agent id cannot be displayed.
        """
        if id is not None:
            warnings.warn("id= is now agent_id=", DeprecationWarning, stacklevel=2)
        agent_id = valid_agent_id(agent_id if agent_id is not None else id or "")
        _check_text(text)
        self._worker.check_loop()
        if self._closed:
            return None
        self._tell_text(agent_id, text)
        segments = self._segmenter.whole(agent_id, text, self._number(), self._now_ms())
        return await self._worker.decision_on(segments)

    async def on_new_token(self, agent_id: str, token: str) -> AgentSummary | None:
        """Accept one token and, if it completes a chunk, wait for the decision on the chunk.

        Returns:
            The summary that covers the chunk, or None if there is no new summary.

        Raises:
            TypeError: The token or the agent id is not a string.
            ValueError: The agent id cannot be displayed.
        """
        agent_id = valid_agent_id(agent_id)
        _check_text(token)
        self._worker.check_loop()
        if self._closed:
            return None
        self._tell_text(agent_id, token)
        segments = self._segmenter.token(agent_id, token, self._number(), self._now_ms())
        return await self._worker.decision_on(segments)

    async def flush_agent(self, agent_id: str) -> None:
        """Move the streamed text of an agent into the buffer without deciding on it."""
        self._worker.check_loop()
        if not self._closed:
            segments = self._segmenter.flush(valid_agent_id(agent_id), self._now_ms())
            await self._worker.decision_on(segments, is_parked=True)

    async def finalize(self) -> AgentSummary | None:
        """Flush all gates, finish work in progress, and summarize the rest of the text.

        Returns:
            The last summary that this call wrote, or None if it wrote none.
        """
        self._worker.check_loop()
        self._take_from_elsewhere()
        before = len(self.summaries)
        await self._worker.finish()
        return self.summaries[-1] if len(self.summaries) > before else None

    async def take_trace(
        self, events: Iterable[TraceEvent], progress: Progress | None = None
    ) -> None:
        """Summarize the text of a finished case in as few summaries as possible.

        Args:
            events: Events of the case, in order.
            progress: Progress of an earlier EXAID on the case, to resume it; its decisions and
                summaries are kept. None starts from the beginning.
        """
        progress = progress or Progress()
        logged = [
            segment
            for chunk in progress.chunks
            for segment in self._segmenter.chunk(replace(chunk, agent_id=_shown_id(chunk.agent_id)))
        ]
        known = {seq for chunk in progress.chunks for seq in chunk.seqs}
        segments = self._decisions.restore(logged, progress)
        for event in events:
            if event.seq not in known:
                segments += self._segmenter.advance(event.t_ms)
                segments += self._segmenter.event(_with_shown_id(event))
        segments += self._segmenter.rest(self._now_ms())
        await self._worker.catch_up(windows(segments, 2 * self.config.max_buffer_ctu))
        await self._worker.finish()

    async def close(self, seconds: float | None = None) -> None:
        """Finalize within a time limit, then stop; later text is ignored.

        Args:
            seconds: Timeout in seconds, after which the call in progress and async subscribers are
                canceled and the rest of the text stays without a summary; `on_error` is called
                with the number of summaries that a subscriber missed. None waits forever.

        Raises:
            Exception: EXAID itself, not a model or subscriber, failed in a decision that no caller
                waited for.
        """
        self._worker.check_loop()
        self._take_from_elsewhere()
        self._closed = True
        try:
            async with asyncio.timeout(seconds):
                await self.finalize()
                await self._subscribers.finished()
        except TimeoutError:
            pass
        finally:
            await self.stop()
        if self._worker.failure is not None:
            raise self._worker.failure

    async def stop(self, *, after_decision: bool = False) -> None:
        """Stop: start no further call, and cancel a call in progress.

        Another object can resume from the log and the text of the case: see `take_trace`.

        Args:
            after_decision: Whether to complete a decision in progress first, with its summary.
        """
        self._worker.check_loop()
        self._take_from_elsewhere()
        self._closed = True
        try:
            await self._worker.stop(after_decision=after_decision)
            await self._subscribers.stop()
        finally:
            await self._own_models.aclose()

    async def replay(self, recording: Recording) -> None:
        """Replay a recorded run step by step, with recorded replies of the models."""
        segments = [one for chunk in recording.chunks for one in self._segmenter.chunk(chunk)]
        left = dict(enumerate(segments))
        try:
            for step in recording.steps:
                taken = [left.pop(index) for index in step.chunks]
                await self._decisions.repeat(taken, step)
        finally:
            self.buffer_agent.hold(list(left.values()))
        await self._decisions.summarize(recording.last_calls)

    def advance(self, t_ms: int) -> None:
        """Fire each of the gate's timers that is due by `t_ms`, in ms since 1970 UTC, at its time.

        A replay in virtual time calls this before each event. It needs a running event loop.
        """
        self._worker.submit(self._segmenter.advance(t_ms))

    # Results

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a function with each summary from now on, as soon as it is written.

        A plain function must not block. An async function is awaited in the background, one summary
        at a time, and `close` waits for it. A subscriber that raises affects nothing else: its
        error goes to `on_error`.
        """
        self._subscribers.add(subscriber)

    def subscribe_text(self, subscriber: TextSubscriber) -> None:
        """Call a function with the agent id and text of all that agents say from now on.

        It receives each trace, token and delta before EXAID does. It must not block. One that
        raises affects nothing else: its error goes to `on_error`.
        """
        self._text_subscribers.append(subscriber)

    def _tell_text(self, agent_id: str, text: str) -> None:
        for subscriber in self._text_subscribers:
            try:
                subscriber(agent_id, text)
            except Exception as error:  # noqa: BLE001 - an observer must not disturb the agents
                self._monitor.broke("subscriber", error)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop calling a subscriber.

        Raises:
            ValueError: `subscriber` is not subscribed.
        """
        self._subscribers.remove(subscriber)

    @property
    def health(self) -> Health:
        """Health of the model calls so far."""
        return self._monitor.health

    def latest_summary(self) -> AgentSummary | str:
        """Return the latest summary, or `NO_SUMMARY` if there is none yet."""
        return self.summaries[-1] if self.summaries else NO_SUMMARY

    def get_all_summaries(self) -> list[AgentSummary]:
        """Return all summaries, oldest first."""
        return list(self.summaries)

    def get_summaries_by_agent(self, agent_id: str) -> list[AgentSummary]:
        """Return the summaries that cover segments of the agent with exactly this id."""
        agent_id = shown_id(agent_id)
        return [summary for summary in self.summaries if agent_id in summary.agents]

    def get_agent_trace_count(self, agent_id: str) -> int:
        """Count the traces of an agent: calls of `received_trace`, and chunks of its stream."""
        return self._segmenter.chunks[shown_id(agent_id)]

    @property
    def alerts(self) -> int:
        """Number of segments with a critical alert so far."""
        return self._segmenter.alerts

    def tail_loss(self) -> float:
        """Return the share of the text that no summary covers, 0 to 1; 0 without text."""
        left = (segment.text for segment in self._worker.left())
        return tail_loss(left, self._segmenter.letters)

    def missed_alerts(self) -> int:
        """Count the segments with a critical alert that no summary covers."""
        return sum(segment.is_alert for segment in self._worker.left())


def _with_shown_id(event: TraceEvent) -> TraceEvent:
    agent_id = _shown_id(event.agent_id)
    return event if agent_id == event.agent_id else event._replace(agent_id=agent_id)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"an agent's text must be a string, not {type(text).__name__}")
