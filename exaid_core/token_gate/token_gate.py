"""Decides when an agent has streamed enough text to be judged.

The gate ignores meaning and counts words (see `WordCount`). Its name refers to the tokens that a
model streams, not to a tokenizer.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from types import TracebackType
from typing import Self

from exaid_core.tokenizer import WordCount, ends_sentence


class FlushReason(StrEnum):
    """Why a chunk was released."""

    MAX_WORDS = "max_words"
    """The chunk has reached the maximum number of words."""
    BOUNDARY_CUE = "boundary_cue"
    """The chunk has enough words and ends like a sentence or a line."""
    SILENCE_TIMER = "silence_timer"
    """The agent has been silent for a while."""
    MAX_WAIT_TIMEOUT = "max_wait_timeout"
    """The first token of the chunk has waited for the maximum time."""
    END_OF_TRACE = "end_of_trace"
    """The trace has ended."""
    TURN_END = "turn_end"
    """The agent's turn has ended."""


_TIMERS = frozenset({FlushReason.SILENCE_TIMER, FlushReason.MAX_WAIT_TIMEOUT})


@dataclass(frozen=True, slots=True)
class GateProfile:
    """Thresholds for releasing a chunk.

    Raises:
        ValueError: `1 <= min_words <= max_words` does not hold, or a time is not above 0.
    """

    min_words: int = 60
    """Minimum number of words for a chunk to end at a boundary cue: see `ends_sentence`."""
    max_words: int = 100
    """Number of words at which a chunk ends in any case."""
    silence_timer: float = 1.0
    """Seconds after the last token at which a chunk ends; `math.inf` for never."""
    max_wait_timeout: float = 4.0
    """Seconds after the first token at which a chunk ends; `math.inf` for never."""

    def __post_init__(self) -> None:
        if not 1 <= self.min_words <= self.max_words:
            raise ValueError(
                f"token gate: min_words={self.min_words} and max_words={self.max_words}"
                " do not satisfy 1 <= min_words <= max_words"
            )
        for name in ("silence_timer", "max_wait_timeout"):
            seconds = getattr(self, name)
            if not seconds > 0:  # refuses NaN as well
                raise ValueError(f"token gate: {name}={seconds} is not a time above 0 seconds")


RUNTIME = GateProfile()
"""Profile for live runs."""
LEGACY = GateProfile(min_words=35, max_words=90, silence_timer=15.0, max_wait_timeout=40.0)
"""Profile for evaluations."""


@dataclass(frozen=True, slots=True)
class Flush:
    """A released chunk of one agent's text."""

    agent_id: str
    text: str
    """Concatenated tokens of the chunk."""
    reason: FlushReason
    start_seq: int
    """Sequence number of the first token in the chunk."""
    end_seq: int
    """Sequence number of the last token in the chunk."""
    words: int
    """Number of words in `text`; 0 if it is only white space."""
    first_at: float
    """Arrival time of the first token, in seconds on the caller's clock."""
    last_at: float
    """Arrival time of the last token, in seconds on the caller's clock."""


@dataclass(slots=True)
class _Chunk:
    """An agent's text since its last flush; stored only with at least one token."""

    start_seq: int
    end_seq: int
    first_at: float
    last_at: float
    tokens: list[str] = field(default_factory=list)
    count: WordCount = field(default_factory=WordCount)


class GateCore:
    """Collects the text of several agents and releases it in chunks.

    It has no clock and does nothing on its own: the caller passes the time, in monotonic seconds
    from any origin, and a timer fires at the caller's next call. A replay in virtual time therefore
    calls `advance` with the time of its next token.

    Args:
        profile: Thresholds for releasing a chunk.
    """

    def __init__(self, profile: GateProfile = RUNTIME) -> None:
        self._profile = profile
        self._last_seq: dict[str, int] = {}  # of all agents so far, in order of their first tokens
        self._chunks: dict[str, _Chunk] = {}  # of the agents with held text

    def add(self, agent_id: str, token: str, *, seq: int, now: float) -> list[Flush]:
        """Add one token and return the chunks that this releases.

        Text whose timer has expired by `now` is released first, so a late token starts a new chunk.
        Then the chunk is released if the token brings it to `max_words`, or if it has `min_words`
        and ends at a boundary cue, ignoring spaces and tabs after the cue. Both are judged without
        the text to come: "3." is a cue even if the next token is "5 mg", and "hyper" is a word even
        if "tension" follows, so a flush may split either. An empty token adds nothing, belongs to
        no flush and leaves the timers unchanged.

        Args:
            agent_id: Agent that sent the token.
            token: Any piece of text.
            seq: Sequence number of the token, higher than that of the agent's previous token.
            now: Arrival time of the token in seconds.

        Returns:
            The released chunks: none, one, or two in the order of their text.

        Raises:
            ValueError: `seq` is not higher than the agent's last one; the token was not added.
        """
        last_seq = self._last_seq.get(agent_id)
        if last_seq is not None and seq <= last_seq:
            raise ValueError(f"token gate: {agent_id!r} sent token {seq} after token {last_seq}")
        self._last_seq[agent_id] = seq
        expired = self.check_agent(agent_id, now)
        full = self._append(agent_id, token, seq, now) if token else None
        return list(filter(None, (expired, full)))

    def check(self, now: float) -> list[Flush]:
        """Release all text whose timer has expired.

        Args:
            now: Current time in seconds.

        Returns:
            The chunks in the order in which their timers expired; ties are in the order of the
            agents' first tokens.
        """
        by_deadline = sorted(self.agents(), key=lambda agent_id: self._expiry(agent_id)[0])
        flushes = (self.check_agent(agent_id, now) for agent_id in by_deadline)
        return [flush for flush in flushes if flush is not None]

    def advance(self, now: float) -> Iterator[tuple[Flush, float]]:
        """Let virtual time pass: like `check`, but each timer fires at its own time.

        Args:
            now: Current virtual time in seconds.

        Yields:
            Each chunk with the expiry time of its timer, in order.
        """
        while (deadline := self.deadline()) is not None and deadline <= now:
            for flush in self.check(deadline):
                yield flush, deadline

    def check_agent(self, agent_id: str, now: float) -> Flush | None:
        """Release the text of one agent if its timer has expired.

        Args:
            agent_id: Agent to check.
            now: Current time in seconds.

        Returns:
            The chunk, with the timer that expired first as its reason (the silence timer if both
            expired at the same moment); `None` if there is nothing to release.
        """
        if agent_id not in self._chunks:
            return None
        deadline, reason = self._expiry(agent_id)
        return self.flush(agent_id, reason) if deadline <= now else None

    def flush(self, agent_id: str, reason: FlushReason = FlushReason.END_OF_TRACE) -> Flush | None:
        """Release the text that is held for an agent.

        Args:
            agent_id: Agent to flush.
            reason: Reason that the flush is given.

        Returns:
            The chunk; `None` if no text is held for the agent.
        """
        chunk = self._chunks.pop(agent_id, None)
        if chunk is None:
            return None
        return Flush(
            agent_id=agent_id,
            text="".join(chunk.tokens),
            reason=reason,
            start_seq=chunk.start_seq,
            end_seq=chunk.end_seq,
            words=chunk.count.total,
            first_at=chunk.first_at,
            last_at=chunk.last_at,
        )

    def agents(self) -> tuple[str, ...]:
        """Return the agents with held text, in the order of their first tokens."""
        return tuple(agent_id for agent_id in self._last_seq if agent_id in self._chunks)

    def pending(self, agent_id: str) -> str:
        """Return the text that is held for an agent, possibly empty."""
        chunk = self._chunks.get(agent_id)
        return "".join(chunk.tokens) if chunk else ""

    def deadline(self) -> float | None:
        """Return the time in seconds at which the next timer expires if no token arrives.

        A token can only postpone this time, unless no text was held: since all agents have the same
        timers, no later chunk expires before an earlier one would have.

        Returns:
            The time, possibly in the past; `None` if no timer is running.
        """
        earliest = min((self._expiry(agent_id)[0] for agent_id in self._chunks), default=math.inf)
        return None if earliest == math.inf else earliest

    def _append(self, agent_id: str, token: str, seq: int, now: float) -> Flush | None:
        chunk = self._chunks.get(agent_id)
        if chunk is None:
            chunk = self._chunks[agent_id] = _Chunk(seq, seq, first_at=now, last_at=now)
        chunk.count.add(token)
        chunk.tokens.append(token)
        chunk.end_seq, chunk.last_at = seq, now
        words = chunk.count.total
        if words >= self._profile.max_words:
            return self.flush(agent_id, FlushReason.MAX_WORDS)
        if words < self._profile.min_words:
            return None
        # Two tokens are enough: if both are blank, the text before them was already judged.
        end = "".join(chunk.tokens[-2:]) if token.isspace() else token
        return self.flush(agent_id, FlushReason.BOUNDARY_CUE) if ends_sentence(end) else None

    def _expiry(self, agent_id: str) -> tuple[float, FlushReason]:
        chunk = self._chunks[agent_id]
        silence = chunk.last_at + self._profile.silence_timer
        max_wait = chunk.first_at + self._profile.max_wait_timeout
        if max_wait < silence:
            return max_wait, FlushReason.MAX_WAIT_TIMEOUT
        return silence, FlushReason.SILENCE_TIMER


class TokenGate:
    """A gate for streaming code that has a clock and numbers the tokens itself.

    Without `on_flush`, every method returns the text that it releases, and timers fire when a
    method is called. With `on_flush`, every chunk whose timer expired goes there instead of being
    returned, whichever call found it. Used with `async with`, the gate also watches the timers in
    the background:

        async with TokenGate(on_flush=show) as gate:
            text = await gate.add_token("HematologyAgent", token)

    At the end of the block, the watch stops and held text is kept: `flush` it. An error of
    `on_flush` in the background ends the watch and is raised at the end of the block, unless the
    block already ends with another error.

    Args:
        min_words: Minimum number of words for a chunk to end at a boundary cue.
        max_words: Number of words at which a chunk ends in any case.
        silence_timer: Seconds after the last token at which a chunk ends.
        max_wait_timeout: Seconds after the first token at which a chunk ends.
        clock: Monotonic clock in seconds.
        sleep: Function that waits for a number of seconds of `clock`.
        on_flush: Callback for each chunk whose timer expired. Sequence numbers count the calls of
            `add_token` for the agent, from 0.

    Raises:
        ValueError: `GateProfile` rejects the thresholds, or `async with` is used without
            `on_flush`.
    """

    def __init__(
        self,
        min_words: int = 60,
        max_words: int = 100,
        silence_timer: float = 1,
        max_wait_timeout: float = 4,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_flush: Callable[[Flush], None] | None = None,
    ) -> None:
        self._core = GateCore(GateProfile(min_words, max_words, silence_timer, max_wait_timeout))
        self._clock = clock
        self._sleep = sleep
        self._on_flush = on_flush
        self._numbers: defaultdict[str, count[int]] = defaultdict(count)
        self._token_came = asyncio.Event()
        self._ticker: asyncio.Task[None] | None = None

    async def add_token(self, agent_id: str, token: str) -> str | None:
        """Add one token and return the text that this releases.

        Returns:
            The released text, with two chunks joined; `None` if no text was released.
        """
        seq = next(self._numbers[agent_id])
        flushes = self._core.add(agent_id, token, seq=seq, now=self._clock())
        self._token_came.set()
        return self._hand_out(flushes)

    async def flush(self, agent_id: str) -> str | None:
        """Release the text that is held for an agent.

        Returns:
            The text; `None` if no text is held for the agent.
        """
        flush = self._core.flush(agent_id)
        return flush.text if flush else None

    async def check_timers(self, agent_id: str) -> str | None:
        """Release the text of an agent if its timer has expired.

        Returns:
            The text; `None` if no text was released or it went to `on_flush`.
        """
        flush = self._core.check_agent(agent_id, self._clock())
        return self._hand_out([flush]) if flush else None

    async def __aenter__(self) -> Self:
        if self._on_flush is None:
            raise ValueError("token gate: watching the timers needs on_flush to hand the text to")
        self._ticker = asyncio.create_task(self._tick())
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ticker, self._ticker = self._ticker, None
        assert ticker is not None
        ticker.cancel()
        await asyncio.wait([ticker])
        if exc is None and not ticker.cancelled():
            ticker.result()

    async def _tick(self) -> None:
        while True:
            deadline = self._core.deadline()
            if deadline is None:
                self._token_came.clear()
                await self._token_came.wait()
            elif (seconds := deadline - self._clock()) > 0:
                # No token can make the next deadline earlier (see `deadline`), so sleeping is safe.
                await self._sleep(seconds)
            else:
                self._hand_out(self._core.check(self._clock()))

    def _hand_out(self, flushes: Iterable[Flush]) -> str | None:
        returned = []
        for flush in flushes:
            if self._on_flush is not None and flush.reason in _TIMERS:
                self._on_flush(flush)
            else:
                returned.append(flush.text)
        return "".join(returned) or None
