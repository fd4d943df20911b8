"""EXAID: summarises the text of agents while they write it.

Text comes in through `on_event`, which returns at once, or through `received_trace` and
`on_new_token`, which wait for the decision on their segment. Either way one worker at a time
decides and summarises, in the order in which the segments came. Segments that arrive meanwhile are
judged together in the next decision.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from itertools import takewhile

from exaid_core.buffer_agent.buffer_agent import BufferAgent, Judgement, TriggerReason
from exaid_core.channel import valid_agent_id
from exaid_core.config import JUDGED, ExaidConfig
from exaid_core.ctu import ctu
from exaid_core.grounding import dissent_missing, stated_answer, unsupported_terms
from exaid_core.policy import TriggerPolicy
from exaid_core.recording import Recording
from exaid_core.run_log import RunLog
from exaid_core.schema.agent_summary import LIMITS, PLACEHOLDER, AgentSummary, seq_ranges
from exaid_core.segments import AlertWatch, Segment, size, windows
from exaid_core.summarizer_agent.summarizer_agent import NO_SUMMARY, SummarizerAgent
from exaid_core.token_gate.chunks import ChunkGate
from exaid_core.token_gate.token_gate import Flush, FlushReason, GateCore
from exaid_core.trace.events import EventKind, TraceEvent
from infra.chat import ChatModel
from infra.config import LLMRole
from infra.layers.gate import Urgency

RoomFor = Callable[[LLMRole, Urgency], AbstractAsyncContextManager[None]]
"""Makes a context that is entered when a call to the model of a role can be sent."""

_Waiter = asyncio.Future[AgentSummary | None]


@dataclass(slots=True)
class _Arrival:
    """A segment that has not been decided on."""

    segment: Segment
    is_parked: bool
    """Whether it goes into the buffer without a decision."""
    waiter: _Waiter | None = None

    def settle(self, summary: AgentSummary | None) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(summary)


class EXAID:
    """The summaries of one case.

    Args:
        buffer_llm: The model that decides; None: that of the role registry.
        summarizer_llm: The model that writes; None: that of the role registry.
        config: When to summarise, and how much of the past a prompt holds.
        case_id: Books the calls under this case, and names it in the run log.
        now_ms: Time in ms since 1970 UTC.
        monotonic: Clock in seconds, for latencies.
        on_summary: Called with each summary as soon as it is there.
        room: Entered before text is taken for a call to the model of a role, and left after it, so
            that the call has all text up to the moment when it can be sent.

    Raises:
        ValueError: `case_id` is not `case-` and letters, digits or hyphens.
    """

    def __init__(
        self,
        *,
        buffer_llm: ChatModel | None = None,
        summarizer_llm: ChatModel | None = None,
        config: ExaidConfig | None = None,
        case_id: str = "case-live",
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        monotonic: Callable[[], float] = time.perf_counter,
        on_summary: Callable[[AgentSummary], None] | None = None,
        room: RoomFor = lambda role, urgency: nullcontext(),
    ) -> None:
        self.config = config or ExaidConfig()
        self.buffer_agent = BufferAgent(
            buffer_llm, self.config, case_id=case_id, monotonic=monotonic
        )
        self.summarizer_agent = SummarizerAgent(
            summarizer_llm, case_id=case_id, monotonic=monotonic
        )
        self.log = RunLog(case_id, self.config)
        self.summaries: list[AgentSummary] = []
        self._event_ids: list[str] = []  # of `summaries`
        self._now_ms = now_ms
        self._on_summary = on_summary
        self._room = room
        self._gate = _gate(self.config)
        self._next_seq = 0
        self._seqs: defaultdict[str, list[int]] = defaultdict(list)  # not flushed yet, by agent
        self._trace_counts: Counter[str] = Counter()
        self._alerts = AlertWatch()
        self._pending: list[_Arrival] = []
        self._hurry = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._worker: asyncio.Task[None] | None = None
        self._waits_for_room = False
        self._timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self._closed = False
        self._pace = 0.0  # seconds that the last decision took
        self._text_ctu = 0
        self.alerts = 0
        """Segments with a critical alert so far."""

    # Text of agents

    def on_event(self, event: TraceEvent) -> None:
        """Take an event of a `TraceBus` and return at once. Needs a running event loop."""
        if self._closed:
            return
        match event.kind:
            case EventKind.DELTA:
                self._submit(self._gated(event.agent_id, event.text, event.seq, event.t_ms))
                self._watch_timers()
            case EventKind.END:
                flush = self._gate.flush(event.agent_id, FlushReason.TURN_END)
                self._submit(self._segments([flush] if flush else [], event.t_ms))
            case EventKind.START:
                pass

    async def received_trace(
        self, agent_id: str | None = None, text: str = "", *, id: str | None = None
    ) -> AgentSummary | None:
        """Take a trace as one segment and wait for the decision on it.

        Args:
            agent_id: The agent.
            text: Its text.
            id: The old name of `agent_id`.

        Returns:
            The summary that the segment is part of, or None if no summary was due.

        Raises:
            ValueError: The agent id cannot be shown.
        """
        if id is not None:
            warnings.warn("id= is now agent_id=", DeprecationWarning, stacklevel=2)
        agent_id = valid_agent_id(agent_id if agent_id is not None else id or "")
        if self._closed:
            return None
        now, seq = self._now_ms(), self._seq()
        self._seqs[agent_id].append(seq)
        flush = Flush(
            agent_id,
            text,
            FlushReason.TURN_END,
            seq,
            seq,
            len(text.split()),
            now / 1000,
            now / 1000,
        )
        # Text that was streamed before goes first.
        earlier = self._gate.flush(agent_id, FlushReason.TURN_END)
        flushes = [earlier, flush] if earlier else [flush]
        return await self._decision_on(self._segments(flushes, now))

    async def on_new_token(self, agent_id: str, token: str) -> AgentSummary | None:
        """Take one token and, if it completes a chunk, wait for the decision on the chunk.

        Returns:
            The summary that the chunk is part of, or None.

        Raises:
            ValueError: The agent id cannot be shown.
        """
        agent_id = valid_agent_id(agent_id)
        if self._closed:
            return None
        segments = self._gated(agent_id, token, self._seq(), self._now_ms())
        self._watch_timers()
        return await self._decision_on(segments)

    async def flush_agent(self, agent_id: str) -> None:
        """Move the streamed text of an agent into the buffer, without a decision on it."""
        flush = self._gate.flush(agent_id)
        segments = self._segments([flush] if flush else [], self._now_ms())
        await self._decision_on(segments, is_parked=True)

    async def finalize(self) -> AgentSummary | None:
        """Flush all gates, finish work under way, and summarise the rest of the text.

        Returns:
            The last summary made by this call, or None.
        """
        before = len(self.summaries)
        self._stop_timer()
        self._submit(self._rest(), is_parked=True)
        self._park()
        await self._idle()
        if self.buffer_agent.held():
            async with self._one_at_a_time, self._room(LLMRole.SUMMARIZER, self._urgency):
                await self._summarise()
        return self.summaries[-1] if len(self.summaries) > before else None

    async def take_trace(self, events: Iterable[TraceEvent]) -> None:
        """Summarise the text of a finished case, in as few summaries as possible.

        Args:
            events: Of the case, in order.
        """
        segments: list[Segment] = []
        for event in events:
            segments += self._timed_out(event.t_ms)
            if event.kind is EventKind.DELTA:
                segments += self._gated(event.agent_id, event.text, event.seq, event.t_ms)
            elif event.kind is EventKind.END:
                flush = self._gate.flush(event.agent_id, FlushReason.TURN_END)
                segments += self._segments([flush] if flush else [], event.t_ms)
        segments += self._rest()
        left = deque(windows(segments, 2 * self.config.max_buffer_ctu))
        alerts = any(segment.is_alert for segment in segments)
        try:
            while left:
                # Cases that are shown live come first.
                room = self._room(LLMRole.SUMMARIZER, lambda: (not alerts, 2))
                async with self._one_at_a_time, room:
                    await self._consider(left.popleft(), TriggerReason.BEHIND)
        finally:
            for window in left:
                self.buffer_agent.hold(window)

    async def close(self, seconds: float | None = None) -> None:
        """Finalize within a time, then stop; later text is not taken any more.

        Args:
            seconds: After that the call under way is cancelled; the rest of the text has no
                summary. None: as long as it takes.

        Raises:
            Exception: EXAID itself or `on_summary`, not a model, failed in a decision that nobody
                waited for.
        """
        self._closed = True
        try:
            async with asyncio.timeout(seconds):
                await self.finalize()
        except TimeoutError:
            pass
        finally:
            await self.stop()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Stop at once: no further call is begun, and a call under way is cancelled."""
        self._closed = True
        self._stop_timer()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        for arrival in self._pending:
            arrival.settle(None)

    async def replay(self, recording: Recording) -> None:
        """Repeat a recorded run step by step, with recorded replies of the models."""
        segments = []
        for recorded in recording.flushes:
            self._seqs[recorded.flush.agent_id] = list(recorded.seqs)
            segments += self._segments([recorded.flush], recorded.at_ms)
        left = dict(enumerate(segments))
        for step in recording.steps:
            segments = [left.pop(index) for index in step.flushes]
            await self._consider(segments, step.unasked, is_cut=step.is_cut)
        self.buffer_agent.hold(list(left.values()))
        if recording.ends_with_summary:
            await self._summarise()

    def advance(self, t_ms: int) -> None:
        """Let the gate's timers fire at their times up to `t_ms`, in ms since 1970 UTC.

        For a replay in virtual time, which calls it before each event; needs a running event loop.
        """
        self._submit(self._timed_out(t_ms))

    # Results

    def latest_summary(self) -> AgentSummary | str:
        """Return the latest summary, or `NO_SUMMARY`."""
        return self.summaries[-1] if self.summaries else NO_SUMMARY

    def get_all_summaries(self) -> list[AgentSummary]:
        """Return all summaries, oldest first."""
        return list(self.summaries)

    def get_summaries_by_agent(self, agent_id: str) -> list[AgentSummary]:
        """Return the summaries of segments of exactly this agent."""
        return [summary for summary in self.summaries if agent_id in summary.agents]

    def get_agent_trace_count(self, agent_id: str) -> int:
        """Count the traces of an agent: calls of `received_trace`, and chunks of its stream."""
        return self._trace_counts[agent_id]

    def tail_loss(self) -> float:
        """Return the share of the text, in CTU, that no summary covers; 0 without text."""
        return size(self._left()) / self._text_ctu if self._text_ctu else 0.0

    def missed_alerts(self) -> int:
        """Count the segments with a critical alert that no summary covers."""
        return sum(segment.is_alert for segment in self._left())

    def _left(self) -> list[Segment]:
        """Return the segments without a summary."""
        return [*self.buffer_agent.held(), *(arrival.segment for arrival in self._pending)]

    # Making segments

    def _timed_out(self, t_ms: int) -> list[Segment]:
        """Return what the gate's timers let through up to `t_ms`, each at its time."""
        segments = []
        while (deadline := self._gate.deadline()) is not None and deadline <= t_ms / 1000:
            segments += self._segments(self._gate.check(deadline), round(1000 * deadline))
        return segments

    def _rest(self) -> list[Segment]:
        """Return the text that the gate still holds."""
        flushes = [self._gate.flush(agent_id) for agent_id in self._gate.agents()]
        return self._segments([flush for flush in flushes if flush], self._now_ms())

    def _seq(self) -> int:
        self._next_seq += 1
        return self._next_seq - 1

    def _gated(self, agent_id: str, text: str, seq: int, t_ms: int) -> list[Segment]:
        flushes = self._gate.add(agent_id, text, seq=seq, now=t_ms / 1000)
        if text:
            self._seqs[agent_id].append(seq)
        return self._segments(flushes, t_ms)

    def _segments(self, flushes: Sequence[Flush], t_ms: int) -> list[Segment]:
        segments = []
        for flush in flushes:
            seqs = self._seqs[flush.agent_id]
            own = tuple(seq for seq in seqs if seq <= flush.end_seq)
            del seqs[: len(own)]
            is_alert = self._alerts.sees(flush)
            self._trace_counts[flush.agent_id] += 1
            if not flush.words:
                continue
            self._text_ctu += ctu(flush.text)
            self.alerts += is_alert
            index, at_ms = self.log.flushed(flush, t_ms), round(1000 * flush.last_at)
            segments.append(Segment(flush.agent_id, flush.text, own, at_ms, index, is_alert))
        return segments

    def _watch_timers(self) -> None:
        deadline = self._gate.deadline()
        if deadline is None or self._timer is not None:
            return  # a later chunk never expires before the one that is watched
        pause = max(0.0, deadline - self._now_ms() / 1000)
        self._timer = asyncio.get_running_loop().call_later(pause, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._now_ms()
        self._submit(self._segments(self._gate.check(now / 1000), now))
        self._watch_timers()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Making decisions

    def _submit(
        self,
        segments: Sequence[Segment],
        *,
        is_parked: bool = False,
        waiter: _Waiter | None = None,
    ) -> None:
        if not segments:
            return
        self._pending += [_Arrival(segment, is_parked) for segment in segments]
        self._pending[-1].waiter = waiter
        is_alert = any(segment.is_alert for segment in segments)
        if waiter is not None or is_alert or (self._is_first_text() and self._has_enough_text()):
            self._hurry.set()
        self._work()

    async def _decision_on(
        self, segments: Sequence[Segment], *, is_parked: bool = False
    ) -> AgentSummary | None:
        if not segments:
            return None
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._submit(segments, is_parked=is_parked, waiter=waiter)
        return await waiter

    def _work(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._decide_on_pending())

    def _park(self) -> None:
        """Exempt waiting text from judgement, since it is summarised anyway.

        Not if a caller waits for the decision, for an alert, or where each text is judged alone.
        """
        pending = self._pending
        if self.config.coalesce and not any(a.waiter or a.segment.is_alert for a in pending):
            for arrival in pending:
                arrival.is_parked = True

    async def _idle(self) -> None:
        """Wait until nothing is left to decide on."""
        while self._pending or (self._worker is not None and not self._worker.done()):
            self._hurry.set()
            self._work()
            assert self._worker is not None
            if self._waits_for_room and all(arrival.is_parked for arrival in self._pending):
                self._waits_for_room = False
                self._worker.cancel()  # it has taken nothing yet, and nothing needs a call
            await asyncio.wait([self._worker])

    async def _decide_on_pending(self) -> None:
        while self._pending:
            await self._linger()
            is_parked = bool(self._pending) and self._pending[0].is_parked
            self._waits_for_room = not is_parked
            async with self._one_at_a_time, self._room_for_next(is_parked=is_parked):
                self._waits_for_room = False
                if self._pending:
                    await self._decide_on(self._next_batch())

    def _room_for_next(self, *, is_parked: bool) -> AbstractAsyncContextManager[None]:
        if is_parked:
            return nullcontext()
        is_judged = self.config.policy in JUDGED and not self._is_first_text()
        role = LLMRole.BUFFER_AGENT if is_judged else LLMRole.SUMMARIZER
        return self._room(role, self._urgency)

    def _urgency(self) -> tuple[float, ...]:
        """Return the urgency of the next call: alerts, first summaries, then the longest wait."""
        waiting = [arrival.segment for arrival in self._pending]
        since = waiting[:1] or self.buffer_agent.held()[-1:]
        waiting += self.buffer_agent.held()
        return (
            not any(segment.is_alert for segment in waiting),
            bool(self.summaries),
            since[0].at_ms if since else 0,
        )

    def _is_first_text(self) -> bool:
        config = self.config
        # An attempt that failed counts: the next text is judged, and not sent with all before it.
        return config.coalesce and config.first_after is not None and not self.log.summaries

    def _has_enough_text(self) -> bool:
        words = sum(len(arrival.segment.text.split()) for arrival in self._pending)
        return words >= self.config.gate.min_words

    def _unasked(self, batch: Sequence[_Arrival]) -> TriggerReason | None:
        """Return why text is summarised without being judged; None if it is judged."""
        config = self.config
        if not config.coalesce or any(a.waiter or a.segment.is_alert for a in batch):
            return None
        if self._is_first_text():
            return TriggerReason.FIRST_TEXT
        waited = self._now_ms() - batch[0].segment.at_ms
        if config.behind_after is not None and waited > 1000 * config.behind_after:
            return TriggerReason.BEHIND
        return None

    def _next_batch(self) -> list[_Arrival]:
        """Take the first arrivals, as many as are decided on together."""
        is_parked = self._pending[0].is_parked
        batch = list(takewhile(lambda each: each.is_parked is is_parked, self._pending))
        if not self.config.coalesce:
            del batch[1:]
        del self._pending[: len(batch)]
        return batch

    async def _decide_on(self, batch: list[_Arrival]) -> None:
        summary = None
        try:
            segments = [arrival.segment for arrival in batch]
            if batch[0].is_parked:
                self.buffer_agent.hold(segments)
            else:
                summary = await self._consider(segments, self._unasked(batch))
        except Exception as error:  # noqa: BLE001 - raised to the callers that wait, or by `close`
            waiters = [each.waiter for each in batch if each.waiter and not each.waiter.done()]
            for waiter in waiters:
                waiter.set_exception(error)
            if not waiters:
                self._failure = self._failure or error
        finally:
            for arrival in batch:
                arrival.settle(summary)

    async def _linger(self) -> None:
        if self.config.linger > 0 and self.config.coalesce:
            pause = max(self.config.linger, self._pace)
            if self._is_first_text() and self.config.first_after is not None:
                waited = (self._now_ms() - self._pending[0].segment.at_ms) / 1000
                pause = max(0.0, self.config.first_after - waited)
            try:
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            except TimeoutError:
                pass
        self._hurry.clear()

    async def _consider(
        self,
        segments: list[Segment],
        unasked: TriggerReason | None = None,
        *,
        is_cut: bool = False,
    ) -> AgentSummary | None:
        """Decide on segments, and summarise if that is due.

        Args:
            segments: The new segments.
            unasked: Why the buffer agent is not asked, under a policy that has one.
            is_cut: Whether to end before the summary, as the recorded run did.
        """
        if self.config.policy in JUDGED:
            if unasked is None:
                judgement = await self.buffer_agent.judge(segments, self._told())
            else:
                self.buffer_agent.hold(segments)
                judgement = Judgement(unasked)
            if judgement.asked is not None:
                seconds = judgement.asked.latency_ms / 1000
                self._pace = min(seconds, self.config.longest_linger)
            self.log.decided(judgement, segments)
            return await self._summarise() if judgement.triggers and not is_cut else None
        self.buffer_agent.hold(segments)
        return await self._summarise()

    async def _summarise(self) -> AgentSummary | None:
        segments = self.buffer_agent.take()
        if not segments:
            return None
        history, ids = self._history()
        latest = _line(self.summaries[-1]) if self.summaries else NO_SUMMARY
        try:
            written = await self.summarizer_agent.write(history, latest, segments)
            summary = None if written.summary is None else self._checked(written.summary, segments)
            event_id = self.log.summarised(written, summary, segments, ids)
        except BaseException:
            self.buffer_agent.put_back(segments)
            raise
        if summary is None:
            self.buffer_agent.put_back(segments)
            return None
        self.summaries.append(summary)
        self._event_ids.append(event_id)
        if self._on_summary is not None:
            self._on_summary(summary)
        return summary

    def _checked(self, summary: AgentSummary, segments: Sequence[Segment]) -> AgentSummary:
        """Return the summary with its provenance and the results of its checks."""
        answers: dict[str, str] = {}
        for segment in segments:
            if (answer := stated_answer(segment.text)) is not None:
                answers[segment.agent_id] = answer
        texts = [getattr(summary, name) for name in LIMITS]
        said = "\n".join(segment.text for segment in segments)
        terms = unsupported_terms(texts, said)
        if self.summaries:
            latest = self.summaries[-1]
            with_latest = unsupported_terms(texts, f"{said}\n{latest.semantics_text()}")
            # A term without support in the latest summary gains no support by being repeated.
            kept = {*with_latest, *latest.unsupported_terms}
            terms = tuple(term for term in terms if term in kept)
        return summary.model_copy(
            update={
                "agents": tuple(dict.fromkeys(segment.agent_id for segment in segments)),
                "source_seqs": seq_ranges(seq for segment in segments for seq in segment.seqs),
                "unsupported_terms": terms,
                "dissent_missing": dissent_missing(texts, answers),
            }
        )

    # The past in prompts

    def _history(self) -> tuple[list[str], list[str]]:
        """Return the summaries before the latest as text, and event ids including the latest."""
        budget = self.config.history_ctu
        kept: list[str] = []
        for summary in self.summaries[:-1][: -self.config.history_k - 1 : -1]:
            line = _line(summary)
            budget -= ctu(line)
            if budget < 0:
                break
            kept.append(line)
        return kept[::-1], self._event_ids[len(self._event_ids) - len(kept) - 1 :]

    def _told(self) -> list[str]:
        """Return the part of the summaries so far that the buffer agent needs to judge novelty."""
        history, _ = self._history()
        return [*history, _line(self.summaries[-1])] if self.summaries else []


def _gate(config: ExaidConfig) -> GateCore:
    match config.policy:
        case TriggerPolicy.TURN_END:
            return ChunkGate()
        case TriggerPolicy.NO_TOKENGATE:
            return ChunkGate(config.chunk_ctu)
        case _:
            return GateCore(config.gate)


def _line(summary: AgentSummary) -> str:
    """Return a summary on one line, without fields that say nothing."""
    fields = (getattr(summary, name) for name in LIMITS if name != "agent_contributions")
    return "- " + " | ".join(field for field in fields if field != PLACEHOLDER)
