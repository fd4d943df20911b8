"""The bus: one order for all observers, and no agent is disturbed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.trace.bus import TraceBus, Turn
from exaid_core.trace.events import EventKind, TraceEvent


def numbered_bus(on_failure: Callable[[Exception], None] = lambda error: None) -> TraceBus:
    """A bus whose clock ticks once for each event."""
    ticks = count(1000)
    return TraceBus(lambda: next(ticks), on_failure)


def test_turns_of_two_agents_at_once() -> None:
    bus, events = numbered_bus(), list[TraceEvent]()
    bus.subscribe(events.append)
    one = bus.start_turn("doctor-1")
    two = bus.start_turn("doctor-2")
    two.say("Cough.")
    one.say("Fe")
    one.say("ver.")
    one.end()
    two.end()
    assert (one.number, two.number) == (1, 2)
    assert events == [
        TraceEvent(0, 1000, 1, "doctor-1", EventKind.START, ""),
        TraceEvent(1, 1001, 2, "doctor-2", EventKind.START, ""),
        TraceEvent(2, 1002, 2, "doctor-2", EventKind.DELTA, "Cough."),
        TraceEvent(3, 1003, 1, "doctor-1", EventKind.DELTA, "Fe"),
        TraceEvent(4, 1004, 1, "doctor-1", EventKind.DELTA, "ver."),
        TraceEvent(5, 1005, 1, "doctor-1", EventKind.END, ""),
        TraceEvent(6, 1006, 2, "doctor-2", EventKind.END, ""),
    ]


@pytest.mark.sweep
@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3))))
def test_all_who_watch_see_the_same_in_the_same_order(said: list[tuple[int, str]]) -> None:
    bus = numbered_bus()
    seen: list[list[TraceEvent]] = [[], []]
    for events in seen:
        bus.subscribe(events.append)
    turns: dict[int, Turn] = {}
    for agent, text in said:
        if agent not in turns:
            turns[agent] = bus.start_turn(f"doctor-{agent}")
        turns[agent].say(text)
    assert seen[0] == seen[1]
    assert [event.seq for event in seen[0]] == list(range(len(seen[0])))
    starts = [event for event in seen[0] if event.kind is EventKind.START]
    assert [event.turn_id for event in starts] == list(range(1, len(starts) + 1))
    deltas = [event for event in seen[0] if event.kind is EventKind.DELTA]
    assert [event.text for event in deltas] == [text for _, text in said if text]
    for agent, turn in turns.items():
        spoken = "".join(event.text for event in deltas if event.turn_id == turn.number)
        assert spoken == "".join(text for name, text in said if name == agent)


def test_one_who_raises_is_told_about_and_not_called_again() -> None:
    failures: list[Exception] = []
    bus = numbered_bus(failures.append)
    first, called, last = list[TraceEvent](), list[TraceEvent](), list[TraceEvent]()
    error = RuntimeError("broken")

    def breaks(event: TraceEvent) -> None:
        called.append(event)
        if event.text == "Cough.":
            raise error

    for subscriber in (first.append, breaks, last.append):
        bus.subscribe(subscriber)
    turn = bus.start_turn("doctor-1")
    for text in ("Fever.", "Cough.", "Rash."):
        turn.say(text)
    turn.end()
    assert failures == [error]
    assert [event.seq for event in called] == [0, 1, 2]
    assert first == last
    assert [event.seq for event in last] == [0, 1, 2, 3, 4]


def test_all_may_raise_and_so_may_who_is_told_of_it() -> None:
    def breaks(event: TraceEvent) -> None:
        raise RuntimeError("broken")

    def breaks_as_well(error: Exception) -> None:
        raise RuntimeError("broken as well")

    bus = numbered_bus(breaks_as_well)
    for _ in range(3):
        bus.subscribe(breaks)
    bus.start_turn("doctor-1").end()


def test_one_who_speaks_while_it_listens_and_breaks() -> None:
    failures: list[Exception] = []
    bus = numbered_bus(failures.append)

    def echoes(event: TraceEvent) -> None:
        if event.agent_id != "echo":
            bus.start_turn("echo")
        raise RuntimeError(event.agent_id)

    bus.subscribe(echoes)
    bus.start_turn("doctor-1")
    assert [str(error) for error in failures] == ["echo", "doctor-1"]
    bus.start_turn("doctor-2")
    assert len(failures) == 2


def test_a_late_subscriber_sees_what_is_left() -> None:
    bus, events = numbered_bus(), list[TraceEvent]()
    turn = bus.start_turn("doctor-1")
    turn.say("Fever.")
    bus.subscribe(events.append)
    turn.end()
    assert [(event.seq, event.kind) for event in events] == [(2, EventKind.END)]


def test_text_is_wanted_when_one_wants_it() -> None:
    bus = TraceBus()
    assert not bus.wants_text
    bus.subscribe(lambda event: None)
    assert not bus.wants_text
    bus.subscribe(lambda event: None, wants_text=True)
    bus.subscribe(lambda event: None)
    assert bus.wants_text


def test_the_clock_of_the_system_is_in_milliseconds() -> None:
    bus, events = TraceBus(), list[TraceEvent]()
    bus.subscribe(events.append)
    bus.start_turn("doctor-1")
    assert 1_700_000_000_000 < events[0].t_ms < 9_999_999_999_999
