"""Requests that several workers want to make, of which one is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.runs.engines.claims import Claims
from mdagents_llm.errors import ErrorKind, ProviderError
from mdagents_llm.layers.reply_store import ReplyStore
from tests.support.function_model import text_reply


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReplyStore]:
    with closing(ReplyStore(tmp_path / "replies.sqlite")) as store:
        yield store


def test_one_asks_and_the_others_get_its_reply(store: ReplyStore) -> None:
    claims = Claims(store)
    for worker in range(3):
        claims.look_up(worker, 7, "key")
    assert claims.found(0) == [(7, None)]
    assert claims.found(1) == claims.found(2) == []
    claims.keep("key", text_reply("hello"))
    claims.release(0, "key")
    for worker in (1, 2):
        ((_, reply),) = claims.found(worker)
        assert reply is not None
        assert reply.text == "hello"


@pytest.mark.parametrize("end", ["an error", "its death"])
def test_the_next_one_asks_when_no_reply_came(store: ReplyStore, end: str) -> None:
    claims = Claims(store)
    for worker in range(3):
        claims.look_up(worker, worker, "key")
    claims.found(0)
    if end == "an error":
        claims.keep("key", ProviderError("it is down", kind=ErrorKind.OVERLOADED))
        claims.release(0, "key")
    else:
        claims.lost(0)
    assert claims.found(1) == [(1, None)]
    assert claims.found(2) == []
    claims.release(2, "key")  # waits no longer
    claims.release(1, "key")
    assert claims.found(2) == []


@pytest.mark.sweep
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["look up", "reply", "fail", "give up", "die"]),
            st.integers(0, 3),
            st.sampled_from("ab"),
        ),
        max_size=60,
    )
)
def test_nobody_waits_for_what_nobody_asks(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]]
) -> None:
    with closing(ReplyStore(tmp_path_factory.mktemp("cache") / "replies.sqlite")) as store:
        claims = Claims(store)
        waiting: dict[tuple[int, str], int] = {}  # (worker, key) -> its lookup
        asking: dict[str, int] = {}  # key -> the worker
        number = 0

        def hear() -> None:
            for worker in range(4):
                for lookup, reply in claims.found(worker):
                    (key,) = [k for (w, k), n in waiting.items() if (w, n) == (worker, lookup)]
                    del waiting[worker, key]
                    if reply is None:
                        assert key not in asking, "two ask the same"
                        asking[key] = worker

        for what, worker, key in steps:
            is_asking = asking.get(key) == worker
            match what:
                case "look up" if (worker, key) not in waiting and not is_asking:
                    number += 1
                    waiting[worker, key] = number
                    claims.look_up(worker, number, key)
                case "reply" | "fail" if is_asking:
                    if what == "reply":
                        claims.keep(key, text_reply(key))
                    del asking[key]
                    claims.release(worker, key)
                case "give up" if (worker, key) in waiting:
                    del waiting[worker, key]
                    claims.release(worker, key)
                case "die":
                    waiting = {at: n for at, n in waiting.items() if at[0] != worker}
                    asking = {k: asker for k, asker in asking.items() if asker != worker}
                    claims.lost(worker)
            hear()
            assert {key for _, key in waiting} <= asking.keys()
