"""The time of day goes on evenly, whatever is done to the clock of the system."""

from __future__ import annotations

import time

import pytest

from mdagents_llm.clock import Clock, EvenTime, epoch_ms, ms_of, timestamp_of

SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND


class Clocks:
    """A wall clock that can be set, and a monotonic clock."""

    def __init__(self) -> None:
        self.wall, self.monotonic = START, 77 * SECOND
        self.time = EvenTime(lambda: self.wall, lambda: self.monotonic)

    def sleep(self, ns: int, corrected: int = 0) -> None:
        self.wall += ns + corrected
        self.monotonic += ns


@pytest.mark.parametrize("corrected", [0, 8_000_000, -8_000_000, SECOND, -SECOND])
def test_a_small_correction_is_not_followed(corrected: int) -> None:
    clocks = Clocks()
    assert clocks.time() == START
    clocks.sleep(3 * SECOND, corrected)
    assert clocks.time() == START + 3 * SECOND


def test_a_clock_that_is_turned_back_goes_on() -> None:
    clocks = Clocks()
    clocks.sleep(SECOND, corrected=-3600 * SECOND)
    assert clocks.time() == START + SECOND
    clocks.sleep(SECOND, corrected=3600 * SECOND)
    assert clocks.time() == START + 2 * SECOND


def test_a_suspended_machine_is_followed() -> None:
    clocks = Clocks()
    clocks.sleep(SECOND, corrected=8 * 3600 * SECOND)
    assert clocks.time() == clocks.wall
    clocks.sleep(SECOND, corrected=-8_000_000)
    assert clocks.time() == START + (8 * 3600 + 2) * SECOND


def test_a_pause_while_the_time_is_read_is_no_leap() -> None:
    clocks = Clocks()
    pause = 0  # of the thread, after each read of a clock

    def wall() -> int:
        told = clocks.wall
        clocks.sleep(pause)
        return told

    def monotonic() -> int:
        told = clocks.monotonic
        clocks.sleep(pause)
        return told

    time_ns = EvenTime(wall, monotonic)
    pause = 5 * SECOND
    assert time_ns() <= clocks.wall
    pause = 0
    assert time_ns() == clocks.wall


def test_small_corrections_add_up_to_one_that_is_followed() -> None:
    clocks = Clocks()
    told = []
    for _ in range(300):
        clocks.sleep(SECOND, corrected=8_000_000)
        told.append(clocks.time())
        assert 0 <= clocks.wall - told[-1] <= SECOND
    assert told == sorted(told)


def test_it_is_the_time_of_the_system() -> None:
    assert abs(EvenTime()() - time.time_ns()) < 1.5 * SECOND
    assert abs(ms_of(Clock().timestamp()) - epoch_ms()) < 1500
    assert ms_of(timestamp_of(1_234_567_890_123)) == 1_234_567_890_123
