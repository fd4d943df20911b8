"""What pages get of the events of a run: everything, once, whenever they come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.cdss_example.events import CaseBegan, CaseEnded, Event, NodeBegan, Said, Summarised
from demos.cdss_example.view.event_log import EventLog
from exaid_core import AgentSummary

EVENTS = st.lists(
    st.one_of(
        st.builds(Said, st.integers(1, 2), st.just("laboratory"), st.text(max_size=5)),
        st.builds(NodeBegan, st.integers(1, 2), st.just("laboratory")),
        st.just(Summarised(AgentSummary(agents=("laboratory",)))),
    ),
    max_size=20,
)


async def rest(log: EventLog, seen: str) -> tuple[str, list[dict[str, Any]]]:
    """All that a page gets from a closed log, and the last id."""
    messages: list[dict[str, Any]] = []
    async for id_, batch in log.since(seen):
        seen = id_
        messages += batch
    return seen, messages


def told(messages: list[dict[str, Any]]) -> list[Any]:
    """What a page shows: texts of one turn that follow each other are one."""
    shown: list[Any] = []
    for message in messages:
        last = shown[-1] if shown else {}
        if message["is"] == last.get("is") == "said" and last["run"] == message["run"]:
            shown[-1] = message | {"text": last["text"] + message["text"]}
        elif message["is"] != "anew" and message.get("text") != "":
            shown.append(message)
    return shown


async def first(log: EventLog, seen: str) -> tuple[str, list[dict[str, Any]]]:
    stream = log.since(seen)
    try:
        return await anext(stream)
    finally:
        await stream.aclose()


@pytest.mark.sweep
@given(EVENTS, EVENTS)
def test_a_page_that_comes_back_misses_nothing(before: list[Event], after: list[Event]) -> None:
    async def follow() -> None:
        log = EventLog()
        log.add(CaseBegan("case-1", "x"))
        for event in before:
            log.add(event)
        seen, early = await first(log, "")
        for event in after:
            log.add(event)
        log.close()
        _, late = await rest(log, seen)
        _, whole = await rest(log, "")
        assert early[0] == whole[0] == {"is": "anew"}
        assert {"is": "anew"} not in late
        assert told([*early, *late]) == told(whole)
        text = "".join(event.text for event in [*before, *after] if isinstance(event, Said))
        assert "".join(message.get("text", "") for message in whole) == text

    asyncio.run(follow())


async def test_many_small_pieces_are_one_message() -> None:
    log = EventLog()
    for _ in range(10_000):
        log.add(Said(1, "laboratory", "ab"))
    log.close()
    _, messages = await rest(log, "")
    assert messages == [{"is": "anew"}, {"is": "said", "run": 1, "text": "ab" * 10_000}]


async def test_a_page_waits_for_news_and_hears_the_end() -> None:
    log = EventLog()
    stream = log.since("")
    assert (await anext(stream))[1] == [{"is": "anew"}]
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    log.add(CaseEnded(failure="no reply"))
    id_, batch = await waiting
    assert batch == [{"is": "over", "failure": "no reply", "exaid": ""}]
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    log.close()
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert await rest(log, id_) == (id_, [])


@pytest.mark.sweep
@given(st.text(max_size=12) | st.from_regex(r"\A[0-9a-f]{8}-\d{1,9}-\d{1,9}\Z"))
def test_an_id_of_another_run_begins_anew(seen: str) -> None:
    async def follow() -> None:
        log = EventLog()
        log.add(CaseBegan("case-1", "x"))
        log.close()
        _, messages = await rest(log, seen)
        assert [message["is"] for message in messages] == ["anew", "case"]

    asyncio.run(follow())


async def test_an_id_beyond_the_end_begins_anew() -> None:
    log = EventLog()
    log.add(CaseBegan("case-1", "x"))
    id_, _ = await first(log, "")
    log.close()
    _, messages = await rest(log, id_.replace("-1-", "-7-"))
    assert [message["is"] for message in messages] == ["anew", "case"]
