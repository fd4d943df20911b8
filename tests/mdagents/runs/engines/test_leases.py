"""Who gets which question, while workers come and die."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.datasets.dataset import IndexEntry
from mdagents.records.summaries import ItemKey
from mdagents.runs.engines.engine import Item
from mdagents.runs.engines.leases import LONGEST_WAIT, MOST_DEATHS, QUIET, Leases

ROOM = 3


def items(count: int) -> list[Item]:
    return [Item(IndexEntry(str(n), 0, n, "")) for n in range(1, count + 1)]


def leases(count: int) -> Leases:
    return Leases(items(count), length=lambda item: item.entry.line)


@pytest.mark.sweep
@given(
    count=st.integers(0, 40),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["lend", "done", "returned", "killed", "machine lost", "time"]),
            st.integers(0, 2),
            st.integers(0, 9),
        ),
        max_size=80,
    ),
)
def test_every_question_is_answered_once_or_given_up(
    count: int, steps: list[tuple[str, int, int]]
) -> None:
    lent: dict[int, set[ItemKey]] = {worker: set() for worker in range(3)}
    done: Counter[ItemKey] = Counter()
    deaths: Counter[ItemKey] = Counter()
    given_up: set[ItemKey] = set()
    now, of = 0.0, leases(count)

    def lend(worker: int, ahead: int) -> None:
        new = {item.key for item in of.lend(worker, ROOM, ahead, 3, now)}
        for others in lent.values():
            assert not new & others, "lent to two"
        assert not new & done.keys() | new & given_up
        lent[worker] |= new
        assert len(lent[worker]) <= ROOM + ahead or not new

    for what, worker, number in steps:
        keys = sorted(lent[worker])
        match what:
            case "lend":
                lend(worker, number)
            case "done" if keys:
                assert of.done(worker, keys[number % len(keys)])
                done[keys[number % len(keys)]] += 1
                lent[worker].remove(keys[number % len(keys)])
            case "returned" if keys:
                of.returned(worker, keys[number % len(keys)])
                lent[worker].remove(keys[number % len(keys)])
            case "killed" | "machine lost":
                deaths.update(keys if what == "killed" else ())
                up = {item.key for item in of.lost(worker, now, by_itself=what == "killed")}
                assert all(deaths[key] >= MOST_DEATHS for key in up)
                given_up |= up
                lent[worker].clear()
            case "time":
                now += number
    for _ in range(20 * count + 20):
        now += LONGEST_WAIT
        for worker in lent:
            lend(worker, 0)
            for key in sorted(lent[worker]):
                assert of.done(worker, key)
                done[key] += 1
            lent[worker].clear()
    assert (of.left, of.lent) == (0, 0)
    assert all(times == 1 for times in done.values())
    assert done.keys() | given_up == {item.key for item in items(count)}
    assert not done.keys() & given_up


@given(count=st.integers(1, 30), killer=st.integers(1, 30), workers=st.integers(1, 4))
def test_a_question_that_kills_is_found_and_no_other_is_blamed(
    count: int, killer: int, workers: int
) -> None:
    key = (str(min(killer, count)), 1)
    of, now, killed, done = leases(count), 0.0, 0, 0
    given_up: list[ItemKey] = []
    while of.left or of.lent:
        for worker in range(workers):
            of.lend(worker, ROOM, 0, workers, now)
            if key in of.of(worker):
                given_up += [item.key for item in of.lost(worker, now, by_itself=True)]
                killed += 1
            for other in of.of(worker):
                done += of.done(worker, other)
        now += 1.0
    assert given_up == [key]
    assert (killed, done) == (MOST_DEATHS, count - 1)


def test_a_suspect_waits_until_no_more_workers_die() -> None:
    of = leases(1)
    for death in range(MOST_DEATHS - 1):
        assert of.lend(0, ROOM, 0, 2, death)
        of.lost(0, death, by_itself=True)
    last = MOST_DEATHS - 2
    assert of.lend(0, ROOM, 0, 2, last + QUIET - 0.1) == []
    for second in range(1, int(LONGEST_WAIT)):
        of.lost(1, last + second, by_itself=True)  # others die all the time
        assert of.lend(0, ROOM, 0, 2, last + second) == []
    assert len(of.lend(0, ROOM, 0, 2, last + LONGEST_WAIT)) == 1


def test_a_machine_that_is_lost_makes_no_suspects() -> None:
    of = leases(1)
    for second in range(10):
        assert of.lend(0, ROOM, 0, 1, second)
        assert of.lost(0, second, by_itself=False) == []


def test_at_the_end_the_longest_go_first_and_none_ahead() -> None:
    of = leases(20)
    first = of.lend(0, ROOM, 5, 2, 0.0)
    assert [item.entry.line for item in first] == list(range(1, 8)), "in their order, some ahead"
    for item in first:
        of.done(0, item.key)
    of.lend(1, ROOM, 0, 2, 0.0)
    last = of.lend(0, ROOM, 5, 2, 0.0)
    assert [item.entry.line for item in last] == [20, 19, 18]
