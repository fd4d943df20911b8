"""What the token gate lets through, when, and that it loses nothing."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.token_gate.token_gate import (
    LEGACY,
    RUNTIME,
    Flush,
    FlushReason,
    GateCore,
    GateProfile,
    TokenGate,
)
from exaid_core.tokenizer import count_words

SMALL = GateProfile(min_words=3, max_words=5, silence_timer=1.0, max_wait_timeout=4.0)
NEVER = GateProfile(3, 5, silence_timer=math.inf, max_wait_timeout=math.inf)


def words(number: int, first: int = 0) -> list[str]:
    """Tokens of one word each."""
    return [f" w{index}" for index in range(first, first + number)]


def fed(core: GateCore, tokens: list[str], *, now: float = 0.0, seq: int = 0) -> list[Flush]:
    """The flushes that an agent's tokens cause if they all come at once."""
    return [
        flush
        for number, token in enumerate(tokens, start=seq)
        for flush in core.add("a", token, seq=number, now=now)
    ]


# Profiles


def test_the_two_profiles_of_the_seed() -> None:
    assert GateProfile(60, 100, 1.0, 4.0) == RUNTIME
    assert GateProfile(35, 90, 15.0, 40.0) == LEGACY


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"min_words": 0}, "min_words=0 and max_words=100 do not"),
        ({"min_words": 101}, "min_words=101 and max_words=100 do not"),
        ({"max_words": 59}, "min_words=60 and max_words=59 do not"),
        ({"silence_timer": 0.0}, "silence_timer=0.0 is not a time above 0"),
        ({"silence_timer": math.nan}, "silence_timer=nan is not a time above 0"),
        ({"max_wait_timeout": -math.inf}, "max_wait_timeout=-inf is not a time above 0"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused(
    settings: dict[str, float], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        GateProfile(**settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=complaint):
        TokenGate(**settings)  # type: ignore[arg-type]


# Words


def test_a_chunk_ends_at_max_words() -> None:
    core = GateCore()
    assert fed(core, words(99)) == []
    [flush] = core.add("a", " last", seq=99, now=0.5)
    assert flush == Flush(
        agent_id="a",
        text="".join(words(99)) + " last",
        reason=FlushReason.MAX_WORDS,
        start_seq=0,
        end_seq=99,
        words=100,
        first_at=0.0,
        last_at=0.5,
    )
    assert core.agents() == ()
    assert core.pending("a") == ""


def test_a_token_is_never_cut() -> None:
    core = GateCore(SMALL)
    [flush] = fed(core, [" w", " w", " w", " w", " one two three. four five"])
    assert (flush.words, flush.reason) == (9, FlushReason.MAX_WORDS)


@pytest.mark.parametrize("end", [".", "?", "!", "\n", ". \t ", ".\r\n", "\n\n  ", "3."])
def test_a_chunk_ends_at_a_boundary_cue_once_it_has_min_words(end: str) -> None:
    tokens = [" w0.", " w1.", f" w2{end}"]
    [flush] = fed(GateCore(SMALL), tokens)
    assert (flush.text, flush.reason) == ("".join(tokens), FlushReason.BOUNDARY_CUE)
    assert flush.words == 3


@pytest.mark.parametrize("end", ["", ",", '."', ".)", ".\r", ".\u00a0", ". x"])
def test_nothing_else_is_a_boundary_cue(end: str) -> None:
    assert fed(GateCore(SMALL), [" w0", " w1", f" w2{end}"]) == []


def test_a_cue_may_come_as_a_token_of_its_own() -> None:
    core = GateCore(SMALL)
    assert fed(core, words(4)) == []
    [flush] = core.add("a", "\n", seq=4, now=0.0)
    assert (flush.words, flush.reason) == (4, FlushReason.BOUNDARY_CUE)


def test_a_word_counts_once_however_it_is_split() -> None:
    core = GateCore(GateProfile(min_words=3, max_words=3))
    assert fed(core, ["hyper", "tension", " \t", "", "and", "\u2003", "\n"]) == []
    [flush] = core.add("a", "s", seq=7, now=0.0)
    assert flush.text == "hypertension \tand\u2003\ns"
    assert flush.words == 3


# Timers


def test_the_silence_timer_counts_from_the_last_token() -> None:
    core = GateCore(SMALL)
    core.add("a", "first", seq=0, now=10.0)
    core.add("a", " last", seq=1, now=10.5)
    assert core.deadline() == 11.5
    assert core.check(11.25) == []
    [flush] = core.check(11.5)
    assert (flush.text, flush.reason) == ("first last", FlushReason.SILENCE_TIMER)
    assert (flush.first_at, flush.last_at) == (10.0, 10.5)
    assert core.deadline() is None


def test_the_max_wait_timeout_counts_from_the_first_token() -> None:
    core = GateCore(SMALL)
    for seq in range(5):
        assert core.add("a", "m", seq=seq, now=seq * 0.75) == []
    assert core.add("a", "m", seq=5, now=3.75) == []
    assert core.deadline() == 4.0
    [flush] = core.check(4.0)
    assert (flush.text, flush.reason) == ("mmmmmm", FlushReason.MAX_WAIT_TIMEOUT)


@pytest.mark.parametrize(
    ("silence_timer", "max_wait_timeout", "reason"),
    [
        (1.0, 2.0, FlushReason.SILENCE_TIMER),
        (2.0, 2.0, FlushReason.SILENCE_TIMER),
        (2.0, 1.0, FlushReason.MAX_WAIT_TIMEOUT),
        (math.inf, 1.0, FlushReason.MAX_WAIT_TIMEOUT),
    ],
)
def test_of_two_expired_timers_the_first_is_the_reason(
    silence_timer: float, max_wait_timeout: float, reason: FlushReason
) -> None:
    core = GateCore(GateProfile(3, 5, silence_timer, max_wait_timeout))
    core.add("a", "x", seq=0, now=0.0)
    assert [flush.reason for flush in core.check(99.0)] == [reason]


@pytest.mark.parametrize("emptied_by", ["words", "timer", "flush"])
def test_both_timers_start_with_the_first_token_after_every_flush(emptied_by: str) -> None:
    core = GateCore(SMALL)
    core.add("a", "x", seq=0, now=0.0)
    match emptied_by:
        case "words":
            core.add("a", " one two three.", seq=1, now=0.5)
        case "timer":
            core.check(1.0)
        case "flush":
            core.flush("a")
    assert core.deadline() is None
    core.add("a", "y", seq=2, now=3.75)
    assert core.deadline() == 4.75
    for seq in range(3, 8):
        core.add("a", "y", seq=seq, now=4.0 + (seq - 3) * 0.75)
    assert core.deadline() == 7.75, "max_wait_timeout after the first token"
    assert core.check(7.5) == []


def test_a_late_token_opens_a_new_chunk_and_can_fill_it() -> None:
    core = GateCore(SMALL)
    core.add("a", "Afebrile.", seq=0, now=0.0)
    waited, full = core.add("a", "Give fluids now.", seq=4, now=1.0)
    assert (waited.text, waited.reason) == ("Afebrile.", FlushReason.SILENCE_TIMER)
    assert (full.text, full.reason) == ("Give fluids now.", FlushReason.BOUNDARY_CUE)
    assert (waited.start_seq, waited.end_seq, full.start_seq, full.end_seq) == (0, 0, 4, 4)


def test_a_token_fires_no_timer_of_another_agent() -> None:
    core = GateCore(SMALL)
    core.add("a", "x", seq=0, now=0.0)
    assert core.add("b", "y", seq=1, now=9.0) == []
    assert core.agents() == ("a", "b")
    assert core.check_agent("b", 9.0) is None
    assert core.check_agent("nobody", 9.0) is None
    assert core.check_agent("a", 9.0) is not None


def test_agents_are_let_through_in_the_order_in_which_their_timers_expired() -> None:
    core = GateCore(SMALL)
    for seq, (agent_id, now) in enumerate([("c", 0.0), ("b", 0.0), ("a", 0.25)]):
        core.add(agent_id, "x", seq=seq, now=now)
    core.flush("c")
    core.add("b", "x", seq=3, now=0.5)
    core.add("c", "x", seq=4, now=0.5)
    assert core.deadline() == 1.25
    assert core.agents() == ("c", "b", "a")
    assert [flush.agent_id for flush in core.check(1.5)] == ["a", "c", "b"]


def test_text_of_white_space_is_let_through_by_a_timer_too() -> None:
    core = GateCore(SMALL)
    core.add("a", " \n", seq=0, now=0.0)
    [flush] = core.check(1.0)
    assert (flush.text, flush.words) == (" \n", 0)


def test_an_empty_token_touches_no_timer() -> None:
    core = GateCore(SMALL)
    core.add("a", "", seq=0, now=0.0)
    assert core.deadline() is None
    assert core.agents() == ()
    core.add("a", "x", seq=1, now=0.5)
    core.add("a", "", seq=2, now=1.0)
    assert core.deadline() == 1.5
    [flush] = core.add("a", "", seq=3, now=1.5)
    assert (flush.start_seq, flush.end_seq, flush.last_at) == (1, 1, 0.5)


def test_timers_that_are_off_never_expire() -> None:
    core = GateCore(NEVER)
    core.add("a", "x", seq=0, now=0.0)
    assert core.deadline() is None
    assert core.check(1e300) == []
    assert core.pending("a") == "x"


# Flushes on request, sequence numbers


def test_what_is_left_is_let_through_on_request() -> None:
    core = GateCore(SMALL)
    assert core.flush("a") is None
    fed(core, ["tail", " end"])
    tail = core.flush("a")
    assert tail is not None
    assert (tail.text, tail.reason) == ("tail end", FlushReason.END_OF_TRACE)
    fed(core, ["turn"], seq=2)
    turn = core.flush("a", FlushReason.TURN_END)
    assert turn is not None
    assert (turn.reason, turn.start_seq) == (FlushReason.TURN_END, 2)
    assert core.flush("a") is None


@pytest.mark.parametrize("seq", [6, 7])
def test_a_sequence_number_that_goes_back_is_refused(seq: int) -> None:
    core = GateCore(SMALL)
    fed(core, ["x", "x"], seq=6)
    with pytest.raises(ValueError, match=f"'a' sent token {seq} after token 7"):
        core.add("a", "y", seq=seq, now=9.0)
    assert core.pending("a") == "xx", "neither was the token taken nor a timer fired"
    core.add("b", "z", seq=seq, now=9.0)
    core.flush("a")
    with pytest.raises(ValueError, match="after token 7"):
        core.add("a", "y", seq=seq, now=9.0)


# Any text, in any tokens

AGENTS = ("a", "b", "c")
GAPS = (0.0, 0.0, 0.25, 0.5, 1.0, 3.0)
TEXT = st.text(st.sampled_from("xy3é .?!\n\t\r\u2003\x1c,"), max_size=8) | st.text(max_size=5)
# Latin, Greek and Cyrillic: words between spaces, sentences that end with `.?!`.
EUROPEAN = st.text(st.sampled_from("xy3é .?!\n\t\r\u2003\x1c,"), max_size=8) | st.text(
    st.characters(max_codepoint=0x52F), max_size=5
)


def steps(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str, str, float]]]:
    """What is done to a gate, with which text."""
    step = st.tuples(
        st.sampled_from(("add", "add", "add", "add", "check", "flush")),
        st.sampled_from(AGENTS),
        text,
        st.sampled_from(GAPS),
    )
    return st.lists(step, min_size=10, max_size=40)


STEPS = steps(TEXT)
PROFILES = st.builds(
    lambda least, more, silence, wait: GateProfile(least, least + more, silence, wait),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from((0.5, 1.0, math.inf)),
    st.sampled_from((0.75, 2.0, math.inf)),
)


@dataclass
class Played:
    """The tokens of a gate and its flushes."""

    profile: GateProfile
    tokens: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    """Agent, text and time of each token by its sequence number."""
    flushes: dict[str, list[Flush]] = field(default_factory=lambda: defaultdict(list))
    flushed_at: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def take(self, flushes: list[Flush], now: float) -> None:
        for flush in flushes:
            self.flushes[flush.agent_id].append(flush)
            self.flushed_at[flush.agent_id].append(now)

    def tokens_of(self, flush: Flush) -> list[tuple[str, float]]:
        """Text and time of the tokens that a flush says it holds."""
        return [
            (text, at)
            for seq, (agent_id, text, at) in self.tokens.items()
            if agent_id == flush.agent_id and flush.start_seq <= seq <= flush.end_seq and text
        ]

    def every_flush(self) -> list[Flush]:
        return [flush for flushes in self.flushes.values() for flush in flushes]


def play(profile: GateProfile, steps: list[tuple[str, str, str, float]]) -> Played:
    core, played, now = GateCore(profile), Played(profile), 0.0
    for seq, (step, agent_id, text, gap) in enumerate(steps):
        now += gap
        match step:
            case "add":
                played.tokens[seq] = (agent_id, text, now)
                played.take(core.add(agent_id, text, seq=seq, now=now), now)
            case "check":
                played.take(core.check(now), now)
                deadline = core.deadline()
                assert deadline is None or deadline > now
            case _:
                flush = core.flush(agent_id)
                played.take([flush] if flush else [], now)
        for agent in AGENTS:
            said = "".join(text for who, text, _ in played.tokens.values() if who == agent)
            gone = "".join(flush.text for flush in played.flushes[agent])
            assert gone + core.pending(agent) == said
            assert bool(core.pending(agent)) == (agent in core.agents())
    for agent in core.agents():
        played.take([flush for flush in [core.flush(agent)] if flush], now)
    return played


@pytest.mark.sweep
@given(PROFILES, STEPS)
def test_nothing_is_lost_doubled_or_reordered(
    profile: GateProfile, steps: list[tuple[str, str, str, float]]
) -> None:
    played = play(profile, steps)
    for agent, flushes in played.flushes.items():
        said = [text for who, text, _ in played.tokens.values() if who == agent]
        assert "".join(flush.text for flush in flushes) == "".join(said)
        assert all(one.end_seq < two.start_seq for one, two in pairwise(flushes))
    for flush in played.every_flush():
        tokens = played.tokens_of(flush)
        assert flush.text == "".join(text for text, _ in tokens) != ""
        assert flush.words == count_words(flush.text)
        assert (flush.first_at, flush.last_at) == (tokens[0][1], tokens[-1][1])


@pytest.mark.sweep
@given(PROFILES, steps(EUROPEAN))
def test_words_let_a_chunk_through_at_once_and_never_before(
    profile: GateProfile, steps: list[tuple[str, str, str, float]]
) -> None:
    def reason(text: str) -> FlushReason | None:
        if len(text.split()) >= profile.max_words:
            return FlushReason.MAX_WORDS
        if len(text.split()) >= profile.min_words and text.rstrip(" \t")[-1:] in set(".?!\n"):
            return FlushReason.BOUNDARY_CUE
        return None

    played = play(profile, steps)
    for flush in played.every_flush():
        tokens = [text for text, _ in played.tokens_of(flush)]
        parts = ["".join(tokens[:end]) for end in range(1, len(tokens))]
        assert [reason(part) for part in parts] == [None] * len(parts)
        by_words = flush.reason in (FlushReason.MAX_WORDS, FlushReason.BOUNDARY_CUE)
        assert reason(flush.text) == (flush.reason if by_words else None)


@pytest.mark.sweep
@given(PROFILES, STEPS)
def test_no_chunk_outlives_its_timers(
    profile: GateProfile, steps: list[tuple[str, str, str, float]]
) -> None:
    played = play(profile, steps)
    for agent, flushes in played.flushes.items():
        for flush, now in zip(flushes, played.flushed_at[agent], strict=True):
            times = [at for _, at in played.tokens_of(flush)]
            gave_up = flush.first_at + profile.max_wait_timeout
            assert flush.last_at == flush.first_at or flush.last_at < gave_up
            assert all(two < one + profile.silence_timer for one, two in pairwise(times))
            silent = flush.last_at + profile.silence_timer
            if flush.reason is FlushReason.SILENCE_TIMER:
                assert silent <= min(now, gave_up)
            elif flush.reason is FlushReason.MAX_WAIT_TIMEOUT:
                assert gave_up <= now
                assert gave_up < silent


# The asynchronous face


class VirtualTime:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps = 0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert 0 < seconds < math.inf
        self.sleeps += 1
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, woken))
        await woken

    async def elapse(self, seconds: float) -> None:
        """Wake the tasks that sleep no longer than that, at their times."""
        end = self.now + seconds
        await self._settle()
        while due := [sleeper for sleeper in self._sleepers if sleeper[0] <= end]:
            self.now, woken = min(due, key=lambda sleeper: sleeper[0])
            self._sleepers.remove((self.now, woken))
            if not woken.done():
                woken.set_result(None)
            await self._settle()
        self.now = end

    async def _settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def watching(
    profile: GateProfile, time: VirtualTime, on_flush: Callable[[Flush], None]
) -> TokenGate:
    return TokenGate(
        profile.min_words,
        profile.max_words,
        profile.silence_timer,
        profile.max_wait_timeout,
        clock=time,
        sleep=time.sleep,
        on_flush=on_flush,
    )


class Watched:
    """A gate in virtual time and what its timers let through."""

    def __init__(self, profile: GateProfile = SMALL) -> None:
        self.time = VirtualTime()
        self.seen: list[Flush] = []
        self.gate = watching(profile, self.time, self.seen.append)

    def texts(self) -> list[str]:
        return [flush.text for flush in self.seen]


async def test_the_stream_of_the_seed() -> None:
    time = VirtualTime()
    gate = TokenGate(clock=time)
    text = "Patient| presents| with| chest| pain|.| |History| of| hypertension|."
    for token in text.split("|"):
        assert await gate.add_token("DoctorAgent", token) is None
        time.now += 0.0625
    assert await gate.check_timers("DoctorAgent") is None
    assert await gate.flush("DoctorAgent") == text.replace("|", "")
    assert await gate.flush("DoctorAgent") is None


async def test_without_a_callback_every_method_returns_the_text() -> None:
    time = VirtualTime()
    gate = TokenGate(3, 5, clock=time)
    await gate.add_token("a", "one two")
    time.now += 1
    assert await gate.add_token("a", " three four five.") == "one two three four five."
    await gate.add_token("a", "six")
    assert await gate.check_timers("a") is None
    time.now += 1
    assert await gate.check_timers("b") is None
    assert await gate.check_timers("a") == "six"
    assert await gate.check_timers("a") is None


async def test_with_a_callback_what_a_timer_lets_through_goes_there_only() -> None:
    watched = Watched()
    await watched.gate.add_token("a", "one two")
    watched.time.now += 1
    assert await watched.gate.add_token("a", " three four five.") == " three four five."
    assert watched.texts() == ["one two"]
    await watched.gate.add_token("a", "six")
    watched.time.now += 1
    assert await watched.gate.check_timers("a") is None
    assert watched.texts() == ["one two", "six"]
    await watched.gate.add_token("a", "seven")
    assert await watched.gate.flush("a") == "seven"
    assert [(flush.start_seq, flush.end_seq) for flush in watched.seen] == [(0, 0), (2, 2)]


async def test_timers_fire_without_being_polled() -> None:
    watched = Watched()
    async with watched.gate as gate:
        await watched.time.elapse(50)
        await gate.add_token("a", "x")
        await watched.time.elapse(0.5)
        await gate.add_token("b", "y")
        await gate.add_token("a", "x")
        await watched.time.elapse(0.75)
        assert watched.seen == []
        await watched.time.elapse(0.25)
        assert watched.texts() == ["xx", "y"]
        await gate.add_token("b", "again")
        await watched.time.elapse(1)
    assert [(flush.agent_id, flush.start_seq) for flush in watched.seen[1:]] == [("b", 0), ("b", 1)]


async def test_the_watch_sleeps_while_nothing_is_held() -> None:
    watched = Watched()
    async with watched.gate as gate:
        for _ in range(10):
            await gate.add_token("a", "one two three.")
            await watched.time.elapse(10)
        assert watched.time.sleeps == 0
        await gate.add_token("a", "x")
        await watched.time.elapse(100)
        assert watched.time.sleeps == 1


async def test_a_watch_over_timers_that_are_off_does_nothing() -> None:
    watched = Watched(NEVER)
    async with watched.gate as gate:
        await gate.add_token("a", "x")
        await watched.time.elapse(1e9)
    assert watched.seen == []
    assert watched.time.sleeps == 0


async def test_leaving_the_block_keeps_the_text_and_stops_the_watch() -> None:
    watched = Watched()
    async with watched.gate as gate:
        await gate.add_token("a", "tail")
        await watched.time.elapse(0.5)
    await watched.time.elapse(10)
    assert watched.seen == []
    assert await gate.flush("a") == "tail"
    async with gate:
        await gate.add_token("a", "more")
        await watched.time.elapse(1)
    assert watched.texts() == ["more"]


async def test_a_watch_needs_somebody_to_tell() -> None:
    with pytest.raises(ValueError, match="needs on_flush"):
        async with TokenGate():
            pass


@pytest.mark.parametrize("fails", [False, True])
async def test_an_error_of_the_callback_is_raised_on_leaving_unless_the_block_failed(
    fails: bool,
) -> None:
    def broken(flush: Flush) -> None:
        raise RuntimeError(f"cannot show {flush.text}")

    async def stream(time: VirtualTime) -> None:
        async with watching(SMALL, time, broken) as gate:
            await gate.add_token("a", "x")
            await time.elapse(1)
            assert await gate.add_token("a", "one two three.") == "one two three."
            if fails:
                raise KeyError("mine")

    with pytest.raises(KeyError if fails else RuntimeError, match="mine" if fails else "show x"):
        await stream(VirtualTime())


@pytest.mark.sweep
@given(
    PROFILES,
    st.lists(
        st.tuples(st.sampled_from(AGENTS), TEXT, st.sampled_from(GAPS)), min_size=8, max_size=25
    ),
)
async def test_every_text_is_handed_out_once_and_on_time(
    profile: GateProfile, stream: list[tuple[str, str, float]]
) -> None:
    got = defaultdict[str, list[str]](list)

    def show(flush: Flush) -> None:
        silent = flush.last_at + profile.silence_timer
        gave_up = flush.first_at + profile.max_wait_timeout
        assert time.now == min(silent, gave_up)
        got[flush.agent_id].append(flush.text)

    time = VirtualTime()
    async with watching(profile, time, show) as gate:
        for agent_id, text, gap in stream:
            await time.elapse(gap)
            got[agent_id].append(await gate.add_token(agent_id, text) or "")
        await time.elapse(10)
        for agent_id in AGENTS:
            tail = await gate.flush(agent_id)
            assert tail is None or profile.silence_timer == profile.max_wait_timeout == math.inf
            got[agent_id].append(tail or "")
    for agent_id in AGENTS:
        assert "".join(got[agent_id]) == "".join(t for who, t, _ in stream if who == agent_id)
